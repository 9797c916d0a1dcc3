"""The corpus format (FORMAT.md): grammars, and what must be known to read them, as Arrow tables."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laconic import _core
from laconic.alphabet import Alphabet
from laconic.arrays import Int32s, Int64s, arrow_integers, frozen
from laconic.codecs import Codec
from laconic.errors import GrammarError, InputError
from laconic.grammar import Grammars, grammars_of
from laconic.rulebook import Rulebook

VERSION = 3
"""The last that is known; files are of the first that suffices (About.version)."""
_KEY, _CHECK = b"laconic", b"laconic.crc32"
_LAYOUT, _SHARDS = b"laconic.layout", b"laconic.shards"
_MOST_METADATA = 1 << 24
_MOST_SYMBOLS = (1 << 31) - 1


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def _list(element: pa.DataType) -> pa.DataType:
    return pa.list_(_required("element", element))


_RULE = pa.struct([_required("left", pa.int32()), _required("right", pa.int32())])
GRAMMAR_COLUMNS = pa.schema(
    [
        _required("letters", _list(pa.int32())),
        _required("rules", _list(_RULE)),
        _required("sequence", _list(pa.int32())),
        _required("length", pa.int64()),
    ]
)


class CorpusError(InputError):
    """A file that is no corpus, or a broken one; names the file, and the document to blame, if any.

    `document` counts from 0 in the file, or in the table where there is no file.
    """


@contextmanager
def errors_in(file: str | None, first: int = 0) -> Iterator[None]:
    """Let a CorpusError within name the file, and documents by number in it, from `first` on."""
    try:
        yield
    except CorpusError as error:
        document = None if error.document is None else first + error.document
        raise CorpusError(error.reason, file=file, document=document) from None


@dataclass(frozen=True, slots=True)
class About:
    """What a corpus says of itself in its schema metadata.

    `text` names the column the documents came from, `label` the one that holds the labels, if any,
    and `layout` says how the documents were written (laconic.formats.writing writes them so again).
    `model` is that of compact columns, in files that have them. A `rulebook` is over the alphabet.
    """

    codec: Codec
    alphabet: Alphabet
    text: str = "text"
    label: str | None = None
    layout: Mapping[str, Any] | None = None
    model: str | None = None
    rulebook: Rulebook | None = None

    @property
    def version(self) -> int:
        """Of the format: 1, or 2 with a rulebook, or 3 if only some of its rules cross words."""
        if self.rulebook is None:
            return 1
        return 3 if isinstance(self.rulebook.boundary, int) else 2

    def schema(self, fields: Iterable[pa.Field]) -> pa.Schema:
        """Return the schema of a corpus in memory with these fields."""
        about = {
            "version": self.version,
            "codec": self.codec.to_dict(),
            "alphabet": json.loads(self.alphabet.to_json()),
            "alphabet_size": self.alphabet.size,
            "text": self.text,
            "label": self.label,
            "layout": self.layout,
            "model": self.model,
        }
        if self.rulebook is not None:
            about["rulebook"] = {
                "boundary": self.rulebook.boundary,
                "documents": self.rulebook.documents,
                "fingerprint": self.rulebook.fingerprint,
                "rules": self.rulebook.packed,
            }
        data = json.dumps(about, sort_keys=True).encode()
        return pa.schema(fields, metadata={_KEY: data, _CHECK: _crc32(data)})

    @classmethod
    def of(cls, schema: pa.Schema) -> About:
        """Return what a schema says; CorpusError, one message per cause, if it is no corpus's."""
        metadata = schema.metadata or {}
        data = metadata.get(_KEY)
        if data is None:
            raise CorpusError('is not a corpus: its schema metadata has no "laconic"')
        if len(data) > _MOST_METADATA:
            raise CorpusError(f"has {len(data)} bytes of metadata, more than {_MOST_METADATA}")
        if metadata.get(_CHECK) != _crc32(data):
            raise CorpusError("its metadata are damaged: their CRC-32 is another")
        try:
            fields = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorpusError(f"its metadata are not JSON: {error}") from None
        if not isinstance(fields, dict):
            raise CorpusError("its metadata are not a JSON object")
        version = fields.get("version")
        if type(version) is not int or not 1 <= version <= VERSION:
            cure = ": upgrade Laconic" if type(version) is int and version > VERSION else ""
            raise CorpusError(
                f"is of format version {version!r:.20}; this Laconic reads versions 1 to {VERSION}"
                f"{cure}"
            )
        try:
            return cls._parsed(fields)
        except (TypeError, ValueError) as error:
            raise CorpusError(f"its metadata are wrong: {error}") from None

    @classmethod
    def _parsed(cls, fields: dict[str, Any]) -> About:
        for key in ("codec", "alphabet"):
            if not isinstance(fields.get(key), dict):
                raise InputError(f'"{key}" must be an object')
        known = {field.name for field in dataclass_fields(Codec)}
        if unknown := sorted(fields["codec"].keys() - known):
            raise InputError(f"no codec has the option {unknown[0]!r:.40}")
        codec = Codec(**fields["codec"])
        alphabet = Alphabet.from_json(json.dumps(fields["alphabet"]))
        text, label, layout, model = map(fields.get, ("text", "label", "layout", "model"))
        if not isinstance(text, str) or not isinstance(label, str | None):
            raise InputError('"text" and "label" must name columns')
        if not isinstance(layout, dict | None) or not isinstance(model, str | None):
            raise InputError('"layout" must be an object or null, "model" a text or null')
        if fields.get("alphabet_size") != alphabet.size:
            raise InputError('"alphabet_size" is not the alphabet\'s')
        rulebook = _rulebook(fields.get("rulebook"), alphabet) if fields["version"] > 1 else None
        return cls(codec, alphabet, text, label, layout, model, rulebook)


