"""Measure how much faster more threads are, and print it as JSON: a process for compress.py.

python -m benchmarks.threads [--quick]
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import laconic
from benchmarks.machine import processors
from benchmarks.texts import english_documents

CODECS = ("repair", "lzd", "lz78")


def seconds_of(work: Callable[[], object]) -> float:
    """Return the seconds one call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def main() -> None:
    """Take turns: 1, 2, … threads, again and again."""
    quick = "--quick" in sys.argv
    _, documents = english_documents(count=500 if quick else 20_000, length=728)
    counts = [n for n in (1, 2, 4, 8, 16) if n <= processors()]
    rows: dict[str, Any] = {}
    for codec in CODECS:
        seconds: dict[int, list[float]] = {n: [] for n in counts}
        for _ in range(2 if quick else 11):
            for n in counts:
                work = lambda n=n, codec=codec: laconic.compress_many(documents, codec, threads=n)  # noqa: E731
                seconds[n].append(seconds_of(work))
        speedup = {n: statistics.median(seconds[1]) / statistics.median(seconds[n]) for n in counts}
        rows[codec] = {"seconds": seconds, "speedup": speedup}
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
