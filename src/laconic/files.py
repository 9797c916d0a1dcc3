"""Files that appear whole or not at all, here or in a store: nothing else renames or sweeps.

What is written to `name` is made in a folder of its own beside it, `.name.partial`, which is
removed in the end. Whatever fails in between, what was there before stays; what a killed process
leaves, the next one that writes the same name removes, or `sweep`. Meanwhile `.name.lock` is
locked, and says by whom.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Protocol, TypeAlias

from laconic.errors import InputError, VersionError

PARTIAL, LOCK = ".partial", ".lock"
AnyPath: TypeAlias = str | os.PathLike[str]

_MANY = 64  # files: of so many, one sync of all disks is faster than one of each file
# A path object has made one slash of two; a single letter is a drive of Windows.
_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+")


class Store(Protocol):
    """A place in a store of objects, which shows what is put there when all of it has arrived."""

    @property
    def name(self) -> str:
        """The name of the file or folder."""
        ...

    def exists(self) -> bool:
        """Return whether there is anything."""
        ...

    def is_dir(self) -> bool:
        """Return whether it is a folder that holds anything."""
        ...

    def check_bucket(self) -> None:
        """Raise FileNotFoundError if nothing can be put there."""
        ...

    def put(self, new: Path) -> None:
        """Upload a file or a folder."""
        ...


def caches() -> Path:
    """Return the folder of what can be made again at any time."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "laconic")


