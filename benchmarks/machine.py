"""What a figure was measured on: command, commit, versions and machine."""

from __future__ import annotations

import datetime
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path


def processors() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe() -> dict[str, object]:
    """Return what has to stand beside every figure."""
    model = _processor_model()
    return {
        "command": " ".join(["python", "benchmarks/" + Path(sys.argv[0]).name, *sys.argv[1:]]),
        "commit": _git("rev-parse", "--short", "HEAD")
        + (" + changes" if _git("status", "-s") else ""),
        "date": datetime.date.today().isoformat(),
        "data": "LACONIC_DATA" if os.environ.get("LACONIC_DATA") else "bundled samples",
        "machine": f"{model}, {processors()} processors, {platform.system()} {platform.machine()}",
        "machine_name": "-".join(model.lower().split()[:2]) + f"-{processors()}cpu",
        "versions": {
            "python": platform.python_version(),
            **{
                name: version(name)
                for name in ("laconic", "numpy", "pyarrow", "zstandard", "tokenizers")
            },
            "zlib": __import__("zlib").ZLIB_RUNTIME_VERSION,
        },
    }


def _processor_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next(
        (x.split(": ")[1] for x in lines if x.startswith("model name")), "unknown processor"
    )


def _git(*arguments: str) -> str:
    folder = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
