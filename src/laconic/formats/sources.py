"""Where documents come from: paths, globs, folders and URLs, opened and decompressed by name."""

from __future__ import annotations

import io
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.fs

from laconic.errors import InputError, StoreError, needs
from laconic.formats.compression import BROKEN, decompressor, split_suffix
from laconic.formats.pipes import PythonFiles

PathOrURL: TypeAlias = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Source:
    """One file: its name for people, where it is, its size as stored, its path in its folder."""

    name: str
    filesystem: Any
    path: str
    size: int
    relative: str
    from_folder: bool = False
    stored: bool = False

    @property
    def compression(self) -> str | None:
        """How it is to be decompressed, as its suffix says; None to read it as it is stored."""
        return None if self.stored else self._suffixes[1]

    @property
    def suffix(self) -> str:
        """The suffix that tells the format, lower case."""
        return self._suffixes[0]

    @property
    def _suffixes(self) -> tuple[str, str | None]:
        # The query of a URL is no part of the file's name.
        return split_suffix(re.split(r"[?#]", self.name)[0] if "://" in self.name else self.name)

    def anywhere(self) -> Source:
        """Return the same file, found from whatever folder a process is in."""
        local = self.filesystem is not None and "://" not in self.name
        return replace(self, path=os.path.abspath(self.path)) if local else self

    def state(self) -> tuple[int, int | None] | None:
        """Return the file's size now, and when it changed last in ns, as far as that is known."""
        if self.filesystem is None:  # a table in memory
            return None
        if "://" not in self.name:
            found = os.stat(self.path)
            return (found.st_size, found.st_mtime_ns) if stat.S_ISREG(found.st_mode) else None
        with store_errors(self.name, "found"):
            info = self.filesystem.get_file_info(self.path)
        return info.size or 0, info.mtime_ns

    def open(self) -> Any:
        """Return a file that pyarrow can read anywhere in; what a store refuses is a StoreError."""
        if "://" in self.name:
            return StoredFile(self.name, self.filesystem, self.path)
        return self.filesystem.open_input_file(self.path)

    def last_byte(self) -> bytes | None:
        """Return the last byte of a plain file; None where that would mean reading it all."""
        if self.compression or not self.size or "://" in self.name:
            return None
        with self.open() as file:
            file.seek(self.size - 1)
            return bytes(file.read(1))


@contextmanager
def store_errors(name: str, what: str) -> Iterator[None]:
    """Let what a store or a disk says come with the name and the cure: `what` cannot be done."""
    try:
        yield
    except (FileNotFoundError, StoreError):
        raise
    except OSError as error:
        cure = "check the connection, and your rights there" if "://" in name else "check the disk"
        reason = f"cannot be {what}: {error}; {cure}"
        raise StoreError(reason, file=name) from error


class StoredFile(io.RawIOBase):
    """A file in a store: to whoever reads it, a connection that breaks is no damage of its own."""

    def __init__(self, name: str, filesystem: Any, path: str) -> None:
        self._name = name
        with store_errors(name, "read"):
            self._file = filesystem.open_input_file(path)

    def readable(self) -> bool:
        """Tell others that they may read."""
        return True

    def seekable(self) -> bool:
        """Tell others that they may read anywhere."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, or fewer at the end; all that are left if it is negative."""
        with store_errors(self._name, "read"):
            return bytes(self._file.read(size if size >= 0 else None))

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or less of it at the end, and return how many bytes there are."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place, and return where that is."""
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        """Return the place that is read next."""
        return int(self._file.tell())

    def close(self) -> None:
        """Close it."""
        if not self.closed:
            self._file.close()
        super().close()


class _Stored(io.RawIOBase):
    """The bytes of a file as stored, counted: pyarrow's own streams do not tell."""

    def __init__(self, source: Source) -> None:
        self.count = 0
        self._errors = partial(store_errors, source.name, "read")
        # Left to itself, pyarrow would decompress by name and lose what it read before a break.
        with self._errors() if "://" in source.name else nullcontext():
            self._file = source.filesystem.open_input_stream(
                source.path, compression=None, buffer_size=1 << 16
            )

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        with self._errors():
            data: bytes = self._file.read(size if size >= 0 else None)
        self.count += len(data)
        return data

    read1 = read

    def close(self) -> None:
        self._file.close()
        super().close()


