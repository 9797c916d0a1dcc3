"""FASTA and FASTQ, parsed by dnaio."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from laconic.errors import InputError, needs
from laconic.formats.columns import as_bytes, fixed_columns
from laconic.formats.format import (
    NEWLINES,
    FileRows,
    Format,
    Layout,
    ReadError,
    ReadOptions,
    Reject,
    too_long,
)
from laconic.formats.lines import newlines
from laconic.formats.sources import Source, Stream

_BLOCK = 1 << 22
_SAMPLE = _READ = 1 << 18
_RECORD = 200  # bytes that an object of dnaio takes beside its text
_MOST_LINES = 1 << 22  # of a record: dnaio keeps them apart, in fifty bytes and more each


class FastaReader:
    """Columns "name" (the header line), "sequence" and, of FASTQ, "qualities"."""

    def __init__(
        self, sources: list[Source], options: ReadOptions, kind: Literal["fasta", "fastq"]
    ) -> None:
        with needs("reading FASTA and FASTQ", "dna"):
            import dnaio
        self._dnaio, self._kind, self._longest = dnaio, kind, options.max_document
        columns = ["name", "sequence"] + ["qualities"] * (kind == "fastq")
        self.text, self.label = fixed_columns(sources[0].name, columns, "sequence", options)
        self.schema = pa.schema((name, pa.large_string()) for name in columns)
        with Stream(sources[0]) as stream:
            sample = stream.read(_SAMPLE)
        lines = sample.splitlines()
        self.style: Layout = {
            "line_width": _line_width(lines) if kind == "fasta" else 0,
            "repeat_name": kind == "fastq" and len(lines) > 2 and len(lines[2]) > 1,
            **newlines(sample),
        }

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file; dnaio cannot go on after an error, which ends the file with one reject."""
        row, size = 0, 0
        held: list[Any] = []
        reason = None
        try:
            for record in self._records(stream):
                # The last record is held back: a file that breaks off cuts it short.
                if size > _BLOCK:
                    yield self._rows(held, row)
                    row, held, size = row + len(held), [], 0
                held.append(record)
                size += len(record.name) + len(record.sequence) + _RECORD
        except (self._dnaio.FileFormatError, UnicodeDecodeError) as error:
            reason = f"not {self._kind.upper()} from here on ({error})"
        if stream.failure:
            reason = stream.failure
            if self._kind == "fasta" and held:
                held.pop()
        read = self._rows(held, row)
        if reason:
            read.rejects.append(Reject(stream.name, row + len(held) + 1, reason, ""))
        yield read

    def _records(self, stream: Stream) -> Iterator[Any]:
        bounded = _Bounded(stream, self._longest)
        with io.BufferedReader(bounded, _READ) as file:
            if not file.peek(1):
                return
            reader = self._dnaio.FastaReader if self._kind == "fasta" else self._dnaio.FastqReader
            with reader(file) as records:
                for record in records:
                    bounded.begin_record()
                    yield record

    def _rows(self, records: list[Any], row: int) -> FileRows:
        columns = [
            pa.array([getattr(record, field.name) for record in records], field.type)
            for field in self.schema
        ]
        return FileRows.after(row, pa.table(columns, schema=self.schema))


class _Bounded(io.RawIOBase):
    """A stream that ends with ReadError where a record is too long for what dnaio makes of it."""

    def __init__(self, stream: Stream, longest: int) -> None:
        self._stream, self._longest, self._row = stream, longest, 0
        self.begin_record()

    def begin_record(self) -> None:
        """Note that all records but those just read ahead are done."""
        # Names and qualities are no text, nor is what was read ahead.
        self._bytes, self._lines = 2 * self._longest + _BLOCK, _MOST_LINES
        self._row += 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._bytes -= len(data)
        self._lines -= data.count(b"\n")
        if self._bytes < 0:
            reason = f"the record is {too_long(self._longest)}"
            raise ReadError(reason, file=self._stream.name, row=self._row)
        if self._lines < 0:
            reason = f"the record has more than {_MOST_LINES:,} lines; write it in longer ones"
            raise ReadError(reason, file=self._stream.name, row=self._row)
        return len(data)


def _line_width(lines: list[bytes]) -> int:
    """Return the length of a line that its sequence continues after; 0: one line each."""
    for line, following in itertools.pairwise(lines[:-1]):
        if not line.startswith(b">") and not following.startswith(b">") and line and following:
            return len(line)
    return 0


def _fasta_blocks(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    newline, width = layout["newline"].encode(), layout["line_width"]
    for names, texts in _plain_values(tables, ["name", layout["text"]]):
        block = []
        for name, text in zip(names, texts, strict=True):
            step = width or max(1, len(text))
            lines = [text[at : at + step] for at in range(0, len(text), step)] or [b""]
            block.append(newline.join([b">" + name, *lines, b""]))
        yield b"".join(block)


def _fastq_blocks(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    newline = layout["newline"].encode()
    for columns in _plain_values(tables, ["name", layout["text"], "qualities"]):
        block = []
        for name, text, qualities in zip(*columns, strict=True):
            plus = b"+" + name if layout["repeat_name"] else b"+"
            block.append(newline.join([b"@" + name, text, plus, qualities, b""]))
        yield b"".join(block)


def _plain_values(tables: Iterable[pa.Table], names: list[str]) -> Iterator[list[list[bytes]]]:
    """Give columns as lists of bytes, none of which may hold a line end."""
    for table in tables:
        columns = [as_bytes(table.column(name), name) for name in names]
        for name, values in zip(names, columns, strict=True):
            if pc.any(pc.match_substring_regex(values, "[\r\n]")).as_py():
                raise InputError(f"column {name!r} holds a newline: it cannot be a record's line")
        yield [values.to_pylist() for values in columns]


FORMATS = [
    Format(
        "fasta",
        (".fa", ".fasta", ".fna"),
        partial(FastaReader, kind="fasta"),
        blocks=_fasta_blocks,
        choices={"line_width": range(1 << 30), **NEWLINES},
        needs=("name",),
    ),
    Format(
        "fastq",
        (".fq", ".fastq"),
        partial(FastaReader, kind="fastq"),
        blocks=_fastq_blocks,
        choices={"repeat_name": [False, True], **NEWLINES},
        needs=("name", "qualities"),
    ),
]
