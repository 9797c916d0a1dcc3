"""How many threads PyTorch should use: as many as are fastest, which is tried."""

from __future__ import annotations

import os
from collections.abc import Callable

import torch

from laconic.threads import processors


def fastest_threads(speed: Callable[[], float]) -> float:
    """Let torch use the number of threads with which `speed` is highest, and return that speed.

    Small models are slowed down by every further thread, and all are on a machine that is busy. A
    number that somebody chose (OMP_NUM_THREADS) stays.
    """
    if "OMP_NUM_THREADS" in os.environ or processors() == 1:
        return speed()
    found = {}
    for threads in (1, processors()):
        torch.set_num_threads(threads)
        speed()  # what is done once only is no matter of threads
        found[threads] = speed()
    best = max(found, key=lambda threads: found[threads])
    torch.set_num_threads(best)
    return found[best]
