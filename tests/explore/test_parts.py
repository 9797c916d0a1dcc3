"""Parts of documents: the same text as the grammar's, in phrases, however deep or long it is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import GRAMMARS, Parts, chain, doubling, renamed

from laconic import Alphabet, Grammar, compress
from laconic.alphabet import speller
from laconic.explore.parts import NESTED, Node, part_of

BYTES = Alphabet.bytes()


def leaves(node: Node) -> list[tuple[int, int]]:
    return [each for part in node.parts for each in leaves(part)] or [(node.begin, node.end)]


@given(GRAMMARS.filter(lambda parts: parts[0] <= 256), st.randoms())
def test_phrases_side_by_side_are_the_text(parts: Parts, random: st.Random) -> None:
    grammar = Grammar(*renamed(parts, 256))
    if grammar.expanded_length > 10_000:
        return
    size, end = grammar.alphabet_size, grammar.expanded_length
    i, j = sorted([random.randint(0, end), random.randint(0, end)])
    part = part_of(grammar, BYTES, i, j)
    assert (part.begin, part.end) == (i, j)
    covered = [place for node in part.nodes for place in leaves(node)]
    assert [begin for begin, _ in covered] == [i, *(end for _, end in covered)][: len(covered)]
    assert (covered[-1][1] if covered else i) == j
    for node in [*part.every(), *part.around]:
        if node.symbol < size:
            assert node.end == node.begin + 1
            continue
        length = int(grammar.expanded_lengths[node.symbol - size])
        whole = i < node.begin and node.end < j
        assert node.end - node.begin == length if whole else node.end - node.begin <= length
    for node in part.around:
        assert node.begin <= i
        assert node.end >= j


def test_what_a_phrase_is_made_of() -> None:
    grammar = compress("aababcababcabcd", min_count=3)
    part = part_of(grammar, BYTES, 0, 100)
    symbols = [node.symbol for node in part.nodes]
    assert symbols == grammar.sequence.tolist()
    third = part.nodes[2]
    assert [part.spell(node.begin, node.end) for node in third.parts] == ["ab", "c"]
    assert [node.symbol for node in third.parts[0].parts] == [97, 98]


def test_a_part_of_a_symbol_lies_within_it() -> None:
    grammar = Grammar(*renamed((1, doubling(40), [40]), 256))  # a million million letters
    part = part_of(grammar, BYTES, 1 << 30, (1 << 30) + 64)
    assert [node.end - node.begin for node in part.around][:2] == [1 << 40, 1 << 39]
    assert [node.end - node.begin for node in part.nodes] == [64]
    assert sum(1 for _ in part.every()) == 127
    assert len(part.spell(part.begin, part.end)) == 64


@pytest.mark.parametrize("place", [0, 150_000, 299_000])
def test_combs_as_deep_as_they_are_long_do_not_hang(place: int) -> None:
    size, rules, sequence = chain(300_000)
    rules = np.where(rules < size, rules, rules + 254)
    grammar = Grammar(256, rules, [sequence[0] + 254])
    part = part_of(grammar, BYTES, place, place + 1000)
    assert len(part.around) <= 4096
    assert max(map(_depth, part.nodes)) <= NESTED
    assert len(part.spell(part.begin, part.end)) == part.end - part.begin


def _depth(node: Node) -> int:
    return 1 + max(map(_depth, node.parts), default=0)


@given(st.text(max_size=200), st.integers(1, 9))
def test_parts_of_text_side_by_side_are_the_text(text: str, step: int) -> None:
    text = text.encode("utf-8", "replace").decode()
    grammar = compress(text * 3)
    size = grammar.expanded_length
    parts = [part_of(grammar, BYTES, k, k + step) for k in range(0, size, step)]
    assert "".join(part.spell(part.begin, part.end) for part in parts) == text * 3


def test_what_is_no_text_is_spelled_all_the_same() -> None:
    data = np.frombuffer(b"\xff\x80\x80\x80\x80a", np.uint8)
    spell = speller(BYTES, data)
    assert "".join(spell(k, k + 1) for k in range(6)).endswith("a")
    assert part_of(compress(b""), BYTES, 0, 10).nodes == []
