"""Damages copies of a corpus in every way it can think of, opens and verifies them, and reports.

    python tools/corrupt.py --copies 1000 --seed 1     # counts per kind, and what was found
    python tools/corrupt.py --seed 1 --copy 4711       # one copy again, here, with its traceback

Each copy must be refused with an error that names a cause, or hold exactly what the original does.
Anything else is a finding: other data without an error (unless all checksums were written anew),
another exception, a crash, a hang of PATIENCE seconds, more than MEMORY bytes. Copies are examined
in children, so that a finding is a number, not the end of the run. tests/test_corrupt.py runs a few
dozen copies.
"""

from __future__ import annotations

import argparse
import base64
import json
import multiprocessing
import signal
import struct
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from laconic import samples
from laconic.corpus import Corpus
from laconic.format import table_of

ADDRESSES = 4 << 30  # bytes of address space for a child
MEMORY = 1 << 30  # bytes of memory that one copy may take
PATIENCE = 10  # seconds that one copy may take
LONGEST = 1 << 20  # terminals of the longest document that is expanded
DOCUMENTS, SHARDS = 240, 3
EDGES = (0, 1, -1, 2, 127, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63))


class WrongDataError(AssertionError):
    """Data that are not the original's, and no error."""


# ---- the corpus that is damaged -----------------------------------------------------------------


@dataclass(frozen=True)
class Original:
    """A corpus of bundled samples: its file, and all that it holds."""

    compact: bool
    data: bytes
    table: pa.Table
    texts: list[bytes]

    @cached_property
    def footer(self) -> int:
        """Where the footer begins."""
        return len(self.data) - 8 - int(struct.unpack("<I", self.data[-8:-4])[0])

    @cached_property
    def stored(self) -> pa.Table:
        """The table as it lies in the file."""
        return pq.read_table(pa.BufferReader(self.data))

    @cached_property
    def chunks(self) -> list[tuple[int, int]]:
        """Where column chunks begin, and where their data pages do."""
        footer = pq.ParquetFile(pa.BufferReader(self.data)).metadata
        groups, columns = range(footer.num_row_groups), range(footer.num_columns)
        chunks = [footer.row_group(g).column(c) for g in groups for c in columns]
        pages = [(each.dictionary_page_offset, each.data_page_offset) for each in chunks]
        return [(dictionary or page, page) for dictionary, page in pages]

    def with_footer(self, footer: bytes) -> bytes:
        """Return the file with another footer."""
        return self.data[: self.footer] + footer + struct.pack("<I", len(footer)) + b"PAR1"

    def signed(self, footer: bytes) -> bytes:
        """Return the footer with a right checksum, as one who means harm would give it."""
        at = footer.rfind(b"laconic.footer.crc32") + len(b"laconic.footer.crc32") + 2
        before, after = footer[:at], footer[at + 16 :]
        plain = before + b"0" * 16 + after
        return before + b"%08x%08x" % (len(plain), zlib.crc32(plain)) + after


