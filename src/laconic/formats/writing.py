"""Writers: documents back to files, in the layout they were read from or in another format.

A file in one style throughout is written back byte for byte. Outputs appear when they are whole.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import json
import lzma
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from laconic.errors import InputError
from laconic.formats.layouts import Layout, layout_for

__all__ = ["layout_for", "renamed", "write"]


def write(tables: Iterable[pa.Table], layout: Layout, out: Path) -> int:
    """Write documents to `out`, compressed as its suffix says, and return how many.

    Streams: memory stays at a few tables. `out` appears when it is whole; a folder must not exist.
    Raises ValueError for a layout, or for a document, that cannot be written so.
    """
    layout = layout_for(out, layout)
    counted = _Counted(tables, layout["columns"])
    if layout["format"] == "files":
        if out.exists():
            raise FileExistsError(f"{out}: exists already; choose another folder or remove it")
        with renamed(out) as temporary:
            temporary.mkdir()
            _write_files(counted, layout, temporary)
        return counted.count
    with renamed(out) as temporary, temporary.open("xb") as raw:
        if layout["format"] == "parquet":
            _write_parquet(counted, layout, raw)
        else:
            with _compressor(raw, out.suffix) as file:
                _write_blocks(_BLOCKS[layout["format"]](counted, layout), layout, file)
    return counted.count


class _Counted:
    """The tables with the layout's columns in its order, and how many documents they had."""

    def __init__(self, tables: Iterable[pa.Table], columns: list[str]) -> None:
        self._tables, self._columns = tables, columns
        self.count = 0

    def __iter__(self) -> Iterator[pa.Table]:
        for table in self._tables:
            if missing := [name for name in self._columns if name not in table.column_names]:
                raise InputError(f"no column {missing[0]!r} in the documents, but in their layout")
            if table.num_rows:
                yield table.select(self._columns)
            self.count += table.num_rows


@contextlib.contextmanager
def renamed(out: Path) -> Iterator[Path]:
    """Give a temporary path beside `out`, renamed at the end, removed where something fails."""
    temporary = out.with_name(f".{out.name}.{secrets.token_hex(4)}.part")
    try:
        yield temporary
        os.replace(temporary, out)
    finally:
        if temporary.is_dir():
            shutil.rmtree(temporary)
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _compressor(raw: IO[bytes], suffix: str) -> Iterator[Any]:
    match suffix.lower():
        case ".gz":
            # Neither name nor time, so the same documents give the same bytes.
            with gzip.GzipFile("", "wb", 6, raw, mtime=0) as file:
                yield file
        case ".bz2":
            with bz2.BZ2File(raw, "wb") as file:
                yield file
        case ".xz":
            with lzma.LZMAFile(raw, "wb") as file:
                yield file
        case ".zst":
            with pa.CompressedOutputStream(pa.PythonFile(raw, "w"), "zstd") as file:
                yield file
        case _:
            yield raw


def _write_blocks(blocks: Iterable[Any], layout: Layout, file: Any) -> None:
    """Write blocks that each end in a newline, the last one's as the layout says."""
    newline = layout["newline"].encode()
    held = b"\xef\xbb\xbf" if layout.get("bom") else b""
    ended = True
    for block in blocks:
        file.write(held)
        file.write(memoryview(block)[: -len(newline)])
        held, ended = newline, False
    if ended or layout["final_newline"]:
        file.write(held)


