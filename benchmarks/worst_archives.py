"""The worst archives: of zip and of WARC, where documents lie compressed; see worst_inputs."""

from __future__ import annotations

import gzip
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

MB = 1 << 20
_ZEROS = bytes(MB)
# The kind, what it is, its name, what writes it, and its largest document.
Archive = tuple[str, str, str, str, Callable[[Path], None], int]


def archives(quick: bool, largest: int) -> Iterator[Archive]:
    """Give archives of every kind; a tenth of them if it is to be quick."""
    share = 10 if quick else 1
    many, zeros = range(50_000 // share), 1024 // share
    text = b"hello, world! " * (MB // 14)
    names = [(f"{n:05}" + "x" * 60_000, [b"hello"]) for n in range(1_000 // share)]
    yield "zip", "wide", "names of 60,000 letters", "a.zip", _zip(names), 0
    yield "zip", "tiny", "50,000 files", "a.zip", _zip((str(n), [b"x"]) for n in many), 0
    whole = [text] * (largest // MB // share)
    yield "zip", "huge", "a file of 64 MB", "a.zip", _zip([("a", whole)]), largest
    yield "zip", "bomb", "1 GB of zeros", "a.zip", _zip([("a", [_ZEROS] * zeros)]), 0
    header = f"X: {'x' * 60_000}\r\n"
    wide = (([b"hello"], header) for _ in range(1_000 // share))
    yield "warc", "wide", "headers of 60,000 letters", "a.warc.gz", _warc(wide), 0
    tiny = (([b"x"], "") for _ in many)
    yield "warc", "tiny", "50,000 records", "a.warc.gz", _warc(tiny), 0
    yield "warc", "huge", "a record of 64 MB, plain", "a.warc", _warc([(whole, "")]), largest
    bomb = _warc([([_ZEROS] * zeros, "")])
    yield "warc", "bomb", "a record of 1 GB of zeros", "a.warc.gz", bomb, 0
    packed = "Content-Type: application/http\r\n"
    inner = [b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n", *[_ZEROS] * zeros]
    yield "warc", "bomb", "1 GB that HTTP calls gzip", "a.warc.gz", _warc([(inner, packed)]), 0


def _zip(files: Iterable[tuple[str, list[bytes]]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for name, pieces in files:
                with archive.open(name, "w") as file:
                    for piece in pieces:
                        file.write(piece)

    return write


def _warc(records: Iterable[tuple[list[bytes], str]]) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        with path.open("wb") as raw:
            for pieces, header in records:
                length = sum(map(len, pieces))
                head = (
                    f"WARC/1.0\r\nWARC-Type: resource\r\n{header}Content-Length: {length}\r\n\r\n"
                )
                packed = path.suffix == ".gz"
                file = gzip.GzipFile("", "wb", 1, raw) if packed else raw
                for piece in (head.encode(), *pieces, b"\r\n\r\n"):
                    file.write(piece)
                if packed:
                    file.close()

    return write
