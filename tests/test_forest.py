"""Forests: what they merge, how they are ordered, and that documents come out of them unchanged."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import chain, renamed, valid_grammar

from laconic import Grammar, Grammars, compress_many, oracle, samples
from laconic.forest import Forest, plant

SEEDS = st.integers(0, 2**32)


def batch(seed: int, documents: int) -> Grammars:
    """Some grammars over one alphabet, some of them twice, with rules that nothing needs."""
    random = Random(seed)
    size = random.choice([1, 2, 5, 256])
    made: list[Grammar] = []
    while len(made) < documents:
        made.append(Grammar(*renamed(valid_grammar(random, 300), size)))
        if random.random() < 0.3:
            made.append(made[-1])
    return Grammars.concatenate(made[:documents])


def expansion(forest: Forest) -> list[tuple[int, ...]]:
    """The terminals of every node, the slow way."""
    texts = [(letter,) for letter in range(forest.alphabet_size)]
    for left, right in forest.children.tolist():
        texts.append(texts[left] + texts[right])
    return texts


@given(SEEDS, st.integers(1, 6), st.booleans())
def test_documents_are_what_they_were(seed: int, documents: int, merge: bool) -> None:
    grammars = batch(seed, documents)
    forest = plant(grammars, merge)
    texts = expansion(forest)
    assert len(forest) == documents
    for d, grammar in enumerate(grammars):
        begin, end = forest.sequence_offsets[d : d + 2]
        told = [letter for node in forest.sequence[begin:end] for letter in texts[node]]
        assert told == grammar.expand().tolist()
    assert forest.lengths.tolist() == [len(text) for text in texts]
    by_text: dict[tuple[int, ...], int] = {}
    for text, value in zip(texts, forest.hashes.tolist(), strict=True):
        assert by_text.setdefault(text, value) == value
    assert len(set(by_text.values())) == len(by_text)


@given(SEEDS, st.integers(1, 6), st.booleans())
def test_levels_are_those_of_algorithm_1(seed: int, documents: int, merge: bool) -> None:
    forest = plant(batch(seed, documents), merge)
    rules = [tuple(rule) for rule in forest.children.tolist()]
    wanted = oracle.levels(rules, forest.alphabet_size)  # type: ignore[arg-type]
    found = [list(range(level.start, level.stop)) for level in forest.levels]
    assert found == wanted


@given(SEEDS, st.integers(1, 6))
def test_equal_rules_are_one_node_and_all_are_needed(seed: int, documents: int) -> None:
    grammars = batch(seed, documents)
    forest = plant(grammars)
    rules = forest.children.tolist()
    assert len({tuple(rule) for rule in rules}) == len(rules)
    needed = set(forest.sequence.tolist())
    for k in range(len(rules) - 1, -1, -1):
        node = forest.alphabet_size + k
        assert node in needed
        needed.update(rules[k])
    apart = plant(grammars, merge=False)
    assert len(apart.children) == sum(int(g.reachable().sum()) for g in grammars)


@given(SEEDS, st.integers(2, 6))
def test_the_order_of_documents_changes_no_hash(seed: int, documents: int) -> None:
    grammars = batch(seed, documents)
    forward, backward = plant(grammars), plant(Grammars.concatenate(list(grammars)[::-1]))
    assert sorted(forward.hashes.tolist()) == sorted(backward.hashes.tolist())
    assert len(forward.children) == len(backward.children)


def test_nothing_at_all() -> None:
    for grammars in (compress_many([]), compress_many(["", ""]), compress_many(["abc"], "none")):
        forest = plant(grammars)
        assert forest.children.shape == (0, 2)
        assert forest.levels == []
        assert len(forest) == len(grammars)
        assert forest.sequence.tolist() == grammars.sequence.tolist()


def test_deep_chains_and_a_reused_workspace() -> None:
    size, rules, sequence = chain(3000)
    deep = Grammars.concatenate([Grammar(size, rules, sequence)])
    forest = plant(deep)
    assert len(forest.levels) == 3000
    assert plant(compress_many(["abab"])).children.tolist() == [[97, 98]]
    assert plant(deep).children.tolist() == forest.children.tolist()


@pytest.mark.parametrize("codec", ["repair", "lzd", "lz78"])
def test_batches_of_a_sample_share_rules(codec: Any) -> None:
    documents = samples.load("kjv").train.documents[:126]
    grammars = compress_many(documents, codec)
    forest = plant(grammars)
    assert len(forest.children) < 0.6 * len(grammars.rules)
    offsets = forest.sequence_offsets
    lengths = forest.lengths[forest.sequence]
    assert np.add.reduceat(lengths, offsets[:-1]).tolist() == grammars.expanded_lengths.tolist()
    with pytest.raises(ValueError, match="read-only"):
        forest.children[0, 0] = 1
