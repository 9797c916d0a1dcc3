"""Compact columns (FORMAT.md): grammars of Re-Pair in fewer bytes than gzip takes for the text.

The columns letters, rules and sequence become one, `grammar`, coded with a model of which letters
follow which that is kept in the metadata. Only Laconic reads it; above CorpusFile nobody knows.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laconic import _core
from laconic.arrays import frozen
from laconic.corpus.schema import (
    GRAMMAR_COLUMNS,
    About,
    CorpusError,
    check_types,
    grammars_from,
    lists_of,
    one_array,
    packed_lists,
)
from laconic.errors import GrammarError, InputError

COMPACTED = ("letters", "rules", "sequence")
_FIELD = pa.field("grammar", pa.large_binary(), nullable=False)
_MOST_UNPACKED = 64  # bytes that a byte of code may become
_MOST_SHARED = (1 << 15) - 1  # rules: frequencies of as many fit a table
_MOST_MODEL = 1 << 20  # bytes; a model of 256 letters has a quarter of that


def check_compact(about: About) -> None:
    """Raise ValueError, with the reason, for a corpus that cannot be compact."""
    if about.codec.name != "repair":
        raise InputError(f"compact corpora are Re-Pair's; the codec here is {about.codec.name!r}")
    if about.rulebook is not None and len(about.rulebook) > _MOST_SHARED:
        raise InputError(
            f"compact corpora have rulebooks of at most {_MOST_SHARED:,} rules, not "
            f"{len(about.rulebook):,}"
        )
    if about.alphabet.size > 256:
        raise InputError(
            f"compact corpora have alphabets of at most 256 letters, not {about.alphabet.size}"
        )


def learn_model(table: pa.Table, about: About) -> str:
    """Return a model of the grammars of `table`, as text for the metadata. O(symbols)."""
    grammars_from(table, about)  # the core trusts what it codes
    numbers = _core.learn_compact(packed_lists(table), about.alphabet.size, _book(about))
    return base64.b64encode(zlib.compress(numbers.astype("<u2").tobytes(), 9)).decode()


def to_compact(table: pa.Table, about: About) -> pa.Table:
    """Return the table with its lists coded by `about.model`."""
    grammars_from(table, about)
    try:
        codes, offsets = _core.encode_compact(
            packed_lists(table), about.alphabet.size, _numbers(about), _book(about)
        )
    except GrammarError as error:
        raise CorpusError(error.reason, **error.place) from None
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(table), [None, pa.py_buffer(offsets), pa.py_buffer(codes)]
    )
    rest = table.drop_columns(list(COMPACTED))
    fields = compact_fields(table.schema)
    return pa.table([*rest.columns, column], schema=about.schema(fields))


def compact_fields(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """Return the fields that a corpus with these has when it is compact.

    Raises CorpusError if the user has a column of the name that is needed.
    """
    kept = [field for field in fields if field.name not in COMPACTED]
    if any(field.name == _FIELD.name for field in kept):
        raise CorpusError(f"compact corpora have a column {_FIELD.name!r} of their own; rename it")
    return [*kept, _FIELD]


def listed_fields(schema: pa.Schema) -> list[pa.Field]:
    """Return the fields of a compact corpus when its lists are there again."""
    others = [field for field in schema if field.name not in ("grammar", "length")]
    return [*others, *GRAMMAR_COLUMNS]


def from_compact(table: pa.Table, about: About, limit: int) -> pa.Table:
    """Return the table with its lists again, for which at most `limit` bytes may be needed.

    Raises CorpusError, with the row where one is to blame, for broken codes.
    """
    check_types(table.schema, [_FIELD, GRAMMAR_COLUMNS.field("length")])
    array = one_array(table, _FIELD.name)
    every = np.frombuffer(array.buffers()[1], np.int64) if len(array) else np.zeros(1, np.int64)
    offsets = every[array.offset : array.offset + len(array) + 1]
    data = array.buffers()[2] if len(array) else None
    codes = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    size = int(offsets[-1] - offsets[0])
    if _MOST_UNPACKED * size > limit:
        raise CorpusError(f"its {size} bytes of codes may need more than {limit} bytes")
    try:
        packed = _core.decode_compact(
            frozen(codes),
            frozen(np.array(offsets)),
            about.alphabet.size,
            _numbers(about),
            _book(about),
        )
    except GrammarError as error:
        raise CorpusError(error.reason, **error.place) from None
    columns = dict(zip(COMPACTED, lists_of(packed), strict=True))
    columns |= {name: table.column(name) for name in table.schema.names if name != "grammar"}
    fields = listed_fields(table.schema)
    return pa.table([columns[field.name] for field in fields], schema=pa.schema(fields))


def _book(about: About) -> _core.Rulebook | None:
    return None if about.rulebook is None else about.rulebook.core


def _numbers(about: About) -> npt.NDArray[np.uint16]:
    try:
        coded = base64.b64decode(about.model or "", validate=True)
        plain = zlib.decompressobj().decompress(coded, _MOST_MODEL)
        numbers = np.frombuffer(plain, "<u2")
    except (ValueError, zlib.error) as error:
        raise CorpusError(f"its metadata are wrong: the model cannot be read: {error}") from None
    return frozen(numbers)
