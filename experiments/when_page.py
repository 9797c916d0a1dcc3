"""Write docs/when.md: for which data Laconic is worth using, and for which not, from the results.

Nothing on it is written by hand but the names of kinds; `--check` only compares.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from benchmarks.command import write_pages
from benchmarks.data import DATASETS
from experiments import first_minute
from experiments.paper.both import PRIVATE, SHARED
from experiments.paper.grid import COMPOSERS, IN_PLACE
from experiments.paper.results import Figures, saw_no_test
from experiments.paper.table import MISSING, Results, table
from laconic.codecs import CODECS

FOLDER = Path(__file__).parent / "results"
FOLDERS = ("paper", "converged", "auto", "both")
PAGE = Path(__file__).parent.parent / "docs" / "when.md"
_SHORT, _LONG = 1_000, 3_000  # letters: shorter, and longer than that
_REPETITIVE = 8.0  # letters for a symbol of Re-Pair's sequence
_CLOSE = 0.5  # points that are as good as none
INTRODUCTION = """# When should I use this?

Written by `make docs` from `experiments/results`: what wins is what the rows there say, Laconic's losses included. How each was trained, and
on what, is on the pages of [the paper's experiments](results.md), [shared rules](rulebooks.md), [the default](automatic.md) and [the first minute](first_minute.md). A family that has
several methods (codecs, composers; words or characters) is shown by the one that held-out documents prefer on each set. Means are over the sets of a kind,
and a family is compared where it has been run on all of them.
"""


@dataclass(frozen=True)
class Family:
    """Methods that a user would call one thing; `ours` if they are Laconic's own.

    What was run `before` is looked at where the methods have no rows yet.
    """

    name: str
    methods: tuple[str, ...]
    ours: bool = True
    before: tuple[str, ...] = ()


BOTH = Family("counting and reading (`both`)", (SHARED,), before=(PRIVATE,))
FAMILIES = (
    Family("the default (`auto`)", ("auto-repair+auto",)),
    BOTH,
    Family("reading over a rulebook", ("grc-repair+auto",)),
    Family(
        "reading private grammars",
        (
            "sequence-repair",
            *(f"{c}-{k}" for c in (*COMPOSERS, IN_PLACE) for k in CODECS if k != "none"),
        ),
    ),
    Family("Bi-LSTM on characters", ("characters",), ours=False),
    Family("CNN on characters", ("char_cnn",), ours=False),
    Family("Bi-LSTM on byte pairs", ("bpe",), ours=False),
    Family(
        "linear model of n-grams (scikit-learn)",
        ("rival_words", "rival_chars", "rival_kmers", "rival_linear"),
        ours=False,
    ),
    Family("fastText", ("rival_fasttext",), ours=False),
)
LINEAR = next(family for family in FAMILIES if "rival_words" in family.methods)


@dataclass
class Kind:
    """A kind of data, and the sets that stand for it."""

    name: str
    sets: list[str] = field(default_factory=list)


class Evidence:
    """All results, whichever folder they are in."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self.folder = folder
        self.all = [Results(folder / name) for name in FOLDERS]

    def kinds(self) -> list[Kind]:
        """Return the kinds of the sets that were compressed, by what was measured of them."""
        found: dict[str, Kind] = {}
        for name, of in (self.all[0].one("compression") or {"sets": {}})["sets"].items():
            kind = kind_of(name, of)
            found.setdefault(kind, Kind(kind)).sets.append(name)
        return list(found.values())

    def accuracy(self, dataset: str, family: Family) -> float | None:
        """Return the mean test accuracy, in %, of the method that held-out documents prefer."""
        tried = [
            (_held_out(rows), 100 * mean(row["test"]["accuracy"] for row in rows))
            for rows in self.rows(dataset, family)
        ]
        return max(tried)[1] if tried else None

    def rows(self, dataset: str, family: Family) -> list[list[Figures]]:
        """Return the rows of every method that has some; of those before, if there are no others."""
        for methods in (family.methods, family.before):
            found = [results.of(dataset, method) for results in self.all for method in methods]
            if some := [rows for rows in found if rows]:
                return some
        return []

    def cost(self, dataset: str, family: Family) -> Iterator[tuple[float, float]]:
        """Yield documents a second and MB of training alone on a GPU, of every method measured."""
        for method in family.methods:
            speed = self.all[0].speed(dataset, method)
            if speed and speed["peak_mb"]:
                yield speed["documents_per_s"], speed["peak_mb"]

    def of_kind(self, kind: Kind, family: Family) -> float | None:
        """Return the mean accuracy over a kind's sets; None unless it has all of them."""
        found = [self.accuracy(name, family) for name in kind.sets]
        known = [each for each in found if each is not None]
        return mean(known) if len(known) == len(found) else None


def kind_of(name: str, of: Figures) -> str:
    """Return the kind of a set by its alphabet, letters and repetition.

    >>> kind_of("imdb", {"none": {"letters": {"mean": 1325}}, "repair": {"sequence": {"mean": 509}}})
    'text, 1,000 to 3,000 letters'
    """
    letters, symbols = of["none"]["letters"]["mean"], of["repair"]["sequence"]["mean"]
    what = {"dna": "DNA", "traces": "logs and traces", "text": "text"}[DATASETS[name].kind]
    if letters / symbols >= _REPETITIVE:
        return f"{what}, repetitive"
    if what != "text":
        return what
    if letters < _SHORT:
        return f"text, short (below {_SHORT:,} letters)"
    if letters > _LONG:
        return f"text, long (above {_LONG:,} letters)"
    return f"text, {_SHORT:,} to {_LONG:,} letters"


def page(evidence: Evidence) -> str:
    """Return the page."""
    kinds = evidence.kinds()
    parts = [
        INTRODUCTION,
        "## In short\n",
        "\n".join(advice(evidence, kind) for kind in kinds) + "\n",
        "Source code and web pages have no rows in these results, so that nothing is said of them."
        + _caveat(evidence)
        + "\n",
        "## What wins\n",
        "The most accurate family, and how far the next one is behind, in points; training alone on a GPU, against a Bi-LSTM on characters.\n",
        "\n".join(winners(evidence, kinds)) + "\n",
        "## Accuracy\n",
        "Test accuracy, %, mean over the sets of a kind. **Bold**: the best. – : not run on all of them.\n",
        "\n".join(accuracies(evidence, kinds)) + "\n",
        "## Without a GPU, in a minute\n",
        "\n".join(on_a_laptop(first_minute.rows_in(evidence.folder / "first_minute.jsonl"))) + "\n",
    ]
    return "\n".join(parts)


def _caveat(evidence: Evidence) -> str:
    """Return a warning of settings that people chose who had seen tests; nothing if none were."""
    sets = [name for kind in evidence.kinds() for name in kind.sets]
    rows = [row for name in sets for some in evidence.rows(name, BOTH) for row in some]
    if saw_no_test(rows, "both"):
        return ""
    return (
        " Settings of `both` were chosen by people who saw some tests: take its figures for a little too good, until rows rest on "
        "settings [that held-out documents choose](choices.md)."
    )


def ranking(evidence: Evidence, kind: Kind) -> list[tuple[float, Family]]:
    """Return the families that have all sets of a kind, the most accurate first."""
    found = [(evidence.of_kind(kind, family), family) for family in FAMILIES]
    known = [(accuracy, family) for accuracy, family in found if accuracy is not None]
    return sorted(known, key=lambda pair: -pair[0])


def advice(evidence: Evidence, kind: Kind) -> str:
    """Return what to use for a kind of data, a line."""
    ranked = ranking(evidence, kind)
    ours = next((pair for pair in ranked if pair[1].ours), None)
    theirs = next((pair for pair in ranked if not pair[1].ours), None)
    if ours is None or theirs is None:
        return f"- **{kind.name}**: not measured yet."
    gain = ours[0] - theirs[0]
    if gain > _CLOSE:
        told = f"use {ours[1].name}: {gain:.1f} points above {theirs[1].name}"
    elif gain >= -_CLOSE:
        told = f"{ours[1].name} and {theirs[1].name} are as good ({gain:+.1f} points)"
    else:
        told = f"use {theirs[1].name}: {ours[1].name}, Laconic's best, is {-gain:.1f} points below"
    ratios = _ratios(evidence, kind)
    faster = max(
        (ratios[each.name][0] for each in FAMILIES if each.ours and each.name in ratios),
        default=None,
    )
    cost = f"; grammars train up to {faster:.1f} times as fast as characters" if faster else ""
    return f"- **{kind.name}**: {told}{cost}."


def winners(evidence: Evidence, kinds: Iterable[Kind]) -> list[str]:
    """Return the table of what wins in accuracy, time and memory."""
    rows = []
    for kind in kinds:
        ranked = ranking(evidence, kind)
        cells = [
            kind.name,
            ", ".join(kind.sets) if len(kind.sets) < 4 else f"{len(kind.sets)} sets",
        ]
        if len(ranked) > 1:
            (best, first), (next_, second) = ranked[:2]
            cells += [f"{first.name}, {best:.1f} %", f"{second.name}, −{best - next_:.1f}"]
        else:
            cells += [MISSING] * 2
        cells.append(_seconds(evidence, kind))
        ratios = _ratios(evidence, kind)
        for place, form in ((0, "{:.1f} × as fast"), (1, "{:.1f} × less memory")):
            told = MISSING
            if ratios:
                name = max(ratios, key=lambda each: ratios[each][place])
                told = f"{name}, {form.format(ratios[name][place])}"
            cells.append(told)
        rows.append(cells)
    heads = ["sets", "accuracy", "next", "linear model, s on a CPU", "time on a GPU", "memory"]
    return table(["", *heads], rows)


def _seconds(evidence: Evidence, kind: Kind) -> str:
    """Return how long the linear models take, from the fastest to the slowest, all of it."""
    found = [
        mean(row["seconds"] for row in rows)
        for name in kind.sets
        for method in LINEAR.methods
        if (rows := evidence.all[0].of(name, method))
    ]
    return f"{min(found):,.0f}–{max(found):,.0f}" if found else MISSING


def _ratios(evidence: Evidence, kind: Kind) -> Mapping[str, tuple[float, float]]:
    """Return the most documents a second and least memory of families, over those of characters."""
    plain = next(family for family in FAMILIES if family.methods == ("characters",))
    found: dict[str, list[tuple[float, float]]] = {}
    for name in kind.sets:
        base = next(evidence.cost(name, plain), None)
        for family in FAMILIES if base else ():
            points = list(evidence.cost(name, family))
            if base and points:
                fastest, least = max(p[0] for p in points), min(p[1] for p in points)
                found.setdefault(family.name, []).append((fastest / base[0], base[1] / least))
    return {
        name: (mean(p[0] for p in some), mean(p[1] for p in some)) for name, some in found.items()
    }


def accuracies(evidence: Evidence, kinds: Sequence[Kind]) -> list[str]:
    """Return the table of accuracies, a row for each family."""
    best = {kind.name: max((a for a, _ in ranking(evidence, kind)), default=0.0) for kind in kinds}
    rows = []
    for family in FAMILIES:
        cells = [family.name]
        for kind in kinds:
            found = evidence.of_kind(kind, family)
            told = MISSING if found is None else f"{found:.2f}"
            cells.append(f"**{told}**" if found == best[kind.name] else told)
        rows.append(cells)
    return table(["", *(kind.name for kind in kinds)], rows)


def on_a_laptop(rows: Sequence[Figures]) -> list[str]:
    """Return what the default and scikit-learn make of a file on a CPU, and how long they take."""
    shown = [row for row in rows if row["name"] != first_minute.ESTIMATOR]
    if not shown:
        return ["Not measured yet."]
    sets = first_minute.by_set(shown).values()
    gains = [100 * (of["ours"]["accuracy"] - of["rival"]["accuracy"]) for of in sets]
    times = [of["ours"]["seconds"] / of["rival"]["seconds"] for of in sets]
    slower = sum(each > 1 for each in times)
    return [
        f"On {len(sets)} small sets, `laconic train` with nothing said is {mean(gains):+.1f} points "
        f"above the better of two linear models of scikit-learn, from {min(gains):+.1f} to "
        f"{max(gains):+.1f}, and takes longer on {slower} of them: {min(times):.1f} to "
        f"{max(times):.1f} times as long ([the table](first_minute.md))."
    ]


def _held_out(rows: Sequence[Figures]) -> float:
    """Return the mean accuracy on what was held out, of trained rows and of rivals."""
    best = [
        max(row["epochs"]["valid_accuracy"], default=0.0)
        if "epochs" in row
        else row["config"]["valid_accuracy"]
        for row in rows
    ]
    return float(mean(best))


if __name__ == "__main__":
    write_pages({PAGE: page(Evidence())}, check="--check" in sys.argv[1:])
