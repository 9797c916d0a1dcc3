"""Kept bags: that they are exactly what counting gives, and that they are left out if too large."""

from __future__ import annotations

import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from strategies import renamed, valid_grammar
from torch.utils.data import DataLoader, Dataset

from laconic import Grammar, Grammars, Rulebook, compress_many, samples
from laconic.arrays import Int64s
from laconic.batching import Bag, GrammarDataset, LengthSampler, batches
from laconic.batching.batch import bag_of
from laconic.batching.kept_bags import KeptBags
from laconic.ngrams.hashed import HashedCounter

SEEDS = st.integers(0, 2**32)
COUNTERS = st.builds(
    HashedCounter, st.integers(1, 6), st.integers(0, 3), st.sampled_from([7, 1 << 16])
)
PLENTY = 1 << 40
TEXTS = samples.load("kjv").train.documents[:60]


def equal(one: Bag | None, other: Bag | None) -> bool:
    assert one is not None
    assert other is not None
    pairs = zip(one, other, strict=True)
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)


def keeping(
    grammars: Grammars, counted: HashedCounter, limit: int = PLENTY, **options: Any
) -> GrammarDataset:
    kept = KeptBags(counted, grammars, np.arange(len(grammars)), limit)
    return GrammarDataset(grammars, counted=counted, kept=kept, **options)


def how_many_kept(dataset: GrammarDataset) -> int:
    assert dataset.kept is not None
    return len(dataset.kept)


@given(SEEDS, COUNTERS, st.booleans(), st.data())
def test_they_are_what_counting_gives(
    seed: int, counted: HashedCounter, dropped: bool, data: st.DataObject
) -> None:
    random = Random(seed)
    size = random.choice([1, 2, 5, 256])
    made = [Grammar(*renamed(valid_grammar(random, 300), size)) for _ in range(6)]
    grammars = Grammars.concatenate([*made, Grammar(size, [], [])])
    chosen = data.draw(st.permutations(range(len(grammars)))) * 2
    dataset = keeping(grammars, counted, dropout=0.5 * dropped).select(chosen)
    asked = set()
    for _ in range(4):
        rows = data.draw(st.lists(st.integers(0, len(chosen) - 1), max_size=9))
        batch = dataset.changed(threads=1).batch(rows, seed=[seed])
        taken = [chosen[row] for row in rows]
        asked |= set(taken)
        assert equal(batch.bag, bag_of(grammars.take(np.array(taken, np.int64)), counted))
        assert how_many_kept(dataset) == len(asked)


def test_under_a_rulebook_with_all_kinds_of_columns() -> None:
    grammars = compress_many(TEXTS, rulebook=Rulebook.learn(TEXTS, 200))
    counted = HashedCounter(3, 2, 1 << 16, shared=2)
    dataset = keeping(grammars, counted)
    wanted = bag_of(grammars, counted)
    for _ in range(2):
        assert equal(dataset.batch(range(len(TEXTS))).bag, wanted)


def test_what_is_kept_is_not_counted_again() -> None:
    grammars, counted = compress_many(TEXTS), HashedCounter(3, 2, 1 << 16)
    kept = KeptBags(counted, grammars, np.arange(len(grammars)), PLENTY)
    kept.keep(np.arange(40), counted.count(grammars[:40]))
    rows = np.array([7, 3, 39, 3])
    other = compress_many(["other", "documents", "than", "these"])
    assert equal(kept.bag_of(rows, other), bag_of(grammars.take(rows), counted))
    rows = np.array([7, 40])
    assert equal(kept.bag_of(rows, grammars.take(rows)), bag_of(grammars.take(rows), counted))
    assert len(kept) == 41


@pytest.mark.parametrize("times", [255, 256, 65_535, 65_536, (1 << 24) + 1])
def test_counts_of_any_size(times: int) -> None:
    grammars, counted = compress_many(["b" + "a" * times, "abc"]), HashedCounter(2, 0, 1000)
    dataset = keeping(grammars, counted)
    for rows in ([0], [1, 0], [0, 1]):
        assert equal(dataset.batch(rows).bag, bag_of(grammars.take(rows), counted))


