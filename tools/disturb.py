"""What tools share that disturb processes: killing one at a moment, and counting outcomes."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PATIENCE = 600  # seconds that one run may take


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for the end; RuntimeError with what was said if it is a bad one."""
    _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise RuntimeError(f"exit status {process.returncode}: {said.strip()[-300:]}")


def children(process: subprocess.Popen[str]) -> list[int]:
    """Return the processes that this one started, in the order in which it did (on Linux)."""
    with suppress(OSError):
        return [
            *map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
        ]
    return []


def kill(
    process: subprocess.Popen[str],
    moment: Callable[[float], bool],
    child: int | None = None,
) -> bool:
    """Kill the process at the moment, or the `child` with this number; return whether it was alive.

    Who has lost a child must end by itself, and end the others.
    """
    started = time.monotonic()
    while process.poll() is None:
        passed = time.monotonic() - started
        if moment(passed) or passed > PATIENCE:
            alive = [] if child is None else children(process)
            if child is None or passed > PATIENCE:
                process.kill()
            elif child < len(alive):
                os.kill(alive[child], signal.SIGKILL)
            break
        time.sleep(0.0005)
    process.communicate(timeout=PATIENCE)
    return process.returncode != 0


def largest(path: Path) -> int:
    """Return the bytes of the largest file at or below the path."""
    return max(each.stat().st_size for each in (path, *path.rglob("*")) if each.is_file())


@dataclass
class Report:
    """What happened how often, and what should not have."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{number:6} {what}" for what, number in sorted(self.counts.items())]
        return "\n".join([*lines, *(self.findings or ["nothing found"])])


def from_command_line(campaign: Callable[[int, int], Report], about: str | None) -> int:
    """Run a tool that takes how many times, and a seed; return 1 if anything was found, or 0."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    report = campaign(chosen.times, chosen.seed)
    print(report)
    return 1 if report.findings else 0
