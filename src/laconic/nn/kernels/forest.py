"""All levels of a forest in one launch, either way, for composers whose weights a cluster can hold.

A kernel (forest.cu, and one file for each composer) goes up the levels, or down; clusters of thread
blocks take pieces of them. Going up is multiplied in float16, whose 11 bits are those of TF32,
gradients in bfloat16; sums and states are float32. What the gradients of weights are made of is
written down for all nodes, and multiplied at the end.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from laconic.nn.kernels.cells import DualGRUCell, FusedCell, GRCCell, Kept, Weights
from laconic.nn.kernels.cuda import CudaError, Module, cannot_compile, missing, too_old
from laconic.nn.kernels.recurrent import product

LARGEST = 256  # size of a state
MOST_NODES = 1 << 17  # so that what is kept of them stays modest
_NAMES = "ptx", "forest", "grc", "dual_gru"
_SOURCES = {name: Path(__file__).with_name(f"{name}.cu") for name in _NAMES}
_CAPABILITY = (9, 0)  # of GPUs that have clusters of blocks
_LEVELS = 255  # of a launch
_TILES = 7  # of 16 nodes that a piece has at most
_NEIGHBOURS = 16  # processors that a cluster can be of
_HALF, _SHORT = torch.float16, torch.bfloat16


def compose(
    cell: FusedCell,
    leaves: Tensor,
    children: Tensor,
    level_offsets: Sequence[int],
    own: Tensor | None,
    weights: Weights,
) -> Tensor:
    """Return what laconic.nn.compose_levels does, float [A + M, size], if there is no obstacle.

    Memory: three states for each node, kept for the way back, and eight more on it.
    """
    kernels, offsets = CELLS[type(cell)], tuple(level_offsets)
    children, own = children.int().contiguous(), None if own is None else own.contiguous()
    if torch.is_grad_enabled():
        given = kernels, children, offsets, leaves, own, *weights
        made: Tensor = _Compose.apply(*given)  # type: ignore[no-untyped-call]
        return made
    return _up(kernels, children, offsets, leaves, own, weights, keep=False)[0]


def obstacle(cell: FusedCell, leaves: Tensor, children: Tensor) -> str | None:
    """Return why the kernels cannot compose such states, in one sentence, None if they can."""
    size = leaves.shape[1]
    if type(cell) not in CELLS:
        return "they are for other composers"
    if leaves.dtype != torch.float32 or size % 8 or size > LARGEST:
        return f"they are for float32 and multiples of 8 as sizes, {LARGEST} at most"
    if len(children) > MOST_NODES:
        return f"they are for {MOST_NODES} nodes at most"
    return missing(leaves.device) or _obstacle(leaves.get_device(), CELLS[type(cell)].name, size)


@cache
def _obstacle(device: int, name: str, size: int) -> str | None:
    if why := too_old(device, _CAPABILITY):
        return why
    try:
        _layout(device, name, size)
    except CudaError as error:
        return cannot_compile(error)
    return None


class Cell(Protocol):
    """A composer's kernels, name_up and name_down, and what they are given."""

    name: str

    def shared(self, rows: int, size: int) -> tuple[int, int]:
        """Return the bytes of shared memory that both kernels need for pieces of so many nodes."""

    def up(
        self,
        launch: Launch,
        states: Tensor,
        own: Tensor | None,
        weights: Weights,
        nodes: int,
        keep: bool,
    ) -> Kept:
        """Write the states of all nodes, and return what the way back needs if it is kept."""

    def down(
        self,
        launch: Launch,
        kept: Kept,
        states: Tensor,
        own: Tensor | None,
        weights: Weights,
        gradients: Tensor,
        to_own: Tensor | None,
    ) -> list[Tensor]:
        """Add to the gradients of all states, and return those of the weights."""