@cache
def original(compact: bool) -> Original:
    """Return the original, made anew in each process: it is the same everywhere."""
    split = samples.load("kjv").train
    documents, labels = split.documents[:DOCUMENTS], split.labels[:DOCUMENTS]
    whole = Corpus.from_documents(documents, labels, threads=1)
    columns = pa.table(
        {
            "label": pa.array(labels).dictionary_encode(),
            "id": pa.array(range(1000, 1000 + DOCUMENTS)),
            "weight": pa.array([None if k % 7 == 0 else k / 8 for k in range(DOCUMENTS)]),
            "note": pa.array([None if k % 5 == 0 else f"note {k}" for k in range(DOCUMENTS)]),
        }
    )
    corpus = Corpus.from_arrow(table_of(whole.grammars, whole.about, columns))
    with tempfile.TemporaryDirectory() as folder:
        shards, file = Path(folder, "shards"), Path(folder, "whole.parquet")
        shards.mkdir()
        for number in range(SHARDS):  # each becomes a row group
            rows = slice(number * DOCUMENTS // SHARDS, (number + 1) * DOCUMENTS // SHARDS)
            corpus.select(rows).write(shards / f"{number}.parquet")
        Corpus.open(shards).write(file, compact=compact)
        data, table = file.read_bytes(), Corpus.open(file).to_arrow()
    return Original(compact, data, table, [document.encode() for document in documents])


def written(table: pa.Table, compact: bool) -> bytes:
    """Return a file of this table, by our own writer."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "corpus.parquet")
        Corpus.from_arrow(table).write(file, compact=compact)
        return file.read_bytes()


# ---- damage to bytes ----------------------------------------------------------------------------


def flipped(random: Random, data: bytes, start: int, end: int) -> bytes:
    """One bit or several in a range, the other way round."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 8))):
        changed[random.randrange(start, end)] ^= 1 << random.randrange(8)
    return bytes(changed)


def bits_anywhere(random: Random, whole: Original) -> bytes:
    """Flips bits anywhere."""
    return flipped(random, whole.data, 0, len(whole.data))


def bits_in_footer(random: Random, whole: Original) -> bytes:
    """Flips bits in the footer, its length and the magic number behind it."""
    return flipped(random, whole.data, whole.footer, len(whole.data))


def bits_in_pages(random: Random, whole: Original) -> bytes:
    """Flips bits in pages and their headers."""
    return flipped(random, whole.data, 0, whole.footer)


def bits_in_page_headers(random: Random, whole: Original) -> bytes:
    """Flips bits in the header of one page."""
    start = random.choice(random.choice(whole.chunks))
    _, end = integers_of(whole.data, start)
    return flipped(random, whole.data, start, end)


def truncated(random: Random, whole: Original) -> bytes:
    """Ends anywhere, or lacks something in between."""
    data = whole.data
    start = random.choice((random.randrange(len(data)), len(data) - random.randrange(1, 20)))
    end = random.choice((len(data), len(data), min(len(data), start + random.randrange(1, 999))))
    return data[:start] + data[end:]


def overwritten(random: Random, whole: Original) -> bytes:
    """A range of zeros, ones, noise, or of what is somewhere else in the file."""
    data = whole.data
    start = random.choice((random.randrange(len(data)), random.randrange(whole.footer, len(data))))
    size = min(len(data) - start, random.choice((1, 4, 64, 4096)))
    elsewhere = random.randrange(len(data) - size)
    fill = random.choice(
        (bytes(size), b"\xff" * size, random.randbytes(size), data[elsewhere : elsewhere + size])
    )
    return data[:start] + fill + data[start + size :]


def swapped(random: Random, whole: Original) -> bytes:
    """Two bytes, or two short ranges, in each other's place."""
    data, size = bytearray(whole.data), random.choice((1, 1, 4, 16))
    low = random.choice((0, whole.footer))
    i, j = (random.randrange(low, len(data) - size) for _ in range(2))
    first, second = bytes(data[i : i + size]), bytes(data[j : j + size])
    data[i : i + size], data[j : j + size] = second, first
    return bytes(data)


def swapped_pages(random: Random, whole: Original) -> bytes:
    """Two column chunks in each other's place, or one twice: every checksum is right."""
    footer = bytearray(whole.data[whole.footer : -8])
    chunks = [page for _, page in whole.chunks]
    i, j = random.sample(range(len(chunks)), 2)
    spans, _ = integers_of(bytes(footer), 0)
    replaced = {chunks[i]: chunks[j]} | ({chunks[j]: chunks[i]} if random.random() < 0.5 else {})
    for span in reversed(spans):
        if not span.is_size and span.value in replaced:
            footer[span.start : span.end] = varint(zigzag(replaced[span.value]))
    return whole.with_footer(bytes(footer))


def hostile_footer(random: Random, whole: Original) -> bytes:
    """An offset, a count, a type or a length in the footer is another."""
    footer = whole.data[whole.footer : -8]
    for _ in range(random.choice((1, 1, 2))):
        footer = with_other_integer(random, footer, 0, keep_size=False)
    return whole.with_footer(whole.signed(footer) if random.random() < 0.5 else footer)


def hostile_page_header(random: Random, whole: Original) -> bytes:
    """A count, a size or an encoding in the header of a page is another."""
    return with_other_integer(
        random, whole.data, random.choice(random.choice(whole.chunks)), keep_size=True
    )


# ---- damage to what the footer says: Thrift's compact protocol ----------------------------------


@dataclass(frozen=True)
class Span:
    """An integer in the footer or in the header of a page; sizes are those of strings and lists."""

    start: int
    end: int
    value: int
    is_size: bool


def integers_of(data: bytes, start: int) -> tuple[list[Span], int]:
    """Return all integers of the Thrift struct at `start`, and where it ends."""
    spans: list[Span] = []
    at = start

    def number(is_size: bool) -> int:
        nonlocal at
        begin, value = at, 0
        for shift in count(0, 7):
            value |= (data[at] & 0x7F) << shift
            at += 1
            if data[at - 1] < 0x80:
                break
        value = value if is_size else (value >> 1) ^ -(value & 1)
        spans.append(Span(begin, at, value, is_size))
        return value

    def several(kind: int, size: int) -> None:
        for _ in range(size):
            one(kind, in_list=True)

    def one(kind: int, in_list: bool = False) -> None:
        nonlocal at
        match kind:
            case 1 | 2:
                at += in_list
            case 3:
                at += 1
            case 4 | 5 | 6:
                number(is_size=False)
            case 7:
                at += 8
            case 8:
                size = number(is_size=True)  # which moves `at`
                at += size
            case 9 | 10:
                head = data[at]
                at += 1
                several(head & 15, head >> 4 if head >> 4 < 15 else number(is_size=True))
            case 12:
                while head := data[at]:
                    at += 1
                    if head >> 4 == 0:
                        number(is_size=False)
                    one(head & 15)
                at += 1
            case _:
                raise ValueError(f"Parquet does not use Thrift's type {kind}")

    one(12)
    return spans, at


def with_other_integer(random: Random, data: bytes, start: int, keep_size: bool) -> bytes:
    """Return data whose Thrift struct at `start` has another integer somewhere."""
    try:
        spans, _ = integers_of(data, start)
    except (ValueError, IndexError):  # it was damaged before
        return data
    span = random.choice(spans)
    near = (span.value + 1, span.value - 1, 2 * span.value, random.choice(spans).value, len(data))
    value = random.choice((*EDGES, *near, *near))
    written = varint((value if span.is_size else zigzag(value)) % (1 << 64))
    if keep_size:  # the pages behind it stay where they are
        size = span.end - span.start
        written = written[:size].ljust(size, b"\x80")
        written = bytes(byte | 0x80 for byte in written[:-1]) + bytes([written[-1] & 0x7F])
    return data[: span.start] + written + data[span.end :]


def zigzag(value: int) -> int:
    """Return the number that Thrift writes for an integer."""
    return 2 * value if value >= 0 else -2 * value - 1


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])


