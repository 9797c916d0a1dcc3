"""Parquet files, and tables in memory: of Arrow, or Hugging Face datasets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from laconic.errors import StoreError
from laconic.formats.columns import STRINGS, check_same_columns, choose_columns, not_utf8, without
from laconic.formats.format import (
    FileRows,
    Format,
    Layout,
    ReadError,
    ReadOptions,
    Reject,
    too_long,
)
from laconic.formats.pages import pages_of
from laconic.formats.sources import Source, Stream

_TEXT_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_MOST_ROWS = 1 << 16
_DATASET_ROWS = 1000
_BUFFER = 1 << 16  # of each column
_PAGE = 320 << 20  # bytes that a page may have, beside a document
_AT_ONCE = 64 << 20  # bytes that rows may take when they are decoded together
_SKEW = 8  # lists that are decoded together may be so many times as long as the rest


class _Columns:
    """The columns of a table, and which of its rows are documents."""

    def __init__(self, file: str, schema: pa.Schema, options: ReadOptions) -> None:
        self.text, self.label = choose_columns(file, schema.names, options)
        index = schema.get_field_index(self.text)
        kind = schema.field(index).type
        plain = kind.value_type if pa.types.is_dictionary(kind) else kind
        plain = _VIEWS.get(plain, plain)
        if plain not in _TEXT_TYPES:
            reason = f"the text column {self.text!r} is {kind}, not string or binary"
            raise ReadError(f"{reason}; choose another with --text NAME", file=file)
        # Metadata of pandas or of a dataset tells of a file, not of these columns.
        fields = schema.remove_metadata()
        fields = fields.set(index, fields.field(index).with_type(plain))
        # Files that differ only in what may be null are read together.
        self.schema = pa.schema(field.with_nullable(True) for field in fields)
        self.style: Layout = {}

    def rows(self, file: str, table: pa.Table, row: int, consumed: int) -> FileRows:
        """Take the rows after `row` and reject those without text or with bad UTF-8."""
        index = self.schema.get_field_index(self.text)
        columns = table.columns
        columns[index] = pc.cast(columns[index], self.schema.field(index).type)
        table = pa.Table.from_arrays(columns, schema=self.schema)
        bad = not_utf8(table, self._invalid(table))
        missing = np.flatnonzero(table.column(self.text).is_null().to_numpy()).tolist()
        bad |= dict.fromkeys(missing, f"no text in column {self.text!r}")
        table, rows, rejects = without(bad, file, table, FileRows.after(row, table).rows)
        return FileRows(table, rows, rejects, consumed)

    def _invalid(self, table: pa.Table) -> Iterator[str]:
        for name in table.column_names:
            if table.column(name).type in STRINGS:
                try:
                    table.column(name).validate(full=True)
                except pa.ArrowInvalid:
                    yield name

    def check(self, file: str, schema: pa.Schema) -> None:
        """Raise ReadError where a later file or batch has other columns or types."""
        check_same_columns(file, sorted(schema.names), sorted(self.schema.names))
        for first in self.schema:
            kind = schema.field(first.name).type
            if kind != first.type and first.name != self.text:
                reason = f"not the columns of the first file: {first.name!r} is {kind}"
                raise ReadError(f"{reason}, not {first.type}; read it on its own", file=file)


class ParquetReader(_Columns):
    """Parquet, a bounded number of bytes at a time, whatever a few bytes of the file stand for."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self._part_bytes, self._longest = max(1, options.part_bytes), options.max_document
        with _opened(sources[0]) as file:
            super().__init__(sources[0].name, file.schema_arrow, options)

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file; a damaged page ends it with one reject."""
        source = stream.source
        with _opened(source) as file:
            self.check(source.name, file.schema_arrow)
            row = 0
            try:
                for batch in self._batches(file, source):
                    row += batch.num_rows
                    table = pa.Table.from_batches([batch]).select(self.schema.names)
                    consumed = source.size * row // file.metadata.num_rows
                    yield self.rows(source.name, table, row - batch.num_rows, consumed)
            except (MemoryError, StoreError):  # Arrow raises the former; no row is to blame
                raise
            except (OSError, pa.ArrowException) as error:
                reason = f"the file is damaged from here ({error}); fetch it again"
                reject = Reject(source.name, row + 1, reason, "")
                yield FileRows(rejects=[reject], consumed=source.size)

    def _batches(self, file: Any, source: Source) -> Iterator[pa.RecordBatch]:
        """Give the rows; small row groups are read together, so a damaged one costs few others."""
        columns = [file.schema.column(index) for index in range(len(file.schema))]
        widths = sum(max(8, column.length) for column in columns)
        flat = all(column.max_repetition_level == 0 for column in columns)
        run: list[int] = []
        rows, held = _MOST_ROWS, 0
        with source.open() as raw:
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                size, count = group.total_byte_size, max(1, group.num_rows)
                if run and held + size > self._part_bytes:
                    yield from self._run(file, rows, run)
                    run, rows, held = [], _MOST_ROWS, 0
                run.append(number)
                held += size
                rows = min(rows, self._part_bytes // max(1, size // count))
                # No value is longer than all are as they are stored.
                if not flat or (size + widths) * count > _AT_ONCE:
                    rows = min(rows, self._rows_at_once(file, source, raw, number))
            yield from self._run(file, rows, run)

    def _run(self, file: Any, rows: int, groups: list[int]) -> Iterator[pa.RecordBatch]:
        names = self.schema.names
        yield from file.iter_batches(max(1, rows), groups, names, use_threads=False)

    def _rows_at_once(self, file: Any, source: Source, raw: Any, number: int) -> int:
        """Return how many rows of a row group may be decoded together."""
        group = file.metadata.row_group(number)
        count = max(1, group.num_rows)
        stored = group.total_byte_size // count
        if stored > self._longest + _AT_ONCE:
            reason = f"row group {number} has rows of {stored:,} bytes: {too_long(self._longest)}"
            raise ReadError(reason, file=source.name)
        decoded = sum(
            each * (1 if values <= count else _SKEW * values / count)
            for each, values in _decoded(source, raw, file, number, self._longest)
        )
        return int(_AT_ONCE / max(1, decoded))


def _decoded(
    source: Source, raw: Any, file: Any, number: int, longest: int
) -> Iterator[tuple[float, int]]:
    """Give for columns of a row group about the most bytes that a value takes, and their number.

    Values that are stored one by one take what the file says: columns of few bytes are left out.
    Where they are numbers of a dictionary, or share prefixes, it says nothing of their size.
    """
    group = file.metadata.row_group(number)
    for index in range(group.num_columns):
        chunk = group.column(index)
        size, values = chunk.total_uncompressed_size, chunk.num_values
        if chunk.physical_type != "BYTE_ARRAY":
            yield max(8, file.schema.column(index).length), values
        elif size * values <= _AT_ONCE:  # no value is longer than all are as they are stored
            continue
        elif "DELTA_BYTE_ARRAY" in chunk.encodings:
            yield size, values
        elif chunk.has_dictionary_page or size > longest + _AT_ONCE:
            largest, repeated = _in_pages(source, raw, number, chunk, longest)
            if repeated:
                largest = max(largest, _longest_in_dictionary(source, file, number, chunk))
            yield largest, values


def _in_pages(
    source: Source, raw: Any, number: int, chunk: Any, longest: int
) -> tuple[float, bool]:
    """Return the most bytes that values take on average in a page, of those that are stored there.

    And whether those of the dictionary may take much more than it does. Raises ReadError for a page
    that is too large: it is decompressed as a whole.
    """
    if "://" in source.name:  # there, it takes a request for each page
        return 0, chunk.has_dictionary_page
    largest, dictionary, entries, used, seen = 0.0, 0, 0, 0, 0
    for page in pages_of(raw, chunk):
        if page.size > longest + _PAGE:
            reason = f"row group {number} has a page of {page.size:,} bytes; write it with "
            reason += "smaller ones (pyarrow: write_batch_size), or allow more with "
            raise ReadError(reason + "--max-document", file=source.name)
        if page.is_dictionary:
            dictionary, entries = page.size, page.values
            continue
        seen += page.values
        if page.uses_dictionary:
            used += page.values
            continue
        # One of a large page's values may be most of it.
        mean = page.size / max(1, page.values)
        largest = max(largest, mean, (page.size > _AT_ONCE) * _AT_ONCE / 4)
    small = dictionary * (1 + max(0, used - entries)) <= 2 * _AT_ONCE and seen >= chunk.num_values
    return largest, chunk.has_dictionary_page and not small


def _longest_in_dictionary(source: Source, file: Any, number: int, chunk: Any) -> int:
    path = [chunk.path_in_schema]
    with _opened(source, metadata=file.metadata, read_dictionary=path) as probe:
        batches = probe.iter_batches(1 << 10, [number], path, use_threads=False)
        # A dictionary comes with the first value that is not missing.
        lengths = (_longest_value(batch.column(0)) for batch in batches)
        try:
            return next((length for length in lengths if length), 0)
        except (MemoryError, StoreError):
            raise
        except (OSError, pa.ArrowException):
            return 0  # It is damaged: who reads it will say so, after the rows before it.


def _longest_value(array: pa.Array) -> int:
    """Return the bytes of the longest value in the dictionary of an array, of lists perhaps."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        if _VIEWS.get(kind.value_type, kind.value_type) not in _TEXT_TYPES:
            return 0
        return pc.max(pc.binary_length(array.dictionary)).as_py() or 0
    if pa.types.is_map(kind):
        return max(_longest_value(array.keys), _longest_value(array.items))
    if pa.types.is_struct(kind):
        return max(map(_longest_value, array.flatten()), default=0)
    return _longest_value(array.values) if pa.types.is_nested(kind) else 0


