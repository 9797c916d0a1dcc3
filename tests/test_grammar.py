"""Grammar and Grammars: what they answer without expanding. What they refuse: test_hostile.py."""

from __future__ import annotations

import copy
import dataclasses
import io
import pickle
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import GRAMMARS, Parts, chain, doubling, renamed, slow_occurrences

from laconic import (
    Alphabet,
    AlphabetError,
    Grammar,
    GrammarError,
    Grammars,
    compress,
    compress_many,
    oracle,
)

SMALL: Parts = (3, [(0, 1), (3, 2), (4, 4), (3, 3)], [0, 3, 5, 4])  # rule 3 is not needed
DEEP = 100_000


# ---- questions, against slow answers ------------------------------------------------------------


@given(GRAMMARS)
@example(SMALL)
def test_answers_are_the_oracle(parts: Parts) -> None:
    size, rules, sequence = parts
    grammar = Grammar(*parts)
    whole = oracle.expand(rules, sequence, size)
    assert grammar.alphabet_size == size
    assert grammar.rules.tolist() == [list(rule) for rule in rules]
    assert grammar.rules.shape == (len(rules), 2)
    assert grammar.sequence.tolist() == sequence
    assert grammar.expand().tolist() == whole
    assert grammar.expanded_length == len(whole)
    each = [len(oracle.expand(rules, [size + k], size)) for k in range(len(rules))]
    assert grammar.expanded_lengths.tolist() == each
    assert grammar.depths.tolist() == oracle.depths(rules, size)
    assert grammar.occurrences.tolist() == slow_occurrences(*parts)
    assert grammar.rules.dtype == grammar.sequence.dtype == grammar.depths.dtype == np.int32
    assert grammar.expanded_lengths.dtype == grammar.occurrences.dtype == np.int64


@given(GRAMMARS)
@example(SMALL)
def test_levels_partition_the_rules(parts: Parts) -> None:
    size, rules, _ = parts
    levels = [level.tolist() for level in Grammar(*parts).levels()]
    assert levels == oracle.levels(rules, size)
    assert sorted(k for level in levels for k in level) == list(range(len(rules)))
    for number, level in enumerate(levels):
        assert {oracle.depths(rules, size)[k] for k in level} == {number + 1}
        assert level == sorted(level)


@given(GRAMMARS, st.data())
@example(SMALL, None)
def test_substring(parts: Parts, data: st.DataObject | None) -> None:
    grammar = Grammar(*parts)
    whole = grammar.expand()
    n = len(whole)
    ends = range(n + 1) if n <= 24 or data is None else data.draw(positions(n))
    for i in ends:
        for j in ends:
            if i <= j:
                part = grammar.substring(i, j)
                assert part.tolist() == whole[i:j].tolist()
                assert part.dtype == whole.dtype
    for i, j in [
        (-1, 0),
        (0, n + 1),
        (n + 1, n + 1),
        (1, 0),
        (0, -1),
        (2**63, 2**64),
        (-(2**70), 0),
    ]:
        with pytest.raises(IndexError, match=rf"\[{i}:{j}\] is not within the {n} terminals"):
            grammar.substring(i, j)


def positions(n: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, n), max_size=12).map(lambda some: [0, *some, n])


@given(GRAMMARS)
@example(SMALL)
def test_prune(parts: Parts) -> None:
    grammar = Grammar(*parts)
    needed = {s - grammar.alphabet_size for s in grammar.sequence.tolist()}
    for k in reversed(range(len(parts[1]))):
        if k in needed:
            needed |= {s - grammar.alphabet_size for s in parts[1][k]}
    assert grammar.reachable().dtype == bool
    assert set(np.flatnonzero(grammar.reachable()).tolist()) == {k for k in needed if k >= 0}
    pruned = grammar.prune()
    assert pruned.expand().tolist() == grammar.expand().tolist()
    assert Grammar(pruned.alphabet_size, pruned.rules, pruned.sequence).reachable().all()
    assert len(pruned.rules) == grammar.reachable().sum()
    assert pruned.prune() == pruned


