"""The level loop of some composers with few kernels: one for all levels, or about five for each.

Those for all levels are in forest.py. Without them, the way back runs the cell again for many
levels at once, since all states are known, goes down level by level, and finds the gradients of the
weights with one product for all those levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from laconic.nn.kernels import forest
from laconic.nn.kernels.cells import FusedCell, Kept, Weights, module
from laconic.nn.kernels.cuda import CudaError, missing

LARGEST = 1024  # size of a state
_TOGETHER = 1 << 15  # nodes whose cells are run again at once, if no level is larger


def compose(
    cell: FusedCell,
    leaves: Tensor,
    children: Tensor,
    level_offsets: Sequence[int],
    own: Tensor | None,
    weights: Weights,
) -> Tensor:
    """Return what laconic.nn.compose_levels does, float [A + M, size].

    All levels are one launch where they can be, see laconic.nn.kernels.forest.
    """
    if not forest.obstacle(cell, leaves, children):
        return forest.compose(cell, leaves, children, level_offsets, own, weights)
    return compose_by_level(cell, leaves, children, level_offsets, own, weights)


def compose_by_level(
    cell: FusedCell,
    leaves: Tensor,
    children: Tensor,
    level_offsets: Sequence[int],
    own: Tensor | None,
    weights: Weights,
) -> Tensor:
    """Return what laconic.nn.compose_levels does, float [A + M, size], by kernels for each level.

    Products are rounded as TF32 on a GPU. Memory on the way back: of as many as 32,768 nodes, or of
    the largest level, about ten states each.
    """
    offsets = tuple(level_offsets)
    made: Tensor = _Compose.apply(cell, children, offsets, leaves, own, *weights)  # type: ignore[no-untyped-call]
    return made


def obstacle(leaves: Tensor) -> str | None:
    """Return why the kernels cannot compose such states, None if they can."""
    if leaves.dtype != torch.float32 or leaves.shape[1] > LARGEST:
        return f"they are for float32 and sizes of {LARGEST} at most"
    if torch.is_autocast_enabled(leaves.device.type):
        return "they are for float32, not for autocast"
    return missing(leaves.device) or _obstacle(leaves.get_device(), leaves.shape[1])


@cache
def _obstacle(device: int, size: int) -> str | None:
    try:
        module(device, size)
    except CudaError as error:
        return f"they cannot be compiled: {str(error).splitlines()[0]}"
    return None


class _Compose(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cell: FusedCell,
        children: Tensor,
        level_offsets: tuple[int, ...],
        leaves: Tensor,
        own: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        terminals, size = leaves.shape
        states = leaves.new_empty(terminals + len(children), size)
        states[:terminals] = leaves
        with _rounded(leaves):
            for begin, end in _levels(level_offsets):
                kept = cell.run(_pairs(states, children[begin:end]), weights)
                part = states[terminals + begin : terminals + end]
                cell.states(kept, _some(own, begin, end), weights, part)
        ctx.save_for_backward(states, children, own, *weights)
        ctx.cell, ctx.level_offsets = cell, level_offsets
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, children, own, *weights = ctx.saved_tensors
        cell: FusedCell = ctx.cell
        terminals = len(states) - len(children)
        to_weights = [torch.zeros_like(each) for each in weights]
        to_own = None if own is None else torch.zeros_like(own)
        grad = grad.clone(memory_format=torch.contiguous_format)
        with _rounded(states):
            for group in _groups(ctx.level_offsets):
                first, last = group[0][0], group[-1][1]
                kept = cell.run(_pairs(states, children[first:last]), weights)
                for begin, end in reversed(group):
                    here: Kept = tuple(each[begin - first : end - first] for each in kept)
                    to_pairs = cell.back(
                        here,
                        _some(own, begin, end),
                        weights,
                        grad[terminals + begin : terminals + end],
                        _some(to_own, begin, end),
                        to_weights,
                    )
                    rows = children[begin:end].reshape(-1)
                    grad.index_add_(0, rows, to_pairs.view(len(rows), -1))
                cell.finish(kept, to_weights)
        return None, None, None, grad[:terminals], to_own, *to_weights


def _pairs(states: Tensor, children: Tensor) -> Tensor:
    """Return the states of both operands of some nodes, [n, 2 * size]."""
    return states.index_select(0, children.reshape(-1)).view(len(children), -1)


def _some(own: Tensor | None, begin: int, end: int) -> Tensor | None:
    return None if own is None else own[begin:end]


def _levels(level_offsets: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first node of each level that has any, and the first that is not in it."""
    return [(begin, end) for begin, end in pairwise(level_offsets) if begin < end]


def _groups(level_offsets: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Return levels from the top, in groups of not too many nodes.

    >>> _groups((0, 70000, 70001, 70003))
    [[(70000, 70001), (70001, 70003)], [(0, 70000)]]
    """
    groups: list[list[tuple[int, int]]] = []
    for begin, end in reversed(_levels(level_offsets)):
        if groups and groups[-1][-1][1] - begin <= _TOGETHER:
            groups[-1].insert(0, (begin, end))
        else:
            groups.append([(begin, end)])
    return groups


@contextmanager
def _rounded(like: Tensor) -> Iterator[None]:
    """Let products of float32 be those of TF32, as cuDNN's are; `missing` keeps who minds away."""
    before = torch.get_float32_matmul_precision()
    if not like.is_cuda or before != "highest":
        yield
        return
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
