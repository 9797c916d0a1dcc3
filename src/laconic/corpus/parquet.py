"""One Parquet file of a corpus: read row group by row group, and written with every choice made."""

from __future__ import annotations

import os
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from laconic.corpus.compact import (
    COMPACTED,
    compact_fields,
    from_compact,
    listed_fields,
    to_compact,
)
from laconic.corpus.schema import (
    GRAMMAR_COLUMNS,
    About,
    CorpusError,
    end_metadata,
    errors_in,
    stated_at_end,
)
from laconic.errors import StoreError
from laconic.formats.stores import Place

_CHECKSUM, _UNSIGNED = b"laconic.footer.crc32", b"0" * 16
_MOST_UNPACKED = 1 << 30
_THRIFT_LIMIT = 1 << 26
_REPLACED = "was replaced while it was read: open it again"


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Some consecutive documents of a file, read when they are asked for."""

    file: CorpusFile
    number: int
    rows: int
    first: int  # document of the file

    @property
    def size(self) -> int:
        """The bytes of its columns as they are encoded, before they are compressed."""
        return self.file.stated_size(self.number)

    def load(self, columns: Sequence[str] | None) -> pa.Table:
        """Return these columns, or all."""
        return self.file.read(self.number, columns)

    def located(self, error: CorpusError) -> CorpusError:
        """Return an error with the file and, if it is a document's, the number of that there."""
        document = None if error.document is None else self.first + error.document
        return error.at(file=str(self.file.path), document=document)


class InMemory:
    """Documents in memory, as a RowGroup is some of a file."""

    def __init__(self, table: pa.Table) -> None:
        self.table, self.rows, self.size = table, table.num_rows, table.nbytes

    def load(self, columns: Sequence[str] | None) -> pa.Table:
        """Return these columns, or all."""
        return self.table if columns is None else self.table.select(columns)

    def located(self, error: CorpusError) -> CorpusError:
        """Return an error as it is: there is no file."""
        return error


class Filtered:
    """The documents of a piece where a mask is true; all are read, and the others left out."""

    def __init__(self, piece: Piece, kept: npt.NDArray[np.bool_]) -> None:
        self.piece, self.kept = piece, kept
        self.rows: int = int(kept.sum())
        self.size: int = piece.size * self.rows // max(1, piece.rows)

    def load(self, columns: Sequence[str] | None) -> pa.Table:
        """Return these columns, or all."""
        return self.piece.load(columns).filter(pa.array(self.kept))

    def located(self, error: CorpusError) -> CorpusError:
        """Return an error as the piece does, with the number that the document has there."""
        if error.document is None:
            return self.piece.located(error)
        document = int(np.flatnonzero(self.kept)[error.document])
        return self.piece.located(error.at(document=document))


Piece: TypeAlias = RowGroup | InMemory | Filtered