class Stream(io.RawIOBase):
    """The decompressed bytes of a file, opened by the first read.

    A broken file must not lose what was read before the break: `read` then tells the end, and
    `failure` why.
    """

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source, self.name = source, source.name
        self.failure: str | None = None
        self.last: bytes = b""  # The last byte read so far.
        self._raw: _Stored | None = None

    def readable(self) -> bool:
        """Tell io.BufferedReader that it may read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return `size` bytes, or fewer at the end; all that are left if it is negative."""
        size = sys.maxsize if size < 0 else size
        if self._raw is None:
            self._raw = _Stored(self.source)
            self._file, self._step = decompressor(self._raw, self.source.compression)
        pieces: list[bytes] = []
        while size > 0 and self.failure is None:
            try:
                piece = bytes(self._file.read1(min(size, self._step)))
            except (MemoryError, StoreError):  # Arrow raises the former; the file is not to blame
                raise
            except BROKEN as error:
                self.failure = f"the file breaks off or is damaged ({error}); fetch it again"
                break
            if not piece:
                break
            pieces.append(piece)
            size -= len(piece)
            self.last = piece[-1:]
        return b"".join(pieces)

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer, or less of it at the end, and return how many bytes there are."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def consumed(self) -> int:
        """Return how many bytes as stored were read."""
        return 0 if self._raw is None else self._raw.count

    def close(self) -> None:
        """Close the file, if it was opened."""
        if self._raw is not None:
            self._file.close()
            self._raw.close()
        super().close()


def find(inputs: PathOrURL | Sequence[PathOrURL]) -> list[Source]:
    """Return the files of paths, globs, folders and URLs, sorted within each.

    Raises FileNotFoundError for one that matches nothing. Hidden files are left out.
    """
    given: Iterable[PathOrURL] = [inputs] if isinstance(inputs, str | os.PathLike) else inputs
    found = [source for one in given for source in _find_one(os.fspath(one))]
    if not found:
        raise FileNotFoundError("no inputs: give at least one file, folder, glob or URL")
    return found


def _find_one(given: str) -> list[Source]:
    filesystem, path = filesystem_of(given)
    kind, size = _kind(given, filesystem, path)
    if kind == pa.fs.FileType.File:
        pipe = "://" not in given and stat.S_ISFIFO(os.stat(path).st_mode)
        found_in = PythonFiles() if pipe else filesystem
        return [_source(given, found_in, path, size, PurePosixPath(path).name)]
    if kind == pa.fs.FileType.Directory:
        base, pattern, recursive = path.rstrip("/"), None, True
    elif glob := re.search(r"[*?\[]", path):
        base = path[: glob.start()].rpartition("/")[0]
        rest = path[len(base) :].lstrip("/")
        pattern, recursive = _glob(rest), "/" in rest or "**" in rest
    else:
        raise FileNotFoundError(f"{given}: no such file or folder; check the path, or quote a glob")
    root = base or ("/" if path.startswith("/") else ".")
    shown = _shown(given, path, root)
    found = []
    for entry, size in _files(given, filesystem, root, recursive):
        relative = entry[len(root) :].lstrip("/")
        if any(piece.startswith(".") for piece in relative.split("/")):
            continue
        if pattern is None or pattern.fullmatch(relative):
            file = shown + relative, filesystem, entry, size, relative
            found.append(_source(*file, from_folder=pattern is None))
    if not found:
        what = "matches no file" if pattern else "is a folder without files"
        raise FileNotFoundError(f"{given}: {what}; check the path, or quote the glob")
    return sorted(found, key=lambda source: source.relative)


def _source(
    name: str, filesystem: Any, path: str, size: int, relative: str, from_folder: bool = False
) -> Source:
    """Return a file, with what can open it; its path in its folder is text, whatever its name."""
    if not _is_text(path):
        filesystem = PythonFiles()
        relative = os.fsencode(relative).decode(errors="backslashreplace")
    return Source(name, filesystem, path, size, relative, from_folder)


