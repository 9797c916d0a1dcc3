"""Which features linear models count, tried on held-out parts of training sets; no test is seen.

    python -m experiments.counted run         # on all processors; about half an hour on two
    python -m experiments.counted report      # docs/counted.md from what came out

Automatic training chooses among few kinds of features (laconic.training.linear), each plainly and
weighed by how it tells classes apart (laconic.training.telling). These are tried here beside
others, and with other weights. Trials that are done are skipped.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean
from unittest.mock import patch

import numpy as np
import numpy.typing as npt

from benchmarks.command import write_pages
from experiments.paper.corpora import CACHE, training_corpus
from experiments.paper.results import Figures, about, add_rows, find_row, rows_in
from experiments.paper.table import table
from laconic.training import telling
from laconic.training.blend import scaled
from laconic.training.holdout import divide, targets_of
from laconic.training.linear import CANDIDATES, OF_FEW_LETTERS, Features, compared
from laconic.training.settings import TrainingConfig

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


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, or write the page."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.counted",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=("run", "report"))
    parser.add_argument("--sets", nargs="+", default=[*OTHERS, *FEW_LETTERS])
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--cache", type=Path, default=CACHE)
    parser.add_argument("--check", action="store_true", help="only say if the page is up to date")
    given = parser.parse_args(arguments)
    if given.command == "report":
        write_pages({PAGE: page(given.results)}, given.check)
        return
    for seed in SEEDS:
        for dataset in given.sets:
            if find_row(given.results, dataset, name_of(kinds_of(dataset)[0]), seed) is None:
                add_rows(given.results, *trial(dataset, seed, given.cache))
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


def trial(dataset: str, seed: int, cache: Path = CACHE) -> Iterator[Figures]:
    """Yield what held-out documents say of all kinds, and of other weights of the best of them."""
    corpus = training_corpus(dataset, "repair+auto", LONGEST, cache, few=DOCUMENTS)
    config = TrainingConfig(seed=seed, holdout=HELD_OUT, task="classification")
    parts = divide(corpus, None, None, config)
    assert parts.validation is not None
    task, right = parts.task, targets_of(parts.validation)
    given, machine = (parts.training, parts.validation, task), about()

    def row(method: str, kind: Features, outputs: npt.NDArray[np.float64]) -> Figures:
        accuracy = task.evaluate(outputs, right)["accuracy"]
        held_out = {"accuracy": accuracy, "loss": scaled(task, outputs, right).loss}
        key = {"dataset": dataset, "method": method, "seed": seed, "features": name_of(kind)}
        return key | {"documents": len(corpus), "held_out": held_out, "about": machine}

    said = compared(*given, kinds_of(dataset))
    yield from (row(name_of(kind), kind, outputs) for kind, outputs in said.items())
    best = min(kinds_of(dataset), key=lambda kind: scaled(task, said[kind], right).loss)
    for unseen, plain in WEIGHTS:
        with patch.multiple(telling, _UNSEEN=unseen, _PLAIN=plain):
            outputs = compared(*given, [best])[best._replace(told_apart=True)]
        yield row(weights_name(unseen, plain), best, outputs)


def page(results: Path) -> str:
    """Return docs/counted.md."""
    losses: dict[tuple[str, str], list[float]] = {}
    for row in rows_in(results):
        losses.setdefault((row["dataset"], row["method"]), []).append(row["held_out"]["loss"])
    if not losses:
        return f"{INTRODUCTION}\nNot run yet.\n"
    means = {key: mean(some) for key, some in losses.items()}
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
    return "\n".join(parts)


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
