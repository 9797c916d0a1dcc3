"""Measure corpora on disk: bytes per document against gzip and Parquet, time and memory.

Data come from the folder that LACONIC_DATA names, else from the bundled samples.

    python benchmarks/corpus.py                # sizes, time, memory; a minute or two
    python benchmarks/corpus.py --keep         # to benchmarks/results, for `make docs`
    python benchmarks/corpus.py --large 2      # also the memory that 2 GB of input takes
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import lzma
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from machine import describe

import laconic
from laconic.codecs import compress_symbols
from laconic.formats import ReadOptions, read

Figures = dict[str, Any]
COLUMNS = ["--no-header", "--text", "1", "--label", "0"]
WAYS = {
    "repair": ["--codec", "repair"],
    "repair, level 19": ["--codec", "repair", "--level", "19"],
    "repair, compact": ["--codec", "repair", "--compact"],
    "lzd": ["--codec", "lzd"],
    "lz78": ["--codec", "lz78"],
}


def sources(folder: Path) -> dict[str, Path]:
    """Return the sets to measure, as plain CSV or TSV files in `folder`."""
    data = os.environ.get("LACONIC_DATA")
    found = {}
    if data:
        sets = {"imdb": "text", "sogou_pinyin": "text", "adfa_ld": "logs", "H3": "dna"}
        for name, kind in sets.items():
            suffix = "tsv" if kind == "dna" else "csv"
            packed = Path(data) / kind / name / f"train.{suffix}.xz"
            found[name] = folder / f"{name}.{suffix}"
            found[name].write_bytes(lzma.decompress(packed.read_bytes()))
        return found
    for name in ("kjv", "bacteria"):
        split = laconic.samples.load(name).train
        found[name] = folder / f"{name}.csv"
        with found[name].open("w", newline="") as file:
            rows = zip(split.labels, split.documents, strict=True)
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows(rows)
    return found


def run(*words: str | Path) -> Figures:
    """Run a command of ours; return what alone_command.py tells."""
    command: list[str | Path] = [
        sys.executable,
        Path(__file__).with_name("alone_command.py"),
        *words,
    ]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    told: Figures = json.loads(done.stdout.splitlines()[-1])
    return told


def sizes(path: Path, folder: Path, ways: dict[str, list[str]]) -> Figures:
    """Bytes per document of one set, in every way, and in those of others."""
    parts = list(read(path, ReadOptions(header=False, text=1, label=0)).parts())
    table = pa.concat_tables([part.table for part in parts])
    texts = table.column("1").to_pylist()
    raw = folder / "raw.parquet"
    pq.write_table(table, raw, compression="zstd", compression_level=3)
    rows = {}
    for name, options in ways.items():
        out = folder / "corpus.parquet"
        run("compress", path, "-o", out, *COLUMNS, *options, "--force")
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
    alone, runs = [], []
    for _ in range(rounds):
        started = time.process_time()
        for symbols, offsets in encoded:
            compress_symbols(symbols, offsets, 256, codec, threads=1)
        alone.append(time.process_time() - started)
        runs.append(run("compress", path, "-o", folder / "cost.parquet", *COLUMNS, "--force"))
    empty = [run("compress", "--help") for _ in range(rounds)]
    return {
        "source": path.name,
        "input_bytes": path.stat().st_size,
        "workers": len(os.sched_getaffinity(0)),
        "rounds": runs,
        **{key: statistics.median(run[key] for run in runs) for key in runs[0]},
        "peak_memory": max(run["peak_memory"] for run in runs),
        "codec_cpu_seconds": statistics.median(alone),
        "start_cpu_seconds": statistics.median(run["cpu_seconds"] for run in empty),
    }


def large(path: Path, folder: Path, gigabytes: float) -> Figures:
    """Peak memory of compressing an input made by repeating one."""
    repeated, data = folder / "large.csv", path.read_bytes()
    with repeated.open("wb") as file:
        while file.tell() < gigabytes * 1e9:
            file.write(data)
    size = repeated.stat().st_size
    figures = run("compress", repeated, "-o", folder / "large", *COLUMNS, "--force")
    repeated.unlink()
    return {"input_bytes": size, **figures}


def main() -> None:
    """Run all parts and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer ways, fewer rounds")
    parser.add_argument("--large", type=float, help="gigabytes of input to measure memory on")
    parser.add_argument("--json", type=Path, help="default: build/benchmarks/<machine>-….json")
    parser.add_argument("--keep", action="store_true", help="write to benchmarks/results instead")
    arguments = parser.parse_args()
    about = describe()
    figures: Figures = {"about": about, "sizes": {}}
    ways = {name: WAYS[name] for name in list(WAYS)[:: 2 if arguments.quick else 1]}
    with tempfile.TemporaryDirectory(prefix="laconic-bench-") as scratch:
        folder = Path(scratch)
        paths = sources(folder)
        for name, path in paths.items():
            figures["sizes"][name] = sizes(path, folder, ways)
            print(name, json.dumps(figures["sizes"][name], indent=1))
        first = next(iter(paths.values()))
        figures["cost"] = cost(first, folder, 1 if arguments.quick else 5)
        print("cost", json.dumps(figures["cost"], indent=1))
        if arguments.large:
            figures["large"] = large(first, folder, arguments.large)
            print("large", json.dumps(figures["large"], indent=1))
    name = f"{about['machine_name']}-{about['date']}-corpus.json"
    root = Path(__file__).parent.parent
    out = arguments.json
    out = out or root / ("benchmarks/results" if arguments.keep else "build/benchmarks") / name
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(figures, indent=1) + "\n")
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
