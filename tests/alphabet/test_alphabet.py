"""Alphabets against slow per-character oracles, their errors, and hostile JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laconic.alphabet import Alphabet, AlphabetError, as_alphabet

# Written out again, so that a slip in the module's own list shows.
ZHANG = [
    *"abcdefghijklmnopqrstuvwxyz",
    *"0123456789",
    *"-,;.!?:'\"/\\|_@#$%^&*~`+-=<>()[]{}",
    "\n",
]
UNKNOWN = "\ufffd"
MANY = "".join(map(chr, range(0x4E00, 0x4E00 + 300)))
# Dense in the characters where alphabets go wrong: case, U+0130, the Kelvin sign, final sigma,
# Latin-1, surrogates (lone and in pairs), the unknown itself, other planes.
ODD = "aAzZ kKiIİßΣςéÉ\u212a\ud800\ud83d\ude00😀𐐀𐐨\ufffd\x00\n\r-\u2013'\u20190ACGTNacgtn语"
ANY_TEXT = st.text(st.one_of(st.characters(exclude_categories=[]), st.sampled_from(ODD)))
UTF8_TEXT = st.text(st.one_of(st.characters(codec="utf-8"), st.sampled_from("éİ😀\ufffdAa\x00")))
DNA_TEXT = st.text("ACGT")
LEARNED = st.builds(
    Alphabet.learn,
    st.lists(ANY_TEXT, max_size=5),
    max_size=st.none() | st.integers(1, 12),
    min_count=st.integers(1, 3),
    lowercase=st.booleans(),
)
FIXED = [
    Alphabet.bytes(),
    Alphabet.zhang(),
    *(Alphabet.dna(other, case) for other in ("error", "letter") for case in (False, True)),
    Alphabet.learn(["Hello, wörld 😀"]),
    Alphabet.learn(["Hello, wörld 😀"], lowercase=True),
    Alphabet.learn([MANY]),
]
ANY_ALPHABET = st.sampled_from(FIXED) | LEARNED
# Alphabets that encode every text.
TOTAL = st.sampled_from([a for a in FIXED if a.other is not None]) | LEARNED


def lower(character: str) -> str:
    return character.lower()[0]


def slow_encode(alphabet: Alphabet, text: str) -> list[int]:
    """One character at a time, for alphabets that take whatever occurs."""
    assert alphabet.characters is not None
    assert alphabet.other is not None
    table = list(alphabet.characters)
    if alphabet.ignore_case:
        table, text = [lower(c) for c in table], "".join(lower(c) for c in text)
    return [table.index(c) if c in table else alphabet.other for c in text]


def refusal(call: Any, *arguments: Any) -> AlphabetError:
    with pytest.raises(AlphabetError) as caught:
        call(*arguments)
    return caught.value


# --- what the alphabets are


def test_zhang_is_the_paper_s_table() -> None:
    zhang = Alphabet.zhang()
    assert (zhang.name, zhang.size, zhang.lossless, zhang.other) == ("zhang", 71, False, 70)
    assert len(ZHANG) == 70
    assert zhang.characters == "".join(ZHANG) + " "
    assert zhang.encode("".join(ZHANG)).tolist() == [*range(59), 36, *range(60, 70)]
    assert zhang.encode("AZ \t\r-").tolist() == [0, 25, 70, 70, 70, 36]
    assert zhang.decode([36, 59, 70]) == "-- "
    assert zhang.decode(zhang.encode("Don't  PANIC — é!")) == "don't  panic    !"


def test_the_other_alphabets() -> None:
    plain = Alphabet.bytes()
    assert (plain.name, plain.size, plain.lossless) == ("bytes", 256, True)
    assert plain.characters is None
    dna = Alphabet.dna()
    assert (dna.name, dna.size, dna.lossless, dna.characters) == ("dna", 4, True, "ACGT")
    five = Alphabet.dna(other="letter")
    assert (five.name, five.size, five.lossless, five.characters) == ("dna", 5, False, "ACGTN")
    assert five.encode("ACGTNacgt😀").tolist() == [0, 1, 2, 3, 4, 4, 4, 4, 4, 4]
    assert five.decode(five.encode("ACx")) == "ACN"
    folded = Alphabet.dna(ignore_case=True)
    assert not folded.lossless
    assert folded.encode("ACGTacgt").tolist() == [0, 1, 2, 3] * 2
    both = Alphabet.dna("letter", ignore_case=True)
    assert both.encode("aCgTnN-").tolist() == [0, 1, 2, 3, 4, 4, 4]
    with pytest.raises(ValueError, match='other must be "error" or "letter", not \'drop\''):
        Alphabet.dna(other="drop")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "dtype"),
    [(1, "u1"), (256, "u1"), (257, "u2"), (65536, "u2"), (65537, "i4")],
)
def test_dtype_is_the_smallest(size: int, dtype: str) -> None:
    codes = [c for c in range(0x20000) if not 0xD800 <= c < 0xE000 and c != 0xFFFD]
    alphabet = Alphabet.learn(["".join(map(chr, codes[: size - 1]))])
    assert alphabet.size == size
    assert alphabet.dtype == np.dtype(dtype)
    symbols = alphabet.encode(chr(codes[0]) + "\U000fffff" + chr(codes[max(size - 2, 0)]))
    assert symbols.dtype == alphabet.dtype
    assert symbols.tolist() == [0, size - 1, max(size - 2, 0)]


def test_names() -> None:
    assert Alphabet.named("bytes") == Alphabet.bytes()
    assert Alphabet.named("zhang") == Alphabet.zhang()
    assert Alphabet.named("dna") == Alphabet.dna()
    assert Alphabet.named("dna_n") == Alphabet.dna(other="letter", ignore_case=True)
    assert as_alphabet("dna_n") == Alphabet.named("dna_n")
    learned = Alphabet.learn(["abc"])
    assert as_alphabet(learned) is learned
    for wrong in ("rna", "", "DNA", 3, None):
        with pytest.raises(ValueError, match=r"no alphabet is named .* bytes, zhang, dna, dna_n$"):
            as_alphabet(wrong)  # type: ignore[arg-type]


def test_repr() -> None:
    assert repr(Alphabet.bytes()) == "Alphabet.bytes()"
    assert repr(Alphabet.zhang()) == "Alphabet.zhang()"
    for alphabet in FIXED[2:6]:
        assert eval(repr(alphabet)) == alphabet
    assert repr(Alphabet.learn(["aab"])) == "<Alphabet of 3 characters, 'ab' and the unknown>"
    assert repr(Alphabet.learn(["A"], lowercase=True)) == (
        "<Alphabet of 2 characters, 'a' and the unknown, lowercase>"
    )
    assert len(repr(Alphabet.learn([MANY]))) < 100


def test_immutable_hashable_and_small_to_send() -> None:
    for alphabet in FIXED:
        alphabet.encode("ACGT")
        for field in ("name", "characters", "size", "other", "novel"):
            with pytest.raises((dataclasses.FrozenInstanceError, AttributeError, TypeError)):
                setattr(alphabet, field, 1)
        for twin in (pickle.loads(pickle.dumps(alphabet)), copy.deepcopy(alphabet)):
            assert twin == alphabet
            assert hash(twin) == hash(alphabet)
        assert len(pickle.dumps(alphabet)) < 2000
    assert len(set(FIXED)) == len(FIXED)


# --- encoding


@given(UTF8_TEXT)
def test_bytes_round_trip_text(text: str) -> None:
    alphabet = Alphabet.bytes()
    symbols = alphabet.encode(text)
    assert symbols.tolist() == list(text.encode())
    assert alphabet.decode(symbols) == text
    assert alphabet.decode_bytes(symbols) == text.encode()


@given(st.binary())
def test_bytes_round_trip_bytes(data: bytes) -> None:
    alphabet = Alphabet.bytes()
    assert alphabet.encode(data).tolist() == list(data)
    assert alphabet.decode_bytes(alphabet.encode(data)) == data


@given(DNA_TEXT)
def test_dna_round_trips(text: str) -> None:
    dna = Alphabet.dna()
    assert dna.encode(text).tolist() == ["ACGT".index(c) for c in text]
    assert dna.decode(dna.encode(text)) == text
    assert dna.decode_bytes(dna.encode(text.encode())) == text.encode()


@given(TOTAL, ANY_TEXT)
@example(Alphabet.zhang(), "İstanbul ΟΔΟΣ \ud800\ud83d\ude00")
def test_encode_is_the_slow_oracle(alphabet: Alphabet, text: str) -> None:
    symbols = alphabet.encode(text)
    assert symbols.tolist() == slow_encode(alphabet, text)
    assert symbols.dtype == alphabet.dtype
    assert len(alphabet.decode(symbols)) == len(symbols) == len(text)
    assert alphabet.encode(alphabet.decode(symbols)).tolist() == symbols.tolist()


@given(ANY_ALPHABET, st.lists(UTF8_TEXT))
def test_encode_many_is_encode_of_each(alphabet: Alphabet, texts: list[str]) -> None:
    if alphabet.name == "dna" and alphabet.other is None:
        texts = ["".join("ACGT"[ord(c) % 4] for c in text) for text in texts]
    kinds: list[Any] = [str, str.encode, lambda t: bytearray(t.encode()), np.str_]
    documents = [kinds[number % 4](text) for number, text in enumerate(texts)]
    flat, offsets = alphabet.encode_many(iter(documents))
    assert flat.dtype == alphabet.dtype
    assert offsets.dtype == np.int64
    assert offsets.shape == (len(texts) + 1,)
    assert offsets[0] == 0
    assert offsets[-1] == len(flat)
    for number, document in enumerate(documents):
        # np.str_ drops trailing NULs, so the document itself is what counts.
        part = flat[offsets[number] : offsets[number + 1]]
        assert part.tolist() == alphabet.encode(document).tolist()


@pytest.mark.parametrize("alphabet", FIXED)
def test_nothing_is_encoded_as_nothing(alphabet: Alphabet) -> None:
    for empty in ("", b"", bytearray(), memoryview(b"")):
        assert alphabet.encode(empty).shape == (0,)
        assert alphabet.encode(empty).dtype == alphabet.dtype
    cases: list[Any] = [([], [0]), (["", b""], [0, 0, 0])]
    for documents, expected in cases:
        flat, offsets = alphabet.encode_many(documents)
        assert flat.shape == (0,)
        assert offsets.tolist() == expected
    assert alphabet.decode([]) == ""
    assert alphabet.decode_bytes([]) == b""


@pytest.mark.parametrize("at", [0, 65535, 65536, 65537, 131072, 199_999])
def test_long_documents_cross_the_chunks(at: int) -> None:
    text = "A" * at + "T" + "A" * (199_999 - at)
    assert np.flatnonzero(Alphabet.dna().encode(text)).tolist() == [at]
    text = text.replace("T", "😀")
    assert np.flatnonzero(Alphabet.zhang().encode(text) == 70).tolist() == [at]
    error = refusal(Alphabet.dna().encode_many, ["", text[:5].replace("😀", "A"), "", text])
    assert (error.document, error.position) == (3, at)


@pytest.mark.slow
def test_every_character_gives_one_symbol() -> None:
    everything = "".join(map(chr, range(0x110000)))
    lowered = [lower(c) for c in everything]
    assert [lower(c) for c in lowered] == lowered
    zhang = Alphabet.zhang()
    expected = {c: p for p, c in reversed(list(enumerate(ZHANG)))}
    assert zhang.encode(everything).tolist() == [expected.get(c, 70) for c in lowered]
    learned = Alphabet.learn([everything], lowercase=True)
    assert learned.characters is not None
    kept = {c for c in lowered if not "\ud800" <= c <= "\udfff"} - {UNKNOWN}
    assert set(learned.characters[:-1]) == kept
    assert (learned.encode(everything) == learned.other).sum() == 2048 + 1


def test_arrays_are_read_only_and_bytes_are_not_copied() -> None:
    data = b"ACGT" * 100
    for alphabet in FIXED:
        flat, offsets = alphabet.encode_many([data, data])
        for array in (alphabet.encode(data), flat, offsets):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1
    assert Alphabet.bytes().encode(data).ctypes.data == np.frombuffer(data, np.uint8).ctypes.data
    for alphabet in FIXED:
        changing = bytearray(data)
        symbols = alphabet.encode(changing)
        changing[:] = b"T" * len(data)
        assert symbols.tolist() == alphabet.encode(data).tolist()


def test_memoryviews_are_read_in_their_own_order() -> None:
    view = memoryview(b"A-C-G-T-")[::2]
    assert Alphabet.dna().encode(view).tolist() == [0, 1, 2, 3]
    wide = memoryview(np.array([0x41424344], "<u4"))  # type: ignore[arg-type]
    assert Alphabet.bytes().encode(wide).tolist() == [0x44, 0x43, 0x42, 0x41]
    assert Alphabet.bytes().encode_many([wide, b"x"])[1].tolist() == [0, 4, 5]


# --- learning


@given(st.lists(ANY_TEXT), st.none() | st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_learn_counts(
    texts: list[str], max_size: int | None, min_count: int, lowercase: bool
) -> None:
    text = "".join(texts)
    counts = Counter(map(lower, text) if lowercase else text)
    known = [
        c
        for c, n in counts.items()
        if n >= min_count and c != UNKNOWN and not "\ud800" <= c <= "\udfff"
    ]
    known.sort(key=lambda c: (-counts[c], ord(c)))
    if max_size is not None:
        known = known[: max_size - 1]
    alphabet = Alphabet.learn(iter(texts), max_size, min_count, lowercase)
    assert alphabet.name == "characters"
    assert alphabet.characters == "".join(known) + UNKNOWN
    assert alphabet.size == len(known) + 1
    assert alphabet.other == len(known)
    assert not alphabet.lossless
    if not lowercase and max_size is None and min_count == 1:
        kept = "".join(UNKNOWN if "\ud800" <= c <= "\udfff" else c for c in text)
        assert alphabet.decode(alphabet.encode(text)) == kept


def test_learn_refuses() -> None:
    for arguments in ({"max_size": 0}, {"min_count": 0}):
        with pytest.raises(ValueError, match="must be at least 1"):
            Alphabet.learn(["a"], **arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"learn takes many documents, not one str; .*\[document\]"):
        Alphabet.learn("abc")
    with pytest.raises(TypeError, match="document 1 must be str or bytes, not int"):
        Alphabet.learn(["abc", 7])  # type: ignore[list-item]


# --- errors


def test_dna_names_the_letter_and_the_cure() -> None:
    error = refusal(Alphabet.dna().encode_many, ["ACGT", "", "", "A" * 17 + "NN", "N"])
    assert str(error) == (
        "document 3, position 17: 'N' is not in the alphabet 'dna' (ACGT); "
        "the alphabet 'dna_n' reads it as a fifth letter"
    )
    assert (error.document, error.position) == (3, 17)
    assert error.reason.startswith("'N' is not")
    error = refusal(Alphabet.dna().encode, "ACgN")
    assert str(error) == (
        "position 2: 'g' is not in the alphabet 'dna' (ACGT); "
        "Alphabet.dna(ignore_case=True) reads it as 'G'"
    )
    assert (error.document, error.position) == (None, 2)
    assert refusal(Alphabet.dna(ignore_case=True).encode, "acgtn").position == 4
    for strange in ("é", "\ud800", "😀", "\xff", "語"):
        assert refusal(Alphabet.dna().encode, "A" + strange).position == 1


@given(st.lists(st.text("ACGT")), st.lists(st.text("ACGTN-é😀")))
def test_dna_finds_the_first_stranger(good: list[str], rest: list[str]) -> None:
    texts = [*good, *rest]
    strangers = [
        (number, position)
        for number, text in enumerate(texts)
        for position, character in enumerate(text)
        if character not in "ACGT"
    ]
    if strangers:
        error = refusal(Alphabet.dna().encode_many, texts)
        assert (error.document, error.position) == strangers[0]
    else:
        assert Alphabet.dna().decode(Alphabet.dna().encode_many(texts)[0]) == "".join(texts)


def test_surrogates() -> None:
    error = refusal(Alphabet.bytes().encode_many, ["fine", "né\ud800"])
    assert str(error) == (
        "document 1, position 2: '\\ud800' is a lone surrogate, which UTF-8 cannot hold; "
        'replace it, e.g. with text.encode("utf-8", "replace")'
    )
    assert str(refusal(Alphabet.bytes().encode, "\udfff")).startswith("position 0: '\\udfff'")
    assert Alphabet.zhang().encode("a\ud800\ud83d\ude00").tolist() == [0, 70, 70, 70]


def test_bad_utf8_given_to_characters() -> None:
    error = refusal(Alphabet.zhang().encode_many, [b"ok", "é".encode() + b"\xff"])
    assert str(error) == (
        "document 1, position 2: byte 0xff is not UTF-8 (invalid start byte); pass text, e.g. "
        'data.decode("latin-1"), or use Alphabet.bytes()'
    )
    assert (error.document, error.position) == (1, 2)
    assert str(refusal(Alphabet.dna().encode, b"AC\xc3")).startswith("position 2: byte 0xc3 is not")


@pytest.mark.parametrize("alphabet", FIXED)
@pytest.mark.parametrize("document", [None, 3, 1.5, ["a"], np.zeros(2, np.uint8), object()])
def test_other_types_are_refused(alphabet: Alphabet, document: Any) -> None:
    kind = type(document).__name__
    with pytest.raises(TypeError, match=f"^a document must be str or bytes, not {kind}$"):
        alphabet.encode(document)
    with pytest.raises(TypeError, match=f"^document 2 must be str or bytes, not {kind}$"):
        alphabet.encode_many(["A", b"C", document])


@pytest.mark.parametrize("one", ["ACGT", b"ACGT", bytearray(b"A"), memoryview(b"A")])
def test_one_document_is_not_many(one: Any) -> None:
    for alphabet in FIXED:
        kind = type(one).__name__
        with pytest.raises(TypeError, match=f"^encode_many takes many documents, not one {kind};"):
            alphabet.encode_many(one)


def test_errors_survive_a_trip_between_processes() -> None:
    error = AlphabetError("too odd", document=4, position=2)
    twin = pickle.loads(pickle.dumps(error))
    assert str(twin) == str(error) == "document 4, position 2: too odd"
    assert (twin.reason, twin.document, twin.position) == ("too odd", 4, 2)
    assert str(AlphabetError("too odd", document=4)) == "document 4: too odd"


# --- decoding


@given(ANY_ALPHABET, st.data())
def test_decode_is_the_slow_oracle(alphabet: Alphabet, data: st.DataObject) -> None:
    symbols = data.draw(st.lists(st.integers(0, alphabet.size - 1)))
    kinds: list[Any] = [list, tuple]
    kinds += [lambda s, d=d: np.array(s, d) for d in (np.int64, np.uint16, object)]
    for kind in kinds:
        given_symbols = kind(symbols)
        if alphabet.characters is None:
            assert alphabet.decode_bytes(given_symbols) == bytes(symbols)
        else:
            text = "".join(alphabet.characters[s] for s in symbols)
            assert alphabet.decode(given_symbols) == text
            assert alphabet.decode_bytes(given_symbols) == text.encode()


@pytest.mark.parametrize("alphabet", FIXED)
@pytest.mark.parametrize("way", ["decode", "decode_bytes"])
def test_decode_refuses_what_is_not_a_symbol(alphabet: Alphabet, way: str) -> None:
    decode = getattr(alphabet, way)
    for wrong in (-1, alphabet.size, 2**31, 2**40, 2**63, -(2**63)):
        error = refusal(decode, [0, 1, wrong, wrong])
        assert error.position == 2
        assert str(error) == (
            f"position 2: symbol {wrong} is not one of {alphabet!r}: 0..{alphabet.size - 1}"
        )
    assert refusal(decode, np.array([0, -1], np.int8)).position == 1
    assert refusal(decode, [0, 2**63, -1]).position == 1
    strangers: list[Any] = [0.0, "a", b"a", None, 10**5000, -(2**70), {}]
    for strange in strangers:
        reason = f"a symbol is a 64-bit integer, not this {type(strange).__name__}"
        assert str(refusal(decode, [0, strange])) == f"position 1: {reason}"
    assert refusal(decode, [True, False]).position == 0
    assert refusal(decode, np.zeros(3)).position == 0
    shapes: list[Any] = [0, "abc", b"abc", None, np.zeros((2, 2), int), [[0], [1, 1]], iter([0])]
    for shape in shapes:
        assert "symbols must be one row of integers" in str(refusal(decode, shape))


def test_decode_names_the_byte_that_is_not_utf8() -> None:
    error = refusal(Alphabet.bytes().decode, [0xC3, 0xA9, 0xFF])
    assert str(error) == (
        "position 2: the bytes are not UTF-8 (invalid start byte); "
        "use decode_bytes, or Grammar.to_bytes"
    )
    assert (error.document, error.position) == (None, 2)


# --- JSON


@given(ANY_ALPHABET)
def test_json_round_trips(alphabet: Alphabet) -> None:
    text = alphabet.to_json()
    assert text.isascii()
    assert Alphabet.from_json(text) == alphabet
    assert Alphabet.from_json(text).to_json() == text


def test_json_is_small_and_plain() -> None:
    assert json.loads(Alphabet.bytes().to_json()) == {"name": "bytes"}
    assert json.loads(Alphabet.zhang().to_json()) == {"name": "zhang"}
    assert json.loads(Alphabet.dna("letter").to_json()) == {
        "name": "dna",
        "other": "letter",
        "ignore_case": False,
    }
    assert json.loads(Alphabet.learn(["Abb😀"], lowercase=True).to_json()) == {
        "name": "characters",
        "characters": "ba😀",
        "lowercase": True,
    }


def learned_json(characters: object, lowercase: object = False) -> str:
    return json.dumps({"name": "characters", "characters": characters, "lowercase": lowercase})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "alphabet JSON: Expecting value"),
        ("{", "alphabet JSON: Expecting property name"),
        ("[" * 100_000, "alphabet JSON: .*recursion"),
        ('{"name":' * 100_000, "alphabet JSON: .*recursion"),
        ("1" * 10_000, "alphabet JSON: "),
        ('{"name": ' + "1" * 10_000 + "}", "alphabet JSON: "),
        ("NaN", "must be an object"),
        ("[]", "must be an object"),
        ('"bytes"', "must be an object"),
        ("{}", '"name" must be one of bytes, zhang, dna, characters$'),
        ('{"name": "dna_n"}', '"name" must be one of'),
        ('{"name": ["bytes"]}', '"name" must be one of'),
        ('{"name": "bytes", "name": "bytes"}', "a key occurs twice"),
        ('{"name": "bytes", "x": {"y": 1, "y": 2}}', "a key occurs twice"),
        ('{"name": "bytes", "size": 256}', "'size' is not a key"),
        ('{"name": "bytes", "\\ud800": 256}', "'.ud800' is not a key"),
        ('{"name": "zhang", "lowercase": true}', "'lowercase' is not a key"),
        ('{"name": "dna", "other": "error"}', "'ignore_case' is missing"),
        ('{"name": "dna", "other": 3, "ignore_case": false}', '"other" must be str'),
        (
            '{"name": "dna", "other": "N", "ignore_case": false}',
            'other must be "error" or "letter"',
        ),
        ('{"name": "dna", "other": "error", "ignore_case": 0}', '"ignore_case" must be bool'),
        (learned_json(None), '"characters" must be str'),
        (learned_json("ab", "no"), '"lowercase" must be bool'),
        (learned_json("aba"), "position 2: characters: 'a' occurs twice"),
        (learned_json("a\ud800"), "position 1: characters: '.ud800': .*surrogates"),
        (learned_json("a\ufffd"), "position 1: characters: .*U.FFFD stands for the unknown"),
        (learned_json("a" * 0x110001), "characters: 1114113 are more than Unicode has"),
        (" " * 14_000_000, "must be str of at most"),
        (b"{}", "must be str of at most"),
        (None, "must be str of at most"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_hostile_json_has_one_clear_cause(text: Any, message: str) -> None:
    with pytest.raises(AlphabetError, match=message) as caught:
        Alphabet.from_json(text)
    assert len(str(caught.value)) < 200


KEYS = st.sampled_from(["name", "characters", "lowercase", "other", "ignore_case"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["bytes", "zhang", "dna", "characters", "error", "letter"]),
    ANY_TEXT,
)
JSON = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(KEYS | st.text(), inner), max_leaves=8
)
# One field of a good object spoilt, so that the fuzz reaches past the first check.
GOOD = ANY_ALPHABET.map(lambda alphabet: json.loads(alphabet.to_json()))
SPOILT = st.builds(lambda good, key, value: {**good, key: value}, GOOD, KEYS, JSON)


@given(JSON | SPOILT)
def test_json_fuzz_raises_alphabet_errors_only(value: Any) -> None:
    try:
        alphabet = Alphabet.from_json(json.dumps(value))
    except AlphabetError:
        return
    # Whatever is accepted says the same thing when it is written again.
    assert json.loads(alphabet.to_json()) == json.loads(json.dumps(value))


@given(ANY_TEXT, st.integers(0, 80), st.integers(0, 80))
def test_damaged_json_raises_alphabet_errors_only(noise: str, start: int, stop: int) -> None:
    text = Alphabet.learn(["some learned characters"]).to_json()
    for damaged in (noise, text[:start] + noise + text[stop:]):
        try:
            alphabet = Alphabet.from_json(damaged)
        except AlphabetError:
            continue
        assert Alphabet.from_json(alphabet.to_json()) == alphabet


def test_masked_genomes_keep_their_letters() -> None:
    dna = Alphabet.named("dna_n")
    assert dna.decode(dna.encode("ACGTacgtNnRr-")) == "ACGTACGTNNNNN"
    assert Alphabet.from_json(dna.to_json()) == dna