def test_prune_example() -> None:
    pruned = Grammar(3, [[1, 1], [0, 1], [3, 3], [4, 2]], [6, 4]).prune()
    assert pruned == Grammar(3, [[0, 1], [3, 2]], [4, 3])
    assert Grammar(3, [[0, 1], [3, 2]], [0]).prune() == Grammar(3, [], [0])


def test_as_deep_as_it_is_long() -> None:
    grammar = Grammar(*chain(DEEP))
    assert grammar.expanded_length == DEEP + 1
    assert grammar.expand().tolist() == [0] + [1] * DEEP
    assert grammar.substring(0, 3).tolist() == [0, 1, 1]
    assert grammar.substring(DEEP - 1, DEEP + 1).tolist() == [1, 1]
    assert np.array_equal(grammar.depths, np.arange(1, DEEP + 1))
    assert [level.tolist() for level in grammar.levels()] == [[k] for k in range(DEEP)]
    assert grammar.occurrences.tolist() == [1] * DEEP
    assert grammar.prune() is grammar
    other_way = Grammar(2, grammar.rules[:, ::-1], grammar.sequence)
    assert other_way.expand().tolist() == [1] * DEEP + [0]
    assert other_way.substring(DEEP, DEEP + 1).tolist() == [0]


def test_as_wide_as_it_is_long() -> None:
    rules = np.c_[np.arange(DEEP), np.arange(DEEP)[::-1]]
    grammar = Grammar(DEEP, rules, np.arange(DEEP, 2 * DEEP))
    assert np.array_equal(grammar.expand(), rules.ravel())
    assert np.array_equal(grammar.substring(999, 1002), rules.ravel()[999:1002])
    assert [level.tolist() for level in grammar.levels()] == [list(range(DEEP))]


def test_more_terminals_than_any_memory_holds() -> None:
    grammar = Grammar(1, doubling(62), [62, 61, 0])
    assert grammar.expanded_length == 2**62 + 2**61 + 1
    assert grammar.occurrences.tolist() == [*(3 * 2 ** (60 - k) for k in range(61)), 1]
    assert grammar.substring(2**62 - 1, 2**62 + 2).tolist() == [0, 0, 0]
    with pytest.raises(
        GrammarError, match=r"^the document has \d+ terminals, more than limit=1073"
    ):
        grammar.expand()
    with pytest.raises(GrammarError, match=f"has {2**62} terminals"):
        Grammar(256, [[97, 97], *([255 + k, 255 + k] for k in range(1, 62))], [317]).text()


def test_expand_stops_at_the_limit() -> None:
    grammar = compress("banana" * 10)
    assert len(grammar.expand(limit=60)) == 60
    with pytest.raises(GrammarError, match=r"has 60 terminals, more than limit=59; .*substring"):
        grammar.expand(limit=59)
    for method in (grammar.text, grammar.to_bytes):
        assert len(method(limit=60)) == 60
        with pytest.raises(GrammarError, match="more than limit=59"):
            method(limit=59)


def test_rules_that_are_not_needed_may_be_longer_than_any_document() -> None:
    grammar = Grammar(1, doubling(70), [0])
    assert grammar.expanded_lengths[61:].tolist() == [2**62, *[2**63 - 1] * 8]
    assert grammar.expand().tolist() == [0]
    assert grammar.prune() == Grammar(1, [], [0])


# ---- text, show ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alphabet", "text", "back"),
    [
        ("bytes", "né né né\x00", None),
        ("zhang", "Hello, hello!", "hello, hello!"),
        ("dna", "ACGTACGT", None),
        ("dna_n", "ACGTXACGT", "ACGTNACGT"),
        (Alphabet.learn(["语言abc"]), "语言语言z", "语言语言\ufffd"),
    ],
)
def test_text(alphabet: str | Alphabet, text: str, back: str | None) -> None:
    for codec in ("repair", "lz78", "lzd", "none"):
        grammar = compress(text, codec, alphabet=alphabet)
        assert grammar.text(alphabet) == (text if back is None else back)
        assert grammar.to_bytes(alphabet) == grammar.text(alphabet).encode()


