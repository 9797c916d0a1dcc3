"""Readers of the files in which the paper's data sets are distributed, plain or compressed."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from laconic.errors import InputError
from laconic.samples import Split

__all__ = ["DNA_LAYOUTS", "DataError", "gue", "jaist", "nt", "tabbed", "zhang"]

_OPENERS: dict[str, Callable[[Path], Any]] = {
    "": lambda path: path.open("rb"),
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
_TEST_SHARE = 0.1  # of JAIST's files, which have no test part
_LETTERS = frozenset("ACGTN")


class DataError(InputError):
    """Data that is missing or damaged; names file, row and cure."""


def zhang(where: str, suffix: str, folder: Path) -> tuple[Split, Split]:
    """Return train and test of a set of Zhang, Zhao and LeCun 2015, from where/{train,test}.csv.

    The first column is the label; all others are the text, joined by a newline as the fields' own
    newlines, which are written as a backslash and n.
    """
    return _zhang(folder / where / f"train{suffix}"), _zhang(folder / where / f"test{suffix}")


def tabbed(where: str, folder: Path) -> tuple[Split, Split]:
    """Return train and test from where/{train,test}.tsv.xz with lines label TAB sequence."""
    paths = [folder / where / f"{part}.tsv.xz" for part in ("train", "test")]
    train, test = (_documents(path, _tabbed(path)) for path in paths)
    return train, test


def jaist(name: str, folder: Path) -> tuple[Split, Split]:
    """Return a DNA set as its authors give it: jaist/<name>.txt, a header, sequence and label each.

    There is no test part: a tenth, the same one always, becomes it.
    """
    known = [folder / "jaist" / f"{each}.txt" for each in (name, name.lower())]
    path = next((each for each in known if _found(each)), known[0])
    every = _documents(path, _jaist(path))
    order = np.random.default_rng(0x7E57).permutation(len(every))
    count = round(_TEST_SHARE * len(order))
    test, train = (np.sort(rows).tolist() for rows in (order[:count], order[count:]))
    return _some(every, train), _some(every, test)


def gue(name: str, folder: Path) -> tuple[Split, Split]:
    """Return a DNA set of GUE: GUE/EMP/<name>/{train,dev,test}.csv, header sequence,label.

    Its dev part is added to train, of which every row of the grid holds out its own part.
    """
    where = folder / "GUE" / "EMP" / name
    train, dev, test = (
        _documents(path, _gue(path)) for path in (where / f"{p}.csv" for p in _GUE_PARTS)
    )
    return Split(train.documents + dev.documents, train.labels + dev.labels), test


def nt(name: str, folder: Path) -> tuple[Split, Split]:
    """Return a DNA set of the Nucleotide Transformer: nt/<name>/{train,test}.fna, >id|label."""
    paths = [folder / "nt" / name / f"{part}.fna" for part in ("train", "test")]
    train, test = (_documents(path, _nt(path)) for path in paths)
    return train, test


_GUE_PARTS = ("train", "dev", "test")
DNA_LAYOUTS = {"jaist": jaist, "gue": gue, "nt": nt}


def _found(path: Path) -> Path | None:
    """Return the file, as it is or compressed; None if there is none."""
    if path.exists():
        return path
    return next((p for s in _OPENERS if (p := path.with_name(path.name + s)).exists()), None)


@contextmanager
def _lines(path: Path) -> Iterator[IO[str]]:
    found = _found(path)
    if found is None:
        raise DataError(f"{path} does not exist, nor with .gz, .bz2 or .xz; see docs/paper_data.md")
    opener = _OPENERS.get(found.suffix, _OPENERS[""])
    try:
        with opener(found) as raw, io.TextIOWrapper(raw, "utf-8", newline="") as file:
            yield file
    except (UnicodeDecodeError, EOFError, lzma.LZMAError, OSError) as error:
        raise DataError(f"{found} cannot be read: {error}; get it again") from None


def _bad(reason: str, path: Path, row: int) -> DataError:
    return DataError(reason, file=str(path), row=row)


def _documents(path: Path, rows: Iterable[tuple[str, str]]) -> Split:
    labels, texts = [], []
    for label, text in rows:
        labels.append(label)
        texts.append(text)
    if not texts:
        raise DataError(f"{path} has no documents; get it again")
    return Split(texts, labels)


def _some(every: Split, rows: list[int]) -> Split:
    return Split([every.documents[i] for i in rows], [every.labels[i] for i in rows])


def _zhang(path: Path) -> Split:
    csv.field_size_limit(1 << 30)

    def rows(file: IO[str]) -> Iterator[tuple[str, str]]:
        for number, row in enumerate(csv.reader(file), 1):
            if len(row) < 2 or not row[0].isdigit():
                raise DataError(
                    'it must be "label","text", … in quotes', file=str(path), row=number
                )
            yield row[0], "\n".join(row[1:]).replace("\\n", "\n")

    with _lines(path) as file:
        return _documents(path, rows(file))


def _tabbed(path: Path) -> Iterator[tuple[str, str]]:
    with _lines(path) as file:
        for number, line in enumerate(file, 1):
            label, tab, text = line.rstrip("\r\n").partition("\t")
            if not tab:
                raise _bad("it must be label TAB sequence", path, number)
            yield label, _dna(path, number, text)


def _jaist(path: Path) -> Iterator[tuple[str, str]]:
    """Yield label and sequence; the label is a line of its own after each sequence."""
    pieces: list[str] = []
    with _lines(path) as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if line.startswith(">") and pieces:
                raise DataError(
                    "the sequence before it has no label line", file=str(path), row=number
                )
            if not line or line.startswith(">"):
                continue
            if line in ("0", "1"):
                if not pieces:
                    raise _bad("a label without a sequence", path, number)
                yield line, "".join(pieces)
                pieces = []
            else:
                pieces.append(_dna(path, number, line))
    if pieces:
        raise DataError(f"{path}: the last sequence has no label line; the file was cut off")


def _gue(path: Path) -> Iterator[tuple[str, str]]:
    with _lines(path) as file:
        reader = csv.DictReader(file)
        if not {"sequence", "label"} <= set(reader.fieldnames or ()):
            raise DataError(f"{path}: its first row must name the columns sequence and label")
        for number, row in enumerate(reader, 2):
            yield row["label"], _dna(path, number, row["sequence"])


def _nt(path: Path) -> Iterator[tuple[str, str]]:
    label, pieces = "", list[str]()
    with _lines(path) as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if line.startswith(">"):
                if pieces:
                    yield label, "".join(pieces)
                _, bar, label = line.rpartition("|")
                pieces = []
                if not bar or not label.isdigit():
                    raise DataError(
                        "its header must end in | and a label", file=str(path), row=number
                    )
            elif line:
                pieces.append(_dna(path, number, line))
    if pieces:
        yield label, "".join(pieces)


def _dna(path: Path, number: int, text: str | None) -> str:
    upper = (text or "").upper()
    if not upper or set(upper) - _LETTERS:
        raise _bad(f"{upper[:20]!r} is no DNA of letters ACGTN", path, number)
    return upper
