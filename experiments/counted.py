"""Which features linear models count, tried on held-out parts of training sets; no test is seen.

    python -m experiments.counted run         # on all processors; about half an hour on two
    python -m experiments.counted report      # docs/counted.md from what came out

Automatic training chooses among few kinds of features (laconic.training.linear), each plainly and
weighed by how it tells classes apart (laconic.training.telling). These are tried here beside
others, with other weights, and with fits that end sooner or later. Trials that are done are
skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from statistics import mean
from typing import TypeAlias
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.command import write_pages
from experiments.paper.corpora import CACHE, training_corpus
from experiments.paper.results import Figures, about, add_rows, find_row, rows_in
from experiments.paper.table import table
from experiments.trials import parse
from laconic.training import linear, telling
from laconic.training.blend import scaled
from laconic.training.holdout import divide, targets_of
from laconic.training.linear import CANDIDATES, OF_FEW_LETTERS, Features, compared
from laconic.training.settings import TrainingConfig

Outputs: TypeAlias = npt.NDArray[np.float64]
RESULTS = Path(__file__).parent / "results" / "counted"
PAGE = Path("docs") / "counted.md"
FEW_LETTERS = ("H3", "H4", "H3K9ac", "H3K14ac", "H3K4me1", "H3K36me3", "H3K79me3")
OTHERS = ("yelp_polarity_part", "imdb", "sogou_pinyin", "adfa_ld")
SEEDS = (0, 1)
DOCUMENTS, LONGEST, HELD_OUT = 2_000, 4_000, 0.3
# Beside those that automatic training knows: shorter and longer ones, and more runs.
MORE = (
    Features(4, 0, "log"),
    Features(6, 0, "plain"),
    Features(5, 4, "log"),
    Features(7, 4, "log"),
)
MORE_OF_FEW = (
    Features(5, 0, "log"),
    Features(8, 0, "log"),
    Features(8, 0, "plain"),
    Features(10, 0, "plain"),
)
CLOSENESS = (1e-2, 1e-3, 3e-4, 1e-4)  # _CLOSELY
WEIGHTS = ((1.0, 1.0), (1.0, 2.0), (1.0, 4.0), (0.3, 2.0), (4.0, 2.0))  # _UNSEEN and _PLAIN
INTRODUCTION = f"""# What is counted

Written by `make docs` from `experiments/results/counted`. Automatic training lets held-out documents choose what its linear model counts, among a few kinds
of features. Which ones these are, and how n-grams weigh, was chosen here: on {DOCUMENTS:,} training documents of a set at random, cut at {LONGEST:,} letters, of
which {HELD_OUT:.0%} are held out, twice; no test is looked at. The figures are losses of held-out documents, calibrated, at the best strength; *told apart*: n-grams weigh
more that [tell classes apart](training.md). **Bold**: the least of a set. *Known*: automatic training tries it.

```
python -m experiments.counted run
```
"""
WEIGHED = """## How n-grams weigh

A column's weight is its ratio between classes and some of the mean ratio (*plain*), after each class got some documents with the column and without it (*unseen*); see
`laconic.training.telling`. Of the features that are best plainly, where told apart they are better:
"""
ENDED = """## When fits end

A fit ends where the gradient of its loss is so small a part of what it is at the best bias alone. Of the features that are best plainly, the better way:
"""


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, or write the page."""
    given = parse(arguments, "counted", __doc__, (*OTHERS, *FEW_LETTERS), RESULTS)
    if given.command == "report":
        write_pages({PAGE: page(given.results)}, given.check)
        return
    for seed in SEEDS:
        for dataset in given.sets:
            if find_row(given.results, dataset, name_of(kinds_of(dataset)[0]), seed) is None:
                add_rows(given.results, *trial(dataset, seed, given.cache))
            if find_row(given.results, dataset, closeness_name(CLOSENESS[0]), seed) is None:
                best = best_kind(given.results, dataset, seed)
                add_rows(given.results, *closeness_trial(dataset, seed, best, given.cache))
            print(f"{dataset}, seed {seed}", file=sys.stderr, flush=True)


def kinds_of(dataset: str) -> tuple[Features, ...]:
    """Return what is tried on a set, what automatic training knows first."""
    few = dataset in FEW_LETTERS
    every = (*OF_FEW_LETTERS, *MORE_OF_FEW) if few else (*CANDIDATES, *MORE)
    return tuple(kind._replace(told_apart=False) for kind in every)


def name_of(kind: Features) -> str:
    """Return the name of a trial, which is its method's."""
    runs = f" and runs of {kind.shared}" if kind.shared else ""
    return f"{kind.ngrams} letters{runs}, {kind.counts}{', told apart' * kind.told_apart}"


def weights_name(unseen: float, plain: float) -> str:
    """Return the name of trials of other weights than telling's own."""
    return f"told apart by {unseen:g} unseen, {plain:g} plain"


def closeness_name(closeness: float) -> str:
    """Return the name of trials of fits that end there."""
    return f"until {closeness:g}"


