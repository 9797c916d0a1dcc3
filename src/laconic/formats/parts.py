"""Rows of files to parts: cut by bytes of text, small files merged, rejects in their place."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from laconic.arrays import arrow_integers
from laconic.formats.model import FileRows, RawPart, Reject


class Cutter:
    """Collects rows of files and gives parts of about `part_bytes` bytes of text.

    Where the cuts fall depends on the documents alone, not on how they were read.
    """

    def __init__(self, schema: pa.Schema, text: str, part_bytes: int) -> None:
        self._schema, self._text = schema, text
        self._part_bytes = max(1, part_bytes)
        self._clear()

    def _clear(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows: list[npt.NDArray[np.int64]] = []
        self._files: list[str] = []
        self._rejects: list[Reject] = []
        self._bytes = 0

    def add(self, file: str, read: FileRows) -> Iterator[RawPart]:
        """Take rows of a file and give the parts that it completes."""
        self._rejects += read.rejects
        if read.table is None or not read.table.num_rows:
            return
        ends = np.cumsum(text_bytes(read.table.column(self._text)))
        start, before = 0, 0
        while start < len(ends):
            room = self._part_bytes - self._bytes
            stop = int(np.searchsorted(ends, before + room, side="right"))
            if stop == start and not self._files:
                stop = start + 1
            if stop > start:
                self._tables.append(read.table.slice(start, stop - start))
                self._rows.append(read.rows[start:stop])
                self._files += [file] * (stop - start)
                self._bytes += int(ends[stop - 1]) - before
                start, before = stop, int(ends[stop - 1])
            if start < len(ends):
                yield self._part()

    def rest(self) -> Iterator[RawPart]:
        """Give what is left, if anything is."""
        if self._files or self._rejects:
            yield self._part()

    def _part(self) -> RawPart:
        rows = np.concatenate(self._rows) if self._rows else np.empty(0, np.int64)
        tables = self._tables or [self._schema.empty_table()]
        part = RawPart(self._files, rows, pa.concat_tables(tables), self._rejects)
        self._clear()
        return part


def text_bytes(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return the bytes of each text; none is missing."""
    lengths = map(arrow_integers, pc.binary_length(column).chunks)
    return np.concatenate([np.zeros(0, np.int64), *lengths])
