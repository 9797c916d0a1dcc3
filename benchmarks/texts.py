"""English and genomes to compress: from the folder that LACONIC_DATA names, else from a sample."""

from __future__ import annotations

import itertools
import lzma
import os
import random
import tempfile
from collections.abc import Callable
from pathlib import Path

from benchmarks.data import folder, load_or_sample

_SCRATCH = tempfile.TemporaryDirectory(prefix="laconic-bench-")


def english_documents(count: int, length: int) -> tuple[str, list[str]]:
    """Return where they are from, and up to `count` ASCII documents of `length` characters each."""
    source, texts = _english()
    joined = " ".join(itertools.takewhile(_budget(2 * count * length), texts))
    ascii_only = joined.encode("ascii", "ignore").decode()
    starts = range(0, min(len(ascii_only) - length + 1, count * length), length)
    return source, [ascii_only[i : i + length] for i in starts]


def large_english(size: int) -> tuple[str, Path]:
    """Return a title and a file of `size` bytes of English, or as much as there is."""
    source, texts = _english()
    data = " ".join(itertools.takewhile(_budget(2 * size), texts)).encode()[:size]
    return f"{len(data) / 1e6:.1f} MB of English ({source})", _write("english", data)


def ecoli_genome() -> tuple[str, Path] | None:
    """Return a title and the file of the genome of E. coli, if LACONIC_DATA has it."""
    if not os.environ.get("LACONIC_DATA"):
        return None
    path = folder() / "genomes" / "ecoli_mg1655.fasta.xz"
    if not path.exists():
        return None
    lines = lzma.decompress(path.read_bytes()).splitlines()
    data = b"".join(line for line in lines if not line.startswith(b">"))
    return "genome of E. coli MG1655", _write("ecoli", data)


def mutated_copies(copies: int) -> tuple[str, Path] | None:
    """Return a repetitive text: copies of one genome, 0.1 % of the letters of each changed."""
    genome = ecoli_genome()
    if genome is None:
        return None
    one = genome[1].read_bytes()
    draw = random.Random(0)
    whole = bytearray()
    for _ in range(copies):
        copy = bytearray(one)
        for _ in range(len(copy) // 1000):
            copy[draw.randrange(len(copy))] = draw.choice(b"ACGT")
        whole += copy
    return f"{copies} copies of that genome, 0.1 % mutated", _write("copies", bytes(whole))


def _english() -> tuple[str, list[str]]:
    source, (train, test) = load_or_sample("imdb")
    return source, train.documents + test.documents


def _budget(size: int) -> Callable[[str], bool]:
    spent = 0

    def within(text: str) -> bool:
        nonlocal spent
        spent += len(text) + 1
        return spent <= size

    return within


def _write(name: str, data: bytes) -> Path:
    path = Path(_SCRATCH.name) / name
    path.write_bytes(data)
    return path
