"""What trials say: the chosen value of every setting, as a file and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from experiments.choices.space import Searched, value_name
from experiments.paper.results import NOT_RUN, find_row, rows_in
from experiments.paper.table import table
from laconic.training.presets import PRESETS

__all__ = ["HELD_OUT", "Outcome", "outcome", "page"]

Outcome: TypeAlias = dict[str, dict[str, dict[str, Any]]]
PRINTED = "as the paper prints it"
HELD_OUT = "held-out documents"
_SHARE = 0.75  # of the trials that another value has to win, to take the place of the first
INTRODUCTION = """# How settings were chosen

Written by `make docs` from `experiments/results/choose` and `experiments/choices/space.toml`, which says what is tried, and on what. Each trial is
a training on some of a set's training documents; a share of them is held out and tells what the value is worth. No test is looked at.
One setting at a time is changed, all others keep the value that the search begins with. In each trial (set and
seed) values are ranked by held-out accuracy and by loss, and the two ranks averaged: 1 is best. The first value stays unless another one
has the best mean rank and beats it in three quarters of the trials. A test fails if a preset differs from what came out.

```
python -m experiments.choose run --device cuda --processes 12
python -m experiments.choose decide
```
"""


def outcome(space: Mapping[str, Searched], results: Path) -> Outcome:
    """Return for each preset and setting its value, what that rests on, and how others did.

    Where trials are missing it is the value that the search begins with, and says so.
    """
    found: Outcome = {}
    for preset, one in space.items():
        settings: dict[str, dict[str, Any]] = {}
        if one.like is not None:
            for name, of in found[one.like].items():
                settings[name] = {"value": of["value"], "by": f"as in {one.like}"}
        elif not one.values and preset in PRESETS:
            for name, value in PRESETS[preset].items():
                settings[name] = {"value": value, "by": PRINTED}
        for name, values in one.values.items():
            settings[name] = {"value": values[0], "by": one.why.get(name, NOT_RUN)}
        for name, values in one.alternatives.items():
            settings[name] = _decided(one, name, values, results)
        found[preset] = settings
    return found


def _decided(one: Searched, name: str, values: list[Any], results: Path) -> dict[str, Any]:
    trials = list(_scores(one, name, values, results))
    if not trials:
        return {"value": values[0], "by": NOT_RUN, "tried": values}
    scores = np.array(trials)  # [trials, values, accuracy and loss]
    ranks = (_ranks(-scores[..., 0]) + _ranks(scores[..., 1])) / 2
    best = int(ranks.mean(0).argmin())
    wins = (ranks[:, best] < ranks[:, 0]).sum()
    return {
        "value": values[best if wins >= _SHARE * len(ranks) else 0],
        "by": HELD_OUT,
        "tried": values,
        "ranks": [round(float(each), 2) for each in ranks.mean(0)],
        "accuracies": [round(100 * float(each), 2) for each in scores[..., 0].mean(0)],
        "trials": len(ranks),
    }


def _scores(
    one: Searched, name: str, values: list[Any], results: Path
) -> Iterator[list[tuple[float, float]]]:
    """Yield accuracy and loss of each value, for the seeds that have all sets and values."""
    names = [value_name(one.preset)] + [value_name(one.preset, name, v) for v in values[1:]]
    seeds = sorted({row["seed"] for row in rows_in(results)})
    for seed in seeds:
        rows = [[find_row(results, s, n, seed) for n in names] for s in one.sets]
        if all(row is not None for some in rows for row in some):
            for some in rows:
                held = [row["held_out"] for row in some if row is not None]
                yield [(each["accuracy"], each["loss"]) for each in held]


def _ranks(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    from scipy.stats import rankdata

    ranks: np.ndarray[Any, Any] = rankdata(values, axis=1)
    return ranks


def page(space: Mapping[str, Searched], chosen: Outcome) -> str:
    """Return docs/choices.md: a table for each preset."""
    parts = [INTRODUCTION, _on_what(space) + "\n"]
    printed = [
        name for name, of in chosen.items() if {each["by"] for each in of.values()} == {PRINTED}
    ]
    parts.append(
        f"Not searched: {', '.join(f'`{name}`' for name in printed)}, which are what the paper prints.\n"
    )
    for preset, settings in chosen.items():
        if preset in printed:
            continue
        rows = []
        for name, of in settings.items():
            tried = of.get("tried", [])
            ranks = of.get("ranks", [None] * len(tried))
            told = ", ".join(
                f"{v} ({r:.1f})" if r else f"{v}" for v, r in zip(tried, ranks, strict=True)
            )
            by = f"{of['by']}, {of['trials']} trials" if "trials" in of else of["by"]
            rows.append([f"`{name}`", str(of["value"]), told, by])
        parts += [
            f"## {preset}\n",
            "\n".join(table(["", "value", "tried (rank)", "by"], rows)) + "\n",
        ]
    return "\n".join(parts)


def _on_what(space: Mapping[str, Searched]) -> str:
    trial = next(iter(space.values())).trial
    return (
        f"Trials: {', '.join(trial['sets'])}; at most {trial['documents']:,} training documents of a set, cut at "
        f"{trial['longest']:,} letters, {trial['holdout']:.0%} of them held out; {trial['epochs']} epochs, "
        "if the preset has no trials of its own."
    )
