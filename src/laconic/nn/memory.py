"""Memory of a device: what is free, what was used, and the cure where there is too little."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import torch

from laconic.errors import OutOfMemoryError

_TIGHT = 0.2  # of all memory, when less is left
_peaks: dict[int, tuple[int, int]] = {}
"""Of GPUs: the most that was allocated, and reserved, before torch was told to forget it."""


def peak_memory_mb(device: torch.device) -> float:
    """Return the most memory used so far: of a GPU by tensors, else of this process."""
    if device.type == "cuda":
        return _gpu_peaks(device)[0] / 2**20
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def reserved_memory_mb(device: torch.device) -> float | None:
    """Return the most that a GPU's allocator held so far, which is what others could not use."""
    return _gpu_peaks(device)[1] / 2**20 if device.type == "cuda" else None


def reset_peak_memory(device: torch.device) -> None:
    """Begin anew to look for the most that is used of a GPU."""
    _peaks.pop(_index(device), None)
    torch.cuda.reset_peak_memory_stats(device)


def _gpu_peaks(device: torch.device) -> tuple[int, int]:
    allocated, reserved = _peaks.get(_index(device), (0, 0))
    return (
        max(allocated, torch.cuda.max_memory_allocated(device)),
        max(reserved, torch.cuda.max_memory_reserved(device)),
    )


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index


def memory_figures(device: torch.device) -> dict[str, float]:
    """Return what a line of metrics.jsonl says of memory, in MB; what a GPU's allocator held, too.

    Tensors take what is allocated; the rest of what is reserved is kept ready for others.
    """
    figures = {"peak_memory_mb": peak_memory_mb(device)}
    if (reserved := reserved_memory_mb(device)) is not None:
        figures["reserved_memory_mb"] = reserved
    return figures


def available_memory(device: torch.device) -> int:
    """Return the bytes that tensors of this process can still take on a GPU.

    These are free, or held by its allocator without being used, and within the process's own limit
    (torch.cuda.set_per_process_memory_fraction).
    """
    free, total = torch.cuda.mem_get_info(device)
    own = total * _share_of_process(_index(device))
    held = torch.cuda.memory_reserved(device)
    return max(0, int(min(free + held, own)) - torch.cuda.memory_allocated(device))


def _share_of_process(device: int) -> float:
    """Return the share of a GPU's memory that this process may take."""
    told = getattr(torch.cuda, "get_per_process_memory_fraction", None)  # not in PyTorch 2.5
    return 1.0 if told is None else float(told(device))


def empty_cache() -> None:
    """Return what a GPU's allocator holds and does not use, when the GPU is done with it.

    PyTorch itself waits only for the stream that memory was allocated on, if segments are
    expandable: that on which a graph was captured, not that on which it runs.
    """
    used: bool = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    if used:  # else this process has not used it, and must not begin to
        torch.cuda.synchronize()
        torch.cuda.empty_cache()


def empty_cache_if_tight() -> None:
    """Return what the current GPU's allocator holds and does not use, if little else is left.

    A capture must not run out of memory, and cannot give back such memory by itself.
    """
    free, total = torch.cuda.mem_get_info()
    own = total * _share_of_process(torch.cuda.current_device())
    if min(free, own - torch.cuda.memory_reserved()) < _TIGHT * min(total, own):
        empty_cache()


def peak_of(run: Callable[[], object], device: torch.device) -> int:
    """Return the bytes that a function takes on a GPU at its peak, beside what was there."""
    torch.cuda.synchronize(device)
    before = torch.cuda.memory_allocated(device)
    _peaks[_index(device)] = _gpu_peaks(device)
    torch.cuda.reset_peak_memory_stats(device)
    run()
    torch.cuda.synchronize(device)
    return torch.cuda.max_memory_allocated(device) - before


@cache
def use_expandable_segments() -> None:
    """Let a GPU's allocator extend what it holds, instead of holding pieces of fixed sizes.

    Else what was held for one size of batches is of little use to another, and the graphs of many
    sizes hold several times what any of them needs. Settings that somebody chose are kept.
    """
    names = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
    chosen = [text for name in names if (text := os.environ.get(name))]
    if sys.platform != "linux" or any("expandable_segments" in text for text in chosen):
        return
    change = getattr(torch._C, "_accelerator_setAllocatorSettings", None)
    if change is None:  # before PyTorch 2.10
        change = getattr(torch.cuda.memory, "_set_allocator_settings", None)
    if change is not None:
        change(",".join([*chosen[:1], "expandable_segments:True"]))


def give_back_memory() -> None:
    """Return what is held and not used to the device, after an error, too.

    Not while an exception is handled: its traceback holds what was computed until then.
    """
    gc.collect()
    empty_cache()


def is_out_of_memory(error: BaseException | None) -> bool:
    """Return whether an error of torch's says, or came of one that says, that memory was short.

    It has three: its own, the CPU allocator's, and the driver's, when a CUDA graph does not fit. A
    capture that one of them ended ends with another error.
    """
    while isinstance(error, RuntimeError):
        said = str(error)
        if isinstance(error, torch.OutOfMemoryError) or "can't allocate" in said:
            return True
        if "CUDA error: out of memory" in said:
            return True
        error = error.__cause__ or error.__context__
    return False


@contextmanager
def enough_memory(cure: str) -> Iterator[None]:
    """Turn torch's errors within into OutOfMemoryError, with the cure.

    >>> with enough_memory("wait for larger machines"):
    ...     raise torch.OutOfMemoryError("CUDA out of memory, 80 GiB of …")
    Traceback (most recent call last):
        ...
    laconic.errors.OutOfMemoryError: out of memory, with one document at a time, too; wait for larger machines
    """  # noqa: E501
    try:
        yield
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        told = "out of memory, with one document at a time, too"
        raise OutOfMemoryError(f"{told}; {cure}") from error
