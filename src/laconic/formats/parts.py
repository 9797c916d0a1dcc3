"""Rows of files to parts: cut by bytes of text, small files merged, rejects in their place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laconic.arrays import arrow_integers
from laconic.formats.format import FileRows, RawPart, Reject, RowNumbers

CUTS = 2  # to be raised whenever cuts fall elsewhere than they did
_MOST = 32 << 20  # bytes of a part that are no text, about
_ROW, _PIECE = 128, 4 << 10  # what a row and a table take beside their values
_MOST_REJECTS = 4096


def cut_into_parts(
    files: Iterable[tuple[str, FileRows]], schema: pa.Schema, text: str, part_bytes: int
) -> Iterator[RawPart]:
    """Yield parts of about `part_bytes` bytes of text, from the rows of files given by name.

    Where the cuts fall depends on the documents alone, not on how they were read, unless it is the
    rest that takes memory: many rows of little text, other columns, or rejects.
    """
    held: list[tuple[str, RowNumbers, pa.Table]] = []
    rejects: list[Reject] = []
    names: list[str] = []
    size = taken = 0
    for file, read in files:
        names += [file] * (names[-1:] != [file])
        rejects += read.rejects
        table, rows = read.table, read.rows
        count = 0 if table is None else table.num_rows
        if table is not None and count:
            ends = np.cumsum(text_bytes(table.column(text)))
            each = _ROW + max(0, table.nbytes - int(ends[-1])) // count
        start, before = 0, 0
        while table is not None and start < count:
            room = max(1, part_bytes) - size
            stop = int(np.searchsorted(ends, before + room, side="right"))
            stop = min(stop, start + (_MOST - taken) // each)
            if stop <= start and not held:
                stop = start + 1
            if stop > start:
                held.append((file, rows[start:stop], table.slice(start, stop - start)))
                size += int(ends[stop - 1]) - before
                taken += each * (stop - start) + _PIECE
                start, before = stop, int(ends[stop - 1])
            if start < count:
                yield _joined(held, schema, rejects, names)
                held, rejects, names, size, taken = [], [], [file], 0, 0
        if len(rejects) >= _MOST_REJECTS:
            yield _joined(held, schema, rejects, names)
            held, rejects, names, size, taken = [], [], [file], 0, 0
    if held or rejects:
        yield _joined(held, schema, rejects, names)


def _joined(
    held: list[tuple[str, RowNumbers, pa.Table]],
    schema: pa.Schema,
    rejects: list[Reject],
    names: list[str],
) -> RawPart:
    return RawPart(
        list(chain.from_iterable(repeat(file, len(rows)) for file, rows, _ in held)),
        np.concatenate([np.empty(0, np.int64), *(rows for _, rows, _ in held)]),
        pa.concat_tables([table for _, _, table in held] or [schema.empty_table()]),
        rejects,
        names,
    )


def text_bytes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the bytes of each text; none is missing."""
    lengths = map(arrow_integers, pc.binary_length(column).chunks)
    return np.concatenate([np.zeros(0, np.int64), *lengths])