# ---- damage to metadata and tables, by somebody who knows the format ----------------------------


def unsigned_metadata(random: Random, whole: Original) -> bytes:
    """Our metadata say something else, in as many bytes; their checksum is the old one."""
    data = whole.data
    edits = (
        *((b"repair", b"rapier"), (b'"bytes"', b'"zhang"'), (b"256", b"257"), (b"note", b"tone")),
        *((b'"version": 1', b'"version": 2'), (b'"label"', b'"weigh"')),
    )
    old, new = random.choice(edits)
    places = [at for at in range(whole.footer, len(data)) if data.startswith(old, at)]
    at = random.choice(places)
    return data[:at] + new + data[at + len(old) :]


def signed_metadata(random: Random, whole: Original) -> bytes:
    """Our metadata say what cannot be, or does not matter; their checksum is right."""
    metadata = dict(whole.stored.schema.metadata)
    fields = json.loads(metadata[b"laconic"])
    junk: Any = random.choice((None, 0, -1, 2**70, 1.5, "x", "", [], {}, [[]], {"name": "x"}, True))
    key = random.choice(("version", "codec", "alphabet", "alphabet_size", "text", "layout"))
    match random.randrange(5):
        case 0:
            fields[key] = junk
        case 1:
            fields.pop(key)
        case 2:
            fields["alphabet"], fields["alphabet_size"] = {"name": "zhang"}, 71
        case 3:
            inner = random.choice(("codec", "alphabet"))
            fields[inner][random.choice((*fields[inner], "x"))] = junk
        case _:
            fields["label"] = random.choice(("gone", 3, [], {}, ""))
    written = json.dumps(fields).encode()
    if random.random() < 0.2:
        written = random.choice((written[:-1], written + b"}", b"[" * 99999, b"\xff", b"null"))
    metadata |= {b"laconic": written, b"laconic.crc32": b"%08x" % zlib.crc32(written)}
    return parquet(whole, whole.stored.replace_schema_metadata(metadata))


