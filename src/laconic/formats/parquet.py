"""Parquet files, and tables in memory: of Arrow, or Hugging Face datasets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from laconic.formats.columns import STRINGS, check_same_columns, choose_columns, not_utf8, without
from laconic.formats.format import FileRows, Format, Layout, ReadError, ReadOptions, Reject
from laconic.formats.sources import Source, Stream

_TEXT_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}
_MOST_ROWS = 1 << 16
_DATASET_ROWS = 1000


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
    """Parquet, a bounded number of rows at a time."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self._part_bytes = max(1, options.part_bytes)
        with _opened(sources[0]) as file:
            super().__init__(sources[0].name, file.schema_arrow, options)

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file; a damaged page ends it with one reject."""
        source = stream.source
        with _opened(source) as file:
            self.check(source.name, file.schema_arrow)
            total = file.metadata.num_rows
            groups = map(file.metadata.row_group, range(file.num_row_groups))
            wide = max(
                (group.total_byte_size // max(1, group.num_rows) for group in groups), default=1
            )
            size = min(_MOST_ROWS, max(1, self._part_bytes // max(1, wide)))
            row = 0
            batches = file.iter_batches(size, use_threads=False, columns=self.schema.names)
            try:
                for batch in batches:
                    row += batch.num_rows
                    table = pa.Table.from_batches([batch]).select(self.schema.names)
                    consumed = source.size * row // total
                    yield self.rows(source.name, table, row - batch.num_rows, consumed)
            except (OSError, pa.ArrowException) as error:
                reason = f"the file is damaged from here ({error}); fetch it again"
                reject = Reject(source.name, row + 1, reason, "")
                yield FileRows(rejects=[reject], consumed=source.size)


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
            yield self.rows(stream.name, table.select(self.schema.names), row, 0)
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


def _opened(source: Source) -> Any:
    """Open a Parquet file; one of our own is no input."""
    if source.compression:
        reason = f"Parquet compresses within the file; decompress the {source.compression} first"
        raise ReadError(reason, file=source.name)
    try:
        file = pa.parquet.ParquetFile(
            source.filesystem.open_input_file(source.path), pre_buffer=False
        )
    except pa.ArrowException as error:
        raise ReadError(f"not a Parquet file ({error})", file=source.name) from error
    if b"laconic" in (file.schema_arrow.metadata or {}):
        file.close()
        raise ReadError("is a corpus already; read it with laconic itself", file=source.name)
    return file


def _write(tables: Iterable[pa.Table], layout: Layout, out: Path) -> None:
    iterator = iter(tables)
    empty = pa.schema((name, pa.string()) for name in layout["columns"]).empty_table()
    first = next(iterator, empty)
    with pa.parquet.ParquetWriter(out, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in iterator:
            writer.write_table(table)


FORMATS = [Format("parquet", (".parquet",), ParquetReader, whole=_write, tabular=True, typed=True)]