def _delimited(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    delimiter, newline = layout["delimiter"].encode(), layout["newline"].encode()
    columns, quoted = layout["columns"], set(layout["quoted"])
    if layout["quoting"] != "columns":
        quoted = set(columns) if layout["quoting"] == "all" else set()
    if layout["header"]:
        always = layout["header_quoting"] == "all"
        names = [pa.array([name.encode()], pa.large_binary()) for name in columns]
        yield _joined([_field(name, layout, always) for name in names], delimiter, newline)
    for table in tables:
        fields = []
        for name in columns:
            values = _as_bytes(table.column(name), name)
            if layout["escapes"] and name == layout["text"]:
                values = pc.replace_substring(values, b"\n", rb"\n")
            fields.append(_field(values, layout, name in quoted))
        yield _joined(fields, delimiter, newline)


def _field(values: pa.Array, layout: Layout, always: bool) -> list[Any]:
    """Return the pieces of one column's fields, quoted always or where they must be."""
    if always:
        return [b'"', pc.replace_substring(values, b'"', b'""'), b'"']
    # A quote within a field is a plain character to most readers, but never where a field begins.
    quote = r'\A"' if layout["quoting"] == "none" else '"'
    needy = pc.match_substring_regex(values, f"{quote}|[\r\n{layout['delimiter']}]")
    if len(layout["columns"]) == 1:
        # An empty line is no record to most readers.
        needy = pc.or_(needy, pc.equal(pc.binary_length(values), 0))
    if not pc.any(needy).as_py():
        return [values]
    mark = pc.if_else(needy, pa.scalar(b'"', pa.large_binary()), pa.scalar(b"", pa.large_binary()))
    return [mark, pc.if_else(needy, pc.replace_substring(values, b'"', b'""'), values), mark]


def _joined(fields: list[list[Any]], delimiter: bytes, newline: bytes) -> Any:
    """Join the pieces of fields to records; the bytes of all records are one buffer."""
    pieces: list[Any] = []
    for field in fields:
        pieces += [*field, delimiter]
    pieces[-1] = newline
    scalars = [
        pa.scalar(piece, pa.large_binary()) if isinstance(piece, bytes) else piece
        for piece in [*pieces, b""]
    ]
    return _data(pc.binary_join_element_wise(*scalars))


def _data(records: pa.LargeBinaryArray) -> Any:
    """Return the bytes of all values, one after the other, without a copy."""
    offsets = memoryview(records.buffers()[1]).cast("q")
    first, last = offsets[records.offset], offsets[records.offset + len(records)]
    return memoryview(records.buffers()[2])[first:last]


def _as_bytes(column: pa.ChunkedArray, name: str) -> pa.Array:
    """Return a column as text in bytes, a missing value as an empty one."""
    kind = column.type
    if pa.types.is_nested(kind):
        raise InputError(f"column {name!r} is {kind}: this format has no way to write it")
    if kind not in (pa.binary(), pa.large_binary(), pa.string(), pa.large_string()):
        column = pc.cast(column, pa.large_string())
    combined = pc.cast(column, pa.large_binary()).combine_chunks()
    if isinstance(combined, pa.ChunkedArray):
        combined = pa.concat_arrays(combined.chunks)
    return combined.fill_null(b"") if combined.null_count else combined


def _lines(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    newline = layout["newline"].encode()
    for table in tables:
        values = _as_bytes(table.column(layout["text"]), layout["text"])
        if pc.any(pc.match_substring(values, b"\n")).as_py():
            raise InputError("a text holds a newline: it cannot be a line; write .jsonl or .csv")
        yield _joined([[values]], b"", newline)


def _jsonl(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    encode = json.JSONEncoder(
        ensure_ascii=layout["ensure_ascii"], separators=tuple(layout["separators"])
    ).encode
    newline, omit = layout["newline"], layout["nulls"] == "omit"
    for table in tables:
        lines = []
        for row in _with_strings(table).to_pylist():
            kept = {key: value for key, value in row.items() if value is not None or not omit}
            lines.append(encode(kept) + newline)
        yield "".join(lines).encode()


def _with_strings(table: pa.Table) -> pa.Table:
    """Return the table with binary columns as strings, which is all that JSON has."""
    for index, field in enumerate(table.schema):
        if field.type in (pa.binary(), pa.large_binary()):
            try:
                strings = pc.cast(table.column(index), pa.large_string())
            except pa.ArrowInvalid as error:
                reason = f"column {field.name!r} is not UTF-8: it cannot be JSON; write .parquet"
                raise InputError(reason) from error
            table = table.set_column(index, field.name, strings)
    return table


def _fasta(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    newline, width = layout["newline"].encode(), layout["line_width"]
    for names, texts in _plain_values(tables, ["name", layout["text"]]):
        block = []
        for name, text in zip(names, texts, strict=True):
            step = width or max(1, len(text))
            lines = [text[at : at + step] for at in range(0, len(text), step)] or [b""]
            block.append(newline.join([b">" + name, *lines, b""]))
        yield b"".join(block)


def _fastq(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
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
        columns = [_as_bytes(table.column(name), name) for name in names]
        for name, values in zip(names, columns, strict=True):
            if pc.any(pc.match_substring_regex(values, "[\r\n]")).as_py():
                raise InputError(f"column {name!r} holds a newline: it cannot be a record's line")
        yield [values.to_pylist() for values in columns]


_BLOCKS: dict[str, Callable[[Iterable[pa.Table], Layout], Iterator[Any]]] = {
    "csv": _delimited,
    "tsv": _delimited,
    "jsonl": _jsonl,
    "lines": _lines,
    "fasta": _fasta,
    "fastq": _fastq,
}


def _write_parquet(tables: Iterable[pa.Table], layout: Layout, raw: IO[bytes]) -> None:
    iterator = iter(tables)
    empty = pa.schema((name, pa.string()) for name in layout["columns"]).empty_table()
    first = next(iterator, empty)
    with pa.parquet.ParquetWriter(raw, first.schema, compression="zstd") as writer:
        writer.write_table(first)
        for table in iterator:
            writer.write_table(table)


def _write_files(tables: Iterable[pa.Table], layout: Layout, folder: Path) -> None:
    for table in tables:
        paths = table.column("path").to_pylist()
        texts = _as_bytes(table.column(layout["text"]), layout["text"])
        for path, text in zip(paths, texts, strict=True):
            target = folder / _safe(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as raw, _compressor(raw, target.suffix) as file:
                file.write(text.as_buffer())


def _safe(path: object) -> PurePosixPath:
    """Return a path that stays within its folder: a hostile corpus must not write elsewhere."""
    safe = PurePosixPath(path) if isinstance(path, str) else PurePosixPath()
    odd = {"\\", ":", "\0"} if os.name == "nt" else {"\0"}
    if not safe.parts or safe.is_absolute() or ".." in safe.parts or odd & set(str(path)):
        raise InputError(f"refused to write {path!r}: a path must stay within the folder")
    return safe
