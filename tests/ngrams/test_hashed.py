"""Bags count what the text has, as the oracle counts it, in the columns that their rules say."""

from __future__ import annotations

from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from murmur3 import murmur3
from strategies import RANDOMS, chain, codec_options, document, doubling, renamed, valid_grammar

from laconic import Grammar, Grammars, Rulebook, compress, compress_many, oracle, samples
from laconic.forest import plant
from laconic.ngrams import HASHES, Counts, Letters, count_hashed, count_phrases
from laconic.ngrams.hashed import CountedText, HashedCounter, portions
from laconic.ngrams.in_place import NgramPlacer

MASK = (1 << 64) - 1
Terminals = tuple[int, ...]


def slow_column(letters: Terminals, buckets: int) -> int:
    """A polynomial of the letters modulo 2^64 and the end of MurmurHash3, as core/ says."""
    value = 0
    for letter in letters:
        value = (value * 0x9E3779B97F4A7C15 + letter + 1) & MASK
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & MASK
    return (value ^ value >> 33) % buckets


def slow_ngram_column(letters: Terminals, buckets: int) -> int:
    points = [letter + (2048 if letter >= 0xD800 else 0) for letter in letters]
    return abs(murmur3("".join(map(chr, points)).encode())) % buckets


def slow_names(grammar: Grammar, counted: HashedCounter) -> Counter[tuple[int, Terminals]]:
    """Everything that a document counts, with its column."""
    size, text = grammar.alphabet_size, grammar.expand().tolist()
    named: Counter[tuple[int, Terminals]] = Counter()
    for length in range(1, counted.ngrams + 1):
        for begin in range(len(text) - length + 1):
            letters = tuple(text[begin : begin + length])
            named[slow_ngram_column(letters, counted.buckets), letters] += 1
    if counted.phrases:
        rules = [(left, right) for left, right in grammar.rules.tolist()]
        low, high = counted.ngrams + 1, max(64, counted.ngrams + 1)
        sequence = grammar.sequence.tolist()
        found = oracle.phrases(size, rules, sequence, counted.phrases, low, high)
        for letters, count in found.items():
            named[counted.buckets + slow_column(letters, counted.buckets), letters] += count
    return named


def rows(counts: Counts) -> list[dict[int, int]]:
    made = []
    for begin, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        columns = counts.indices[begin:end].tolist()
        assert columns == sorted(set(columns))
        made.append(dict(zip(columns, counts.data[begin:end].tolist(), strict=True)))
    return made


def by_column(named: Counter[tuple[int, Terminals]]) -> dict[int, int]:
    sums: Counter[int] = Counter()
    for (column, _), count in named.items():
        sums[column] += count
    return dict(sums)


def check(grammars: Grammars, counted: HashedCounter) -> None:
    wanted = [slow_names(grammar, counted) for grammar in grammars]
    counts = counted.count(grammars, threads=1)
    assert counts.columns == counted.columns
    assert rows(counts) == [by_column(each) for each in wanted]
    total: Counter[tuple[int, Terminals]] = Counter()
    for each in wanted:
        total.update(each)
    names: dict[int, list[CountedText]] = {}
    for (column, letters), count in total.items():
        names.setdefault(column, []).append(CountedText(letters, count))
    for some in names.values():
        some.sort(key=lambda name: (-name.count, name.terminals))
    assert counted.named(grammars, counts.indices) == names
    some_columns = sorted(names)[::2]
    assert counted.named(grammars, some_columns) == {k: names[k] for k in some_columns}


@settings(max_examples=80)
@given(RANDOMS)
def test_counts_and_names_are_those_of_the_oracle(random: Random) -> None:
    texts = [document(random, 60) for _ in range(random.choice((0, 1, 3)))]
    size = max((max(text, default=0) for text in texts), default=0) + 1
    grammars = compress_many(
        [np.array(text, np.int32) for text in texts], alphabet_size=size, **codec_options(random)
    )
    buckets = random.choice((1, 2, 7, 64, 1 << 20, 1 << 24))
    counted = HashedCounter(random.choice((1, 2, 3, 5, 8)), random.choice((0, 1, 2, 4, 9)), buckets)
    check(grammars, counted)