def _rulebook(fields: object, alphabet: Alphabet) -> Rulebook | None:
    if fields is None:
        return None
    names = ("boundary", "documents", "fingerprint", "rules")
    if not isinstance(fields, dict) or sorted(fields) != list(names):
        raise InputError(f'"rulebook" must be an object of {", ".join(names)}')
    boundary, documents, fingerprint, rules = (fields[name] for name in names)
    if not isinstance(rules, str) or type(documents) is not int:
        raise InputError('"rules" of the rulebook must be a text, "documents" a number')
    if type(boundary) not in (str, int):
        raise InputError('"boundary" of the rulebook must be a text or a number')
    rulebook = Rulebook.unpacked(alphabet, rules, boundary, documents)
    if rulebook.fingerprint != fingerprint:
        raise InputError('"fingerprint" is not the rulebook\'s')
    return rulebook


def _crc32(data: bytes) -> bytes:
    return b"%08x" % zlib.crc32(data)


def end_metadata(layout: Mapping[str, Any] | None, shards: int | None) -> dict[bytes, bytes]:
    """Return the file metadata that say what is known at the end only, each if it is not None.

    `layout` replaces that of the schema metadata; `shards` are how many there are, in the last.
    """
    metadata = {} if shards is None else {_SHARDS: b"%d" % shards}
    if layout is not None:
        data = json.dumps(dict(layout), sort_keys=True).encode()
        metadata[_LAYOUT] = _crc32(data) + b" " + data
    return metadata


def stated_at_end(metadata: Mapping[bytes, bytes]) -> tuple[dict[str, Any] | None, int | None]:
    """Return the layout and shards that end_metadata was given; CorpusError if damaged."""
    layout, shards = None, metadata.get(_SHARDS)
    if _LAYOUT in metadata:
        crc, _, text = metadata[_LAYOUT].partition(b" ")
        if crc != _crc32(text):
            raise CorpusError("its layout is damaged: its CRC-32 is another")
        with suppress(ValueError, RecursionError):
            layout = json.loads(text)
        if not isinstance(layout, dict):
            raise CorpusError("its layout is not a JSON object")
    if shards is not None and (not shards.isdigit() or len(shards) > 9):
        raise CorpusError("its number of shards is no number")
    return layout, None if shards is None else int(shards)


def table_of(
    grammars: Grammars,
    about: About,
    columns: pa.Table | None = None,
    lengths: Int64s | None = None,
) -> pa.Table:
    """Return the corpus of these grammars, in O(symbols), beside the user's `columns`, if any.

    `lengths` of the documents are counted if they are not given.

    Raises CorpusError for columns that have the names of the corpus's own, or too many symbols.
    """
    # In LZ78 and LZD the sequence counts the rules as they are made: nearly free as it is.
    packed = _core.pack(grammars.core, sort=about.codec.name == "repair")
    lengths = grammars.expanded_lengths if lengths is None else lengths
    arrays: list[pa.Array] = [*lists_of(packed), array_of(lengths)]
    fields = list(GRAMMAR_COLUMNS)
    if columns is not None:
        check_columns(columns.schema)
        if about.text in columns.schema.names:
            raise CorpusError(f"two columns are named {about.text!r}; rename one of them")
        arrays = [*columns.columns, *arrays]
        fields = [*columns.schema, *fields]
    return pa.table(arrays, schema=about.schema(fields))


def check_columns(fields: Iterable[pa.Field]) -> None:
    """Raise CorpusError if the user's columns have one name twice, or that of the corpus's own."""
    names = Counter(field.name for field in fields)
    if taken := sorted(names.keys() & set(GRAMMAR_COLUMNS.names)):
        raise CorpusError(
            f"the column {taken[0]!r} has the name of one of the corpus's own "
            f"({', '.join(GRAMMAR_COLUMNS.names)}); rename it"
        )
    if twice := [name for name, times in names.items() if times > 1]:
        raise CorpusError(f"two columns are named {twice[0]!r}; rename one of them")


