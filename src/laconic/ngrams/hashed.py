"""Bags: which n-grams and phrases documents have, and how often, in hashed columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic.arrays import Int64s
from laconic.grammar import Grammars, trusted_grammar, trusted_grammars
from laconic.ngrams import Counts, count_hashed, count_phrases, learn
from laconic.ngrams.spelling import Letters

_SURROGATES = range(0xD800, 0xE000)
_POINTS = 0x110000 - len(_SURROGATES)
_LONGEST_PHRASE = 64  # terminals: what is longer hardly occurs twice
_PORTION = 1 << 20  # rules and symbols


@dataclass(frozen=True, slots=True)
class CountedText:
    """An n-gram or a phrase: its terminals, and how often it was counted."""

    terminals: tuple[int, ...]
    count: int


@dataclass(frozen=True)
class HashedCounter:
    """Counts n-grams of 1 to `ngrams` terminals and longer phrases, in hashed columns.

    Phrases are runs of up to `phrases` neighbouring symbols that stand for more terminals than the
    n-grams have. With `shared`, n-grams of 1 to so many symbols of the rulebook are counted, too:
    of whole and half words, where terminals are letters. Each kind has `buckets` columns.

    >>> from laconic import compress_many
    >>> counts = HashedCounter(ngrams=2, phrases=2, buckets=1000).count(compress_many(["abcabc"]))
    >>> sorted(counts.data.tolist())                     # a b c ab bc ca, abc abcabc
    [1, 1, 2, 2, 2, 2, 2, 2]
    """

    ngrams: int
    phrases: int
    buckets: int
    shared: int = 0

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.buckets * (1 + bool(self.phrases) + bool(self.shared))

    @property
    def first_shared(self) -> int:
        """The first column of the rulebook's symbols, which come last."""
        return self.columns - self.buckets if self.shared else self.columns

    @property
    def of_shared(self) -> HashedCounter:
        """What counts symbols of the rulebook: they are terminals to it."""
        return HashedCounter(self.shared, 0, self.buckets)

    def count(self, grammars: Grammars, threads: int | None = None) -> Counts:
        """Return the counts of documents; O(ngrams * (rules + symbols)) and more for phrases."""
        letters = _letters(grammars.alphabet_size)
        ngrams = count_hashed(
            grammars, letters, 1, self.ngrams, self.buckets, alternate_sign=False, threads=threads
        )
        if self.phrases:
            phrases = count_phrases(
                grammars, self.phrases, self.buckets, *self.phrase_lengths, threads
            )
            ngrams = _side_by_side(ngrams, phrases)
        if self.shared:
            over = self.of_shared.count(grammars.over_shared, threads)
            ngrams = _side_by_side(ngrams, over)
        return ngrams

    @property
    def phrase_lengths(self) -> tuple[int, int]:
        """The terminals of the shortest phrases, which are no n-grams, and of the longest."""
        return self.ngrams + 1, max(_LONGEST_PHRASE, self.ngrams + 1)

    def named(self, grammars: Grammars, columns: npt.ArrayLike) -> dict[int, list[CountedText]]:
        """Return what of the documents is counted in some columns, the most frequent first.

        Several n-grams or phrases may share a column. Those of equal count are in the order of
        their terminals. Takes a few times as long as counting, and nothing is expanded.

        >>> from laconic import compress_many
        >>> grammars, counted = compress_many(["abab"]), HashedCounter(2, 0, 1000)
        >>> names = counted.named(grammars, counted.count(grammars).indices)
        >>> sorted((bytes(each.terminals), each.count) for some in names.values() for each in some)
        [(b'a', 2), (b'ab', 2), (b'b', 2), (b'ba', 1)]
        """
        wanted = np.unique(np.asarray(columns, np.int64))
        found: dict[int, list[CountedText]] = {}
        for column, name in self._named_ngrams(grammars, wanted):
            found.setdefault(column, []).append(name)
        if self.phrases:
            for column, name in self._named_phrases(grammars, wanted - self.buckets):
                found.setdefault(column + self.buckets, []).append(name)
        if self.shared:
            for column, runs in self.named_runs(grammars, wanted).items():
                found[column] = [_expanded(run, grammars) for run in runs]
        for names in found.values():
            names.sort(key=lambda name: (-name.count, name.terminals))
        return found

    def named_runs(
        self, grammars: Grammars, columns: npt.ArrayLike
    ) -> dict[int, list[CountedText]]:
        """Return the runs of shared symbols that are counted in some columns, as symbols."""
        wanted = np.asarray(columns, np.int64) - self.first_shared
        over = self.of_shared.named(grammars.over_shared, wanted) if self.shared else {}
        return {column + self.first_shared: runs for column, runs in over.items()}

    def _named_ngrams(
        self, grammars: Grammars, wanted: Int64s
    ) -> Iterator[tuple[int, CountedText]]:
        letters = _letters(grammars.alphabet_size)
        vocabulary = learn(grammars, letters, 1, self.ngrams)
        points, offsets = vocabulary.points, vocabulary.offsets
        terminals = points.astype(np.int32)
        terminals[points >= _SURROGATES.stop] -= len(_SURROGATES)
        lengths = np.diff(offsets)
        for length in np.unique(lengths).tolist():
            numbers = np.flatnonzero(lengths == length)
            spelled = terminals[offsets[numbers][:, None] + np.arange(length)]
            columns = self.columns_of(spelled, grammars.alphabet_size)
            for place in np.flatnonzero(np.isin(columns, wanted)).tolist():
                count = int(vocabulary.total[numbers[place]])
                yield int(columns[place]), CountedText(tuple(spelled[place].tolist()), count)

    def columns_of(self, ngrams: npt.NDArray[np.integer[Any]], alphabet_size: int) -> Int64s:
        """Return the columns of n-grams, int64 [N], of which the terminals are given, [N, n]."""
        count, length = ngrams.shape
        # Each as a document of its own, which has but one n-gram of that length.
        alone = trusted_grammars(
            alphabet_size,
            np.zeros((0, 2), np.int32),
            np.zeros(count + 1, np.int64),
            ngrams.astype(np.int32).reshape(-1),
            np.arange(count + 1) * length,
        )
        letters, hashed_to = _letters(alphabet_size), self.buckets
        found = count_hashed(alone, letters, length, length, hashed_to, alternate_sign=False)
        return found.indices.astype(np.int64)

    def named_phrases(self, grammars: Grammars) -> dict[tuple[int, ...], int]:
        """Return the columns of all phrases of some documents, by their terminals."""
        columns = np.arange(self.buckets)
        return {
            name.terminals: column + self.buckets
            for column, name in self._named_phrases(grammars, columns)
        }

    def _named_phrases(
        self, grammars: Grammars, wanted: Int64s
    ) -> Iterator[tuple[int, CountedText]]:
        found = _core.name_phrases(
            grammars.core, self.phrases, *self.phrase_lengths, self.buckets, wanted
        )
        for k, (begin, end) in enumerate(pairwise(found.offsets.tolist())):
            terminals = tuple(found.terminals[begin:end].tolist())
            yield int(found.columns[k]), CountedText(terminals, int(found.occurrences[k]))


