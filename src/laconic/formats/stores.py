"""Objects of S3, in the place of files: as much of pathlib.Path as corpora need.

An object appears when its upload is complete. Of a folder, the last file by name comes first and
goes last: where it says how many there are, nobody takes some of them for all.
"""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.fs

from laconic.errors import InputError
from laconic.files import AnyPath, url_of
from laconic.formats.sources import StoredFile, filesystem_of, store_errors


class S3Path:
    """An object, or a folder of objects; whatever the store refuses is an OSError."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._files, self._path = filesystem_of(self._url)
        if "/" not in self._path:
            raise InputError(f"{url}: that is a bucket: name an object or a folder in it")

    def __str__(self) -> str:
        return self._url

    def __repr__(self) -> str:
        return f"S3Path({self._url!r})"

    def __lt__(self, other: S3Path) -> bool:
        return self._url < other._url

    @property
    def name(self) -> str:
        """The last part of the URL."""
        return PurePosixPath(self._path).name

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return PurePosixPath(self._path).suffix

    def with_name(self, name: str) -> S3Path:
        """Return what has another name in the same folder."""
        return S3Path(f"{self._url.rpartition('/')[0]}/{name}")

    def is_file(self) -> bool:
        """Return whether it is an object."""
        return bool(self._info.type == pa.fs.FileType.File)

    def is_dir(self) -> bool:
        """Return whether it is a folder that holds anything."""
        return not self.is_file() and next(self.iterdir(), None) is not None

    def exists(self) -> bool:
        """Return whether there is anything of that name."""
        return self.is_file() or self.is_dir()

    def iterdir(self) -> Iterator[S3Path]:
        """Yield what is in a folder, in order."""
        inside = pa.fs.FileSelector(self._path, allow_not_found=True)
        with self._errors("listed"):
            found = self._files.get_file_info(inside)
        for path in sorted(info.path for info in found):
            yield S3Path(f"{self._url}/{PurePosixPath(path).name}")

    def glob(self, pattern: str) -> Iterator[S3Path]:
        """Yield what has a name like that in a folder, in order."""
        return (each for each in self.iterdir() if PurePosixPath(each.name).match(pattern))

    def stat(self) -> SimpleNamespace:
        """Return `st_size` in bytes and `st_mtime_ns`; FileNotFoundError if it is no object."""
        info = self._info
        if info.type != pa.fs.FileType.File:
            raise FileNotFoundError(f"{self} does not exist")
        return SimpleNamespace(st_size=info.size, st_mtime_ns=info.mtime_ns, st_ino=0)

    def open(self, mode: str = "r", encoding: str = "utf-8") -> Any:
        """Return a file to read from, of bytes for the mode "rb"."""
        file = StoredFile(str(self), self._files, self._path)
        return file if "b" in mode else io.TextIOWrapper(file, encoding)

    def unlink(self, missing_ok: bool = False) -> None:
        """Remove an object."""
        if self.is_file() or not missing_ok:
            with self._errors("removed"):
                self._files.delete_file(self._path)

    def check_bucket(self) -> None:
        """Raise FileNotFoundError if there is no such bucket: none is made by the way."""
        bucket = self._path.partition("/")[0]
        with self._errors("found"):
            found = self._files.get_file_info(bucket).type
        if found == pa.fs.FileType.NotFound:
            raise FileNotFoundError(f"{self}: there is no bucket {bucket!r}: make it first")

    def put(self, new: Path) -> None:
        """Upload a file, or all files of a folder instead of those that are there.

        Raises FileExistsError rather than lose a folder for an object.
        """
        if new.is_dir():
            for old in self.iterdir():
                old.unlink()
            for each in sorted(new.iterdir(), reverse=True):
                S3Path(f"{self}/{each.name}").put(each)
            return
        if self.is_dir():
            raise FileExistsError(f"{self} is a folder: choose another name, or remove it yourself")
        here = pa.fs.LocalFileSystem()
        with self._errors("written"):
            pa.fs.copy_files(
                str(new), self._path, source_filesystem=here, destination_filesystem=self._files
            )
            there, size = self.stat().st_size, new.stat().st_size
            if there != size:
                raise OSError(f"{there:,} bytes are there, not {size:,}")

    @property
    def _info(self) -> pa.fs.FileInfo:
        with self._errors("found"):
            return self._files.get_file_info(self._path)

    def _errors(self, what: str) -> AbstractContextManager[None]:
        return store_errors(str(self), what)

    def get(self, folder: Path, but: Collection[str]) -> None:
        """Download all files of a folder to a new one here, those in subfolders `but` aside."""
        inside = pa.fs.FileSelector(self._path, recursive=True, allow_not_found=True)
        with self._errors("listed"):
            found = self._files.get_file_info(inside)
        for info in found:
            relative = PurePosixPath(info.path).relative_to(self._path)
            if info.type == pa.fs.FileType.File and relative.parts[0] not in but:
                to = folder / relative
                to.parent.mkdir(parents=True, exist_ok=True)
                with self._errors("read"):
                    pa.fs.copy_files(
                        info.path,
                        str(to),
                        source_filesystem=self._files,
                        destination_filesystem=pa.fs.LocalFileSystem(),
                    )


Place: TypeAlias = Path | S3Path


def place(path: AnyPath | S3Path) -> Place:
    """Return a path, which is one in S3 if it says so."""
    if isinstance(path, S3Path):
        return path
    url = url_of(path)
    return S3Path(url) if url is not None and url.startswith("s3://") else Path(path)


@contextmanager
def fetched(folder: AnyPath, but: Collection[str]) -> Iterator[Path]:
    """Give a folder on this machine: a copy, without the subfolders `but`, of one in S3."""
    at = place(folder)
    if isinstance(at, Path):
        yield at
        return
    if not at.is_dir():
        raise FileNotFoundError(f"{at} does not exist, or is no folder")
    with TemporaryDirectory(prefix="laconic-") as scratch:
        at.get(Path(scratch, at.name), but)
        yield Path(scratch, at.name)