class GRCForest:
    """Of laconic.nn.composers.GRC."""

    name = "grc"

    def shared(self, rows: int, size: int) -> tuple[int, int]:
        """Return the bytes that grc.cu divides."""
        operands = 2 * rows * 4
        up = rows * (4 * size + 16) + 4 * rows * 40 * 4 + operands
        return up, rows * (8 * size + 16) + 8 * 6 * size * 4 + operands

    def up(
        self,
        launch: Launch,
        states: Tensor,
        own: Tensor | None,
        weights: Weights,
        nodes: int,
        keep: bool,
    ) -> Kept:
        """Return what GELU is of, open gates, means and scales."""
        size, (clusters, rows) = states.shape[1], launch.pieces
        kept: tuple[Tensor | None, ...] = (None, None, None)
        if keep:
            kept = (
                states.new_empty(nodes, 2 * size, dtype=_HALF),
                states.new_empty(nodes, 4 * size, dtype=_HALF),
                states.new_empty(nodes, 2),
            )
        hidden = states.new_empty(clusters, rows, 2 * size, dtype=_HALF)
        shares = states.new_empty(clusters, rows, 8, 2)
        launch("up", *weights, launch.children, own, states, *kept, hidden, shares)
        return tuple(each for each in kept if each is not None)

    def down(
        self,
        launch: Launch,
        kept: Kept,
        states: Tensor,
        own: Tensor | None,
        weights: Weights,
        gradients: Tensor,
        to_own: Tensor | None,
    ) -> list[Tensor]:
        """Return the gradients of both layers and of LayerNorm."""
        nodes, size = len(kept[0]), states.shape[1]
        to_gates, to_before, hidden, pairs = (
            states.new_empty(nodes, count * size, dtype=_SHORT) for count in (4, 2, 2, 2)
        )
        sums = states.new_zeros(8 * size)
        w1, _, w2, _, weight, _ = weights
        given = w1, w2, weight, launch.children, own, states, *kept, gradients
        launch("down", *given, to_gates, to_before, hidden, pairs, to_own, sums)
        to_b2, to_norm, to_b1 = sums[: 4 * size], sums[4 * size : 6 * size], sums[6 * size :]
        to_w1, to_w2 = product(to_before.t(), pairs), product(to_gates.t(), hidden)
        return [to_w1, to_b1, to_w2, to_b2, to_norm[:size], to_norm[size:]]


class DualGRUForest:
    """Of laconic.nn.composers.DualGRU, to whose states what is the nodes' own is added."""

    name = "dual_gru"

    def shared(self, rows: int, size: int) -> tuple[int, int]:
        """Return the bytes that dual_gru.cu divides."""
        operands, gap = 2 * rows * 4, 32 if 5 * size // 8 % 2 else 16
        up = rows * (4 * size + 16) + 4 * rows * 40 * 4 + operands
        return up, rows * (10 * size + gap) + 8 * 4 * size * 4 + operands

    def up(
        self,
        launch: Launch,
        states: Tensor,
        own: Tensor | None,
        weights: Weights,
        nodes: int,
        keep: bool,
    ) -> Kept:
        """Return shares and resets, and candidates."""
        size, (clusters, rows) = states.shape[1], launch.pieces
        kept = [states.new_empty(nodes, n * size, dtype=_HALF) for n in (5, 1) if keep]
        open_ = states.new_empty(clusters, 2, rows, 2 * size, dtype=_HALF)
        launch("up", *weights, launch.children, own, states, *(kept or (None, None)), open_)
        return tuple(kept)

    def down(
        self,
        launch: Launch,
        kept: Kept,
        states: Tensor,
        own: Tensor | None,
        weights: Weights,
        gradients: Tensor,
        to_own: Tensor | None,
    ) -> list[Tensor]:
        """Return the gradients of both layers."""
        nodes, size = len(kept[0]), states.shape[1]
        to_gates, to_candidates, open_, pairs = (
            states.new_empty(nodes, count * size, dtype=_SHORT) for count in (5, 1, 2, 2)
        )
        sums = states.new_zeros(6 * size)
        given = weights[0], weights[2], launch.children, states, *kept, gradients
        launch("down", *given, to_gates, to_candidates, open_, pairs, to_own, sums)
        to_gates_bias, to_bias = sums[: 5 * size], sums[5 * size :]
        to_gates_weight = product(to_gates.t(), pairs)
        return [to_gates_weight, to_gates_bias, product(to_candidates.t(), open_), to_bias]


CELLS: dict[type[FusedCell], Cell] = {GRCCell: GRCForest(), DualGRUCell: DualGRUForest()}
BY_NAME = {cell.name: cell for cell in CELLS.values()}


class Levels(ctypes.Structure):
    """Levels of a launch, as forest.cu has them."""

    _fields_ = (("count", ctypes.c_int), ("offsets", ctypes.c_int * (_LEVELS + 1)))


def windows(level_offsets: Sequence[int]) -> Iterator[Levels]:
    """Yield levels that are not empty, as many at a time as a launch takes.

    >>> [each.offsets[:each.count + 1] for each in windows((0, 2, 2, 5))]
    [[0, 2, 5]]
    """
    offsets = sorted(set(level_offsets))
    for first in range(0, len(offsets) - 1, _LEVELS):
        some = offsets[first : first + _LEVELS + 1]
        yield Levels(len(some) - 1, (ctypes.c_int * (_LEVELS + 1))(*some))


