"""One Parquet file of a corpus: read row group by row group, and written with every choice made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from laconic.compact import (
    COMPACTED,
    compact_fields,
    from_compact,
    listed_fields,
    to_compact,
)
from laconic.format import (
    GRAMMAR_COLUMNS,
    About,
    CorpusError,
    check_row_counts,
    final_layout,
    layout_metadata,
    row_counts,
)

__all__ = ["CorpusFile", "CorpusWriter", "RowGroup"]

_MOST_UNPACKED = 1 << 30
_THRIFT_LIMIT = 1 << 26


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Some consecutive documents of a file, read when they are asked for."""

    file: CorpusFile
    number: int
    rows: int
    first: int  # document of the file

    def load(self, columns: Sequence[str] | None) -> pa.Table:
        """Return these columns, or all."""
        return self.file.read(self.number, columns)

    def name(self, row: int) -> tuple[str | None, int]:
        """Return the file, and the number in it of the document in this row of the group."""
        return str(self.file.path), self.first + row


class CorpusFile:
    """One Parquet file of a corpus: its footer, and its row groups when they are asked for."""

    def __init__(self, path: Path, limit: int = _MOST_UNPACKED) -> None:
        self.path, self.limit = path, limit
        try:
            self._file = pq.ParquetFile(
                path,
                page_checksum_verification=True,
                thrift_string_size_limit=_THRIFT_LIMIT,
                thrift_container_size_limit=_THRIFT_LIMIT,
            )
            stored: pa.Schema = self._file.schema_arrow
            footer = self._file.metadata
            counts = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
            columns = [footer.row_group(i).num_columns for i in range(footer.num_row_groups)]
        except OSError as error:
            raise CorpusError(
                f"cannot be read as Parquet: {_first_line(error)}", str(path)
            ) from None
        except (pa.ArrowException, ValueError, MemoryError) as error:
            raise CorpusError(f"is not sound Parquet: {_first_line(error)}", str(path)) from None
        if min(counts, default=0) < 0 or sum(counts) != footer.num_rows:
            raise CorpusError("is not sound Parquet: its counts of rows disagree", str(path))
        if any(count != len(self._file.schema) for count in columns):
            raise CorpusError("is not sound Parquet: its counts of columns disagree", str(path))
        self.counts = counts
        try:
            self.stored = About.of(stored, in_file=True)
            check_row_counts(footer.metadata, counts)
            self.final_layout = final_layout(footer.metadata)
        except CorpusError as error:
            raise CorpusError(error.reason, str(path)) from None
        self.about = replace(self.stored, model=None)
        fields = listed_fields(stored) if self.stored.model else stored
        self.schema: pa.Schema = self.about.schema(fields)
        for name in GRAMMAR_COLUMNS.names:
            if self.schema.names.count(name) != 1:
                raise CorpusError(f"must have one column {name!r}", str(path))
        if self.stored.model and stored.names.count("grammar") != 1:
            raise CorpusError("must have one column 'grammar'", str(path))

    def read(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return one row group; CorpusError if it is damaged, or would not fit into memory."""
        group = self._file.metadata.row_group(number)
        size = sum(group.column(i).total_uncompressed_size for i in range(group.num_columns))
        if size > self.limit or size < 0:
            raise CorpusError(
                f"row group {number} would take {size} bytes, more than the limit of {self.limit}",
                str(self.path),
            )
        wanted = columns
        if self.stored.model and columns is not None:
            coded = {"grammar" if name in COMPACTED else name for name in columns}
            wanted = sorted(coded | {"length"})
        try:
            table = self._file.read_row_group(number, columns=wanted, use_threads=False)
            if self.stored.model and (wanted is None or "grammar" in wanted):
                table = from_compact(table, self.stored)
        except CorpusError as error:
            row = None if error.row is None else error.row + sum(self.counts[:number])
            raise CorpusError(error.reason, str(self.path), row) from None
        except (OSError, pa.ArrowException, ValueError, MemoryError) as error:
            raise CorpusError(
                f"row group {number} is damaged: {_first_line(error)}", str(self.path)
            ) from None
        if table.num_rows != self.counts[number]:
            raise CorpusError(
                f"row group {number} has {table.num_rows} documents, not {self.counts[number]}",
                str(self.path),
            )
        return table if columns is None else table.select(columns)

    def pieces(self) -> list[RowGroup]:
        """Return the row groups, in order."""
        firsts = accumulate(self.counts, initial=0)
        return [
            RowGroup(self, number, rows, first)
            for number, (rows, first) in enumerate(zip(self.counts, firsts, strict=False))
            if rows
        ]


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


class CorpusWriter:
    """Writes tables of a corpus to a Parquet file: every choice of encoding is made here.

    Bytes of symbols are stored apart (BYTE_STREAM_SPLIT), where zstd finds most of them to be 0;
    checksums let a damaged page be told from a sound one.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, level: int = 3, model: str | None = None
    ) -> None:
        self._about = replace(About.of(schema), model=model)
        schema = self._about.file_schema(compact_fields(schema) if model else schema)
        split = ["letters.list.element", "sequence.list.element"]
        split += ["rules.list.element.left", "rules.list.element.right"]
        ours = {*GRAMMAR_COLUMNS.names, "grammar"} if model else set(GRAMMAR_COLUMNS.names)
        others = [name for name in schema.names if name not in ours]
        self._writer = pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=level,
            use_dictionary=others,
            write_statistics=others,
            column_encoding=None if model else dict.fromkeys(split, "BYTE_STREAM_SPLIT"),
            data_page_size=1 << 22,
            write_page_checksum=True,
        )
        self._counts: list[int] = []

    def write(self, table: pa.Table) -> None:
        """Append a table as one row group."""
        if table.num_rows:
            stored = to_compact(table, self._about) if self._about.model else table
            self._writer.write_table(stored, row_group_size=table.num_rows)
            self._counts.append(table.num_rows)

    def close(self, layout: Mapping[str, Any] | None = None) -> None:
        """End the file, and say how documents are laid out, if that was known at the end only."""
        self._writer.add_key_value_metadata(row_counts(self._counts))
        if layout is not None:
            self._writer.add_key_value_metadata(layout_metadata(layout))
        self._writer.close()

    def __enter__(self) -> CorpusWriter:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
