"""Pipes, and files whose names are not UTF-8: what pyarrow cannot open."""

from __future__ import annotations

import io
import os
import shutil
import stat
import tempfile
import weakref
from typing import Any, BinaryIO

import pyarrow as pa


class PythonFiles:
    """Opens them as the file systems of pyarrow do.

    A pipe gives its bytes once, but the beginning of a file is looked at before it is read, and all
    of it may be read twice: so it is copied to a temporary file, which has no name.
    """

    def __init__(self) -> None:
        self._copies: dict[str, _Copy] = {}

    def open_input_stream(self, path: str, **_: object) -> BinaryIO:
        """Return a file that can be read, and sought in."""
        if not stat.S_ISFIFO(os.stat(path).st_mode):
            return open(path, "rb")
        if path not in self._copies:
            with open(path, "rb") as pipe:
                self._copies[path] = _Copy(pipe)
        return io.BufferedReader(_CopyReader(self._copies[path]), 1 << 16)

    def open_input_file(self, path: str) -> Any:
        """Return the same, for pyarrow."""
        return pa.PythonFile(self.open_input_stream(path), "r")


class _Copy:
    """All that a pipe gives, in a file that nothing can leave behind."""

    def __init__(self, pipe: BinaryIO) -> None:
        file = tempfile.TemporaryFile(prefix="laconic-")  # noqa: SIM115
        weakref.finalize(self, file.close)
        shutil.copyfileobj(pipe, file, 1 << 20)
        file.flush()
        self.number, self.size = file.fileno(), file.tell()


class _CopyReader(io.RawIOBase):
    """A reader of a copy with a place of its own: several may read it in turns."""

    def __init__(self, copy: _Copy) -> None:
        self._copy, self._at = copy, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._copy.number, [buffer], self._at)
        self._at += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_CUR: self._at, os.SEEK_END: self._copy.size}.get(whence, 0)
        return self._at
