"""Weighted sums of rows of a large table, with a way back that a CUDA graph can hold."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


def weighted_sums(table: Tensor, rows: Tensor, weights: Tensor, into: Tensor, count: int) -> Tensor:
    """Return float [count, size]: table[rows[k]] * weights[k], added up for each into[k].

    `table` is float [R, size]; `rows` and `into` int64 [K], `weights` float [K]. The gradient goes
    to the table alone.

    >>> table, rows = torch.tensor([[1.0], [2.0]]), torch.tensor([1, 0, 1])
    >>> weighted_sums(table, rows, torch.ones(3), torch.tensor([0, 0, 2]), 3).squeeze(1).tolist()
    [3.0, 0.0, 2.0]
    """
    sums: Tensor = _Sums.apply(table, rows, weights, into, count)  # type: ignore[no-untyped-call]
    return sums


class _Sums(torch.autograd.Function):
    # The gradient, too, is added up in place: on a GPU embedding_bag sorts for it, which takes
    # twice as long and cannot be captured in a graph.

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, rows: Tensor, weights: Tensor, into: Tensor, count: int
    ) -> Tensor:
        ctx.save_for_backward(rows, weights, into)
        ctx.size = len(table)
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
        values = gradients[0].index_select(0, into) * weights[:, None]
        sums = values.new_zeros(ctx.size, values.shape[1]).index_add_(0, rows, values)
        return sums, None, None, None, None
