"""Counts of n-grams from grammars are those of the text, as the oracle counts them."""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections import Counter
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from murmur3 import murmur3
from strategies import RANDOMS, chain, codec_options, document, doubling, renamed, valid_grammar

from laconic import Alphabet, Grammar, GrammarError, Grammars, compress, compress_many, oracle
from laconic.ngrams import (
    Choice,
    Counts,
    Letters,
    Vocabulary,
    count_all,
    count_hashed,
    count_known,
    learn,
    letters_of,
)

TEXTS = ("ab", "ab  \n", "acgtACGT", "aB \t\n\x0b\x1c", "é世😀 ab\n\u2003\x85", "ACGTN", " \n")


def some_texts(random: Random) -> list[str]:
    spelling = random.choice(TEXTS)
    lengths = (0, 0, 1, 2, 3, 20, 200)
    made = []
    for _ in range(random.choice((0, 1, 2, 5))):
        word = document(random, 200)[: random.choice(lengths)]
        made.append("".join(spelling[letter % len(spelling)] for letter in word))
    return made


def some_letters(random: Random, alphabet: Alphabet) -> Letters:
    return letters_of(
        alphabet,
        lowercase=random.random() < 0.5,
        collapse=random.random() < 0.7,
        reverse_complement=random.random() < 0.4,
    )


def some_lengths(random: Random) -> tuple[int, int]:
    high = random.choice((1, 2, 3, 5, 8, 8, 12, 30, 64))
    return random.choice((1, random.randint(1, high))), high


def slow_counts(grammars: Grammars, read: Letters, low: int, high: int) -> list[Counter[str]]:
    complements = None
    if read.complements is not None:
        pairs = zip(read.codes.tolist(), read.complements.tolist(), strict=True)
        complements = {chr(code): chr(other) for code, other in pairs}
    spaces = "" if read.spaces is None else "".join(map(chr, read.codes[read.spaces].tolist()))
    return [
        oracle.ngrams(
            "".join(map(chr, read.codes[grammar.expand()].tolist())),
            low,
            high,
            spaces,
            complements,
        )
        for grammar in grammars
    ]


def rows(counts: Counts, names: list[str]) -> list[dict[str, int]]:
    made = []
    for begin, end in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        columns = counts.indices[begin:end].tolist()
        assert columns == sorted(set(columns))
        named = (names[column] for column in columns)
        made.append(dict(zip(named, counts.data[begin:end].tolist(), strict=True)))
    assert counts.columns == len(names)
    return made


def check_all(grammars: Grammars, read: Letters, low: int, high: int, random: Random) -> None:
    wanted = slow_counts(grammars, read, low, high)
    threads = random.choice((1, 2, 3))
    vocabulary, counts = count_all(grammars, read, low, high, threads=threads)
    names = vocabulary.names()
    totals: Counter[str] = Counter()
    frequencies: Counter[str] = Counter()
    for row in wanted:
        totals.update(row)
        frequencies.update(row.keys())
    assert names == sorted(totals)
    assert rows(counts, names) == wanted
    assert vocabulary.total.tolist() == [totals[name] for name in names]
    assert vocabulary.document_frequency.tolist() == [frequencies[name] for name in names]
    some = [name for name in names if random.random() < 0.5] + ["absent", "\ud800", "a" * 99]
    random.shuffle(some)
    known = count_known(grammars, read, low, high, Vocabulary.from_names(some), threads=threads)
    assert rows(known, some) == [{n: row[n] for n in row if n in some} for row in wanted]
    columns, signs = random.choice((1, 2, 7, 64, 1 << 20, (1 << 31) - 1)), random.random() < 0.5
    hashed = count_hashed(grammars, read, low, high, columns, alternate_sign=signs, threads=threads)
    for i, row in enumerate(wanted):
        sums: dict[int, int] = {}
        for name, count in row.items():
            value = murmur3(name.encode())
            sign = -1 if signs and value < 0 else 1
            sums[abs(value) % columns] = sums.get(abs(value) % columns, 0) + sign * count
        part = slice(hashed.indptr[i], hashed.indptr[i + 1])
        got = zip(hashed.indices[part].tolist(), hashed.data[part].tolist(), strict=True)
        assert list(got) == sorted(sums.items())


@given(RANDOMS)
def test_counts_of_texts_are_the_oracles(random: Random) -> None:
    texts = some_texts(random)
    alphabet = random.choice((Alphabet.bytes(), Alphabet.learn(texts)))
    grammars = compress_many(texts, alphabet=alphabet, **codec_options(random))
    check_all(grammars, some_letters(random, alphabet), *some_lengths(random), random)


