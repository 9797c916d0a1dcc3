"""The first minute: what defaults make of a file, beside scikit-learn's TF-IDF and regression.

    python -m experiments.first_minute run                # all rows that are missing
    python -m experiments.first_minute run kjv imdb-500   # these
    python -m experiments.first_minute report             # docs/first_minute.md

Each row is `laconic train train.csv -o run`, nothing else said, in a process of its own, then
`laconic evaluate` on the test documents, once. The rival is the better, on a held-out fifth, of
words 1-2 and characters 1-5 with the best C, fitted again on all. Finished rows are skipped or,
with --again, trained again: the rival, to which nothing has changed, keeps its figures.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.command import write_pages
from benchmarks.data import load
from benchmarks.machine import describe
from laconic.files import write_text
from laconic.samples import Split

RESULTS = Path(__file__).parent / "results" / "first_minute.jsonl"
REPORT = Path(__file__).parent.parent / "docs" / "first_minute.md"
MOST_DOCUMENTS, MOST_LETTERS = 5000, 2000
SIZES = {"imdb-500": 500, "imdb-2000": 2000, "yelp-500": 500, "yelp-2000": 2000}
FOLDERS = {"yelp": "yelp_polarity_part", "pinyin": "sogou_pinyin"}
ROWS = ["yelp", "pinyin", "adfa_ld", "H3", "H4", "H3K36me3", "kjv", "bacteria", *SIZES]
ESTIMATOR = "adfa_ld, GrammarClassifier"
STRENGTHS = (1.0, 10.0, 100.0)
FEATURES: dict[str, dict[str, Any]] = {
    "words 1-2": {"ngram_range": (1, 2)},
    "characters 1-5": {"analyzer": "char", "ngram_range": (1, 5)},
}


def main(arguments: list[str] | None = None) -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.first_minute",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=["run", "report"])
    parser.add_argument("rows", nargs="*", default=[*ROWS, ESTIMATOR])
    parser.add_argument("--seed", type=int, default=0, help="of which documents train")
    parser.add_argument("--again", action="store_true", help="also rows that are finished")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--check", action="store_true", help="report: is it up to date?")
    given = parser.parse_args(arguments)
    if given.command == "report":
        write_pages({REPORT: report(rows_in(given.results))}, given.check)
        return
    for name in given.rows:
        done = {(row["name"], row["seed"]): row for row in rows_in(given.results)}
        before = done.get((name, given.seed))
        if before is None or given.again:
            known = before["rival"] if before else None
            row = (
                estimator_row(known) if name == ESTIMATOR else command_row(name, given.seed, known)
            )
            done[name, given.seed] = {"name": name, "seed": given.seed, **row}
            write_text(given.results, "".join(f"{json.dumps(each)}\n" for each in done.values()))
            print(name, row["ours"], row["rival"], flush=True)


def rows_in(path: Path) -> list[dict[str, Any]]:
    """Return the finished rows."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def by_set(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Return accuracy, macro_f1 and seconds, ours and the rival's, of each set: means of seeds."""
    found: dict[str, dict[str, dict[str, float]]] = {}
    for name in dict.fromkeys(row["name"] for row in rows):
        some = [row for row in rows if row["name"] == name]
        found[name] = {
            whose: {
                figure: float(np.mean([row[whose][figure] for row in some]))
                for figure in ("accuracy", "macro_f1", "seconds")
            }
            for whose in ("ours", "rival")
        }
    return found


def parts_of(name: str, seed: int) -> tuple[Split, Split]:
    """Return at most so many training documents, at random, and all that test; long ones cut."""
    set_name = name.split("-")[0]
    train, test = load(FOLDERS.get(set_name, set_name))
    count = min(SIZES.get(name, MOST_DOCUMENTS), len(train))
    rows = np.random.default_rng(seed).permutation(len(train))[:count].tolist()
    some = Split([train.documents[k] for k in rows], [train.labels[k] for k in rows])
    return _cut(some), _cut(test)


def _cut(split: Split) -> Split:
    return Split([text[:MOST_LETTERS] for text in split.documents], split.labels)


def command_row(name: str, seed: int, known: dict[str, Any] | None = None) -> dict[str, Any]:
    """Train from a file with defaults, and test; then the rival, unless its figures are known."""
    train, test = parts_of(name, seed)
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        for part, split in (("train", train), ("test", test)):
            with (here / f"{part}.csv").open("w", newline="", encoding="utf-8") as file:
                rows = zip(split.documents, split.labels, strict=True)
                csv.writer(file).writerows([("text", "label"), *rows])
        began = time.perf_counter()
        told = _laconic("train", here / "train.csv", "-o", here / "run", "--json")
        seconds = time.perf_counter() - began
        figures = _laconic("evaluate", here / "run", here / "test.csv", "--json")
        line = json.loads((here / "run/metrics.jsonl").read_text("utf-8").splitlines()[-1])
    ours = {"accuracy": figures["accuracy"], "macro_f1": figures["macro_f1"]}
    ours |= {"seconds": seconds, "held_out": told["valid"]["accuracy"]}
    documents = {"train": len(train), "test": len(test)}
    auto = {key: line["auto"].get(key) for key in ("counting", "reading", "losses")}
    about = _about()
    other = known or rival(train, test, seed)
    return {"documents": documents, "ours": ours, "auto": auto, "rival": other, **about}


