"""What commands read: a corpus, or raw files of any format, some documents at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from laconic.errors import NoDocumentError
from laconic.formats.registry import FormatName
from laconic.show import how_many

if TYPE_CHECKING:
    import pyarrow as pa

    from laconic.corpus import Corpus
    from laconic.formats import RawDocuments, ReadOptions

__all__ = ["InputPart", "Inputs", "ReadingFlags", "column", "open_inputs"]

Places = tuple[list[str], list[int]]  # the file and row of each of some documents
_ROWS = 4096  # of a corpus that are read at a time
_PART_BYTES = 1 << 20  # of text, likewise
_ESCAPES = "In the text of a CSV, backslash and n stand for a newline, as in Zhang's data sets."


@dataclass(frozen=True)
class ReadingFlags:
    """How raw files are read: flags of every command that reads them."""

    text: Annotated[
        str | None, Parameter(help="The column of the text, by name or by position from 0.")
    ] = None
    format: Annotated[
        FormatName | None, Parameter(help="What the files are, if their names do not tell.")
    ] = None
    header: Annotated[bool, Parameter(help="Whether the first row of a CSV names the columns.")] = (
        True
    )
    escapes: Annotated[bool, Parameter(negative="", help=_ESCAPES)] = False

    def options(self) -> ReadOptions:
        """Return these as the readers want them."""
        from laconic.formats import ReadOptions

        return ReadOptions(
            format=self.format,
            text=column(self.text),
            header=self.header,
            escapes=self.escapes,
            part_bytes=_PART_BYTES,
        )


class Inputs(NamedTuple):
    """What there is to predict: a corpus, or documents that are read as they come."""

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
                    rows = grammars[first : first + _ROWS]
                    yield InputPart(rows, columns.slice(first, _ROWS), None)
        elif self.documents is not None:
            name = self.documents.text
            for part in self.documents.parts():
                texts = part.table.column(name).to_pylist()
                where = part.files, part.rows.tolist()
                yield InputPart(texts, part.table.drop_columns([name]), where)

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


class InputPart(NamedTuple):
    """Grammars or texts, the columns beside them, and the file and row that each is from."""

    documents: Any
    columns: pa.Table
    where: Places | None


def open_inputs(inputs: list[str], reading: ReadingFlags | None) -> Inputs:
    """Return what inputs hold: a corpus if the one given is one, and raw documents otherwise."""
    from laconic.corpus import Corpus
    from laconic.formats import read

    reading = reading or ReadingFlags()
    if len(inputs) == 1 and reading.format is None and _is_corpus(Path(inputs[0])):
        return Inputs(inputs, Corpus.open(inputs[0]), None)
    documents = read(inputs, reading.options())
    return Inputs(documents.files, None, documents)


def column(name: str | None) -> str | int | None:
    """Return a column by its name, or by its position if that is what was given."""
    return int(name) if name is not None and name.isdecimal() else name


def _is_corpus(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet

    if path.is_dir():
        path = min(path.glob("*.parquet"), default=path)
    if path.suffix != ".parquet" or not path.is_file():
        return False
    try:
        metadata = pyarrow.parquet.read_schema(path).metadata
    except (pa.ArrowException, OSError):
        return True  # Its own reader tells best what is wrong with it.
    return b"laconic" in (metadata or {})
