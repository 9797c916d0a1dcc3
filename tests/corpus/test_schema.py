"""The tables and the metadata of a corpus: what goes in comes out, and nothing else is read."""

from __future__ import annotations

import json
import pickle
import random
import time
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CODECS, DOCUMENTS, RANDOMS, doubling

from laconic import Alphabet, Codec, Grammar, Grammars, compress_many
from laconic.corpus import Corpus
from laconic.corpus.schema import GRAMMAR_COLUMNS, About, CorpusError, grammars_from, table_of

NAMES = GRAMMAR_COLUMNS.names
ABOUT = About(Codec("repair"), Alphabet.bytes())
LEARNED = Alphabet.learn(["banana, né 漢字", "BANANA"], lowercase=True)
ALPHABETS = {
    "bytes": Alphabet.bytes(),
    "zhang": Alphabet.zhang(),
    "dna": Alphabet.dna(),
    "dna_n": Alphabet.dna("letter", ignore_case=True),
    "learned": LEARNED,
    "one": Alphabet.learn([]),
    "large": Alphabet.learn(["".join(map(chr, range(0x4E00, 0x9000)))]),
}


def packed(alphabet_size: int, *documents: tuple[Any, Any]) -> Grammars:
    return Grammars.concatenate([Grammar(alphabet_size, *document) for document in documents])


def rewritten(table: pa.Table, name: str, values: Any) -> pa.Table:
    """The table with other values in one of its columns, of the same type."""
    at = table.schema.get_field_index(name)
    array = (
        values if isinstance(values, pa.Array) else pa.array(values, table.schema.field(at).type)
    )
    return table.set_column(at, table.schema.field(at), array)


# ---- round trips --------------------------------------------------------------------------------


@given(st.lists(DOCUMENTS, max_size=5), CODECS, st.sampled_from(sorted(ALPHABETS)), RANDOMS)
def test_any_grammars_come_back(
    words: list[list[int]], options: dict[str, Any], name: str, shuffle: random.Random
) -> None:
    alphabet = ALPHABETS[name]
    names = [
        shuffle.randrange(alphabet.size)
        for _ in range(max(map(max, filter(None, words)), default=0) + 1)
    ]
    documents = [np.array([names[letter] for letter in word], np.int32) for word in words]
    grammars = compress_many(documents, alphabet_size=alphabet.size, threads=1, **options)
    about = About(Codec(options.pop("codec"), **options), alphabet)
    table = table_of(grammars, about)
    assert table.schema.equals(GRAMMAR_COLUMNS)
    assert About.of(table.schema) == about
    again = grammars_from(table, about)
    assert again.alphabet_size == alphabet.size
    assert [g.expand().tolist() for g in again] == [d.tolist() for d in documents]
    assert [len(g.rules) for g in again] == [len(g.rules) for g in grammars]
    if about.codec.name == "repair":
        assert table_of(again, about).equals(table)  # the order of rules is settled
    else:
        assert again == grammars
    for size in (1, 2, 3):
        chunks = [table.slice(start, size) for start in range(0, table.num_rows, size)]
        if chunks:
            assert grammars_from(pa.concat_tables(chunks), about) == again


def test_letters_are_those_that_occur_and_rules_are_sorted() -> None:
    grammars = packed(256, ([[99, 98], [97, 98], [257, 256]], [258, 258, 120]))
    (row,) = table_of(grammars, ABOUT).to_pylist()
    assert row["letters"] == [97, 98, 99, 120]
    assert [(rule["left"], rule["right"]) for rule in row["rules"]] == [(0, 1), (2, 1), (4, 5)]
    assert (row["sequence"], row["length"]) == ([6, 6, 3], 9)


def test_no_documents() -> None:
    table = table_of(compress_many([]), ABOUT)
    for each in (table, table.schema.empty_table(), SOUND.slice(0, 0)):
        assert len(grammars_from(each, ABOUT)) == 0
    no_chunks = pa.Table.from_batches([], table.schema)
    assert no_chunks.column(0).num_chunks == 0
    assert len(grammars_from(no_chunks, ABOUT)) == 0


