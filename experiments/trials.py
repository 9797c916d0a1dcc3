"""The command line that trials on held-out parts share: run what is missing, or write a page."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.paper.corpora import CACHE


def parse(
    arguments: Sequence[str] | None, name: str, text: str | None, sets: Iterable[str], results: Path
) -> argparse.Namespace:
    """Return what to do with the trials of experiments.<name>, whose docstring is `text`."""
    parser = argparse.ArgumentParser(
        prog=f"python -m experiments.{name}",
        description=text,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--sets", nargs="+", default=[*sets])
    parser.add_argument("--results", type=Path, default=results)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--check", action="store_true", help="only say if the page is up to date")
    return parser.parse_args(arguments)
