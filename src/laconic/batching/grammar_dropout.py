"""Grammar dropout: documents whose symbols are expanded at random, so that models meet many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.errors import InputError
from laconic.grammar import Grammars, trusted_grammars

_UInt64s = npt.NDArray[np.uint64]


def expand_at_random(
    grammars: Grammars, share: float, seed: Sequence[int], rows: Int64s
) -> Grammars:
    """Return documents of the same texts whose sequences are longer.

    Each nonterminal of a sequence, shared or not, is replaced by its two operands with probability
    `share`, these again, and so on; up to a half, documents do not grow beyond measure. What
    becomes of a document depends on the seed and its entry of `rows` (int64 [B]) alone, not on the
    others. O(symbols) for each time that something is replaced.

    >>> from laconic import compress_many
    >>> grammars, row = compress_many(["abababababab"]), np.zeros(1, np.int64)
    >>> grammars[0].sequence.tolist()
    [257, 257, 257]
    >>> [expand_at_random(grammars, 0.5, [k], row)[0].sequence.tolist() for k in (2, 5)]
    [[97, 98, 256, 256, 256, 257], [257, 256, 256, 257]]
    """
    if not 0 <= share <= 0.5:
        raise InputError(f"share must be from 0 to 0.5, not {share}")
    size, rules, firsts = grammars.alphabet_size, grammars.rules, grammars.rule_offsets[:-1]
    shared = 0 if grammars.rulebook is None else len(grammars.rulebook)
    if grammars.rulebook is not None:
        rules = np.concatenate([grammars.rulebook.rules, rules])
    sequence = grammars.sequence
    lengths = np.diff(grammars.sequence_offsets)
    documents = np.repeat(np.arange(len(grammars)), lengths)
    start = np.zeros(1, np.uint64)
    for number in seed:
        start = _mixed(start ^ np.uint64(number))
    of_documents = _mixed(start + np.asarray(rows).astype(np.uint64))
    places = np.arange(len(sequence)) - np.repeat(grammars.sequence_offsets[:-1], lengths)
    keys = _mixed(of_documents[documents] + places.astype(np.uint64))
    fresh = np.ones(len(sequence), bool)
    limit = np.uint64(share * 2**64)
    while True:
        chosen = fresh & (sequence >= size) & (keys < limit)
        if not chosen.any():
            break
        sizes = 1 + chosen
        left = (np.cumsum(sizes) - sizes)[chosen]
        numbers = sequence[chosen] - size
        pairs = rules[numbers + (numbers >= shared) * firsts[documents[chosen]]]
        twigs = _mixed(keys[chosen])
        sequence, keys = np.repeat(sequence, sizes), np.repeat(keys, sizes)
        documents = np.repeat(documents, sizes)
        fresh = np.zeros(len(sequence), bool)
        for side in (0, 1):
            sequence[left + side] = pairs[:, side]
            keys[left + side] = _mixed(twigs + np.uint64(side))
            fresh[left + side] = True
    offsets = np.concatenate([[0], np.cumsum(np.bincount(documents, minlength=len(grammars)))])
    arrays = grammars.rules, grammars.rule_offsets, sequence, offsets
    return trusted_grammars(size, *arrays, rulebook=grammars.rulebook)


def _mixed(numbers: _UInt64s) -> _UInt64s:
    """Return numbers that look random (SplitMix64)."""
    numbers = numbers + np.uint64(0x9E3779B97F4A7C15)
    numbers = (numbers ^ numbers >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ numbers >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return numbers ^ numbers >> np.uint64(31)
