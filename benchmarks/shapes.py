"""Documents of four shapes to train on: short reviews, long pinyin, DNA, repetitive traces.

They come from the folder that LACONIC_DATA names; without it they are made from the bundled
samples, with lengths and repetitions like those of the real ones.
"""

from __future__ import annotations

import csv
import io
import lzma
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from laconic import Grammars, compress_many, samples
from laconic.codecs import CodecName

__all__ = ["SHAPES", "Shape", "shape"]


@dataclass(frozen=True)
class Shape:
    """Where documents of a shape are from, and what made ones should look like.

    Lengths are lognormal: `mean` letters, `spread` the deviation of their logarithm, none over
    `longest`. `phrases` is how many different phrases each made document repeats; 0: plain text.
    A benchmark takes up to `most` documents.
    """

    files: tuple[str, ...]
    alphabet: str
    classes: int
    mean: float
    spread: float
    longest: int
    sample: str
    phrases: int = 0
    most: int = 13_000


YELP_TEST, YELP_TRAIN = (f"text/yelp_polarity_part/{part}.csv.xz" for part in ("test", "train"))
SOGOU = "text/sogou_pinyin/train.csv.xz"

# Real documents are cut at `longest` as well: one pinyin document of 149,276 letters would make a
# step on characters take ten seconds, and measure nothing else.
SHAPES = {
    "yelp": Shape((YELP_TEST,), "zhang", 2, 697, 0.89, 5_100, "kjv", most=3_800),
    "yelp_all": Shape((YELP_TEST, YELP_TRAIN), "zhang", 2, 595, 0.89, 5_100, "kjv"),
    "pinyin": Shape((SOGOU,), "zhang", 10, 5_500, 0.90, 16_000, "kjv", 200, 600),
    "dna": Shape(("dna/H3/train.tsv.xz",), "dna", 2, 500, 0.0, 500, "bacteria", most=2_649),
    "adfa": Shape(("logs/adfa_ld/train.csv.xz",), "bytes", 7, 1_441, 0.81, 10_000, "kjv", 6),
}


def shape(
    name: str, codec: CodecName, count: int, longest: int | None = None
) -> tuple[Grammars, NDArray[np.int64], str]:
    """Return up to `count` documents of a shape, their labels int64 [N] from 0, and their origin.

    They are cut at `longest` letters, or where the shape says. Raises ValueError for a shape that
    does not exist.
    """
    if name not in SHAPES:
        raise ValueError(f"no shape {name!r}; there are {', '.join(SHAPES)}")
    documents, labels, where = _documents(name, count, longest or SHAPES[name].longest)
    return compress_many(documents, codec, alphabet=SHAPES[name].alphabet), labels, where


@lru_cache(maxsize=2)
def _documents(name: str, count: int, longest: int) -> tuple[list[str], NDArray[np.int64], str]:
    folder, wanted = os.environ.get("LACONIC_DATA"), SHAPES[name]
    where = " and ".join(wanted.files)
    if folder:
        rows = [row for file in wanted.files for row in _rows(Path(folder) / file)]
    else:
        rows = _made(wanted, max(count, 1))
        where = f"made from the bundled sample {wanted.sample}, with the lengths of {where}"
    # In any order but the file's: classes may follow each other there.
    order = np.random.default_rng(0).permutation(len(rows))[:count]
    cut = sum(len(rows[i][1]) > longest for i in order)
    if cut:
        where += f", {cut} of {len(order)} documents cut at {longest:,} letters"
    names = sorted({label for label, _ in rows})
    labels = np.array([names.index(rows[i][0]) for i in order], np.int64)
    return [rows[i][1][:longest] for i in order], labels, where


def _rows(path: Path) -> list[tuple[str, str]]:
    """Return label and text of each document of a file of LACONIC_DATA."""
    with lzma.open(path) as packed, io.TextIOWrapper(packed, "utf-8", newline="") as file:
        if path.suffixes[-2] == ".tsv":
            return [(label, text) for label, text in (line.rstrip().split("\t") for line in file)]
        csv.field_size_limit(1 << 30)
        return [(row[0], row[1]) for row in csv.reader(file)]


def _made(wanted: Shape, count: int) -> list[tuple[str, str]]:
    """Return labelled documents of that shape, cut from a sample; labels mean nothing."""
    draw = np.random.default_rng(0)
    sample = samples.load(wanted.sample)
    documents = sample.train.documents + sample.test.documents
    text = ("" if wanted.alphabet == "dna" else " ").join(documents)
    middle = np.log(wanted.mean) - wanted.spread**2 / 2
    lengths = np.clip(draw.lognormal(middle, wanted.spread, count), 1, wanted.longest)
    rows = []
    for length in lengths.round().astype(int).tolist():
        made = _repetitive(draw, text, length, wanted.phrases) if wanted.phrases else ""
        begin = int(draw.integers(len(text) - length))
        label = str(draw.integers(wanted.classes))
        rows.append((label, made or text[begin : begin + length]))
    return rows


def _repetitive(draw: np.random.Generator, text: str, length: int, phrases: int) -> str:
    """Return a document of few phrases of 3 to 8 letters, used as Zipf says.

    With phrases that short, Re-Pair and LZD shorten it as much as they do the real ones.
    """
    begins = draw.integers(len(text) - 8, size=phrases)
    known = [text[b : b + n] for b, n in zip(begins, draw.integers(3, 9, phrases), strict=True)]
    odds = 1 / np.arange(1, phrases + 1)
    order = draw.choice(phrases, size=length // 3 + 1, p=odds / odds.sum())
    return "".join(known[i] for i in order)[:length]
