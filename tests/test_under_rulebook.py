"""Grammars under a rulebook: private rules over shared ones, and all that can be asked of them."""

from __future__ import annotations

import io
import pickle
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import CODECS, RANDOMS, document, oracle_grammar

import laconic
from laconic import Grammar, GrammarError, Grammars, Rulebook, compress, compress_many, oracle
from laconic.errors import InputError
from laconic.forest import plant
from laconic.ngrams import count_hashed, count_phrases, letters_of
from laconic.show import print_tree

LETTERS = 4


def any_book(random: Random) -> Rulebook:
    """Rules that somebody may have made up."""
    rules: list[tuple[int, int]] = []
    for _ in range(random.choice((0, 1, 3, 8, 20))):
        pair = random.randrange(LETTERS + len(rules)), random.randrange(LETTERS + len(rules))
        if pair not in rules:
            rules.append(pair)
    return Rulebook("dna", np.array(rules, int).reshape(-1, 2), within=0)


def dna(random: Random, many: int = 4) -> list[list[int]]:
    return [[s % LETTERS for s in document(random, 80)] for _ in range(random.randint(0, many))]


def slow(book: Rulebook, document: list[int], options: dict[str, Any]) -> tuple[Any, Any]:
    shared = [*map(tuple, book.rules.tolist())]
    parsed = oracle.parse(document, shared, LETTERS)
    return oracle_grammar(parsed, list(range(book.size)), book.size, **options)


@given(RANDOMS, CODECS)
def test_private_rules_are_the_codecs_over_what_parsing_leaves(
    random: Random, options: dict[str, Any]
) -> None:
    book, documents = any_book(random), dna(random)
    many = compress_many(documents, **options, rulebook=book, threads=2, alphabet_size=LETTERS)
    assert many.rulebook is book
    assert many.alphabet_size == LETTERS
    assert many.expanded_lengths.tolist() == [*map(len, documents)]
    for grammar, text in zip(many, documents, strict=True):
        assert (grammar.rules.tolist(), grammar.sequence.tolist()) == slow(book, text, options)
        assert grammar == compress(text, **options, rulebook=book)
        assert grammar.expand().tolist() == text
        checked = Grammar(LETTERS, grammar.rules, grammar.sequence, book)
        assert checked == grammar
        assert hash(checked) == hash(grammar)
        i = random.randint(0, len(text))
        j = random.randint(i, len(text))
        assert grammar.substring(i, j).tolist() == text[i:j]
        rules = [*map(tuple, grammar.all_rules.tolist())]
        assert grammar.depths.tolist() == oracle.depths(rules, LETTERS)
        assert len(grammar.occurrences) == len(book) + len(grammar.rules)


@given(RANDOMS, CODECS)
def test_no_rules_are_no_rulebook(random: Random, options: dict[str, Any]) -> None:
    documents, book = dna(random), Rulebook("dna", [])
    plain = compress_many(documents, **options, alphabet_size=LETTERS)
    under = compress_many(documents, **options, rulebook=book)
    for name in ("rules", "rule_offsets", "sequence", "sequence_offsets"):
        assert getattr(plain, name).tolist() == getattr(under, name).tolist()
    assert (plain == under) is False
    assert plant(plain).children.tolist() == plant(under).children.tolist()


@given(RANDOMS, CODECS)
def test_counts_do_not_know_of_rulebooks(random: Random, options: dict[str, Any]) -> None:
    book, documents = any_book(random), dna(random)
    many = compress_many(documents, **options, rulebook=book)
    plain = compress_many(documents, "none", alphabet_size=LETTERS)
    letters = letters_of(book.alphabet, lowercase=False, collapse=False, reverse_complement=False)
    for low, high in ((1, 3), (5, 5)):
        found, expected = (count_hashed(each, letters, low, high, 997) for each in (many, plain))
        for name in ("indptr", "indices", "data"):
            assert getattr(found, name).tolist() == getattr(expected, name).tolist()
    phrases = count_phrases(many, 3, 1 << 30, 2, 9)
    for row, grammar in enumerate(many):
        rules = [*map(tuple, grammar.all_rules.tolist())]
        counts = oracle.phrases(LETTERS, rules, grammar.sequence.tolist(), 3, 2, 9)
        begin, end = phrases.indptr[row : row + 2]
        assert sorted(phrases.data[begin:end].tolist()) == sorted(counts.values())


@given(RANDOMS, CODECS, st.booleans())
def test_the_forest_has_each_shared_rule_once(
    random: Random, options: dict[str, Any], merge: bool
) -> None:
    book, documents = any_book(random), dna(random)
    many = compress_many(documents, **options, rulebook=book)
    forest = plant(many, merge)
    children = [*map(tuple, forest.children.tolist())]
    shared = forest.shared.tolist()
    assert len(shared) == LETTERS + len(children) == len(forest.lengths)
    ends = forest.sequence_offsets.tolist()
    for k, text in enumerate(documents):
        nodes = forest.sequence[ends[k] : ends[k + 1]].tolist()
        assert oracle.expand(children, nodes, LETTERS) == text
        # Symbols of the rulebook are its nodes.
        for node, symbol in zip(nodes, many[k].sequence.tolist(), strict=True):
            if LETTERS <= symbol < book.size:
                assert shared[node] == symbol - LETTERS

    # By definition: what has the operands of a rule, down to the terminals.
    def symbol_of(node: int) -> int | None:
        if node < LETTERS:
            return node
        return LETTERS + shared[node] if shared[node] >= 0 else None

    rules = [*map(tuple, book.rules.tolist())]
    for i, (left, right) in enumerate(children):
        pair = symbol_of(left), symbol_of(right)
        assert shared[LETTERS + i] == (rules.index(pair) if pair in rules else -1)
    if merge:
        found = [rule for rule in shared if rule >= 0]
        assert len(found) == len(set(found))
        assert len(children) == len(set(children))
    # Nothing that no document needs.
    used = {*forest.sequence.tolist(), *(node for pair in children for node in pair)}
    assert used >= set(range(LETTERS, LETTERS + len(children)))