@contextmanager
def whole(path: AnyPath | Store, replace: bool = True) -> Iterator[Path]:
    """Give the place of a file or folder that gets the name `path` when the block is done.

    The place has the same name, so that libraries which go by the suffix do right. There is nothing
    at it yet; its folder may hold other temporary files. Folders above `path` are made. What goes
    to a store is made where temporary files are, and uploaded.
    Raises BlockingIOError while another process writes `path`, InputError if that is a URL,
    FileExistsError if something has that name in the end, unless it is to `replace` that.
    """
    if not isinstance(path, str | os.PathLike):
        with TemporaryDirectory(prefix="laconic-") as scratch:
            yield Path(scratch, path.name)
            _spare(path, replace)
            path.put(Path(scratch, path.name))
        return
    path = _named(local_path(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _work(path) as folder:
        yield folder / path.name
        _spare(path, replace)
        move(folder / path.name, path)


@contextmanager
def together(path: AnyPath) -> Iterator[Path]:
    """Give an empty folder, the files of which are in the folder `path` when the block is done.

    A new folder appears whole. In one that is there, each file replaces that of its name, in the
    order of names, and others stay.
    """
    path = _named(local_path(path))
    if not path.exists():
        with whole(path) as new:
            new.mkdir()
            yield new
        return
    with _work(path / "files") as folder:
        yield folder
        _sync_all(folder)
        for each in sorted(folder.iterdir()):
            os.replace(each, path / each.name)
        _sync_folder(path)


def write_text(path: AnyPath, text: str, replace: bool = True) -> None:
    """Write a text file in UTF-8, the same bytes on every system."""
    with whole(path, replace) as new:
        new.write_text(text, "utf-8", newline="\n")


def write_json(path: AnyPath, value: object) -> None:
    """Write a value as JSON for people, too."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def append_line(path: Path, line: str) -> None:
    """Add a line to a file, made if need be; only the last one can ever be cut off."""
    new = not path.exists()
    with path.open("a", encoding="utf-8", newline="\n") as file:
        file.write(line + "\n")
    _sync(path)
    if new:
        _sync_folder(path.parent)


def cut(path: Path, size: int) -> None:
    """Leave the first bytes of a file to which lines are appended."""
    os.truncate(path, size)
    _sync(path)


def read_json(path: AnyPath, most: int = 1 << 26) -> Any:
    """Return what is in a JSON file of at most so many bytes.

    InputError says what is wrong, without the file: whoever calls knows what it should be.
    """
    with open(path, "rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise InputError(f"it is too large: more than {most:,} bytes")
    try:
        return json.loads(data.decode("utf-8"))
    except RecursionError:
        raise InputError("it is nested too deeply") from None
    except ValueError as error:
        raise InputError(str(error)) from None


def check_version(version: object, known: int) -> None:
    """Raise VersionError for a format version that is later than the last that is known.

    InputError, if there can be no such version.

    >>> check_version(3, known=2)
    Traceback (most recent call last):
        ...
    laconic.errors.VersionError: a later Laconic wrote it, in format version 3; this one reads \
versions up to 2: upgrade Laconic
    """
    if type(version) is not int or version < 1:
        raise InputError(f"there is no format version {version!r:.20}")
    if version > known:
        raise VersionError(
            f"a later Laconic wrote it, in format version {version}; this one reads versions up to "
            f"{known}: upgrade Laconic"
        )


def move(new: Path, path: Path | Store) -> None:
    """Give what is whole its name, durably; a folder that it replaces is left at `new`.

    To a store it is uploaded, and stays here. Where the system cannot exchange two names, `path`
    is missing for a moment: whoever finds a folder `replaced` beside `new` calls `put_back`.
    """
    if not isinstance(path, Path):
        path.put(new)
        return
    if path.is_dir() and not new.is_dir():
        raise FileExistsError(f"{path} is a folder: choose another name, or remove it yourself")
    _sync_all(new)
    if not path.is_dir():
        os.replace(new, path)
    elif not _exchange(new, path):
        replaced = _replaced(new)
        _delete(replaced)
        os.replace(path, replaced)
        os.replace(new, path)
        os.replace(replaced, new)
    _sync_folder(path.parent)


def put_back(new: Path, path: Path) -> None:
    """Undo half of a `move` that was killed: what was at `path` must not be removed."""
    if _replaced(new).exists() and not path.exists():
        os.replace(_replaced(new), path)


def _replaced(new: Path) -> Path:
    return new.with_name("replaced")


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names at one moment; False where the system cannot."""
    if sys.platform == "win32":
        return False
    import ctypes

    mac = sys.platform == "darwin"
    rename = getattr(ctypes.CDLL(None), "renameatx_np" if mac else "renameat2", None)
    here, swap = -2 if mac else -100, 2  # as the headers call them, AT_FDCWD and RENAME_EXCHANGE
    return rename is not None and rename(here, bytes(one), here, bytes(other), swap) == 0


def remove(path: Path) -> None:
    """Remove a file or folder, if there is one; never is half a folder left under its name."""
    if path.exists():
        with _work(path) as folder:
            os.replace(path, folder / path.name)


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left of the file `name`, or of all below a folder of ours.

    What a living process is writing stays. Of all, that is also what older versions left.
    """
    if name is not None:
        left = [_work_folder(folder / name)]
    else:
        left = [
            each for kind in (f"*{PARTIAL}", ".*.part", f".*{LOCK}") for each in folder.rglob(kind)
        ]
    for each in left:
        path = each.with_name(each.stem.removeprefix("."))
        with suppress(FileNotFoundError, BlockingIOError), locked(path):
            put_back(each / path.name, path)
            _delete(each)


@contextmanager
def locked(path: Path, wait: bool = False) -> Iterator[None]:
    """Keep other processes from writing `path`, or `wait` for them; BlockingIOError names the one.

    The lock ends with its process. Windows, and some file systems of networks, have no such locks:
    there, nobody is kept out.
    """
    if sys.platform == "win32":
        yield
        return
    name = path.with_name(f".{path.name}{LOCK}")
    lock = _lock(name, path, wait)
    try:
        with suppress(OSError):  # a full disk; nobody needs to know
            os.ftruncate(lock, 0)
            os.write(lock, f"process {os.getpid()} on {platform.node()}".encode())
        yield
    finally:
        name.unlink(missing_ok=True)
        os.close(lock)


def _lock(name: Path, path: Path, wait: bool) -> int:
    import fcntl

    for attempt in count():
        # Open for writing: file systems of networks lock nothing else.
        lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            owner = os.read(lock, 300).decode(errors="replace")
            os.close(lock)
            if owner or attempt > 20:
                owner = owner or "another process"
                raise BlockingIOError(
                    f"{path} is in use: {owner} writes it; wait until that ends, or choose another "
                    "name"
                ) from None
            time.sleep(0.01)  # it has only just begun, and will say who it is
            continue
        except OSError:
            return lock
        # Its owner may have removed it, and another made one since.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(name)):
                return lock
        os.close(lock)
    raise AssertionError


def url_of(path: AnyPath) -> str | None:
    """Return a URL as it was before it became a path; None if it is none."""
    match = _URL.match(os.fspath(path))
    return f"{match[1]}://{os.fspath(path)[match.end() :]}" if match else None


def local_path(path: AnyPath) -> Path:
    """Return a path of this machine, where a link leads to; InputError with the cure for a URL."""
    if url := url_of(path):
        raise InputError(
            f"{url}: outputs are written to this machine only: give a path here, and copy what "
            "is there when it is whole"
        )
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


def check_output(
    path: AnyPath | Store,
    *,
    force: bool = False,
    makes_folders: bool = False,
    inputs: Iterable[AnyPath] = (),
) -> None:
    """Refuse what a file should not be written to, before there is any work that could be lost.

    That is a URL, a folder, what exists, unless `force` replaces it, a name in a folder that does
    not exist, unless the command makes it, and one of the inputs.
    """
    path = local_path(path) if isinstance(path, str | os.PathLike) else path
    spare_inputs(path, inputs)
    if path.is_dir():
        raise FileExistsError(f"{path} is a folder: choose another name, or remove it yourself")
    _spare(path, force)
    if not isinstance(path, Path):
        path.check_bucket()
    elif not makes_folders and not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"{path.parent} does not exist: make the folder first")


def _spare(path: Path | Store, replace: bool) -> None:
    if not replace and path.exists():
        raise FileExistsError(f"{path} exists: choose another name, or use --force")


def spare_inputs(path: Path | Store, inputs: Iterable[AnyPath]) -> None:
    """Raise FileExistsError if an output is one of the inputs, or a folder that holds one."""
    here = isinstance(path, Path)
    place = path.resolve() if isinstance(path, Path) else PurePosixPath(str(path))
    for each in inputs:
        source = Path(each).resolve() if here else PurePosixPath(each)
        if place == source or place in source.parents:
            what = "is the input itself" if place == source else f"holds the input {each}"
            raise FileExistsError(f"{path} {what}: choose another name")


def _named(path: Path) -> Path:
    return path if path.name not in ("", "..") else path.resolve()


def _work_folder(path: Path) -> Path:
    return path.with_name(f".{path.name}{PARTIAL}")


@contextmanager
def _work(path: Path) -> Iterator[Path]:
    """Give an empty folder beside `path` that no other process uses, and remove it in the end."""
    folder = _work_folder(path)
    with locked(path):
        put_back(folder / path.name, path)
        _delete(folder)
        folder.mkdir()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _sync_all(path: Path) -> None:
    """Bring a file, or all of a folder, to disk: a rename must not get there first."""
    if not path.is_dir():
        _sync(path)
        return
    below = list(path.rglob("*"))
    if len(below) > _MANY and sys.platform != "win32":
        os.sync()
        return
    for each in below:
        if each.is_file():
            _sync(each)
        else:
            _sync_folder(each)
    _sync_folder(path)


def _sync(path: Path) -> None:
    # Windows syncs only what is open for writing.
    file = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # Windows cannot, nor can some file systems of networks
        _sync(folder)
