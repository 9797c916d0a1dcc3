"""Batches in pieces: the same steps from the same documents, however little memory there is.

On a GPU memory is short by a real limit of torch's allocator; here the model raises its error.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from laconic import Corpus, samples
from laconic.batching import Batch, GrammarDataset, LengthSampler, cut
from laconic.errors import OutOfMemoryError
from laconic.nn import GrammarModel
from laconic.nn.memory import (
    available_memory,
    give_back_memory,
    is_out_of_memory,
    memory_figures,
)
from laconic.nn.piece_size import PieceSize
from laconic.training.holdout import divide
from laconic.training.loop import Trained, train
from laconic.training.losses import losses_of_views
from laconic.training.new_model import new_model
from laconic.training.pieces import largest_piece
from laconic.training.progress import Progress
from laconic.training.run import Run
from laconic.training.settings import TrainingConfig
from laconic.training.validation import forward_pass

TINY = TrainingConfig(embedding_size=16, width=16, epochs=2, batch_size=16, dropout=0.0, seed=5)
BOTH = replace(TINY, model="both", ngrams=3, phrases=2, ngram_buckets=999, ngram_dropout=0.0)
LOCAL = replace(TINY, local_ngrams=3, local_buckets=200, local_size=8, local_dropout=0.0)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    split = samples.load("kjv").train
    texts = [text[: 20 + 37 * k % 400] for k, text in enumerate(split.documents[:90])]
    return Corpus.from_documents(texts, split.labels[:90])


class Memory:
    """A model's memory, in which batches of more symbols than `room` do not fit."""

    def __init__(self, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room, self.seen = room, []
        views = GrammarModel.views

        def limited(model: GrammarModel, batch: Batch, *rest: Any) -> list[Tensor]:
            if batch.symbols.numel() > self.room:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB")
            self.seen.append(batch)
            return views(model, batch, *rest)

        monkeypatch.setattr(GrammarModel, "views", limited)

    @property
    def seen_rows(self) -> list[int]:
        return [row for batch in self.seen if batch.rows is not None for row in batch.rows.tolist()]

    seen: list[Batch]


def weights(trained: Trained) -> dict[str, Tensor]:
    return trained.model.state_dict()


def assert_close(one: Trained, other: Trained) -> None:
    for name, weight in weights(one).items():
        torch.testing.assert_close(weights(other)[name], weight, atol=2e-5, rtol=1e-4)
    for a, b in zip(one.history[:-1], other.history[:-1], strict=True):
        assert a["train_loss"] == pytest.approx(b["train_loss"], rel=1e-4)
        assert a["step"] == b["step"]


@pytest.fixture
def told() -> Iterator[list[str]]:
    """What was warned of, once the test is over."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        yield found
    found += [str(each.message) for each in seen]


@pytest.mark.parametrize("config", [TINY, BOTH, LOCAL], ids=["reads", "both", "in place"])
@pytest.mark.parametrize("limit", [1, 90, 300])
def test_gradients_of_pieces_add_up_to_those_of_the_batch(
    corpus: Corpus, config: TrainingConfig, limit: int
) -> None:
    training, _, task, *_ = divide(corpus, None, None, config)
    torch.manual_seed(0)
    model = new_model(config.model_config(256, task.outputs, task.name), training).double()
    told = training.changed(counted=model.config.counted, in_place=model.config.in_place)
    rows = next(iter(LengthSampler(told.sequence_lengths, 16)))

    def gradients(parts: list[Any]) -> dict[str, Tensor]:
        model.zero_grad()
        for part in parts:
            batch = told.batch(part)
            assert batch.labels is not None
            views = model.views(batch)
            losses_of_views(task.losses, views, batch.labels, 1.0).sum().backward()  # type: ignore[no-untyped-call]
        return {n: p.grad for n, p in model.named_parameters() if p.grad is not None}

    parts = [np.array(rows)[part] for part in cut(told.lengths_of(rows), limit)]
    assert len(parts) > 1
    wanted, found = gradients([rows]), gradients(parts)
    assert wanted.keys() == found.keys()
    for name, gradient in wanted.items():
        # Losses are summed in float32.
        torch.testing.assert_close(found[name], gradient, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "changes",
    [{}, {"accumulate": 2}, {"budget": 700}, {"clip": 0.5, "optimizer": "adamw"}],
    ids=str,
)
def test_little_memory_takes_the_same_steps(
    corpus: Corpus, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(BOTH, **changes)
    plenty = train(corpus, config)
    little = Memory(260, monkeypatch)
    with pytest.warns(UserWarning, match="in smaller pieces from now on") as told:
        found = train(corpus, config)
    assert len(told) == 1, "said once"
    assert_close(plenty, found)
    assert max(batch.symbols.numel() for batch in little.seen) <= 260
    assert found.history[-1]["valid"]["documents"] == plenty.history[-1]["valid"]["documents"]


def test_each_document_is_taken_once_in_an_epoch(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = Memory(260, monkeypatch)
    config = replace(TINY, epochs=1, holdout=0.0)
    with pytest.warns(UserWarning, match="pieces"):
        train(corpus, config)
    # Of the group that failed first, nothing had been taken: its first piece was too large.
    assert set(little.seen_rows) == set(range(len(corpus)))


def test_with_grammar_dropout_documents_are_those_of_the_batch(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How symbols are expanded depends on the epoch and the document, not on its piece."""
    config = replace(TINY, grammar_dropout=0.4)
    plenty = train(corpus, config)
    Memory(400, monkeypatch)
    with pytest.warns(UserWarning, match="pieces"):
        assert_close(plenty, train(corpus, config))


def test_one_document_that_does_not_fit(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    Memory(30, monkeypatch)
    told = pytest.warns(UserWarning, match="pieces")
    with told, pytest.raises(OutOfMemoryError, match="one document at a time, too; use precision"):
        train(corpus, TINY)


class Stop(Exception):  # noqa: N818
    """Somebody pulled the plug."""


def stop_at(epoch: int, step: int) -> Callable[[Progress], None]:
    def progress(at: Progress) -> None:
        if at.epoch == epoch and at.step == step:
            raise Stop

    return progress


@pytest.mark.filterwarnings("ignore:out of memory")
@pytest.mark.parametrize("where", [(1, 2), (2, 1), (2, 3)])
def test_positions_count_batches_and_not_pieces(
    corpus: Corpus, tmp_path: Path, where: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(TINY, checkpoint_minutes=0.0)
    whole = train(corpus, config)
    little = Memory(260, monkeypatch)
    with pytest.raises(Stop):
        train(corpus, config, tmp_path / "run", progress=stop_at(*where))
    checkpoint = Run.open(tmp_path / "run").checkpoints.whole()[-1]
    state = json.loads((checkpoint / "state.json").read_text())
    assert state["batch"] == state["step"] - state["epoch"] * (whole.history[0]["step"])
    little.room = 10_000  # on another machine, which has more
    assert_close(whole, train(corpus, config, tmp_path / "run", resume=True))


@pytest.mark.filterwarnings("ignore:out of memory")
def test_predictions_are_the_same_in_pieces(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = train(corpus, replace(TINY, epochs=1))
    dataset = GrammarDataset(corpus.grammars)
    wanted = forward_pass(trained.model, TINY).outputs(dataset)
    little = Memory(260, monkeypatch)
    forward = forward_pass(trained.model, TINY)
    np.testing.assert_allclose(forward.outputs(dataset), wanted, atol=1e-5)
    assert forward.size.lowered
    seen = len(little.seen)
    lowered = forward.size.lowered
    np.testing.assert_allclose(forward.outputs(dataset), wanted, atol=1e-5)
    assert forward.size.lowered == lowered, "what was found out is kept"
    assert len(little.seen) > seen


def test_what_was_made_before_the_limit_was_lowered_is_cut_again(corpus: Corpus) -> None:
    dataset = GrammarDataset(corpus.grammars)
    size, calls = PieceSize(), 0

    def short(pieces: list[Batch]) -> list[int]:
        nonlocal calls
        calls += 1
        if any(piece.symbols.numel() > 100 for piece in pieces if len(piece) > 1):
            raise RuntimeError("CUDA error: out of memory\nSearch for")
        return sorted(row for piece in pieces for row in piece.rows.tolist())  # type: ignore[union-attr]

    let_go: list[bool] = []
    size.before_retry.append(lambda: let_go.append(True))
    rows = list(range(20))
    with pytest.warns(UserWarning, match="pieces"):
        assert size.run(short, [dataset.batch(rows)], dataset) == rows
    assert len(let_go) == size.lowered == calls - 1
    before, limit = calls, size.limit
    assert size.run(short, [dataset.batch(rows)], dataset) == rows
    assert (calls, size.limit) == (before + 1, limit)


def test_other_errors_are_raised_at_once(corpus: Corpus) -> None:
    dataset, size, calls = GrammarDataset(corpus.grammars), PieceSize(), []

    def wrong(pieces: list[Batch]) -> None:
        calls.append(len(pieces))
        raise RuntimeError("shapes do not match")

    with pytest.raises(RuntimeError, match="shapes"):
        size.run(wrong, [dataset.batch([0, 1])], dataset)
    assert calls == [1]


def test_an_error_that_came_of_too_little_memory_is_known() -> None:
    later = RuntimeError("operation failed due to a previous error during capture")
    later.__context__ = torch.OutOfMemoryError("CUDA out of memory")
    assert is_out_of_memory(later)
    assert not is_out_of_memory(RuntimeError("operation failed"))
    assert not is_out_of_memory(None)


def test_on_the_cpu_nothing_is_cut_or_told(corpus: Corpus) -> None:
    line = train(corpus, replace(TINY, epochs=1)).history[0]
    assert not {"pieces_per_batch", "reserved_memory_mb", "out_of_memory"} & line.keys()
    assert memory_figures(torch.device("cpu")).keys() == {"peak_memory_mb"}


def test_the_largest_piece(corpus: Corpus) -> None:
    lengths = GrammarDataset(corpus.grammars).sequence_lengths
    sampler = LengthSampler(lengths, 16, seed=1)
    assert largest_piece(sampler, None) == sampler.largest()
    rows = largest_piece(sampler, 300)
    assert len(rows) * lengths[rows].max() <= 300
    every = [np.array(rows)[part] for rows in sampler for part in cut(lengths[rows], 300)]
    assert max(len(part) * lengths[part].max() for part in every) == len(rows) * lengths[rows].max()


# What a GPU takes is measured: here by numbers that a device would give.


@pytest.mark.parametrize("fixed", [0, 500_000])
@pytest.mark.parametrize("free", [1_000_000, 3_000_000, 10**9])
def test_the_limit_follows_from_what_is_free(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, free: int, fixed: int
) -> None:
    dataset = GrammarDataset(corpus.grammars)
    rows = LengthSampler(dataset.sequence_lengths, 16).largest()
    taken: list[int] = []

    def take(some: list[int]) -> None:
        taken.append(fixed + 1000 * len(some) * int(dataset.lengths_of(some).max()))

    module = "laconic.nn.piece_size."
    monkeypatch.setattr(module + "available_memory", lambda _: free)
    monkeypatch.setattr(module + "peak_of", lambda run, _: (run(), taken[-1])[1])
    size = PieceSize()
    size.measure(take, rows, dataset, torch.device("cuda"), kept=free // 10)
    assert size.limit is not None
    room = 0.6 * 0.9 * free
    whole = len(rows) * int(dataset.lengths_of(rows).max())
    longest = whole // len(rows)
    assert fixed + 1000 * size.limit <= room or not longest <= size.limit < whole
    assert max(taken) <= max(0.25 * free, fixed + 2000 * longest)
    if free == 10**9:
        assert size.limit >= whole, "everything fits"
    elif room - fixed > 100_000:
        assert 1000 * size.limit >= 0.8 * (room - fixed), "and no more is cut than need be"


GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture
def eight_gb() -> Iterator[None]:
    """A process that may take 8 GB of its GPU, as if that had no more."""
    give_back_memory()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, 8e9 / total))
    yield
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.empty_cache()


@pytest.fixture(scope="module")
def long_corpus() -> Corpus:
    """Documents of which 64 of the longest need more than 8 GB."""
    rng = np.random.default_rng(0)
    texts = samples.load("kjv").train.documents
    documents = []
    for number in range(160):
        letters = 20_000 if number % 2 else int(rng.integers(200, 20_000))
        parts, size = [], 0
        while size < letters:
            parts.append(texts[int(rng.integers(len(texts)))])
            size += len(parts[-1])
        documents.append(" ".join(parts)[:letters])
    return Corpus.from_documents(documents, [str(n % 2) for n in range(160)])


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("graphs", [True, False])
def test_long_documents_train_in_8_gb(corpus: Corpus, long_corpus: Corpus, graphs: bool) -> None:
    config = TrainingConfig(epochs=2, dropout=0.0, device="cuda", graphs=graphs, batch_size=128)
    config = replace(config, width=256, embedding_size=256)
    plenty = train(long_corpus, config)
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(min(1.0, 8e9 / total))
    try:
        found = train(long_corpus, config)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    line = found.history[0]
    assert line["pieces_per_batch"] > 1
    assert line["reserved_memory_mb"] <= 8e9 / 2**20
    assert line["reserved_memory_mb"] <= 1.3 * line["peak_memory_mb"]
    assert line["train_loss"] == pytest.approx(plenty.history[0]["train_loss"], rel=1e-2)
    assert plenty.history[0]["pieces_per_batch"] == 1


@pytest.mark.gpu
@GPU
@pytest.mark.filterwarnings("ignore:out of memory")
@pytest.mark.parametrize("graphs", [True, False])
def test_a_limit_that_is_too_high_is_lowered(
    long_corpus: Corpus, eight_gb: None, graphs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if a measurement had said that everything fits, where half of it does."""
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, 4e9 / total))
    monkeypatch.setattr("laconic.nn.piece_size.available_memory", lambda _: 10**15)
    config = TrainingConfig(epochs=2, device="cuda", graphs=graphs, batch_size=128)
    config = replace(config, width=256, embedding_size=256)
    line = train(long_corpus, config).history[1]  # the first has one batch, made before
    assert line["out_of_memory"] >= 1
    assert line["pieces_per_batch"] > 1
    assert np.isfinite(line["valid_loss"])


@pytest.mark.gpu
@GPU
def test_available_memory_respects_the_process_limit(eight_gb: None) -> None:
    device = torch.device("cuda")
    before = available_memory(device)
    assert 0 < before <= 8e9
    held = torch.empty(10**9, dtype=torch.uint8, device=device)
    assert available_memory(device) == pytest.approx(before - 1e9, abs=4e6)
    del held
    assert available_memory(device) == pytest.approx(before, abs=4e6), "cached blocks are free"
