"""How sure a gain has to be for a view to speak, tried on held-out parts of training sets.

    python -m experiments.blended run         # on all processors; an hour on two
    python -m experiments.blended report      # docs/blended.md from what came out

Both views of automatic training learn from some training documents of a set. Of the others, which
neither has seen, some at random tell the blend, and the rest what that is worth; no test is looked
at. Trials that are done are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.command import write_pages
from experiments.paper.corpora import CACHE, training_corpus
from experiments.paper.results import Figures, about, add_rows, find_row, rows_in
from experiments.paper.table import table
from experiments.trials import parse
from laconic.tasks import Task
from laconic.training.blend import SURE, Blend, Mixtures, mixtures
from laconic.training.holdout import divide, targets_of
from laconic.training.linear import fit_linear
from laconic.training.loop import train
from laconic.training.settings import resolve
from laconic.training.sizing import enough_epochs
from laconic.training.validation import forward_pass

RESULTS = Path(__file__).parent / "results" / "blended"
PAGE = Path("docs") / "blended.md"
SETS = (
    *("yelp_polarity_part", "imdb", "sogou_pinyin", "adfa_ld"),
    *("H3", "H4", "H3K9ac", "H3K14ac", "H3K4me1", "H3K36me3", "H3K79me3"),
)
SEEDS = (0, 1)
DOCUMENTS, LONGEST, HELD_OUT, MOST_EPOCHS = 2_500, 4_000, 0.4, 20
TOLD_BY, DRAWS = (100, 300, 480), 40  # documents that tell the blend, and how often they are drawn
NOTICEABLY = 0.002
SURES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
INTRODUCTION = f"""# How views are blended

Written by `make docs` from `experiments/results/blended`. Automatic training [blends](training.md) what counting and reading say. Counting speaks alone, or reading if it is
better for sure; the other view gets the share that for sure lowers the loss of held-out documents most. *For sure* means that the mean gain less so many standard
errors is above 0: else a few documents would decide by chance. How many was chosen here, on {DOCUMENTS:,} training documents of a set at random, cut at {LONGEST:,} letters. Both views learn
from {1 - HELD_OUT:.0%} of them (reading with the preset `fast`, at most {MOST_EPOCHS} epochs); of the rest, {", ".join(map(str, TOLD_BY[:-1]))} or {TOLD_BY[-1]} tell the blend, and all others what it is worth, {DRAWS} times each; no test is
looked at. *Above*: accuracy above the better view's, in points, mean over sets; *worst set*: of the set where that is least; *worse*: in how many of a hundred blends it is
more than {100 * NOTICEABLY:.1f} points below; *exchanged*: above, if reading is taken for counting and counting for reading, as where counting is the worse view. **Bold**: the best.
Accuracy hardly depends on it; what does is how often a blend is worse than the better
view by itself, and what it costs where that is not counting. *Chosen*: the least that makes blends worse at most half as often as 0 does, in the mean of all tables.

```
python -m experiments.blended run
```
"""


class Views(NamedTuple):
    """What two views say of documents that neither has seen, float [N, K], and what is right."""

    counting: npt.NDArray[np.float64]
    reading: npt.NDArray[np.float64]
    right: npt.NDArray[np.int64]

    def some(self, rows: npt.NDArray[np.int64]) -> Views:
        """Return what they say of some documents."""
        return Views(self.counting[rows], self.reading[rows], self.right[rows])


class Worth(NamedTuple):
    """What a blend is worth to documents that did not tell it; what is above is in accuracy."""

    loss: float
    accuracy: float
    above: float
    worse: float
    exchanged: float


def main(arguments: list[str] | None = None) -> None:
    """Run what is missing, or write the page."""
    given = parse(arguments, "blended", __doc__, SETS, RESULTS)
    if given.command == "report":
        write_pages({PAGE: page(given.results)}, given.check)
        return
    for seed in SEEDS:
        for dataset in given.sets:
            if find_row(given.results, dataset, name_of(SURES[-1]), seed) is None:
                add_rows(given.results, *trial(dataset, seed, given.cache))
                print(f"{dataset}, seed {seed}", file=sys.stderr, flush=True)


def name_of(sure: float) -> str:
    """Return the name of trials, which is their method's."""
    return f"{sure:g} × standard error"


def trial(dataset: str, seed: int, cache: Path = CACHE) -> Iterator[Figures]:
    """Yield what blends are worth that are as sure as each of SURES."""
    task, views = views_of(dataset, seed, cache)
    key = {"dataset": dataset, "seed": seed, "documents": len(views.right), "about": about()}
    said = {"counting": views.counting, "reading": views.reading}
    alone = {name: float(_hits(task, each, views.right).mean()) for name, each in said.items()}
    found = {f"{size}": worth(task, views, size, seed) for size in TOLD_BY}
    for sure in SURES:
        told = {size: of[sure] for size, of in found.items()}
        yield key | {"method": name_of(sure), "accuracy": alone, "held_out": told}


