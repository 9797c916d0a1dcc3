"""Memory of a device: the most that was used, and the cure where there is too little."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from laconic.errors import OutOfMemoryError


def peak_memory_mb(device: torch.device) -> float:
    """Return the most memory used so far: of a GPU by tensors, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def memory_figures(device: torch.device) -> dict[str, float]:
    """Return what a line of metrics.jsonl says of memory, in MB; what a GPU's allocator held, too.

    Tensors take what is allocated; the rest of what is reserved is kept ready for others.
    """
    figures = {"peak_memory_mb": peak_memory_mb(device)}
    if device.type == "cuda":
        figures["reserved_memory_mb"] = torch.cuda.max_memory_reserved(device) / 2**20
    return figures


def is_out_of_memory(error: RuntimeError) -> bool:
    """Return whether an error of torch's says that there was too little memory.

    It has three: its own, the CPU allocator's, and the driver's, when a CUDA graph does not fit.
    """
    said = str(error)
    own = isinstance(error, torch.OutOfMemoryError)
    return own or "can't allocate" in said or "CUDA error: out of memory" in said


@contextmanager
def enough_memory(batch_size: int, budget: int | None, cure: str) -> Iterator[None]:
    """Turn torch's errors within into OutOfMemoryError, with the cure.

    >>> with enough_memory(64, None, "or wait for larger machines"):
    ...     raise torch.OutOfMemoryError("CUDA out of memory, 80 GiB of …")
    Traceback (most recent call last):
        ...
    laconic.errors.OutOfMemoryError: out of memory: batch_size is 64, budget unlimited; lower one of them or wait for larger machines
    """  # noqa: E501
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        now = f"batch_size is {batch_size}, budget {budget or 'unlimited'}"
        raise OutOfMemoryError(f"out of memory: {now}; lower one of them {cure}") from error
