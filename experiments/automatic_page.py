"""Write docs/automatic.md: what the default reaches on a GPU, beside its parts and a linear model.

`--check` only says whether it is what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from benchmarks.command import write_pages
from experiments.paper.both import part
from experiments.paper.grid import groups
from experiments.paper.results import RESULTS as PAPER
from experiments.paper.results import Figures, choices_digest
from experiments.paper.table import MISSING, Results, caption, spread, table

HERE = Path(__file__).parent
GRID = HERE / "auto"
RESULTS = HERE / "results" / "auto"
PAGE = HERE.parent / "docs" / "automatic.md"
AUTO = "auto-repair+auto"
PARTS = {"ngram": "counting", "sequence": "reading"}
RIVALS = {"rival_words": "words", "rival_chars": "characters"}
_LOSS = 0.2  # points below its better part that are none
_PASSES = {"imdb": 92.0, "yelp_polarity_part": 94.6}  # what it has to reach there, in %
INTRODUCTION = """# The default on a GPU

Written by `make docs` from `experiments/results/auto`: `laconic train` with nothing said but where the documents are ([what it does](training.md)), on one GPU, documents
compressed by Re-Pair over a rulebook of the training documents. No setting differs from set to set, and none was chosen by a test ([how](choices.md)). *Counting* and *reading* are the two parts of
the same models, each by itself; *share* is what held-out documents let reading say; *part* is the difference to the better part, *rival* that to the
linear model: scikit-learn's TF-IDF and logistic regression, of words 1–2 or of characters 1–5, whichever held-out documents prefer, C by these, too. What it makes of a file
on two processors is [the first minute](first_minute.md).

```
python -m experiments.paper run --grid experiments/auto --results experiments/results/auto --device cuda --processes 15
```
"""


@dataclass(frozen=True)
class Line:
    """One set: accuracies in %, seed by seed, of the default, its parts and the rival."""

    name: str
    ours: list[float]
    parts: dict[str, list[float]]
    shares: list[float]
    rival: tuple[str, list[float]] | None

    @property
    def below(self) -> float | None:
        """How many points the default has beyond its better part; None without parts."""
        known = [mean(some) for some in self.parts.values() if some]
        return mean(self.ours) - max(known) if known else None

    @property
    def gain(self) -> float | None:
        """How many points the default has beyond the rival; None without one."""
        return mean(self.ours) - mean(self.rival[1]) if self.rival else None


def lines_of(results: Results, paper: Results, sets: Iterable[str]) -> list[Line]:
    """Return a line for each set that has rows."""
    found = []
    for name in sets:
        rows = results.of(name, AUTO)
        if rows:
            parts = {
                view: [value for row in rows if (value := part(row, view)) is not None]
                for view in PARTS
            }
            shares = [float(row["auto"]["reading"].get("share", 0.0)) for row in rows]
            ours = results.values(name, AUTO)
            found.append(Line(name, ours, parts, shares, rival_of(paper, name)))
    return found


def before_choices(results: Results, sets: Iterable[str]) -> list[str]:
    """Return the rows that rest on other choices than today's: they are to be run again."""
    rows = [row for name in sets for row in results.of(name, AUTO)]
    now = choices_digest()
    return [f"{r['dataset']}-{r['seed']}" for r in rows if r["about"].get("choices", now) != now]


def rival_of(paper: Results, name: str) -> tuple[str, list[float]] | None:
    """Return the linear model that held-out documents prefer, and its test accuracies."""
    tried = [
        (mean(row["config"]["valid_accuracy"] for row in rows), told, paper.values(name, method))
        for method, told in RIVALS.items()
        if (rows := paper.of(name, method))
    ]
    return max(tried)[1:] if tried else None


def page(results: Results, paper: Results) -> str:
    """Return the page."""
    of = groups(GRID)
    lines = lines_of(results, paper, [name for group in of for name in group.sets])
    parts = [INTRODUCTION]
    if not lines:
        return "\n".join([*parts, "Not measured yet.\n"])
    parts += ["## In short\n", "\n".join(findings(lines)) + "\n", "## Accuracy\n"]
    told = " ".join(caption(results, group) for group in of)
    told = told.replace("the paper's protocol", "the preset")
    if old := before_choices(results, [line.name for line in lines]):
        told += f" Trained before settings were chosen as they are now: {', '.join(old)}."
    parts += [f"Test accuracy, %. {told}\n", "\n".join(_table(lines)) + "\n"]
    parts += ["## What was counted\n", "\n".join(_counted(results, lines)) + "\n"]
    return "\n".join(parts)


def findings(lines: Sequence[Line]) -> list[str]:
    """Return whether it is as good as its parts, above the rival, and where it should be."""
    below = {line.name: line.below for line in lines if line.below is not None}
    worse = [f"{name} {points:+.2f}" for name, points in below.items() if points < -_LOSS]
    told = [
        f"- More than {_LOSS:g} points below its better part on {len(worse)} of {len(below)} sets"
        + (f": {', '.join(worse)}" if worse else f" (at worst {min(below.values()):+.2f})")
        + f"; above it on {sum(points > 0 for points in below.values())}."
    ]
    gains = {line.name: line.gain for line in lines if line.gain is not None}
    if gains:
        losses = [f"{name} {points:+.2f}" for name, points in gains.items() if points <= 0]
        told.append(
            f"- Above the linear rival on {len(gains) - len(losses)} of {len(gains)} sets, by "
            f"{mean(gains.values()):+.2f} points in the mean"
            + (f"; not on {', '.join(losses)}." if losses else ".")
        )
    means = {line.name: mean(line.ours) for line in lines}
    for name, wanted in _PASSES.items():
        if name in means:
            passes = "passes" if means[name] >= wanted else "does **not** pass"
            told.append(
                f"- On {name} {means[name]:.2f} %, which {passes} our aim of {wanted:.1f} %."
            )
    return told


def _table(lines: Sequence[Line]) -> list[str]:
    rows = []
    for line in lines:
        rival = f"{spread(line.rival[1])} ({line.rival[0]})" if line.rival else MISSING
        cells = [line.name, spread(line.ours), *(spread(line.parts[view]) for view in PARTS)]
        cells += [f"{mean(line.shares):.0%}", _points(line.below), rival, _points(line.gain)]
        rows.append(cells)
    return table(["", "auto", *PARTS.values(), "share", "part", "linear model", "rival"], rows)


def _counted(results: Results, lines: Sequence[Line]) -> list[str]:
    """Return a table of what held-out documents chose, and what they say of each part."""
    rows = []
    for line in lines:
        some = results.of(line.name, AUTO)
        counted = dict.fromkeys(row["auto"]["counting"]["features"] for row in some)
        cells = [line.name, "; ".join(counted)]
        cells += [_held_out(some, view) for view in PARTS.values()]
        cells.append(f"{mean(sum(row['epochs']['seconds']) for row in some):.0f}")
        rows.append(cells)
    heads = ["counted", "counting, held out", "reading, held out", "seconds of reading"]
    return table(["", *heads], rows)


def _held_out(rows: Sequence[Figures], view: str) -> str:
    found = [row["auto"][view].get("valid") for row in rows]
    return spread([100 * each["accuracy"] for each in found if each is not None])


def _points(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.2f}"


if __name__ == "__main__":
    made = page(Results(RESULTS), Results(PAPER))
    write_pages({PAGE: made}, check="--check" in sys.argv[1:])
