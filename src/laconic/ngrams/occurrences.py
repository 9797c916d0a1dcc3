"""Where in the text of documents stands what is counted in hashed columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.grammar import Grammar, Grammars
from laconic.ngrams.hashed import HashedCounter


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Occurrences in some documents, whose terminals are laid end to end; int64 [K] each."""

    documents: Int64s
    columns: Int64s
    begins: Int64s
    """No two are the same."""
    ends: Int64s


def occurrences(counted: HashedCounter, grammars: Grammars) -> Iterator[Occurrences]:
    """Yield where everything that is counted stands, those of as many letters or symbols together.

    The documents are expanded: O(ngrams * letters * log(letters)) time.

    >>> from laconic import compress_many
    >>> grammars, counted = compress_many(["aba", "b"]), HashedCounter(2, 0, 1000)
    >>> [(each.begins.tolist(), each.ends.tolist()) for each in occurrences(counted, grammars)]
    [([0, 1, 2, 3], [1, 2, 3, 4]), ([0, 1], [2, 3])]
    """
    yield from _ngrams(counted, grammars)
    if counted.phrases:
        yield from _phrases(counted, grammars)
    if counted.shared:
        yield from _runs(counted, grammars)


def lengths_of(grammar: Grammar) -> Int64s:
    """Return the terminals that each symbol of the sequence stands for, int64 [n']."""
    one_each = np.ones(grammar.alphabet_size, np.int64)
    lengths: Int64s = np.concatenate([one_each, grammar.expanded_lengths])[grammar.sequence]
    return lengths


def _laid(grammars: Grammars) -> tuple[Int64s, Int64s]:
    """Return all terminals end to end, int64 [n], and the document of each."""
    texts = [np.zeros(0, np.int64), *(grammar.expand() for grammar in grammars)]
    owners = np.repeat(np.arange(len(grammars)), grammars.expanded_lengths)
    return np.concatenate(texts).astype(np.int64), owners


def _ngrams(counted: HashedCounter, grammars: Grammars) -> Iterator[Occurrences]:
    terminals, owners = _laid(grammars)
    numbers, places = np.zeros(len(terminals), np.int64), np.arange(len(terminals))
    for length in range(1, counted.ngrams + 1):
        # An n-gram is known by the number of its beginning, and its last letter.
        count = max(0, len(terminals) - length + 1)
        keys = numbers[:count] * grammars.alphabet_size + terminals[length - 1 :]
        _, first, numbers = np.unique(keys, return_index=True, return_inverse=True)
        spelled = terminals[first[:, None] + np.arange(length)]
        columns = counted.columns_of(spelled, grammars.alphabet_size)[numbers]
        inside = np.flatnonzero(owners[:count] == owners[length - 1 :])
        begins = places[inside]
        yield Occurrences(owners[inside], columns[inside], begins, begins + length)


def _phrases(counted: HashedCounter, grammars: Grammars) -> Iterator[Occurrences]:
    named = counted.named_phrases(grammars)
    terminals, _ = _laid(grammars)
    shortest, longest = counted.phrase_lengths
    starts = np.r_[0, np.cumsum(grammars.expanded_lengths)]
    bounds = [
        start + np.r_[0, np.cumsum(lengths_of(grammar))]
        for start, grammar in zip(starts.tolist(), grammars, strict=False)
    ]
    for symbols in range(1, counted.phrases + 1):
        found: list[tuple[int, int, int, int]] = []
        for document, cuts in enumerate(bounds):
            for begin, end in zip(cuts.tolist(), cuts[symbols:].tolist(), strict=False):
                if shortest <= end - begin <= longest:
                    column = named[tuple(terminals[begin:end].tolist())]
                    found.append((document, column, begin, end))
        table: npt.NDArray[np.int64] = np.array(found, np.int64).reshape(-1, 4)
        yield Occurrences(*table.T)


def _runs(counted: HashedCounter, grammars: Grammars) -> Iterator[Occurrences]:
    over, book = grammars.over_shared, grammars.rulebook
    lengths = np.ones(over.alphabet_size, np.int64)
    if book is not None:
        lengths[book.alphabet_size :] = book.expanded_lengths
    ends = np.r_[0, np.cumsum(lengths[_laid(over)[0]])]
    for each in _ngrams(counted.of_shared, over):
        columns = each.columns + counted.first_shared
        yield Occurrences(each.documents, columns, ends[each.begins], ends[each.ends])
