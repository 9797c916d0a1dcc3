"""The paper's tests: Wilcoxon's rank sums, one-sided, with Holm's correction, and its marks.

Over four seeds each, the least p there can be is 1/70 = 0.014: just below the paper's 0.02, and
times three, as Holm has it for the best of four settings, just below its 0.05. Over two seeds it
is 1/6, so that nothing can be significant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

__all__ = ["Marks", "holm", "marks", "rank_sum"]

_BETTER, _BEST = 0.02, 0.05
_DECLINE = {"dna": (5.0, 0.03)}  # points, and p; the paper has others for text
_TEXT_DECLINE = (3.0, 0.02)


@dataclass(frozen=True)
class Marks:
    """What is marked of one data set: methods with a dagger, the best setting, the column."""

    daggers: frozenset[str]
    best: str | None
    clearly: bool
    """Whether the best is significantly better than all others: bold instead of brackets."""
    close: bool
    """Whether it is significantly less than 5 (DNA) or 3 points below characters."""


def rank_sum(greater: Sequence[float], less: Sequence[float]) -> float:
    """Return p of Wilcoxon's rank-sum test that the first values tend to be greater; exact if few.

    >>> round(rank_sum([4, 5, 6, 7], [0, 1, 2, 3]), 4)
    0.0143
    """
    from scipy.stats import mannwhitneyu

    if not greater or not less:
        return 1.0
    return float(mannwhitneyu(greater, less, alternative="greater", method="auto").pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Return p-values corrected by Holm's method, in their order.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(values, kind="stable")
    factors = len(values) - np.arange(len(values))
    steps = np.maximum.accumulate(np.asarray(values, np.float64)[order] * factors)
    corrected = np.empty(len(values))
    corrected[order] = np.minimum(1.0, steps)
    return [float(each) for each in corrected]


def marks(accuracies: Mapping[str, Sequence[float]], kind: str) -> Marks:
    """Return the marks of one data set, given the accuracies in % of each method, seed by seed.

    Methods named composer-codec are settings of the proposed method; "characters" is the baseline.
    """
    settings = {name: list(each) for name, each in accuracies.items() if "-" in name and each}
    daggers = frozenset(
        name
        for name, values in settings.items()
        if name.startswith("dual_gru-")
        # One test for each set and codec, as the paper's p shows: corrected, none could be < 0.02.
        and rank_sum(values, settings.get(name.replace("dual_gru", "mlp"), [])) < _BETTER
    )
    if not settings:
        return Marks(daggers, None, False, False)
    best = max(settings, key=lambda name: float(np.mean(settings[name])))
    others = [values for name, values in settings.items() if name != best]
    tests = holm([rank_sum(settings[best], values) for values in others])
    points, level = _DECLINE.get(kind, _TEXT_DECLINE)
    shifted = [value - points for value in accuracies.get("characters", [])]
    return Marks(
        daggers,
        best,
        clearly=bool(tests) and max(tests) < _BEST,
        close=rank_sum(settings[best], shifted) < level,
    )
