"""Samplers of documents that do not fit into memory: their order, and what it takes to follow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from laconic.batching import LengthSampler
from laconic.batching.sampler import RowGroups

OPTIONS = st.fixed_dictionaries(
    {
        "batch_size": st.integers(1, 9),
        "budget": st.none() | st.integers(1, 5000),
        "shuffle": st.booleans(),
        "seed": st.integers(0, 2**40),
    }
)


@st.composite
def stored(draw: st.DrawFn) -> tuple[list[int], RowGroups]:
    """Lengths of documents, and row groups of them, of which some may be empty."""
    counts = draw(st.lists(st.integers(0, 8), min_size=1, max_size=12))
    sizes = draw(st.lists(st.integers(1, 100), min_size=len(counts), max_size=len(counts)))
    lengths = draw(st.lists(st.integers(0, 300), min_size=sum(counts), max_size=sum(counts)))
    starts = np.cumsum([0, *counts])
    return lengths, RowGroups(starts, np.array(sizes), draw(st.integers(1, 400)))


def ranks(lengths: list[int], epoch: int, processes: int, **options: Any) -> list[list[list[int]]]:
    made = []
    for rank in range(processes):
        sampler = LengthSampler(lengths, **options, rank=rank, processes=processes)
        sampler.set_epoch(epoch)
        made.append(list(sampler))
        assert len(made[-1]) == len(sampler)
    return made


@given(stored(), OPTIONS, st.integers(0, 3), st.integers(1, 4), st.data())
def test_every_document_is_in_one_batch_of_each_epoch(
    there: tuple[list[int], RowGroups],
    options: dict[str, Any],
    epoch: int,
    processes: int,
    data: st.DataObject,
) -> None:
    lengths, groups = there
    assume(len(lengths) >= processes)
    documents = data.draw(st.none() | st.integers(processes, len(lengths)))
    options |= {"documents": documents, "row_groups": groups}
    made = ranks(lengths, epoch, processes, **options)
    assert len({len(rank) for rank in made}) == 1
    assert all(batch for rank in made for batch in rank)
    taken = [row for rank in made for batch in rank for row in batch]
    assert len(taken) == len(set(taken))
    wanted = len(lengths) if documents is None else documents
    # Processes that share the last few documents evenly may leave some out.
    assert wanted - len(taken) in range(1 if documents is None else processes)
    start = data.draw(st.integers(0, len(made[0])))
    sampler = LengthSampler(lengths, **options, processes=processes)
    sampler.set_epoch(epoch, start)
    assert list(sampler) == made[0][start:]


@given(stored(), OPTIONS, st.integers(0, 3))
def test_a_buffer_that_holds_all_changes_nothing(
    there: tuple[list[int], RowGroups], options: dict[str, Any], epoch: int
) -> None:
    lengths, groups = there
    groups = groups._replace(buffer=int(groups.sizes.sum()))
    plain = ranks(lengths, epoch, 1, **options)
    assert ranks(lengths, epoch, 1, **options, row_groups=groups) == plain


@given(stored(), OPTIONS, st.integers(0, 3))
def test_what_is_held_fits_into_the_buffer(
    there: tuple[list[int], RowGroups], options: dict[str, Any], epoch: int
) -> None:
    lengths, groups = there
    assume(lengths)
    [batches] = ranks(lengths, epoch, 1, **options, row_groups=groups)
    owners = np.searchsorted(groups.starts, np.arange(len(lengths)), side="right") - 1
    used = [set(owners[batch].tolist()) for batch in batches]
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for number, some in enumerate(used):
        for group in some:
            first.setdefault(group, number)
            last[group] = number
    for number in range(len(used)):
        held = [group for group in first if first[group] <= number <= last[group]]
        assert len(held) == 1 or groups.sizes[held].sum() <= groups.buffer


@given(stored(), OPTIONS, st.integers(0, 3), st.integers(2, 9))
def test_the_order_is_the_same_on_two_processes(
    there: tuple[list[int], RowGroups], options: dict[str, Any], epoch: int, size: int
) -> None:
    lengths, groups = there
    # Each buffer must have enough for two.
    assume(all(count >= 2 for count in np.diff(groups.starts)))
    options |= {"budget": None, "row_groups": groups}
    [alone] = ranks(lengths, epoch, 1, **options | {"batch_size": 2 * size})
    both = ranks(lengths, epoch, 2, **options | {"batch_size": size})
    together = [sorted(one + other) for one, other in zip(*both, strict=True)]
    assert together == [sorted(batch) for batch in alone]


def test_row_groups_are_shuffled_and_lengths_are_similar() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 1000, 4000)
    groups = RowGroups(np.arange(0, 4001, 100), np.full(40, 10), 100)
    sampler = LengthSampler(lengths, 10, row_groups=groups, seed=3)
    firsts = []
    for epoch in range(20):
        sampler.set_epoch(epoch)
        batches = list(sampler)
        assert len(batches) == 400
        firsts.append({row // 100 for batch in batches[:100] for row in batch})
        assert len(firsts[-1]) == 10, "as many as the buffer holds"
        padded = sum(len(batch) * lengths[batch].max() for batch in batches)
        assert padded < 1.15 * lengths.sum()
    assert len({frozenset(some) for some in firsts}) == 20
    assert len(set.union(*firsts)) == 40


def test_documents_of_an_epoch_are_of_few_row_groups() -> None:
    groups = RowGroups(np.arange(0, 1001, 10), np.ones(100, np.int64), 5)
    sampler = LengthSampler(np.ones(1000, np.int64), 10, row_groups=groups, documents=120)
    seen: set[int] = set()
    for epoch in range(60):
        sampler.set_epoch(epoch)
        taken = [row for batch in sampler for row in batch]
        assert len(set(taken)) == len(taken) == 120
        assert len({row // 10 for row in taken}) <= 15
        seen.update(taken)
    assert len(seen) > 990


def test_what_is_refused() -> None:
    groups = RowGroups(np.array([0, 1, 2]), np.ones(2, np.int64), 1)
    with pytest.raises(ValueError, match="2 documents for 3 processes"):
        LengthSampler([1, 1], row_groups=groups, processes=3)
