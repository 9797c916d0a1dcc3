"""Zip archives: every file within a document, which stays compressed if that is asked for."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pyarrow as pa

from laconic.errors import InputError
from laconic.formats.columns import as_bytes, fixed_columns
from laconic.formats.folders import safe_path
from laconic.formats.format import (
    FileRows,
    Format,
    Layout,
    ReadError,
    ReadOptions,
    Reject,
    too_long,
)
from laconic.formats.sources import Source, Stream
from laconic.formats.zipped import RAW, as_gzip, inflated, packed

_TYPES = {"path": pa.string(), "text": pa.large_binary(), "label": pa.string()}
_LOCAL = struct.Struct("<4s22xHH")  # the header that stands before a file's bytes
_DAMAGED = "the archive is damaged ({}); fetch it again"


class ZipReader:
    """Columns "path", "text" and, if all files of the first archive are in folders, "label"."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self._longest, self._compressed = options.max_document, bool(options.compressed)
        with sources[0].filesystem.open_input_file(sources[0].path) as file:
            paths = [PurePosixPath(entry.filename) for entry in _entries(file, sources[0])]
        self._classes = len({path.parts[0] for path in paths if len(path.parts) > 1}) > 1
        self._classes &= all(len(path.parts) > 1 for path in paths)
        columns = ["path", "text"] + ["label"] * self._classes
        self.text, self.label = fixed_columns(sources[0].name, columns, "text", options)
        if self._classes:
            self.label = self.label or "label"
        self.schema = pa.schema((name, _TYPES[name]) for name in columns)
        self.style: Layout = {}

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one archive, file by file, in the order of its directory."""
        with stream.source.filesystem.open_input_file(stream.source.path) as file:
            for row, entry in enumerate(_entries(file, stream.source), 1):
                try:
                    path = self._path(entry)
                    values = {"path": path, "text": self._document(file, entry)}
                    values["label"] = path.partition("/")[0]
                except InputError as error:
                    reason = f"{entry.filename}: {error.reason}"
                    yield FileRows(rejects=[Reject(stream.name, row, reason, entry.filename)])
                    continue
                table = pa.Table.from_pylist([values], schema=self.schema)
                at = entry.header_offset + entry.compress_size
                yield FileRows(table, FileRows.after(row - 1, table).rows, consumed=at)

    def _path(self, entry: zipfile.ZipInfo) -> str:
        if "\\" in entry.filename or ":" in entry.filename.split("/")[0]:
            raise InputError("its name is no path within a folder; pack it under another one")
        path = str(safe_path(entry.filename))
        if self._classes and "/" not in path:
            raise InputError("it is in no folder, so it has no label, as those of others; move it")
        return path

    def _document(self, file: Any, entry: zipfile.ZipInfo) -> bytes:
        if entry.flag_bits & 1:
            raise InputError("it is encrypted; decrypt it first, Laconic asks for no passwords")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(
                f"it is packed by method {entry.compress_type}; pack it by deflate, as zip does"
            )
        if entry.compress_size > self._longest:
            raise InputError(f"as it lies there it is {too_long(self._longest)}")
        file.seek(entry.header_offset)
        header = file.read(_LOCAL.size)
        if len(header) < _LOCAL.size or header[:4] != b"PK\3\4":
            raise InputError(_DAMAGED.format("a file is not where the directory says"))
        _, name, extra = _LOCAL.unpack(header)
        file.seek(entry.header_offset + _LOCAL.size + name + extra)
        data = bytes(file.read(entry.compress_size))
        if len(data) < entry.compress_size:
            raise InputError(_DAMAGED.format("it breaks off"))
        stored = entry.compress_type == zipfile.ZIP_STORED
        if self._compressed and not stored:
            return as_gzip(data, entry.CRC, entry.file_size)  # the core compares them
        text = data if stored else inflated(data, self._longest, RAW)
        if len(text) != entry.file_size or zlib.crc32(text) != entry.CRC:
            raise InputError(_DAMAGED.format("a file's checksum is another"))
        return packed(text) if self._compressed else text


def _entries(file: Any, source: Source) -> list[zipfile.ZipInfo]:
    """Return the files of an archive; ReadError if it cannot be one, or would take any memory."""
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
        raise ReadError(f"is no zip archive, or damaged ({error})", file=source.name) from None
    entries = [entry for entry in archive.infolist() if not entry.is_dir()]
    held = sum(entry.compress_size for entry in entries)
    if held > source.size:  # many names of the same bytes are a bomb
        raise ReadError("its files overlap: that is a zip bomb, or damaged", file=source.name)
    return entries


def _write(tables: Iterable[pa.Table], layout: Layout, out: Path) -> None:
    with zipfile.ZipFile(out, "x", zipfile.ZIP_DEFLATED) as archive:
        for table in tables:
            texts = as_bytes(table.column(layout["text"]), layout["text"])
            for path, text in zip(table.column("path").to_pylist(), texts, strict=True):
                # A time of its own would give other bytes every time.
                entry = zipfile.ZipInfo(str(safe_path(path)), (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, text.as_py())


FORMATS = [Format("zip", (".zip",), ZipReader, whole=_write, needs=("path",), packed=True)]