def test_columns_of_the_users_come_first_and_untouched() -> None:
    columns = pa.table({"id": [7, 8], "né": pa.array(["a", None]).dictionary_encode()})
    table = table_of(compress_many(["abab", ""]), ABOUT, columns)
    assert table.schema.names == ["id", "né", *NAMES]
    assert table.select(["id", "né"]).equals(columns)
    for name in NAMES:
        taken = pa.table({name: [1, 2]})
        with pytest.raises(
            CorpusError, match=f"the column '{name}' has the name of one of the cor"
        ):
            table_of(compress_many(["a", "b"]), ABOUT, taken)


def test_lengths_that_are_given_are_taken() -> None:
    grammars = compress_many(["abab", "banana"])
    given_lengths = np.array([4, 6], np.int64)
    assert table_of(grammars, ABOUT, None, given_lengths).equals(table_of(grammars, ABOUT))


def test_errors_can_be_sent() -> None:
    for error in (
        CorpusError("r"),
        CorpusError("r", file="f"),
        CorpusError("r", file="f", document=0),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.reason, again.file, again.document) == (
            *(str(error), error.reason, error.file, error.document),
        )
    assert (
        str(CorpusError("is bad", file="a.parquet", document=3)) == "a.parquet, document 3: is bad"
    )


# ---- metadata -----------------------------------------------------------------------------------


@given(
    st.sampled_from(sorted(ALPHABETS)),
    CODECS,
    st.text(),
    st.none() | st.text(),
    st.none() | st.dictionaries(st.text(), st.text() | st.integers() | st.lists(st.booleans())),
)
def test_metadata_come_back(
    name: str, options: dict[str, Any], text: str, label: str | None, layout: dict[str, Any] | None
) -> None:
    about = About(Codec(options.pop("codec"), **options), ALPHABETS[name], text, label, layout)
    assert About.of(about.schema(GRAMMAR_COLUMNS)) == about
    schema = about.schema(GRAMMAR_COLUMNS)
    assert (
        About.of(
            schema,
        )
        == about
    )
    assert all(value.isascii() for value in schema.metadata.values())


RIGHT: dict[bytes, bytes] = ABOUT.schema(GRAMMAR_COLUMNS).metadata


def spoiled(change: Callable[[dict[str, Any]], Any]) -> dict[bytes, bytes]:
    """Metadata that were changed by somebody who knows their checksum."""
    fields = json.loads(RIGHT[b"laconic"])
    answer = change(fields)
    return signed(json.dumps(fields if answer is None else answer).encode())


def signed(data: bytes) -> dict[bytes, bytes]:
    return {b"laconic": data, b"laconic.crc32": b"%08x" % zlib.crc32(data)}


def put(**changed: Any) -> dict[bytes, bytes]:
    return spoiled(lambda fields: fields.update(changed))


