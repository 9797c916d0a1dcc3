"""The presets `accurate` and `both` on a data set, codecs side by side, linear models beside them.

    python -m experiments.accurate run --device cuda --codecs repair none --seeds 0 1 2
    python -m experiments.accurate run --device cuda --models both      # counts n-grams, too
    python -m experiments.accurate words           # TF-IDF of 1-2-grams, logistic regression
    python -m experiments.accurate report          # docs/accuracy.md

Finished rows are skipped. Times are those of rows that had the device to themselves (one process).
Rows of the grid of experiments.paper that have the settings of `both` are reported, too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

from experiments.paper.corpora import documents
from experiments.paper.grid import MODELS, Group, Method, Row
from experiments.paper.results import RESULTS as PAPER
from experiments.paper.results import Figures, about, add_rows, rows_in
from laconic.training.settings import resolve

RESULTS = Path(__file__).parent / "results" / "accurate"
REPORT = Path(__file__).parent.parent / "docs" / "accuracy.md"
WORDS = "words"


def main(arguments: list[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accurate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["run", "words", "report"])
    parser.add_argument("--dataset", default="imdb")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=["sequence"])
    parser.add_argument("--codecs", nargs="+", default=["repair", "none"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=1, help="that share the device just now")
    given = parser.parse_args(arguments)
    if given.command == "run":
        rows = rows_of(given.dataset, given.models, given.codecs, given.seeds)
        run(rows, given.device, given.results, given.processes)
    elif given.command == "words":
        words(given.dataset, given.results)
    else:
        REPORT.write_text(report(given.results), "utf-8")


def rows_of(dataset: str, models: list[str], codecs: list[str], seeds: list[int]) -> list[Row]:
    """Return rows of these models and codecs; the preset both without counting is accurate."""
    group = Group("accurate", "The presets accurate and both", (dataset,), "both", {}, ())
    return [
        Row(1, dataset, Method.named(f"{model}-{codec}"), seed, group)
        for seed in seeds
        for model in models
        for codec in codecs
    ]


def run(rows: list[Row], device: str, results: Path, processes: int = 1) -> None:
    """Train and test, one row after the other."""
    from experiments.paper.training import run_rows

    run_rows(rows, device, results, processes=processes, resumable=False)


def words(dataset: str, results: Path) -> None:
    """Fit words and pairs of words, TF-IDF, logistic regression, on all training documents."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    began = time.perf_counter()
    train, test = documents(dataset)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    model = LogisticRegression(C=30, max_iter=1000)
    model.fit(vectorizer.fit_transform(train.documents), train.labels)
    accuracy = float(model.score(vectorizer.transform(test.documents), test.labels))
    figures = {
        "dataset": dataset,
        "method": WORDS,
        "seed": 0,
        "about": about(),
        "config": {"features": len(vectorizer.vocabulary_), "C": 30},
        "documents": {"train": len(train), "test": len(test)},
        "test": {"accuracy": accuracy},
        "seconds": time.perf_counter() - began,
    }
    add_rows(results, figures)


def report(results: Path, dataset: str = "imdb", paper: Path = PAPER) -> str:
    """Return the page: one table, the ratios that matter, and what was tried."""
    rows: dict[str, list[Figures]] = {}
    for row in _rows(results, paper):
        known = rows.setdefault(row["method"], [])
        if row["dataset"] == dataset and row["seed"] not in [each["seed"] for each in known]:
            known.append(row)
    names = {
        "sequence-repair": "`accurate`, Re-Pair",
        "sequence-none": '`accurate`, `codec="none"` (characters)',
        "both-repair": "`both`, Re-Pair",
        "both-none": '`both`, `codec="none"` (characters)',
        "ngram-repair": "`--preset both --model ngram`: counts only",
        WORDS: "word 1-2-grams, TF-IDF, logistic regression",
    }
    lines = [
        f"# The presets `accurate` and `both` on {dataset}",
        "",
        "Generated by `python -m experiments.accurate report` from experiments/results/accurate, "
        "and from rows of experiments/results/paper that have the same settings.",
        "",
        "All of imdb's own split: 25,000 documents train, of which a tenth chooses the epoch, and "
        "25,000 test. The two rows of a preset differ in the codec and in nothing else; the last "
        "two rows read no sequences. Accuracies are means over seeds ± their standard deviation; "
        "seconds (all epochs, validation included) and memory are those of rows that had a GPU to "
        "themselves. What is not measured yet is –.",
        "",
        "| | test accuracy % | seeds | seconds of training | peak memory MB |",
        "|---|--:|--:|--:|--:|",
        *(_line(name, rows.get(method, [])) for method, name in names.items()),
        "",
    ]
    notes = Path(__file__).parent / "accurate.md"
    return "\n".join(lines) + "\n" + notes.read_text("utf-8")


def _rows(results: Path, paper: Path) -> Iterator[Figures]:
    """Yield the results, and then those of the paper's grid that have the settings of `both`."""
    yield from rows_in(results)
    preset = resolve("both", {}).to_json()
    for own in ("preset", "model", "task", "seed", "device"):
        del preset[own]
    for row in rows_in(paper):
        if row.get("model") not in MODELS:
            continue
        config = row["config"]
        if row["model"] != "both":
            config = {"view_loss": preset["view_loss"], **config}  # which one view has no need of
        if preset.items() <= config.items():
            yield row


def _line(name: str, rows: list[Figures]) -> str:
    accuracies = [100 * row["test"]["accuracy"] for row in rows]
    # A CPU's seconds and memory could not be compared with a GPU's.
    alone = [row for row in rows if row.get("processes") == 1 and row["config"]["device"] == "cuda"]
    cells = ["–"] * 4
    if accuracies:
        spread = f" ± {stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
        cells[:2] = f"{mean(accuracies):.2f}{spread}", str(len(accuracies))
    if alone:
        cells[2] = f"{mean(sum(row['epochs']['seconds']) for row in alone):.0f}"
        cells[3] = f"{mean(row['peak_memory_mb'] for row in alone):,.0f}"
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
