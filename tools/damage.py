"""A corpus and every kind of damage that can be done to a copy of it: for corrupt.py."""

from __future__ import annotations

import base64
import json
import struct
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from thrift_integers import EDGES, integers_of, varint, with_other_integer, zigzag

from laconic import samples
from laconic.corpus import Corpus
from laconic.corpus.schema import table_of

DOCUMENTS, SHARDS = 240, 3


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


def damaged(seed: int, number: int) -> tuple[str, bytes]:
    """Return one copy, the same every time, and the kind of its damage."""
    random = Random(f"{seed} {number}")
    compact = random.random() < 0.4
    kind = random.choice(KINDS[compact])
    return kind.__name__ + ", compact" * compact, kind(random, original(compact))
