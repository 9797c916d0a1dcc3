"""Measure what people wait for on a CPU: one document's answer, and epochs by number of threads.

Each on a machine that is idle and beside a process that keeps one processor busy; all take turns.

    python -m benchmarks.waiting             # to build/benchmarks
    python -m benchmarks.waiting --keep      # to benchmarks/results
    python -m benchmarks.waiting --quick     # a smoke run on little data

A model of `laconic train` by default settings, of the bundled sample of English, answers through
laconic.load; beside it scikit-learn's TF-IDF (characters 1 to 5) and logistic regression. Epochs
are those of `laconic train`, with the threads that it chooses and with OMP_NUM_THREADS = 1, 2.
"""

from __future__ import annotations

import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import laconic
from benchmarks.command import Figures, keep, options, output
from benchmarks.machine import describe
from laconic import samples

EPOCHS, ROUNDS = 3, 2
WAYS = {"auto": [], "fast": ["--preset", "fast"]}
THREADS = (None, 1, 2)  # None: what is chosen by default


@contextmanager
def beside_a_busy_process() -> Iterator[None]:
    """Keep one processor busy meanwhile, as another program would."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


@contextmanager
def idle() -> Iterator[None]:
    """Do nothing beside; the machine's owner has to see to it that nobody else does."""
    yield


SITUATIONS = {"idle": idle, "beside a busy process": beside_a_busy_process}


def write_csv(path: Path, part: samples.Split) -> None:
    """Write documents as a new user has them."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(
            [("text", "label"), *zip(part.documents, part.labels, strict=True)]
        )


def trained(file: Path, run: Path, words: list[str], epochs: int, threads: int | None) -> Figures:
    """Train in a process of its own; return seconds of each epoch, as the run has them."""
    environment = {key: each for key, each in os.environ.items() if key != "OMP_NUM_THREADS"}
    if threads is not None:
        environment["OMP_NUM_THREADS"] = str(threads)
    command = [sys.executable, "-m", "laconic", "train", str(file), "-o", str(run), *words]
    command += ["--epochs", str(epochs), "--device", "cpu"]
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    lines = map(json.loads, (run / "metrics.jsonl").read_text().splitlines())
    return {"seconds": [line["seconds"] for line in lines if "epoch" in line]}


def epochs_by_threads(file: Path, folder: Path, quick: bool) -> Figures:
    """Seconds of an epoch: medians of all rounds' epochs but the first, by threads."""
    rows: Figures = {}
    for situation, beside in SITUATIONS.items():
        for way, words in WAYS.items():
            seconds: dict[str, list[float]] = {}
            for number in range(1 if quick else ROUNDS):
                for threads in THREADS:
                    name = "default" if threads is None else str(threads)
                    run = folder / f"{situation} {way} {name} {number}"
                    with beside():
                        found = trained(file, run, words, 2 if quick else EPOCHS, threads)
                    seconds.setdefault(name, []).extend(found["seconds"][1:])
            median = {name: statistics.median(each) for name, each in seconds.items()}
            best = min(each for name, each in median.items() if name != "default")
            ratio = median["default"] / best
            rows[f"{way}, {situation}"] = {
                "seconds": seconds,
                "median": median,
                "ratio_to_best": ratio,
                "load": os.getloadavg()[0],
            }
            told = f"default {ratio:.2f} × the best; medians {median}"
            print(f"{way}, {situation}: {told}", flush=True)
    return rows


def one_at_a_time(run: Path, train: samples.Split, texts: list[str], rounds: int) -> Figures:
    """Milliseconds of one document's answer: each is asked of all contestants, in turns."""
    rival = make_pipeline(
        TfidfVectorizer(analyzer="char", ngram_range=(1, 5), sublinear_tf=True),
        LogisticRegression(C=10, max_iter=50),
    ).fit(train.documents, train.labels)
    ask: dict[str, Callable[[list[str]], Any]] = {
        "laconic.load(run).predict": laconic.load(run, device="cpu").predict,
        "scikit-learn's pipeline": rival.predict,
    }
    rows: Figures = {}
    for situation, beside in SITUATIONS.items():
        taken: dict[str, list[float]] = {name: [] for name in ask}
        with beside():
            for text in texts * rounds:
                for name, answer in ask.items():
                    began = time.perf_counter()
                    answer([text])
                    taken[name].append(1e3 * (time.perf_counter() - began))
        for name, each in taken.items():
            median, most = np.percentile(each, [50, 95]).tolist()
            rows[f"{name}, {situation}"] = {"median_ms": median, "p95_ms": most}
            print(f"{name}, {situation}: {median:.2f} ms, 95 % within {most:.2f} ms")
    return rows


def main() -> None:
    """Measure, print and write the figures."""
    given = options(__doc__).parse_args()
    sample = samples.load("kjv")
    train, test = sample.train, sample.test
    if given.quick:
        train = samples.Split(train.documents[::4], train.labels[::4])
    about = describe(gpu=False)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_csv(folder / "train.csv", train)
        trained(folder / "train.csv", folder / "run", [], 2 if given.quick else EPOCHS, None)
        texts = test.documents[: 50 if given.quick else None]
        found: Figures = {
            "load": os.getloadavg()[0],
            "letters_per_document": sum(map(len, texts)) / len(texts),
            "one_document": one_at_a_time(folder / "run", train, texts, 1 if given.quick else 3),
            "epochs": epochs_by_threads(folder / "train.csv", folder, given.quick),
        }
    path = output(given, about, "waiting-{machine_name}-{date}.json")
    keep(path, {"about": about, "waiting": found})
    print(f"wrote {path}; Laconic {laconic.__version__}")


if __name__ == "__main__":
    main()
