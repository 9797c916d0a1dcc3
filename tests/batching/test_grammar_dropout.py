"""Grammar dropout: other sequences of the same texts, the same in every batch and run."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import RANDOMS, chain, codec_options, document, doubling, valid_grammar

from laconic import Grammar, Grammars, compress_many, samples
from laconic.batching import GrammarDataset
from laconic.batching.grammar_dropout import expand_at_random

KJV = compress_many(samples.load("kjv").train.documents[:60])
ROWS = np.arange(len(KJV))


def texts(grammars: Grammars) -> list[list[int]]:
    return [grammar.expand().tolist() for grammar in grammars]


@settings(max_examples=60)
@given(RANDOMS, st.floats(0, 0.5), st.integers(0, 2**63 - 1))
def test_texts_and_rules_stay(random: Random, share: float, seed: int) -> None:
    words = [np.array(document(random, 80), np.int32) for _ in range(random.choice((0, 1, 4)))]
    size = max((int(word.max(initial=0)) for word in words), default=0) + 1
    grammars = compress_many(words, alphabet_size=size, **codec_options(random))
    rows = np.arange(len(words))
    made = expand_at_random(grammars, share, [seed, 3], rows)
    assert texts(made) == texts(grammars)
    assert np.array_equal(made.rules, grammars.rules)
    assert (np.diff(made.sequence_offsets) >= np.diff(grammars.sequence_offsets)).all()
    again = expand_at_random(grammars, share, [seed, 3], rows)
    assert np.array_equal(made.sequence, again.sequence)
    Grammars(  # which checks all of it
        made.alphabet_size, made.rules, made.rule_offsets, made.sequence, made.sequence_offsets
    )


@settings(max_examples=40)
@given(RANDOMS)
def test_any_grammar(random: Random) -> None:
    grammars = Grammars.concatenate([Grammar(*valid_grammar(random, 300))])
    made = expand_at_random(grammars, 0.5, [1], np.zeros(1, np.int64))
    assert texts(made) == texts(grammars)


def test_shares() -> None:
    assert np.array_equal(expand_at_random(KJV, 0.0, [1], ROWS).sequence, KJV.sequence)
    size = KJV.alphabet_size
    for share in (0.1, 0.5):
        found = expand_at_random(KJV, share, [1], ROWS)
        # A nonterminal that stays in its place was not chosen, and all others were.
        before = int((KJV.sequence >= size).sum())
        kept = kept_symbols(KJV, found)
        assert abs(kept / before - (1 - share)) < 4 * (share * (1 - share) / before) ** 0.5
    lengths = [
        len(expand_at_random(KJV, share, [1], ROWS).sequence) for share in (0, 0.1, 0.3, 0.5)
    ]
    assert lengths == sorted(set(lengths))
    assert lengths[-1] < 4 * lengths[0]


def kept_symbols(before: Grammars, after: Grammars) -> int:
    """How many nonterminals of the sequences are still there, found by their place in the text."""
    total = 0
    for old, new in zip(before, after, strict=True):
        lengths = np.r_[np.ones(old.alphabet_size, np.int64), old.expanded_lengths]
        ends = (np.cumsum(lengths[grammar.sequence]).tolist() for grammar in (old, new))
        symbols = (grammar.sequence.tolist() for grammar in (old, new))
        both = [
            set(zip(end, symbol, strict=True)) for end, symbol in zip(ends, symbols, strict=True)
        ]
        total += sum(symbol >= old.alphabet_size for _, symbol in both[0] & both[1])
    return total


def test_what_a_document_becomes_depends_on_its_row_and_the_seed_alone() -> None:
    whole = expand_at_random(KJV, 0.3, [5, 2], ROWS)
    for order in ([7], [3, 7, 1], list(range(59, -1, -1))):
        part = expand_at_random(KJV.take(order), 0.3, [5, 2], np.array(order))
        for place, row in enumerate(order):
            assert np.array_equal(part[place].sequence, whole[row].sequence)
    seeds = [[5, 2], [5, 3], [6, 2], [2, 5]]
    made = {expand_at_random(KJV, 0.3, seed, ROWS).sequence.tobytes() for seed in seeds}
    assert len(made) == 4
    twice = expand_at_random(KJV.take([4, 4]), 0.3, [5], np.array([0, 1]))
    assert twice[0].sequence.tolist() != twice[1].sequence.tolist()


def test_deep_and_huge_grammars() -> None:
    deep = Grammars.concatenate([Grammar(*chain(100_000))])
    huge = Grammars.concatenate([Grammar(1, doubling(60), [56] * 50)])
    for grammars in (deep, huge):
        for seed in range(5):
            made = expand_at_random(grammars, 0.5, [seed], np.zeros(1, np.int64))
            assert made[0].expanded_length == grammars[0].expanded_length
            assert len(made.sequence) < 100_000


@pytest.mark.parametrize("share", [-0.1, 0.51, float("nan")])
def test_too_much_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"share must be from 0 to 0\.5, not"):
        expand_at_random(KJV, share, [1], ROWS)


def test_datasets_drop_only_for_training() -> None:
    dataset = GrammarDataset(KJV, dropout=0.5)
    plain, dropped = dataset.batch([4, 9]), dataset.batch([4, 9], seed=(1, 0))
    assert plain.sequence_lengths.tolist() == dataset.sequence_lengths[[4, 9]].tolist()
    assert (dropped.sequence_lengths > plain.sequence_lengths).all()
    selected = dataset.select([9, 4]).batch([1, 0], seed=(1, 0))
    assert selected.symbols.tolist() == dropped.symbols.tolist(), "rows of the source decide"
    assert selected.rows is not None
    assert selected.rows.tolist() == [1, 0]


def test_rows_of_one_seed_are_not_those_of_another_moved() -> None:
    grammars = compress_many(["abababababababababab" * 4] * 2)
    one = expand_at_random(grammars, 0.5, (0, 0), np.array([7, 8]))
    other = expand_at_random(grammars, 0.5, (1, 0), np.array([6, 7]))
    assert one[0].sequence.tolist() != other[0].sequence.tolist() or (
        one[1].sequence.tolist() != other[1].sequence.tolist()
    )