def lists_of(packed: _core.PackedGrammars) -> list[pa.Array]:
    """Return packed grammars as the columns letters, rules and sequence."""
    sides = [array_of(packed.left), array_of(packed.right)]
    rules = pa.StructArray.from_arrays(sides, fields=list(_RULE))
    return [
        _lists(packed.letter_offsets, array_of(packed.letters), "letters"),
        _lists(packed.rule_offsets, rules, "rules"),
        _lists(packed.sequence_offsets, array_of(packed.sequence), "sequence"),
    ]


def packed_lists(table: pa.Table) -> _core.PackedGrammars:
    """Return what lists_of was given; CorpusError for columns of other types, or with nulls."""
    check_types(table.schema, GRAMMAR_COLUMNS)
    letters, letter_offsets = _flat(table, "letters")
    rules, rule_offsets = _flat(table, "rules")
    if rules.null_count:
        raise CorpusError("rules hold a missing rule")
    sequence, sequence_offsets = _flat(table, "sequence")
    return _core.PackedGrammars(
        _integers(letters, letter_offsets, "letters"),
        letter_offsets,
        _integers(rules.field("left"), rule_offsets, "rules"),
        _integers(rules.field("right"), rule_offsets, "rules"),
        rule_offsets,
        _integers(sequence, sequence_offsets, "sequence"),
        sequence_offsets,
    )


def check_types(schema: pa.Schema, fields: Iterable[pa.Field]) -> None:
    """Raise CorpusError unless a schema has these fields, of these types."""
    for field in fields:
        index = schema.get_field_index(field.name)
        if index < 0:
            raise CorpusError(f"has no column {field.name!r}")
        found = schema.field(index).type
        if not found.equals(field.type):
            raise CorpusError(f"its column {field.name!r} is {found}, not {field.type}")


def _lists(offsets: Int64s, values: pa.Array, name: str) -> pa.ListArray:
    if int(offsets[-1]) > _MOST_SYMBOLS:
        raise CorpusError(
            f"{name} of one part exceed 2^31 - 1 symbols; use another codec or split the document"
        )
    kind = GRAMMAR_COLUMNS.field(name).type
    return pa.ListArray.from_arrays(array_of(offsets.astype(np.int32)), values, type=kind)


def array_of(values: Int32s | Int64s) -> pa.Array:
    """Return integers as Arrow's, not copied; as in arrays.arrow_integers, without pandas."""
    kind = pa.int32() if values.dtype == np.int32 else pa.int64()
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def grammars_from(table: pa.Table, about: About) -> Grammars:
    """Return the grammars of a table that table_of made, checked.

    Raises CorpusError with the number of the row in the table, from 0, for anything else.
    """
    packed = packed_lists(table)
    length = one_array(table, "length")
    try:
        book = None if about.rulebook is None else about.rulebook.core
        made = _core.unpack(packed, about.alphabet.size, book)
        grammars = grammars_of(made, about.rulebook)
        lengths = grammars.expanded_lengths
    except GrammarError as error:
        raise CorpusError(error.reason, **error.place) from None
    claimed = arrow_integers(length)
    if not np.array_equal(claimed, lengths):
        row = int((claimed != lengths).argmax())
        reason = f"its length is given as {claimed[row]}, its grammar stands for {lengths[row]}"
        raise CorpusError(reason, document=row)
    return grammars


def one_array(table: pa.Table, name: str) -> pa.Array:
    """Return a column as one array; CorpusError with the document whose value is missing."""
    column = table.column(name)
    if column.num_chunks == 0:
        return pa.array([], column.type)
    array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    if array.null_count:
        missing = array.is_null().to_pylist().index(True)
        raise CorpusError(f"{name} is missing", document=missing)
    return array


def shared_values(column: pa.Array) -> list[Any]:
    """Return a column as Python's values; equal texts are one object, so that many take little."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return list(column.to_pylist())
    coded = column.dictionary_encode()
    values = coded.dictionary.to_pylist()
    # Neither to_numpy nor fill_null: they import pandas, as in arrays.arrow_integers.
    places = coded.indices.to_pylist() if column.null_count else arrow_integers(coded.indices)
    return [None if place is None else values[place] for place in places]


def _flat(table: pa.Table, name: str) -> tuple[pa.Array, Int64s]:
    lists = one_array(table, name)
    offsets = np.zeros(len(lists) + 1, np.int64)
    np.cumsum(arrow_integers(pc.list_value_length(lists)), out=offsets[1:])
    return lists.flatten(), frozen(offsets)


def _integers(array: pa.Array, offsets: Int64s, name: str) -> Int32s:
    if array.null_count:
        at = array.is_null().to_pylist().index(True)
        document = int(np.searchsorted(offsets, at, side="right")) - 1
        raise CorpusError(f"a symbol is missing in its {name}", document=document)
    return arrow_integers(array)