class TableReader(_Columns):
    """What Python holds: a table, a reader, batches, or a Hugging Face dataset."""

    def __init__(self, source: Any, options: ReadOptions) -> None:
        self._source, self._spent = source, False
        self._peeked: Iterator[pa.Table] | None = None
        # A dataset's own table lacks what select, filter and shuffle have done since.
        if _is_dataset(source):
            features = getattr(source, "features", None)
            schema = features.arrow_schema if features else None
        else:
            schema = getattr(source, "schema", None)
        if schema is None:
            tables = self._tables()
            first = next(tables, None)
            if first is None:
                raise ReadError("has no batches, so no columns", file="<table>")
            schema = first.schema
            self._peeked = itertools.chain([first], tables)
        super().__init__("<table>", schema, options)

    def _tables(self) -> Iterator[pa.Table]:
        source = self._source
        if isinstance(source, pa.Table | pa.RecordBatch):
            return iter([_as_table(source)])
        if _is_dataset(source):
            return iter(source.with_format("arrow").iter(batch_size=_DATASET_ROWS))
        if not isinstance(source, Iterable):
            raise TypeError(f"expected an Arrow table, reader, batches or dataset, got {source!r}")
        return map(_as_table, source)

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read the table; what is an iterator itself gives its rows once."""
        once = isinstance(self._source, Iterator | pa.RecordBatchReader)
        if self._spent and once:
            raise ReadError("can be read only once; give a table or a dataset", file=stream.name)
        tables = self._peeked if once and self._peeked is not None else self._tables()
        self._spent, row = True, 0
        for table in tables:
            self.check(stream.name, table.schema)
            longest = max(map(_longest_value, table.column(self.text).chunks), default=0)
            step = _AT_ONCE // longest + 1 if longest else max(1, table.num_rows)
            for start in range(0, table.num_rows, step):
                some = table.slice(start, step).select(self.schema.names)
                yield self.rows(stream.name, some, row + start, 0)
            row += table.num_rows


def _is_dataset(source: object) -> bool:
    return hasattr(source, "with_format") and hasattr(source, "iter")


def _as_table(batch: object) -> pa.Table:
    if isinstance(batch, pa.Table):
        return batch
    if isinstance(batch, pa.RecordBatch):
        return pa.Table.from_batches([batch])
    reason = f"expected Arrow batches, got {type(batch).__name__}; of a DatasetDict choose a split"
    raise TypeError(reason)


@contextmanager
def _opened(source: Source, **options: Any) -> Iterator[Any]:
    """Open a Parquet file; one of our own is no input."""
    if source.compression:
        reason = f"Parquet compresses within the file; decompress the {source.compression} first"
        raise ReadError(reason, file=source.name)
    with source.open() as raw:
        try:
            # Without a buffer all of a row group's column would be read at once.
            file = pa.parquet.ParquetFile(raw, pre_buffer=False, buffer_size=_BUFFER, **options)
        except MemoryError:
            raise
        except pa.ArrowException as error:
            raise ReadError(f"not a Parquet file ({error})", file=source.name) from error
        if b"laconic" in (file.schema_arrow.metadata or {}):
            raise ReadError("is a corpus already; read it with laconic itself", file=source.name)
        yield file


def _write(tables: Iterable[pa.Table], layout: Layout, out: Path) -> None:
    iterator = iter(tables)
    empty = pa.schema((name, pa.string()) for name in layout["columns"]).empty_table()
    first = next(iterator, empty)
    with pa.parquet.ParquetWriter(out, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in iterator:
            writer.write_table(table)


FORMATS = [Format("parquet", (".parquet",), ParquetReader, whole=_write, tabular=True, typed=True)]
