"""Measure how long one waits for the pages of `laconic explore`: a corpus, and a vast document.

Data come from the folder that LACONIC_DATA names, else from a bundled sample.

    python -m benchmarks.explore                 # a minute
    python -m benchmarks.explore --quick         # 2,000 documents, a million letters
    python -m benchmarks.explore --keep          # to benchmarks/results, for `make docs`
"""

from __future__ import annotations

import csv
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks.command import ROOT, Figures, keep, options, output
from benchmarks.data import load_or_sample
from benchmarks.machine import describe
from laconic import Corpus, Rulebook

_PAGES = 40  # documents that are opened, in random order


@contextmanager
def explored(path: Path) -> Iterator[tuple[str, int, Figures]]:
    """Start the explorer in a process; give its address and number, and when the list was there."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "laconic", "explore", str(path)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        page(url)
        figures: Figures = {"list_s": time.perf_counter() - started}
        try:
            yield url, process.pid, figures
            told = Path(f"/proc/{process.pid}/status").read_text()
            figures["peak_memory"] = 1024 * int(re.findall(r"VmHWM:\s+(\d+)", told)[0])
        finally:
            process.terminate()


def page(url: str) -> tuple[float, str]:
    """Return how many milliseconds a page takes, and the page."""
    started = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    return 1e3 * (time.perf_counter() - started), text


def waits(process: int, urls: list[str]) -> Figures:
    """Return how long pages take, in ms: the middle one, nineteen of twenty, the slowest.

    And how long a processor works for one: others may want it, too.
    """
    before = _worked(process)
    times = sorted(page(url)[0] for url in urls)
    middle, most = statistics.median(times), times[int(0.95 * (len(times) - 1))]
    worked = 1e3 * (_worked(process) - before) / len(urls)
    return {"median_ms": middle, "p95_ms": most, "max_ms": times[-1], "cpu_ms": worked}


def _worked(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def corpus_figures(path: Path, word: str) -> Figures:
    """Return the figures of a corpus: start, documents while it is counted and after, a search."""
    documents = len(Corpus.open(path))
    with explored(path) as (url, process, figures):
        rows = [Random(0).randrange(documents) for _ in range(2 * _PAGES)]
        asked = [f"{url}document?row={row}" for row in rows]
        begun = time.perf_counter()
        figures["while_counting"] = waits(process, asked[:_PAGES])
        while "so far" in page(f"{url}statistics")[1]:
            time.sleep(0.1)
        figures["counted_s"] = time.perf_counter() - begun
        figures["counted"] = waits(process, asked[_PAGES:])
        figures["search_ms"], _ = page(f"{url}?q={word}")
    return {"documents": documents, "bytes": path.stat().st_size, **figures}


def vast_figures(path: Path, letters: int) -> Figures:
    """Return how long parts of one long document take, the first of which indexes it."""
    with explored(path) as (url, process, figures):
        figures["first_part_ms"], _ = page(f"{url}document?row=0")
        places = [Random(0).randrange(letters) for _ in range(_PAGES)]
        asked = [f"{url}document?row=0&first={place}" for place in places]
        figures["parts"] = waits(process, asked)
    return {"letters": letters, **figures}


def main() -> None:
    """Make the corpora, ask for pages and write the figures."""
    given = options(__doc__).parse_args()
    about = describe(gpu=False)
    name, splits = load_or_sample("imdb")
    texts = [text for split in splits for text in split.documents]
    labels = [label for split in splits for label in split.labels]
    some = 2000 if given.quick else len(texts)
    size = 10**6 if given.quick else 10**7
    found: Figures = {"source": name, "load": os.getloadavg()[0], "corpora": {}}
    out = output(given, about, "explore-{machine_name}-{date}.json")
    with tempfile.TemporaryDirectory(prefix="laconic-explore-") as scratch:
        folder = Path(scratch)
        for title in ("repair", "repair under a rulebook"):
            book = Rulebook.learn(texts[:some]) if "rulebook" in title else None
            written(folder / "corpus.parquet", texts[:some], labels[:some], book)
            found["corpora"][title] = corpus_figures(folder / "corpus.parquet", "zebra")
        whole = "\n".join(texts)
        whole = (whole * (1 + size // len(whole.encode()))).encode()[:size].decode(errors="ignore")
        Corpus.from_documents([whole]).write(folder / "vast.parquet")
        found["vast"] = vast_figures(folder / "vast.parquet", len(whole.encode()))
    keep(out, {"about": about, "explore": found})
    print(f"{found}\n\nFigures in {out}")


def written(path: Path, texts: list[str], labels: Sequence[object], book: Rulebook | None) -> None:
    """Write a corpus as `laconic compress` does, in row groups of some megabytes of text."""
    source = path.with_suffix(".csv")
    with source.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(zip(labels, texts, strict=True))
    words = ["--no-header", "--text", "1", "--label", "0", "--force"]
    if book is not None:
        book.save(path.with_suffix(".json"))
        words += ["--rulebook", str(path.with_suffix(".json"))]
    laconic = [sys.executable, "-m", "laconic", "compress", str(source), "-o", str(path), *words]
    subprocess.run(laconic, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
