"""The linear view: what is said of documents by fits that have not seen them."""

from __future__ import annotations

import numpy as np
import pytest

from laconic import Corpus
from laconic.batching import GrammarDataset
from laconic.tasks import task_of
from laconic.training.auto import learn
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


@pytest.mark.parametrize("holdout", [0.0, 0.2])
@pytest.mark.parametrize("count", [2, 3, 9, 12])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_few_documents(count: int, holdout: float, task: str) -> None:
    texts = [f"good and fine {k}" if k % 2 else f"bad, rude {k}" for k in range(count)]
    data = Corpus.from_documents(texts, [k % 2 for k in range(count)])
    config = TrainingConfig(model="auto", device="cpu", holdout=holdout, task=task)
    assert learn(data, config).model.config.model == "ngram"