def hostile_rows(random: Random, whole: Original) -> bytes:
    """Grammars that are none, in Parquet without a flaw."""
    rows = whole.table.to_pylist()
    row = random.choice(rows)
    edge = random.choice((-1, -(2**31), 2**31 - 1, len(row["letters"]) + len(row["rules"])))
    at = random.randrange(len(row["rules"]))
    match random.randrange(8):
        case 0:
            row["rules"][at][random.choice(("left", "right"))] = edge
        case 1:
            row["rules"][at]["left"] = len(row["letters"]) + random.randrange(at, len(row["rules"]))
        case 2:
            row["sequence"][random.randrange(len(row["sequence"]))] = edge
        case 3:
            row["letters"].insert(random.randrange(9), random.choice((edge, 300, 97, 98)))
        case 4:
            row["length"] = random.choice((row["length"] + 1, *EDGES))
        case 5:
            row[random.choice(("letters", "rules", "sequence"))] = []
        case 6:
            row["rules"].reverse()
        case _:
            row["sequence"] *= random.choice((2, 3))
    return written(pa.Table.from_pylist(rows, whole.table.schema), compact=False)


def bombs(random: Random, whole: Original) -> bytes:
    """A last document of a few bytes that stands for more letters than any memory holds."""
    rows, doublings = whole.table.to_pylist(), random.choice((31, 40, 62, 63, 64, 200))
    last = rows[-1] | {"letters": [97], "sequence": [doublings]}
    last["rules"] = [{"left": k, "right": k} for k in range(doublings)]
    last["length"] = min(1 << doublings, 2**63 - 1)
    rows[-1] = last
    return written(pa.Table.from_pylist(rows, whole.table.schema), compact=False)


def hostile_columns(random: Random, whole: Original) -> bytes:
    """A column is missing, doubled, retyped, renamed or moved, in Parquet without a flaw."""
    table = whole.stored
    at = random.randrange(table.num_columns)
    chosen, name = table.schema.field(at), table.schema.names[at]
    match random.randrange(5):
        case 0:
            table = table.remove_column(at)
        case 1:
            table = table.append_column(chosen, table.column(at))
        case 2:
            kinds = {pa.int64(), pa.string(), pa.list_(pa.int64()), pa.null()} - {chosen.type}
            kind = random.choice(sorted(kinds, key=str))
            table = table.set_column(at, pa.field(name, kind), pa.nulls(DOCUMENTS, kind))
        case 3:
            table = table.rename_columns(
                [each + "x" * (each == name) for each in table.schema.names]
            )
        case _:
            table = table.select(random.sample(table.schema.names, table.num_columns))
            if table.schema.equals(whole.stored.schema):
                table = table.remove_column(0)
    return parquet(whole, table.replace_schema_metadata(whole.stored.schema.metadata))


def hostile_codes(random: Random, whole: Original) -> bytes:
    """Compact grammars of other bytes, in Parquet without a flaw."""
    codes = whole.stored.column("grammar").to_pylist()
    at = random.randrange(len(codes))
    code = bytearray(codes[at])
    match random.randrange(5):
        case 0:
            code = bytearray(random.randbytes(random.choice((0, 1, 9, 1000, 100_000))))
        case 1:
            code = code[: random.randrange(len(code))]
        case 2:
            code = bytearray(random.choice((b"\x00", b"\xff")) * random.choice((1, 99, 1 << 20)))
        case 3:
            code += codes[0]
        case _:
            for _ in range(random.choice((1, 1, 9))):
                code[random.randrange(len(code))] ^= 1 << random.randrange(8)
    codes[at] = bytes(code)
    place = whole.stored.schema.get_field_index("grammar")
    chosen = whole.stored.schema.field(place)
    return parquet(whole, whole.stored.set_column(place, chosen, pa.array(codes, chosen.type)))


