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
    sizes = [-(-each.nbytes // _ALIGNED) * _ALIGNED for each in tensors]
    *starts, total = accumulate(sizes, initial=0)
    buffer = torch.empty(total, dtype=torch.uint8, pin_memory=pin_memory)
    copies = []
    for each, start in zip(tensors, starts, strict=True):
        copy = buffer[start : start + each.nbytes].view(each.dtype).view(each.shape)
        copies.append(copy.copy_(each))
    return copies


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