def _expanded(name: CountedText, grammars: Grammars) -> CountedText:
    """Return a run of shared symbols with the terminals that they stand for."""
    symbols = np.array(name.terminals, np.int32)
    no_rules = np.zeros((0, 2), np.int32)
    run = trusted_grammar(grammars.alphabet_size, no_rules, symbols, grammars.rulebook)
    return CountedText(tuple(run.expand().tolist()), name.count)


class _Laid(Protocol):
    """Grammars laid end to end, in memory or elsewhere."""

    @property
    def rule_offsets(self) -> Int64s: ...
    @property
    def sequence_offsets(self) -> Int64s: ...


def portions(grammars: _Laid, rows: Int64s) -> Iterator[Int64s]:
    """Yield rows of documents, some at a time, so that their counts take little memory.

    Each time they have at most about a million rules and symbols, or are one document.
    """
    sizes = np.diff(grammars.rule_offsets) + np.diff(grammars.sequence_offsets)
    ends = np.cumsum(sizes[rows])
    cuts = np.flatnonzero(np.diff((ends - 1) // _PORTION)) + 1
    yield from (part for part in np.split(rows, cuts) if len(part))


@lru_cache(maxsize=8)
def _letters(alphabet_size: int) -> Letters:
    """How terminals are read to hash n-grams of them: models know terminals by number alone.

    Numbers beyond all characters begin anew, which only lets some n-grams share a column.
    """
    points = np.arange(alphabet_size, dtype=np.int64) % _POINTS
    points[points >= _SURROGATES.start] += len(_SURROGATES)
    return Letters(points.astype(np.uint32))


def _side_by_side(left: Counts, right: Counts) -> Counts:
    """Return two matrices of the same rows as one, the columns of the second after the first's."""
    indptr = left.indptr + right.indptr
    sizes = np.stack([np.diff(left.indptr), np.diff(right.indptr)], axis=1).reshape(-1)
    from_right = np.repeat(np.tile([False, True], len(indptr) - 1), sizes)
    indices, data = np.empty(len(from_right), np.int32), np.empty(len(from_right), np.int64)
    for one, places, shift in ((left, ~from_right, 0), (right, from_right, left.columns)):
        indices[places] = one.indices + shift
        data[places] = one.data
    return Counts(indptr, indices, data, left.columns + right.columns)