def estimator_row(known: dict[str, Any] | None = None) -> dict[str, Any]:
    """Fit GrammarClassifier to adfa_ld's first 1,500 traces, beside regression on n-grams of it."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score
    from sklearn.pipeline import make_pipeline

    from laconic import GrammarClassifier, GrammarVectorizer

    train, test = load("adfa_ld")
    first = Split(train.documents[:1500], train.labels[:1500])
    models = {
        "ours": GrammarClassifier(random_state=0),
        "rival": make_pipeline(
            GrammarVectorizer((1, 5), sublinear_tf=True), LogisticRegression(C=30, max_iter=2000)
        ),
    }
    found: dict[str, Any] = {"documents": {"train": len(first), "test": len(test)}}
    if known is not None:
        found["rival"] = known
        del models["rival"]
    for name, model in models.items():
        began = time.perf_counter()
        model.fit(first.documents, first.labels)
        seconds, said = time.perf_counter() - began, model.predict(test.documents)
        found[name] = {
            "accuracy": float(accuracy_score(test.labels, said)),
            "macro_f1": float(f1_score(test.labels, said, average="macro")),
            "seconds": seconds,
        }
    return found | _about()


def rival(train: Split, test: Split, seed: int) -> dict[str, Any]:
    """Return the figures of scikit-learn's TF-IDF and logistic regression, chosen held out."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score, f1_score

    began = time.perf_counter()
    order = np.random.default_rng(seed + 1).permutation(len(train))
    labels, held = np.array(train.labels), order[: len(order) // 5]
    rest = order[len(order) // 5 :]
    best: tuple[float, str, float] = (-1.0, "", 1.0)
    for name, options in FEATURES.items():
        matrix = TfidfVectorizer(**options).fit_transform(train.documents)
        for strength in STRENGTHS:
            model = LogisticRegression(C=strength, max_iter=100)
            model.fit(matrix[rest], labels[rest])
            best = max(best, (float(model.score(matrix[held], labels[held])), name, strength))
    _, name, strength = best
    vectorizer = TfidfVectorizer(**FEATURES[name])
    model = LogisticRegression(C=strength, max_iter=300)
    model.fit(vectorizer.fit_transform(train.documents), labels)
    said = model.predict(vectorizer.transform(test.documents))
    return {
        "accuracy": float(accuracy_score(test.labels, said)),
        "macro_f1": float(f1_score(test.labels, said, average="macro")),
        "seconds": time.perf_counter() - began,
        "features": name,
        "C": strength,
    }


def report(rows: list[dict[str, Any]]) -> str:
    """Return the page."""
    lines = [
        "# The first minute",
        "",
        "Generated by `python -m experiments.first_minute report` from "
        "experiments/results/first_minute.jsonl.",
        "",
        "`laconic train train.csv -o run` with nothing else said, on two shared processors without "
        f"a GPU: at most {MOST_DOCUMENTS:,} training documents of at most {MOST_LETTERS:,} "
        "letters, and all that test. Seconds are of the whole command, on a machine that was as "
        "busy as `load` says (processes that wanted to run). Beside it scikit-learn's TF-IDF and "
        "logistic regression: the better, on a held-out fifth, of words 1-2 and characters 1-5 "
        "with "
        "the best of three C (1, 10, 100; at most 100 iterations, 300 of the last fit), fitted "
        "again on all. The last row is "
        "`GrammarClassifier().fit(texts, labels)` on the first 1,500 traces, beside "
        "logistic regression (C = 30) on `GrammarVectorizer((1, 5))`. Rows are measured again when "
        "defaults change, which held-out parts of training sets decide; the rival, to which "
        "nothing changes, keeps the figures and seconds of its first run. *Reading* is what "
        "held-out documents let reading say; of the last row it is not kept (–). "
        "The rare classes of adfa_ld have few test documents: three seeds tell more than one.",
        "",
        "| set | seed | train | accuracy % | rival's | difference | macro-F1 | rival's | seconds "
        "| load | reading |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    order = [*ROWS, ESTIMATOR]
    for row in sorted(rows, key=lambda row: (order.index(row["name"]), row["seed"])):
        ours, other = row["ours"], row["rival"]
        share = row.get("auto", {}).get("reading", {}).get("share")
        cells = [
            row["name"],
            f"{row['seed']}",
            f"{row['documents']['train']:,}",
            f"{100 * ours['accuracy']:.2f}",
            f"{100 * other['accuracy']:.2f}",
            f"{100 * (ours['accuracy'] - other['accuracy']):+.2f}",
            f"{ours['macro_f1']:.3f}",
            f"{other['macro_f1']:.3f}",
            f"{ours['seconds']:.0f}",
            f"{row['load']:.0f}",
            "–" if share is None else f"{share:.0%}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    means = by_set(rows)
    seeds = Counter(row["name"] for row in rows)
    for name, of in means.items():
        ours, other = of["ours"], of["rival"]
        if seeds[name] > 1:
            told = f"{name}, mean of {seeds[name]} seeds: accuracy"
            both = f"{100 * ours['accuracy']:.2f} %, the rival's {100 * other['accuracy']:.2f} %"
            f1 = f"macro-F1 {ours['macro_f1']:.3f}, the rival's {other['macro_f1']:.3f}"
            lines += ["", f"{told} {both}; {f1}."]
    gains = [of["ours"]["accuracy"] - of["rival"]["accuracy"] for of in means.values()]
    if gains:
        lines += ["", f"On average {100 * float(np.mean(gains)):+.2f} points of accuracy."]
    return "\n".join(lines) + "\n"


def _laconic(*words: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "laconic", *map(str, words)]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _about() -> dict[str, Any]:
    return {"load": os.getloadavg()[1], "about": describe(gpu=False)}


if __name__ == "__main__":
    main()