class CorpusFile:
    """One Parquet file of a corpus: its footer, and its row groups when they are asked for."""

    def __init__(self, path: Place, limit: int = _MOST_UNPACKED) -> None:
        self.path, self.limit = path, limit
        _check_name(path)
        with errors_in(str(path)):
            self._state = _state(path)
            _check_footer(path)
            self._read_footer()

    def _read_footer(self) -> None:
        try:
            with pq.ParquetFile(
                _for_arrow(self.path),
                thrift_string_size_limit=_THRIFT_LIMIT,
                thrift_container_size_limit=_THRIFT_LIMIT,
            ) as file:
                stored: pa.Schema = file.schema_arrow
                footer, leaves = file.metadata, len(file.schema)
            row_counts = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
            columns = [footer.row_group(i).num_columns for i in range(footer.num_row_groups)]
        except StoreError:
            raise
        except OSError as error:
            raise CorpusError(f"cannot be read as Parquet: {_first_line(error)}") from None
        except MemoryError as error:
            raise CorpusError(_no_memory("its footer", error)) from None
        except (pa.ArrowException, ValueError) as error:
            raise CorpusError(f"is not sound Parquet: {_first_line(error)}") from None
        if min(row_counts, default=0) < 0 or sum(row_counts) != footer.num_rows:
            raise CorpusError("is not sound Parquet: its counts of rows disagree")
        if any(count != leaves for count in columns):
            raise CorpusError("is not sound Parquet: its counts of columns disagree")
        self.row_counts, self._footer = row_counts, footer
        self.stored = About.of(stored)
        self.final_layout, self.shards = stated_at_end(footer.metadata or {})
        self.about = replace(self.stored, model=None)
        fields = listed_fields(stored) if self.stored.model else stored
        self.schema: pa.Schema = self.about.schema(fields)
        needed = ("grammar", "length") if self.stored.model else GRAMMAR_COLUMNS.names
        times, listed = Counter(stored.names), Counter(self.schema.names)
        for name in sorted({*needed, *times}):
            if times[name] != 1 or listed[name] > 1:
                raise CorpusError(f"must have one column {name!r}")

    def read(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return one row group; CorpusError if it is damaged, or would not fit into memory."""
        with errors_in(str(self.path), sum(self.row_counts[:number])):
            return self._read(number, columns)

    def _read(self, number: int, columns: Sequence[str] | None) -> pa.Table:
        size = self.stated_size(number)
        if size > self.limit or size < 0:
            raise CorpusError(
                f"row group {number} would take {size} bytes, more than the limit of {self.limit}"
            )
        wanted = columns
        if self.stored.model and columns is not None:
            coded = {"grammar" if name in COMPACTED else name for name in columns}
            wanted = sorted(coded | {"length"})
        try:
            # Opened anew each time: a corpus may have more shards than a process may open files.
            with pq.ParquetFile(
                _for_arrow(self.path), metadata=self._footer, page_checksum_verification=True
            ) as file:
                table = file.read_row_group(number, columns=wanted, use_threads=False)
            if _state(self.path) != self._state:
                raise CorpusError(_REPLACED)
            table.validate(full=True)  # codes of dictionaries, UTF-8
            if self.stored.model and (wanted is None or "grammar" in wanted):
                table = from_compact(table, self.stored, self.limit)
                table = table.replace_schema_metadata(self.schema.metadata)
        except (CorpusError, StoreError):
            raise
        except MemoryError as error:
            raise CorpusError(_no_memory(f"row group {number}", error)) from None
        except (OSError, pa.ArrowException, ValueError) as error:
            if _state(self.path) != self._state:
                raise CorpusError(_REPLACED) from None
            raise CorpusError(f"row group {number} is damaged: {_first_line(error)}") from None
        if table.num_rows != self.row_counts[number]:
            raise CorpusError(
                f"row group {number} has {table.num_rows} documents, not {self.row_counts[number]}"
            )
        return table if columns is None else table.select(columns)

    def stated_size(self, number: int) -> int:
        """Return the bytes that a row group is said to take, before it is compressed."""
        # Not the sum over its columns: pyarrow aborts there if statistics are damaged.
        return int(self._footer.row_group(number).total_byte_size)

    def pieces(self) -> list[RowGroup]:
        """Return the row groups, in order."""
        firsts = accumulate(self.row_counts, initial=0)
        return [
            RowGroup(self, number, rows, first)
            for number, (rows, first) in enumerate(zip(self.row_counts, firsts, strict=False))
            if rows
        ]


def _for_arrow(path: Place) -> Any:
    return path if isinstance(path, Path) else path.open("rb")


def _state(path: Place) -> tuple[int, ...] | None:
    try:
        found = path.stat()
    except StoreError:
        raise
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _no_memory(what: str, error: MemoryError) -> str:
    # What is damaged may ask for any number of bytes: nobody can tell that from too little memory.
    why = f" ({_first_line(error)})" if str(error) else ""
    return f"out of memory for {what}{why}: use a machine with more, or fetch the file again"


class CorpusWriter:
    """Writes tables of a corpus to a Parquet file: every choice of encoding is made here.

    Bytes of symbols are stored apart (BYTE_STREAM_SPLIT), where zstd finds most of them to be 0;
    checksums let a damaged page be told from a sound one.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, level: int = 3, model: str | None = None
    ) -> None:
        _check_name(path)
        self._path = path
        self._about = replace(About.of(schema), model=model)
        schema = self._about.schema(compact_fields(schema) if model else schema)
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

    def write(self, table: pa.Table) -> None:
        """Append a table as one row group, or as several if a reader would refuse one so large.

        Raises CorpusError for a document that is too large on its own.
        """
        rows, most = table.num_rows, _MOST_UNPACKED // (16 if self._about.model else 2)
        if rows == 0:
            return
        if table.nbytes > most:
            if rows == 1:
                raise CorpusError(f"a document of {table.nbytes} bytes is too large; split it")
            self.write(table.slice(0, rows // 2))
            self.write(table.slice(rows // 2))
            return
        stored = to_compact(table, self._about) if self._about.model else table
        self._writer.write_table(stored, row_group_size=rows)

    def close(self, layout: Mapping[str, Any] | None = None, shards: int | None = None) -> None:
        """End the file, and say what is known at the end only; see end_metadata."""
        for key, value in (end_metadata(layout, shards) | {_CHECKSUM: _UNSIGNED}).items():
            self._writer.add_key_value_metadata({key: value})  # of many, pyarrow keeps no order
        self._writer.close()
        _sign_footer(self._path)

    def abandon(self) -> None:
        """Let go of a file that is not to be ended: the disk may be full."""
        with suppress(OSError, pa.ArrowException):
            self._writer.close()

    def __enter__(self) -> CorpusWriter:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def _check_name(path: Place) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        reason = "pyarrow opens no file whose name, or that of its folder, is not UTF-8; rename it"
        raise CorpusError(reason, file=str(path)) from None


def _footer(file: BinaryIO) -> tuple[int, bytes, int | None]:
    """Return where the footer begins, its bytes, and where in them its checksum is, if it is."""
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 8))
    size, magic = struct.unpack("<I4s", file.read(8).rjust(8, b"\0"))
    if magic != b"PAR1" or size > end - 12:
        return 0, b"", None
    start = file.seek(end - 8 - size)
    footer = file.read(size)
    at = footer.rfind(_CHECKSUM)
    # Thrift: behind the key, the header of the next field and the length of the value, a byte each.
    return start, footer, None if at < 0 else at + len(_CHECKSUM) + 2


def _signature(footer: bytes, at: int) -> bytes:
    # With the footer's length: what was copied from another file's metadata is no signature.
    plain = footer[:at] + _UNSIGNED + footer[at + len(_UNSIGNED) :]
    return b"%08x%08x" % (len(footer), zlib.crc32(plain))


def _sign_footer(path: Path) -> None:
    with path.open("r+b") as file:
        start, footer, at = _footer(file)
        assert at is not None  # the writer has just put it there
        file.seek(start + at)
        file.write(_signature(footer, at))


def _check_footer(path: Place) -> None:
    # Nothing in Parquet tells of a damaged footer, on which pyarrow may abort the process.
    try:
        with path.open("rb") as file:
            _, footer, at = _footer(file)
    except StoreError:
        raise
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror or _first_line(error)}") from None
    if not footer:
        reason = "is not Parquet, or was cut short: it has no footer"
        if path.suffix != ".parquet":
            reason += "; `laconic compress` turns raw documents into a corpus"
        raise CorpusError(reason)
    if at is None:
        return
    stated, right = footer[at : at + len(_UNSIGNED)], _signature(footer, at)
    if stated[:8] == right[:8] and stated != right:
        raise CorpusError("its footer is damaged: its CRC-32 is another")
