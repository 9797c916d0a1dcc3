"""Grammars that stay in the files of a corpus: row groups are read when they are asked for."""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s, by_group, row_numbers
from laconic.corpus.corpus import Corpus
from laconic.grammar import Grammars

_SPARE = 128 << 20  # bytes that a process may grow before it is asked for what it does not need
Watch: TypeAlias = Callable[[int, int], object]
"""What is told how much is done, and of how much."""


class StoredGrammars:
    """The grammars of a corpus, of which row groups of about `buffer` bytes are held at a time.

    Who takes documents by row takes them from here as from Grammars. To make one, the corpus is
    read once and checked; 16 bytes remain of each document. Row groups that were not asked for
    longest go first; one that is larger than the buffer is held alone. `watch` is told how many
    documents are read, of how many. Raises CorpusError.

    >>> corpus = Corpus.from_documents(["abab", "", "banana"])
    >>> stored = StoredGrammars(corpus, buffer=1 << 20)
    >>> stored.take([2, 0]) == corpus.grammars.take([2, 0]), stored.sequence_offsets.tolist()
    (True, [0, 2, 2, 6])
    """

    def __init__(self, corpus: Corpus, buffer: int, watch: Watch | None = None) -> None:
        self.corpus, self.buffer = corpus, buffer
        self.alphabet_size, self.rulebook = corpus.alphabet.size, corpus.rulebook
        self.starts = corpus.group_starts
        """int64 [G + 1]: the first document of each row group, and the number of all."""
        self.sizes = np.zeros(len(self.starts) - 1, np.int64)
        """int64 [G]: the bytes that each takes in memory."""
        rules, symbols = np.zeros((2, len(corpus) + 1), np.int64)
        digests = hashlib.sha256(), hashlib.sha256()
        for number, (begin, end) in enumerate(zip(self.starts, self.starts[1:], strict=False)):
            some = corpus.group(number)
            self.sizes[number] = some.nbytes
            rules[begin + 1 : end + 1] = np.diff(some.rule_offsets)
            symbols[begin + 1 : end + 1] = np.diff(some.sequence_offsets)
            for digest, array in zip(digests, (some.rules, some.sequence), strict=True):
                digest.update(np.ascontiguousarray(array).view(np.uint8).data)
            del some  # before the next is read
            if watch is not None:
                watch(int(end), len(corpus))
        self.rule_offsets: Int64s = np.cumsum(rules, out=rules)
        self.sequence_offsets: Int64s = np.cumsum(symbols, out=symbols)
        for digest, offsets in zip(
            digests, (self.rule_offsets, self.sequence_offsets), strict=True
        ):
            digest.update(offsets.view(np.uint8).data)
        self.digest = b"".join(digest.digest() for digest in digests)
        """SHA-256 of rules and of sequences, however they lie in row groups."""
        self._held: dict[int, Grammars] = {}  # what was asked for last is last
        self._resident = _resident_bytes()
        self._lock = Lock()

    def take(self, rows: npt.ArrayLike) -> Grammars:
        """Return some documents, integers [K], in that order; -1 is the last.

        Raises IndexError outside the documents, CorpusError for files that changed for the worse.
        """
        wanted = row_numbers(rows, len(self))
        parts, order = [], []
        for number, here, within in by_group(self.starts, wanted):
            parts.append(self._group(number).take(within))
            order.append(here)
        self._give_back()
        if not parts:
            return Grammars(self.alphabet_size, [], [0], [], [0], self.rulebook)
        return Grammars.concatenate(parts).take(np.argsort(np.concatenate(order)))

    def __len__(self) -> int:
        return len(self.corpus)

    def __getstate__(self) -> dict[str, Any]:
        # A loader's process has row groups and a lock of its own.
        return {name: each for name, each in vars(self).items() if name != "_lock"} | {"_held": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=Lock())

    def _give_back(self) -> None:
        """Give the system what others freed, such as a model its last step, if it may be much.

        glibc keeps it, and fills the gaps between torch's aligned blocks so badly (its bug 14581)
        that some hundred steps take twice the memory.
        """
        resident = _resident_bytes()
        if resident > self._resident + _SPARE:
            _trim()
            resident = self._resident = _resident_bytes()
        self._resident = min(self._resident, resident)

    def _group(self, number: int) -> Grammars:
        with self._lock:
            group = self._held.pop(number, None)
            if group is None:
                room = self.buffer - self.sizes[number]
                while self._held and self.sizes[list(self._held)].sum() > room:
                    del self._held[next(iter(self._held))]
                group = self.corpus.group(number)
            self._held[number] = group
            return group


def _resident_bytes() -> int:
    """Return the memory of this process, 0 where the system does not say it."""
    with suppress(OSError):
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def _trim() -> None:
    with suppress(OSError, AttributeError):  # other libraries have no such function
        ctypes.CDLL(None).malloc_trim(0)
