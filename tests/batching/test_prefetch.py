"""Threads that work ahead: order, errors, and an end before the end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from laconic import compress_many
from laconic.batching import Batch, GrammarDataset, LengthSampler, batches
from laconic.batching.prefetch import ahead


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_order_is_kept(workers: int) -> None:
    assert list(ahead(lambda n: n * n, range(50), workers)) == [n * n for n in range(50)]


def test_an_error_comes_in_its_turn() -> None:
    made = ahead(lambda n: 10 // (3 - n), range(9), 2)
    assert [next(made) for _ in range(3)] == [3, 5, 10]
    with pytest.raises(ZeroDivisionError):
        next(made)


def test_items_may_fail() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise KeyError("no more")

    with pytest.raises(KeyError, match="no more"):
        list(ahead(str, items(), 2))


def test_whoever_stops_leaves_no_thread() -> None:
    made = ahead(str, range(1000), 2)
    assert next(made) == "0"
    made.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name.startswith("laconic"):
            thread.join(5)
            assert not thread.is_alive()


def test_batches_for_a_gpu_are_those_of_a_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Batch, "pin_memory", lambda batch: batch)  # torch pins only beside a GPU
    dataset = GrammarDataset(compress_many(["abab" * n for n in range(40)]))
    sampler = LengthSampler(dataset.sequence_lengths, 7, seed=3)
    plain, made = batches(dataset, sampler), batches(dataset, sampler, pin_memory=True)
    assert len(plain) == len(made) == len(sampler)
    for one, other in zip(plain, made, strict=True):
        assert one.rows is not None
        assert other.rows is not None
        assert one.rows.tolist() == other.rows.tolist()
        assert one.symbols.tolist() == other.symbols.tolist()
