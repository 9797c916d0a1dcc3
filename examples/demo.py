"""Compress the bundled samples, train on one of them, compressed and not: `make demo`.

python examples/demo.py           # about two minutes on two processors
python examples/demo.py --quick   # few documents, one epoch
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import laconic
from laconic.codecs import CODECS

# Large blocks go back to the system when they are freed, so that peak memory is what was in use at
# once. Without this, training is a quarter faster.
STEADY = {"MALLOC_MMAP_THRESHOLD_": "16000000", "MALLOC_TRIM_THRESHOLD_": "16000000"}
# Name, corpus, and what the training is told.
RUNS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("grammars", "grammars", ()),
    ("letters", "letters", ()),
    ("ngrams", "grammars", ("--model", "ngram")),
)
COLUMNS = "{:10} {:7} {:>9} {:>10} {:>7} {:>8} {:>6} {:>9} {:>9} {:>11}"
HEADER = COLUMNS.format(
    "sample",
    "codec",
    "documents",
    "characters",
    "rules",
    "sequence",
    "n/n'",
    "bits/char",
    "gzip -6",
    "documents/s",
)


def main() -> None:
    """Show what codecs make of the samples, then train on grammars and on characters."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few documents, one epoch")
    quick = parser.parse_args().quick
    show_codecs()
    print("\nA model that reads grammars, the same model reading characters, one that counts:\n")
    build = Path("build/demo-quick" if quick else "build/demo")
    build.mkdir(parents=True, exist_ok=True)
    kjv = laconic.samples.load("kjv")
    some = 120 if quick else None
    for name, part in (("train", kjv.train), ("test", kjv.test)):
        rows = list(zip(part.documents, part.labels, strict=True))
        # The sample is sorted by label.
        write_csv(build / f"{name}.csv", rows[:: len(rows) // some] if some else rows)
    # Rules that documents share are learned from those that train, and their own come on top.
    grammars = build / "grammars.parquet"
    for source, corpus, flags in (
        ("train", grammars, ("--rulebook", "auto")),
        ("test", build / "grammars-test.parquet", ("--rulebook", grammars)),
        ("train", build / "letters.parquet", ("--codec", "none")),
        ("test", build / "letters-test.parquet", ("--codec", "none")),
    ):
        laconic_command(
            "compress", build / f"{source}.csv", "-o", corpus, "--label", "part", *flags, "--force"
        )
    results = {}
    for name, corpus_name, model in RUNS:
        run = build / name
        shutil.rmtree(run, ignore_errors=True)  # of an earlier demo
        laconic_command(
            "train", build / f"{corpus_name}.parquet", "-o", run, "--preset", "fast",
            "--epochs", 1 if quick else 6, *model,
        )  # fmt: skip
        figures = laconic_command(
            "evaluate", run, build / f"{corpus_name}-test.parquet", "--json", quiet=True
        )
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        results[name] = json.loads(figures), lines[:-1]
    laconic_command("report", *(build / name for name in results), "-o", build / "report.html")
    show_results(results)
    print(f"\nAll with their curves: {build / 'report.html'}")


def show_codecs() -> None:
    """Print one row per sample and codec; rules, characters and sequence are means per document."""
    print(HEADER)
    for name, alphabet in (("kjv", "bytes"), ("bacteria", "dna")):
        sample = laconic.samples.load(name)
        documents = sample.train.documents + sample.test.documents
        characters = sum(map(len, documents))
        gzip_bits = 8 * sum(len(gzip.compress(text.encode(), 6)) for text in documents)
        for codec in CODECS:
            started = time.perf_counter()
            grammars = laconic.compress_many(documents, codec, alphabet=alphabet)
            seconds = time.perf_counter() - started
            row = (
                name,
                codec,
                f"{len(grammars):,}",
                f"{characters / len(documents):.0f}",
                f"{len(grammars.rules) / len(documents):.1f}",
                f"{len(grammars.sequence) / len(documents):.1f}",
                f"{characters / len(grammars.sequence):.2f}",
                f"{grammars.packed_bits.sum() / characters:.2f}",
                f"{gzip_bits / characters:.2f}",
                f"{len(documents) / seconds:,.0f}",
            )
            print(COLUMNS.format(*row))
    print(
        "\nCharacters, rules and sequence length (n') are means per document; bits/char writes"
        "\nevery symbol in ⌈log2(letters + rules)⌉ bits; gzip -6 packs each document on its own.\n"
    )
    verse = "and the evening and the morning were the first day"
    print(f"The grammar of {verse!r}:")
    laconic.compress(verse).show()


def show_results(results: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]]) -> None:
    """Print one row per run: what the model learned, in what time and memory."""
    heads = ("test accuracy", "seconds", "documents/s", "peak memory")
    print(f"\n{'run':9}" + "".join(f"{head:>15}" for head in heads))
    for name, (figures, epochs) in results.items():
        cells = (
            f"{100 * figures['accuracy']:.1f} %",
            f"{sum(line['seconds'] for line in epochs):.1f}",
            f"{max(line['documents_per_s'] for line in epochs):,.0f}",
            f"{max(line['peak_memory_mb'] for line in epochs):,.0f} MB",
        )
        print(f"{name:9}" + "".join(f"{text:>15}" for text in cells))
    print(
        "\nThe first model reads grammars over a rulebook, the second letters; all else is equal."
        "\nThe third counts n-grams of the grammars, which are not expanded for it, and phrases of"
        "\nsymbols: where words decide, as here, begin with it (docs/training.md says more)."
        "\nDocuments/s are the best epoch's; memory includes PyTorch's own, some 400 MB."
    )


def write_csv(path: Path, rows: Sequence[tuple[str, str]]) -> None:
    """Write documents and labels."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("text", "part"), *rows])


def laconic_command(*words: object, quiet: bool = False) -> str:
    """Run a command and show what it prints, or else return it."""
    told = [str(word) for word in words]
    if not quiet:
        print("$ laconic", shlex.join(told), flush=True)
    command = [sys.executable, "-m", "laconic", *told]
    out = subprocess.PIPE if quiet else None
    done = subprocess.run(command, check=True, text=True, stdout=out, env=os.environ | STEADY)
    return done.stdout if quiet else ""


if __name__ == "__main__":
    main()
