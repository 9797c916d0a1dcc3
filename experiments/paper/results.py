"""Results as files: one JSON for each row, written whole, with what it was measured on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.machine import describe

__all__ = ["RESULTS", "Figures", "about", "path_of", "read", "rounded", "rows_in", "write"]

Figures = dict[str, Any]
RESULTS = Path(__file__).parent.parent / "results" / "paper"


def about() -> Figures:
    """Return command, commit, date, versions and machine, a GPU named if torch has one."""
    found = describe()
    del found["machine_name"]
    return found


def path_of(folder: Path, dataset: str, method: str, seed: int) -> Path:
    """Return where the result of a row is, or will be."""
    return folder / dataset / f"{method}-{seed}.json"


def write(path: Path, figures: Figures) -> None:
    """Write a result; it appears under its name when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.partial")
    part.write_text(_compact(rounded(figures)), "utf-8")
    part.replace(path)


def read(path: Path) -> Figures:
    """Return a result; ValueError with the file if it is none."""
    try:
        found: Figures = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}; delete it and run its row again") from None
    return found


def rows_in(folder: Path) -> Iterator[Figures]:
    """Yield the results of rows (data set, method, seed), in the order of their names."""
    for path in sorted(folder.glob("*/*-*.json")):
        yield read(path)


def rounded(value: Any) -> Any:
    """Return figures with six digits each: more are noise, and files are read in diffs."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _compact(figures: Figures) -> str:
    """Return JSON with a line for each entry: short, and good to read in diffs."""
    lines = [f" {json.dumps(key)}: {_dumps(value)}" for key, value in figures.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dumps(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(map(_dumps, value)) + "\n ]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
