"""Runs rows in several processes that share a device: one alone leaves most of a GPU idle.

Each child gets its rows one by one through a pipe of its own, so that the parent always knows who
has which, and a child that dies can neither take a row along nor a lock that others need.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

import torch

from benchmarks.steps import rounded_products
from experiments.paper.corpora import CACHE, corpora, symbols
from experiments.paper.grid import Row
from experiments.paper.memory import Needs, free_mb
from experiments.paper.protocol import done
from experiments.paper.results import RESULTS, find_row
from experiments.paper.training import LEFT, Runs, in_words, run_row
from laconic.errors import OutOfMemoryError
from laconic.nn.memory import is_out_of_memory
from laconic.training.settings import TrainingConfig

__all__ = ["longest_first", "run_in_processes", "sharing"]

Say = Callable[[str], None]
MPS = "nvidia-cuda-mps-control"
_SHARE = 0.96  # of what is free: some of it always lies between what is used
_PATIENCE = 10.0  # seconds that a child has for its end


def run_in_processes(
    rows: Iterable[Row],
    device: str,
    results: Path = RESULTS,
    cache: Path = CACHE,
    seconds: float | None = None,
    processes: int = 2,
    resumable: bool = True,
    stop_after: float | None = None,
    room: float | None = None,
    run: Runs = run_row,
) -> list[Row]:
    """Run the rows that have no result of their protocol yet; return those that were left.

    As training.run_rows, in so many processes, and beside that: among rows of one stage and seed
    the longest start first, as many at a time as fit into `room` MB of the GPU (by default what is
    free), by what memory.Needs knows of them; all processes have ended `stop_after` seconds from
    now, whatever they were doing. A row that finds too little memory all the same, or whose process
    dies, is tried again alone, when all others are done. What fails alone is left. `run` is a
    module's own function, for processes to find.
    """
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"{time.perf_counter() - began:7.1f} s  {text}", file=sys.stderr, flush=True)

    missing = [row for row in rows if done(results, row) is None]
    ready, left = _prepared(missing, cache, say)
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for children: else each has all processors
    cuda = device.startswith("cuda") or (device == "auto" and torch.cuda.is_available())
    if room is None:
        room = _SHARE * free_mb() if cuda else float("inf")
    needs = Needs(results, cache)
    with sharing(cuda and processes > 1, say):
        pool = _Pool(
            processes, (device, results, cache, processes, resumable, run), say, needs, room
        )
        try:
            left += pool.run(longest_first(ready, cache), began, seconds, stop_after)
        finally:
            pool.end()
    return [row for row in missing if row in left]


def longest_first(rows: Iterable[Row], cache: Path = CACHE) -> list[Row]:
    """Return rows by stage and seed, and of these the longest first: what starts last ends last.

    How long is symbols times epochs, which need no training to be known.
    """

    def cost(row: Row) -> int:
        config: TrainingConfig = row.config("cpu")
        return config.epochs * symbols(*row.source(cache))

    return sorted(rows, key=lambda row: (row.stage, row.seed, -cost(row)))


@contextmanager
def sharing(wanted: bool, say: Say) -> Iterator[None]:
    """Let processes use a GPU at once, by CUDA's multi-process service, as long as this lasts.

    Without that service they take turns. One that somebody else has started is used, and stays.
    """
    control = shutil.which(MPS) if wanted else None
    if control is None:
        if wanted:
            say(f"there is no {MPS} here: processes take turns on the GPU")
        yield
        return
    # Nothing is captured: the daemon keeps what it inherits, and a pipe would never end.
    none = subprocess.DEVNULL
    started = subprocess.run([control, "-d"], stdin=none, stdout=none, stderr=none)
    if started.returncode:
        say(f"{MPS} -d ended with {started.returncode}: it may be running already")
        yield
        return
    say(f"started {MPS}: processes share the GPU")
    try:
        yield
    finally:
        try:
            subprocess.run([control], input=b"quit\n", timeout=60, stdout=none, stderr=none)
            say(f"stopped {MPS}")
        except subprocess.TimeoutExpired:
            say(f"{MPS} did not stop; `echo quit | {MPS}` does it")


@dataclass
class _Job:
    """A row to run; those that have failed once run alone."""

    row: Row
    alone: bool = False
    passed: int = 0  # rows that came after it and were begun before it
    mb: float = 0.0  # of the GPU, as it was known when it began


@dataclass
class _Child:
    process: SpawnProcess
    pipe: Connection
    number: int  # of its share of the processors
    job: _Job | None = None


class _Pool:
    """Children, what they run, and what waits; one thread, which only waits for pipes."""

    def __init__(
        self,
        processes: int,
        given: tuple[str, Path, Path, int, bool, Runs],
        say: Say,
        needs: Needs,
        room: float,
    ) -> None:
        self._processes, self._given, self._say = processes, given, say
        self._needs, self._room = needs, room
        self._children: list[_Child] = []
        self._waiting: list[_Job] = []
        self._left: list[Row] = []

    def run(
        self, rows: list[Row], began: float, seconds: float | None, stop_after: float | None
    ) -> list[Row]:
        """Run rows until they are done or time is up; return those that were left."""
        self._waiting = [_Job(row) for row in rows]
        while True:
            spent = time.perf_counter() - began
            stopped = stop_after is not None and spent >= stop_after
            if not stopped and (seconds is None or spent <= seconds):
                self._hand_out()
            if stopped or not self._running:
                break
            for pipe in wait(
                [child.pipe for child in self._running],
                None if stop_after is None else stop_after - spent,
            ):
                self._hear(next(child for child in self._running if child.pipe is pipe))
        unfinished = [child.job for child in self._running] + self._waiting
        return self._left + [job.row for job in unfinished if job is not None]

    def end(self) -> None:
        """End all children: those that wait at once, those that work by a signal."""
        for child in self._children:
            if child.job is not None:
                child.process.terminate()
            child.pipe.close()  # whoever waits for a row finds that there will be none
        for child in self._children:
            _ended(child)
        self._children = []

    @property
    def _running(self) -> list[_Child]:
        return [child for child in self._children if child.job is not None]

    def _hand_out(self) -> None:
        """Start rows in their order, where there is room; small ones may pass large ones a while.

        Without end, the largest would run last of all, each with the GPU to itself.
        """
        for job in list(self._waiting):
            running = [child.job for child in self._running if child.job is not None]
            if len(running) == self._processes or any(each.alone for each in running):
                return
            if running and job.alone:
                continue
            job.mb = self._needs.of(job.row)
            if running and sum(each.mb for each in running) + job.mb > self._room:
                if job.passed >= self._processes:
                    return
                continue
            for each in self._waiting[: self._waiting.index(job)]:
                each.passed += 1
            self._waiting.remove(job)
            self._begin(job)

    def _begin(self, job: _Job) -> None:
        idle = [c for c in self._children if c.job is None and c.process.is_alive()]
        child = idle[0] if idle else self._born()
        child.job = job
        with suppress(OSError):  # It may have died while it was waiting: _hear finds that.
            child.pipe.send(job.row)

    def _born(self) -> _Child:
        # A fork would inherit torch's threads and the device, neither of which survive it.
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        taken = {child.number for child in self._children}
        number = next(each for each in range(len(taken) + 1) if each not in taken)
        process = context.Process(target=_work, args=(theirs, number, *self._given))
        process.start()
        theirs.close()  # the child's is the only one, so that its death closes the pipe
        self._children.append(_Child(process, ours, number))
        return self._children[-1]

    def _hear(self, child: _Child) -> None:
        """Take what a child says of its row, or that it died."""
        job, others = child.job, len(self._running) - 1
        assert job is not None
        try:
            kind, text = child.pipe.recv()
        except (EOFError, OSError):
            kind, text = "died", ""
        child.job = None
        if kind in ("memory", "died"):
            self._children.remove(child)
            child.pipe.close()
            _ended(child)
        if kind == "died":
            text = f"its process ended with {child.process.exitcode}"
        elif kind == "memory":
            self._needs.fell_short(job.row)
        if kind == "done":
            if figures := find_row(self._given[1], *job.row.key):
                self._needs.learn(figures)
        elif (kind == "died" and not job.alone) or (kind == "memory" and others):
            self._waiting.append(_Job(job.row, alone=True))
            text = f"is tried again alone at the end: {text}"
        else:
            self._left.append(job.row)
            text = f"left: {text}"
        self._say(f"{job.row}{':' if kind == 'done' else ''} {text}")


@rounded_products()
def _work(
    pipe: Connection,
    number: int,
    device: str,
    results: Path,
    cache: Path,
    processes: int,
    resumable: bool,
    run: Runs,
) -> None:
    """Run the rows that come through a pipe until it is closed; what a child does."""
    _keep_to_a_share(number, processes)
    while True:
        try:
            row: Row = pipe.recv()
        except EOFError:
            return
        try:
            figures = run(row, device, results, cache, processes, resumable)
        except (*LEFT, RuntimeError) as error:
            memory = _lacks_memory(error)
            if not memory and not isinstance(error, LEFT):
                raise
            pipe.send(("memory" if memory else "left", str(error).splitlines()[0]))
            if memory:
                # CUDA's own error, at the end of a capture, spoils whatever the process does next.
                return
        else:
            pipe.send(("done", in_words(figures)))


def _keep_to_a_share(number: int, processes: int) -> None:
    """Use a share of the processors: threads of all would be in each other's way."""
    if hasattr(os, "sched_setaffinity"):
        ours = _share(sorted(os.sched_getaffinity(0)), number, processes)
        os.sched_setaffinity(0, ours)


