"""The linear view: what is said of documents by fits that have not seen them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from laconic import Corpus, Rulebook
from laconic.batching import GrammarDataset
from laconic.tasks import task_of
from laconic.training import auto
from laconic.training.auto import learn
from laconic.training.convex import SparseRows
from laconic.training.linear import LinearView, fit_linear
from laconic.training.settings import TrainingConfig


def fitted(twins_are_a_group: bool) -> tuple[LinearView, np.ndarray]:
    """Fit documents whose words occur nowhere else, but in a twin that validates, too."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for _ in range(240):
        words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 9)) for _ in range(4)]
        texts.append(" ".join(words))
        labels.append(int(rng.integers(2)))
    texts, labels = texts + texts[120:], labels + labels[120:]
    task = task_of(labels, "classification")
    every = GrammarDataset(Corpus.from_documents(texts, labels).grammars, task.numbers(labels))
    groups = np.concatenate([np.arange(240), np.arange(120, 240)])
    found = fit_linear(
        every.select(range(120)),
        every.select(range(120, 360)),
        task,
        groups=groups if twins_are_a_group else None,
    )
    return found, np.array(labels[120:])


def test_held_out_documents_are_judged_by_fits_of_most_others() -> None:
    """As the last fit, which learns from all: one of the training alone could only guess here."""
    found, labels = fitted(twins_are_a_group=False)
    assert found.documents == 360
    assert found.held_out.shape == (240, 2)
    right = found.held_out.argmax(1) == labels
    assert right.mean() > 0.75  # a quarter left out with their twins


def test_nobody_is_judged_by_a_fit_of_its_group() -> None:
    found, labels = fitted(twins_are_a_group=True)
    right = found.held_out.argmax(1) == labels
    assert 0.3 < right.mean() < 0.7


def test_after_time_is_up_no_further_features_are_tried() -> None:
    data, told = reviews(80), list[tuple[int, int]]()
    task = task_of(data.labels, "classification")
    every = GrammarDataset(data.grammars, task.numbers(data.labels))
    parts = every.select(range(60)), every.select(range(60, 80)), task
    whole = fit_linear(*parts, progress=lambda *at: told.append(at))
    assert len(whole.tried) > 2
    assert not whole.late
    steps = len(whole.tried) + 1
    assert told == [*((done, steps) for done in range(1, steps)), (1, 1)]
    short = fit_linear(*parts, until=0.0)
    assert len(short.tried) == 1
    assert short.late
    assert short.held_out.shape == whole.held_out.shape


def test_many_labels_are_learned_as_well_as_one() -> None:
    """The loss is a mean of all labels', so that each of many moved weights little."""
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 4)) for _ in range(60)]
    labels = [sorted(rng.choice(60, 3, replace=False).tolist()) for _ in range(150)]
    texts = [" ".join(words[label] for label in some) for some in labels]
    task = task_of(labels, "multilabel")
    every = GrammarDataset(Corpus.from_documents(texts).grammars, task.numbers(labels))
    found = fit_linear(every.select(range(100)), every.select(range(100, 150)), task)
    assert task.evaluate(found.held_out, task.numbers(labels[100:]))["micro_f1"] > 0.9


@pytest.mark.parametrize("holdout", [0.0, 0.2])
@pytest.mark.parametrize("count", [2, 3, 9, 12])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_few_documents(count: int, holdout: float, task: str) -> None:
    texts = [f"good and fine {k}" if k % 2 else f"bad, rude {k}" for k in range(count)]
    data = Corpus.from_documents(texts, [k % 2 for k in range(count)])
    config = TrainingConfig(model="auto", device="cpu", holdout=holdout, task=task)
    assert learn(data, config).model.config.model == "ngram"


def reviews(count: int = 700) -> Corpus:
    """Texts of which half the words tell the label, and some are wrong."""
    rng, words = np.random.default_rng(0), {0: "bad rude never awful", 1: "good fine again lovely"}
    told = rng.integers(0, 2, count)
    texts = [
        " ".join(rng.choice([*words[k].split(" "), "the", "of", "it"], 12)) for k in told.tolist()
    ]
    labels = np.where(rng.random(count) < 0.15, 1 - told, told).tolist()
    return Corpus.from_documents(texts, labels, rulebook=Rulebook.learn(texts, 64))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpu_finds_the_same() -> None:
    data = reviews()
    task = task_of(data.labels, "classification")
    every = GrammarDataset(data.grammars, task.numbers(data.labels))
    parts = every.select(range(500)), every.select(range(500, 700))
    ours, other = (fit_linear(*parts, task, device=device) for device in ("cuda", "cpu"))
    assert ours.features == other.features
    assert ours.strength == other.strength
    np.testing.assert_allclose(ours.held_out, other.held_out, rtol=0.02, atol=0.02)
    for name, weights in ours.model.state_dict().items():
        torch.testing.assert_close(weights, other.model.state_dict()[name], rtol=0.02, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_what_a_gpu_has_no_room_for_is_counted_by_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    stacked, told = SparseRows.stacked.__func__, list[str]()  # type: ignore[attr-defined]

    def short_of_memory(cls: type[SparseRows], parts: Any, width: int) -> SparseRows:
        made: SparseRows = stacked(cls, parts, width)
        if made.values.is_cuda:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return made

    monkeypatch.setattr(SparseRows, "stacked", classmethod(short_of_memory))
    config = TrainingConfig(model="auto", device="cuda", epochs=1)
    trained = learn(reviews(), config, say=told.append)
    assert trained.history[-1]["valid"]["accuracy"] > 0.75
    assert any(line.startswith("counting   on the CPU: cuda") for line in told)
    assert next(trained.model.parameters()).is_cuda, "where it was trained, as `train` leaves it"


def test_memory_is_the_most_that_counting_or_reading_took(monkeypatch: pytest.MonkeyPatch) -> None:
    most = iter([900.0, 100.0, 100.0])
    monkeypatch.setattr(auto, "memory_figures", lambda device: {"peak_memory_mb": next(most)})
    trained = learn(reviews(40), TrainingConfig(model="auto", device="cpu"))
    assert trained.peak_memory == trained.history[-1]["peak_memory_mb"] == 900