@given(RANDOMS)
def test_counts_of_any_grammars_are_the_oracles(random: Random) -> None:
    learned = Alphabet.learn(["aAbB \n\t\u2003\xa0é世"])
    alphabet = random.choice((Alphabet.dna("letter"), Alphabet.zhang(), learned))
    parts = [valid_grammar(random, 300) for _ in range(random.randint(1, 4))]
    made = [Grammar(*renamed(part, alphabet.size)) for part in parts]
    grammars = Grammars.concatenate(made)
    check_all(grammars, some_letters(random, alphabet), *some_lengths(random), random)


@pytest.mark.parametrize("alphabet", [Alphabet.bytes(), Alphabet.learn(["ą…\x85 \t\u2003b"])])
def test_bytes_of_a_letter_are_no_white_space(alphabet: Alphabet) -> None:
    """The last byte of ą and the middle ones of … would be some, were they code points."""
    text = "ą  b… \t b\u2003\x85b"
    read = letters_of(alphabet, lowercase=False, collapse=True, reverse_complement=False)
    vocabulary, counts = count_all(compress_many([text], alphabet=alphabet), read, 1, 1)
    read_as = "ą b… b b" if alphabet.characters else "ą b… b\u2003\x85b".encode().decode("latin-1")
    assert rows(counts, vocabulary.names()) == [Counter(read_as)]


@given(RANDOMS, st.integers(1, 8))
def test_white_space_of_every_kind_in_every_place(random: Random, high: int) -> None:
    spelling = "ab" + "".join(chr(c) for c in range(0x3001) if chr(c).isspace()) + " " * 20
    texts = ["".join(random.choices(spelling, k=random.randint(0, 60))) for _ in range(3)]
    alphabet = Alphabet.learn(texts)
    grammars = compress_many(texts, alphabet=alphabet, **codec_options(random))
    read = letters_of(alphabet, lowercase=False, collapse=True, reverse_complement=False)
    check_all(grammars, read, 1, high, random)


@given(RANDOMS, st.integers(1, 30), st.integers(1, 4), st.integers(1, 5), st.booleans())
def test_choices_are_those_of_the_whole(
    random: Random, limit: int, least: int, most: int, binary: bool
) -> None:
    texts = some_texts(random)
    grammars = compress_many(texts)
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    whole, _ = count_all(grammars, read, 1, 3)
    choice = Choice(least, most, limit, binary)
    chosen, counts = count_all(grammars, read, 1, 3, choice)
    known = count_known(grammars, read, 1, 3, chosen)
    for name in ("indptr", "indices", "data"):
        assert getattr(counts, name).tolist() == getattr(known, name).tolist()
    frequency = whole.document_frequency
    fit = np.flatnonzero((frequency >= least) & (frequency <= most))
    weights = frequency if binary else whole.total
    assert len(chosen) == min(limit, len(fit))
    taken = frequency[fit] if binary else whole.total[fit]
    best = sorted(taken.tolist(), reverse=True)[:limit]
    numbers = {name: k for k, name in enumerate(whole.names())}
    assert sorted((int(weights[numbers[n]]) for n in chosen.names()), reverse=True) == best
    assert chosen.names() == sorted(chosen.names())
    blocks = [grammars[i : i + 1] for i in range(len(grammars))]
    learned = learn(iter(blocks), read, 1, 3, choice)
    assert learned.names() == chosen.names()
    assert learned.total.tolist() == chosen.total.tolist()
    again = count_all(blocks, read, 1, 3, choice)[1]
    assert again.data.tobytes() == counts.data.tobytes()


@pytest.mark.parametrize("codec", ["repair", "lz78", "lzd", "none"])
def test_threads_change_no_byte(codec: Any) -> None:
    rng = np.random.default_rng(5)
    words = ["".join(map(chr, rng.integers(97, 105, rng.integers(1, 6)))) for _ in range(300)]
    texts = [" ".join(rng.choice(words, rng.integers(0, 400))) for _ in range(300)]
    grammars = compress_many(texts, codec)
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    results = []
    for threads in (1, 2, 5):
        vocabulary, counts = count_all(
            grammars, read, 1, 5, Choice(max_features=5000), threads=threads
        )
        known = count_known(grammars, read, 1, 5, vocabulary, threads=threads)
        hashed = count_hashed(grammars, read, 1, 5, 1 << 12, threads=threads)
        arrays: list[Any] = [vocabulary.total, vocabulary.document_frequency]
        for matrix in (counts, known, hashed):
            arrays += [matrix.indptr, matrix.indices, matrix.data]
        results.append((vocabulary.names(), [array.tobytes() for array in arrays]))
    assert results[0] == results[1] == results[2]


