"""Compressed files, both ways: gzip, bzip2, xz and Zstandard, by the suffix of their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import pyarrow as pa

from laconic.errors import InputError

_Open: TypeAlias = Callable[[Any], Any]  # a file as stored to one of plain bytes
_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
_READERS: dict[str, _Open] = {
    "gzip": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
    "bz2": bz2.BZ2File,
    "xz": lambda raw: _Xz(raw),
    "zstd": partial(pa.CompressedInputStream, compression="zstd"),
}
_WRITERS: dict[str, _Open] = {
    # Neither name nor time, so the same documents give the same bytes.
    "gzip": lambda raw: gzip.GzipFile("", "wb", 6, raw, mtime=0),
    "bz2": partial(bz2.BZ2File, mode="wb"),
    "xz": partial(lzma.LZMAFile, mode="wb"),
    "zstd": lambda raw: pa.CompressedOutputStream(pa.PythonFile(raw, "w"), "zstd"),
}
_READ = 1 << 16
_MOST_UNPACKER = 256 << 20  # bytes; xz -9 needs 65 MiB
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException)  # what readers raise


class _Xz:
    """What LZMAFile is, with a limit: a file may ask for gigabytes to be unpacked with."""

    def __init__(self, raw: Any) -> None:
        self._raw, self._unpack, self._data = raw, _unpacker(), b""

    def read1(self, size: int) -> bytes:
        while True:
            if self._unpack.eof:
                # Padding between streams is of zeros.
                self._data = self._unpack.unused_data.lstrip(b"\0")
                while not self._data and (data := self._raw.read(_READ)):
                    self._data = data.lstrip(b"\0")
                if not self._data:
                    return b""
                self._unpack = _unpacker()
            elif self._unpack.needs_input and not self._data:
                self._data = self._raw.read(_READ)
                if not self._data:
                    raise EOFError("the end of the stream is missing")
            data, self._data = self._data, b""
            try:
                piece = self._unpack.decompress(data, size)
            except lzma.LZMAError as error:
                if "Memory usage limit" not in str(error):
                    raise
                reason = f"takes more than {_MOST_UNPACKER:,} bytes to unpack; pack it with xz -9"
                raise InputError(reason) from None
            if piece:
                return piece

    def close(self) -> None:
        pass


def _unpacker() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(memlimit=_MOST_UNPACKER)


def split_suffix(name: str) -> tuple[str, str | None]:
    """Return the suffix that tells the format of a file, lower case, and how it is compressed.

    >>> split_suffix("a.CSV.gz"), split_suffix("a.csv")
    (('.csv', 'gzip'), ('.csv', None))
    """
    path = PurePosixPath(name)
    compression = _SUFFIXES.get(path.suffix.lower())
    return (path.with_suffix("") if compression else path).suffix.lower(), compression


def decompressor(raw: Any, compression: str | None) -> tuple[Any, int]:
    """Return a file of the plain bytes of one as stored, and how many to read at a time.

    What a decompressor has ready is lost where it fails within a read, so reads are small.
    """
    if compression is None:
        return raw, 1 << 22
    return _READERS[compression](raw), 1 << 10 if compression == "zstd" else 1 << 18


def compressor(raw: Any, compression: str | None) -> Any:
    """Return a context that gives a file to write plain bytes to; it leaves `raw` open."""
    return nullcontext(raw) if compression is None else _WRITERS[compression](raw)
