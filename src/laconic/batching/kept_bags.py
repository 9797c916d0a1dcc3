"""Bags that are counted once and kept, so that later epochs need not count again."""

from __future__ import annotations

from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import get_worker_info

from laconic.arrays import Int32s, Int64s
from laconic.batching.batch import Bag, as_bag, counts_of
from laconic.grammar import Grammars
from laconic.ngrams import Counts
from laconic.ngrams.hashed import HashedCounter

_EACH = 400  # bytes that Python needs for two arrays in a dictionary, about


class KeptBags:
    """What documents count, by their rows of one source, kept in at most `limit` bytes.

    That is for all documents of `rows`, or for none: as soon as those counted so far say that all
    would take more, everything is forgotten, and every batch counts for itself. Part of them would
    take as much memory and save less time. An entry takes 5 bytes, or 6 in a document that has an
    n-gram more than 255 times. Threads may ask at the same time.

    >>> from laconic import compress_many
    >>> grammars, rows = compress_many(["abab", "b"]), np.arange(2)
    >>> kept = KeptBags(HashedCounter(1, 0, 1000), grammars, rows, limit=1 << 20)
    >>> kept.bag_of(rows, grammars).counts.tolist(), len(kept)
    ([2.0, 2.0, 1.0], 2)
    >>> kept.bag_of(rows[1:], grammars[1:]).counts.tolist()
    [1.0]
    """

    def __init__(
        self, counted: HashedCounter, grammars: Grammars, rows: Int64s, limit: int
    ) -> None:
        self.counted, self._limit = counted, limit
        # Documents come by length: what they take is estimated by their sizes, not their number.
        self._sizes = np.diff(grammars.rule_offsets) + np.diff(grammars.sequence_offsets)
        self._documents, self._size = len(rows), int(self._sizes[rows].sum())
        self._kept: dict[int, tuple[Int32s, npt.NDArray[np.unsignedinteger[Any]]]] = {}
        self._bytes = self._size_kept = 0
        self._open = True
        self._lock = Lock()

    def bag_of(self, rows: Int64s, grammars: Grammars, threads: int | None = None) -> Bag:
        """Return what some documents count, which are those rows: what bag_of returns."""
        kept = self._kept
        some = [kept.get(row) for row in rows.tolist()]
        known = [each for each in some if each is not None]
        if not some or len(known) < len(some):
            counts = counts_of(grammars, self.counted, threads)
            self.keep(rows, counts)
            return as_bag(counts)
        columns, counts_kept = zip(*known, strict=True)
        documents = np.repeat(np.arange(len(some)), [len(each) for each in columns])
        return Bag(
            torch.from_numpy(documents),
            torch.from_numpy(np.concatenate(columns, dtype=np.int64)),
            torch.from_numpy(np.concatenate(counts_kept, dtype=np.float32)),
        )

    def keep(self, rows: Int64s, counts: Counts) -> None:
        """Keep the counts of some documents, unless all would take too much memory."""
        # A process of a loader would have a copy of its own; what was kept before, it shares.
        if not self._open or get_worker_info() is not None:
            return
        with self._lock:
            new = [(k, row) for k, row in enumerate(rows.tolist()) if row not in self._kept]
            ends, indices, data = counts.indptr.tolist(), counts.indices, counts.data
            for k, row in new:
                here = slice(ends[k], ends[k + 1])
                small = np.min_scalar_type(data[here].max(initial=0))
                columns, numbers = indices[here].copy(), data[here].astype(small)
                self._kept[row] = columns, numbers
                self._bytes += columns.nbytes + numbers.nbytes
                self._size_kept += int(self._sizes[row])
            for_all = self._bytes * self._size / max(1, self._size_kept) + _EACH * self._documents
            if for_all > self._limit:
                self._open, self._kept = False, {}

    def __len__(self) -> int:
        """The number of documents of which bags are kept."""
        return len(self._kept)

    def __getstate__(self) -> dict[str, Any]:
        # To send bags to another process takes as long as to count them there.
        return vars(self) | {"_open": False, "_kept": {}, "_lock": None}
