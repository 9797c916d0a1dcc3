"""What is counted over a whole corpus, while somebody looks at it: figures, and uses of phrases."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from time import sleep
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int32s, Int64s
from laconic.corpus import Corpus
from laconic.errors import LaconicError
from laconic.forest import plant
from laconic.grammar import Grammar, Grammars
from laconic.grammar.grammar import trusted_grammar

_MOST = 1 << 22  # phrases that are kept; the rarest are dropped beyond


class Figures(NamedTuple):
    """Of each document that was counted, int64 [N]."""

    letters: Int64s
    symbols: Int64s
    rules: Int64s
    depths: Int64s


class Counts:
    """Counts a corpus row group by row group, in a thread that others need not wait for.

    A phrase is what a rule stands for, whichever document's rule it is, or the rulebook's: it is
    known by its hash. `done` documents are counted; `failure` says why there will be no more.
    """

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.total, self.done, self.failure = len(corpus), 0, ""
        self._figures = np.zeros((4, self.total), np.int64)
        self._hashes, self._times = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._lock = Lock()
        self._thread = Thread(target=self.count, daemon=True)
        self._started, self._asked = False, 0

    @property
    def finished(self) -> bool:
        """Whether there is nothing more to wait for."""
        return self.done == self.total or bool(self.failure)

    def start(self) -> None:
        """Begin to count, unless that was begun before."""
        with self._lock:
            begun, self._started = self._started, True
        if not begun:
            self._thread.start()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Let somebody who waits for a page go first."""
        with self._lock:
            self._asked += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked -= 1

    def count(self) -> None:
        """Count all documents."""
        try:
            for number in range(len(self._corpus.group_starts) - 1):
                while self._asked:
                    sleep(0.01)
                self._add(self._corpus.group(number))
        except (LaconicError, OSError, MemoryError) as error:
            self.failure = str(error) or type(error).__name__
            print(f"laconic: not all documents were counted: {self.failure}", file=sys.stderr)

    @property
    def figures(self) -> Figures:
        """The figures of the documents that are counted."""
        return Figures(*self._figures[:, : self.done])

    def times(self, hashes: npt.NDArray[np.uint64]) -> Int64s:
        """Return how often phrases are made by a rule in the documents counted, int64 [K]."""
        with self._lock:
            known, times = self._hashes, self._times
        if not len(known):
            return np.zeros(len(hashes), np.int64)
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[at] == hashes, times[at], 0)

    def _add(self, grammars: Grammars) -> None:
        here = slice(self.done, self.done + len(grammars))
        depths = [int(g.depths.max(initial=0, where=g.reachable())) for g in grammars]
        self._figures[:, here] = (
            grammars.expanded_lengths,
            np.diff(grammars.sequence_offsets),
            np.diff(grammars.rule_offsets),
            depths,
        )
        hashes, times = _uses(grammars)
        with self._lock:
            hashes = np.concatenate([self._hashes, hashes])
            times = np.concatenate([self._times, times])
        found, of = np.unique(hashes, return_inverse=True)
        sums = np.zeros(len(found), np.int64)
        np.add.at(sums, of, times)
        if len(found) > _MOST:
            kept = np.sort(np.argsort(-sums, kind="stable")[: _MOST // 2])
            found, sums = found[kept], sums[kept]
        with self._lock:
            self._hashes, self._times = found, sums
            self.done = here.stop


def phrase_hashes(grammar: Grammar, symbols: Int32s) -> npt.NDArray[np.uint64]:
    """Return the hashes of what some symbols of a grammar stand for, uint64 [K]."""
    asked = trusted_grammar(grammar.alphabet_size, grammar.rules, symbols, grammar.rulebook)
    forest = plant(Grammars.concatenate([asked]))
    hashes: npt.NDArray[np.uint64] = forest.hashes[forest.sequence]
    return hashes


def _uses(grammars: Grammars) -> tuple[npt.NDArray[np.uint64], Int64s]:
    """Return the hashes of all phrases of some documents, and how often each is used there."""
    forest = plant(grammars)
    size, nodes = forest.alphabet_size, len(forest.lengths)
    times = np.bincount(forest.sequence, minlength=nodes)
    for level in reversed(forest.levels):  # who uses a rule is on a later level
        users = times[size + level.start : size + level.stop]
        for side in forest.children[level].T:
            times += np.bincount(side, users, nodes).astype(np.int64)
    return forest.hashes[size:], times[size:]
