"""Damages copies of a corpus in every way it can think of, opens and verifies them, and reports.

    python tools/corrupt.py --copies 1000 --seed 1     # counts per kind, and what was found
    python tools/corrupt.py --seed 1 --copy 4711       # one copy again, here, with its traceback

Each copy must be refused with an error that names a cause, or hold exactly what the original does.
Anything else is a finding: other data without an error (unless all checksums were written anew),
another exception, a crash, a hang of PATIENCE seconds, more than MEMORY bytes. Copies are examined
in children, so that a finding is a number, not the end of the run. tests/test_corrupt.py runs a few
dozen copies.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from damage import DOCUMENTS, FORGED, KINDS, damaged, original

from laconic.corpus import Corpus

ADDRESSES = 4 << 30  # bytes of address space for a child
MEMORY = 1 << 30  # bytes of memory that one copy may take
PATIENCE = 10  # seconds that one copy may take
LONGEST = 1 << 20  # terminals of the longest document that is expanded
FINE = ("error", "sound", "forged")


class WrongDataError(AssertionError):
    """Data that are not the original's, and no error."""


# ---- what is asked ------------------------------------------------------------------------------


def examine(path: Path) -> None:
    """Open and verify a copy, and read all of it; raises what it finds.

    Documents and columns must be the original's if there is no other error.
    """
    corpus = Corpus.open(path)
    problems = list(corpus.problems())
    if problems:
        raise ValueError(problems[0])
    labels, table = corpus.labels, corpus.to_arrow()
    if len(corpus):
        corpus[-1].to_bytes(corpus.alphabet, LONGEST)
    expected = original(compact=False)
    same(len(corpus), DOCUMENTS, "number of documents")
    same([each.to_bytes(corpus.alphabet, LONGEST) for each in corpus], expected.texts, "texts")
    same(labels, expected.table.column("label").to_pylist(), "labels")
    same(table.schema.names, expected.table.schema.names, "names of columns")
    for name in corpus.columns:
        same(table.schema.field(name), expected.table.schema.field(name), f"type of {name}")
        same(
            table.column(name).to_pylist(),
            expected.table.column(name).to_pylist(),
            f"column {name}",
        )


def same(answer: Any, expected: Any, what: str) -> None:
    """Raise WrongDataError unless the answer is what was expected."""
    if answer != expected:
        raise WrongDataError(f"no error, but another {what}: {answer!r:.80}, not {expected!r:.80}")


def outcome(path: Path) -> tuple[str, str]:
    """Return "sound", "error" or the kind of a finding, and a message."""
    try:
        examine(path)
    except WrongDataError as error:
        return "WRONG", str(error)
    except (ValueError, OSError) as error:
        return ("error" if len(str(error)) > 10 else "no cause"), f"{type(error).__name__}: {error}"
    except MemoryError as error:
        return "memory", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "exception", f"{type(error).__name__}: {error}"
    return "sound", ""


# ---- running ------------------------------------------------------------------------------------


@dataclass
class Report:
    """Outcomes per kind of damage, and what was found."""

    seed: int
    seconds: float = 0.0
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def add(self, number: int, kind: str, result: str, message: str) -> None:
        """Count one copy."""
        self.outcomes.setdefault(kind, Counter())[result] += 1
        if result not in FINE:
            again = f"--seed {self.seed} --copy {number}"
            self.findings.append(f"{result} in {kind} ({again}): {message:.300}")

    @property
    def copies(self) -> int:
        """How many were examined."""
        return sum(counts.total() for counts in self.outcomes.values())

    def __str__(self) -> str:
        lines = [f"{self.copies} copies in {self.seconds:.0f} s"]
        for kind, counts in sorted(self.outcomes.items()):
            lines.append(
                f"{kind:32}" + "  ".join(f"{n} {what}" for what, n in counts.most_common())
            )
        return "\n".join([*lines, *(sorted(self.findings) or ["nothing found"])])


def campaign(seed: int, copies: int, workers: int = 2) -> Report:
    """Examine copies 0, 1, … in children, some at a time."""
    report, start = Report(seed), time.monotonic()
    numbers, lock = iter(range(copies)), threading.Lock()

    def following() -> Iterator[int]:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            yield number

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            child = Child(folder)
            for number in following():
                kind, result, message = child.ask(seed, number)
                with lock:
                    report.add(number, kind, result, message)
                if result in ("crash", "hang"):
                    child = Child(folder)
            child.end()

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work) for _ in range(workers)]:
            future.result()
    report.seconds = time.monotonic() - start
    return report


class Child:
    """A process that examines one copy after the other, until one is too much for it."""

    def __init__(self, folder: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=CHILD, args=(theirs, folder), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # it is ready: the time it took to start is not the first copy's

    def ask(self, seed: int, number: int) -> tuple[str, str, str]:
        """Return kind of damage, outcome and message; after a crash or a hang, make another."""
        self._pipe.send((seed, number))
        kind = "unknown"
        with suppress(EOFError):
            kind = self._pipe.recv()
            if not self._pipe.poll(PATIENCE):
                self.end()
                return kind, "hang", f"more than {PATIENCE} s"
            result, message = self._pipe.recv()
            return kind, result, message
        self._process.join()
        status = self._process.exitcode or 0
        cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return kind, "crash", f"died of {cause}"

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()


def _be_child(pipe: Connection, folder: str) -> None:
    for compact in KINDS:
        original(compact)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = Path(folder, "corpus.parquet")
    pipe.send("ready")
    with suppress(EOFError):
        while True:
            kind, data = damaged(*pipe.recv())
            path.write_bytes(data)
            _forget_peak()
            pipe.send(kind)
            result, message = outcome(path)
            if result == "WRONG" and kind.startswith(FORGED):
                result = "forged"
            if (peak := _peak_memory()) > MEMORY and result in FINE:
                result, message = "memory", f"{peak >> 20} MB at its peak; {result} {message}"
            pipe.send((result, message))


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> int:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0


CHILD: Callable[[Connection, str], None] = _be_child  # tests put others in its place


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--copies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--copy", type=int, help="examine only this one, with its traceback")
    parser.add_argument("--keep", type=Path, help="with --copy: write the damaged file here")
    arguments = parser.parse_args()
    if arguments.copy is not None:
        kind, data = damaged(arguments.seed, arguments.copy)
        print(kind)
        with tempfile.TemporaryDirectory() as folder:
            path = arguments.keep or Path(folder, "corpus.parquet")
            path.write_bytes(data)
            examine(path)
        print("sound")
        return 0
    report = campaign(arguments.seed, arguments.copies, arguments.workers)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
