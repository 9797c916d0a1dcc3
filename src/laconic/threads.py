"""How many threads are meant."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from laconic.arrays import is_integer
from laconic.errors import InputError

_MOST_THREADS = 4096
_QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of version 2 of control groups


def threads_of(threads: int | None) -> int:
    """Return how many threads are meant, None for one per processor; InputError if too many."""
    if threads is None:
        return processors()
    if not is_integer(threads) or not 1 <= threads <= _MOST_THREADS:
        raise InputError(f"threads must be an integer from 1 to {_MOST_THREADS}, not {threads!r}")
    return int(threads)


def processors() -> int:
    """Return the number of processors this process may use, also of what a container may."""
    try:
        number = len(os.sched_getaffinity(0))
    except AttributeError:  # not on Linux
        number = os.cpu_count() or 1
    with suppress(OSError, ValueError):  # there is no such file, or it says "max"
        quota, period = map(int, _QUOTA.read_text().split())
        number = min(number, max(1, -(-quota // period)))
    return number
