"""Differences between methods: the paper's test and Welch's over seeds, and over test documents."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from experiments.paper.results import right
from experiments.paper.significance import interval, rank_sum, welch
from experiments.paper.table import CODECS, MISSING, Results, table

__all__ = ["DIFFERENCES", "about_differences", "differences"]

DIFFERENCES = """Points of mean test accuracy between two methods; in parentheses p of Wilcoxon's rank-sum test (the paper's) and of Welch's t-test over
seeds, both one-sided, for the side that is better; in brackets the 95 % bootstrap interval over test documents, each with the mean of its seeds, the same
documents for both methods. Four seeds can have no smaller Wilcoxon p than 0.014, two none below 0.167. Where rows are older than the record of
which documents they get right, there is no interval. **Bold**: p < 0.02, as the paper marks it, or if there are no four seeds, an interval without 0.
"""
_PAIRS = (("dual_gru", "mlp"), ("grc", "dual_gru"), ("grc", "characters"))
_LEVEL, _SEEDS = 0.02, 4
_PAPER = {("dual_gru", "mlp"): " (the paper: on 17 of 20 of DNA, on 6 of 6 of text)"}


def differences(results: Results, sets: Sequence[str]) -> list[str]:
    """Return for each pair of methods a title and the lines of its table; codecs are columns."""
    parts = []
    for pair in _PAIRS:
        rows = []
        for name in sets:
            cells = [_cell(results, name, *_methods(pair, codec)) for codec in CODECS]
            if any(cell != MISSING for cell in cells):
                rows.append([name, *cells])
        if rows:
            parts += [f"#### {pair[0]} and {pair[1]}\n"]
            parts += ["\n".join(table(["", *CODECS.values()], rows)) + "\n"]
    return parts


def about_differences(results: Results, sets: Sequence[str]) -> list[str]:
    """Return what the tests say of each pair, a line each."""
    lines = []
    for pair in _PAIRS:
        tested, better, worse = 0, 0, 0
        for name in sets:
            for codec in ("repair", "lzd"):
                some = [results.values(name, method) for method in _methods(pair, codec)]
                if min(map(len, some)) >= _SEEDS:
                    tested += 1
                    better += rank_sum(some[0], some[1]) < _LEVEL
                    worse += rank_sum(some[1], some[0]) < _LEVEL
        what = f"- {pair[0]} and {pair[1]}"
        if not tested:
            lines.append(f"{what}: no pair of set and codec has four seeds of both yet.")
            continue
        lines.append(
            f"{what}: significantly better on {better} of {tested} pairs of set and codec that "
            f"have four seeds, significantly worse on {worse}{_PAPER.get(pair, '')}."
        )
    return lines


def _methods(pair: tuple[str, str], codec: str) -> tuple[str, str]:
    one, other = (each if each == "characters" else f"{each}-{codec}" for each in pair)
    return one, other


def _cell(results: Results, dataset: str, one: str, other: str) -> str:
    ours, theirs = (results.values(dataset, method) for method in (one, other))
    if not ours or not theirs:
        return MISSING
    points = float(np.mean(ours) - np.mean(theirs))
    more, less = (ours, theirs) if points >= 0 else (theirs, ours)
    p = rank_sum(more, less)
    told = f"{points:+.2f} ({p:.3f}, {welch(more, less):.3f})"
    ends = _interval(results, dataset, one, other)
    if ends is not None:
        told += f" [{ends[0]:+.2f}, {ends[1]:+.2f}]"
    enough = min(len(ours), len(theirs)) >= _SEEDS
    clear = p < _LEVEL if enough else ends is not None and not ends[0] <= 0 <= ends[1]
    return f"**{told}**" if clear else told


def _interval(results: Results, dataset: str, one: str, other: str) -> tuple[float, float] | None:
    ours, theirs = (_shares(results, dataset, method) for method in (one, other))
    if ours is None or theirs is None or len(ours) != len(theirs):
        return None
    return interval(100 * (ours - theirs))


def _shares(results: Results, dataset: str, method: str) -> npt.NDArray[np.float64] | None:
    """Return in which share of the seeds each test document is right; None if any row is older."""
    found = [right(row) for row in results.of(dataset, method)]
    known = [each for each in found if each is not None]
    return np.mean(known, axis=0, dtype=np.float64) if len(known) == len(found) and known else None
