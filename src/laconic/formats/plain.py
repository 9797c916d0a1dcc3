"""Plain text: every line a document, or every file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from laconic.formats.model import (
    FileRows,
    ReadOptions,
    Reject,
    fixed_columns,
    shown,
)
from laconic.formats.sources import Source, Stream

BLOCK = 4 << 20
LONGEST_LINE = 1 << 30  # Arrow's offsets within a column end at 2 GiB.


def line_blocks(stream: Stream, begun: bytes = b"") -> Iterator[bytes]:
    """Give the whole lines of a stream, some megabytes at a time, each with its newline.

    `begun` is what was read of the first line already. The last block may lack the newline that the
    file lacks; where the stream breaks off, the last block is the broken line, without one. A line
    over 1 GiB ends with OSError.
    """
    rest, size = [begun], len(begun)
    while data := stream.read(BLOCK):
        cut = data.rfind(b"\n") + 1
        if cut:
            yield b"".join([*rest, data[:cut]])
            rest, size = [], 0
        rest.append(data[cut:])
        size += len(data) - cut
        if size > LONGEST_LINE:
            raise OSError("a line is longer than 1 GiB; is this the right --format?")
    if last := b"".join(rest):
        yield last


def end_of_lines(
    source: Source, stream: Stream, row: int, broken: bytes, layout: dict[str, Any]
) -> Iterator[FileRows]:
    """Reject what breaks off after `row`; of a whole file, note whether it ends with a newline."""
    if stream.failure:
        reject = Reject(source.name, row + 1, stream.failure, shown(broken))
        yield FileRows(np.empty(0, np.int64), None, [reject], stream.tell())
    elif stream.last:
        layout["final_newline"] = stream.last == b"\n"


class LinesReader:
    """Every line a document, as bytes; the file's first line tells how lines end."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self.text, self.label = fixed_columns(sources[0].name, ["text"], "text", options)
        self.schema = pa.schema([("text", pa.binary())])
        with Stream(sources[0]) as stream:
            first = next(line_blocks(stream), b"").partition(b"\n")
        last = sources[-1].last_byte()
        self.layout: dict[str, Any] = {
            "format": "lines",
            "newline": "\r\n" if first[1] and first[0].endswith(b"\r") else "\n",
            "final_newline": last in (None, b"\n"),
            "columns": ["text"],
            "text": "text",
        }

    def read(self, source: Source) -> Iterator[FileRows]:
        """Read one file, without a Python loop over its lines."""
        row = 0
        with Stream(source) as stream:
            for block in line_blocks(stream):
                if stream.failure and not block.endswith(b"\n"):
                    break
                array = self._split(block)
                rows = np.arange(row + 1, row + 1 + len(array), dtype=np.int64)
                row += len(array)
                table = pa.table([array], schema=self.schema)
                yield FileRows(rows, table, [], stream.tell())
            else:
                block = b""
            yield from end_of_lines(source, stream, row, block, self.layout)

    def _split(self, block: bytes) -> pa.Array:
        if self.layout["newline"] == "\r\n":
            block = block.replace(b"\r\n", b"\n")
        if not block.endswith(b"\n"):
            block += b"\n"
        ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n"))
        offsets = np.zeros(len(ends) + 1, np.int32)
        offsets[1:] = ends - np.arange(len(ends))  # Where they are once the newlines are gone.
        data = pa.py_buffer(block.translate(None, b"\n"))
        return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), data])


class FilesReader:
    """Every file a document, as bytes; folders within the folder are classes."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        columns = ["path", "text"]
        classes = all("/" in source.relative for source in sources)
        if classes:
            columns.append("label")
        self.text, self.label = fixed_columns(sources[0].name, columns, "text", options)
        if self.label is None and classes:
            self.label = "label"
        kinds = {"path": pa.string(), "text": pa.large_binary(), "label": pa.string()}
        self.schema = pa.schema((name, kinds[name]) for name in columns)
        self.layout: dict[str, Any] = {"format": "files", "columns": columns, "text": "text"}

    def read(self, source: Source) -> Iterator[FileRows]:
        """Read one file, which is one document."""
        with Stream(source) as stream:
            data = b"".join(iter(lambda: stream.read(BLOCK), b""))
            if stream.failure:
                reject = Reject(source.name, 1, stream.failure, shown(data))
                yield FileRows(np.empty(0, np.int64), None, [reject], stream.tell())
                return
            values = [[source.relative], [data], [source.relative.partition("/")[0]]]
            arrays = [
                pa.array(value, field.type)
                for value, field in zip(values, self.schema, strict=False)
            ]
            table = pa.Table.from_arrays(arrays, schema=self.schema)
            yield FileRows(np.ones(1, np.int64), table, [], stream.tell())
