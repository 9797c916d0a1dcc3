"""Documents and grammars that are hard to get right, drawn from any random.Random.

Hypothesis passes a Random that it can shrink, tools/fuzz.py a seeded one; the code is the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from laconic import oracle

Rules = list[tuple[int, int]]
Parts = tuple[int, Rules, list[int]]  # alphabet_size, rules, sequence
MOST = 2**31 - 1  # The largest alphabet, and the largest symbol.

# Sizes around which the core changes its tables: bytes, 16 bits, and letters that are sorted.
ALPHABET_SIZES = (1, 2, 3, 255, 256, 257, 65535, 65536, 65537, 70000, 2**21, 2**21 + 1, MOST - 1000)


def uniform(random: Random, letters: int, length: int) -> list[int]:
    return [random.randrange(letters) for _ in range(length)]


def run(random: Random, letters: int, length: int) -> list[int]:
    return [random.randrange(letters)] * length


def distinct(random: Random, letters: int, length: int) -> list[int]:
    return random.sample(range(letters), min(letters, length))


def periodic(random: Random, letters: int, length: int) -> list[int]:
    period = uniform(random, letters, random.randint(1, 7))
    return (period * (length // len(period) + 1))[:length]


def fibonacci(random: Random, letters: int, length: int) -> list[int]:
    before, word = [random.randrange(letters)], [random.randrange(letters)]
    while len(word) < length:
        before, word = word, word + before
    return word[:length]


def thue_morse(random: Random, letters: int, length: int) -> list[int]:
    pair = random.randrange(letters), random.randrange(letters)
    return [pair[i.bit_count() % 2] for i in range(length)]


def de_bruijn(random: Random, letters: int, length: int) -> list[int]:
    """Every pair once: nothing to replace, everything to count."""
    return every_pair_once(range(min(letters, 1 + int(length**0.5))))[:length]


def blocks(random: Random, letters: int, length: int) -> list[int]:
    """Few random blocks in random order: long repeats that begin and end anywhere."""
    made = [uniform(random, letters, random.randint(1, 9)) for _ in range(random.randint(1, 4))]
    word: list[int] = []
    while len(word) < length:
        word += random.choice(made)
    return word[:length]


def runs(random: Random, letters: int, length: int) -> list[int]:
    """Runs of few lengths, which overlap themselves and lose letters at either end."""
    word: list[int] = []
    while len(word) < length:
        word += [random.randrange(letters)] * random.randint(1, 6)
    return word[:length]


PLAIN: tuple[Callable[[Random, int, int], list[int]], ...] = (
    uniform,
    run,
    distinct,
    periodic,
    fibonacci,
    thue_morse,
    de_bruijn,
    blocks,
    runs,
)


def every_pair_once(letters: range) -> list[int]:
    """A de Bruijn sequence of order two."""
    word: list[int] = []
    for i in letters:
        word.append(i)
        for j in letters[i - letters.start + 1 :]:
            word += [i, j]
    return word


def document(random: Random, longest: int = 300) -> list[int]:
    """A hard document over 0..letters-1, most often of few letters."""
    letters = random.choice((1, 2, 2, 3, 3, 4, 5, 5, longest))
    low, high = random.choice(((0, 5), (6, longest // 4), (longest // 4, longest)))
    length = random.randint(low, high)
    parts = random.choice((1, 1, 2, 4))
    word: list[int] = []
    for _ in range(parts):
        word += random.choice(PLAIN)(random, letters, length // parts)
    return word


def mixed_documents(seed: int, longest: int, top: int) -> list[np.ndarray[Any, Any]]:
    """Short, long and empty documents in turn, so that each finds the tables the last one left."""
    random, rng = Random(seed), np.random.default_rng(seed)
    dtype = np.uint8 if top == 256 else np.uint16 if top == 65536 else np.int32
    made = []
    for _ in range(40):
        letters = rng.integers(0, top, random.choice((1, 2, 4, 300)))
        length = random.choice((0, 3, 700, 19_999, 20_001, longest))
        made.append(letters[rng.integers(0, len(letters), length)].astype(dtype))
        made.append(letters[np.array(document(random), int) % len(letters)].astype(dtype))
    return made


@functools.cache
def large(kind: str) -> np.ndarray[Any, Any]:
    """A million letters, by name."""
    rng = np.random.default_rng(7)
    million = 1_000_000
    match kind:
        case "dna":
            return rng.integers(0, 4, million, np.uint8)
        case "run":
            return np.zeros(million, np.uint8)
        case "periodic":
            return np.resize(rng.integers(0, 256, 1237, np.uint8), million)
        case "bytes":
            return rng.integers(0, 256, million, np.uint8)
        case "words":
            words = [bytes(rng.integers(97, 123, rng.integers(1, 9))) for _ in range(2000)]
            chosen = (rng.zipf(1.3, million) - 1) % len(words)
            text = b" ".join(words[k] for k in chosen[: million // 3])
            return np.frombuffer(text[:million], np.uint8)
        case "runs":
            repeated = np.repeat(rng.integers(0, 3, million), rng.integers(1, 40, million))
            return repeated[:million].astype(np.uint8)
        case "16 bits":
            return (rng.zipf(1.2, million) % 65536).astype(np.uint16)
    raise ValueError(kind)


def valid_grammar(random: Random, longest: int = 2000) -> Parts:
    """alphabet_size, rules and sequence that expand to at most `longest` terminals."""
    size = random.choice(ALPHABET_SIZES)
    rules: Rules = []
    lengths: list[int] = []
    shape = random.choice(("chain", "double", "any", "wide"))

    def operand() -> int:
        near = random.randint(1, 3)
        if shape == "wide" or near > len(rules) or random.random() < 0.2:
            return random.choice((0, size - 1, random.randrange(size)))
        return size + (len(rules) - near if shape != "any" else random.randrange(len(rules)))

    def length(symbol: int) -> int:
        return 1 if symbol < size else lengths[symbol - size]

    for _ in range(random.choice((0, 1, 3, 10, 30))):
        left = operand()
        right = left if shape == "double" else operand()
        if length(left) + length(right) > longest:
            left, right = 0, size - 1
        rules.append((left, right))
        lengths.append(length(left) + length(right))
    sequence: list[int] = []
    total = 0
    for _ in range(random.choice((0, 1, 2, 10))):
        symbol = size + random.randrange(len(rules)) if rules and random.random() < 0.8 else 0
        if total + length(symbol) <= longest:
            sequence.append(symbol)
            total += length(symbol)
    return size, rules, sequence


def doubling(number: int) -> list[list[int]]:
    """Rules over the one terminal 0; the last stands for 2^number of them."""
    return [[k, k] for k in range(number)]


def chain(number: int) -> tuple[int, Any, list[int]]:
    """A comb of `number` rules, as deep as it is long, over the terminals 0 and 1."""
    left = np.r_[0, np.arange(2, number + 1)]
    return 2, np.c_[left, np.ones(number, int)], [number + 1]


def slow_occurrences(size: int, rules: Rules, sequence: list[int]) -> list[int]:
    """Walks through the whole derivation."""
    counts, pending = [0] * len(rules), list(sequence)
    while pending:
        symbol = pending.pop()
        if symbol >= size:
            counts[symbol - size] += 1
            pending += rules[symbol - size]
    return counts


def renamed(parts: Parts, alphabet_size: int) -> Parts:
    """The same grammar over another number of terminals."""
    size, rules, sequence = parts

    def name(symbol: int) -> int:
        return alphabet_size + symbol - size if symbol >= size else symbol % alphabet_size

    named = [(name(left), name(right)) for left, right in rules]
    return alphabet_size, named, [name(s) for s in sequence]


def codec_options(random: Random) -> dict[str, Any]:
    """A codec with options that fit it, as keyword arguments of compress."""
    codec = random.choice(("repair", "repair", "repair", "lz78", "lzd", "lzd", "none"))
    options: dict[str, Any] = {"codec": codec}
    if codec == "lzd":
        options["letters"] = random.choice(("known", "seen"))
    if codec == "repair":
        options["min_count"] = random.randint(2, 5)
        options["max_rules"] = random.choice((None, None, random.randint(0, 12)))
        options["max_expansion"] = random.choice((None, None, random.randint(1, 40)))
    return options


def oracle_grammar(
    document: list[int],
    names: list[int],
    alphabet_size: int,
    codec: str,
    **options: Any,
) -> tuple[list[list[int]], list[int]]:
    """What the oracle says of the document whose letter i is written as names[i].

    Codecs do not care what letters are called, so the oracle reads 0..len(names)-1, and this
    renames: it would need gigabytes for the larger alphabets.
    """
    small = len(names)
    arguments = (document,) if codec == "none" else (document, small)
    rules, sequence = getattr(oracle, codec)(*arguments, **options)

    def named(symbol: int) -> int:
        return names[symbol] if symbol < small else symbol - small + alphabet_size

    return [[named(left), named(right)] for left, right in rules], [*map(named, sequence)]


# These shrink well but are rarely long: tests also go through thousands of plain seeds.
RANDOMS = st.randoms(use_true_random=False)
DOCUMENTS = RANDOMS.map(document) | st.lists(st.integers(0, 2), max_size=60)
GRAMMARS = RANDOMS.map(valid_grammar)
CODECS = RANDOMS.map(codec_options)
REPAIR = CODECS.filter(lambda options: options["codec"] == "repair")
