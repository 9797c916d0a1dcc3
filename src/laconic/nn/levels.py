"""The level loop: states of all nodes of a forest, bottom-up, with a way back of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

Cell = Callable[..., Tensor]
"""left, right and perhaps own: float [n, state] to the states of n nodes, float [n, state]; a pure
function."""


def compose_levels(
    cell: Cell,
    parameters: Sequence[Tensor],
    leaves: Tensor,
    children: Tensor,
    level_offsets: Sequence[int],
    own: Tensor | None = None,
) -> Tensor:
    """Return the states of all nodes, float [A + M, state], given those of terminals [A, state].

    `children` (int [M, 2]) and `level_offsets` are a forest's, `parameters` all that the cell uses.
    `own` (float [M, state]) is what nodes have beside their operands: the cell's third argument.
    Each level is one gather and one call of the cell, written into one buffer; nothing else is kept
    for the way back, which runs the cell again. Gradients flow to leaves, parameters and `own`,
    once (no second derivatives). Memory: states; on the way back their gradients as they come in
    and as they are summed; and one level of the cell. States are float32 at least, under autocast,
    too.
    """
    states: Tensor = _Levels.apply(  # type: ignore[no-untyped-call]
        cell, children, tuple(level_offsets), leaves, own, *parameters
    )
    return states


def compose_levels_plainly(
    cell: Cell,
    leaves: Tensor,
    children: Tensor,
    level_offsets: Sequence[int],
    own: Tensor | None = None,
) -> Tensor:
    """Return what compose_levels returns, by autograd alone: its oracle; keeps every activation."""
    states = leaves
    for begin, end in pairwise(level_offsets):
        left, right = children[begin:end].long().unbind(1)
        more = () if own is None else (own[begin:end],)
        states = torch.cat([states, cell(states[left], states[right], *more).to(states.dtype)])
    return states


def sum_levels(own: Tensor, children: Tensor, level_offsets: Sequence[int]) -> Tensor:
    """Return each node's own vector and those of all nodes below it, added up, float [A + M, size].

    `own` is float [A + M, size]. What stands twice below a node counts twice.

    >>> own, children = torch.tensor([[1.0], [10.0], [100.0]]), torch.tensor([[0, 1], [2, 0]])
    >>> sum_levels(torch.cat([own, own[:1]]), children, (0, 1, 2)).squeeze(1).tolist()
    [1.0, 10.0, 111.0, 113.0]
    """
    sums: Tensor = _LevelSums.apply(own, children, tuple(level_offsets))  # type: ignore[no-untyped-call]
    return sums


def _operands(states: Tensor, children: Tensor) -> Tensor:
    """Return the states of both operands of some nodes, [n, 2, state]."""
    return states.index_select(0, children.reshape(-1)).view(len(children), 2, -1)


def _above(level_offsets: Sequence[int]) -> int:
    """Return the first of the uppermost levels that are together no larger than the largest."""
    sizes = [end - begin for begin, end in pairwise(level_offsets)]
    first, together = len(sizes), 0
    while first and together + sizes[first - 1] <= max(sizes):
        first -= 1
        together += sizes[first]
    # A single level gains nothing by being done apart.
    return first if len(sizes) - first > 1 else len(sizes)


class _Levels(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        cell: Cell,
        children: Tensor,
        level_offsets: tuple[int, ...],
        leaves: Tensor,
        own: Tensor | None,
        *parameters: Tensor,
    ) -> Tensor:
        ctx.cell, ctx.level_offsets, ctx.autocast = cell, level_offsets, _autocast_again(leaves)
        ctx.leaves_dtype = leaves.dtype
        terminals = len(leaves)
        # Never less than float32: a symbol's gradient is the sum of all that use it.
        dtype = torch.promote_types(leaves.dtype, torch.float32)
        states = leaves.new_empty(terminals + len(children), leaves.shape[1], dtype=dtype)
        states[:terminals] = leaves
        with ctx.autocast():
            for begin, end in pairwise(level_offsets):
                pair = _operands(states, children[begin:end])
                more = () if own is None else (own[begin:end],)
                states[terminals + begin : terminals + end] = cell(pair[:, 0], pair[:, 1], *more)
        ctx.save_for_backward(states, children, own, *parameters)
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, children, own, *parameters = ctx.saved_tensors
        to_own = None if own is None else torch.zeros_like(own)
        terminals = len(states) - len(children)
        wanted = [p for p in parameters if p.requires_grad]
        sums: list[Tensor | None] = [None] * len(wanted)
        grad = grad.clone()

        def back(begin: int, end: int, to_operands: bool, to_parameters: bool) -> None:
            """Run the cell again on some nodes, and pass their gradients on."""
            if begin == end:
                return
            pair = _operands(states, children[begin:end]).requires_grad_(to_operands)
            more = [] if own is None else [own[begin:end].detach().requires_grad_(to_operands)]
            with torch.enable_grad(), ctx.autocast():
                made = ctx.cell(pair[:, 0], pair[:, 1], *more)
            if not made.requires_grad:
                return  # The cell uses no parameters, and nothing else was asked for.
            operands = [pair, *more] if to_operands else []
            into = operands + wanted * to_parameters
            found = torch.autograd.grad(
                made,
                into,
                grad[terminals + begin : terminals + end].to(made.dtype),
                allow_unused=True,
            )
            if to_operands and found[0] is not None:
                rows = children[begin:end].reshape(-1)
                grad.index_add_(0, rows, found[0].view(len(rows), -1))
            if to_own is not None and to_operands and found[1] is not None:
                to_own[begin:end] = found[1]
            for i, added in enumerate(found[len(operands) :]):
                before = sums[i]
                if added is not None:
                    sums[i] = added if before is None else before + added

        # Upper levels are small: what they add to the parameters' gradients is found for all of
        # them at once, when the gradients of their nodes are known, within the room of one level.
        bounds = list(pairwise(ctx.level_offsets))
        above = _above(ctx.level_offsets)
        together = bool(wanted)
        for begin, end in reversed(bounds[above:]):
            back(begin, end, to_operands=True, to_parameters=False)
        if together and above < len(bounds):
            back(bounds[above][0], bounds[-1][1], to_operands=False, to_parameters=True)
        for begin, end in reversed(bounds[:above]):
            back(begin, end, to_operands=True, to_parameters=together)

        of_parameter = dict(zip(map(id, wanted), sums, strict=True))
        to_leaves = grad[:terminals].to(ctx.leaves_dtype) if ctx.needs_input_grad[3] else None
        return None, None, None, to_leaves, to_own, *(of_parameter.get(id(p)) for p in parameters)


class _LevelSums(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, own: Tensor, children: Tensor, level_offsets: tuple[int, ...]) -> Tensor:
        ctx.save_for_backward(children)
        ctx.level_offsets = level_offsets
        sums = own.clone()
        terminals = len(own) - len(children)
        for begin, end in pairwise(level_offsets):
            sums[terminals + begin : terminals + end] += _operands(sums, children[begin:end]).sum(1)
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (children,) = ctx.saved_tensors
        grad = grad.clone()
        terminals = len(grad) - len(children)
        for begin, end in reversed(list(pairwise(ctx.level_offsets))):
            below, above = grad[: terminals + begin], grad[terminals + begin : terminals + end]
            for operands in children[begin:end].unbind(1):
                below.index_add_(0, operands, above)
        return grad, None, None


def _autocast_again(like: Tensor) -> Callable[[], AbstractContextManager[Any]]:
    """Return what enters the present autocast mode again, whenever the way back runs.

    Without its cache: weights cast while no gradients are recorded would have none ever after.
    """
    kind = like.device.type
    enabled, dtype = torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)
    return lambda: torch.autocast(kind, dtype=dtype, enabled=enabled, cache_enabled=False)
