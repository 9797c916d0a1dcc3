"""FASTA and FASTQ, parsed by dnaio."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from laconic.errors import needs
from laconic.formats.model import FileRows, ReadOptions, Reject, fixed_columns
from laconic.formats.sources import Source, Stream

_BLOCK = 1 << 22
_SAMPLE = 1 << 18


class FastaReader:
    """Columns "name" (the header line), "sequence" and, of FASTQ, "qualities"."""

    def __init__(
        self, sources: list[Source], options: ReadOptions, kind: Literal["fasta", "fastq"]
    ) -> None:
        self._dnaio = _dnaio()
        self._kind = kind
        columns = ["name", "sequence"] + ["qualities"] * (kind == "fastq")
        self.text, self.label = fixed_columns(sources[0].name, columns, "sequence", options)
        self.schema = pa.schema((name, pa.large_string()) for name in columns)
        with Stream(sources[0]) as stream:
            sample = stream.read(_SAMPLE)
        last = sources[-1].last_byte()
        self.layout: dict[str, Any] = {
            "format": kind,
            "line_width": _line_width(sample) if kind == "fasta" else 0,
            "repeat_name": kind == "fastq" and _repeats_name(sample),
            "newline": "\r\n" if sample.partition(b"\n")[0].endswith(b"\r") else "\n",
            "final_newline": last in (None, b"\n"),
            "columns": columns,
            "text": "sequence",
        }

    def read(self, source: Source) -> Iterator[FileRows]:
        """Read one file; dnaio cannot go on after an error, which ends the file with one reject."""
        row, size = 0, 0
        held: list[Any] = []
        reason = None
        with Stream(source) as stream:
            try:
                for record in self._records(stream):
                    # The last record is held back: a file that breaks off cuts it short.
                    if size > _BLOCK:
                        yield self._rows(held, row, stream)
                        row, held, size = row + len(held), [], 0
                    held.append(record)
                    size += len(record.sequence)
            except (self._dnaio.FileFormatError, UnicodeDecodeError) as error:
                reason = f"not {self._kind.upper()} from here on ({error})"
            if stream.failure:
                reason = stream.failure
                if self._kind == "fasta" and held:
                    held.pop()
            elif stream.last:
                self.layout["final_newline"] = stream.last == b"\n"
            read = self._rows(held, row, stream)
            if reason:
                read.rejects.append(Reject(source.name, row + len(held) + 1, reason, ""))
            yield read

    def _records(self, stream: Stream) -> Iterator[Any]:
        with io.BufferedReader(_Raw(stream), 1 << 18) as file:
            if not file.peek(1):
                return
            reader = self._dnaio.FastaReader if self._kind == "fasta" else self._dnaio.FastqReader
            with reader(file) as records:
                yield from records

    def _rows(self, records: list[Any], row: int, stream: Stream) -> FileRows:
        arrays = [
            pa.array([getattr(record, field.name) for record in records], field.type)
            for field in self.schema
        ]
        rows = np.arange(row + 1, row + 1 + len(records), dtype=np.int64)
        table = pa.Table.from_arrays(arrays, schema=self.schema)
        return FileRows(rows, table, [], stream.tell())


class _Raw(io.RawIOBase):
    """A Stream as the file that dnaio wants."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _dnaio() -> Any:
    with needs("reading FASTA and FASTQ", "dna"):
        import dnaio
    return dnaio


def _line_width(sample: bytes) -> int:
    """Return the length of a line that its sequence continues after; 0: one line each."""
    lines = sample.splitlines()
    for line, following in itertools.pairwise(lines[:-1]):
        if not line.startswith(b">") and not following.startswith(b">") and line and following:
            return len(line)
    return 0


def _repeats_name(sample: bytes) -> bool:
    lines = sample.splitlines()
    return len(lines) > 2 and len(lines[2]) > 1
