"""What kill.py and kill_training.py share: killing a process at a moment, and counting outcomes."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

PATIENCE = 600  # seconds that one run may take


def finish(process: subprocess.Popen[str]) -> None:
    """Wait for the end; RuntimeError with what was said if it is a bad one."""
    _, said = process.communicate(timeout=PATIENCE)
    if process.returncode != 0:
        raise RuntimeError(f"exit status {process.returncode}: {said.strip()[-300:]}")


def kill(process: subprocess.Popen[str], moment: Callable[[float], bool]) -> bool:
    """Kill the process at the moment; return whether it was still alive."""
    started = time.monotonic()
    while process.poll() is None:
        passed = time.monotonic() - started
        if moment(passed) or passed > PATIENCE:
            process.kill()
            break
        time.sleep(0.0005)
    process.communicate()
    return process.returncode != 0


@dataclass
class Report:
    """What happened how often, and what should not have."""

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{number:6} {what}" for what, number in sorted(self.counts.items())]
        return "\n".join([*lines, *(self.findings or ["nothing found"])])
