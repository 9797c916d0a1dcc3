"""Two views of a document, its symbols and its n-grams: which model is best on each set."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from experiments.paper.grid import Group
from experiments.paper.table import MISSING, Results, machines_of, spread, table, told

__all__ = ["BOTH", "LINEAR", "VIEWS", "about_views", "views_caption", "views_table"]

LINEAR, BOTH = "rival_linear", "both-repair"
VIEWS = {
    LINEAR: "linear n-grams",
    "sequence-repair": "sequence",
    "ngram-repair": "ngram",
    BOTH: "both",
}
_PASSES = {"imdb": 90.7, "yelp_polarity_part": 94.0}  # what both has to reach there, in %


def views_table(results: Results, groups: Sequence[Group]) -> list[str]:
    """Return a row for each set and a column for each view; and how often each is best."""
    rows, wins = [], Counter[str]()
    for name in _sets(groups):
        means = _means(results, name)
        best = max(means, key=lambda method: means[method]) if len(means) == len(VIEWS) else None
        wins.update([best] if best else [])
        cells = {method: spread(results.values(name, method)) for method in VIEWS}
        rows.append([name, *(f"**{cells[m]}**" if m == best else cells[m] for m in VIEWS)])
    counted = [str(wins[method]) if wins.total() else MISSING for method in VIEWS]
    return table(["", *VIEWS.values()], [*rows, ["*best on*", *counted]])


def views_caption(results: Results, groups: Sequence[Group]) -> str:
    """Return what has to be known of the table: settings, seeds, machines, from the results."""
    found = [
        (group, row)
        for group in groups
        for name in group.sets
        for method in VIEWS
        for row in results.of(name, method)
        if "protocol" in row
    ]
    trained = [row for _, row in found]
    if not trained:
        pairs = [(name, group.departures(name)) for group in groups for name in group.sets]
        return f"No model has been trained yet. What will depart from the preset: {told(pairs)}."
    # Not as rows have them: the preset may have been another one then.
    pairs = [(row["dataset"], group.departures_in(row["config"])) for group, row in found]
    seeds = Counter((row["dataset"], row["method"]) for row in trained).values()
    several = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
    return (
        f"Departs from the preset: {told(pairs)}. Mean ± standard deviation over {several} seeds. "
        f"Trained on {machines_of(trained)}."
    )


def about_views(results: Results, groups: Sequence[Group]) -> list[str]:
    """Whether both views are better than the better one, and by how much; none without results."""
    gains = {}
    for name in _sets(groups):
        means = _means(results, name)
        others = [means[m] for m in (LINEAR, "sequence-repair") if m in means]
        if BOTH in means and len(others) == 2:
            gains[name] = means[BOTH] - max(others)
    if not gains:
        return []
    better = [name for name, gain in gains.items() if gain > 0]
    points = ", ".join(f"{name} {gain:+.2f}" for name, gain in gains.items())
    lines = [
        f"both beats the better of linear n-grams and sequence on {len(better)} of {len(gains)} "
        f"sets, by the mean over seeds (points: {points})."
    ]
    for name, wanted in _PASSES.items():
        values = results.values(name, BOTH)
        if values:
            mean = statistics.mean(values)
            passes = "passes" if mean >= wanted else "does **not** pass"
            lines.append(f"On {name}, both has {mean:.2f} % and {passes} our aim of {wanted:g} %.")
    return [f"- {line}" for line in lines]


def _sets(groups: Sequence[Group]) -> list[str]:
    return [name for group in groups for name in group.sets]


def _means(results: Results, name: str) -> dict[str, float]:
    return {m: v for m in VIEWS if (v := results.mean(name, m)) is not None}
