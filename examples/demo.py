"""From a file to a model that is better than characters and than n-grams alone: `make demo`.

python examples/demo.py           # under three minutes on two processors
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
# Name, what is trained on and tested, and what the training is told.
RUNS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("default", "{}.csv", ("--label", "part")),
    ("letters", "letters-{}.parquet", ("--preset", "fast", "--epochs", "2")),
    ("ngrams", "{}.csv", ("--label", "part", "--model", "ngram", "--preset", "fast")),
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
    """Show what codecs make of the samples, then go from a file to a model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few documents, one epoch")
    quick = parser.parse_args().quick
    print("1. Documents become grammars: short sequences, and rules for what repeats\n")
    show_codecs()
    print("\n2. From a file to a model: by default, then reading letters, then counting n-grams\n")
    build = Path("build/demo-quick" if quick else "build/demo")
    build.mkdir(parents=True, exist_ok=True)
    kjv = laconic.samples.load("kjv")
    some = 120 if quick else None
    for name, part in (("train", kjv.train), ("test", kjv.test)):
        rows = list(zip(part.documents, part.labels, strict=True))
        # The sample is sorted by label.
        write_csv(build / f"{name}.csv", rows[:: len(rows) // some] if some else rows)
    for which in ("train", "test"):
        to = build / f"letters-{which}.parquet"
        how = ("-o", to, "--label", "part", "--codec", "none", "--force")
        laconic_command("compress", build / f"{which}.csv", *how)
    results = {}
    for name, source, flags in RUNS:
        run = build / name
        shutil.rmtree(run, ignore_errors=True)  # of an earlier demo
        few = ("--epochs", 1) if quick and "--epochs" not in flags else ()
        began = time.perf_counter()
        laconic_command("train", build / source.format("train"), "-o", run, *flags, *few)
        seconds = time.perf_counter() - began
        test = build / source.format("test")
        figures = laconic_command("evaluate", run, test, "--json", quiet=True)
        results[name] = json.loads(figures), seconds
    show_results(results)
    print("\n3. Why: the words of one document that decided, and those that speak for each part\n")
    asked = ("explain", build / "default", build / "test.csv")
    laconic_command(*asked, "--row", 3)
    laconic_command(*asked, "--top", 5, "--documents", 100)
    laconic_command("report", *(build / name for name in results), "-o", build / "report.html")
    print(f"\nAll models with their figures and curves, in a browser: {build / 'report.html'}")


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


def show_results(results: dict[str, tuple[dict[str, Any], float]]) -> None:
    """Print one row per run: how good the model is, and what it took."""
    print(f"\n{'run':9}{'test accuracy':>15}{'macro-F1':>12}{'seconds':>12}")
    for name, (figures, seconds) in results.items():
        accuracy = f"{100 * figures['accuracy']:.1f} %"
        print(f"{name:9}{accuracy:>15}{figures['macro_f1']:>12.3f}{seconds:>12.1f}")
    print(
        "\ndefault: `laconic train train.csv -o run --label part`, nothing else said. It counts"
        "\nn-grams of grammars, which takes seconds, reads grammars as long as there is time, and"
        "\nblends the two as held-out documents say."
        "\nletters: the same model that reads, of letters instead of grammars, in two epochs."
        "\nngrams: counts only, its weights learned by gradient descent as a network's are."
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