def views_of(dataset: str, seed: int, cache: Path = CACHE) -> tuple[Task, Views]:
    """Return what views say that learned from some of a set's training documents, of others."""
    corpus = training_corpus(dataset, "repair+auto", LONGEST, cache, few=DOCUMENTS)
    chosen = {"seed": seed, "holdout": HELD_OUT, "task": "classification", "device": "cpu"}
    config = resolve("fast", {**chosen, "keep": "last"})
    parts = divide(corpus, None, None, config)
    training, others, task = parts.training, parts.validation, parts.task
    assert others is not None
    kept = cache / "views" / f"{dataset}-{seed}.npz"  # for whoever tries another blend
    if not kept.exists():
        counting = fit_linear(training, others, task, refit=False, seed=seed)
        epochs = min(MOST_EPOCHS, enough_epochs(len(training), config.epochs))
        reading = train(training, replace(config, epochs=epochs), task=task, valid=others)
        said = forward_pass(reading.model, config).outputs(others.select(counting.rows))
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.savez(kept, counting=counting.held_out, reading=said, rows=counting.rows)
    with np.load(kept) as found:
        right = targets_of(others)[found["rows"]]
        return task, Views(found["counting"], found["reading"], right)


def worth(task: Task, views: Views, size: int, seed: int) -> dict[float, Figures]:
    """Return what blends are worth to other documents, in the mean, where so many tell them."""
    rng, found = np.random.default_rng([seed, size]), {sure: list[Worth]() for sure in SURES}
    for _ in range(DRAWS):
        order = rng.permutation(len(views.right))
        tell, ask = (views.some(rows) for rows in np.split(order, [size]))
        mixed = mixtures(task, *tell)
        factors = [(c, r) for r, c in mixed.factors[::-1]]
        turned = Mixtures(factors, mixed.losses.flip(0), mixed.groups)
        for sure, so_far in found.items():
            loss, accuracy, above = _worth(task, mixed.blend(sure), ask)
            *_, exchanged = _worth(task, turned.blend(sure), Views(ask[1], ask[0], ask[2]))
            so_far.append(Worth(loss, accuracy, above, above < -NOTICEABLY, exchanged))
    return {sure: Worth(*np.mean(some, 0).tolist())._asdict() for sure, some in found.items()}


def _worth(task: Task, blend: Blend, ask: Views) -> tuple[float, float, float]:
    """Return loss, accuracy, and how much that is above the better view's."""
    said = blend.counting * ask.counting + blend.reading * ask.reading
    figures = task.evaluate(said, ask.right)
    better = max(_hits(task, each, ask.right).mean() for each in (ask.counting, ask.reading))
    return figures["loss"], figures["accuracy"], figures["accuracy"] - better


def _hits(
    task: Task, outputs: npt.NDArray[np.float64], right: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    hits: npt.NDArray[np.bool_] = np.asarray(task.decide(outputs)) == right
    return hits


def page(results: Path) -> str:
    """Return docs/blended.md."""
    found = means(rows_in(results))
    if not found:
        return f"{INTRODUCTION}\nNot run yet.\n"
    parts = [INTRODUCTION]
    for size in map(str, TOLD_BY):
        parts += [f"## {size} documents tell the blend\n", "\n".join(_table(found, size)) + "\n"]
    return "\n".join(parts)


def means(rows: Iterator[Figures]) -> dict[str, dict[str, dict[str, Figures]]]:
    """Return figures by method, size and set, in the mean over seeds."""
    found: dict[str, dict[str, dict[str, list[Figures]]]] = {}
    for row in rows:
        for size, figures in row["held_out"].items():
            of = found.setdefault(row["method"], {}).setdefault(size, {})
            of.setdefault(row["dataset"], []).append(figures)
    return {
        sure: {
            size: {
                dataset: {name: mean(each[name] for each in some) for name in some[0]}
                for dataset, some in by_set.items()
            }
            for size, by_set in by_size.items()
        }
        for sure, by_size in found.items()
    }


def _table(found: Mapping[str, Mapping[str, Mapping[str, Figures]]], size: str) -> list[str]:
    columns: dict[str, Callable[[list[Figures]], float]] = {
        "loss": lambda of: mean(each["loss"] for each in of),
        "accuracy %": lambda of: 100 * mean(each["accuracy"] for each in of),
        "above": lambda of: 100 * mean(each["above"] for each in of),
        "worst set": lambda of: 100 * min(each["above"] for each in of),
        "worse": lambda of: 100 * mean(each["worse"] for each in of),
        "exchanged": lambda of: 100 * mean(each["exchanged"] for each in of),
    }
    forms = (".4f", ".2f", "+.2f", "+.2f", ".0f", "+.2f")
    cells: dict[str, list[str]] = {name_of(sure): [] for sure in SURES}
    for (name, figure), form in zip(columns.items(), forms, strict=True):
        values = {method: figure(list(found[method][size].values())) for method in cells}
        best = (min if name in ("loss", "worse") else max)(values.values())
        for method, value in values.items():
            shown = f"{value:{form}}"
            cells[method].append(f"**{shown}**" if shown == f"{best:{form}}" else shown)
    notes = {method: "chosen" if method == name_of(SURE) else "" for method in cells}
    return table(["", "", *columns], [[m, notes[m], *some] for m, some in cells.items()])


def chosen(found: Mapping[str, Mapping[str, Mapping[str, Figures]]]) -> float:
    """Return how sure a gain has to be, as trials say."""
    worse = {
        sure: mean(each["worse"] for of in found[name_of(sure)].values() for each in of.values())
        for sure in SURES
    }
    return next(sure for sure in SURES if worse[sure] <= worse[SURES[0]] / 2)


if __name__ == "__main__":
    main()
