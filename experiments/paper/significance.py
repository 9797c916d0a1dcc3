"""The paper's tests: Wilcoxon's rank sums, one-sided, with Holm's correction, and its marks.

Beyond it, Welch's t-test over seeds, and bootstrap intervals over test documents.

Over four seeds each, the least p there can be is 1/70 = 0.014: just below the paper's 0.02, and
times three, as Holm has it for the best of four settings, just below its 0.05. Over two seeds it
is 1/6, so that nothing can be significant.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

__all__ = ["Marks", "holm", "interval", "marks", "rank_sum", "welch"]

_FEW = 12  # values, which have 924 arrangements at most
_ROUNDS = 10_000  # of the bootstrap

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

    Exact with equal values, too, whose ranks are averaged: every arrangement of few is tried.

    >>> round(rank_sum([4, 5, 6, 7], [0, 1, 2, 3]), 4)
    0.0143
    """
    from scipy.stats import mannwhitneyu, rankdata

    if not greater or not less:
        return 1.0
    if len(greater) + len(less) > _FEW:
        return float(mannwhitneyu(greater, less, alternative="greater").pvalue)
    ranks = rankdata([*greater, *less])
    sums = [sum(some) for some in combinations(ranks.tolist(), len(greater))]
    seen = ranks[: len(greater)].sum()
    return float(np.mean([each >= seen for each in sums]))


def welch(greater: Sequence[float], less: Sequence[float]) -> float:
    """Return p of Welch's t-test that the first values have the greater mean; 1 of one value.

    >>> round(welch([4, 5, 6, 7], [0, 1, 2, 3]), 3)
    0.002
    """
    from scipy.stats import ttest_ind

    if min(len(greater), len(less)) < 2:
        return 1.0
    if np.ptp(greater) == np.ptp(less) == 0:
        return float(greater[0] <= less[0])
    with warnings.catch_warnings():
        # Seeds may well agree: a method that learns nothing always gives the same class.
        warnings.simplefilter("ignore", RuntimeWarning)
        return float(ttest_ind(greater, less, equal_var=False, alternative="greater").pvalue)


def interval(values: npt.ArrayLike, share: float = 0.95, seed: int = 0) -> tuple[float, float]:
    """Return the bootstrap interval of the mean of values [N] that documents have; O(N log N).

    Of a sample of documents, only how often each value is in it matters: few values differ.

    >>> low, high = interval([0, 1] * 500)
    >>> round(low, 2), round(high, 2)
    (0.47, 0.53)
    """
    kinds, counts = np.unique(np.asarray(values, np.float64), return_counts=True)
    total = int(counts.sum())
    samples = np.random.default_rng(seed).multinomial(total, counts / total, _ROUNDS)
    low, high = np.quantile(samples @ kinds / total, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


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