def test_text_needs_the_alphabet_it_was_made_with() -> None:
    with pytest.raises(GrammarError, match=r"over 4 terminals, Alphabet.bytes\(\) has 256; pass"):
        compress("ACGT", alphabet="dna").text()
    with pytest.raises(
        AlphabetError, match=r"^position 1: the bytes are not UTF-8 \(.*decode_bytes"
    ):
        compress(b"a\xff").text()
    assert compress(b"a\xff").to_bytes() == b"a\xff"


SHOWN = [
    (
        compress("a b\na b\na b\n\xff\xff\xff\xff", max_expansion=4),
        {"rows": 4},
        "<Grammar: 20 terminals as a sequence of 5 symbols and 5 rules>\n"
        "symbol  used  length  rule       expansion\n"
        "   256     4       2  \\xc3 \\xbf  'ÿ'\n"
        "   257     3       2  a ' '      'a '\n"
        "   258     3       2  b '\\n'     'b\\n'\n"
        "   259     3       4  257 258    'a b\\n'\n"
        "and 1 more rule\n",
    ),
    (
        Grammar(300, [[7, 299], [300, 300], [0, 0]], [301] * 2),
        {},
        "<Grammar: 8 terminals as a sequence of 2 symbols and 3 rules>\n"
        "symbol  used  length  rule     expansion\n"
        "   300     4       2  7 299    7 299\n"
        "   301     2       4  300 300  7 299 7 299\n"
        "   302     0       2  0 0      0 0\n",
    ),
    (
        Grammar(4, [[3, 3], *([k, k] for k in range(4, 9))], [9]),
        {"alphabet": "dna", "rows": 99},
        "<Grammar: 64 terminals as a sequence of 1 symbol and 6 rules>\n"
        "symbol  used  length  rule  expansion\n"
        "     4    32       2  T T   'TT'\n"
        "     5    16       4  4 4   'TTTT'\n"
        "     6     8       8  5 5   'TTTTTTTT'\n"
        "     7     4      16  6 6   'TTTTTTTTTTTTTTTT'\n"
        "     8     2      32  7 7   'TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT'\n"
        "     9     1      64  8 8   'TTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTTT'…\n",
    ),
    (compress(""), {}, "<Grammar: 0 terminals as a sequence of 0 symbols and 0 rules>\n"),
]


@pytest.mark.parametrize(("grammar", "options", "expected"), SHOWN)
def test_show(grammar: Grammar, options: Any, expected: str, capsys: Any) -> None:
    out = io.StringIO()
    grammar.show(**options, file=out)
    assert out.getvalue() == expected
    assert grammar.show(**options) is None
    assert capsys.readouterr().out == expected


def test_show_needs_the_alphabet_before_it_prints(capsys: Any) -> None:
    with pytest.raises(GrammarError, match="over 256 terminals"):
        compress("abab").show("dna")
    assert capsys.readouterr().out == ""


# ---- values: immutable, equal, hashable ---------------------------------------------------------


@pytest.fixture(params=["checked", "compressed", "sliced", "pruned"])
def grammar(request: pytest.FixtureRequest) -> Grammar:
    """The same grammar, by each of the ways that lead to one."""
    checked = Grammar(256, [[97, 98], [256, 256]], [256, 257])
    match request.param:
        case "compressed":
            return compress("ababab", "lzd")
        case "sliced":
            return compress_many(["x", "ababab", "y"], "lzd")[1:][0]
        case "pruned":
            return Grammar(256, [[0, 0], [97, 98], [257, 257]], [257, 258]).prune()
    return checked