def test_letters_and_vocabularies_are_pickled() -> None:
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=True)
    grammars = compress_many(["Some  text"])
    vocabulary, counts = count_all(grammars, read, 1, 3)
    copies = pickle.loads(pickle.dumps((read, vocabulary)))
    known = count_known(grammars, copies[0], 1, 3, copies[1])
    assert known.data.tolist() == counts.data.tolist()


def test_ctrl_c_ends_even_one_long_document() -> None:
    rng = np.random.default_rng(3)
    long = compress_many([rng.integers(0, 4, 3_000_000, np.uint8)], "none", alphabet_size=4)
    read = letters_of(Alphabet.dna(), lowercase=False, collapse=False, reverse_complement=True)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        count_all(long, read, 1, 31)
    timer.join()


def test_documents_far_too_long_to_expand() -> None:
    read = letters_of(Alphabet.dna(), lowercase=False, collapse=False, reverse_complement=False)
    rules = [[0, 1], [4, 4]] + [[k, k] for k in range(5, 5 + 40)]
    huge = Grammars.concatenate([Grammar(4, rules, [45, 2])])
    vocabulary, counts = count_all(huge, read, 1, 3)
    assert vocabulary.names() == ["A", "AC", "ACA", "ACG", "C", "CA", "CAC", "CG", "G"]
    pairs = 2**41
    assert counts.data.tolist() == [pairs, pairs, pairs - 1, 1, pairs, pairs - 1, pairs - 1, 1, 1]
    assert count_hashed(huge, read, 1, 3, 1, alternate_sign=False).data.tolist() == [6 * pairs]
    strands = letters_of(Alphabet.dna(), lowercase=False, collapse=False, reverse_complement=True)
    vocabulary, counts = count_all(huge, strands, 2, 2)
    assert dict(zip(vocabulary.names(), counts.data.tolist(), strict=True)) == {
        "AC": pairs,
        "CA": pairs - 1,
        "CG": 1,
    }


def test_deep_grammars() -> None:
    grammars = Grammars.concatenate([Grammar(*chain(200_000))])
    read = Letters(np.array([98, 97], np.uint32))
    vocabulary, counts = count_all(grammars, read, 1, 4)
    assert vocabulary.names() == ["a", "aa", "aaa", "aaaa", "b", "ba", "baa", "baaa"]
    assert counts.data.tolist() == [200_000, 199_999, 199_998, 199_997, 1, 1, 1, 1]


def test_rules_that_nothing_needs_count_nothing() -> None:
    unused = Grammars.concatenate([Grammar(2, [[0, 1], [0, 0], [3, 3]], [2, 2])])
    vocabulary, _ = count_all(unused, Letters(np.array([97, 98], np.uint32)), 1, 2)
    assert vocabulary.names() == ["a", "ab", "b", "ba"]
    endless = Grammar(1, doubling(80), [3])
    read = Letters(np.array([97], np.uint32))
    vocabulary, counts = count_all(Grammars.concatenate([endless]), read, 2, 2)
    assert (vocabulary.names(), counts.data.tolist()) == (["aa"], [7])


def test_more_letters_than_can_be_counted() -> None:
    read = Letters(np.array([97], np.uint32))
    long = Grammar(1, doubling(62), [62])
    both = Grammars.concatenate([long, long])
    assert count_all(both[:1], read, 1, 1)[1].data.tolist() == [2**62]
    assert count_hashed(both, read, 1, 1, 8).data.tolist() in ([2**62] * 2, [-(2**62)] * 2)
    with pytest.raises(GrammarError, match="together"):
        count_all(both, read, 1, 1)
    with pytest.raises(GrammarError, match=r"^document 0: a column's count"):
        count_hashed(both, read, 1, 3, 1, alternate_sign=False)
    strands = Letters(read.codes, None, np.array([97], np.uint32))
    with pytest.raises(GrammarError, match="document 0: the document has too many letters"):
        count_known(both, strands, 1, 1, Vocabulary.from_names(["a"]))


