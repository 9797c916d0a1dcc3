"""What a figure was measured on: command, commit, versions and machine."""

from __future__ import annotations

import datetime
import os
import platform
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path


def processors() -> int:
    """Return the number of processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe(gpu: bool = True) -> dict[str, object]:
    """Return what has to stand beside every figure; torch is named if the caller has loaded it.

    So is the GPU that it can use, unless the figures are not of that.
    """
    model, on = _processor_model(), accelerator() if gpu else None
    short = on.split() if on else [*model.split()[:2], f"{processors()}cpu"]
    packages = ("laconic", "numpy", "pyarrow", "zstandard", "tokenizers")
    return {
        "command": _command(),
        "commit": _commit(),
        "date": datetime.date.today().isoformat(),
        "data": "LACONIC_DATA" if os.environ.get("LACONIC_DATA") else "bundled samples",
        "machine": f"{f'{on}, ' if on else ''}{model}, {processors()} processors, "
        f"{platform.system()} {platform.machine()}",
        "machine_name": re.sub(r"\(r\)|\(tm\)", "", "-".join(short).lower()),
        "versions": {
            "python": platform.python_version(),
            **{name: number for name in packages if (number := _version(name))},
            **_torch_versions(),
            "zlib": __import__("zlib").ZLIB_RUNTIME_VERSION,
        },
    }


def accelerator() -> str | None:
    """Return the name of the GPU that a caller who has loaded torch can use, if there is one."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return None
    return str(torch.cuda.get_device_name())


def program() -> str:
    """Return the beginning of the command that runs: python -m, and a module."""
    main = getattr(sys.modules["__main__"], "__spec__", None)
    # A process of a pool was begun by no module of its own, and only experiments.paper has pools.
    module = main.name.removesuffix(".__main__") if main else "experiments.paper"
    return f"python -m {module}"


def _command() -> str:
    # Where a machine keeps its folders says nothing to others.
    given = [re.sub(r"(?<![^=])/\S*/", "", each) for each in sys.argv[1:]]
    return " ".join([program(), *given])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _torch_versions() -> dict[str, str]:
    torch = sys.modules.get("torch")
    if torch is None:
        return {}
    found = {"torch": torch.__version__}
    if name := accelerator():
        cudnn = torch.backends.cudnn.version()
        found |= {"cuda": str(torch.version.cuda), "cudnn": str(cudnn), "gpu": name}
    return found


def _commit() -> str:
    if told := os.environ.get("LACONIC_COMMIT"):  # for a copy without git's own files
        return told
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + (" + changes" if commit != "unknown" and _git("status", "-s") else "")


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
