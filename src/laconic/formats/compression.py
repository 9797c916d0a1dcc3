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

_Open: TypeAlias = Callable[[Any], Any]  # a file as stored to one of plain bytes
_SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd"}
_READERS: dict[str, _Open] = {
    "gzip": lambda raw: gzip.GzipFile(fileobj=raw, mode="rb"),
    "bz2": bz2.BZ2File,
    "xz": lzma.LZMAFile,
    "zstd": partial(pa.CompressedInputStream, compression="zstd"),
}
_WRITERS: dict[str, _Open] = {
    # Neither name nor time, so the same documents give the same bytes.
    "gzip": lambda raw: gzip.GzipFile("", "wb", 6, raw, mtime=0),
    "bz2": partial(bz2.BZ2File, mode="wb"),
    "xz": partial(lzma.LZMAFile, mode="wb"),
    "zstd": lambda raw: pa.CompressedOutputStream(pa.PythonFile(raw, "w"), "zstd"),
}
BROKEN = (OSError, EOFError, lzma.LZMAError, zlib.error, pa.ArrowException)  # what readers raise


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
