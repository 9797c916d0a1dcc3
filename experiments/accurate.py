"""The preset `accurate` on a data set, with codecs side by side, and linear models beside them.

    python -m experiments.accurate run --device cuda --codecs repair none --seeds 0 1 2
    python -m experiments.accurate ngrams          # a linear model of up to seven letters
    python -m experiments.accurate words           # TF-IDF of 1-2-grams, logistic regression
    python -m experiments.accurate report          # docs/accuracy.md

Finished rows are skipped. Times are those of rows that had the device to themselves (one process).
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from experiments.paper.corpora import documents
from experiments.paper.grid import Group, Method, Row
from experiments.paper.results import about, path_of, rows_in, write
from laconic.training.config import PRESETS

RESULTS = Path(__file__).parent / "results" / "accurate"
REPORT = Path(__file__).parent.parent / "docs" / "accuracy.md"
WORDS, NGRAMS = "words", "ngrams"
COUNTING = {"model": "ngram", "ngrams": 7, "phrases": 0, "epochs": 3}


def main(arguments: list[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.accurate",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["run", "ngrams", "words", "report"])
    parser.add_argument("--dataset", default="imdb")
    parser.add_argument("--codecs", nargs="+", default=["repair", "none"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--processes", type=int, default=1, help="that share the device just now")
    given = parser.parse_args(arguments)
    if given.command == "run":
        run(given.dataset, given.codecs, given.seeds, given.device, given.results, given.processes)
    elif given.command == "ngrams":
        ngrams(given.dataset, given.seeds, given.device, given.results)
    elif given.command == "words":
        words(given.dataset, given.results)
    else:
        REPORT.write_text(report(given.results), "utf-8")


def run(
    dataset: str, codecs: list[str], seeds: list[int], device: str, results: Path, processes: int
) -> None:
    """Train and test the preset, one row after the other."""
    from experiments.paper.training import run_rows

    group = Group("accurate", "The preset accurate", (dataset,), "accurate", {}, ())
    composer = PRESETS["accurate"]["composer"]
    rows = [
        Row(1, dataset, Method(f"accurate-{codec}", codec, composer, "lstm"), seed, group)
        for seed in seeds
        for codec in codecs
    ]
    run_rows(rows, device, results, processes=processes, resumable=False)


def ngrams(dataset: str, seeds: list[int], device: str, results: Path) -> None:
    """Train and test a linear model of n-grams, and nothing that reads sequences."""
    from experiments.paper.training import run_rows

    group = Group(NGRAMS, "N-grams alone", (dataset,), "accurate", COUNTING, ())
    method = Method(NGRAMS, "repair", PRESETS["accurate"]["composer"], "lstm", "ngram")
    rows = [Row(1, dataset, method, seed, group) for seed in seeds]
    run_rows(rows, device, results, resumable=False)


def words(dataset: str, results: Path) -> None:
    """Fit words and pairs of words, TF-IDF, logistic regression, on all training documents."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    began = time.perf_counter()
    train, test = documents(dataset)
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    model = LogisticRegression(C=30, max_iter=1000)
    model.fit(vectorizer.fit_transform(train.texts), train.labels)
    accuracy = float(model.score(vectorizer.transform(test.texts), test.labels))
    figures = {
        "dataset": dataset,
        "method": WORDS,
        "seed": 0,
        "about": about("experiments.accurate"),
        "config": {"features": len(vectorizer.vocabulary_), "C": 30},
        "documents": {"train": len(train.texts), "test": len(test.texts)},
        "test": {"accuracy": accuracy},
        "seconds": time.perf_counter() - began,
    }
    write(path_of(results, dataset, WORDS, 0), figures)


def report(results: Path, dataset: str = "imdb") -> str:
    """Return the page: one table, the ratios that matter, and what was tried."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for row in rows_in(results):
        if row["dataset"] != dataset:
            continue
        rows.setdefault(row["method"], []).append(row)
    names = {
        "accurate-repair": "`accurate`, Re-Pair",
        "accurate-none": '`accurate`, `codec="none"` (characters)',
        NGRAMS: "`--model ngram --ngrams 7 --phrases 0`",
        WORDS: "word 1-2-grams, TF-IDF, logistic regression",
    }
    lines = [
        f"# The preset `accurate` on {dataset}",
        "",
        "Generated by `python -m experiments.accurate report` from experiments/results/accurate.",
        "",
        "All of imdb's own split: 25,000 documents train, of which a tenth chooses the epoch, and "
        "25,000 test. The first two rows differ in the codec and in nothing else; the others read "
        "no sequences. Accuracies are means over seeds ± their standard deviation; seconds (all "
        "epochs, validation included) and memory are those of rows that had a GPU to "
        "themselves. What is not measured yet is –.",
        "",
        "| | test accuracy % | seeds | seconds of training | peak memory MB |",
        "|---|--:|--:|--:|--:|",
        *(_line(name, rows.get(method, [])) for method, name in names.items()),
        "",
    ]
    notes = Path(__file__).parent / "accurate.md"
    return "\n".join(lines) + "\n" + notes.read_text("utf-8")


def _line(name: str, rows: list[dict[str, Any]]) -> str:
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
