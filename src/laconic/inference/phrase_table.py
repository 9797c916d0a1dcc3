"""Phrases that symbols of sequences stand for, and what all their occurrences did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.alphabet import Alphabet
from laconic.arrays import Int64s
from laconic.grammar import Grammar, Grammars

Floats: TypeAlias = npt.NDArray[np.float64]
_MOST_PHRASES = 1 << 20  # that are counted at a time; the rarest are dropped beyond
_LONGEST = 200  # letters of a phrase in lists


@dataclass(frozen=True, slots=True)
class Phrase:
    """A text, its mean or total score, and how often it occurred."""

    text: str
    score: float
    count: int
    kind: Literal["symbol", "ngram", "phrase", "word"] = "symbol"
    """What one symbol stands for; what is counted: an n-gram, a run of symbols; or a word."""
    others: tuple[str, ...] = ()
    """Rarer texts in the same hashed column: score and count are of all of them together."""


class PhraseTable:
    """Sums of scores and counts of phrases, by the 64-bit hashes of what they stand for."""

    def __init__(self, outputs: int) -> None:
        self._hashes = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._sums: Floats = np.zeros((0, outputs))
        self._texts: dict[int, str] = {}

    def add(
        self,
        scores: Floats,
        hashes: npt.NDArray[np.int64],
        grammars: Grammars,
        alphabet: Alphabet,
    ) -> None:
        """Count the symbols of a chunk of documents."""
        found, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        sums = np.zeros((len(found), scores.shape[1]))
        np.add.at(sums, of, scores)
        counts = np.bincount(of, minlength=len(found))
        fresh = ~np.isin(found, self._hashes, assume_unique=True)
        spelled = _spelled(first[fresh], grammars, alphabet)
        self._texts.update(zip(found[fresh].tolist(), spelled, strict=True))
        self._hashes, of = np.unique(np.concatenate([self._hashes, found]), return_inverse=True)
        before = self._sums, self._counts
        self._sums = np.zeros((len(self._hashes), scores.shape[1]))
        self._counts = np.zeros(len(self._hashes), np.int64)
        np.add.at(self._sums, of, np.concatenate([before[0], sums]))
        np.add.at(self._counts, of, np.concatenate([before[1], counts]))
        if len(self._hashes) > _MOST_PHRASES:
            # Not down to the limit only: that would drop what each new chunk brings.
            kept = np.sort(np.argsort(-self._counts, kind="stable")[: _MOST_PHRASES // 2])
            self._hashes, self._sums = self._hashes[kept], self._sums[kept]
            self._counts = self._counts[kept]
            self._texts = {each: self._texts[each] for each in self._hashes.tolist()}

    def best(self, most: int, min_count: int, sign: int = 1) -> list[list[Phrase]]:
        """Return for each output the phrases of the highest mean score, or of the lowest."""
        often = np.flatnonzero(self._counts >= min_count)
        means = self._sums[often] / self._counts[often, None]
        return [
            [self._phrase(often[k], column[k]) for k in strongest(column, most, sign)]
            for column in means.T
        ]

    def _phrase(self, place: np.int64, mean: np.float64) -> Phrase:
        text = self._texts[int(self._hashes[place])]
        return Phrase(text, float(mean), int(self._counts[place]))


def strongest(means: Floats, most: int, sign: int) -> Int64s:
    """Return where the highest means above 0 are, or with sign -1 the lowest below; best first."""
    order = np.argsort(-sign * means, kind="stable")[:most]
    return order[sign * means[order] > 0]


def _spelled(places: Sequence[int] | Int64s, grammars: Grammars, alphabet: Alphabet) -> list[str]:
    """Return what some symbols of the sequences, by their places, stand for; long ones cut."""
    order = np.argsort(places, kind="stable")
    wanted = np.asarray(places)[order]
    bounds = np.searchsorted(wanted, grammars.sequence_offsets)
    texts = [""] * len(wanted)
    for document, (begin, end) in enumerate(pairwise(bounds.tolist())):
        if begin == end:
            continue
        grammar = grammars[document]
        lengths = symbol_lengths(grammar)
        ends = np.cumsum(lengths[grammar.sequence])
        for at in range(begin, end):
            place = int(wanted[at] - grammars.sequence_offsets[document])
            stop = int(ends[place])
            start = stop - int(lengths[grammar.sequence[place]])
            shown = alphabet.decode_bytes(grammar.substring(start, min(stop, start + _LONGEST)))
            more = "…" if stop - start > _LONGEST else ""
            texts[int(order[at])] = shown.decode(errors="replace") + more
    return texts


def symbol_lengths(grammar: Grammar) -> Int64s:
    """Return the terminals that each symbol stands for, int64 [alphabet_size + all rules]."""
    return np.concatenate([np.ones(grammar.alphabet_size, np.int64), grammar.expanded_lengths])
