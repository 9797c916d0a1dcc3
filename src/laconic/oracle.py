"""The slow, obvious version of what the core does fast: tests hold the core to it.

Documents are lists of integers 0..alphabet_size-1; grammars are (rules, sequence), as lists.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

Rules = list[tuple[int, int]]
Pair = tuple[int, int]


def repair(
    document: Sequence[int],
    alphabet_size: int,
    min_count: int = 2,
    max_rules: int | None = None,
    max_expansion: int | None = None,
) -> tuple[Rules, list[int]]:
    """Re-Pair: replace the most frequent pair until none occurs `min_count` times.

    Ties go to the pair that came to be first: in the order in which pairs are first seen when the
    sequence is read from left to right after every replacement.

    >>> rules, sequence = repair([ord(c) - ord("a") for c in "aababcababcabcd"], 4, min_count=3)
    >>> rules, sequence  # A -> ab, B -> Ac; aABABBd
    ([(0, 1), (4, 2)], [0, 4, 5, 4, 5, 5, 3])
    """
    sequence, rules = list(document), Rules()
    lengths = [1] * alphabet_size
    order: dict[Pair, int] = {}
    while max_rules is None or len(rules) < max_rules:
        counts = _count_pairs(sequence)
        for pair in counts:
            order.setdefault(pair, len(order))
        allowed = [
            pair
            for pair, count in counts.items()
            if count >= min_count
            and (max_expansion is None or lengths[pair[0]] + lengths[pair[1]] <= max_expansion)
        ]
        if not allowed:
            break
        best = max(allowed, key=lambda pair: (counts[pair], -order[pair]))
        sequence = _replace(sequence, best, alphabet_size + len(rules))
        rules.append(best)
        lengths.append(lengths[best[0]] + lengths[best[1]])
    return rules, sequence


def _count_pairs(sequence: list[int]) -> dict[Pair, int]:
    # Non-overlapping occurrences, from left to right: aaaa holds aa twice, aaa once.
    counts: dict[Pair, int] = {}
    free: dict[Pair, int] = {}
    for i, pair in enumerate(pairwise(sequence)):
        if i >= free.get(pair, 0):
            counts[pair] = counts.get(pair, 0) + 1
            free[pair] = i + 2
    return counts


def _replace(sequence: list[int], pair: Pair, symbol: int) -> list[int]:
    replaced, i = [], 0
    while i < len(sequence):
        if tuple(sequence[i : i + 2]) == pair:
            replaced.append(symbol)
            i += 2
        else:
            replaced.append(sequence[i])
            i += 1
    return replaced


def learn(
    documents: Sequence[Sequence[int]],
    alphabet_size: int,
    rules: int,
    min_documents: int = 2,
    max_expansion: int | None = None,
    kinds: Sequence[str] | None = None,
    known: Rules | None = None,
) -> Rules:
    """The rules of a rulebook: Re-Pair of all documents at once, pairs never across words.

    A pair is replaced if it occurs twice, in `min_documents` documents. Ties as in `repair`, as if
    the documents were read one after the other. Rules that are `known` made the last symbols of the
    alphabet; they are not found again.

    >>> learn([[0, 1, 2], [0, 1, 0, 1], [1, 2]], 3, rules=9, min_documents=2)
    [(0, 1)]
    """
    pieces = [
        (number, word) for number, text in enumerate(documents) for word in words(text, kinds)
    ]
    found, known = Rules(), known or []
    lengths = [1] * (alphabet_size - len(known))
    for left, right in known:
        lengths.append(lengths[left] + lengths[right])
    order: dict[Pair, int] = {}
    while len(found) < rules:
        counts: Counter[Pair] = Counter()
        places: dict[Pair, set[int]] = {}
        for number, word in pieces:
            for pair, count in _count_pairs(word).items():
                order.setdefault(pair, len(order))
                counts[pair] += count
                places.setdefault(pair, set()).add(number)
        allowed = [
            pair
            for pair, count in counts.items()
            if count >= 2
            and pair not in known
            and len(places[pair]) >= min_documents
            and (max_expansion is None or lengths[pair[0]] + lengths[pair[1]] <= max_expansion)
        ]
        if not allowed:
            break
        best = max(allowed, key=lambda pair: (counts[pair], -order[pair]))
        pieces = [(n, _replace(word, best, alphabet_size + len(found))) for n, word in pieces]
        found.append(best)
        lengths.append(lengths[best[0]] + lengths[best[1]])
    return found


def parse(
    document: Sequence[int],
    rules: Rules,
    alphabet_size: int,
    kinds: Sequence[str] | None = None,
    within: int | None = None,
) -> list[int]:
    """What the rules of a rulebook leave of a document: each is applied everywhere, in order.

    The first `within` rules (None: all) keep within words.

    >>> parse([0, 1, 2, 0, 1], [(0, 1), (3, 2)], 3)
    [4, 3]
    """
    pieces = words(document, kinds)
    for k, rule in enumerate(rules):
        if k == within:
            pieces = [[symbol for word in pieces for symbol in word]]
        pieces = [_replace(word, rule, alphabet_size + k) for word in pieces]
    return [symbol for word in pieces for symbol in word]


def words(document: Sequence[int], kinds: Sequence[str] | None) -> list[list[int]]:
    """The words of a document, by the kind of each terminal: s(pace), b(lank), l(etter), m(ark).

    >>> words([ord(c) for c in "it's  a"], ["l" if chr(i).isalpha() else "mb"[i == 32] for i in range(128)])
    [[105, 116], [39], [115], [32], [32, 97]]
    """  # noqa: E501
    if kinds is None:
        return [list(document)]
    spelled = "".join(kinds[terminal] for terminal in document)
    found = re.finditer(r"b?l+|b?m+|[sb]+(?=b[lm])|[sb]+", spelled)
    return [list(document[word.start() : word.end()]) for word in found]


def lz78(document: Sequence[int], alphabet_size: int) -> tuple[Rules, list[int]]:
    """LZ78 in its compact form: each phrase is the longest phrase so far and one terminal more.

    >>> lz78([ord(c) - ord("a") for c in "aababcababcabcd"], 4)  # a P2 P3 P4 b c P7
    ([(0, 1), (4, 2), (4, 0), (5, 3)], [0, 4, 5, 6, 1, 2, 7])
    """
    text, rules, sequence = tuple(document), Rules(), list[int]()
    phrases: dict[tuple[int, ...], int] = {}
    i = 0
    while i < len(text):
        j = i
        while j < len(text) and text[i : j + 1] in phrases:
            j += 1
        if j == len(text):  # nothing is left to make the last phrase new
            sequence.append(phrases[text[i:]])
        elif j == i:
            phrases[text[i : i + 1]] = text[i]
            sequence.append(text[i])
        else:
            rules.append((phrases[text[i:j]], text[j]))
            phrases[text[i : j + 1]] = alphabet_size + len(rules) - 1
            sequence.append(alphabet_size + len(rules) - 1)
        i = j + 1
    return rules, sequence


def lzd(
    document: Sequence[int], alphabet_size: int, letters: str = "known"
) -> tuple[Rules, list[int]]:
    """LZD: each phrase is the longest known phrase, and the longest known phrase after it.

    >>> lzd([ord(c) - ord("a") for c in "aababcababcabcd"], 4, letters="seen")  # a P2 P3 P4 P5
    ([(0, 1), (4, 2), (4, 5), (5, 3)], [0, 4, 5, 6, 7])
    """
    text, rules, sequence = tuple(document), Rules(), list[int]()
    phrases: dict[tuple[int, ...], int] = {}
    if letters == "known":
        phrases = {(terminal,): terminal for terminal in range(alphabet_size)}

    def longest(i: int) -> tuple[int, ...]:
        ends = [j for j in range(i + 1, len(text) + 1) if text[i:j] in phrases]
        return text[i : ends[-1]] if ends else ()

    i = 0
    while i < len(text):
        first = longest(i)
        second = longest(i + len(first)) or text[i + len(first) : i + len(first) + 1]
        if not first:  # a terminal that was never a phrase is one now
            phrases[text[i : i + 1]] = text[i]
            sequence.append(text[i])
            i += 1
        elif not second:  # nothing is left to pair the last phrase with
            sequence.append(phrases[first])
            i += len(first)
        else:
            rules.append((phrases[first], phrases.get(second, second[0])))
            phrases[first + second] = alphabet_size + len(rules) - 1
            sequence.append(alphabet_size + len(rules) - 1)
            i += len(first + second)
    return rules, sequence


def none(document: Sequence[int]) -> tuple[Rules, list[int]]:
    """No rules: the sequence is the document."""
    return [], list(document)


def expand(rules: Rules, sequence: list[int], alphabet_size: int) -> list[int]:
    """The terminals that the sequence stands for."""
    terminals, pending = [], sequence[::-1]
    while pending:
        symbol = pending.pop()
        if symbol < alphabet_size:
            terminals.append(symbol)
        else:
            pending.extend(reversed(rules[symbol - alphabet_size]))
    return terminals


def depths(rules: Rules, alphabet_size: int) -> list[int]:
    """The height of each rule's derivation tree."""
    heights: list[int] = []
    for rule in rules:
        operands = [heights[s - alphabet_size] if s >= alphabet_size else 0 for s in rule]
        heights.append(1 + max(operands))
    return heights


