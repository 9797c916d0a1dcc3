"""Rows of a small table, taken very often, whose gradient is one product on a GPU."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812


def few_rows(table: Tensor, rows: Tensor) -> Tensor:
    """Return table[rows], float [K, size], of float [R, size] and int64 [K]; R is some dozens.

    >>> table = torch.tensor([[1.0], [2.0]], requires_grad=True)
    >>> few_rows(table, torch.tensor([1, 0, 1])).sum().backward()
    >>> table.grad.squeeze(1).tolist()
    [1.0, 2.0]
    """
    if table.device.type == "cpu":
        return F.embedding(rows, table)
    taken: Tensor = _FewRows.apply(table, rows)  # type: ignore[no-untyped-call]
    return taken


class _FewRows(torch.autograd.Function):
    # Thousands of gradients that are added to the same few rows wait for each other there, and
    # sorting them first takes longer than the product with which row each of them is of.

    @staticmethod
    def forward(ctx: Any, table: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.count, ctx.dtype = len(table), table.dtype
        return table.index_select(0, rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        (rows,) = ctx.saved_tensors
        every = torch.arange(ctx.count, device=rows.device)
        return (every[:, None] == rows).to(ctx.dtype) @ gradient, None
