"""Weighted sums of rows of a large table, with a way back that a CUDA graph can hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from laconic.nn.kernels import sums as kernels

_gradients: ContextVar[Mapping[int, Tensor] | None] = ContextVar("_gradients", default=None)


def weighted_sums(
    table: Tensor,
    rows: Tensor,
    weights: Tensor,
    into: Tensor,
    count: int,
    by_kernels: bool = True,
) -> Tensor:
    """Return float [count, size]: table[rows[k]] * weights[k], added up for each into[k].

    `table` is float [R, size]; `rows` and `into` int64 [K], `weights` float [K]. The gradient goes
    to the table alone. With `by_kernels` kernels of our own do it, where they can: soonest if those
    with the same `into` follow each other.

    >>> table, rows = torch.tensor([[1.0], [2.0]]), torch.tensor([1, 0, 1])
    >>> weighted_sums(table, rows, torch.ones(3), torch.tensor([0, 0, 2]), 3).squeeze(1).tolist()
    [3.0, 0.0, 2.0]
    """
    by_kernels = by_kernels and not kernels.obstacle(table, rows, weights, into)
    given = table, rows, weights, into, count, by_kernels
    sums: Tensor = _Sums.apply(*given)  # type: ignore[no-untyped-call]
    return sums


def sums_of(values: Tensor, into: Tensor, count: int, by_kernels: bool = True) -> Tensor:
    """Return float [count]: values, float [K], added up for each into[k]; not to go back through.

    >>> sums_of(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([0, 0, 2]), 3).tolist()
    [3.0, 0.0, 4.0]
    """
    found = values.new_zeros(count)
    one = values.new_ones(1, 1)
    if by_kernels and not kernels.obstacle(one, values, into):
        kernels.sum_rows(one, None, values, into, found)
        return found
    return found.index_add_(0, into, values)


@contextmanager
def gradients_added_to(tables: Mapping[int, Tensor]) -> Iterator[None]:
    """Let gradients of tables, by the addresses of these, be added to others as they are found.

    Of sums that are computed within. A gradient is as large as its table, and mostly zeros: to have
    it apart takes as much memory, and as long as to read all of it twice. Torch is told of none.
    """
    before = _gradients.set(tables)
    try:
        yield
    finally:
        _gradients.reset(before)


class _Sums(torch.autograd.Function):
    # The gradient, too, is added up in place: on a GPU embedding_bag sorts for it, which takes
    # twice as long and cannot be captured in a graph.

    @staticmethod
    def forward(
        ctx: Any,
        table: Tensor,
        rows: Tensor,
        weights: Tensor,
        into: Tensor,
        count: int,
        by_kernels: bool,
    ) -> Tensor:
        ctx.save_for_backward(rows, weights, into)
        ctx.shape, ctx.by_kernels = table.shape, by_kernels
        ctx.gradient = (_gradients.get() or {}).get(table.data_ptr())
        if by_kernels:
            sums = table.new_zeros(count, table.shape[1])
            kernels.sum_rows(table, rows, weights, into, sums)
            return sums
        if table.device.type != "cpu":
            values = table.index_select(0, rows) * weights[:, None]
            return values.new_zeros(count, values.shape[1]).index_add_(0, into, values)
        if (into.diff() < 0).any():
            # Places of a batch are numbered time first, and listed document by document.
            order = into.argsort(stable=True)
            rows, weights, into = rows[order], weights[order], into[order]
        starts = torch.searchsorted(into, torch.arange(count))
        return F.embedding_bag(rows, table, starts, mode="sum", per_sample_weights=weights)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        rows, weights, into = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        apart = ctx.gradient is None
        total = gradient.new_zeros(ctx.shape) if apart else ctx.gradient
        if ctx.by_kernels:
            kernels.add_to_rows(gradient, rows, weights, into, total)
        else:
            total.index_add_(0, rows, gradient.index_select(0, into) * weights[:, None])
        return total if apart else None, None, None, None, None, None