def algorithm_1(rules: Rules, alphabet_size: int) -> list[list[int]]:
    """The paper's Algorithm 1, line by line as printed, on the task graph of the rules.

    Nodes are rules; an edge leads from a rule to each rule that uses it. As printed it never takes
    a reported node out of V, so every list holds the lists before it too, and it returns as soon as
    no edges are left, before the nodes that only then become free are reported. See `levels`.
    """
    nodes = range(len(rules))
    edges = {(s - alphabet_size, k) for k in nodes for s in rules[k] if s >= alphabet_size}
    lists: list[list[int]] = []

    def parallel_node(edges: set[tuple[int, int]]) -> None:
        remaining = set(edges)  # E' <- E
        if not edges:
            return
        reported = [x for x in nodes if all(y != x for _, y in edges)]  # indegree 0
        for x in reported:
            remaining -= {(a, b) for a, b in edges if a == x}  # E' <- E' - E_out(x)
        lists.append(reported)
        parallel_node(remaining)

    parallel_node(edges)
    return lists


def levels(rules: Rules, alphabet_size: int) -> list[list[int]]:
    """What Algorithm 1 is for: each rule once, in the first list in which it can be computed.

    These are its lists less what was reported before, and at last the rules it leaves out.

    >>> rules = [(0, 1), (4, 2), (4, 4), (5, 6)]
    >>> algorithm_1(rules, 4)
    [[0], [0, 1, 2]]
    >>> levels(rules, 4)
    [[0], [1, 2], [3]]
    """
    found: list[list[int]] = []
    reported: set[int] = set()
    for nodes in [*algorithm_1(rules, alphabet_size), list(range(len(rules)))]:
        found.append([node for node in nodes if node not in reported])
        reported.update(nodes)
    return [level for level in found if level]


