"""Bags: which n-grams and phrases documents have, and how often, in hashed columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from laconic.grammar import Grammars
from laconic.letters import Letters
from laconic.ngrams import Counts, count_hashed, count_phrases

__all__ = ["Counted"]

_SURROGATES = range(0xD800, 0xE000)
_POINTS = 0x110000 - len(_SURROGATES)


@dataclass(frozen=True)
class Counted:
    """What is counted: n-grams of 1 to `ngrams` letters, and longer phrases.

    Phrases are runs of up to `phrases` neighbouring symbols that stand for more letters than the
    n-grams have. Each of the two kinds has `buckets` columns.

    >>> from laconic import compress_many
    >>> counts = Counted(ngrams=2, phrases=2, buckets=1000).of(compress_many(["abcabc"]))
    >>> sorted(counts.data.tolist())                     # a b c ab bc ca, abc abcabc
    [1, 1, 2, 2, 2, 2, 2, 2]
    """

    ngrams: int
    phrases: int
    buckets: int

    @property
    def columns(self) -> int:
        """The number of columns."""
        return self.buckets * (2 if self.phrases else 1)

    def of(self, grammars: Grammars, threads: int | None = None) -> Counts:
        """Return the counts of documents; O(ngrams * (rules + symbols)) and more for phrases."""
        letters = _letters(grammars.alphabet_size)
        ngrams = count_hashed(
            grammars, letters, 1, self.ngrams, self.buckets, alternate_sign=False, threads=threads
        )
        if not self.phrases:
            return ngrams
        shortest = self.ngrams + 1
        phrases = count_phrases(
            grammars,
            self.phrases,
            self.buckets,
            shortest=shortest,
            longest=max(64, shortest),
            threads=threads,
        )
        return _side_by_side(ngrams, phrases)


@lru_cache(maxsize=8)
def _letters(alphabet_size: int) -> Letters:
    """Letters of which n-grams are hashed: models know terminals by number alone.

    Numbers beyond all characters begin anew, which only lets some n-grams share a column.
    """
    points = np.arange(alphabet_size, dtype=np.int64) % _POINTS
    points[points >= _SURROGATES.start] += len(_SURROGATES)
    return Letters(points.astype(np.uint32))


def _side_by_side(left: Counts, right: Counts) -> Counts:
    """Return two matrices of the same rows as one, the columns of the second after the first's."""
    indptr = left.indptr + right.indptr
    size = int(indptr[-1])
    indices, data = np.empty(size, np.int32), np.empty(size, np.int64)
    for one, before, shift in (
        (left, right.indptr[:-1], 0),
        (right, left.indptr[1:], left.columns),
    ):
        # Entries of row i move behind those of the other matrix that come before them.
        places = np.arange(len(one.indices)) + np.repeat(before, np.diff(one.indptr))
        indices[places] = one.indices + shift
        data[places] = one.data
    return Counts(indptr, indices, data, left.columns + right.columns)
