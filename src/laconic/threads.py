"""How many threads are meant."""

from __future__ import annotations

import os

from laconic.arrays import is_integer
from laconic.errors import InputError

_MOST_THREADS = 4096


def threads_of(threads: int | None) -> int:
    """Return how many threads are meant, None for one per processor; InputError if too many."""
    if threads is None:
        return processors()
    if not is_integer(threads) or not 1 <= threads <= _MOST_THREADS:
        raise InputError(f"threads must be an integer from 1 to {_MOST_THREADS}, not {threads!r}")
    return int(threads)


def processors() -> int:
    """Return the number of processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        return os.cpu_count() or 1
