"""N-grams in their places: which end in each symbol of a sequence, told by the rules' joins."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic._core import PlacedNgrams
from laconic.arrays import Int64s
from laconic.forest import Forest


@dataclass(frozen=True)
class NgramPlacer:
    """Says where n-grams of 1 to `longest` terminals stand, hashed to `buckets` rows.

    >>> from laconic import compress_many
    >>> from laconic.forest import plant
    >>> placed = NgramPlacer(longest=3, buckets=1000).place(plant(compress_many(["ababcab"])))
    >>> placed.places.tolist()                # ab ab c ab: ba, aba, bab; bc, abc; ca, bca, cab
    [1, 1, 1, 2, 2, 3, 3, 3]
    """

    longest: int
    buckets: int

    def by_document(self, forest: Forest, wanted: npt.NDArray[np.bool_]) -> tuple[Int64s, Int64s]:
        """Return documents and buckets of n-grams in `wanted` buckets, int64 [K] each.

        Each n-gram once or more often. The forest must be planted without merging, so that each of
        its rules is one document's.
        """
        placed, size = self.place(forest), forest.alphabet_size
        documents = np.repeat(np.arange(len(forest)), np.diff(forest.sequence_offsets))
        # A rule belongs to the document of whoever needs it.
        owners = np.zeros(size + len(forest.children), np.int64)
        owners[forest.sequence] = documents
        for level in reversed(forest.levels):
            above = owners[size + level.start : size + level.stop]
            owners[forest.children[level]] = above[:, None]
        # Terminals belong to everybody: where they stand tells whose they are.
        symbols = np.concatenate([forest.sequence, forest.children.reshape(-1)])
        of_symbols = np.concatenate([documents, np.repeat(owners[size:], 2)])
        within = (placed.nodes >= size) & wanted[placed.node_buckets]
        across = wanted[placed.place_buckets]
        chosen = symbols < size
        chosen[chosen] = wanted[placed.node_buckets[symbols[chosen]]]
        owned = [
            owners[placed.nodes[within]],
            of_symbols[chosen],
            placed.places[across] % max(1, len(forest)),
        ]
        buckets = [
            placed.node_buckets[within],
            placed.node_buckets[symbols[chosen]],
            placed.place_buckets[across],
        ]
        return np.concatenate(owned), np.concatenate(buckets).astype(np.int64)

    def place(self, forest: Forest) -> PlacedNgrams:
        """Return them, nothing expanded; O(longest² * (nodes + symbols))."""
        return _core.place_ngrams(forest, self.longest, self.buckets)