@settings(max_examples=40)
@given(RANDOMS, st.sampled_from([1, 2, 300, 60_000, 1_200_000]))
def test_grammars_that_no_codec_makes(random: Random, size: int) -> None:
    grammars = Grammars.concatenate(
        [Grammar(*renamed(valid_grammar(random, 150), size)) for _ in range(2)]
    )
    counted = HashedCounter(random.choice((1, 3)), random.choice((0, 2, 5)), 1 << 20)
    if size <= 1_112_064:
        check(grammars, counted)
    else:  # terminals beyond all characters share columns with others, and are counted all the same
        got = [sum(row.values()) for row in rows(counted.count(grammars))]
        assert got == [slow_names_total(grammar, counted) for grammar in grammars]


def slow_names_total(grammar: Grammar, counted: HashedCounter) -> int:
    length = len(grammar.expand())
    ngrams = sum(max(0, length - n + 1) for n in range(1, counted.ngrams + 1))
    if not counted.phrases:
        return ngrams
    rules = [(left, right) for left, right in grammar.rules.tolist()]
    low, sequence = counted.ngrams + 1, grammar.sequence.tolist()
    found = oracle.phrases(grammar.alphabet_size, rules, sequence, counted.phrases, low, 64)
    return ngrams + sum(found.values())


def test_hashes_give_what_they_always_gave() -> None:
    """Models are saved under these names: a hash that gives anything else needs another."""
    assert dict(HASHES) == {
        "ngrams": "murmur3-32.1",
        "phrases": "polynomial-64-modulo.1",
        "in_place": "polynomial-64-scale.1",
        "identity": "polynomial-64.1",
    }
    grammars, ascii_letters = (
        compress_many(["laconic"], "none"),
        Letters(np.arange(256, dtype="u4")),
    )
    forest = plant(grammars)
    assert count_hashed(grammars, ascii_letters, 7, 7, 1 << 30).indices.tolist() == [443654560]
    assert count_phrases(grammars, 7, 1 << 30, shortest=7, longest=7).indices.tolist() == [
        243353968
    ]
    assert NgramPlacer(7, 1 << 30).place(forest).place_buckets[-1] == 239966195
    assert forest.hashes[ord("l")] == 16996655880070524895


def test_a_phrase_has_one_column_however_it_is_split() -> None:
    sequences = [
        ([[0, 1], [3, 2]], [4]),
        ([[1, 2], [0, 3]], [4]),
        ([[0, 1]], [3, 2]),
        ([], [0, 1, 2]),
    ]
    grammars = Grammars.concatenate([Grammar(3, rules, seq) for rules, seq in sequences])
    counts = count_phrases(grammars, 3, 1 << 30, shortest=3, longest=3)
    assert counts.data.tolist() == [1, 1, 1, 1]
    assert len(set(counts.indices.tolist())) == 1
    assert counts.indices[0] == slow_column((0, 1, 2), 1 << 30)
    # Letters count from 1, so that leading ones are not lost.
    zeros = count_phrases(Grammars.concatenate([Grammar(1, [], [0] * 9)]), 9, 1 << 30)
    assert len(zeros.indices) == 9


def test_phrases_have_64_letters_at_most() -> None:
    rules = doubling(8)  # the last stands for 256 letters
    grammar = Grammars.concatenate([Grammar(1, rules, [5, 5, 6, 7, 0, 6])])
    counts = rows(HashedCounter(3, 4, 1 << 20).count(grammar))[0]
    phrases = {c: n for c, n in counts.items() if c >= 1 << 20}
    lengths = Counter([32, 32, 64, 64, 64, 65]) - Counter([65])  # 5, 5, 6, 6, 55; 0 6 is too long
    wanted = Counter(
        (1 << 20) + slow_column((0,) * length, 1 << 20) for length in lengths.elements()
    )
    assert phrases == dict(wanted)
    # N-grams as long as phrases may be: then these are one letter longer.
    only = HashedCounter(64, 2, 1 << 20).count(Grammars.concatenate([Grammar(1, rules, [6, 0, 7])]))
    phrases = {c: n for c, n in rows(only)[0].items() if c >= 1 << 20}
    assert phrases == {(1 << 20) + slow_column((0,) * 65, 1 << 20): 1}


