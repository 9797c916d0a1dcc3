"""What there is to read: a corpus, or raw files of any format, some documents at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet

from laconic.alphabet import Document
from laconic.corpus.corpus import Corpus
from laconic.errors import InputError, LaconicError, NoDocumentError, StoreError
from laconic.formats import RawDocuments, ReadOptions, at_its_row, read
from laconic.formats.stores import place
from laconic.rulebook import Rulebook
from laconic.show import how_many

_ROWS = 4096  # of a corpus that are read at a time


class InputPart(NamedTuple):
    """Grammars or texts, the columns beside them, and of texts the file and row of each."""

    documents: Any
    columns: pa.Table
    files: list[str]
    rows: list[int]

    def located(self, error: LaconicError, first: int = 0) -> LaconicError:
        """Return a document's error, with file and row if it has them; documents from `first`."""
        return at_its_row(error, self.files, self.rows, first) if self.files else error


class Inputs(NamedTuple):
    """A corpus, or documents that are read as they come; the other one is None."""

    files: list[str]
    corpus: Corpus | None
    documents: RawDocuments | None

    @property
    def columns(self) -> list[str]:
        """The user's columns, without the text."""
        if self.documents is not None:
            return [name for name in self.documents.schema.names if name != self.documents.text]
        return self.corpus.columns if self.corpus is not None else []

    def parts(self) -> Iterator[InputPart]:
        """Yield some documents at a time."""
        if self.corpus is not None:
            for _, table, grammars in self.corpus.parts():
                columns = table.select(self.corpus.columns)
                for first in range(0, len(grammars), _ROWS):
                    some = grammars[first : first + _ROWS]
                    yield InputPart(some, columns.slice(first, _ROWS), [], [])
        elif self.documents is not None:
            name = self.documents.text
            for part in self.documents.parts():
                texts = part.table.column(name).to_pylist()
                columns = part.table.drop_columns([name])
                yield InputPart(texts, columns, part.files, part.rows.tolist())

    def texts(self) -> Iterator[Document]:
        """Yield the documents, those of a corpus expanded, as they are read."""
        if self.corpus is not None:
            for table in self.corpus.documents():
                yield from table.column(self.corpus.about.text).to_pylist()
        else:
            for part in self.parts():
                yield from part.documents

    def some(self, most: int, seed: int = 0) -> Any:
        """Return the documents, in a corpus or a list, or so many random ones in their order."""
        random = Random(seed)
        if self.corpus is not None:
            if len(self.corpus) <= most:
                return self.corpus
            return self.corpus[sorted(random.sample(range(len(self.corpus)), most))]
        kept: list[tuple[int, Document]] = []
        for number, each in enumerate(self.texts()):
            if len(kept) < most:
                kept.append((number, each))
            elif (place := random.randrange(number + 1)) < most:
                kept[place] = number, each
        return [each for _, each in sorted(kept, key=lambda entry: entry[0])]

    def document(self, row: int) -> Any:
        """Return one document, text or a grammar, by its number from 0; IndexError beyond them."""
        if self.corpus is not None:
            return self.corpus[row]
        before = 0
        for part in self.parts():
            if 0 <= row - before < len(part.documents):
                return part.documents[row - before]
            before += len(part.documents)
        rows = f"{', '.join(self.files[:3])} has {how_many(before, 'row')}, from 0"
        raise NoDocumentError(f"there is no row {row}: {rows}")


def open_inputs(inputs: Sequence[str], options: ReadOptions) -> Inputs:
    """Return what inputs hold: a corpus if the one given is one, and raw documents otherwise."""
    if len(inputs) == 1 and options.format is None and _is_corpus(inputs[0]):
        return Inputs(list(inputs), Corpus.open(inputs[0]), None)
    documents = read(inputs, options)
    return Inputs(documents.files, None, documents)


def rulebook_in(path: Path) -> Rulebook:
    """Return the rulebook in a .json file, or that of a corpus; InputError if it has none."""
    if path.suffix == ".json":
        return Rulebook.load(path)
    rulebook = Corpus.open(path).rulebook
    if rulebook is None:
        raise InputError(
            f"{path} is a corpus without a rulebook: learn one with `laconic rulebook`, or by "
            "`laconic compress --rulebook auto`"
        )
    return rulebook


def _is_corpus(given: str) -> bool:
    path: Any = place(given)
    if path.is_dir():
        path = min(path.glob("*.parquet"), default=path)
    if path.suffix != ".parquet" or not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            metadata = pyarrow.parquet.read_schema(file).metadata
    except StoreError:
        raise
    except (pa.ArrowException, OSError):
        return True  # Its own reader tells best what is wrong with it.
    return b"laconic" in (metadata or {})
