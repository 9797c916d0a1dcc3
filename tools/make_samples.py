#!/usr/bin/env python3
"""Recreate the bundled samples, `kjv.tsv.xz` and `bacteria.tsv.xz`, from two Debian packages.

Get the packages from Debian 12 (bookworm) and unpack each into a folder of its own:

    apt-get download bible-kjv-text=4.38 ragout-examples=2.3-4
    dpkg-deb --extract bible-kjv-text_4.38_all.deb kjv
    dpkg-deb --extract ragout-examples_2.3-4_all.deb ragout
    python tools/make_samples.py kjv ragout src/laconic/samples

Only the standard library and the `gzip` program are needed. Nothing is drawn from a random number
generator: every choice follows the SHA-256 of SEED and the text, so any Python writes the same
table. The compressed bytes also depend on liblzma; PROVENANCE.md gives the hash of the table.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import lzma
import os
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = "laconic samples 1"

PARTS = {
    "law": "Ge Exo Lev Num Deu",
    "history": "Josh Jdgs Ruth 1Sm 2Sm 1Ki 2Ki 1Chr 2Chr Ezra Neh Est",
    "poetry": "Job Psa Prv Eccl SSol",
    "prophets": "Isa Jer Lam Eze Dan Hos Joel Amos Obad Jonah Mic Nahum Hab Zep Hag Zec Mal",
    "gospels": "Mat Mark Luke John",
    "letters": "Rom 1Cor 2Cor Gal Eph Phi Col 1Th 2Th 1Tim 2Tim Titus Phmn Heb Jas 1Pet 2Pet 1Jn "
    "2Jn 3Jn Jude",
}
KJV_DATA = "usr/lib/bible.data"
KJV_LINE = re.compile(r"(\d?[A-Za-z]+)(\d+):\d+ (.+)")
KJV_VERSES = 31_102
PASSAGE = range(600, 901)  # characters

SPECIES = {
    "Escherichia coli": ("E.Coli/references/DH1.fasta.gz", "NC_017625.1"),
    "Helicobacter pylori": ("H.Pylori/references/G27.fasta.gz", "NC_011333.1"),
    "Staphylococcus aureus": ("S.Aureus/references/N315.fasta.gz", "NC_002745.2"),
    "Vibrio cholerae": ("V.Cholerae/references/O1_biovar.fasta.gz", "AE003852.1"),
}
GENOMES = "usr/share/doc/ragout/examples"
WINDOW = 800  # bases
TEST_REGION = (0.2, 0.4)  # of the chromosome
GUARD = 20_000  # bases left out on either side of the test region
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@dataclass(frozen=True)
class Document:
    """One candidate line of a sample."""

    split: str
    label: str
    text: str


def rank(text: str) -> str:
    """Return the hash that decides every order and choice here."""
    return hashlib.sha256(f"{SEED}\n{text}".encode()).hexdigest()


def main() -> None:
    """Write both samples and print what went into them."""
    parser = argparse.ArgumentParser(description="Recreate the bundled samples.")
    parser.add_argument("kjv", type=Path, help="folder with bible-kjv-text unpacked")
    parser.add_argument("ragout", type=Path, help="folder with ragout-examples unpacked")
    parser.add_argument("out", type=Path, help="folder to write the .tsv.xz files to")
    folders = parser.parse_args()

    passages = choose(
        kjv_passages(folders.kjv),
        sizes={"train": 320, "test": 80},
        block=60,
        readings=lambda text: (text,),
    )
    write(folders.out / "kjv.tsv.xz", passages)
    windows = choose(
        genome_windows(folders.ragout),
        sizes={"train": 480, "test": 120},
        block=20,
        readings=lambda text: (text, other_strand(text)),
    )
    write(folders.out / "bacteria.tsv.xz", windows)


def kjv_passages(folder: Path) -> Iterator[Document]:
    """Cut every chapter into passages of whole verses; one chapter in five is for testing.

    A passage ends with the verse that brings it to the least length. It is dropped where that verse
    makes it too long, and so are the verses left over at the end of a chapter.
    """
    chapters = kjv_chapters(folder)
    for label, books in PARTS.items():
        mine = [key for key in chapters if key[0] in books.split()]
        mine.sort(key=lambda key: rank(" ".join(key)))
        for number, key in enumerate(mine):
            split = "test" if number < len(mine) // 5 else "train"
            passage = ""
            for verse in chapters[key]:
                passage = f"{passage} {verse}".lstrip()
                if len(passage) >= PASSAGE.start:
                    if len(passage) in PASSAGE:
                        yield Document(split, label, passage)
                    passage = ""


def kjv_chapters(folder: Path) -> dict[tuple[str, str], list[str]]:
    """Return the verses of each chapter, under (book, number).

    The data file is the output of `compress` behind an index, as the manual of `bible` says; one
    line such as `Ge1:1 In the beginning ...` per verse follows a title.
    """
    file = folder / KJV_DATA
    data = file.read_bytes()
    packed = data[data.index(b"\x1f\x9d") :]
    unpacked = subprocess.run(["gzip", "-dc"], input=packed, capture_output=True, check=True)
    _, *lines = unpacked.stdout.decode("ascii").splitlines()
    if len(lines) != KJV_VERSES:
        raise SystemExit(f"{file}: expected {KJV_VERSES} verses, found {len(lines)}")

    chapters: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        match = KJV_LINE.fullmatch(line)
        if match is None:
            raise SystemExit(f"{file}: not a verse: {line!r}")
        book, chapter, verse = match.groups()
        chapters[book, chapter].append(" ".join(verse.split()))  # some end in a space
    return chapters


def genome_windows(folder: Path) -> Iterator[Document]:
    """Cut every chromosome into windows; those of one region are for testing.

    As from a sequencing machine, a window is read on one strand or the other.
    """
    for species, (file, accession) in SPECIES.items():
        genome = first_record(folder / GENOMES / file, accession)
        low, high = (int(share * len(genome)) for share in TEST_REGION)
        for start in range(0, len(genome) - WINDOW + 1, WINDOW):
            end = start + WINDOW
            if low <= start and end <= high:
                split = "test"
            elif end <= low - GUARD or high + GUARD <= start:
                split = "train"
            else:
                continue
            window = genome[start:end]
            if set(window) <= set("ACGT"):
                reverse = int(rank(window), 16) % 2
                yield Document(split, species, other_strand(window) if reverse else window)


def first_record(file: Path, accession: str) -> str:
    """Return the sequence of the first record of a FASTA file, which must bear the accession."""
    with gzip.open(file, "rt", encoding="ascii") as lines:
        header = next(lines)
        if accession not in header:
            raise SystemExit(f"{file}: expected {accession}, found {header.strip()!r}")
        sequence: list[str] = []
        for line in lines:
            if line.startswith(">"):
                break
            sequence.append(line.strip().upper())
    return "".join(sequence)


def other_strand(sequence: str) -> str:
    """Return the reverse complement."""
    return sequence.translate(COMPLEMENT)[::-1]


def choose(
    candidates: Iterable[Document],
    sizes: dict[str, int],
    block: int,
    readings: Callable[[str], tuple[str, ...]],
) -> list[Document]:
    """Choose `sizes` documents per label for each split, train before test, well mixed.

    No test document shares a run of 2 * block - 1 characters with any reading of a training
    document: parallel chapters and repeated genes would give the answer away.
    """
    pools: dict[tuple[str, str], list[Document]] = defaultdict(list)
    for document in sorted(candidates, key=lambda document: rank(document.text)):
        pools[document.split, document.label].append(document)
    labels = sorted({label for _, label in pools})

    train = [d for label in labels for d in pools["train", label][: sizes["train"]]]
    # A run of 2 * block - 1 characters covers at least one whole block, so blocks are enough.
    known = {
        text[start : start + block]
        for document in train
        for text in readings(document.text)
        for start in range(0, len(text) - block + 1, block)
    }
    test: list[Document] = []
    for label in labels:
        fresh = [d for d in pools["test", label] if not contains_any(d.text, known, block)]
        test += fresh[: sizes["test"]]
        left_out = len(pools["test", label]) - len(fresh)
        print(f"{label}: {left_out} of {len(pools['test', label])} test candidates repeat train")

    for split, chosen in (("train", train), ("test", test)):
        if len(chosen) != sizes[split] * len(labels):
            raise SystemExit(f"too few {split} candidates: wrong version of a package?")
        # A second hash: the lowest ranks of a big pool are lower, so its label would come first.
        chosen.sort(key=lambda document: rank("mix " + document.text))
    return train + test


def contains_any(text: str, known: set[str], block: int) -> bool:
    """Tell whether any substring of `block` characters is in `known`."""
    return any(text[i : i + block] in known for i in range(len(text) - block + 1))


def write(file: Path, documents: list[Document]) -> None:
    """Write one line per document, split TAB label TAB text, compressed like `xz -9e`."""
    table = "".join(f"{d.split}\t{d.label}\t{d.text}\n" for d in documents).encode()
    packed = lzma.compress(table, preset=9 | lzma.PRESET_EXTREME)
    partial = file.with_name(file.name + ".partial")
    partial.write_bytes(packed)
    os.replace(partial, file)
    digest = hashlib.sha256(table).hexdigest()
    print(f"{file}: {len(documents)} documents, {len(table)} -> {len(packed)} bytes, {digest}")


if __name__ == "__main__":
    main()