class Trial:
    """Documents of a set's training part, of which some are held out; no test is looked at."""

    def __init__(self, dataset: str, seed: int, cache: Path) -> None:
        corpus = training_corpus(dataset, "repair+auto", LONGEST, cache, few=DOCUMENTS)
        config = TrainingConfig(seed=seed, holdout=HELD_OUT, task="classification")
        parts = divide(corpus, None, None, config)
        assert parts.validation is not None
        self.given = parts.training, parts.validation, parts.task
        self._task, self._right = parts.task, targets_of(parts.validation)
        self._key = {"dataset": dataset, "seed": seed, "documents": len(corpus), "about": about()}

    def loss(self, outputs: Outputs) -> float:
        """Return the mean loss of held-out documents, calibrated."""
        return scaled(self._task, outputs, self._right).loss

    def row(self, method: str, kind: Features, outputs: Outputs) -> Figures:
        """Return the row of a method, by what it says of held-out documents."""
        figures = self._task.evaluate(outputs, self._right)
        held_out = {name: figures[name] for name in ("accuracy", "macro_f1")}
        told = {"method": method, "features": name_of(kind)}
        return self._key | told | {"held_out": held_out | {"loss": self.loss(outputs)}}


def trial(dataset: str, seed: int, cache: Path = CACHE) -> Iterator[Figures]:
    """Yield what held-out documents say of all kinds, and of other weights of the best of them."""
    made = Trial(dataset, seed, cache)
    said = compared(*made.given, kinds_of(dataset))
    yield from (made.row(name_of(kind), kind, outputs) for kind, outputs in said.items())
    best = min(kinds_of(dataset), key=lambda kind: made.loss(said[kind]))
    for unseen, plain in WEIGHTS:
        with patch.multiple(telling, _UNSEEN=unseen, _PLAIN=plain):
            outputs = compared(*made.given, [best])[best._replace(told_apart=True)]
        yield made.row(weights_name(unseen, plain), best, outputs)


def best_kind(results: Path, dataset: str, seed: int) -> Features:
    """Return the kind that was best plainly, by the rows of its trial."""

    def loss(kind: Features) -> float:
        row = find_row(results, dataset, name_of(kind), seed)
        return float(row["held_out"]["loss"]) if row else inf

    return min(kinds_of(dataset), key=loss)


def closeness_trial(
    dataset: str, seed: int, best: Features, cache: Path = CACHE
) -> Iterator[Figures]:
    """Yield what held-out documents say of fits that end sooner and later, of the best kind."""
    made = Trial(dataset, seed, cache)
    for closeness in CLOSENESS:
        said = compared(*made.given, [best], closeness)
        kind = min(said, key=lambda kind: made.loss(said[kind]))
        yield made.row(closeness_name(closeness), kind, said[kind])


def page(results: Path) -> str:
    """Return docs/counted.md."""
    rows = list(rows_in(results))
    if not rows:
        return f"{INTRODUCTION}\nNot run yet.\n"
    means = _means(rows, "loss")
    parts = [INTRODUCTION]
    families = (("Few letters: DNA", FEW_LETTERS), ("Text and traces", OTHERS))
    for title, sets in families:
        there = [name for name in sets if (name, name_of(kinds_of(name)[0])) in means]
        if there:
            kinds = [kind for each in kinds_of(sets[0]) for kind in _both_ways(each)]
            known = OF_FEW_LETTERS if sets is FEW_LETTERS else CANDIDATES
            either = {way for kind in known for way in _both_ways(kind)}
            names = {name_of(kind): "known" if kind in either else "" for kind in kinds}
            parts += [f"## {title}\n", "\n".join(_table(means, there, names)) + "\n"]
    names = {weights_name(*each): "chosen" if each == telling_now() else "" for each in WEIGHTS}
    there = [name for name in OTHERS if (name, next(iter(names))) in means]
    parts += [WEIGHED, "\n".join(_table(means, there, names)) + "\n"]
    ended = {
        closeness_name(each): "chosen" if each == linear._CLOSELY else "" for each in CLOSENESS
    }
    there = [name for name in (*OTHERS, *FEW_LETTERS) if (name, next(iter(ended))) in means]
    if there:
        parts += [ENDED, "\n".join(_table(means, there, ended)) + "\n"]
        others = {name: _means(rows, name) for name in ("accuracy", "macro_f1")}
        told = [
            [
                each,
                *(f"{100 * mean(found[k, each] for k in there):.2f}" for found in others.values()),
            ]
            for each in ended
        ]
        parts.append("\n".join(table(["", "accuracy %, mean", "macro-F1 %, mean"], told)) + "\n")
    return "\n".join(parts)


def _means(rows: Sequence[Figures], name: str) -> dict[tuple[str, str], float]:
    """Return the mean of a figure over seeds, by set and method, of rows that have it."""
    found: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if name in row["held_out"]:
            found.setdefault((row["dataset"], row["method"]), []).append(row["held_out"][name])
    return {key: mean(some) for key, some in found.items()}


def telling_now() -> tuple[float, float]:
    """Return the weights that automatic training has."""
    return telling._UNSEEN, telling._PLAIN


def _both_ways(kind: Features) -> tuple[Features, Features]:
    return kind, kind._replace(told_apart=not kind.told_apart)


def _table(
    means: Mapping[tuple[str, str], float], sets: Sequence[str], names: Mapping[str, str]
) -> list[str]:
    rows = []
    least = {name: min(means[name, each] for each in names) for name in sets}
    for each, note in names.items():
        cells = [f"{means[name, each]:.4f}" for name in sets]
        cells = [
            f"**{cell}**" if means[name, each] == least[name] else cell
            for name, cell in zip(sets, cells, strict=True)
        ]
        over = mean(means[name, each] - least[name] for name in sets)
        rows.append([each, note, *cells, f"+{over:.4f}"])
    return table(["", "", *sets, "above the least, mean"], rows)


if __name__ == "__main__":
    main()