class Layout:
    """How pieces of levels are spread over clusters, and these over a device."""

    def __init__(self, device: int, name: str, size: int) -> None:
        cell, blocks = BY_NAME[name], -(-size // 32)
        processors, most = _device(device)
        fitting = (n for n in range(_TILES, 0, -1) if max(cell.shared(16 * n, size)) <= most)
        if (tiles := next(fitting, 0)) == 0:
            raise CudaError("too little shared memory")
        self.blocks, self.rows = blocks, 16 * tiles
        self.shared = dict(zip(("up", "down"), cell.shared(16 * tiles, size), strict=True))
        self.module = _module(device, name, size, blocks, tiles)
        # A cluster is of neighbours; more than can run at once would need a second round.
        self.clusters = min(
            self.module.most_clusters(f"{name}_{way}", blocks, 256, bytes_)
            or max(1, processors // _NEIGHBOURS * (_NEIGHBOURS // blocks))
            for way, bytes_ in self.shared.items()
        )


_layout = cache(Layout)


@cache
def _device(device: int) -> tuple[int, int]:
    """Return the number of processors, and the most shared memory that a block can have."""
    properties = torch.cuda.get_device_properties(device)
    shared = getattr(properties, "shared_memory_per_block_optin", 99 << 10)
    return properties.multi_processor_count, shared


@cache
def _module(device: int, name: str, size: int, blocks: int, tiles: int) -> Module:
    defines = {"SIZE": size, "BLOCKS": blocks, "TILES": tiles}
    with torch.cuda.device(device):
        return Module(defines, _SOURCES["ptx"], _SOURCES["forest"], _SOURCES[name])


class Launch:
    """Starts a composer's kernels on the levels of a forest."""

    def __init__(
        self, cell: Cell, leaves: Tensor, children: Tensor, level_offsets: Sequence[int]
    ) -> None:
        self.children, self._name, self._terminals = children, cell.name, len(leaves)
        self._layout = _layout(leaves.get_device(), cell.name, leaves.shape[1])
        self._levels = list(windows(level_offsets))
        largest = max(end - begin for begin, end in pairwise(level_offsets))
        self._clusters = min(self._layout.clusters, -(-largest // 16))

    @property
    def pieces(self) -> tuple[int, int]:
        """How many are worked on at a time, and the most nodes of one."""
        return self._clusters, self._layout.rows

    def __call__(self, way: str, *arguments: Tensor | None) -> None:
        """Go up or down all levels."""
        layout, grid = self._layout, self._clusters * self._layout.blocks
        for levels in self._levels if way == "up" else reversed(self._levels):
            counters = self.children.new_zeros(1 + 2 * self._clusters + levels.count)
            given = levels, *arguments, counters, self._terminals
            layout.module.launch(f"{self._name}_{way}", grid, 256, layout.shared[way], *given)


def _up(
    cell: Cell,
    children: Tensor,
    level_offsets: tuple[int, ...],
    leaves: Tensor,
    own: Tensor | None,
    weights: Weights,
    keep: bool,
) -> tuple[Tensor, Kept]:
    terminals, size = leaves.shape
    states = leaves.new_empty(terminals + len(children), size)
    states[:terminals] = leaves
    if not len(children):
        return states, ()
    launch = Launch(cell, leaves, children, level_offsets)
    return states, cell.up(launch, states, own, weights, len(children), keep)


class _Compose(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        children: Tensor,
        level_offsets: tuple[int, ...],
        leaves: Tensor,
        own: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        keep = any(ctx.needs_input_grad)
        states, kept = _up(cell, children, level_offsets, leaves, own, weights, keep)
        ctx.save_for_backward(states, children, own, *weights, *kept)
        ctx.cell, ctx.level_offsets, ctx.weights = cell, level_offsets, len(weights)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, children, own, *rest = ctx.saved_tensors
        weights, kept = rest[: ctx.weights], tuple(rest[ctx.weights :])
        terminals = len(states) - len(children)
        gradients = grad.clone(memory_format=torch.contiguous_format)
        to_own = None if own is None else torch.empty_like(own)
        to_weights = [torch.zeros_like(each) for each in weights] if not kept else None
        if to_weights is None:
            launch = Launch(ctx.cell, states[:terminals], children, ctx.level_offsets)
            given = states, own, weights, gradients, to_own
            to_weights = ctx.cell.down(launch, kept, *given)
        return None, None, None, gradients[:terminals], to_own, *to_weights
