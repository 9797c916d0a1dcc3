"""Compress the bundled samples with every codec and print what comes out: `make demo`."""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import laconic
from laconic.codecs import CodecName

BUILD = Path("build/demo")
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
    """Print one row per sample and codec; rules, characters and sequence are means per document."""
    print(HEADER)
    for name, alphabet in (("kjv", "bytes"), ("bacteria", "dna")):
        sample = laconic.samples.load(name)
        documents = sample.train.documents + sample.test.documents
        characters = sum(map(len, documents))
        gzip_bits = 8 * sum(len(gzip.compress(text.encode(), 6)) for text in documents)
        for codec in get_args(CodecName):
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
    print("\nThe same from the command line, to a Parquet file of grammars:\n")
    kjv = laconic.samples.load("kjv").train
    BUILD.mkdir(parents=True, exist_ok=True)
    with (BUILD / "kjv.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("text", "part"), *zip(kjv.documents, kjv.labels, strict=True)])
    run("compress", BUILD / "kjv.csv", "-o", BUILD / "kjv.parquet", "--label", "part", "--force")
    run("info", BUILD / "kjv.parquet")


def run(*words: str | Path) -> None:
    """Show a command and what it prints."""
    print("$ laconic", *words, flush=True)
    subprocess.run([sys.executable, "-m", "laconic", *map(str, words)], check=True)


if __name__ == "__main__":
    main()