WRONG: dict[str, tuple[Any, str]] = {
    "none": (None, 'is not a corpus: its schema metadata has no "laconic"'),
    "others": ({b"pandas": b"{}"}, 'is not a corpus: its schema metadata has no "laconic"'),
    "no CRC": ({b"laconic": RIGHT[b"laconic"]}, "its metadata are damaged: their CRC-32"),
    "other CRC": (
        RIGHT | {b"laconic.crc32": b"00000000"},
        "its metadata are damaged: their CRC-32",
    ),
    "long CRC": (RIGHT | {b"laconic.crc32": b"0" * 999}, "its metadata are damaged: their CRC-32"),
    "upper CRC": (signed(b"4") | {b"laconic.crc32": b"F3B61B38"}, "its metadata are damaged"),
    "bit": (RIGHT | {b"laconic": b" " + RIGHT[b"laconic"][1:]}, "its metadata are damaged"),
    "long": (signed(b" " * (1 << 24) + b"1"), "has 16777217 bytes of metadata, more than 16777216"),
    "empty": (signed(b""), "its metadata are not JSON: Expecting value"),
    "not JSON": (signed(b"{'a': 1}"), "its metadata are not JSON: Expecting property name"),
    "not UTF-8": (signed(b'"\xff"'), "its metadata are not JSON: 'utf-8' codec can't decode"),
    "deep": (signed(b"[" * 100_000), "its metadata are not JSON: maximum recursion"),
    "huge integer": (
        signed(b'{"version": ' + b"1" * 9999 + b"}"),
        "its metadata are not JSON: Exce",
    ),
    "array": (signed(b"[]"), "its metadata are not a JSON object"),
    "null": (signed(b"null"), "its metadata are not a JSON object"),
    "no version": (spoiled(lambda f: f.pop("version") and None), "is of format version None; this"),
    "version 4": (
        put(version=4),
        "is of format version 4; this Laconic reads versions 1 to 3: upgrade Laconic",
    ),
    "version text": (put(version="1"), "is of format version '1'; this Laconic reads"),
    "version object": (
        put(version={"a": ["long"] * 99}),
        "is of format version {'a': ['long', 'lon",
    ),
    "no codec": (spoiled(lambda f: f.pop("codec") and None), '"codec" must be an object'),
    "codec text": (put(codec="repair"), '"codec" must be an object'),
    "codec name": (put(codec={"name": "gzip"}), "its metadata are wrong: no codec is named 'gzip'"),
    "codec list": (put(codec={"name": ["repair"]}), "its metadata are wrong: no codec is named"),
    "codec key": (put(codec={"x": 1}), "its metadata are wrong: "),
    "min_count": (
        put(codec={"min_count": 1}),
        "its metadata are wrong: min_count must be an integer",
    ),
    "max_rules": (
        put(codec={"max_rules": "9"}),
        "its metadata are wrong: max_rules must be an int",
    ),
    "letters": (
        put(codec={"letters": {}}),
        'its metadata are wrong: letters must be "known" or "se',
    ),
    "foreign": (
        put(codec={"name": "lzd", "max_rules": 1}),
        "its metadata are wrong: max_rules is not",
    ),
    "no alphabet": (spoiled(lambda f: f.pop("alphabet") and None), '"alphabet" must be an object'),
    "alphabet name": (
        put(alphabet={"name": "x"}),
        'its metadata are wrong: alphabet JSON: "name" mu',
    ),
    "alphabet key": (
        put(alphabet={"name": "dna"}),
        "its metadata are wrong: alphabet JSON: 'ignore",
    ),
    "twice": (
        put(alphabet={"name": "characters", "characters": "aa", "lowercase": False}),
        "its metadata are wrong: position 1: characters: 'a' occurs twice",
    ),
    "size": (
        put(alphabet_size=255),
        'its metadata are wrong: "alphabet_size" is not the alphabet\'s',
    ),
    "size text": (put(alphabet_size="256"), 'its metadata are wrong: "alphabet_size" is not'),
    "no size": (spoiled(lambda f: f.pop("alphabet_size") and None), '"alphabet_size" is not the'),
    "no text": (spoiled(lambda f: f.pop("text") and None), '"text" and "label" must name columns'),
    "text": (put(text=3), 'its metadata are wrong: "text" and "label" must name columns'),
    "label": (put(label=["a"]), 'its metadata are wrong: "text" and "label" must name columns'),
    "layout": (put(layout=[]), 'its metadata are wrong: "layout" must be an object'),
}


@pytest.mark.parametrize(("metadata", "message"), WRONG.values(), ids=WRONG)
def test_wrong_metadata_have_one_error(metadata: dict[bytes, bytes] | None, message: str) -> None:
    with pytest.raises(CorpusError) as caught:
        About.of(
            GRAMMAR_COLUMNS.with_metadata(metadata),
        )
    assert message in str(caught.value)
    assert str(caught.value).count("metadata are wrong") <= 1
    assert len(str(caught.value)) < 300
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("version", [True, "1"])
def test_a_version_is_an_integer(version: Any) -> None:
    with pytest.raises(CorpusError, match="is of format version"):
        About.of(GRAMMAR_COLUMNS.with_metadata(put(version=version)))


