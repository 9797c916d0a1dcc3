"""Cutting a batch into pieces: what promises are kept, for any lengths and limits."""

from __future__ import annotations

from itertools import chain, combinations_with_replacement
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import compress_many
from laconic.batching import GrammarDataset, LengthSampler, batches, cut, pieces

LENGTHS = st.lists(st.integers(0, 40), max_size=12).map(lambda values: np.array(values, np.int64))


def symbols(lengths: Any, piece: Any) -> int:
    return len(piece) * max(1, int(lengths[piece].max()))


@given(LENGTHS, st.integers(1, 200))
def test_every_document_is_in_one_piece_within_the_limit(lengths: Any, limit: int) -> None:
    found = cut(lengths, limit)
    assert sorted(np.concatenate(found).tolist()) == list(range(len(lengths)))
    if not len(lengths):
        return
    for piece in found:
        assert len(piece) == 1 or symbols(lengths, piece) <= limit
    order = np.concatenate(found)
    if len(found) > 1:
        assert (np.diff(lengths[order].clip(1)) <= 0).all(), "documents of similar length together"


@given(LENGTHS.filter(len), st.integers(1, 200))
def test_a_batch_that_fits_stays_as_it_is(lengths: Any, limit: int) -> None:
    every = list(range(len(lengths)))
    assert [piece.tolist() for piece in cut(lengths, None)] == [every]
    if symbols(lengths, np.array(every)) <= limit:
        assert [piece.tolist() for piece in cut(lengths, limit)] == [every]


def fewest(lengths: list[int], limit: int) -> int:
    """The slow, obvious way: all ways to give documents to pieces."""
    for count in range(1, len(lengths) + 1):
        longest_first = sorted((max(1, each) for each in lengths), reverse=True)
        for places in combinations_with_replacement(range(count), len(lengths)):
            parts: dict[int, list[int]] = {}
            for length, place in zip(longest_first, places, strict=True):
                parts.setdefault(place, []).append(length)
            if all(len(p) == 1 or len(p) * max(p) <= limit for p in parts.values()):
                return count
    raise AssertionError


@given(st.lists(st.integers(0, 12), min_size=1, max_size=6), st.integers(1, 40))
def test_pieces_are_the_fewest(lengths: list[int], limit: int) -> None:
    assert len(cut(np.array(lengths), limit)) == fewest(lengths, limit)


def test_pieces_are_of_one_size_where_that_is_possible() -> None:
    found = cut(np.array([10, 9] * 32), 400)
    assert [len(piece) for piece in found] == [32, 32], "and not 40 and 24"


@pytest.mark.parametrize("workers", [0, 1])
def test_loaders_cut_by_the_limit_of_the_moment(workers: int) -> None:
    texts = ["abcdefgh" * n for n in range(1, 40)]
    dataset = GrammarDataset(compress_many(texts, "none"), [0] * len(texts))
    sampler = LengthSampler(dataset.sequence_lengths, 10, seed=2)
    plain = [batch.rows.tolist() for batch in batches(dataset, sampler) if batch.rows is not None]
    limits: list[int | None] = [None, None, 1000, 300]
    asked = iter(limits)
    found = list(pieces(dataset, sampler, lambda: next(asked), workers=workers))
    assert len(found) == len(plain) == 4
    for rows, some, limit in zip(plain, found, limits, strict=True):
        taken = [batch.rows.tolist() for batch in some if batch.rows is not None]
        assert sorted(chain.from_iterable(taken)) == sorted(rows)
        if limit is None:
            assert taken == [rows]
        for batch in some:
            assert limit is None or len(batch) == 1 or batch.symbols.numel() <= limit
            assert batch.sequence_lengths.tolist() == dataset.lengths_of(batch.rows).tolist()
    assert [len(each) > 1 for each in found][:2] == [False, False]
    assert len(found[3]) > 1
