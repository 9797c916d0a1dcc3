"""Tensors side by side in one buffer, which goes to a device as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from torch import Tensor

_ALIGNED = 64  # bytes, to multiples of which tensors begin


def packed(tensors: Sequence[Tensor], pin_memory: bool = False) -> list[Tensor]:
    """Return copies of tensors on the CPU that lie in one buffer, which a GPU may read by itself.

    >>> one, other = packed([torch.arange(3), torch.ones(2)])
    >>> one.untyped_storage().data_ptr() == other.untyped_storage().data_ptr()
    True
    """
    buffer = torch.empty(packed_size(tensors), dtype=torch.uint8, pin_memory=pin_memory)
    return [room.copy_(each) for room, each in zip(laid_out(tensors, buffer), tensors, strict=True)]


def packed_size(tensors: Sequence[Tensor]) -> int:
    """Return how many bytes tensors take side by side."""
    return _starts(tensors)[-1]


def laid_out(tensors: Sequence[Tensor], buffer: Tensor) -> list[Tensor]:
    """Return tensors of the same shapes and types in a buffer, uint8, with whatever is there.

    >>> laid_out([torch.ones(2, dtype=torch.int64)], torch.zeros(64, dtype=torch.uint8))
    [tensor([0, 0])]
    """
    return [
        buffer[start : start + each.nbytes].view(each.dtype).view(each.shape)
        for each, start in zip(tensors, _starts(tensors), strict=False)
    ]


def _starts(tensors: Sequence[Tensor]) -> list[int]:
    """Return where each begins, and where all end."""
    sizes = [-(-each.nbytes // _ALIGNED) * _ALIGNED for each in tensors]
    return list(accumulate(sizes, initial=0))


def moved(
    tensors: Sequence[Tensor], device: torch.device | str | int, non_blocking: bool = False
) -> list[Tensor]:
    """Return tensors on a device, as `to` moves them; packed ones all at once."""
    storages = [each.untyped_storage() for each in tensors]
    first = storages[0] if storages else None
    room = sum(each.nbytes + _ALIGNED for each in tensors)
    if (
        first is None
        or len(tensors) == 1
        or not 0 < first.nbytes() <= room
        or first.nbytes() % _ALIGNED
        or any(each.data_ptr() != first.data_ptr() for each in storages)
    ):
        return [each.to(device, non_blocking=non_blocking) for each in tensors]
    whole = torch.empty(0, dtype=torch.uint8, device=tensors[0].device).set_(first)
    there = whole.to(device, non_blocking=non_blocking)
    views = {dtype: there.view(dtype) for dtype in {each.dtype for each in tensors}}
    return [
        views[each.dtype].as_strided(each.shape, each.stride(), each.storage_offset())
        for each in tensors
    ]