@given(RANDOMS)
@settings(max_examples=1000)
def test_damaged_metadata_are_always_noticed(random: random.Random) -> None:
    metadata = dict(RIGHT)
    key = random.choice(sorted(metadata))
    value = bytearray(metadata[key])
    for _ in range(random.choice((1, 1, 2, 9))):
        value[random.randrange(len(value))] ^= 1 << random.randrange(8)
    if bytes(value) == metadata[key]:
        return
    with pytest.raises(CorpusError, match="CRC-32"):
        About.of(GRAMMAR_COLUMNS.with_metadata(metadata | {key: bytes(value)}))


# ---- hostile tables -----------------------------------------------------------------------------

SOUND = table_of(compress_many(["abab", "banana", "abcabc"]), ABOUT)
FIRST = SOUND.to_pylist()[0]
LIST = pa.list_(pa.int32())


def test_the_sound_table_is_as_the_tests_below_think() -> None:
    assert FIRST["letters"] == [97, 98]
    assert (FIRST["rules"], FIRST["sequence"]) == ([{"left": 0, "right": 1}], [2, 2])
    assert len(grammars_from(SOUND, ABOUT)) == 3


def changed(name: str, row: int, value: Any) -> pa.Table:
    values = SOUND.column(name).to_pylist()
    values[row] = value
    return rewritten(SOUND, name, values)


def rule(left: int, right: int) -> dict[str, int]:
    return {"left": left, "right": right}


BAD_ROWS: dict[str, tuple[str, int, Any, str]] = {
    "letter": ("letters", 0, [97, 256], "letter 256 is outside the alphabet 0 … 255"),
    "negative letter": ("letters", 1, [-1, 97, 98], "letter -1 is outside the alphabet 0 … 255"),
    "huge letter": ("letters", 1, [97, 98, 2**31 - 1], "letter 2147483647 is outside the alphabet"),
    "falling": ("letters", 2, [99, 98, 97], "letters do not ascend"),
    "equal": ("letters", 0, [97, 97], "letters do not ascend"),
    "no letters": ("letters", 0, [], "rule 0 uses symbol "),
    "itself": ("rules", 0, [rule(0, 2)], "rule 0 uses symbol 2, but 2 are defined before it"),
    "forward": (
        "rules",
        1,
        [rule(4, 0), rule(0, 1)],
        "rule 0 uses symbol 4, but 3 are defined bef",
    ),
    "negative": ("rules", 0, [rule(-1, 0)], "rule 0 uses symbol -1, but 2 are defined before it"),
    "huge": ("rules", 0, [rule(0, 2**31 - 1)], "rule 0 uses symbol 2147483647, but 2 are defined"),
    "least": ("rules", 0, [rule(-(2**31), 1)], "rule 0 uses symbol -2147483648, but 2 are defined"),
    "no rules": ("rules", 0, [], "sequence position 0 uses symbol 2, but 2 are defined before it"),
    "sequence": (
        "sequence",
        0,
        [2, 3],
        "sequence position 1 uses symbol 3, but 3 are defined befo",
    ),
    "below": ("sequence", 2, [0, 1, -7], "sequence position 2 uses symbol -7, but "),
    "longer": ("sequence", 0, [2, 2, 2], "its length is given as 4, its grammar stands for 6"),
    "length": ("length", 1, 7, "its length is given as 7, its grammar stands for 6"),
    "length below": ("length", 1, -1, "its length is given as -1, its grammar stands for 6"),
    "length beyond": ("length", 0, 2**63 - 1, "its length is given as 9223372036854775807, its"),
    "overflow": (
        *("rules", 0, [rule(0, 0), *(rule(k + 1, k + 1) for k in range(1, 63))]),
        "its length is given as 4, its grammar stands for 4",
    ),
}


