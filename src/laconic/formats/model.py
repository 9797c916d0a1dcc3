"""What readers speak: options, parts, rejected rows and the error that names file and row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laconic.errors import InputError, LaconicError
from laconic.formats.sources import Source

Format: TypeAlias = Literal["csv", "tsv", "jsonl", "parquet", "lines", "files", "fasta", "fastq"]
RowNumbers: TypeAlias = npt.NDArray[np.int64]

_LONGEST_CONTENT = 1000


@dataclass(frozen=True, slots=True)
class ReadOptions:
    r"""How documents are read; every field has a default that suits a well-named file.

    `format` None: from the file's name. `text` and `label` are columns, by name or by position from
    0; `text` None: the column "text", else the only one that is not the label. `header`: the first
    row of a CSV names its columns, else they are "0", "1", …. `escapes`: in the text column of a
    CSV backslash + n stands for a newline. `on_error`: "stop" raises ReadError, "skip" gives a
    Reject. `part_bytes`: about so many bytes of text make a part.
    """

    format: Format | None = None
    text: str | int | None = None
    label: str | int | None = None
    header: bool = True
    escapes: bool = False
    on_error: Literal["stop", "skip"] = "stop"
    part_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True)
class Reject:
    """A row that could not be read: `content` is its text or its columns, cut, fit for JSON."""

    file: str
    row: int
    reason: str
    content: object


class ReadError(InputError):
    """An input that cannot be read; `row` counts from 1 and is None where it is the whole file."""


def at_its_row(
    error: LaconicError, files: Sequence[str], rows: Sequence[int] | RowNumbers, first: int = 0
) -> ReadError:
    """Return a document's error with the file and row it is from; files[0] is document `first`'s.

    >>> print(at_its_row(InputError("too odd", document=8), ["a.csv", "b.csv"], [9, 1], first=7))
    b.csv, row 1: too odd
    """
    at = (error.document or 0) - first
    return ReadError(error.reason, file=files[at], row=int(rows[at]), position=error.position)


@dataclass(frozen=True, slots=True)
class RawPart:
    """Documents that are read together: where each is from, their columns, and rejected rows."""

    files: list[str]
    rows: RowNumbers
    table: pa.Table
    rejects: list[Reject]


@dataclass(frozen=True, slots=True)
class FileRows:
    """What a format reads at a time from one file; `consumed` counts bytes as stored, so far."""

    rows: RowNumbers
    table: pa.Table | None
    rejects: list[Reject] = field(default_factory=list)
    consumed: int = 0


class Reader(Protocol):
    """A format: the columns and layout of the first file, and the rows of any."""

    text: str
    label: str | None
    schema: pa.Schema
    layout: dict[str, Any]

    def read(self, source: Source) -> Iterator[FileRows]:
        """Read one file; its rejects are in order and every row is read or rejected."""
        ...


def shown(content: object) -> object:
    r"""Return `content` as JSON can hold it: bytes decoded, everything cut at 1,000 characters.

    >>> shown({"a": b"caf\xe9", "b": 1})
    {'a': 'caf\\xe9', 'b': 1}
    """
    if isinstance(content, dict):
        return {str(key): shown(value) for key, value in content.items()}
    if isinstance(content, bytes):
        return content[:_LONGEST_CONTENT].decode(errors="backslashreplace")[:_LONGEST_CONTENT]
    if content is None or isinstance(content, bool | int | float):
        return content
    # A lone surrogate is a str that no file of JSON can hold.
    text = str(content)[:_LONGEST_CONTENT]
    return text.encode(errors="backslashreplace").decode()[:_LONGEST_CONTENT]


def choose_columns(
    file: str, columns: Sequence[str], options: ReadOptions
) -> tuple[str, str | None]:
    """Return the names of the text column and of the label column (None: no label).

    Raises ReadError, with the columns there are, where one is missing or the text is not clear.
    """
    listed = ", ".join(map(repr, columns))
    if twice := sorted({name for name in columns if list(columns).count(name) > 1}):
        raise ReadError(f"two columns are named {twice[0]!r}; rename one of them", file=file)

    def named(column: str | int, flag: str) -> str:
        if isinstance(column, str) and column in columns:
            return column
        if isinstance(column, int) and 0 <= column < len(columns):
            return columns[column]
        raise ReadError(f"no column {column!r}; choose {flag} from: {listed}", file=file)

    label = None if options.label is None else named(options.label, "--label")
    if options.text is not None:
        text = named(options.text, "--text")
    elif "text" in columns and label != "text":
        text = "text"
    elif len(rest := [name for name in columns if name != label]) == 1:
        text = rest[0]
    else:
        reason = f"which column is the text? Choose with --text NAME from: {listed}"
        raise ReadError(reason, file=file)
    if text == label:
        reason = f"column {text!r} cannot be both the text and the label; choose from: {listed}"
        raise ReadError(reason, file=file)
    return text, label


def fixed_columns(
    file: str, columns: Sequence[str], text: str, options: ReadOptions
) -> tuple[str, str | None]:
    """Return text and label for a format whose text column always has the same name."""
    if options.text not in (None, text):
        reason = f"the text of this format is the column {text!r}, not {options.text!r}"
        raise ReadError(f"{reason}; leave --text out", file=file)
    given = ReadOptions(text=text, label=options.label)
    return choose_columns(file, columns, given)


def check_same_columns(file: str, columns: Sequence[str], expected: Sequence[str]) -> None:
    """Raise ReadError with the difference where a later file has other columns than the first."""
    if list(columns) == list(expected):
        return
    missing = [name for name in expected if name not in columns]
    extra = [name for name in columns if name not in expected]
    difference = "; ".join(
        f"{word} {', '.join(map(repr, names))}"
        for word, names in (("missing", missing), ("unexpected", extra))
        if names
    )
    reason = difference or "the columns are in another order"
    raise ReadError(f"not the columns of the first file: {reason}; read it on its own", file=file)