@given(RANDOMS, CODECS)
def test_what_is_taken_keeps_the_rulebook(random: Random, options: dict[str, Any]) -> None:
    book, documents = any_book(random), [*dna(random), [0, 1, 0, 1]]
    many = compress_many(documents, **options, rulebook=book)
    last = many[-1:]
    for some in (
        many.take([-1]),
        last,
        Grammars.concatenate([many[-1]]),
        pickle.loads(pickle.dumps(last)),
        Grammars(*(getattr(last, name) for name in last.__dataclass_fields__)),
    ):
        assert some == last
        assert some.rulebook == book
        assert some[0].expand().tolist() == [0, 1, 0, 1]
    pruned = many[0].prune()
    assert pruned.expand().tolist() == documents[0]
    assert pruned.reachable()[len(book) :].all()
    assert pickle.loads(pickle.dumps(many[0])) == many[0]


@given(RANDOMS, st.integers(0, 5))
def test_grammar_dropout_expands_shared_symbols(random: Random, seed: int) -> None:
    pytest.importorskip("torch")
    from laconic.batching.grammar_dropout import expand_at_random

    documents = dna(random)
    many = compress_many(documents, rulebook=any_book(random))
    rows = np.arange(len(many))
    longer = expand_at_random(many, 0.5, [seed], rows)
    assert [each.expand().tolist() for each in longer] == documents
    assert longer.rulebook is many.rulebook
    assert len(longer.sequence) >= len(many.sequence)


def test_shown() -> None:
    book = Rulebook.learn(["the hen", "then the hens"], 4, boundary="words")
    grammar = compress("then the hen then", rulebook=book)
    out = io.StringIO()
    grammar.show(file=out)
    print_tree(grammar, book.alphabet, 2, out)
    assert out.getvalue() == SHOWN
    assert repr(compress_many(["the"], rulebook=book)).endswith(
        "1 symbol and 0 rules, under a rulebook of 4 rules>"
    )


SHOWN = """\
<Grammar: 17 terminals as a sequence of 6 symbols and 1 rule, under a rulebook of 4 rules>
symbol  used  length  rule     expansion
   256     4       2  h e      'he'
   257     3       3  t 256    'the'
   260     2       4  257 n    'then'
   258     1       3  ' ' 256  ' he'
   259     1       4  258 n    ' hen'
260 'then'
  257 'the'
    t
    256 'he'
      h
      e
  n
' '
and 4 more symbols
"""


def test_what_does_not_fit_is_refused() -> None:
    book = Rulebook("dna", [[0, 1]])
    text = Rulebook("bytes", [[97, 98]])
    with pytest.raises(TypeError, match=r"must be a Rulebook, not 64; laconic.Rulebook.learn\(doc"):
        laconic.Corpus.from_documents(["acgt"], rulebook=64)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"rulebook is over Alphabet.dna\(\), not Alphabet.bytes"):
        compress("ab", alphabet="bytes", rulebook=book)
    with pytest.raises(InputError, match="over 4 terminals, not 5; leave alphabet_size out"):
        compress([0, 1], alphabet_size=5, rulebook=book)
    with pytest.raises(GrammarError, match="outside the alphabet"):
        compress([0, 4], rulebook=book)
    with pytest.raises(GrammarError, match="the rulebook is over 4 terminals, the grammar over 5"):
        Grammar(5, [], [0], book)
    with pytest.raises(GrammarError, match="the rulebook is over 4 terminals, the grammar over 5"):
        Grammars(5, [], [0, 0], [0], [0, 1], book)
    with pytest.raises(GrammarError, match="rule 0 uses symbol 5, which is not defined before it"):
        Grammar(4, [[0, 5]], [0], book)
    with pytest.raises(GrammarError, match="position 0 uses symbol 5, which is outside 0 … 4"):
        Grammar(4, [], [5], book)
    with pytest.raises(GrammarError, match=r"document 1: .* uses symbol 5, which is outside 0 … 4"):
        Grammars(4, [], [0, 0, 0], [0, 5], [0, 1, 2], book)
    with pytest.raises(GrammarError, match="grammars under one rulebook are wanted"):
        Grammars.concatenate([compress("AC", rulebook=book), compress([0], alphabet_size=4)])
    assert compress("ab", rulebook=text).text() == "ab"
    # A rulebook that stands for more than there can be is found when a document uses it.
    bomb = Rulebook("dna", [[0, 0], *([k, k] for k in range(4, 80))])
    assert compress("AA", rulebook=bomb).expanded_length == 2
    with pytest.raises(GrammarError, match=r"longer than 2\^63 - 2 terminals"):
        Grammar(4, [], [bomb.size - 1], bomb)
    with pytest.raises(GrammarError, match=r"document 0: .* longer than 2\^63 - 2 terminals"):
        Grammars(4, [], [0, 0], [bomb.size - 1], [0, 1], bomb)


def test_threads_do_not_matter() -> None:
    documents = [*laconic.samples.load("kjv").train.documents[:400]]
    book = Rulebook.learn(documents, 500)
    one, many = (compress_many(documents, rulebook=book, threads=k) for k in (1, 3))
    assert one == many
    assert [each.text() for each in many[:20]] == documents[:20]
    assert len(one.sequence) < len(compress_many(documents).sequence)