@pytest.mark.parametrize(("name", "row", "value", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_named(name: str, row: int, value: Any, message: str) -> None:
    table = changed(name, row, value)
    if message.endswith("given as 4, its grammar stands for 4"):
        table = rewritten(table, "sequence", [[64], *SOUND.column("sequence").to_pylist()[1:]])
        message = "the expansion is longer than 2^63 - 2 terminals"
    for each in (table, pa.concat_tables([table.slice(0, 2), table.slice(2)])):
        with pytest.raises(CorpusError) as caught:
            grammars_from(each, ABOUT)
        assert caught.value.reason.startswith(message)
        assert caught.value.document == row
    (problem,) = Corpus.from_arrow(table).problems()
    assert problem.startswith(f"document {row}: {message}")


def test_every_bad_row_is_named() -> None:
    table = rewritten(changed("letters", 0, [97, 256]), "length", [4, 5, 6])
    problems = list(Corpus.from_arrow(table).problems())
    assert [problem[: problem.index(":")] for problem in problems] == ["document 0", "document 1"]


@pytest.mark.parametrize("name", NAMES)
def test_missing_values(name: str) -> None:
    nullable = pa.schema([f.with_nullable(True) for f in SOUND.schema], SOUND.schema.metadata)
    values = SOUND.column(name).to_pylist()
    table = rewritten(SOUND.cast(nullable), name, [*values[:2], None])
    with pytest.raises(CorpusError, match=f"^document 2: {name} is missing"):
        grammars_from(table, ABOUT)
    assert list(Corpus.from_arrow(table).problems()) == [f"document 2: {name} is missing"]


def with_nulls_inside(name: str) -> pa.Table:
    """A list that has a null where the type forbids it: other writers do not check."""
    if name == "rules":
        sides = [pa.array([0, None], pa.int32()), pa.array([1, 0], pa.int32())]
        fields = list(GRAMMAR_COLUMNS.field("rules").type.value_type)
        values = pa.StructArray.from_arrays(sides, fields=fields)
    else:
        values = pa.array([0, None], pa.int32())
    kind = GRAMMAR_COLUMNS.field(name).type
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 1, 2], pa.int32()), values, type=kind)
    return rewritten(SOUND, name, lists)


@pytest.mark.parametrize("name", ["letters", "rules", "sequence"])
def test_missing_symbols(name: str) -> None:
    table = with_nulls_inside(name)
    with pytest.raises(CorpusError, match=f"^document 2: a symbol is missing in its {name}"):
        grammars_from(table, ABOUT)
    assert f"document 2: a symbol is missing in its {name}" in list(
        Corpus.from_arrow(table).problems()
    )


def test_missing_rules() -> None:
    """A null for the whole pair, below which Arrow keeps any integers."""
    (lists,) = SOUND.column("rules").chunks
    rules = lists.flatten()
    mask = pa.array([k == 0 for k in range(len(rules))])
    fields = list(rules.type)
    values = pa.StructArray.from_arrays(rules.flatten(), fields=fields, mask=mask)
    lists = pa.ListArray.from_arrays(lists.offsets, values, type=lists.type)
    with pytest.raises(
        CorpusError, match=r"rules hold a missing rule|a symbol is missing in its rules"
    ):
        grammars_from(rewritten(SOUND, "rules", lists), ABOUT)


WRONG_TYPES: dict[str, tuple[str, pa.DataType]] = {
    "letters of 64 bits": ("letters", pa.list_(pa.int64())),
    "letters that are large": ("letters", pa.large_list(pa.int32())),
    "letters that are not lists": ("letters", pa.int32()),
    "unsigned": ("sequence", pa.list_(pa.uint32())),
    "floats": ("sequence", pa.list_(pa.float32())),
    "fixed": ("sequence", pa.list_(pa.int32(), 2)),
    "text": ("sequence", pa.string()),
    "null": ("sequence", pa.null()),
    "pairs": ("rules", pa.list_(pa.list_(pa.int32()))),
    "swapped": ("rules", pa.list_(pa.struct({"right": pa.int32(), "left": pa.int32()}))),
    "three": ("rules", pa.list_(pa.struct(dict.fromkeys(("left", "right", "x"), pa.int32())))),
    "one": ("rules", pa.list_(pa.struct({"left": pa.int32()}))),
    "length of 32 bits": ("length", pa.int32()),
    "length of floats": ("length", pa.float64()),
    "length unsigned": ("length", pa.uint64()),
}


