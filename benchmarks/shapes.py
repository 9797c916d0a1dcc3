"""Documents of four shapes to train on: short reviews, long pinyin, DNA, repetitive traces.

They come from the folder that LACONIC_DATA names; without it they are made from the bundled
samples, with lengths and repetitions like those of the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import DATASETS, load_or_sample
from laconic import Grammars, Rulebook, compress_many

__all__ = ["SHAPES", "Shape", "shape"]


@dataclass(frozen=True)
class Shape:
    """Which parts of a data set have documents of a shape, and what made ones should look like.

    Lengths are lognormal: `mean` letters, `spread` the deviation of their logarithm, none over
    `longest`. `phrases` is how many different phrases each made document repeats; 0: plain text.
    A benchmark takes up to `most` documents.
    """

    dataset: str
    parts: tuple[str, ...]
    alphabet: str
    mean: float
    spread: float
    longest: int
    phrases: int = 0
    most: int = 13_000

    @property
    def classes(self) -> int:
        """How many classes the documents have."""
        return DATASETS[self.dataset].classes

    def __str__(self) -> str:
        return f"{' and '.join(self.parts)} of {self.dataset}"


# Real documents are cut at `longest` as well: one pinyin document of 149,276 letters would make a
# step on characters take ten seconds, and measure nothing else.
YELP = "yelp_polarity_part"
SHAPES = {
    "yelp": Shape(YELP, ("test",), "zhang", 697, 0.89, 5_100, most=3_800),
    "yelp_all": Shape(YELP, ("test", "train"), "zhang", 595, 0.89, 5_100),
    "pinyin": Shape("sogou_pinyin", ("train",), "zhang", 5_500, 0.90, 16_000, 200, 600),
    "dna": Shape("H3", ("train",), "dna", 500, 0.0, 500, most=2_649),
    "adfa": Shape("adfa_ld", ("train",), "bytes", 1_441, 0.81, 10_000, 6),
}


def shape(
    name: str, codec: str, count: int, longest: int | None = None
) -> tuple[Grammars, NDArray[np.int64], str]:
    """Return up to `count` documents of a shape, their labels int64 [N] from 0, and their origin.

    They are cut at `longest` letters, or where the shape says. A codec such as "repair+auto" is
    over a rulebook, which is learned from the documents themselves. Raises ValueError for a shape
    that does not exist.
    """
    if name not in SHAPES:
        raise ValueError(f"no shape {name!r}; there are {', '.join(SHAPES)}")
    documents, labels, where = _documents(name, count, longest or SHAPES[name].longest)
    alphabet, (private, _, shared) = SHAPES[name].alphabet, codec.partition("+")
    book = Rulebook.learn(documents, alphabet=alphabet) if shared else None
    return compress_many(documents, private, alphabet=alphabet, rulebook=book), labels, where


@lru_cache(maxsize=2)
def _documents(name: str, count: int, longest: int) -> tuple[list[str], NDArray[np.int64], str]:
    wanted = SHAPES[name]
    source, (train, test) = load_or_sample(wanted.dataset)
    if source == wanted.dataset:
        where, parts = str(wanted), {"train": train, "test": test}
        of = [parts[part] for part in wanted.parts]
        rows = [row for part in of for row in zip(part.labels, part.documents, strict=True)]
    else:
        where = f"made from the bundled sample {source}, with the lengths of {wanted}"
        rows = _made(wanted, train.documents + test.documents, max(count, 1))
    # In any order but the file's: classes may follow each other there.
    order = np.random.default_rng(0).permutation(len(rows))[:count]
    cut = sum(len(rows[i][1]) > longest for i in order)
    if cut:
        where += f", {cut} of {len(order)} documents cut at {longest:,} letters"
    names = sorted({label for label, _ in rows})
    labels = np.array([names.index(rows[i][0]) for i in order], np.int64)
    return [rows[i][1][:longest] for i in order], labels, where


def _made(wanted: Shape, documents: list[str], count: int) -> list[tuple[str, str]]:
    """Return labelled documents of that shape, cut from others; labels mean nothing."""
    draw = np.random.default_rng(0)
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
