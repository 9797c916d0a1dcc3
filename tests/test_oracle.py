"""The oracle, by hand: what everything else is compared with must itself be beyond doubt."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import DOCUMENTS, GRAMMARS, Parts

from laconic import oracle


def letters(text: str) -> list[int]:
    return [ord(c) - ord("a") for c in text]


@pytest.mark.parametrize(
    ("text", "options", "rules", "sequence"),
    [
        ("", {}, [], []),
        ("a", {}, [], [0]),
        ("aaa", {}, [], [0, 0, 0]),  # aa overlaps itself: it occurs once
        ("aaaa", {}, [(0, 0)], [9, 9]),
        ("aaaaa", {}, [(0, 0)], [9, 9, 0]),
        ("aaaaaaaa", {}, [(0, 0), (9, 9)], [10, 10]),
        ("aabaa", {}, [(0, 0)], [9, 1, 9]),
        ("aaabaaa", {}, [(0, 0), (9, 0)], [10, 1, 10]),  # aa is found from the left: A a b A a
        ("abab", {}, [(0, 1)], [9, 9]),
        ("abcabc", {}, [(0, 1), (9, 2)], [10, 10]),  # ab and bc occur twice: ab came first
        ("cbaacbaa", {}, [(2, 1), (0, 0), (9, 10)], [11, 11]),  # aa is older than what cb made
        ("cabdcabdab", {}, [(0, 1), (2, 9), (10, 3)], [11, 11, 9]),  # of two new ones, leftmost
        ("ababcdcdcd", {}, [(2, 3), (0, 1)], [10, 10, 9, 9, 9]),  # cd occurs more often
        ("ababab", {"min_count": 3}, [(0, 1)], [9, 9, 9]),
        ("ababab", {"min_count": 4}, [], [0, 1, 0, 1, 0, 1]),
        ("abababab", {"max_rules": 1}, [(0, 1)], [9, 9, 9, 9]),
        ("abababab", {"max_rules": 0}, [], [0, 1] * 4),
        ("abababab", {"max_expansion": 2}, [(0, 1)], [9, 9, 9, 9]),
        ("abababab", {"max_expansion": 1}, [], [0, 1] * 4),
        ("abcabcabc", {"max_expansion": 2}, [(0, 1)], [9, 2] * 3),
    ],
)
def test_repair(text: str, options: Any, rules: Any, sequence: Any) -> None:
    assert oracle.repair(letters(text), 9, **options) == (rules, sequence)


@pytest.mark.parametrize(
    ("text", "rules", "sequence"),
    [
        ("", [], []),
        ("a", [], [0]),
        ("aa", [], [0, 0]),  # the last phrase may be an old one
        ("aaa", [(0, 0)], [0, 9]),
        ("aaaaaa", [(0, 0), (9, 0)], [0, 9, 10]),
        ("aaaaa", [(0, 0)], [0, 9, 9]),
        ("ab", [], [0, 1]),
        ("abab", [(0, 1)], [0, 1, 9]),
        ("ababa", [(0, 1)], [0, 1, 9, 0]),
        ("abacaba", [(0, 2), (0, 1)], [0, 1, 9, 10, 0]),
    ],
)
def test_lz78(text: str, rules: Any, sequence: Any) -> None:
    assert oracle.lz78(letters(text), 9) == (rules, sequence)


@pytest.mark.parametrize(
    ("text", "known", "seen"),
    [
        ("", ([], []), ([], [])),
        ("a", ([], [0]), ([], [0])),
        ("aa", ([(0, 0)], [9]), ([], [0, 0])),
        ("aaa", ([(0, 0)], [9, 0]), ([(0, 0)], [0, 9])),
        ("aaaaaa", ([(0, 0), (9, 9)], [9, 10]), ([(0, 0), (9, 0)], [0, 9, 10])),
        ("ab", ([(0, 1)], [9]), ([], [0, 1])),
        ("abab", ([(0, 1)], [9, 9]), ([(0, 1)], [0, 1, 9])),
        ("aab", ([(0, 0)], [9, 1]), ([(0, 1)], [0, 9])),  # b pairs before it was ever a phrase
        ("aabb", ([(0, 0), (1, 1)], [9, 10]), ([(0, 1)], [0, 9, 1])),
    ],
)
def test_lzd(text: str, known: Any, seen: Any) -> None:
    assert oracle.lzd(letters(text), 9, letters="known") == known
    assert oracle.lzd(letters(text), 9, letters="seen") == seen


@given(DOCUMENTS)
def test_every_codec_loses_nothing(word: list[int]) -> None:
    size = max(word, default=0) + 1
    for rules, sequence in (
        oracle.none(word),
        oracle.repair(word, size),
        oracle.lz78(word, size),
        oracle.lzd(word, size),
        oracle.lzd(word, size, "seen"),
    ):
        assert oracle.expand(rules, sequence, size) == word


@given(DOCUMENTS, st.integers(2, 4))
def test_repair_stops_when_no_pair_is_left(word: list[int], min_count: int) -> None:
    """Python's str.count does not overlap either."""
    size = max(word, default=0) + 1
    _, sequence = oracle.repair(word, size, min_count)
    text = "".join(chr(0x10000 + symbol) for symbol in sequence)
    pairs = {text[i : i + 2] for i in range(len(text) - 1)}
    assert all(text.count(pair) < min_count for pair in pairs)


def test_expand_and_depths() -> None:
    rules = [(0, 1), (3, 2), (4, 4), (0, 5)]
    assert oracle.expand(rules, [6, 2], 3) == [0, 0, 1, 2, 0, 1, 2, 2]
    assert oracle.expand([], [1, 0], 3) == [1, 0]
    assert oracle.depths(rules, 3) == [1, 2, 3, 4]
    assert oracle.depths([], 3) == []


def test_algorithm_1_as_printed() -> None:
    """It keeps what it reported, and leaves out what becomes free with the last edge."""
    assert oracle.algorithm_1([], 3) == []
    assert oracle.algorithm_1([(0, 1), (1, 2)], 3) == []  # no edges: it returns at once
    diamond = [(0, 1), (3, 2), (3, 0), (4, 5), (0, 0)]
    assert oracle.algorithm_1(diamond, 3) == [[0, 4], [0, 1, 2, 4]]
    assert oracle.levels(diamond, 3) == [[0, 4], [1, 2], [3]]
    assert oracle.levels([], 3) == []


@given(GRAMMARS)
@example((1, [], []))
@example((1, [(0, 0)], [1]))
@example((1, [(0, 0), (1, 1), (0, 0)], [2]))
def test_algorithm_1_and_levels(parts: Parts) -> None:
    size, rules, _ = parts
    printed, levels = oracle.algorithm_1(rules, size), oracle.levels(rules, size)
    depths = oracle.depths(rules, size)
    assert levels == [
        [k for k in range(len(rules)) if depths[k] == depth]
        for depth in range(1, max(depths, default=0) + 1)
    ]
    # Its list i holds levels 0..i; the last level is missing, and there is one list per other.
    assert len(printed) == max(0, len(levels) - 1)
    for i, nodes in enumerate(printed):
        assert nodes == sorted(k for level in levels[: i + 1] for k in level)
