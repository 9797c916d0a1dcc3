"""A batch written into a larger one by one kernel (batches.cu): see static_batches."""

from __future__ import annotations

import ctypes
from pathlib import Path

from torch import Tensor

from laconic.batching import Batch
from laconic.nn.kernels.cuda import Kernels

KERNELS = Kernels(Path(__file__).with_name("batches.cu"))
_THREADS, _BLOCKS = 256, 1056
_LEVELS = 255


def obstacle(static: Batch, batch: Batch) -> str | None:
    """Return why the kernel cannot write a batch into a larger one, or None if it can."""
    if len(static.level_offsets) - 1 > _LEVELS:
        return f"they are for {_LEVELS} levels at most"
    if not all(each is None or each.is_contiguous() for each in _arrays(batch)):
        return "they are for arrays that are contiguous"
    return KERNELS.obstacle(static.symbols.device)


def copy_in(static: Batch, batch: Batch) -> None:
    """Write a batch into a larger one."""
    arrays, rooms = _arrays(batch), _arrays(static)
    documents, length = batch.symbols.shape
    levels, room = len(static.level_offsets) - 1, static.symbols.shape[1]
    labels = 0 if static.labels is None else static.labels.nbytes // 4
    # N-grams that are counted, within nodes, and across symbols; and the room for each.
    entries = [_length(each[k]) for k in (9, 10, 12) for each in (arrays, rooms)]
    sizes = batch.alphabet_size, documents, length, room, levels, labels, *entries
    # Levels that only the larger one has are empty in the batch.
    before = [*batch.level_offsets, *[len(batch.children)] * levels][: levels + 1]
    begins = ((ctypes.c_int * (_LEVELS + 1))(*each) for each in (before, static.level_offsets))
    work = sum(each.numel() for each in rooms if each is not None)
    KERNELS.on(static.symbols.device).launch(
        "copy_batch",
        min(_BLOCKS, -(-work // _THREADS)),
        _THREADS,
        0,
        _pointers(arrays),
        _pointers(rooms),
        (ctypes.c_int * len(sizes))(*sizes),
        *begins,
    )


def _arrays(batch: Batch) -> list[Tensor | None]:
    """Return the arrays of a batch in the kernel's order."""
    return [
        batch.symbols,
        batch.children,
        batch.sequence_lengths,
        batch.node_lengths,
        batch.node_hashes,
        batch.node_shared,
        batch.labels,
        *(batch.bag or [None] * 3),
        *(batch.in_place or [None] * 4),
    ]


def _pointers(arrays: list[Tensor | None]) -> ctypes.Array[ctypes.c_void_p]:
    found = [None if each is None else each.data_ptr() for each in arrays]
    return (ctypes.c_void_p * len(found))(*found)


def _length(array: Tensor | None) -> int:
    return 0 if array is None else len(array)
