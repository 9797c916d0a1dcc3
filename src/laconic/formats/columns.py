"""Columns: the text and the label chosen, bad rows taken out, values as bytes to be written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laconic.errors import InputError
from laconic.formats.format import ReadError, ReadOptions, Reject, RowNumbers, shown

STRINGS = (pa.string(), pa.large_string())
MOST_COLUMNS = 10_000  # each takes some 50 kB while a corpus is written
_LISTED, _LONGEST = 50, 60  # of them in a message, and letters of a name there
_DELIMITERS = (";", "\t", "|")  # that a CSV may have instead of commas


def choose_columns(
    file: str, columns: Sequence[str], options: ReadOptions
) -> tuple[str, str | None]:
    """Return the names of the text column and of the label column (None: no label).

    Raises ReadError, with the columns there are, where one is missing or the text is not clear.
    """
    if len(columns) > MOST_COLUMNS:
        reason = (
            f"{len(columns):,} columns; at most {MOST_COLUMNS:,} are read: is it of this format?"
        )
        raise ReadError(reason, file=file)
    listed = names_listed(columns)
    if twice := sorted(name for name, times in Counter(columns).items() if times > 1):
        raise ReadError(f"two columns are named {twice[0]!r}; rename one of them", file=file)

    def named(column: str | int, flag: str) -> str:
        if isinstance(column, str) and column in columns:
            return column
        if isinstance(column, int) and 0 <= column < len(columns):
            return columns[column]
        reason = f"no column {column!r}; choose {flag} from: {names_listed(columns, str(column))}"
        raise ReadError(reason, file=file)

    label = None if options.label is None else named(options.label, "--label")
    if options.text is not None:
        text = named(options.text, "--text")
    elif usual := [
        name for name in (options.usual_text, "text") if name in columns and name != label
    ]:
        text = str(usual[0])
    elif len(rest := [name for name in columns if name != label]) == 1:
        text = rest[0]
    else:
        reason = f"which column is the text? Choose with --text NAME from: {listed}"
        raise ReadError(reason, file=file)
    if text == label:
        reason = f"column {text!r} cannot be both the text and the label; choose from: {listed}"
        raise ReadError(reason, file=file)
    return text, label


def names_listed(columns: Sequence[str], wanted: str = "") -> str:
    """Return the names of columns for a message, and what seems wrong with them or is wanted."""
    cut = [each[:_LONGEST] + "…" * (len(each) > _LONGEST) for each in columns[:_LISTED]]
    listed = ", ".join(map(repr, cut)) + ", …" * (len(columns) > _LISTED)
    if max(map(len, columns), default=0) > _LONGEST:
        return f"{listed}; if that is no header: --no-header, and columns by position from 0"
    apart = [sign for sign in _DELIMITERS if len(columns) == 1 and sign in columns[0]]
    if apart:
        return f"{listed}; are fields apart by --delimiter {apart[0]!r}?"
    near = get_close_matches(wanted, columns, n=1)
    return f"{listed}; did you mean {near[0]!r}?" if near else listed


def fixed_columns(
    file: str, columns: Sequence[str], text: str, options: ReadOptions
) -> tuple[str, str | None]:
    """Return text and label for a format whose text column always has the same name."""
    if options.text not in (None, text):
        reason = f"the text of this format is the column {text!r}, not {options.text!r}"
        raise ReadError(f"{reason}; leave --text out", file=file)
    return choose_columns(file, columns, ReadOptions(text=text, label=options.label))


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


def not_utf8(table: pa.Table, names: Iterable[str]) -> dict[int, str]:
    """Return the rows where one of these columns is not UTF-8, and what is wrong there."""
    bad: dict[int, str] = {}
    for name in names:
        for index, value in enumerate(as_binary(table.column(name)).to_pylist()):
            try:
                if value is not None:
                    value.decode()
            except UnicodeDecodeError as error:
                reason = f"column {name!r} is not UTF-8: byte {value[error.start]:#04x} at "
                bad.setdefault(index, f"{reason}position {error.start}; convert the file to UTF-8")
    return bad


def without(
    bad: Mapping[int, str], file: str, table: pa.Table, rows: RowNumbers
) -> tuple[pa.Table, RowNumbers, list[Reject]]:
    """Take the rows of `bad` (index to reason) out of the table and report them, in order."""
    if not bad:
        return table, rows, []
    rejects = []
    for index in sorted(bad):
        row = {name: as_binary(table.column(name).slice(index, 1)) for name in table.column_names}
        content = shown({name: value.to_pylist()[0] for name, value in row.items()})
        rejects.append(Reject(file, int(rows[index]), bad[index], content))
    keep = np.ones(len(rows), np.bool_)
    keep[list(bad)] = False
    return table.filter(pa.array(keep)), rows[keep], rejects


def as_binary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings as bytes, whether they are UTF-8 or not; other columns as they are."""
    if column.type not in STRINGS:
        return column
    return pc.cast(column, pa.large_binary() if column.type == STRINGS[1] else pa.binary())


def as_bytes(column: pa.ChunkedArray, name: str) -> pa.Array:
    """Return a column as text in bytes, a missing value as an empty one."""
    kind = column.type
    if pa.types.is_nested(kind):
        raise InputError(f"column {name!r} is {kind}: this format has no way to write it")
    if kind not in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        column = pc.cast(column, pa.large_string())
    combined = pc.cast(column, pa.large_binary()).combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = pa.concat_arrays(combined.chunks)
    return combined.fill_null(b"") if combined.null_count else combined


def join_records(fields: list[list[Any]], delimiter: bytes, newline: bytes) -> Any:
    """Join the pieces of fields to records; their bytes are one buffer, which is not copied."""
    pieces: list[Any] = []
    for field in fields:
        pieces += [*field, delimiter]
    pieces[-1] = newline
    scalars = [
        pa.scalar(piece, pa.large_binary()) if isinstance(piece, bytes) else piece
        for piece in [*pieces, b""]
    ]
    records = pc.binary_join_element_wise(*scalars)
    offsets = memoryview(records.buffers()[1]).cast("q")
    first, last = offsets[records.offset], offsets[records.offset + len(records)]
    return memoryview(records.buffers()[2])[first:last]
