"""Measure corpora on disk: bytes per document against gzip and Parquet, time and memory.

Data come from the folder that LACONIC_DATA names, else from the bundled samples.

    python -m benchmarks.corpus                # sizes, time, memory; a minute or two
    python -m benchmarks.corpus --keep         # to benchmarks/results, for `make docs`
    python -m benchmarks.corpus --large 2      # also the memory that 2 GB of input takes
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import statistics
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import laconic
from benchmarks.command import Figures, alone, keep, options, output
from benchmarks.data import load_or_sample
from benchmarks.machine import describe
from laconic.codecs import compress_symbols
from laconic.formats import ReadOptions, read

SETS = ("imdb", "sogou_pinyin", "adfa_ld", "H3")
COLUMNS = ["--no-header", "--text", "1", "--label", "0"]
WAYS = {
    "repair": ["--codec", "repair"],
    "repair, level 19": ["--codec", "repair", "--level", "19"],
    "repair, compact": ["--codec", "repair", "--compact"],
    "lzd": ["--codec", "lzd"],
    "lz78": ["--codec", "lz78"],
}


def sources(folder: Path) -> dict[str, Path]:
    """Return the sets to measure, or the samples they stand for, as CSV files in `folder`."""
    found: dict[str, Path] = {}
    for name in SETS:
        name, (train, _) = load_or_sample(name)
        found[name] = folder / f"{name}.csv"
        with found[name].open("w", newline="") as file:
            rows = zip(train.labels, train.documents, strict=True)
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return found


def compress(path: Path, to: Path, *words: str) -> Figures:
    """Run `laconic compress` on such a file; return what alone_command tells of it."""
    return alone("alone_command", "compress", path, "-o", to, *COLUMNS, *words, "--force")


def sizes(path: Path, folder: Path, ways: dict[str, list[str]]) -> Figures:
    """Bytes per document of one set, in every way, and in those of others."""
    parts = list(read(path, ReadOptions(header=False, text=1, label=0)).parts())
    table = pa.concat_tables([part.table for part in parts])
    texts = table.column("1").to_pylist()
    raw = folder / "raw.parquet"
    pq.write_table(table, raw, compression="zstd", compression_level=3)
    rows = {}
    for name, words in ways.items():
        out = folder / "corpus.parquet"
        compress(path, out, *words)
        rows[name] = out.stat().st_size / len(texts)
    return {
        "documents": len(texts),
        "letters_per_document": statistics.mean(map(len, texts)),
        "gzip -6 of each document": statistics.mean(len(gzip.compress(t, 6)) for t in texts),
        "Parquet of the text, zstd -3": raw.stat().st_size / len(texts),
        "bytes_per_document": rows,
    }


def cost(path: Path, folder: Path, rounds: int) -> Figures:
    """Time and memory of `laconic compress` with Re-Pair, and how much of it is the codec's."""
    codec = laconic.Codec()
    parts = list(read(path, ReadOptions(header=False, text=1, label=0, part_bytes=4 << 20)).parts())
    documents = [part.table.column("1").to_pylist() for part in parts]
    encoded = [laconic.Alphabet.bytes().encode_many(some) for some in documents]
    codec_seconds, runs = [], []
    for _ in range(rounds):
        started = time.process_time()
        for symbols, offsets in encoded:
            compress_symbols(symbols, offsets, 256, codec, threads=1)
        codec_seconds.append(time.process_time() - started)
        runs.append(compress(path, folder / "cost.parquet"))
    empty = [alone("alone_command", "compress", "--help") for _ in range(rounds)]
    return {
        "source": path.name,
        "input_bytes": path.stat().st_size,
        "workers": len(os.sched_getaffinity(0)),
        "rounds": runs,
        **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
        "peak_memory": max(run["peak_memory"] for run in runs),
        "codec_cpu_seconds": statistics.median(codec_seconds),
        "start_cpu_seconds": statistics.median(run["cpu_seconds"] for run in empty),
    }


def large(path: Path, folder: Path, gigabytes: float) -> Figures:
    """Peak memory of compressing an input made by repeating one."""
    repeated, data = folder / "large.csv", path.read_bytes()
    with repeated.open("wb") as file:
        while file.tell() < gigabytes * 1e9:
            file.write(data)
    size = repeated.stat().st_size
    figures = compress(repeated, folder / "large")
    repeated.unlink()
    return {"input_bytes": size, **figures}


def main() -> None:
    """Run all parts and write the figures."""
    parser = options(__doc__)
    parser.add_argument("--large", type=float, help="gigabytes of input to measure memory on")
    given = parser.parse_args()
    about = describe()
    figures: Figures = {"about": about, "sizes": {}}
    ways = {name: WAYS[name] for name in list(WAYS)[:: 2 if given.quick else 1]}
    with tempfile.TemporaryDirectory(prefix="laconic-bench-") as scratch:
        folder = Path(scratch)
        paths = sources(folder)
        for name, path in paths.items():
            figures["sizes"][name] = sizes(path, folder, ways)
            print(name, json.dumps(figures["sizes"][name], indent=1))
        first = next(iter(paths.values()))
        figures["cost"] = cost(first, folder, 1 if given.quick else 5)
        print("cost", json.dumps(figures["cost"], indent=1))
        if given.large:
            figures["large"] = large(first, folder, given.large)
            print("large", json.dumps(figures["large"], indent=1))
    out = output(given, about, "{machine_name}-{date}-corpus.json")
    keep(out, figures)
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
