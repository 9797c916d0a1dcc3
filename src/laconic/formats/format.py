"""What a format is, and what its file and the readers say to each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laconic.arrays import is_missing
from laconic.errors import InputError, LaconicError
from laconic.formats.sources import Source, Stream

Layout: TypeAlias = dict[str, Any]  # how documents were written; fit for JSON
RowNumbers: TypeAlias = npt.NDArray[np.int64]  # from 1, as editors count

# What a layout may say of line ends; the first is the default, for documents of another format.
NEWLINES: dict[str, Sequence[Any]] = {"newline": ["\n", "\r\n"], "final_newline": [True, False]}
SOME_COLUMNS = "a list of columns"  # what a key of a layout may be, instead of choices
_LONGEST_CONTENT = 1000
_MOST_SHOWN = 20  # columns of a row


@dataclass(frozen=True, slots=True)
class Format:
    r"""One format, both ways.

    - `open` looks at the first of some files and returns the Reader of all of them.
    - `blocks` yields the bytes of documents, some at a time. Where the format's layout has a
      "newline", every block ends in it, and the last one's is left out if the file had none.
      `whole` writes them itself instead, to a file or, for a `folder`, to a folder that is new.
    - `choices`: what its layout may say, key by key, the default first.
    - `needs`: columns without which it cannot be written, beside the text.
    - `packed`: documents lie compressed by deflate within, and the file is read as it is stored.
    - `tabular`: it holds any columns. `typed`: values keep their types, lists too; a text is a str.
    """

    name: str
    suffixes: tuple[str, ...]
    open: Callable[[list[Source], ReadOptions], Reader]
    blocks: Callable[[Iterable[pa.Table], Layout], Iterator[Any]] | None = None
    whole: Callable[[Iterable[pa.Table], Layout, Path], None] | None = None
    choices: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    packed: bool = False
    tabular: bool = False
    typed: bool = False
    folder: bool = False


class Reader(Protocol):
    """The columns of some files, and what their layout says of the style of the first.

    Where the style has "final_newline", it is seen to by who asks for the rows.
    """

    text: str
    label: str | None
    schema: pa.Schema
    style: Layout

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file: every row is read or rejected, in order."""
        ...


@dataclass(frozen=True, slots=True)
class FileRows:
    """What a format reads at a time from one file: documents, the row of each, rejected rows.

    `consumed` counts bytes as stored, so far; None: the stream knows.
    """

    table: pa.Table | None = None
    rows: RowNumbers = field(default_factory=lambda: np.empty(0, np.int64))
    rejects: list[Reject] = field(default_factory=list)
    consumed: int | None = None

    @classmethod
    def after(cls, row: int, table: pa.Table) -> FileRows:
        """Return the documents of the rows that follow one, 0 for those from the first."""
        return cls(table, np.arange(row + 1, row + 1 + table.num_rows, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class ReadOptions:
    r"""How documents are read; every field has a default that suits a well-named file.

    `format` None: from the file's name. `text` and `label` are columns, by name or by position from
    0; `text` None: the column `usual_text` or "text", else the only one that is not the label.
    `header`: the first row of a CSV names its columns, else they are "0", "1", …. `escapes`: in the
    text column of a CSV backslash + n stands for a newline. `delimiter` None: a tab in a TSV, in a
    CSV `usual_delimiter`, if that is in its first row, else a comma. `on_error`: "stop" raises
    ReadError, "skip" gives a Reject. `part_bytes`: about so many bytes of text make a part.
    `max_document`: so many bytes a document may have; what is needed to read a longer one is not
    known, so it is refused.
    `compressed`: documents are given as gzip or zlib left them; None: where the format has them so.
    `lines`: so many lines of plain text are a document. `with_path`: the path of each one's file is
    the column "path". `label_from_path`: a part of it (laconic.formats.paths) is the label, in the
    column "label", and the path is a column, too.
    `labelled`: a document of which `has_no_label` is true is a bad row.
    """

    format: str | None = None
    text: str | int | None = None
    usual_text: str | None = None
    label: str | int | None = None
    header: bool = True
    delimiter: str | None = None
    usual_delimiter: str | None = None
    escapes: bool = False
    on_error: Literal["stop", "skip"] = "stop"
    part_bytes: int = 8 << 20
    max_document: int = 64 << 20
    compressed: bool | None = False
    lines: int = 1
    with_path: bool = False
    label_from_path: str | None = None
    labelled: bool = False


@dataclass(frozen=True, slots=True)
class RawPart:
    """Documents that are read together: where each is from, their columns, and rejected rows.

    `names` are those of all files that were read for it, in order.
    """

    files: list[str]
    rows: RowNumbers
    table: pa.Table
    rejects: list[Reject]
    names: list[str]

    def rejected(self, errors: Iterable[LaconicError]) -> list[Reject]:
        """Return the rejected rows, and with them the documents that have errors, as they came."""
        rejects = list(self.rejects)
        for error in errors:
            row = error.document or 0
            at = "" if error.position is None else f"position {error.position}: "
            columns = shown(self.table.slice(row, 1).to_pylist()[0])
            rejects.append(Reject(self.files[row], int(self.rows[row]), at + error.reason, columns))
        order = {name: number for number, name in enumerate(dict.fromkeys(self.names))}
        return sorted(rejects, key=lambda reject: (order[reject.file], reject.row))


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that could not be read: `content` is its text or its columns, cut, fit for JSON."""

    file: str
    row: int
    reason: str
    content: object


class ReadError(InputError):
    """An input that cannot be read; `row` counts from 1 and is None where it is the whole file."""


def has_no_label(value: object) -> bool:
    """Return whether a column of labels has none here, as a CSV's where nothing is in a field."""
    return is_missing(value) or value == ""


def too_long(most: int) -> str:
    """Return why a document of more than `most` bytes is not read."""
    return f"longer than {most:,} bytes; split it, or allow more megabytes with --max-document"


def at_its_row(
    error: LaconicError, files: Sequence[str], rows: Sequence[int] | RowNumbers, first: int = 0
) -> ReadError:
    """Return a document's error with the file and row it is from; files[0] is document `first`'s.

    >>> print(at_its_row(InputError("too odd", document=8), ["a.csv", "b.csv"], [9, 1], first=7))
    b.csv, row 1: too odd
    """
    at = (error.document or 0) - first
    return ReadError(error.reason, file=files[at], row=int(rows[at]), position=error.position)


def shown(content: object) -> object:
    r"""Return `content` as JSON can hold it: bytes decoded, all cut at some 1,000 characters.

    >>> shown({"a": b"caf\xe9", "b": 1})
    {'a': 'caf\\xe9', 'b': 1}
    """
    return _shown(content, _LONGEST_CONTENT)


def _shown(content: object, most: int) -> object:
    if isinstance(content, dict):
        # Many rows may be bad, and each have thousands of columns.
        each = most // max(1, min(len(content), _MOST_SHOWN))
        some = islice(content.items(), _MOST_SHOWN)
        return {str(_shown(str(key), each)): _shown(value, each) for key, value in some}
    if isinstance(content, bytes):
        return content[:most].decode(errors="backslashreplace")[:most]
    if content is None or isinstance(content, bool | int | float):
        return content
    # A lone surrogate is a str that no file of JSON can hold.
    return str(content)[:most].encode(errors="backslashreplace").decode()[:most]
