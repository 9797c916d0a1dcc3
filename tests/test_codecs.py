"""Codecs against the oracle, on large inputs, with any number of threads, and their errors."""

from __future__ import annotations

import functools
import subprocess
import sys
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import (
    ALPHABET_SIZES,
    CODECS,
    DOCUMENTS,
    MOST,
    codec_options,
    document,
    every_pair_once,
    fibonacci,
    large,
    mixed_documents,
    oracle_grammar,
    periodic,
    runs,
    thue_morse,
    uniform,
)

import laconic
from laconic import AlphabetError, Codec, Grammar, GrammarError, compress, compress_many
from laconic.errors import LaconicError

DTYPES = (np.uint8, np.uint16, np.int32, np.int64, np.uint64, list)
ALL = [
    {"codec": "repair"},
    {"codec": "repair", "min_count": 5},
    {"codec": "repair", "max_rules": 7},
    {"codec": "repair", "max_expansion": 6},
    {"codec": "lz78"},
    {"codec": "lzd"},
    {"codec": "lzd", "letters": "seen"},
    {"codec": "none"},
]
each_codec = pytest.mark.parametrize("options", ALL, ids=lambda o: "-".join(map(str, o.values())))


def lists(grammar: Grammar) -> tuple[list[list[int]], list[int]]:
    return grammar.rules.tolist(), grammar.sequence.tolist()


# ---- against the oracle -------------------------------------------------------------------------


@given(DOCUMENTS, CODECS)
@example([], {"codec": "repair"})
@example([0], {"codec": "lzd", "letters": "seen"})
@example([0, 0, 0], {"codec": "repair"})
@example([0, 0, 0, 0], {"codec": "repair"})
@example([0] * 300, {"codec": "repair", "min_count": 3})
@example(list(range(300)), {"codec": "lz78"})
def test_core_is_the_oracle(word: list[int], options: dict[str, Any]) -> None:
    size = max(word, default=0) + 1
    grammar = compress(word, **options)
    assert lists(grammar) == oracle_grammar(word, list(range(size)), size, **options)
    assert grammar.expand().tolist() == word