def _is_text(path: str) -> bool:
    try:
        return bool(path.encode())
    except UnicodeEncodeError:  # bytes that are no UTF-8 are lone surrogates in Python's paths
        return False


def _kind(given: str, filesystem: Any, path: str) -> tuple[pa.fs.FileType, int]:
    """Return what a path is, a pipe being a file, and its size."""
    if not isinstance(filesystem, pa.fs.LocalFileSystem):
        with store_errors(given, "found"):
            info = filesystem.get_file_info(path)
        return info.type, info.size or 0
    try:
        found = os.stat(path)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return pa.fs.FileType.NotFound, 0
    if stat.S_ISDIR(found.st_mode):
        return pa.fs.FileType.Directory, 0
    if stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        return pa.fs.FileType.File, found.st_size
    return pa.fs.FileType.Unknown, 0


def _files(given: str, filesystem: Any, root: str, recursive: bool) -> Iterator[tuple[str, int]]:
    """Give path and size of the files in a folder, those whose own names are hidden left out."""
    if not isinstance(filesystem, pa.fs.LocalFileSystem):
        selector = pa.fs.FileSelector(root, recursive=recursive, allow_not_found=True)
        with store_errors(given, "listed"):
            listed = filesystem.get_file_info(selector)
        for info in listed:
            if info.type == pa.fs.FileType.File:
                yield info.path, info.size or 0
        return
    # pyarrow follows a link to a folder that it is in until the system refuses, and knows no names
    # that are not UTF-8.
    folders: list[tuple[str, frozenset[tuple[int, int]]]] = [(root, frozenset())]
    while folders:
        folder, above = folders.pop()
        if not os.path.isdir(folder):
            continue
        known = os.stat(folder)
        if (here := (known.st_dev, known.st_ino)) in above:
            continue
        with os.scandir(folder) as entries:
            for entry in entries:
                path = f"{folder.rstrip('/')}/{entry.name}"
                if entry.name.startswith("."):
                    continue
                if entry.is_file():
                    yield path, entry.stat().st_size
                elif recursive and entry.is_dir():
                    folders.append((path, above | {here}))


def filesystem_of(given: str) -> tuple[Any, str]:
    """Return the file system of a path or URL and the path in it.

    S3 is where AWS_ENDPOINT_URL says, as for other programs; pyarrow alone does not look there.
    """
    if "://" not in given:
        return pa.fs.LocalFileSystem(), given
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if given.startswith("s3://") and endpoint and "?" not in given:
        scheme, _, host = endpoint.rpartition("://")
        files = pa.fs.S3FileSystem(endpoint_override=host.rstrip("/"), scheme=scheme or "https")
        return files, given.removeprefix("s3://").rstrip("/")
    try:
        return pa.fs.FileSystem.from_uri(given)  # type: ignore[no-any-return]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        with needs(f"{given}: this kind of URL", "url"):
            import fsspec
        try:
            handler, path = fsspec.core.url_to_fs(given)
        except (ImportError, ValueError) as error:
            raise InputError(f"{given}: {error}") from error
        return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(handler)), path


def _shown(given: str, path: str, root: str) -> str:
    """Return what goes before the relative path of a file in its name, in the style given."""
    if "://" in given:
        scheme = given.rstrip("/").removesuffix(path.strip("/"))
        return f"{scheme}{root.strip('/')}/"
    return "" if root == "." else f"{root.rstrip('/')}/"


def _glob(pattern: str) -> re.Pattern[str]:
    """Translate a glob: * and ? within a name, ** across folders, [abc].

    >>> [bool(_glob(glob).fullmatch("a/b/c.csv")) for glob in ("a/**/*.csv", "a/*.csv")]
    [True, False]
    """
    tokens = re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]]*\]|.", pattern, flags=re.DOTALL)
    known = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    regex = "".join(
        known.get(token)
        or (
            "[" + re.sub("^!", "^", token[1:-1]).replace("\\", r"\\") + "]"
            if len(token) > 2 and token[0] == "["
            else re.escape(token)
        )
        for token in tokens
    )
    return re.compile(regex, flags=re.DOTALL)