def hostile_model(random: Random, whole: Original) -> bytes:
    """The model of compact grammars is another; the checksum of the metadata is right."""
    metadata = dict(whole.stored.schema.metadata)
    fields = json.loads(metadata[b"laconic"])
    plain = bytearray(zlib.decompress(base64.b64decode(fields["model"])))
    match random.randrange(5):
        case 0:
            plain = plain[: random.randrange(len(plain))]
        case 1:
            plain = bytearray(random.choice((b"\x00", b"\xff", b"\x01\x00")) * len(plain))
        case 2:
            plain = bytearray(random.randbytes(len(plain)))
        case 3:
            plain += bytes(random.choice((1, 2, 1 << 25)))
        case _:
            for _ in range(random.choice((1, 9))):
                plain[random.randrange(len(plain))] ^= 1 << random.randrange(8)
    model = base64.b64encode(zlib.compress(bytes(plain)))
    fields["model"] = (model if random.random() < 0.8 else model[::-1]).decode()
    data = json.dumps(fields).encode()
    metadata |= {b"laconic": data, b"laconic.crc32": b"%08x" % zlib.crc32(data)}
    return parquet(whole, whole.stored.replace_schema_metadata(metadata))


def parquet(whole: Original, table: pa.Table) -> bytes:
    """Return a file of this table such as other tools write, without a checksum of the footer."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


Kind: TypeAlias = Callable[[Random, Original], bytes]
ALWAYS: tuple[Kind, ...] = (
    *(bits_anywhere, bits_in_footer, bits_in_footer, bits_in_pages, bits_in_page_headers),
    *(truncated, overwritten, swapped, swapped_pages, hostile_footer, hostile_footer),
    *(hostile_page_header, unsigned_metadata, signed_metadata, hostile_columns),
)
KINDS: dict[bool, tuple[Kind, ...]] = {
    False: (*ALWAYS, hostile_rows, bombs),
    True: (*ALWAYS, hostile_codes, hostile_codes, hostile_model),
}
# Who writes all checksums anew can write another corpus: that it holds other data is no finding.
FORGED = tuple(
    kind.__name__ for kind in (hostile_rows, hostile_codes, hostile_model, hostile_columns)
)
FINE = ("error", "sound", "forged")


def damaged(seed: int, number: int) -> tuple[str, bytes]:
    """Return one copy, the same every time, and the kind of its damage."""
    random = Random(f"{seed} {number}")
    compact = random.random() < 0.4
    kind = random.choice(KINDS[compact])
    return kind.__name__ + ", compact" * compact, kind(random, original(compact))


# ---- what is asked ------------------------------------------------------------------------------


def examine(path: Path) -> None:
    """Open and verify a copy, and read all of it; raises what it finds.

    Documents and columns must be the original's if there is no other error.
    """
    corpus = Corpus.open(path)
    problems = list(corpus.problems())
    if problems:
        raise ValueError(problems[0])
    labels, table = corpus.labels, corpus.to_arrow()
    if len(corpus):
        corpus[-1].to_bytes(corpus.alphabet, LONGEST)
    expected = original(compact=False)
    same(len(corpus), DOCUMENTS, "number of documents")
    same([each.to_bytes(corpus.alphabet, LONGEST) for each in corpus], expected.texts, "texts")
    same(labels, expected.table.column("label").to_pylist(), "labels")
    same(table.schema.names, expected.table.schema.names, "names of columns")
    for name in corpus.columns:
        same(table.schema.field(name), expected.table.schema.field(name), f"type of {name}")
        same(
            table.column(name).to_pylist(),
            expected.table.column(name).to_pylist(),
            f"column {name}",
        )


def same(answer: Any, expected: Any, what: str) -> None:
    """Raise WrongDataError unless the answer is what was expected."""
    if answer != expected:
        raise WrongDataError(f"no error, but another {what}: {answer!r:.80}, not {expected!r:.80}")


def outcome(path: Path) -> tuple[str, str]:
    """Return "sound", "error" or the kind of a finding, and a message."""
    try:
        examine(path)
    except WrongDataError as error:
        return "WRONG", str(error)
    except (ValueError, OSError) as error:
        return ("error" if len(str(error)) > 10 else "no cause"), f"{type(error).__name__}: {error}"
    except MemoryError as error:
        return "memory", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "exception", f"{type(error).__name__}: {error}"
    return "sound", ""


# ---- running ------------------------------------------------------------------------------------


@dataclass
class Report:
    """Outcomes per kind of damage, and what was found."""

    seed: int
    seconds: float = 0.0
    outcomes: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)

    def add(self, number: int, kind: str, result: str, message: str) -> None:
        """Count one copy."""
        self.outcomes.setdefault(kind, Counter())[result] += 1
        if result not in FINE:
            again = f"--seed {self.seed} --copy {number}"
            self.findings.append(f"{result} in {kind} ({again}): {message:.300}")

    @property
    def copies(self) -> int:
        """How many were examined."""
        return sum(counts.total() for counts in self.outcomes.values())

    def __str__(self) -> str:
        lines = [f"{self.copies} copies in {self.seconds:.0f} s"]
        for kind, counts in sorted(self.outcomes.items()):
            lines.append(
                f"{kind:32}" + "  ".join(f"{n} {what}" for what, n in counts.most_common())
            )
        return "\n".join([*lines, *(sorted(self.findings) or ["nothing found"])])


def campaign(seed: int, copies: int, workers: int = 2) -> Report:
    """Examine copies 0, 1, … in children, some at a time."""
    report, start = Report(seed), time.monotonic()
    numbers, lock = iter(range(copies)), threading.Lock()

    def following() -> Iterator[int]:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            yield number

    def work() -> None:
        with tempfile.TemporaryDirectory() as folder:
            child = Child(folder)
            for number in following():
                kind, result, message = child.ask(seed, number)
                with lock:
                    report.add(number, kind, result, message)
                if result in ("crash", "hang"):
                    child = Child(folder)
            child.end()

    with ThreadPoolExecutor(workers) as pool:
        for future in [pool.submit(work) for _ in range(workers)]:
            future.result()
    report.seconds = time.monotonic() - start
    return report


class Child:
    """A process that examines one copy after the other, until one is too much for it."""

    def __init__(self, folder: str) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=CHILD, args=(theirs, folder), daemon=True)
        self._process.start()
        theirs.close()
        self._pipe.recv()  # it is ready: the time it took to start is not the first copy's

    def ask(self, seed: int, number: int) -> tuple[str, str, str]:
        """Return kind of damage, outcome and message; after a crash or a hang, make another."""
        self._pipe.send((seed, number))
        kind = "unknown"
        with suppress(EOFError):
            kind = self._pipe.recv()
            if not self._pipe.poll(PATIENCE):
                self.end()
                return kind, "hang", f"more than {PATIENCE} s"
            result, message = self._pipe.recv()
            return kind, result, message
        self._process.join()
        status = self._process.exitcode or 0
        cause = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        return kind, "crash", f"died of {cause}"

    def end(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.join()


def _be_child(pipe: Connection, folder: str) -> None:
    for compact in KINDS:
        original(compact)
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = Path(folder, "corpus.parquet")
    pipe.send("ready")
    with suppress(EOFError):
        while True:
            kind, data = damaged(*pipe.recv())
            path.write_bytes(data)
            _forget_peak()
            pipe.send(kind)
            result, message = outcome(path)
            if result == "WRONG" and kind.startswith(FORGED):
                result = "forged"
            if (peak := _peak_memory()) > MEMORY and result in FINE:
                result, message = "memory", f"{peak >> 20} MB at its peak; {result} {message}"
            pipe.send((result, message))


def _forget_peak() -> None:
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_memory() -> int:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])
    return 0


CHILD: Callable[[Connection, str], None] = _be_child  # tests put others in its place


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--copies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--copy", type=int, help="examine only this one, with its traceback")
    parser.add_argument("--keep", type=Path, help="with --copy: write the damaged file here")
    arguments = parser.parse_args()
    if arguments.copy is not None:
        kind, data = damaged(arguments.seed, arguments.copy)
        print(kind)
        with tempfile.TemporaryDirectory() as folder:
            path = arguments.keep or Path(folder, "corpus.parquet")
            path.write_bytes(data)
            examine(path)
        print("sound")
        return 0
    report = campaign(arguments.seed, arguments.copies, arguments.workers)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
