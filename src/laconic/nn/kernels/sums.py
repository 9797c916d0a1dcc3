"""Weighted sums of rows of a large table, and the way back, a kernel each (sums.cu)."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from laconic.nn.kernels.cuda import Kernels

KERNELS = Kernels(Path(__file__).with_name("sums.cu"))
_THREADS, _BLOCKS = 256, 2112
_ENTRIES = 16  # that lanes take at a time
_MOST = 1 << 30  # entries, and columns


def obstacle(table: Tensor, *others: Tensor) -> str | None:
    """Return why kernels cannot add up rows of a table, in one sentence, or None if they can."""
    if table.dtype != torch.float32 or not all(x.is_contiguous() for x in (table, *others)):
        return "they are for float32, and for arrays that are contiguous"
    if max(map(len, others)) > _MOST or table.shape[1] > _MOST:
        return f"they are for {_MOST} entries at most"
    return KERNELS.obstacle(table.device)


def sum_rows(
    table: Tensor, rows: Tensor | None, weights: Tensor, into: Tensor, sums: Tensor
) -> None:
    """Add weights[k] * table[rows[k]] to sums[into[k]], for all k; without rows, of the first."""
    _launch("sum_rows", table, rows, weights, into, sums)


def add_to_rows(
    gradients: Tensor, rows: Tensor, weights: Tensor, into: Tensor, table: Tensor
) -> None:
    """Add weights[k] * gradients[into[k]] to table[rows[k]], for all k."""
    _launch("add_to_rows", gradients, rows, weights, into, table)


def _launch(
    name: str, read: Tensor, rows: Tensor | None, weights: Tensor, into: Tensor, written: Tensor
) -> None:
    count, size = len(weights), read.shape[1]
    if not count or not size:
        return
    lanes = min(32, 1 << (size - 1).bit_length())
    blocks = -(-count * lanes // (_ENTRIES * _THREADS))
    given = read, rows, weights, into, count, size, lanes, written
    KERNELS.on(read.device).launch(name, min(_BLOCKS, blocks), _THREADS, 0, *given)
