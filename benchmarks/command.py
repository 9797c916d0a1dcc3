"""What the commands share: options, processes of their own, files of figures, pages of docs."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.machine import program

__all__ = ["ROOT", "Figures", "alone", "keep", "options", "output", "write_pages"]

Figures: TypeAlias = dict[str, Any]
ROOT = Path(__file__).parent.parent


def options(text: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options of every benchmark; `text` is the module's docstring."""
    how = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(program(), description=text, formatter_class=how)
    parser.add_argument("--quick", action="store_true", help="little data, few rounds")
    parser.add_argument("--json", "--output", type=Path, help="default: a file in build/benchmarks")
    parser.add_argument("--keep", action="store_true", help="write to benchmarks/results instead")
    return parser


def output(given: argparse.Namespace, about: Mapping[str, object], name: str) -> Path:
    """Return where figures go; `name` may have {machine_name} and {date} in it."""
    folder = ROOT / ("benchmarks/results" if given.keep else "build/benchmarks")
    path: Path = given.json or folder / name.format_map(about)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def keep(path: Path, figures: Figures) -> None:
    """Write figures."""
    path.write_text(json.dumps(figures, indent=1) + "\n")


def alone(module: str, *words: str | Path) -> Figures:
    """Run a module of this package in a process of its own; return the JSON it prints last."""
    command: list[str | Path] = [sys.executable, "-m", f"benchmarks.{module}", *words]
    done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found: Figures = json.loads(done.stdout.splitlines()[-1])
    return found


def write_pages(pages: Mapping[Path, str], check: bool) -> None:
    """Write pages and pictures that have changed, or only exit with 1 if some are out of date.

    To be checked, a picture needs the same words and numbers only: matplotlib's versions differ.
    """
    old = {path: path.read_text("utf-8") if path.exists() else "" for path in pages}
    stale = [path for path, text in pages.items() if old[path] != text]
    if check:
        stale = [
            path for path in stale if path.suffix != ".svg" or not _same(old[path], pages[path])
        ]
        if stale:
            sys.exit(f"out of date: {', '.join(map(str, stale))}; run `make docs`")
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pages[path], "utf-8")
        print(f"wrote {path}")


def _same(one: str, other: str) -> bool:
    first, second = (sorted(re.findall(r">([^<>]+)</text>", each)) for each in (one, other))
    return first == second
