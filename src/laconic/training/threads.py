"""How many threads PyTorch should use: as many as are fastest, which is tried."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

from laconic.threads import processors
from laconic.training.settings import TrainingConfig

# On two processors, one thread trains models of this width in 1.15 times the time of two, and
# beside a busy process in a sixteenth of it: threads wait for whoever lost its turn.
_SMALL = 128


def fastest_threads(speed: Callable[[], float]) -> float:
    """Let torch use the number of threads with which `speed` is highest, and return that speed.

    Small models are slowed down by every further thread, and all are on a machine that is busy. A
    number that somebody chose (OMP_NUM_THREADS) stays.
    """
    if not threads_are_free():
        return speed()
    found = {}
    for threads in (1, processors()):
        torch.set_num_threads(threads)
        speed()  # what is done once only is no matter of threads
        found[threads] = speed()
    best = max(found, key=lambda threads: found[threads])
    torch.set_num_threads(best)
    return found[best]


def use_few_threads(config: TrainingConfig) -> None:
    """Let torch train a small model in one thread, unless somebody chose a number.

    Nothing is tried: the same settings and seed shall give the same weights.
    """
    if threads_are_free() and max(config.width, config.embedding_size) <= _SMALL:
        torch.set_num_threads(1)


def threads_are_free() -> bool:
    """Return whether there is a number of threads to choose."""
    return "OMP_NUM_THREADS" not in os.environ and processors() > 1


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread meanwhile, for many sums of few numbers each.

    On a busy machine two threads, which wait for each other, took a hundred times as long.
    """
    with threads_as_before():
        torch.set_num_threads(1)
        yield


@contextmanager
def threads_as_before() -> Iterator[None]:
    """Leave torch as many threads as it had, whatever is chosen meanwhile."""
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
