"""Measure the memory that commands take on a corpus larger than it, made by repeating one.

Data come from the folder that LACONIC_DATA names, else from a bundled sample.

    python -m benchmarks.stream                  # 3 GB on disk; more than half an hour
    python -m benchmarks.stream --quick          # 0.1 GB
    python -m benchmarks.stream --keep           # to benchmarks/results, for `make docs`
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.command import ROOT, Figures, keep, options, output
from benchmarks.data import load_or_sample
from benchmarks.machine import describe
from laconic import Corpus

LIMIT = 1.5e9  # bytes of resident memory that no command may exceed
_PARTS = 4  # of a command's time whose peaks are told apart
_EVERY = 0.25  # seconds
TRAIN = ["--stream", "--epochs", "1", "--holdout", "0.001", "--device", "cpu"]
BATCHES = ["--budget", "8192"]  # else the longest documents make a batch that takes a gigabyte
COUNTED = ["--ngrams", "2", "--phrases", "0"]
NGRAMS = ["--ngram-range", "1", "2", "--dtype", "float32"]


def commands(folder: Path, documents: int) -> dict[str, list[str]]:
    """Return the commands to run, each after the ones that it needs."""
    corpus, fast, counted = (str(folder / name) for name in ("corpus", "fast", "counted"))
    few, many = (["--documents-per-epoch", str(documents // n)] for n in (2000, 20))
    return {
        "train, model ngram": [
            *["train", corpus, "-o", counted, "--model", "ngram", *COUNTED],
            *[*many, *TRAIN],
        ],
        "predict": ["predict", counted, corpus, "-o", str(folder / "predictions.parquet")],
        "features, hashed": [
            *["features", corpus, "-o", str(folder / "hashed.npz"), "--n-features", "64", *NGRAMS]
        ],
        "features, learned": [
            *["features", corpus, "-o", str(folder / "own.npz"), "--max-features", "64", *NGRAMS]
        ],
        "train, preset fast": [
            *["train", corpus, "-o", fast, "--preset", "fast", *few, *TRAIN, *BATCHES],
        ],
    }


def repeated(folder: Path, gigabytes: float) -> Figures:
    """Make the corpus, a folder of equal shards, and return what it is."""
    name, splits = load_or_sample("imdb")
    source, shard = folder / "source.csv", folder / "shard.parquet"
    with source.open("w", newline="") as file:
        for split in splits:
            rows = zip(split.labels, split.documents, strict=True)
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    columns = ["--no-header", "--text", "1", "--label", "0"]
    laconic = [sys.executable, "-m", "laconic"]
    subprocess.run([*laconic, "compress", source, "-o", shard, *columns], check=True, cwd=ROOT)
    (folder / "corpus").mkdir()
    copies = -int(-gigabytes * 1e9 // shard.stat().st_size)
    for number in range(copies):
        shutil.copy(shard, folder / f"corpus/part-{number:05}.parquet")
    corpus = Corpus.open(folder / "corpus")
    return {
        "source": name,
        "copies": copies,
        "bytes": copies * shard.stat().st_size,
        "letters": copies * source.stat().st_size,
        "documents": len(corpus),
        "row_groups": len(corpus.group_starts) - 1,
        "bytes_in_memory": corpus.estimated_bytes(),
    }


def watched(words: list[str]) -> Figures:
    """Run a command in a process of its own; return its time and memory, also by parts of it."""
    started, seen, peak = time.perf_counter(), [], 0
    process = subprocess.Popen([sys.executable, "-m", "laconic", *words], cwd=ROOT)
    status_file = Path(f"/proc/{process.pid}/status")
    while True:
        done, status, usage = os.wait4(process.pid, os.WNOHANG)
        if done:
            break
        # What the system sums up at the end is at least what this process had when it forked.
        told = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+) kB", status_file.read_text()))
        if told:  # not of one that has just ended
            seen.append(1024 * int(told["VmRSS"]))
            peak = 1024 * int(told["VmHWM"])
        time.sleep(_EVERY)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"{' '.join(words)} ended with {process.returncode}")
    cuts = [len(seen) * part // _PARTS for part in range(_PARTS + 1)]
    return {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_memory": peak,
        "peaks_of_quarters": [max(seen[a:b], default=0) for a, b in pairwise(cuts)],
    }


def main() -> None:
    """Make the corpus, run the commands and write the figures."""
    parser = options(__doc__)
    parser.add_argument("--gigabytes", type=float, help="of the corpus on disk")
    parser.add_argument("--folder", type=Path, help="where there is room; default: the system's")
    given = parser.parse_args()
    about = describe(gpu=False)
    with tempfile.TemporaryDirectory(prefix="laconic-stream-", dir=given.folder) as scratch:
        folder = Path(scratch)
        corpus = repeated(folder, given.gigabytes or (0.1 if given.quick else 3.0))
        print(json.dumps(corpus, indent=1))
        rows: Figures = {}
        found = {"corpus": corpus, "processors": len(os.sched_getaffinity(0)), "rows": rows}
        out = output(given, about, "stream-{machine_name}-{date}.json")
        for name, words in commands(folder, corpus["documents"]).items():
            rows[name] = {"command": " ".join(words).replace(f"{folder}/", ""), **watched(words)}
            print(name, json.dumps(rows[name], indent=1), flush=True)
            keep(out, {"about": about, "stream": found})
    print(f"\nFigures in {out}")
    if any(row["peak_memory"] > LIMIT for row in rows.values()):
        sys.exit(f"a command took more than {LIMIT / 1e9} GB")


if __name__ == "__main__":
    main()
