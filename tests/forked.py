"""`laconic` in processes that have loaded torch before they begin.

What a test kills, or lets work beside another, needs a process of its own; few tests need to see it
begin, for which a processor loads torch and what comes with it for two seconds and more.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from contextlib import chdir
from multiprocessing.forkserver import ensure_running
from pathlib import Path

ROOT = Path(__file__).parent.parent
_LOADED = ["torch", "torch._dynamo", "accelerate", "laconic.cli.train", "laconic.cli.evaluate"]
_LOADED += ["matplotlib.figure", "matplotlib.backends.backend_svg", "PIL.features"]
_LOADED += ["laconic.training.auto", "laconic.report", "experiments.paper.pool"]


def context() -> multiprocessing.context.ForkServerContext:
    """Return what starts such processes, of functions that they can import.

    They are forked from one that has no device and no threads that would mind, unlike pytest's.
    """
    found = multiprocessing.get_context("forkserver")
    found.set_forkserver_preload(_LOADED)
    with chdir(ROOT):  # where experiments are found
        ensure_running()
    return found


class Forked:
    """`laconic WORDS`, begun; as much of subprocess.Popen as tests and tools need."""

    def __init__(self, words: Iterable[str | Path], *, given: str = "", **variables: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._streams = [Path(self._folder.name) / name for name in ("in", "out", "err")]
        self._streams[0].write_text(given)
        around = {**os.environ, **variables}
        todo = [str(word) for word in words], around, os.getcwd(), self._streams
        self._process = context().Process(target=_begin, args=todo)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def kill(self) -> None:
        self._process.kill()

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for the end; return what it printed, and what it said on stderr."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            self.kill()
            raise subprocess.TimeoutExpired("laconic", timeout)
        out, err = (path.read_text() for path in self._streams[1:])
        self._folder.cleanup()
        return out, err


def laconic(*words: str | Path, given: str = "", status: int = 0) -> tuple[str, str]:
    """Run `laconic WORDS` to its end, which must have this status; return stdout and stderr."""
    process = Forked(words, given=given)
    said = process.communicate(timeout=120)
    assert process.returncode == status, "".join(said)
    return said


class Ranks:
    """Several processes of one training, as torchrun starts them."""

    def __init__(self, words: Iterable[str | Path], processes: int = 2) -> None:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
        about = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
        about |= dict.fromkeys(("WORLD_SIZE", "LOCAL_WORLD_SIZE"), str(processes))
        self._all = [
            Forked(words, **about, RANK=str(rank), LOCAL_RANK=str(rank))
            for rank in range(processes)
        ]

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        codes = [each.poll() for each in self._all]
        return None if None in codes else max(code for code in codes if code is not None)

    def communicate(self, timeout: float) -> tuple[str, str]:
        """Wait for the end of all; return what they printed, and what they said on stderr."""
        said = [each.communicate(timeout) for each in self._all]
        return "".join(out for out, _ in said), "".join(err for _, err in said)


def _begin(words: list[str], variables: dict[str, str], folder: str, streams: list[Path]) -> None:
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(folder)
    for number, path in enumerate(streams):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT), number)
    sys.argv = ["laconic", *words]
    from laconic.__main__ import main

    main()
