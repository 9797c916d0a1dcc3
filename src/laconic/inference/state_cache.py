"""States of nodes already composed, kept from batch to batch while the model does not change."""

from __future__ import annotations

from itertools import pairwise
from threading import Lock
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.arrays import Int64s
from laconic.batching import Batch
from laconic.errors import InputError
from laconic.nn import GrammarModel
from laconic.nn.composers import Composer, compose_with_own
from laconic.nn.levels import Cell


class CacheInfo(NamedTuple):
    """How a cache did: nodes found and not found so far, states it holds and has room for."""

    hits: int
    misses: int
    size: int
    capacity: int

    @property
    def hit_rate(self) -> float:
        """The share of nodes that were found, 0 if none was looked for."""
        return self.hits / max(1, self.hits + self.misses)


class StateCache:
    """The states of at most `capacity` nodes; one that is full begins anew.

    A node is known by the numbers of its two operands, which are terminals or nodes held here. That
    is exact: a hash of what it stands for is not, because two grammars of one text give two states.
    A node's operands are held wherever it is held, since all are forgotten at once. Threads may
    share a cache: they take turns.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InputError(f"a cache holds at least 1 state, not {capacity}")
        self.capacity = capacity
        self._hits = self._misses = 0
        self._table: Tensor | None = None
        self._turn = Lock()
        self.clear()

    def clear(self) -> None:
        """Forget all states; needed whenever the model's weights change."""
        self._slots: dict[int, int] = {}  # left operand << 32 | right operand: row of the table

    def info(self) -> CacheInfo:
        """Return counts of hits and misses, and the size."""
        return CacheInfo(self._hits, self._misses, len(self._slots), self.capacity)

    def states(self, model: GrammarModel, batch: Batch) -> Tensor:
        """Return model.states(batch) without gradients, float [alphabet_size + M, state_size].

        Only nodes not held are composed; they are held from now on. A batch of more nodes than
        `capacity` passes by. O(M) beside the composing.
        """
        total = len(batch.children)
        if total > self.capacity or batch.alphabet_size + self.capacity >= 1 << 31:
            self._misses += total
            return model.states(batch)
        with self._turn:
            if len(self._slots) + total > self.capacity:
                self.clear()
            try:
                return self._states(model, batch)
            except BaseException:
                self.clear()  # some rows that nodes have now may not have been written
                raise

    def _states(self, model: GrammarModel, batch: Batch) -> Tensor:
        size = batch.alphabet_size
        slots, held = self._look_up(batch)
        composer = cast(Composer, model.composer)
        with torch.no_grad():
            leaves = composer.leaf(model.embedding.weight)
            if self._table is None:
                self._table = leaves.new_empty(self.capacity, leaves.shape[1])
            rows = torch.from_numpy(slots).to(leaves.device)
            states = torch.cat([leaves, self._table.index_select(0, rows)])
            if held.all():
                return states
            own = model.own(batch)
            compose: Cell = composer.compose if own is None else compose_with_own(composer)
            for begin, end in pairwise(batch.level_offsets):
                made = begin + np.flatnonzero(~held[begin:end])
                if len(made):
                    places = torch.from_numpy(made).to(states.device)
                    pair = states[batch.children[places].long()]
                    more = [] if own is None else [own[places]]
                    states[size + places] = compose(pair[:, 0], pair[:, 1], *more)
            fresh = torch.from_numpy(np.flatnonzero(~held)).to(states.device)
            self._table[rows[fresh]] = states[size + fresh]
        return states

    def _look_up(self, batch: Batch) -> tuple[Int64s, npt.NDArray[np.bool_]]:
        """Return the rows of the table of all nodes, int64 [M], and which [M] were held.

        Those that were not have rows now that are still to be written.
        """
        size, slots, known = batch.alphabet_size, self._slots, len(self._slots)
        numbers = list(range(size))
        for left, right in batch.children.tolist():
            # What is new gets the next row: a loop of few steps is sooner done than NumPy's calls.
            key = numbers[left] << 32 | numbers[right]
            numbers.append(size + slots.setdefault(key, len(slots)))
        rows = np.array(numbers[size:], np.int64) - size
        held: npt.NDArray[np.bool_] = rows < known
        found = int(np.count_nonzero(held))
        self._hits += found
        self._misses += len(held) - found
        return rows, held
