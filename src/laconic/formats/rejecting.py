"""Rows of a table that cannot be used: found, taken out, and reported with their columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laconic.formats.model import Reject, RowNumbers, shown

STRINGS = (pa.string(), pa.large_string())


def undecodable(table: pa.Table, names: Iterable[str]) -> dict[int, str]:
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


def nulls(column: pa.ChunkedArray) -> list[int]:
    """Return the indices of the missing values."""
    if not column.null_count:
        return []
    found: list[int] = np.flatnonzero(column.is_null().to_numpy()).tolist()
    return found


def as_binary(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return strings as bytes, whether they are UTF-8 or not; other columns as they are."""
    if column.type not in STRINGS:
        return column
    return pc.cast(column, pa.large_binary() if column.type == STRINGS[1] else pa.binary())