def test_a_grammar_is_a_value(grammar: Grammar) -> None:
    same = Grammar(256, [[97, 98], [256, 256]], [256, 257])
    assert grammar == same
    assert hash(grammar) == hash(same)
    for copied in (pickle.loads(pickle.dumps(grammar)), copy.copy(grammar), copy.deepcopy(grammar)):
        assert copied == grammar
        assert copied.rules.dtype == np.int32
        assert not copied.rules.flags.writeable
    others = [
        Grammar(300, [[97, 98], [256, 256]], [256, 257]),
        Grammar(256, [[97, 98], [256, 97]], [256, 257]),
        Grammar(256, [[97, 98], [256, 256]], [256, 257, 0]),
        compress("ababab", "none"),
    ]
    assert all(grammar != other for other in others)
    assert grammar != "ababab"
    assert len({grammar, same, *others}) == 5
    assert repr(grammar) == "<Grammar: 6 terminals as a sequence of 2 symbols and 2 rules>"


def test_a_grammar_cannot_change(grammar: Grammar) -> None:
    for field in dataclasses.fields(grammar):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(grammar, field.name, getattr(grammar, field.name))
    arrays = (grammar.rules, grammar.sequence, grammar.depths, grammar.expanded_lengths)
    for array in (*arrays, grammar.occurrences):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    assert grammar.text() == "ababab"


def test_what_is_passed_in_is_copied_and_left_alone() -> None:
    rules, sequence = np.array([[0, 1]], np.int32), np.array([2, 2], np.int32)
    rule_offsets, offsets = np.array([0, 1]), np.array([0, 2])
    one, many = Grammar(2, rules, sequence), Grammars(2, rules, rule_offsets, sequence, offsets)
    for array in (rules, sequence, rule_offsets, offsets):
        assert array.flags.writeable
        array[:] = 1
    assert one.expand().tolist() == many[0].expand().tolist() == [0, 1, 0, 1]


def test_any_integers_will_do() -> None:
    rules, sequence = np.array([[0, 1], [2, 2]]), np.array([3, 2, 3])
    expected = Grammar(2, [(0, 1), (2, 2)], (3, 2, 3))
    for dtype in (np.uint8, np.int32, np.int64, np.uint64, ">i4"):
        assert Grammar(2, rules.astype(dtype), sequence.astype(dtype)) == expected
    for strided in (np.asfortranarray, lambda array: np.repeat(array, 2, axis=-1)[..., ::2]):
        assert Grammar(np.int64(2), strided(rules), strided(sequence)) == expected
    assert Grammar(2, [], np.zeros(0, np.uint8)).expand().tolist() == []


# ---- many ---------------------------------------------------------------------------------------


@given(st.lists(GRAMMARS, max_size=6), st.data())
def test_grammars_are_a_sequence(parts: list[Parts], data: st.DataObject) -> None:
    each = [Grammar(*renamed(part, 300)) for part in parts]
    if not each:
        with pytest.raises(GrammarError, match=r"over one alphabet are wanted, .*\[\]"):
            Grammars.concatenate(each)
        return
    many = Grammars.concatenate(iter(each))
    assert len(many) == len(each)
    assert list(many) == each
    assert [many[i] for i in range(-len(each), len(each))] == each * 2
    assert many.expanded_lengths.tolist() == [g.expanded_length for g in each]
    arrays = (many.rules, many.rule_offsets, many.sequence, many.sequence_offsets)
    assert not any(array.flags.writeable for array in arrays)
    for same in (
        Grammars(300, *arrays),
        pickle.loads(pickle.dumps(many)),
        copy.copy(many),
        many[:],
    ):
        assert same == many
        assert hash(same) == hash(many)
    part = data.draw(st.slices(len(each)).filter(lambda s: s.step in (None, 1)), "slice")
    assert list(many[part]) == each[part]
    assert Grammars(300, *dataclasses.astuple(many[part])[1:]) == many[part]  # passes the checks
    assert many[part].expanded_lengths.tolist() == [g.expanded_length for g in each[part]]
    for index in (len(each), -len(each) - 1):
        with pytest.raises(IndexError):
            many[index]


