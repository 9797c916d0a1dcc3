"""The presets `accurate` and `both` on a data set, codecs side by side, linear models beside them.

    python -m experiments.accurate run --device cuda --codecs repair none --seeds 0 1 2
    python -m experiments.accurate run --device cuda --models both      # counts n-grams, too
    python -m experiments.accurate words           # TF-IDF of 1-2-grams, logistic regression
    python -m experiments.accurate report          # docs/accuracy.md

Finished rows are skipped. Times are those of rows that had the device to themselves (one process).
Rows of the grid experiments/both are reported, too: the preset over a rulebook, and on characters.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import mean

from benchmarks.command import write_pages
from experiments.paper.both import CHARACTERS, PARTS, SHARED, part, seconds_alone
from experiments.paper.corpora import documents
from experiments.paper.grid import MODELS, Group, Method, Row
from experiments.paper.results import Figures, about, add_rows, rows_in
from experiments.paper.table import MISSING, spread

RESULTS = Path(__file__).parent / "results" / "accurate"
REPORT = Path(__file__).parent.parent / "docs" / "accuracy.md"
BOTH = RESULTS.parent / "both"
WORDS = "words"
LINEAR = "word 1-2-grams, TF-IDF, logistic regression"
NEWER = {SHARED: "Re-Pair over a rulebook", CHARACTERS: '`codec="none"` (characters)'}
OLDER = {
    "sequence-repair": "`accurate`, Re-Pair",
    "sequence-none": '`accurate`, `codec="none"` (characters)',
    "both-repair": "`both`, Re-Pair",
    "both-none": '`both`, `codec="none"` (characters)',
}
HEAD = [
    "| | test accuracy % | seeds | seconds of training | peak memory MB | reserved |",
    "|---|--:|--:|--:|--:|--:|",
]


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
    parser.add_argument("--check", action="store_true", help="report: is it up to date?")
    given = parser.parse_args(arguments)
    if given.command == "run":
        rows = rows_of(given.dataset, given.models, given.codecs, given.seeds)
        run(rows, given.device, given.results, given.processes)
    elif given.command == "words":
        words(given.dataset, given.results)
    else:
        write_pages({REPORT: report(given.results)}, given.check)


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


def report(results: Path, dataset: str = "imdb", both: Path = BOTH) -> str:
    """Return the page: what the preset reaches, what it was before, and what mattered."""
    newer, older = by_method(both, dataset), by_method(results, dataset)
    lines = [
        f"# The presets `accurate` and `both` on {dataset}",
        "",
        "Generated by `python -m experiments.accurate report` from experiments/results/both and "
        "experiments/results/accurate.",
        "",
        "All of imdb's own split: 25,000 documents train, of which a tenth chooses the epoch, and "
        "25,000 test. Rows of a table differ in the codec, or in the view of the same model, and "
        "in nothing else. Accuracies are means over seeds ± their standard deviation; seconds (all "
        "epochs, validation included) and memory are those of rows that had a GPU to themselves. "
        "What is not measured is –.",
        "",
    ]
    if newer.get(SHARED):
        lines += ["## `both`", "", *HEAD]
        for method, name in NEWER.items():
            lines.append(_line(f"`both`, {name}", newer.get(method, [])))
            for view, told in PARTS.items():
                values = [v for row in newer.get(method, []) if (v := part(row, view)) is not None]
                lines.append(_cells(f"… its {told}", values))
        lines += [_line(LINEAR, older.get(WORDS, [])), "", "## Before", ""]
        lines += ["Private rules only, and settings that people chose who had seen the test.", ""]
    lines += HEAD
    lines += [_line(name, older.get(method, [])) for method, name in OLDER.items()]
    lines += [] if newer.get(SHARED) else [_line(LINEAR, older.get(WORDS, []))]
    notes = Path(__file__).parent / "accurate.md"
    return "\n".join(lines) + "\n\n" + notes.read_text("utf-8")


def by_method(results: Path, dataset: str) -> dict[str, list[Figures]]:
    """Return the results of a data set by method, seed by seed."""
    rows: dict[str, list[Figures]] = {}
    for row in rows_in(results):
        if row["dataset"] == dataset:
            rows.setdefault(row["method"], []).append(row)
    return rows


def _line(name: str, rows: list[Figures]) -> str:
    # A CPU's seconds and memory could not be compared with a GPU's.
    alone = [row for row in rows if row.get("processes") == 1 and row["config"]["device"] == "cuda"]
    seconds = seconds_alone(alone)
    memory = mean(row["peak_memory_mb"] for row in alone) if alone else None
    held = [row["reserved_memory_mb"] for row in alone if "reserved_memory_mb" in row]
    known = seconds, memory, mean(held) if held else None
    return _cells(name, [100 * row["test"]["accuracy"] for row in rows], *known)


def _cells(
    name: str,
    accuracies: list[float],
    seconds: float | None = None,
    memory: float | None = None,
    reserved: float | None = None,
) -> str:
    cells = [MISSING] * 5
    if accuracies:
        cells[:2] = spread(accuracies), str(len(accuracies))
    if seconds is not None and memory is not None:
        cells[2:4] = f"{seconds:.0f}", f"{memory:,.0f}"
    if reserved is not None:
        cells[4] = f"{reserved:,.0f}"
    return f"| {name} | " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
