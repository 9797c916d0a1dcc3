"""A part of a document as nested phrases, found without expanding the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from laconic.alphabet import Alphabet, speller
from laconic.grammar import Grammar

NESTED = 12
"""Levels of phrases within phrases that are told apart."""
_DEEPEST = 4096  # phrases around a part that are followed; only a hostile grammar has more


class Node(NamedTuple):
    """A symbol in its place: terminals begin..end-1; of what is longer than the part, as much.

    `parts` are its operands within the part: none of a terminal, and where nesting ends.
    """

    symbol: int
    begin: int
    end: int
    parts: tuple[Node, ...]


class Part(NamedTuple):
    """Terminals begin..end-1 of a document, in phrases; `around` are those that hold all of them.

    `spell` gives the text between two places of the part.
    """

    begin: int
    end: int
    nodes: list[Node]
    around: list[Node]
    spell: Callable[[int, int], str]

    def every(self) -> Iterator[Node]:
        """Yield all nodes of the part, each before its operands."""
        waiting = self.nodes[::-1]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += node.parts[::-1]


def part_of(grammar: Grammar, alphabet: Alphabet, begin: int, end: int) -> Part:
    """Return a part of a document, cut at its ends. O(depth + end - begin) once it is indexed."""
    begin = max(0, min(begin, grammar.expanded_length))
    end = max(begin, min(end, grammar.expanded_length))
    first = max(0, int(np.searchsorted(grammar.starts, begin, side="right")) - 1)
    last = int(np.searchsorted(grammar.starts, end, side="left"))
    # The last character may end beyond the part.
    terminals = grammar.substring(begin, min(end + 3, grammar.expanded_length))
    text = speller(alphabet, terminals, inside=begin > 0)
    symbols = grammar.sequence[first:last].tolist()
    places = grammar.starts[first:last].tolist()
    waiting = [Node(symbol, at, at, ()) for symbol, at in zip(symbols, places, strict=True)]
    around: list[Node] = []
    rules, lengths, size = grammar.all_rules, grammar.expanded_lengths, grammar.alphabet_size

    def operands(symbol: int, at: int) -> Iterator[tuple[int, int]]:
        """Yield the operands of a rule that are within the part, each with its place."""
        for operand in rules[symbol - size].tolist():
            until = at + (1 if operand < size else int(lengths[operand - size]))
            if at < end and until > begin:
                yield operand, at
            at = until

    def grown(symbol: int, at: int, level: int) -> Node:
        if symbol < size:
            return Node(symbol, at, at + 1, ())
        inner = operands(symbol, at) if level < NESTED else ()
        parts = tuple(grown(*each, level + 1) for each in inner)
        until = at + int(lengths[symbol - size])
        return Node(symbol, max(at, begin), min(until, end), parts)

    # What holds the whole part, and more, is no phrase in it: what it is made of may be.
    while len(waiting) == 1 and waiting[0].symbol >= size and len(around) < _DEEPEST:
        symbol, at = waiting[0].symbol, waiting[0].begin
        until = at + int(lengths[symbol - size])
        if at > begin or until < end or until - at == end - begin:
            break
        around.append(Node(symbol, at, until, ()))
        waiting = [Node(operand, place, place, ()) for operand, place in operands(symbol, at)]
    nodes = [grown(node.symbol, node.begin, 1) for node in waiting]
    return Part(begin, end, nodes, around, lambda i, j: text(i - begin, j - begin))