@given(DOCUMENTS, CODECS, st.data())
def test_core_is_the_oracle_in_any_alphabet(
    word: list[int], options: dict[str, Any], data: st.DataObject
) -> None:
    small = max(word, default=0) + 1
    dtype = data.draw(st.sampled_from(DTYPES[small > 256 :]), "dtype")
    top = 256 if dtype is np.uint8 else 65536 if dtype is np.uint16 else MOST
    sizes = [size for size in (*ALPHABET_SIZES, 300) if small <= size]
    size = data.draw(st.sampled_from(sizes), "alphabet_size")
    highest = min(size, top)
    names = [*range(small // 2), *range(highest - small + small // 2, highest)]
    names = data.draw(st.permutations(names), "names")
    written = [names[letter] for letter in word]
    array = written if dtype is list else np.array(written, dtype)

    grammar = compress(array, alphabet_size=size, **options)

    assert grammar.alphabet_size == size
    assert lists(grammar) == oracle_grammar(word, names, size, **options)
    assert grammar.expand().tolist() == written
    expected = np.uint8 if size <= 256 else np.uint16 if size <= 65536 else np.int32
    assert grammar.expand().dtype == expected


@pytest.mark.slow
@pytest.mark.parametrize("thousand", range(12))
def test_core_is_the_oracle_on_thousands_of_seeds(thousand: int) -> None:
    for seed in range(1000 * thousand, 1000 * (thousand + 1)):
        random = Random(seed)
        word, options = document(random), codec_options(random)
        size = max(word, default=0) + 1
        expected = oracle_grammar(word, list(range(size)), size, **options)
        assert lists(compress(word, **options)) == expected, (seed, options)


@pytest.mark.parametrize("seed", range(60))
def test_repair_in_long_tables_is_the_oracle(seed: int) -> None:
    """Letters that never come again change nothing, but move a document over the thresholds."""
    random = Random(seed)
    word, options = document(random), {"codec": "repair", "min_count": random.randint(2, 4)}
    first = max(word, default=0) + 1
    around = random.choice((list(range(first, first + 70000)), pairs_once(first)))
    around = around[: random.choice((20000, 20001, 65534, 65536, 70000))]
    split = random.choice((0, 1, len(around) // 2, len(around)))
    size = max(around) + 1
    rules, sequence = oracle_grammar(word, list(range(first)), size, **options)

    whole = np.array(around[:split] + word + around[split:], np.int32)
    grammar = compress(whole.astype(np.uint16) if size <= 65536 else whole, **options)

    assert grammar.rules.tolist() == rules
    assert grammar.sequence.tolist() == around[:split] + sequence + around[split:]


@functools.cache
def pairs_once(first: int) -> list[int]:
    return every_pair_once(range(first, first + 270))


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["lz78", "lzd-known", "lzd-seen"])
def test_lz_in_tables_that_have_grown_is_the_oracle(codec: str) -> None:
    name, _, letters = codec.partition("-")
    options = {"codec": name} | ({"letters": letters} if letters else {})
    for seed in range(20):
        word = document(Random(seed))
        first, before = max(word, default=0) + 1, 70000
        front = list(range(first, first + before))
        # New letters are phrases by themselves, or in twos if letters are known from the start.
        twos = [[a, a + 1] for a in front[::2]] if letters == "known" else []
        size = first + before
        rules, sequence = oracle_grammar(word, list(range(first)), size, **options)

        grammar = compress(front + word, **options)

        assert grammar.rules.tolist() == twos + [shifted(rule, size, len(twos)) for rule in rules]
        phrases = list(range(size, size + len(twos))) or front
        assert grammar.sequence.tolist() == phrases + shifted(sequence, size, len(twos))


def shifted(symbols: list[int], size: int, by: int) -> list[int]:
    return [symbol + by if symbol >= size else symbol for symbol in symbols]


@pytest.mark.parametrize("make", [fibonacci, thue_morse, periodic, runs], ids=lambda f: f.__name__)
@pytest.mark.parametrize("length", [20001, 66000, 100000])
def test_long_structured_documents_are_the_oracle(make: Any, length: int) -> None:
    for seed in range(2):
        word = make(Random(seed), 3, length)
        options = {"codec": "repair", "max_rules": 25}
        grammar = compress(np.array(word, np.uint8), alphabet_size=3, **options)
        assert lists(grammar) == oracle_grammar(word, [0, 1, 2], 3, **options)


def test_counts_far_above_the_scanning_threshold_are_the_oracle() -> None:
    """Few letters, so that pairs are found by scanning first and in lists of places later."""
    random = Random(5)
    repeats = [uniform(random, 4, random.randint(1, 30)) for _ in range(12)]
    word = [s for _ in range(250) for s in random.choice(repeats) + uniform(random, 4, 1)]
    filler = list(range(4, 4 + 66000))
    rules, sequence = oracle_grammar(word, [0, 1, 2, 3], 4 + 66000, codec="repair")
    grammar = compress(word + filler)
    assert len(rules) > 100
    assert grammar.rules.tolist() == rules
    assert grammar.sequence.tolist() == sequence + filler


@pytest.mark.parametrize("length", [19_990, 150_000])
@pytest.mark.parametrize("min_count", [2, 3])
def test_what_never_repeats_changes_nothing(length: int, min_count: int) -> None:
    """The narrow and the wide tables, scans and lists: one document, one grammar."""
    letters = np.random.default_rng(length).choice(4, length, p=[0.6, 0.2, 0.1, 0.1])
    alone = compress(letters, alphabet_size=500_000, min_count=min_count)
    assert len(alone.rules) > 300
    for more in (20, 50_000, 400_000):
        filler = np.arange(4, 4 + more)
        longer = compress(np.r_[letters, filler], alphabet_size=500_000, min_count=min_count)
        assert np.array_equal(longer.rules, alone.rules)
        assert np.array_equal(longer.sequence, np.r_[alone.sequence, filler])


# ---- large documents ----------------------------------------------------------------------------

KINDS = ("dna", "run", "periodic", "bytes", "words", "runs", "16 bits")


@each_codec
@pytest.mark.parametrize("kind", KINDS)
def test_a_million_letters(kind: str, options: dict[str, Any]) -> None:
    check_structure(large(kind), options)


@each_codec
@pytest.mark.parametrize("length", [19999, 20000, 20001, *range(65533, 65540), 300000])
def test_lengths_around_the_thresholds(length: int, options: dict[str, Any]) -> None:
    for kind in ("dna", "runs", "16 bits"):
        check_structure(large(kind)[:length], options)


def check_structure(letters: np.ndarray[Any, Any], options: dict[str, Any]) -> None:
    """Nothing lost, operands defined before their rules, no rule twice, and nothing left to do."""
    grammar = compress(letters, **options)
    again = Grammar(grammar.alphabet_size, grammar.rules, grammar.sequence)  # checked this time
    assert np.array_equal(again.expand(), letters)
    size, rules, sequence = again.alphabet_size, again.rules, again.sequence
    keys = rules[:, 0].astype(np.int64) << 32 | rules[:, 1]
    assert len(np.unique(keys)) == len(rules)
    if options["codec"] == "repair":
        most = pair_counts(sequence, again, options.get("max_expansion"))
        assert len(rules) == options.get("max_rules") or most < options.get("min_count", 2)
        if "max_expansion" in options:
            assert again.expanded_lengths.max(initial=0) <= options["max_expansion"]
    elif options["codec"] != "none":
        # Each rule is a phrase, at its own place in the sequence; the last phrase may come again.
        phrases = sequence[:-1][sequence[:-1] >= size]
        assert np.array_equal(phrases, size + np.arange(len(phrases)))
        assert len(rules) - len(phrases) in (0, 1)
    if options["codec"] == "lz78":
        assert (rules[:, 1] < size).all()
        assert (sequence[:-1] < size).sum() <= len(np.unique(letters))


def pair_counts(sequence: np.ndarray[Any, Any], grammar: Grammar, longest: int | None) -> int:
    """The largest number of non-overlapping occurrences of a pair that may be replaced."""
    left, right = sequence[:-1].astype(np.int64), sequence[1:].astype(np.int64)
    lengths = np.ones(grammar.alphabet_size + len(grammar.rules), np.int64)
    lengths[grammar.alphabet_size :] = grammar.expanded_lengths
    allowed = (
        np.full(len(left), True) if longest is None else lengths[left] + lengths[right] <= longest
    )
    single = allowed & (left != right)
    _, counts = np.unique(left[single] << 32 | right[single], return_counts=True)
    bounds = np.flatnonzero(np.r_[True, left != right, True]) if len(left) else np.zeros(1, int)
    letters, pairs = sequence[bounds[:-1]], np.diff(bounds) // 2
    repeated = np.zeros(len(lengths), np.int64)
    np.add.at(repeated, letters, pairs)
    if longest is not None:
        repeated[2 * lengths > longest] = 0
    return int(max(counts.max(initial=0), repeated.max(initial=0)))


# ---- many documents -----------------------------------------------------------------------------


@each_codec
@pytest.mark.parametrize("top", [256, 65536, 2**21 + 1])
def test_many_is_each_alone_whatever_the_threads(options: dict[str, Any], top: int) -> None:
    documents = mixed_documents(seed=top, longest=70_000, top=top)
    alone = [compress(d, alphabet_size=top, **options) for d in documents]
    assert alone == [compress(d, alphabet_size=top, **options) for d in documents]
    for threads in (1, 2, 7, None):
        many = compress_many(documents, alphabet_size=top, threads=threads, **options)
        assert list(many) == alone
        assert many == laconic.Grammars.concatenate(alone)
    turned = compress_many(documents[::-1], alphabet_size=top, threads=1, **options)
    assert list(turned) == alone[::-1]


@given(st.lists(st.text(max_size=30) | st.binary(max_size=30), max_size=8), CODECS)
def test_many_small_ones(documents: list[str | bytes], options: dict[str, Any]) -> None:
    many = compress_many(documents, **options)
    assert list(many) == [compress(document, **options) for document in documents]
    expected = [d if isinstance(d, bytes) else d.encode() for d in documents]
    assert [grammar.to_bytes() for grammar in many] == expected


def test_documents_may_come_from_anywhere() -> None:
    assert compress_many(iter(["ab", "ab"])) == compress_many(("ab", b"ab"))
    assert compress_many(np.array([[0, 1], [1, 0]])) == compress_many([[0, 1], (1, 0)])
    assert len(compress_many([])) == 0
    assert compress_many([], alphabet_size=5) == compress_many([[0]], alphabet_size=5)[:0]
    assert compress(memoryview(b"abab")) == compress(bytearray(b"abab")) == compress("abab")
    assert compress(np.arange(10)[::2]) == compress(np.array([0, 2, 4, 6, 8], ">i8"))
    assert compress([]).alphabet_size == 1
    assert compress("abab", Codec("lz78")) == compress("abab", "lz78")
    assert compress("banana", min_count=np.int64(3)) == compress("banana", min_count=3)


STOP = """
import os, signal, threading, time, numpy, laconic
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background otherwise
letters = numpy.random.default_rng(0).integers(0, 65536, 500_000).astype(numpy.uint16)
threading.Timer(1, os.kill, (os.getpid(), signal.SIGINT)).start()
start = time.monotonic()
try:
    laconic.compress_many([letters] * 400, threads=1)
except KeyboardInterrupt:
    print(time.monotonic() - start)
"""


def test_ctrl_c_stops_the_work() -> None:
    """Left alone it would take more than half a minute."""
    child = [sys.executable, "-c", STOP]
    done = subprocess.run(child, capture_output=True, text=True, timeout=120, check=True)
    assert 0.5 < float(done.stdout) < 12


# ---- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (["ab", "zip"], {}, ValueError, "no codec is named 'zip'; .*repair, lz78, lzd, none"),
        (["ab", None], {}, ValueError, "no codec is named None"),
        (["ab", "lz78"], {"min_count": 3}, ValueError, "min_count is not an option of 'lz78'"),
        (["ab", "none"], {"max_rules": 3}, ValueError, "max_rules is not an option of 'none'"),
        (["ab", "lzd"], {"max_expansion": 3}, ValueError, "max_expansion is not .* 'lzd'"),
        (["ab", "repair"], {"letters": "seen"}, ValueError, "letters is not an option of 'repair'"),
        (["ab", Codec()], {"min_count": 3}, ValueError, "options to Codec, .*: min_count"),
        (["ab"], {"speed": 3}, TypeError, "'speed'"),
        *((["ab"], {"min_count": n}, ValueError, "^min_count .* at least 2, not") for n in (1, -1)),
        *((["ab"], {"min_count": n}, ValueError, "^min_count") for n in (2.0, True, None, "3")),
        (["ab"], {"max_rules": -1}, ValueError, "^max_rules .* at least 0, not -1"),
        (["ab"], {"max_expansion": 0}, ValueError, "^max_expansion .* at least 1, not 0"),
        (["ab", "lzd"], {"letters": "all"}, ValueError, "known.*seen.*'all'"),
        (["ab"], {"alphabet": "ebcdic"}, ValueError, "no alphabet is named 'ebcdic'"),
        ([5], {}, TypeError, "the document must be text, bytes or one row of integers, not int"),
        ([None], {}, TypeError, "the document must be .*, not NoneType"),
        ([{"a": 1}], {}, TypeError, "the document must be .*, not dict"),
        ([[[1, 2], [3]]], {}, TypeError, "the document must be text, bytes or one row of integers"),
        ([[[1, 2]]], {}, TypeError, r"one row of integers, not int64 \[1, 2\]"),
        ([[1.5]], {}, TypeError, "integers, not float64"),
        ([[True]], {}, TypeError, "integers, not bool"),
        ([["a"]], {}, TypeError, "integers, not <U1"),
        ([[2**70]], {}, TypeError, "integers, not object"),
        ([[0, 5]], {"alphabet_size": 5}, GrammarError, "symbol 5 is outside the alphabet 0 … 4"),
        ([np.array([0, 9], np.uint8)], {"alphabet_size": 9}, GrammarError, "symbol 9 is outside"),
        ([np.array([0, -1], np.int32)], {}, GrammarError, "symbol -1 is outside"),
        ([[0, -1]], {}, GrammarError, "^terminals must be from 0 to"),
        ([[0, 2**31]], {}, GrammarError, "^terminals must be from 0 to"),
        ([[0, MOST]], {}, GrammarError, f"terminal {MOST} leaves no room for rules"),
        *(([[0]], {"alphabet_size": n}, ValueError, "^alphabet_size") for n in (0, -1, 2**31)),
        *(
            ([[0]], {"alphabet_size": n}, (TypeError, ValueError), "^alphabet_size")
            for n in (2.5, True)
        ),
        (["a\ud800"], {}, AlphabetError, "^position 1: .*lone surrogate"),
        (["ACGU"], {"alphabet": "dna"}, AlphabetError, "^position 3: 'U'"),
    ],
)
def test_errors_of_one(arguments: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        compress(*arguments, **options)


@pytest.mark.parametrize(
    ("documents", "options", "error", "message"),
    [
        ("one", {}, TypeError, "many documents"),
        (b"one", {}, TypeError, "many documents"),
        (5, {}, TypeError, "not iterable"),
        ([1, 2], {}, TypeError, "^document 0 must be"),
        (["a", 5], {}, TypeError, "^document 1 must be str or bytes, not int"),
        ([b"a", [1]], {}, TypeError, "^document 1 must be str or bytes, not list"),
        ([[1], "a"], {}, TypeError, "^document 1 is text, document 0 is integers"),
        ([[1], [2.5]], {}, TypeError, "^document 1 must be .* integers, not float64"),
        ([[1], [-2]], {}, GrammarError, "^document 1: terminals"),
        ([[1], [7]], {"alphabet_size": 3}, GrammarError, "^document 1: symbol 7 is outside"),
        (["a", "\ud800"], {}, AlphabetError, "^document 1, position 0: .*lone surrogate"),
        (["ACG", "AXG"], {"alphabet": "dna"}, AlphabetError, "^document 1, position 1: 'X'"),
        *(
            (
                ["a"],
                {"threads": n},
                ValueError,
                f"^threads must be an integer from 1 to 4096, not {n}",
            )
            for n in (0, -1)
        ),
        *((["a"], {"threads": n}, (TypeError, ValueError), "^threads") for n in (2.5, "2", 2**40)),
        (["a"], {"codec": "zip"}, ValueError, "no codec"),
    ],
)
def test_errors_of_many(documents: Any, options: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        compress_many(documents, **options)
    if isinstance(caught.value, LaconicError) and "document 1" in message:
        assert caught.value.document == 1
        assert "document" not in caught.value.reason


@pytest.mark.parametrize("codec", ["repair", "lz78", "lzd"])
@pytest.mark.parametrize("room", [0, 1, 2])
def test_an_alphabet_that_leaves_no_room_for_the_rules(codec: str, room: int) -> None:
    """Rules are numbered after the letters, up to 2^31 - 1: an error, or fewer rules."""
    word = [0, 1, 0, 1, 2, 3, 2, 3] * 4
    try:
        grammar = compress(word, codec, alphabet_size=MOST - room)
    except GrammarError as error:
        assert "alphabet" in str(error)  # noqa: PT017
    else:
        assert Grammar(MOST - room, *lists(grammar)).expand().tolist() == word