def test_huge_and_deep_documents_are_not_expanded() -> None:
    huge = Grammar(1, doubling(60), [60, 60, 3])
    counted = HashedCounter(2, 4, 1000)
    found = rows(counted.count(Grammars.concatenate([huge])))[0]
    assert sum(found.values()) == 2 * (2**61 + 8) - 1 + 1
    deep = Grammar(*chain(100_000))
    named = counted.named(Grammars.concatenate([deep]), range(2000))
    assert {name.terminals for some in named.values() for name in some} == {
        (0,),
        (1,),
        (0, 1),
        (1, 1),
    }


def test_empty_documents_and_none() -> None:
    counted = HashedCounter(3, 2, 100)
    counts = counted.count(compress_many(["", "ab", ""]))
    assert counts.indptr.tolist() == [0, 0, 3, 3]
    assert counted.count(compress_many([])).indptr.tolist() == [0]
    assert counted.named(compress_many([""]), [1, 2]) == {}


@pytest.mark.parametrize("codec", ["repair", "lz78", "lzd", "none"])
def test_threads_change_nothing(codec: str) -> None:
    texts = samples.load("kjv").train.documents[:300]
    grammars = compress_many(texts, codec)  # type: ignore[arg-type]
    counted = HashedCounter(4, 4, 1 << 16)
    one, two = (counted.count(grammars, threads=threads) for threads in (1, 2))
    for name in ("indptr", "indices", "data"):
        assert np.array_equal(getattr(one, name), getattr(two, name)), name
    # Nor do neighbours in the batch.
    alone = counted.count(grammars[7:8])
    part = slice(one.indptr[7], one.indptr[8])
    assert np.array_equal(alone.indices, one.indices[part])
    assert np.array_equal(alone.data, one.data[part])


def test_ngrams_do_not_depend_on_the_codec() -> None:
    counted = HashedCounter(5, 0, 1 << 20)
    texts = samples.load("kjv").test.documents[:20]
    found = [
        rows(counted.count(compress_many(texts, codec))) for codec in ("repair", "lzd", "none")
    ]
    assert found[0] == found[1] == found[2]


def test_numbers_out_of_range() -> None:
    grammars = Grammars.concatenate([compress("abc")])
    with pytest.raises(ValueError, match="n_features must be from 1"):
        count_phrases(grammars, 1, 0)
    with pytest.raises(ValueError, match="there must be one at least"):
        count_phrases(grammars, 0, 10)
    for low, high in ((0, 5), (6, 5), (1, 1 << 30)):
        with pytest.raises(ValueError, match="1 <= shortest <= longest"):
            count_phrases(grammars, 1, 10, shortest=low, longest=high)


def test_portions_are_all_documents_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    grammars = compress_many(["", "abab", "", "x" * 50, *["abcdefgh"] * 20, ""], "none")
    rows = np.random.default_rng(0).permutation(len(grammars))
    assert [part.tolist() for part in portions(grammars, rows)] == [rows.tolist()]
    monkeypatch.setattr("laconic.ngrams.hashed._PORTION", 30)
    parts = list(portions(grammars, rows))
    assert np.concatenate(parts).tolist() == rows.tolist()
    assert len(parts) > 5
    lengths = np.diff(grammars.sequence_offsets)
    assert all(lengths[part].sum() < 30 + lengths[part].max() for part in parts)
    assert list(portions(grammars, rows[:0])) == []


def test_runs_of_shared_symbols() -> None:
    texts = ["the hen and the hen", "then the hens", "", "a hen a hen a hen"]
    book = Rulebook.learn(texts, 8, boundary="words")
    grammars = compress_many(texts, rulebook=book)
    assert len(grammars.rules), "private rules are looked through"
    counted = HashedCounter(2, 2, 1 << 20, shared=2)
    counts = counted.count(grammars)
    plain = rows(HashedCounter(2, 2, 1 << 20).count(grammars))
    for text, found, before in zip(texts, rows(counts), plain, strict=True):
        symbols = book.parse([text])[0].tolist()
        runs = Counter(
            book.text(symbols[i]) + (book.text(symbols[i + 1]) if n == 2 else "")
            for n in (1, 2)
            for i in range(len(symbols) + 1 - n)
        )
        over = {k: v for k, v in found.items() if k >= counted.first_shared}
        assert {k: v for k, v in found.items() if k not in over} == before
        names = counted.named(compress_many([text], rulebook=book), list(over))
        told = {bytes(each.terminals).decode(): each.count for [each] in names.values()}
        assert told == runs
        assert {k: each.count for k, [each] in names.items()} == over
