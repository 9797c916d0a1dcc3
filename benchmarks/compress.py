"""Measure the codecs beside zlib, zstd and tokenizers, all in one run: `make bench`.

Data come from the folder that LACONIC_DATA names, else from the bundled samples. Contestants take
turns, round by round, because shared machines drift: read the ratios, not the microseconds.

    python -m benchmarks.compress                   # everything; a few minutes
    python -m benchmarks.compress --quick            # a smoke run on little data
    python -m benchmarks.compress --keep             # to benchmarks/results, for `make docs`
"""

from __future__ import annotations

import statistics
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard
from tokenizers import Tokenizer, models, trainers

import laconic
from benchmarks.command import Figures, alone, keep, options, output
from benchmarks.machine import describe
from benchmarks.texts import ecoli_genome, english_documents, large_english, mutated_copies
from benchmarks.threads import CODECS, seconds_of
from laconic import Grammars


def train_tokenizer(document: str) -> int:
    """Learn byte pairs on one document, as tokenizers does on a corpus; return the length left."""
    tokenizer = Tokenizer(models.BPE())
    trainer = trainers.BpeTrainer(vocab_size=30_000, min_frequency=2, show_progress=False)
    tokenizer.train_from_iterator([document], trainer)
    return len(tokenizer.encode(document).ids)


def short_documents(documents: list[str], rounds: int, learned: int) -> Figures:
    """Many short documents, one thread: microseconds per document, per round, and sizes."""
    encoded = [document.encode() for document in documents]
    zstd = zstandard.ZstdCompressor(level=3)
    few = documents[:learned]  # tokenizers take a millisecond each

    def ours(codec: str) -> Callable[[], Grammars]:
        return lambda: laconic.compress_many(documents, codec, threads=1)

    contestants: dict[str, tuple[Callable[[], Any], int]] = {
        "zlib -6": (lambda: [len(zlib.compress(d, 6)) for d in encoded], len(documents)),
        **{codec: (ours(codec), len(documents)) for codec in CODECS},
        "zlib -9": (lambda: [len(zlib.compress(d, 9)) for d in encoded], len(documents)),
        "zstd -3": (lambda: [len(zstd.compress(d)) for d in encoded], len(documents)),
        "tokenizers": (lambda: [train_tokenizer(d) for d in few], len(few)),
    }
    micros: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (work, count) in contestants.items():
            micros[name].append(1e6 * seconds_of(work) / count)
    rows = {}
    letters = sum(map(len, encoded)) / len(encoded)
    for name, times in micros.items():
        result = contestants[name][0]()
        row: Figures = {"us_per_document": times, "median_us": statistics.median(times)}
        row["ratio_to_zlib_6"] = statistics.median(
            [t / z for t, z in zip(times, micros["zlib -6"], strict=True)]
        )
        row["mb_per_s"] = letters / row["median_us"]
        if isinstance(result, Grammars):
            row["sequence"] = len(result.sequence) / len(result)
            row["rules"] = len(result.rules) / len(result)
            row["bytes"] = float((-(-result.packed_bits // 8)).mean())
        elif name == "tokenizers":
            row["sequence"] = statistics.mean(result)
        else:
            row["bytes"] = statistics.mean(result)
        rows[name] = row
    return {"documents": len(documents), "bytes_per_document": letters, "rows": rows}


def large_file(path: Path, rounds: int) -> Figures:
    """One large document, each contestant in a process of its own: MB/s and peak memory."""
    runs: dict[str, list[Figures]] = {name: [] for name in ("zlib -6", *CODECS, "zstd -3")}
    for _ in range(rounds):
        for name, results in runs.items():
            results.append(alone("alone", name, path))
    rows = {}
    for name, results in runs.items():
        row = dict(results[0])
        row["mb_per_s"] = [run["mb_per_s"] for run in results]
        row["peak_memory_per_byte"] = max(run["peak_memory_per_byte"] for run in results)
        row["ratio_to_zlib_6"] = statistics.median(
            [a["mb_per_s"] / b["mb_per_s"] for a, b in zip(results, runs["zlib -6"], strict=True)]
        )
        rows[name] = row
    return {"bytes": path.stat().st_size, "rows": rows}


def print_table(title: str, rows: Figures, columns: dict[str, str]) -> None:
    """Print one line per contestant."""
    print(f"\n{title}\n{'':12}" + "".join(f"{heading:>16}" for heading in columns.values()))
    for name, row in rows.items():
        cells = []
        for key in columns:
            value = row.get(key, "")
            value = statistics.median(value) if isinstance(value, list) else value
            cells.append(f"{value:>16,.2f}" if isinstance(value, float) else f"{value!s:>16}")
        print(f"{name:12}" + "".join(cells))


def main() -> None:
    """Run all parts and write the figures."""
    given = options(__doc__).parse_args()
    quick, about = given.quick, describe()
    figures: Figures = {"about": about}
    source, documents = english_documents(count=500 if quick else 20_000, length=728)
    short = short_documents(documents, rounds=2 if quick else 7, learned=20 if quick else 400)
    figures["short"] = {"source": source, **short}
    columns = {
        "median_us": "µs/document",
        "ratio_to_zlib_6": "time / zlib -6",
        "mb_per_s": "MB/s",
        "sequence": "|C|",
        "rules": "|R|",
        "bytes": "bytes",
    }
    print_table(f"{len(documents)} documents of 728 bytes ({source})", short["rows"], columns)

    # In a process of its own: what malloc kept of other work would count.
    figures["threads"] = alone("threads", *(["--quick"] if quick else []))
    print("\nSpeed-up by threads")
    for codec, row in figures["threads"].items():
        print(f"{codec:12}" + "".join(f"{n:>4}: {s:.2f}" for n, s in row["speedup"].items()))

    columns = {
        "mb_per_s": "MB/s",
        "ratio_to_zlib_6": "speed / zlib -6",
        "sequence": "|C|",
        "rules": "|R|",
        "symbols_per_byte": "(|C|+2|R|)/n",
        "bytes": "bytes",
        "peak_memory_per_byte": "peak B/byte",
    }
    figures["large"] = {}
    size = 1_000_000 if quick else 50_000_000
    for make in (lambda: large_english(size), ecoli_genome, lambda: mutated_copies(6)):
        made = make()
        if made is None or (quick and made[1].stat().st_size > 10_000_000):
            continue
        title, path = made
        figures["large"][title] = large_file(path, rounds=1 if quick else 3)
        print_table(title, figures["large"][title]["rows"], columns)

    out = output(given, about, "{machine_name}-{date}.json")
    keep(out, figures)
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
