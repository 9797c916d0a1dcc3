"""Measure grammars of what gzip left: speed beside Re-Pair and gunzip, memory, sizes of all sets.

python -m benchmarks.zipped                 # some minutes; LACONIC_DATA names the data
python -m benchmarks.zipped --quick          # a smoke run on little data
python -m benchmarks.zipped --keep           # to benchmarks/results, for `make docs`
python -m benchmarks.zipped --alone FILE     # one .gz here: seconds and peak memory as JSON
"""

from __future__ import annotations

import gzip
import json
import os
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import laconic
from benchmarks.alone import memory
from benchmarks.command import Figures, alone, keep, options, output
from benchmarks.data import DATASETS, load_or_sample
from benchmarks.machine import describe
from benchmarks.texts import english_documents, large_english
from benchmarks.threads import seconds_of

CODECS = ("deflate", "repair", "lzd", "lz78")
SETS = [
    name for name in DATASETS if "-" not in name and name not in ("kjv", "bacteria")
]  # those that this project has, not the complete ones


def speed(documents: list[bytes], rounds: int) -> Figures:
    """One thread, in turns: MB of text per second, and the ratios to Re-Pair within a round."""
    zipped = [gzip.compress(document, 6, mtime=0) for document in documents]
    contestants: dict[str, Callable[[], Any]] = {
        "Re-Pair, from text": lambda: laconic.compress_many(documents, threads=1),
        "deflate, from gzip": lambda: laconic.compress_many(
            zipped, "deflate", compressed=True, threads=1
        ),
        "deflate, from text": lambda: laconic.compress_many(documents, "deflate", threads=1),
        "zlib's inflate": lambda: [zlib.decompress(each, 31) for each in zipped],
    }
    text = sum(map(len, documents)) / 1e6
    found: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, work in contestants.items():
            found[name].append(text / seconds_of(work))
    repair = found["Re-Pair, from text"]
    rows = {
        name: {
            "mb_per_s": rates,
            "ratio": statistics.median(a / b for a, b in zip(rates, repair, strict=True)),
        }
        for name, rates in found.items()
    }
    return {"documents": len(documents), "megabytes": text, "rows": rows}


def bombs(size: int) -> Iterable[tuple[str, Iterable[bytes]]]:
    """What gzip makes small: a title, and pieces of the text."""
    piece = 1 << 20
    yield f"{size / 1e9:g} GB of zeros", (bytes(piece) for _ in range(size // piece))
    lines = b"".join(
        b"2026-11-16 12:00:%02d GET /page/%d 200 OK\n" % (n % 60, n) for n in range(200)
    )
    some = lines * (piece // len(lines))
    yield (
        f"{size / 1e9:g} GB of 200 lines of a log, again and again",
        (some for _ in range(size // len(some))),
    )


def packed_file(pieces: Iterable[bytes], path: Path) -> int:
    """Write a .gz file; return how long its text is."""
    length = 0
    with gzip.open(path, "wb", 6) as file:
        for piece in pieces:
            length += file.write(piece)
    return length


def measure_alone(path: Path) -> None:
    """Print what it takes to make the grammar of a .gz file, the file included."""
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    before, started = memory("VmRSS"), time.perf_counter()
    grammar = laconic.from_gzip(path.read_bytes())
    seconds = time.perf_counter() - started
    rules, sequence = len(grammar.rules), len(grammar.sequence)
    peak = memory("VmHWM") - before
    print(json.dumps({"seconds": seconds, "peak": peak, "rules": rules, "sequence": sequence}))


def small_files(size: int, folder: Path) -> Figures:
    """Files that stand for much: seconds and memory, beside gunzip in the same run."""
    rows: Figures = {}
    for title, pieces in bombs(size):
        path = folder / "some.gz"
        length = packed_file(pieces, path)
        found = alone("zipped", "--alone", path)
        started = time.perf_counter()
        os.system(f"gunzip -c '{path}' > /dev/null")
        gunzip = time.perf_counter() - started
        rows[title] = {"bytes": path.stat().st_size, "length": length, "gunzip": gunzip, **found}
        print(title, rows[title])
    return rows


def sizes(names: Iterable[str], most: int) -> Figures:
    """|C| and |R| of the documents of each set, by every codec, and bytes of text."""
    rows: Figures = {}
    for name in names:
        _, (train, test) = load_or_sample(name)
        texts = (train.documents + test.documents)[:most]
        row: Figures = {"documents": len(texts)}
        for codec in CODECS:
            made = laconic.compress_many(texts, codec, alphabet=DATASETS[name].alphabet)
            row["letters"] = int(made.expanded_lengths.sum())
            row[codec] = {"sequence": len(made.sequence), "rules": len(made.rules)}
            row[codec]["height"] = max(int(each.depths.max(initial=0)) for each in made[:1000])
        rows[name] = row
        print(name, row)
    return rows


def main() -> None:
    """Run all parts and write the figures."""
    parser = options(__doc__)
    parser.add_argument("--alone", type=Path, help="a .gz file to measure here")
    given = parser.parse_args()
    if given.alone:
        measure_alone(given.alone)
        return
    quick, about = given.quick, describe()
    source, texts = english_documents(count=500 if quick else 20_000, length=728)
    title, large = large_english(1_000_000 if quick else 50_000_000)
    figures: Figures = {"about": about, "zipped": {}}
    found = figures["zipped"]
    found["speed"] = {
        f"{len(texts):,} documents of 728 letters ({source})": speed(
            [text.encode() for text in texts], 2 if quick else 7
        ),
        f"one document: {title}": speed([large.read_bytes()], 1 if quick else 3),
    }
    for name, part in found["speed"].items():
        print(
            name,
            {n: (statistics.median(r["mb_per_s"]), r["ratio"]) for n, r in part["rows"].items()},
        )
    with tempfile.TemporaryDirectory() as folder:
        found["small"] = small_files(10_000_000 if quick else 1_000_000_000, Path(folder))
    found["sets"] = sizes(SETS[:1] if quick else SETS, 50 if quick else 10_000)
    out = output(given, about, "zipped-{machine_name}-{date}.json")
    keep(out, figures)
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