def test_who_counts_otherwise_counts() -> None:
    grammars, counted = compress_many(TEXTS), HashedCounter(3, 2, 1 << 16)
    dataset = keeping(grammars, counted)
    dataset.batch(range(len(TEXTS)))
    other = HashedCounter(2, 0, 1 << 16)
    found = dataset.changed(counted=other).batch([5, 6]).bag
    assert equal(found, bag_of(grammars[5:7], other))
    assert dataset.changed(counted=None).batch([5, 6]).bag is None
    assert equal(dataset.batch([5, 6]).bag, bag_of(grammars[5:7], counted))


def bytes_of(grammars: Grammars, counted: HashedCounter) -> int:
    """At least what all bags take: 5 bytes for each entry."""
    return 5 * len(bag_of(grammars, counted).buckets)


def test_they_are_left_out_if_they_do_not_fit() -> None:
    grammars, counted = compress_many(TEXTS), HashedCounter(5, 0, 1 << 16)
    needed = bytes_of(grammars, counted)
    by_length: Int64s = np.argsort(np.diff(grammars.sequence_offsets))
    for rows in np.split(by_length, 6), np.split(by_length[::-1], 6):
        little = keeping(grammars, counted, needed // 2)
        enough = keeping(grammars, counted, 2 * needed)
        for number, some in enumerate(rows):
            wanted = bag_of(grammars.take(some), counted)
            assert equal(little.batch(some).bag, wanted)
            assert how_many_kept(little) == 0, "the first documents tell what all would take"
            assert equal(enough.batch(some).bag, wanted)
            assert how_many_kept(enough) == 10 * (number + 1)


def test_documents_that_take_more_than_the_first() -> None:
    texts = ["a" * 500] * 20 + TEXTS
    grammars, counted = compress_many(texts), HashedCounter(5, 0, 1 << 16)
    dataset = keeping(grammars, counted, bytes_of(grammars, counted) // 2)
    dataset.batch(range(20))
    assert how_many_kept(dataset) == 20
    dataset.batch(range(20, len(texts)))
    assert how_many_kept(dataset) == 0
    dataset.batch(range(20))
    assert how_many_kept(dataset) == 0, "it was decided"


def test_threads_make_batches_at_the_same_time() -> None:
    grammars, counted = compress_many(TEXTS), HashedCounter(4, 2, 1 << 16)
    dataset = keeping(grammars, counted)
    order = list(LengthSampler(dataset.sequence_lengths, 4)) * 3
    for rows, batch in zip(order, batches(dataset, order, threads=4), strict=True):
        assert equal(batch.bag, bag_of(grammars.take(rows), counted))
    assert how_many_kept(dataset) == len(grammars)


class KeptThere(Dataset[int]):
    """How many bags a process has, after it has made a batch."""

    def __init__(self, dataset: GrammarDataset) -> None:
        self.dataset = dataset

    def __getitem__(self, row: int) -> int:
        self.dataset.batch([row])
        return how_many_kept(self.dataset)


@pytest.mark.parametrize("before", [0, 30, 60])
def test_processes_read_what_was_kept_before_they_began(before: int) -> None:
    grammars, counted = compress_many(TEXTS), HashedCounter(4, 2, 1 << 16)
    dataset = keeping(grammars, counted)
    dataset.batch(range(before))
    sampler = LengthSampler(dataset.sequence_lengths, 7)
    loader = batches(dataset, sampler, workers=2)
    for _ in range(2):
        for rows, batch in zip(sampler, loader, strict=True):
            assert equal(batch.bag, bag_of(grammars.take(rows), counted))
    assert how_many_kept(dataset) == before
    in_a_process = DataLoader(KeptThere(dataset), 1, sampler=range(60), num_workers=1)
    assert max(map(int, in_a_process)) <= before, "it would have a copy of its own"
    there = pickle.loads(pickle.dumps(dataset))
    assert equal(there.batch([5, 9]).bag, dataset.batch([5, 9]).bag)
    assert how_many_kept(there) == 0