def test_bytes_beyond_ascii_are_neither_white_space_nor_upper_case() -> None:
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    vocabulary, _ = count_all(compress_many(["à\x1c\x1cÀ A"]), read, 1, 1)  # à ends in \xa0
    assert vocabulary.names() == [" ", "a", "\x80", "\xa0", "Ã"]


def test_what_does_not_fit_is_refused() -> None:
    grammars = compress_many(["abc"])
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    for low, high in ((0, 1), (2, 1), (1, 65), (-1, 3)):
        with pytest.raises(ValueError, match="1 <= low <= high <= 64"):
            count_all(grammars, read, low, high)
    other = letters_of(Alphabet.dna(), lowercase=True, collapse=False, reverse_complement=False)
    with pytest.raises(GrammarError, match="over 256 terminals, the letters are for 4"):
        count_hashed(grammars, other, 1, 2, 16)
    for columns in (0, -1, 1 << 31):
        with pytest.raises(ValueError, match="n_features must be from 1"):
            count_hashed(grammars, read, 1, 2, columns)
    for threads in (0, 5000):
        with pytest.raises(ValueError, match="threads must be"):
            count_all(grammars, read, 1, 2, threads=threads)
    with pytest.raises(ValueError, match="'a' is given twice"):
        Vocabulary.from_names(["a", "b", "a"])
    with pytest.raises(TypeError, match="n-grams are str, not int"):
        Vocabulary.from_names([1])  # type: ignore[list-item]


def test_letters_that_are_none_are_refused() -> None:
    points = np.array([97, 98], np.uint32)
    with pytest.raises(ValueError, match="codes must be an array of uint32"):
        Letters(np.array([97, 98]))
    with pytest.raises(ValueError, match="spaces must have one entry for each"):
        Letters(points, np.array([True]))
    with pytest.raises(ValueError, match="not surrogates"):
        Letters(np.array([0xD800], np.uint32))
    with pytest.raises(ValueError, match="codes must be code points"):
        Letters(np.array([0x110000], np.uint32))
    with pytest.raises(ValueError, match="needs one complement"):
        Letters(points, None, np.array([98, 98], np.uint32))
    with pytest.raises(ValueError, match="read-only"):
        Letters(points).codes[0] = 1


@pytest.mark.parametrize("letter", ["İ", "Σ"])
def test_lower_case_that_is_not_one_letter(letter: str) -> None:
    alphabet = Alphabet.learn([f"a{letter}"])
    with pytest.raises(ValueError, match=f"{letter}.*lowercase=False"):
        letters_of(alphabet, lowercase=True, collapse=True, reverse_complement=False)
    read = letters_of(alphabet, lowercase=False, collapse=True, reverse_complement=False)
    assert letter in count_all(compress_many([letter], alphabet=alphabet), read, 1, 1)[0].names()


def test_nothing_at_all() -> None:
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    for texts in ([], ["", ""]):
        vocabulary, counts = count_all(compress_many(texts), read, 1, 5)
        assert (len(vocabulary), vocabulary.names()) == (0, [])
        assert counts.indptr.tolist() == [0] * (len(texts) + 1)
        assert count_hashed(compress_many(texts), read, 1, 5, 8).data.tolist() == []
        assert count_known(compress_many(texts), read, 1, 5, vocabulary).data.tolist() == []
    assert len(learn([], read, 1, 2)) == 0


def test_repeating_a_document_adds_rules_not_time() -> None:
    read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    text = "it was the best of times, it was the worst of times; "
    once = compress(text)
    top = 256 + len(once.rules)
    number = len(once.sequence)
    joined = [[int(once.sequence[0]), int(once.sequence[1])]]
    joined += [[top + i, int(once.sequence[i + 2])] for i in range(number - 2)]
    doubled = [[top + number - 2 + i] * 2 for i in range(20)]
    rules = [*once.rules.tolist(), *joined, *doubled]
    many = Grammars.concatenate([Grammar(256, rules, [256 + len(rules) - 1])])
    assert many.expanded_lengths.tolist() == [len(text) << 20]
    vocabulary, counts = count_all(many, read, 5, 5)
    found = dict(zip(vocabulary.names(), counts.data.tolist(), strict=True))
    wanted = oracle.ngrams(text * 2, 5, 5)
    single = oracle.ngrams(text, 5, 5)
    for name, count in wanted.items():
        per_copy = count - single[name]  # n-grams that begin in one copy and not in the last
        assert found[name] == single[name] + per_copy * (2**20 - 1)