def _share(processors: list[int], number: int, processes: int) -> set[int]:
    """Return the processors of one of so many processes, two at least.

    >>> _share([0, 1, 2, 3, 4, 5], number=1, processes=2), _share([0, 1], number=1, processes=9)
    ({3, 4, 5}, {0, 1})
    """
    size = max(2, len(processors) // processes)
    begin = number * size
    return {processors[place % len(processors)] for place in range(begin, begin + size)}


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether an error is of memory, or came while one was handled: a capture ends with its own."""
    while error is not None:
        if isinstance(error, OutOfMemoryError):
            return True
        if isinstance(error, RuntimeError) and is_out_of_memory(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _prepared(rows: list[Row], cache: Path, say: Say) -> tuple[list[Row], list[Row]]:
    """Return rows whose corpora are there, after compressing them once for all, and the others."""
    ready, left = list[Row](), list[Row]()
    for row in sorted(rows, key=lambda row: row.dataset):  # a set is read once
        try:
            corpora(*row.source(cache))
        except ModuleNotFoundError as error:
            say(f"{row} left: {error}")
            left.append(row)
        else:
            ready.append(row)
    return ready, left


def _ended(child: _Child) -> None:
    child.process.join(_PATIENCE)
    if child.process.is_alive():
        child.process.kill()
        child.process.join()
