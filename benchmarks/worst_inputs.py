"""The worst inputs of every reader, made small where a bomb is: for benchmarks.readers.

*wide*: much beside little text. *tiny*: many documents of a letter or none. *huge*: one document
of the most megabytes that are allowed. *bomb*: few bytes that stand for many.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.worst_archives import archives

MB = 1 << 20
LARGEST = 64 * MB  # a document, as --max-document allows it by default
_ZEROS = bytes(MB)
Opener: TypeAlias = Callable[[Path], Any]
OPENERS: dict[str, Opener] = {
    ".gz": partial(gzip.GzipFile, mode="wb", compresslevel=1),
    ".bz2": partial(bz2.BZ2File, mode="wb", compresslevel=1),
    ".xz": partial(lzma.LZMAFile, mode="wb", preset=0),
    ".zst": lambda path: pa.CompressedOutputStream(pa.OSFile(str(path), "wb"), "zstd"),
}


class Worst(NamedTuple):
    """One input: what is read, of which kind, its name, its bytes, and words of the command."""

    reader: str
    kind: str
    what: str
    name: str
    pieces: Iterable[bytes] | Callable[[Path], None]
    words: tuple[str, ...] = ()
    largest: int = 0


def write(worst: Worst, folder: Path) -> Path:
    """Write an input into a folder and return its path."""
    path = folder / worst.name
    path.parent.mkdir(parents=True, exist_ok=True)
    if callable(worst.pieces):
        worst.pieces(path)
        return path
    opener = OPENERS.get(path.suffix)
    with opener(path) if opener else path.open("wb") as file:
        for piece in worst.pieces:
            file.write(piece)
    return path.parent if "/" in worst.name else path


def letters() -> bytes:
    """Return a document as long as is allowed: letters of DNA, at random."""
    return np.frombuffer(b"ACGT", np.uint8)[
        np.random.default_rng(1).integers(0, 4, LARGEST)
    ].tobytes()


def _rows(head: bytes, row: bytes, count: int) -> Iterator[bytes]:
    yield head
    many = max(1, min(MB // len(row), count))
    yield from repeat(row * many, count // many)


def _wide_csv(delimiter: bytes) -> Iterator[bytes]:
    """A value of 200 kB beside each text of five letters."""
    return _rows(
        delimiter.join([b"text", b"other\n"]),
        delimiter.join([b"hello", b"x" * 200_000 + b"\n"]),
        2000,
    )


def _many_columns(count: int = 9_999) -> list[str]:
    return [f"column {number}" for number in range(count)]


def _columns_csv() -> Iterator[bytes]:
    yield (",".join(["text", *_many_columns()]) + "\n").encode()
    for row in range(400):
        yield (",".join(["hello", *(f"{row}.{at}" for at in range(9_999))]) + "\n").encode()


def _columns_jsonl() -> Iterator[bytes]:
    for row in range(400):
        values = {name: f"{row}.{at}" for at, name in enumerate(_many_columns())}
        yield json.dumps({"text": "hello", **values}).encode() + b"\n"


def _parquet(
    make: Callable[[], pa.Table], groups: int = 1, **options: Any
) -> Callable[[Path], None]:
    def written(path: Path) -> None:
        table = make()
        with pq.ParquetWriter(path, table.schema, **options) as writer:
            for _ in range(groups):
                writer.write_table(table)

    return written


def _same(value: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([value]))


def _files(count: int) -> Callable[[Path], None]:
    def written(path: Path) -> None:
        for number in range(count):
            folder = path / str(number % 7)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number}.txt").write_bytes(b"a")

    return written


def worst_inputs(quick: bool = False) -> Iterator[Worst]:
    """Give the worst inputs, one after the other."""
    share = 20 if quick else 1
    tiny, zeros = 6_000_000 // share, repeat(_ZEROS, 2048 // share)
    document = letters()[: LARGEST // share]
    size = len(document)
    a = b"A" * MB

    for reader, kind, what, name, make, largest in archives(quick, LARGEST):
        yield Worst(reader, kind, what, name, make, (), largest)
    for name, delimiter in (("csv", b","), ("tsv", b"\t")):
        yield Worst(name, "wide", "200 kB beside each text", f"a.{name}", _wide_csv(delimiter))
    yield Worst("csv", "wide", "10,000 columns", "a.csv", _columns_csv())
    yield Worst("csv", "tiny", "a letter each", "a.csv.gz", _rows(b"text\n", b"a\n", tiny))
    yield Worst(
        "csv",
        "tiny",
        "a column missing, all rejected",
        "a.csv.gz",
        _rows(b"text,n\n", b"a\n", tiny // 8),
        ("--on-error", "skip"),
    )
    yield Worst(
        "csv", "huge", "one document", "a.csv", [b'text,n\n"', document, b'",1\n'], (), size
    )
    yield Worst(
        "csv",
        "bomb",
        "2 GB in quotes",
        "a.csv.gz",
        [b'text,n\n"', *repeat(b",\n" * (MB // 2), 2048 // share)],
    )
    yield Worst("csv", "bomb", "a header of 100 MB", "a.csv.gz", repeat(b"," * MB, 100))

    yield Worst(
        "jsonl",
        "wide",
        "200 kB beside each text",
        "a.jsonl",
        _rows(b"", b'{"text":"hello","other":"%s"}\n' % (b"x" * 200_000), 2000),
    )
    yield Worst("jsonl", "wide", "10,000 columns", "a.jsonl", _columns_jsonl())
    yield Worst(
        "jsonl", "tiny", "a letter each", "a.jsonl.gz", _rows(b"", b'{"text":"a"}\n', tiny // 4)
    )
    yield Worst(
        "jsonl",
        "tiny",
        "broken, all rejected",
        "a.jsonl.gz",
        _rows(b'{"text":"a"}\n', b"[\n", tiny // 8),
        ("--on-error", "skip"),
    )
    yield Worst(
        "jsonl",
        "huge",
        "one document, of wide characters",
        "a.jsonl",
        [b'{"text":"', document[:-4], "\N{GRINNING FACE}".encode(), b'"}\n'],
        (),
        size,
    )
    yield Worst(
        "jsonl",
        "bomb",
        "60 MB of {} in a line",
        "a.jsonl.gz",
        [b'{"text":"a","n":[', *repeat(b"{}," * (MB // 3), 60), b"{}]}\n"],
    )
    yield Worst(
        "jsonl", "bomb", "2 GB in a line", "a.jsonl.gz", [b'{"text":"', *repeat(a, 2048 // share)]
    )

    yield Worst("lines", "tiny", "60 MB of newlines", "a.txt.gz", repeat(b"\n" * MB, 60))
    yield Worst("lines", "tiny", "a letter each", "a.txt.gz", _rows(b"", b"a\n", tiny))
    yield Worst("lines", "huge", "one document", "a.txt", [document, b"\n"], (), size)
    for suffix in OPENERS:
        yield Worst("lines", "bomb", f"2 GB in a line, {suffix}", f"a.txt{suffix}", zeros)
        zeros = repeat(_ZEROS, 2048 // share)

    yield Worst("files", "tiny", "a letter each", "many", _files(10_000 // share))
    yield Worst("files", "huge", "one document", "one/a.txt", [document], (), size)
    for suffix in (".gz", ".zst"):
        yield Worst(
            "files",
            "bomb",
            f"2 GB in a file, {suffix}",
            f"bomb{suffix[1:]}/a{suffix}",
            repeat(_ZEROS, 2048 // share),
        )

    yield Worst(
        "fasta",
        "wide",
        "names of 200 kB",
        "a.fa",
        _rows(b"", b">%s\nACGT\n" % (b"x" * 200_000), 2000),
    )
    yield Worst("fasta", "tiny", "a letter each", "a.fa.gz", _rows(b"", b">\nA\n", tiny // 4))
    yield Worst(
        "fasta",
        "huge",
        "one record in lines of 60",
        "a.fa",
        [b">a\n", *(document[at : at + 60] + b"\n" for at in range(0, size, 60))],
        (),
        size,
    )
    yield Worst(
        "fasta", "bomb", "2 GB in a record", "a.fa.gz", [b">a\n", *repeat(a, 2048 // share)]
    )
    yield Worst(
        "fasta",
        "bomb",
        "a record in lines of two",
        "a.fa.gz",
        [b">a\n", *repeat(b"AC\n" * (MB // 3), 512 // share)],
    )
    yield Worst("fastq", "tiny", "a letter each", "a.fq.gz", _rows(b"", b"@\nA\n+\nI\n", tiny // 8))
    yield Worst(
        "fastq",
        "huge",
        "one record",
        "a.fq",
        [b"@a\n", document, b"\n+\n", b"I" * size, b"\n"],
        (),
        size,
    )
    yield Worst(
        "fastq", "bomb", "2 GB in a record", "a.fq.gz", [b"@a\n", *repeat(a, 2048 // share)]
    )

    short = pa.array(["hello"] * 2000)
    yield Worst(
        "parquet",
        "wide",
        "200 kB beside each text",
        "a.parquet",
        _parquet(
            lambda: pa.table(
                {"text": short, "other": [f"{row:09}" * 22_000 for row in range(2000)]}
            ),
            use_dictionary=False,
        ),
    )
    yield Worst(
        "parquet",
        "wide",
        "10,000 columns",
        "a.parquet",
        _parquet(
            lambda: pa.table(
                {"text": ["hello"] * 400}
                | {name: [f"{row}.{name}" for row in range(400)] for name in _many_columns()}
            )
        ),
    )
    yield Worst(
        "parquet",
        "tiny",
        "a letter each",
        "a.parquet",
        _parquet(lambda: pa.table({"text": ["a"] * tiny})),
    )
    yield Worst(
        "parquet",
        "huge",
        "one document",
        "a.parquet",
        _parquet(lambda: pa.table({"text": [document]})),
        (),
        size,
    )
    yield Worst(
        "parquet",
        "bomb",
        "a dictionary: 20,000 values of 1 MB beside texts",
        "a.parquet",
        _parquet(
            lambda: pa.table(
                {"text": _same("hello", 20_000 // share), "other": _same("x" * MB, 20_000 // share)}
            ),
            store_schema=False,
        ),
    )
    yield Worst(
        "parquet",
        "bomb",
        "a dictionary: 200 texts of 1 MB",
        "a.parquet",
        _parquet(
            lambda: pa.table({"text": _same("hello, world! " * (MB // 14), 200 // share)}),
            store_schema=False,
        ),
        (),
        MB,
    )
    yield Worst(
        "parquet",
        "bomb",
        "shared prefixes: 200 texts of 1 MB",
        "a.parquet",
        _parquet(
            lambda: pa.table({"text": ["hello, world! " * (MB // 14)] * (200 // share)}),
            use_dictionary=False,
            column_encoding={"text": "DELTA_BYTE_ARRAY"},
        ),
        (),
        MB,
    )
    yield Worst(
        "parquet",
        "bomb",
        "a text of 1 GB among 10,000 short ones",
        "a.parquet",
        _parquet(
            lambda: pa.table({"text": ["hello"] * 10_000 + ["x" * (1024 * MB // share)]}),
            compression="zstd",
            use_dictionary=False,
        ),
    )
    yield Worst(
        "parquet",
        "bomb",
        "40 texts of 8 MB after 300,000 short ones",
        "a.parquet",
        _parquet(
            lambda: pa.table({"text": ["hello"] * 300_000 + ["x" * (8 * MB)] * (40 // share)}),
            compression="zstd",
            use_dictionary=False,
        ),
        (),
        8 * MB,
    )
