"""Data sets by name, in the folder that LACONIC_DATA names: their files, sizes and readers."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, TypeAlias

from benchmarks import layouts
from benchmarks.layouts import DataError
from laconic import samples
from laconic.samples import Split

__all__ = ["DATASETS", "DNA", "DataError", "Dataset", "Splits", "folder", "load", "load_or_sample"]

Kind: TypeAlias = Literal["text", "dna", "traces"]
Splits: TypeAlias = tuple[Split, Split]

# Sequences in each of the ten sets of Pham et al. 2005, whoever distributes them.
DNA = {
    "H3": 14_965,
    "H4": 14_601,
    "H3K9ac": 27_782,
    "H3K14ac": 33_048,
    "H4ac": 34_095,
    "H3K4me1": 31_677,
    "H3K4me2": 30_683,
    "H3K4me3": 36_799,
    "H3K36me3": 34_880,
    "H3K79me3": 28_837,
}
# And in the parts of them that lie in dna/: train, test.
DNA_PARTS = {
    "H3": (2_688, 1_497),
    "H4": (2_649, 1_461),
    "H3K9ac": (4_988, 2_779),
    "H3K14ac": (5_987, 3_305),
    "H4ac": (6_113, 3_410),
    "H3K4me1": (5_692, 3_168),
    "H3K4me2": (5_560, 3_069),
    "H3K4me3": (6_619, 3_680),
    "H3K36me3": (6_280, 3_488),
    "H3K79me3": (5_198, 2_884),
}
# Zhang, Zhao and LeCun 2015, Table 3: train, test, classes.
ZHANG = {
    "ag_news": (120_000, 7_600, 4),
    "sogou_news": (450_000, 60_000, 5),
    "dbpedia": (560_000, 70_000, 14),
    "yelp_review_polarity": (560_000, 38_000, 2),
    "yelp_review_full": (650_000, 50_000, 5),
    "yahoo_answers": (1_400_000, 60_000, 10),
    "amazon_review_full": (3_000_000, 650_000, 5),
    "amazon_review_polarity": (3_600_000, 400_000, 2),
}


@dataclass(frozen=True)
class Dataset:
    """One labelled task with a fixed test part.

    `read` takes the folder of all data and returns train and test. `train` and `test` are how many
    documents there should be (None: unknown), `both` their sum where only that is known.
    """

    kind: Kind
    alphabet: str
    classes: int
    read: Callable[[Path], Splits]
    train: int | None = None
    test: int | None = None
    both: int | None = None


def folder() -> Path:
    """Return the folder that LACONIC_DATA names; DataError if it names none."""
    name = os.environ.get("LACONIC_DATA")
    if not name:
        raise DataError("set LACONIC_DATA to the folder with the data; docs/paper_data.md says how")
    if not Path(name).is_dir():
        raise DataError(f"LACONIC_DATA is {name}, which is no folder")
    return Path(name)


@lru_cache(maxsize=1)
def load(name: str) -> Splits:
    """Return train and test of a data set, checked for their number of documents and classes.

    The one asked for last is kept. Raises DataError for an unknown name, a missing file, a bad row,
    or another number of documents than the set has: a file that was cut off gives results that look
    right. O(bytes).
    """
    if name not in DATASETS:
        raise DataError(f"no data set {name!r}; there are {', '.join(DATASETS)}")
    wanted = DATASETS[name]
    train, test = wanted.read(Path() if name in samples.names() else folder())
    found = {"train": len(train), "test": len(test), "both": len(train) + len(test)}
    for part, count in found.items():
        expected = getattr(wanted, part)
        if expected is not None and count != expected:
            what = "documents" if part == "both" else f"{part} documents"
            raise DataError(f"{name} has {count} {what} instead of {expected}; get it again")
    classes = set(train.labels) | set(test.labels)
    if len(classes) != wanted.classes:
        raise DataError(f"{name} has {len(classes)} classes instead of {wanted.classes}")
    return train, test


def load_or_sample(name: str) -> tuple[str, Splits]:
    """Return a data set and its name; without LACONIC_DATA, the bundled sample most like it."""
    if not os.environ.get("LACONIC_DATA"):
        name = "bacteria" if DATASETS[name].kind == "dna" else "kjv"
    return name, load(name)


def _bundled(name: str, _: Path) -> Splits:
    sample = samples.load(name)
    return sample.train, sample.test


def _datasets() -> dict[str, Dataset]:
    zhang, tabbed = layouts.zhang, layouts.tabbed

    def in_folder(where: str, kind: Kind, classes: int, train: int, test: int) -> Dataset:
        return Dataset(kind, "zhang", classes, partial(zhang, where, ".csv.xz"), train, test)

    # The layout of one folder: text/<set>, logs/<set>, dna/<set>, xz-compressed.
    found = {
        "imdb": in_folder("text/imdb", "text", 2, 25_000, 25_000),
        "yelp_polarity_part": in_folder("text/yelp_polarity_part", "text", 2, 9_035, 3_800),
        "sogou_pinyin": in_folder("text/sogou_pinyin", "text", 10, 2_400, 600),
        "adfa_ld": in_folder("logs/adfa_ld", "traces", 7, 4_761, 1_190),
        **{
            name: Dataset("dna", "dna", 2, partial(tabbed, f"dna/{name}"), *sizes)
            for name, sizes in DNA_PARTS.items()
        },
        "bacteria": Dataset("dna", "dna", 4, partial(_bundled, "bacteria")),
        "kjv": Dataset("text", "zhang", 6, partial(_bundled, "kjv")),
    }
    # The layouts in which their authors give them.
    for name, (train, test, classes) in ZHANG.items():
        read = partial(zhang, f"{name}_csv", ".csv")
        found[f"zhang-{name}"] = Dataset("text", "zhang", classes, read, train, test)
    for layout, of in layouts.DNA_LAYOUTS.items():
        for name, both in DNA.items():
            found[f"{layout}-{name}"] = Dataset("dna", "dna_n", 2, partial(of, name), both=both)
    return found


DATASETS = _datasets()
