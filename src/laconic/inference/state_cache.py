"""States of nodes already composed, kept from batch to batch while the model does not change."""

from __future__ import annotations

from itertools import pairwise
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
    A node's operands are held wherever it is held, since all are forgotten at once.
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise InputError(f"a cache holds at least 1 state, not {capacity}")
        self.capacity = capacity
        self._hits = self._misses = 0
        self._table: Tensor | None = None
        self.clear()

    def clear(self) -> None:
        """Forget all states; needed whenever the model's weights change."""
        self._keys: Int64s = np.zeros(0, np.int64)  # sorted: left operand << 32 | right operand
        self._slots: Int64s = np.zeros(0, np.int64)  # of each key: its row of the table
        self._used = 0

    def info(self) -> CacheInfo:
        """Return counts of hits and misses, and the size."""
        return CacheInfo(self._hits, self._misses, self._used, self.capacity)

    def states(self, model: GrammarModel, batch: Batch) -> Tensor:
        """Return model.states(batch) without gradients, float [alphabet_size + M, state_size].

        Only nodes not held are composed; they are held from now on. A batch of more nodes than
        `capacity` passes by. O(M log capacity + capacity) beside the composing.
        """
        size, total = batch.alphabet_size, len(batch.children)
        if total > self.capacity or size + self.capacity >= 1 << 31:
            self._misses += total
            return model.states(batch)
        if self._used + total > self.capacity:
            self.clear()
        numbers, held = self._look_up(batch)
        composer = cast(Composer, model.composer)
        with torch.no_grad():
            leaves = composer.leaf(model.embedding.weight)
            own = model.own(batch)
            compose: Cell = composer.compose if own is None else compose_with_own(composer)
            states = leaves.new_empty(size + total, leaves.shape[1])
            states[:size] = leaves
            if self._table is None:
                self._table = leaves.new_empty(self.capacity, leaves.shape[1])
            rows = torch.from_numpy(numbers[size:] - size).to(states.device)
            found = torch.from_numpy(np.flatnonzero(held)).to(states.device)
            states[size + found] = self._table[rows[found]]
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
        """Return the numbers of all nodes, int64 [alphabet_size + M], and which [M] were held.

        Those that were not have rows of the table now, still to be written.
        """
        size, children = batch.alphabet_size, batch.children.cpu().numpy()
        numbers = np.arange(size + len(children), dtype=np.int64)
        held = np.zeros(len(children), bool)
        fresh_keys, begin_used = [self._keys], self._used
        for begin, end in pairwise(batch.level_offsets):
            operands = numbers[children[begin:end]]
            keys = operands[:, 0] << 32 | operands[:, 1]
            places = np.searchsorted(self._keys, keys)
            places[places == len(self._keys)] = 0
            here = self._keys[places] == keys if len(self._keys) else np.zeros(len(keys), bool)
            held[begin:end] = here
            level = numbers[size + begin : size + end]
            level[here] = size + self._slots[places[here]]
            # Nodes of one forest differ, so that no key is new twice.
            fresh_keys.append(keys[~here])
            fresh = len(fresh_keys[-1])
            level[~here] = size + np.arange(self._used, self._used + fresh)
            self._used += fresh
        keys = np.concatenate(fresh_keys)
        slots = np.concatenate([self._slots, np.arange(begin_used, self._used)])
        order = np.argsort(keys, kind="stable")
        self._keys, self._slots = keys[order], slots[order]
        found = int(np.count_nonzero(held))
        self._hits += found
        self._misses += len(held) - found
        return numbers, held