def test_grammars_by_example() -> None:
    many = compress_many(["abab", "", "banana"])
    shown = "<Grammars: 3 documents, 10 terminals as sequences of 6 symbols and 2 rules>"
    assert repr(many) == shown
    assert many.alphabet_size == 256
    assert many[1:] == many[-2:] == compress_many(["", "banana"])
    assert many[:1] != many[1:]
    assert many != list(many)
    cuts = [([0, 1, 1], [0, 1, 2]), ([0, 0, 1], [0, 1, 2]), ([0, 1, 1], [0, 2, 2])]
    assert len({Grammars(2, [[0, 1]], rules, [0, 0], symbols) for rules, symbols in cuts}) == 3
    assert Grammars(2, [], [0], [], [0]) != Grammars(3, [], [0], [], [0])
    assert list(many[2:1]) == list(many[5:]) == []
    with pytest.raises(IndexError, match="without a step"):
        many[::2]
    with pytest.raises(TypeError, match="interpreted as an integer"):
        many["abab"]
    with pytest.raises(GrammarError, match=r"these are over \[4, 256\]"):
        Grammars.concatenate([compress("abab"), compress("ACGT", alphabet="dna")])
    with pytest.raises(dataclasses.FrozenInstanceError):
        many.rules = many.rules


@given(st.lists(GRAMMARS, min_size=1, max_size=6), st.data())
def test_grammars_are_taken_in_any_order(parts: list[Parts], data: st.DataObject) -> None:
    each = [Grammar(*renamed(part, 300)) for part in parts]
    many = Grammars.concatenate(each)
    rows = data.draw(st.lists(st.integers(-len(each), len(each) - 1), max_size=9), "rows")
    taken = many.take(rows)
    assert list(taken) == [each[row] for row in rows]
    assert taken == many.take(np.array(rows, np.int16)) == many.take(tuple(rows))
    assert Grammars(300, *dataclasses.astuple(taken)[1:]) == taken  # passes the checks
    assert taken.expanded_lengths.tolist() == [each[row].expanded_length for row in rows]
    arrays = (taken.rules, taken.rule_offsets, taken.sequence, taken.sequence_offsets)
    assert not any(array.flags.writeable for array in arrays)
    for row in (len(each), -len(each) - 1):
        with pytest.raises(IndexError, match=f"document {row} of {len(each)}"):
            many.take([*rows, row])


def test_take_refuses_what_is_no_row() -> None:
    many = compress_many(["abab", "", "banana"])
    for rows in ([True, False, True], [0.0], 1, [[0, 1]], ["0"]):
        with pytest.raises(TypeError, match="integers in one dimension"):
            many.take(rows)
    assert len(compress_many([]).take([])) == 0
    with pytest.raises(IndexError, match="document 0 of 0"):
        compress_many([]).take([0])


def test_grammars_of_bombs_count_right() -> None:
    bomb = Grammar(1, doubling(62), [62])
    many = Grammars.concatenate([bomb] * 4)
    assert many.expanded_lengths.tolist() == [2**62] * 4
    assert f"{2**64:,} terminals" in repr(many)


@pytest.mark.parametrize(
    ("size", "rules", "symbols", "bits"),
    [
        *((1, 0, 5, 5), (2, 0, 5, 5), (3, 0, 5, 10), (4, 0, 1, 2), (4, 1, 1, 9)),
        *((255, 1, 0, 16), (256, 1, 0, 18), (2**31 - 2, 1, 1, 93)),
    ],
)
def test_packed_bits(size: int, rules: int, symbols: int, bits: int) -> None:
    one = Grammar(size, [[0, 0]] * rules, [0] * symbols)
    assert Grammars.concatenate([one]).packed_bits.tolist() == [bits]
    assert Grammars.concatenate([one, one]).packed_bits.tolist() == [bits] * 2


def test_starts_are_where_symbols_begin() -> None:
    grammar = compress("aababcababcabcd", min_count=3)
    begins = grammar.starts.tolist()
    parts = [grammar.substring(i, j).tobytes() for i, j in pairwise(begins)]
    assert parts == [b"a", b"ab", b"abc", b"ab", b"abc", b"abc", b"d"]
    assert Grammar(2, [], []).starts.tolist() == [0]