def ngrams(
    text: str,
    low: int,
    high: int,
    spaces: str = "",
    complements: Mapping[str, str] | None = None,
) -> Counter[str]:
    """Count the pieces of `low` to `high` letters of a text.

    Two or more of `spaces` in a row are one blank. With `complements` a piece and its reverse
    complement count as the smaller of the two; a letter that has no complement is its own.

    >>> sorted(ngrams("aab  a", 2, 2, spaces=" ").items())
    [(' a', 1), ('aa', 1), ('ab', 1), ('b ', 1)]
    """
    if spaces:
        text = re.sub(f"[{re.escape(spaces)}]{{2,}}", " ", text)
    counts: Counter[str] = Counter()
    for length in range(low, high + 1):
        for i in range(len(text) - length + 1):
            piece = text[i : i + length]
            if complements is not None:
                other = "".join(complements.get(letter, letter) for letter in reversed(piece))
                piece = min(piece, other)
            counts[piece] += 1
    return counts


def phrases(
    alphabet_size: int, rules: Rules, sequence: Sequence[int], most: int, low: int, high: int
) -> Counter[tuple[int, ...]]:
    """Count what runs of 1 to `most` neighbours in a sequence stand for: `low` to `high` terminals.

    >>> sorted(phrases(2, [(0, 1)], [2, 0, 2], most=2, low=2, high=3).items())
    [((0, 0, 1), 1), ((0, 1), 2), ((0, 1, 0), 1)]
    """
    counts: Counter[tuple[int, ...]] = Counter()
    for begin in range(len(sequence)):
        for end in range(begin + 1, min(begin + most, len(sequence)) + 1):
            terminals = tuple(expand(rules, list(sequence[begin:end]), alphabet_size))
            if low <= len(terminals) <= high:
                counts[terminals] += 1
    return counts
