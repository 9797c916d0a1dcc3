"""Measure the memory of Ray's and Spark's processes on an input made by repeating a data set.

Data come from the folder that LACONIC_DATA names, else from a bundled sample.

    python -m benchmarks.cluster                  # 2 GB of text
    python -m benchmarks.cluster --quick          # 0.05 GB
    python -m benchmarks.cluster --keep           # to benchmarks/results, for `make docs`
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

from benchmarks.command import ROOT, Figures, keep, options, output
from benchmarks.data import load_or_sample
from benchmarks.machine import describe

LIMIT = 500e6  # bytes of resident memory that the process which began the work may take
_EVERY = 0.25  # seconds
FLAGS = [
    "--no-header",
    "--text",
    "1",
    "--label",
    "0",
    "--codec",
    "none",
]  # memory is measured, not speed
WORKERS = 2


def repeated(folder: Path, gigabytes: float) -> Figures:
    """Make the same input twice, as many files and as one; return what it is."""
    name, splits = load_or_sample("imdb")
    source = folder / "source.csv"
    with source.open("w", newline="") as file:
        for split in splits:
            rows = zip(split.labels, split.documents, strict=True)
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    copies = max(1, round(gigabytes * 1e9 / source.stat().st_size))
    (folder / "many").mkdir()
    with (folder / "one.csv").open("wb") as one:
        for number in range(copies):
            shutil.copy(source, folder / f"many/{number:05}.csv")
            with source.open("rb") as again:
                shutil.copyfileobj(again, one)
    return {"source": name, "copies": copies, "bytes": copies * source.stat().st_size}


def kinds(root: int) -> dict[int, str]:
    """Return the processes below one that run now, and itself, each by what it is."""
    parents, words = {}, {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            with suppress(OSError):
                stat = (each / "stat").read_text()
                parents[int(each.name)] = int(stat.rpartition(")")[2].split()[1])
                words[int(each.name)] = (each / "cmdline").read_bytes().decode(errors="replace")
    found = {}
    for process, line in words.items():
        above = process
        while above in parents and above != root:
            above = parents[above]
        if process == root:
            found[process] = "driver"
        elif above == root and ("ray::" in line or "pyspark/daemon" in line.replace(".", "/")):
            found[process] = "worker"
        elif above == root and "java" in line.partition("\0")[0]:
            found[process] = "jvm"
    return found


def watched(words: list[str]) -> Figures:
    """Run a command; return its time, and the largest memory of a process of each kind."""
    started, peaks = time.perf_counter(), defaultdict[str, int](int)
    process = subprocess.Popen([sys.executable, "-m", "laconic", *words], cwd=ROOT)
    while process.poll() is None:
        for number, kind in kinds(process.pid).items():
            with suppress(OSError, IndexError):
                status = Path(f"/proc/{number}/status").read_text()
                peak = 1024 * int(status.partition("VmHWM:")[2].split()[0])
                peaks[kind] = max(peaks[kind], peak)
        time.sleep(_EVERY)
    if process.returncode:
        sys.exit(f"{' '.join(words)} ended with {process.returncode}")
    return {"seconds": time.perf_counter() - started, "peak_memory": dict(peaks)}


def digest(corpus: Path) -> str:
    """Return what tells two corpora apart: names and bytes of all files."""
    total = hashlib.sha256()
    for each in sorted(corpus.iterdir()):
        total.update(each.name.encode() + b"\0" + hashlib.sha256(each.read_bytes()).digest())
    return total.hexdigest()


def main() -> None:
    """Make the input, compress it with each engine and write the figures."""
    parser = options(__doc__)
    parser.add_argument("--gigabytes", type=float, help="of text")
    parser.add_argument("--folder", type=Path, help="where there is room; default: the system's")
    given = parser.parse_args()
    about = describe(gpu=False)
    with tempfile.TemporaryDirectory(prefix="laconic-cluster-", dir=given.folder) as scratch:
        folder = Path(scratch)
        inputs = repeated(folder, given.gigabytes or (0.05 if given.quick else 2.0))
        print(json.dumps(inputs, indent=1))
        rows: list[Figures] = []
        processors = len(os.sched_getaffinity(0))
        found = {"inputs": inputs, "processors": processors, "workers": WORKERS, "rows": rows}
        out = output(given, about, "cluster-{machine_name}-{date}.json")
        for source in ("many", "one.csv"):
            expected = None
            for engine in ("local", "ray", "spark"):
                words = ["compress", str(folder / source), "-o", str(folder / "corpus"), *FLAGS]
                words += ["--engine", engine, "--workers", str(WORKERS)]
                row = {"engine": engine, "input": source, **watched(words)}
                made = digest(folder / "corpus")
                expected = expected or made
                row |= {"same_bytes": made == expected}
                row["command"] = " ".join(words).replace(f"{folder}/", "")
                rows.append(row)
                print(json.dumps(row, indent=1), flush=True)
                keep(out, {"about": about, "cluster": found})
                shutil.rmtree(folder / "corpus")
    print(f"\nFigures in {out}")
    clusters = [row for row in rows if row["engine"] != "local"]
    if any(row["peak_memory"]["driver"] > LIMIT or not row["same_bytes"] for row in clusters):
        sys.exit(f"a driver took more than {LIMIT / 1e6:.0f} MB, or bytes differ")


if __name__ == "__main__":
    main()