@pytest.mark.parametrize(("name", "kind"), WRONG_TYPES.values(), ids=WRONG_TYPES)
def test_wrong_types(name: str, kind: pa.DataType) -> None:
    at = NAMES.index(name)
    array = pa.array([None] * 3, kind)
    table = SOUND.set_column(at, pa.field(name, kind), array)
    with pytest.raises(CorpusError, match=f"its column '{name}' is .+, not "):
        grammars_from(table, ABOUT)
    (problem,) = Corpus.from_arrow(table).problems()
    assert f"its column '{name}' is" in problem


@pytest.mark.parametrize("name", NAMES)
def test_missing_and_doubled_columns(name: str) -> None:
    with pytest.raises(CorpusError, match=f"has no column '{name}'"):
        grammars_from(SOUND.drop_columns([name]), ABOUT)
    doubled = SOUND.append_column(SOUND.schema.field(name), SOUND.column(name))
    with pytest.raises(CorpusError, match=name):
        grammars_from(doubled, ABOUT)


@given(st.sampled_from(["letters", "rules", "sequence", "length"]), RANDOMS)
def test_other_integers_are_refused_or_make_the_document_they_say(
    name: str, random: random.Random
) -> None:
    value: Any = [random.choice((-1, 0, 1, 2, 3, 97, 98, 255, 256, 2**31 - 1)) for _ in range(3)]
    if name == "rules":
        value = [rule(a, random.choice((0, 1, 2))) for a in value]
    if name == "length":
        value = random.choice((0, 4, 6, 2**40))
    table = changed(name, random.randrange(3), value)
    try:
        grammars = grammars_from(table, ABOUT)
    except CorpusError:
        return
    assert grammars.expanded_lengths.tolist() == table.column("length").to_pylist()
    for grammar in grammars:  # checked again, by other code
        Grammar(256, grammar.rules, grammar.sequence)


# ---- bombs --------------------------------------------------------------------------------------


def bomb(rules: int = 62, copies: int = 1) -> pa.Table:
    """Documents of 2^rules letters each, in a few hundred bytes."""
    doubled = [[97, 97], *([256 + k, 256 + k] for k in range(rules - 1))]
    return table_of(packed(256, *[(doubled, [255 + rules])] * copies), ABOUT)


def test_a_bomb_is_opened_and_verified_at_once() -> None:
    started = time.perf_counter()
    corpus = Corpus.from_arrow(bomb(copies=1000))
    assert list(corpus.problems()) == []
    assert corpus.lengths.tolist() == [1 << 62] * 1000
    assert corpus[3].substring(1 << 61, (1 << 61) + 3).tolist() == [97, 97, 97]
    assert time.perf_counter() - started < 2


def test_a_bomb_is_not_expanded() -> None:
    started = time.perf_counter()
    with pytest.raises(CorpusError, match=r"document 0: the document has 4611686018427387904 term"):
        list(Corpus.from_arrow(bomb()).documents())
    small = table_of(packed(256, ([], [97])), ABOUT)
    with pytest.raises(CorpusError, match=r"^document 1: the document has 2147483648 terminals"):
        list(Corpus.from_arrow(pa.concat_tables([small, bomb(31)])).documents())
    assert time.perf_counter() - started < 2


def test_a_bomb_beyond_any_count_is_refused() -> None:
    rules = [rule(0, 0), *(rule(k, k) for k in range(1, 63))]
    assert len(rules) == len(doubling(63))
    columns = {"letters": [[97]], "rules": [rules], "sequence": [[63]], "length": [2**63 - 1]}
    table = pa.table(columns, ABOUT.schema(GRAMMAR_COLUMNS))
    with pytest.raises(CorpusError, match=r"document 0: the expansion is longer than 2\^63 - 2"):
        grammars_from(table, ABOUT)
    assert list(Corpus.from_arrow(table).problems())
