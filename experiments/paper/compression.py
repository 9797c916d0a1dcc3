"""Measures what the paper's Table 1 shows: lengths and rules of every set, codec by codec."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from experiments.paper.corpora import CACHE, statistics
from experiments.paper.grid import Group
from experiments.paper.results import RESULTS, Figures, about, read, write

__all__ = ["CODECS", "measure_compression"]

CODECS = ("none", "repair", "lzd", "lz78")


def measure_compression(
    groups: Iterable[Group], results: Path = RESULTS, cache: Path = CACHE
) -> None:
    """Write compression.json; sets that are in it already are not measured again.

    Documents are whole, also those of sets whose rows cut them: Table 1 is about documents.
    """
    path = results / "compression.json"
    found: Figures = read(path) if path.exists() else {"about": about(), "sets": {}}
    for dataset in (name for group in groups for name in group.sets):
        if dataset not in found["sets"]:
            found["sets"][dataset] = {c: statistics(dataset, c, cache) for c in CODECS}
            write(path, found)
            print(f"{dataset}: {found['sets'][dataset]['repair']}", file=sys.stderr, flush=True)
