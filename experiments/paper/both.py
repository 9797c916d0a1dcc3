"""Both views over rulebooks: what the preset reaches, beside its parts and what it was before."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.paper.grid import groups
from experiments.paper.results import Figures, saw_no_test
from experiments.paper.table import Results, caption, spread, table

__all__ = [
    "CHARACTERS",
    "GRID",
    "PARTS",
    "PRIVATE",
    "SHARED",
    "about_both",
    "both_section",
    "part",
    "seconds_alone",
]

GRID = Path(__file__).parent.parent / "both"
SHARED, CHARACTERS = "both-repair+auto", "both-none"
PRIVATE, LINEAR = "both-repair", "rival_linear"  # in the paper's results: before, and beside it
PARTS = {"sequence": "reading alone", "ngram": "counting alone"}
_PASSES = {"imdb": 92.0, "yelp_polarity_part": 94.6}  # what it has to reach there, in %
_TIME = 0.6  # of characters' time, at most
SECTION = """A document can be read (grc and a Bi-LSTM over its symbols, each with the n-grams that end in it), counted (a linear model of its
n-grams, trained by gradients), or *both*, the sum of the two, trained by its loss and those of the
two ([how](models.md#n-grams-beside-sequences)). The preset `both`, Re-Pair over a rulebook, the settings the same for all sets: small ones
are only read more often, as [automatic training](training.md) does it. Its parts are the two views of the same models, each by itself. {chosen}
*Before*: with private rules, no rulebook, and settings that people had found who saw some tests; kept to compare with. *Linear n-grams* is what a
practitioner has: `GrammarVectorizer`'s TF-IDF and scikit-learn's logistic regression, whose C the held-out part chooses.

```
python -m experiments.paper run --grid experiments/both --results experiments/results/both --device cuda --processes 15
python -m experiments.paper rivals --groups views_text views_pinyin views_dna --seeds 0 1 2
```
"""
CHOSEN = "Its settings were chosen [by held-out documents](choices.md), no test in sight."
NOT_CHOSEN = "Not all of its settings have been tried on [held-out documents](choices.md) yet."


def part(row: Figures, view: str) -> float | None:
    """Return the test accuracy of one view of a model, in %; None if it has none."""
    found = row.get("views", {}).get(view)
    return None if found is None else 100 * float(found["accuracy"])


def both_section(both: Results, before: Results) -> list[str]:
    """Return the section of docs/results.md; nothing without rows."""
    sets = [name for name in _sets() if both.of(name, SHARED)]
    if not sets:
        return []
    title = "## Two views: symbols and n-grams\n"
    rows = [row for name in sets for row in both.of(name, SHARED)]
    chosen = CHOSEN if saw_no_test(rows, "both") else NOT_CHOSEN
    [group] = [group for group in groups(GRID) if SHARED in group.methods[0][1]]
    told = caption(both, group).replace("the paper's protocol", "the preset")
    return [
        title,
        SECTION.format(chosen=chosen),
        f"Test accuracy, %; **bold**: the best mean. {told}\n",
        "\n".join(both_table(both, before, sets)) + "\n",
        "\n".join(about_both(both, before)) + "\n",
    ]


def both_table(both: Results, before: Results, sets: Sequence[str]) -> list[str]:
    """Return a row for each set: both over a rulebook, its parts, both before, linear n-grams."""
    lines = []
    for name in sets:
        rows = both.of(name, SHARED)
        columns = [both.values(name, SHARED)]
        columns += [[v for row in rows if (v := part(row, view)) is not None] for view in PARTS]
        columns += [before.values(name, PRIVATE), before.values(name, LINEAR)]
        means = [statistics.mean(each) if each else 0.0 for each in columns]
        cells = map(spread, columns)
        lines.append(
            [
                name,
                *(f"**{c}**" if m == max(means) else c for c, m in zip(cells, means, strict=True)),
            ]
        )
    heads = ["both over a rulebook", *PARTS.values(), "both, before", "linear n-grams"]
    return table(["", *heads], lines)


def about_both(both: Results, before: Results) -> list[str]:
    """Return what the table says: sets above each of the others, two aims, the time."""
    sets = [name for name in _sets() if both.of(name, SHARED)]
    if not sets:
        return []
    others: dict[str, Callable[[str], float | None]] = {
        "both before": lambda name: before.mean(name, PRIVATE),
        "linear n-grams": lambda name: before.mean(name, LINEAR),
        "the better of its two views": lambda name: _better_view(both.of(name, SHARED)),
    }
    lines = []
    for what, of in others.items():
        gains = {
            name: ours - theirs
            for name in sets
            if (ours := both.mean(name, SHARED)) is not None and (theirs := of(name)) is not None
        }
        if gains:
            points = ", ".join(f"{name} {gain:+.2f}" for name, gain in gains.items())
            lines.append(
                f"- both over a rulebook is above {what} on {sum(g > 0 for g in gains.values())} of "
                f"{len(gains)} sets, by the mean over seeds (points: {points})."
            )
    for name, wanted in _PASSES.items():
        if (mean := both.mean(name, SHARED)) is not None:
            passes = "passes" if mean >= wanted else "does **not** pass"
            lines.append(f"- On {name} it has {mean:.2f} % and {passes} our aim of {wanted:.1f} %.")
    return lines + _about_time(both)


def seconds_alone(rows: Sequence[Figures]) -> float | None:
    """Return the mean seconds of training of rows that had a GPU to themselves; None without."""
    alone = [sum(row["epochs"]["seconds"]) for row in rows if row["processes"] == 1]
    return statistics.mean(alone) if alone else None


def _about_time(both: Results) -> list[str]:
    found = [seconds_alone(both.of("imdb", method)) for method in (SHARED, CHARACTERS)]
    ours, theirs = found
    if ours is None or theirs is None:
        return []
    passes = "passes" if ours <= _TIME * theirs else "does **not** pass"
    return [
        f"- On imdb, alone on the GPU, it trains in {ours:.0f} s, and in {theirs:.0f} s on characters: "
        f"{ours / theirs:.2f} of the time, which {passes} our aim of {_TIME:g}."
    ]


def _better_view(rows: Sequence[Figures]) -> float | None:
    means = []
    for view in PARTS:
        found = [value for row in rows if (value := part(row, view)) is not None]
        means += [statistics.mean(found)] if found else []
    return max(means, default=None)


def _sets() -> list[str]:
    return list(dict.fromkeys(name for group in groups(GRID) for name in group.sets))
