"""Plain text, every line a document; and what other formats of lines share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laconic.errors import InputError
from laconic.formats.columns import as_bytes, fixed_columns, join_records
from laconic.formats.format import (
    NEWLINES,
    FileRows,
    Format,
    Layout,
    ReadOptions,
    Reject,
    shown,
    too_long,
)
from laconic.formats.sources import Source, Stream

BLOCK = 4 << 20


def line_blocks(stream: Stream, longest: int, begun: bytes = b"") -> Iterator[bytes | None]:
    """Give the whole lines of a stream, some megabytes at a time, each with its newline.

    `begun` is what was read of them already. The last block may lack the newline that the file
    lacks; where the stream breaks off, the last block is the broken line, without one. A line of
    much more than `longest` bytes is passed over: None stands for it.
    """
    rest: list[bytes] = []
    size, passing = 0, False
    while data := begun or stream.read(BLOCK):
        begun = b""
        if passing:
            end = data.find(b"\n") + 1
            if not end:
                continue
            yield None
            passing, data = False, data[end:]
        cut = data.rfind(b"\n") + 1
        if cut:
            block = b"".join([*rest, data[:cut]])
            rest, size = [], 0  # before who reads the block needs memory
            yield block
            del block
        rest.append(data[cut:])
        size += len(data) - cut
        if size > longest + BLOCK:  # what stands beside the text may be as long as a block
            rest, size, passing = [], 0, True
    if passing:
        yield None
    elif last := b"".join(rest):
        yield last


def read_lines(
    stream: Stream, longest: int, rows_of: Callable[[bytes, int], Iterable[tuple[int, FileRows]]]
) -> Iterator[FileRows]:
    """Read the lines of a file: `rows_of` gets a block of them, and the row before the first.

    It gives how many lines there are, and their documents, some at a time. Where the stream breaks
    off, the line that it cuts short is rejected; so is one that is too long.
    """
    row, rest = 0, b""
    for block in line_blocks(stream, longest):
        if block is None:
            row += 1
            reason = f"the line is {too_long(longest)}"
            yield FileRows(rejects=[Reject(stream.name, row, reason, "")])
            continue
        if stream.failure and not block.endswith(b"\n"):
            rest = block
            break
        for count, read in rows_of(block, row):
            yield read
            row += count
    if stream.failure:
        yield FileRows(rejects=[Reject(stream.name, row + 1, stream.failure, shown(rest))])


def newlines(sample: bytes) -> Layout:
    """Return what a layout says of line ends: as the first line of a file ends."""
    first, newline, _ = sample.partition(b"\n")
    crlf = newline and first.endswith(b"\r")
    return {"newline": "\r\n" if crlf else "\n", "final_newline": True}


class LinesReader:
    """Every line a document, or every few, as bytes; a file's first line tells how lines end."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self.text, self.label = fixed_columns(sources[0].name, ["text"], "text", options)
        self.schema = pa.schema([("text", pa.binary())])
        self._longest, self._lines = options.max_document, options.lines
        with Stream(sources[0]) as stream:
            self.style = newlines(next(line_blocks(stream, self._longest), None) or b"")
        if self._lines > 1:
            self.style["lines"] = self._lines

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file, without a Python loop over its lines, unless some are a document."""
        lines = read_lines(stream, self._longest, self._rows)
        return lines if self._lines == 1 else self._together(lines)

    def _together(self, lines: Iterator[FileRows]) -> Iterator[FileRows]:
        """Make documents of some lines each; the last of a file may have fewer."""
        newline, each = self.style["newline"].encode(), self._lines
        held: list[tuple[int, bytes]] = []

        def documents(count: int) -> FileRows:
            some = [held[first : first + each] for first in range(0, count, each)]
            texts = [newline.join(text for _, text in one) for one in some]
            rows = np.array([one[0][0] for one in some], np.int64)
            del held[:count]
            return FileRows(pa.table([pa.array(texts, pa.binary())], schema=self.schema), rows)

        for read in lines:
            if read.table is not None:
                texts = read.table.column("text").to_pylist()
                held += zip(read.rows.tolist(), texts, strict=True)
                yield documents(len(held) // each * each)
            if read.rejects:
                yield replace(read, table=None, rows=read.rows[:0])
        if held:
            yield documents(len(held))

    def _rows(self, block: bytes, row: int) -> Iterator[tuple[int, FileRows]]:
        if self.style["newline"] == "\r\n":
            block = block.replace(b"\r\n", b"\n")
        if not block.endswith(b"\n"):
            block += b"\n"
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends - np.arange(len(ends))  # Where they are once the newlines are gone.
        data = pa.py_buffer(block.translate(None, b"\n"))
        texts = pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), data])
        yield len(texts), FileRows.after(row, pa.table([texts], schema=self.schema))


def _blocks(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    newline = layout["newline"].encode()
    for table in tables:
        values = as_bytes(table.column(layout["text"]), layout["text"])
        if layout["lines"] == 1 and pc.any(pc.match_substring(values, b"\n")).as_py():
            raise InputError("a text holds a newline: it cannot be a line; write .jsonl or .csv")
        yield join_records([[values]], b"", newline)


_CHOICES = {"lines": range(1, 1 << 30), **NEWLINES}
FORMATS = [Format("lines", (".txt",), LinesReader, blocks=_blocks, choices=_CHOICES)]
