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


def cut_into_parts(
    files: Iterable[tuple[str, FileRows]], schema: pa.Schema, text: str, part_bytes: int
) -> Iterator[RawPart]:
    """Yield parts of about `part_bytes` bytes of text, from the rows of files given by name.

    Where the cuts fall depends on the documents alone, not on how they were read.
    """
    held: list[tuple[str, RowNumbers, pa.Table]] = []
    rejects: list[Reject] = []
    size = 0
    for file, read in files:
        rejects += read.rejects
        if read.table is None or not read.table.num_rows:
            continue
        ends = np.cumsum(_text_bytes(read.table.column(text)))
        start, before = 0, 0
        while start < len(ends):
            room = max(1, part_bytes) - size
            stop = int(np.searchsorted(ends, before + room, side="right"))
            if stop == start and not held:
                stop = start + 1
            if stop > start:
                held.append((file, read.rows[start:stop], read.table.slice(start, stop - start)))
                size += int(ends[stop - 1]) - before
                start, before = stop, int(ends[stop - 1])
            if start < len(ends):
                yield _joined(held, schema, rejects)
                held, rejects, size = [], [], 0
    if held or rejects:
        yield _joined(held, schema, rejects)


def _joined(
    held: list[tuple[str, RowNumbers, pa.Table]], schema: pa.Schema, rejects: list[Reject]
) -> RawPart:
    return RawPart(
        list(chain.from_iterable(repeat(file, len(rows)) for file, rows, _ in held)),
        np.concatenate([np.empty(0, np.int64), *(rows for _, rows, _ in held)]),
        pa.concat_tables([table for _, _, table in held] or [schema.empty_table()]),
        rejects,
    )


def _text_bytes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the bytes of each text; none is missing."""
    lengths = map(arrow_integers, pc.binary_length(column).chunks)
    return np.concatenate([np.zeros(0, np.int64), *lengths])
