"""Phrases on the text, and the table of their rules: what is pointed at is looked up there."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np

from laconic.alphabet import Alphabet
from laconic.arrays import Int64s
from laconic.errors import visible
from laconic.explore.counts import Counts, phrase_hashes
from laconic.explore.parts import Node, Part, part_of
from laconic.grammar import Grammar
from laconic.report.markup import Html, element, joined
from laconic.report.tables import folded, table
from laconic.show import how_many, rules_of

_AROUND = 6  # phrases around a part that are named, the shortest


class Shown(NamedTuple):
    """A document's grammar on a page; `key` tells its phrases from those of another there.

    `title` says how it was made.
    """

    grammar: Grammar
    alphabet: Alphabet
    key: str = "a"
    title: str = ""

    def name(self, symbol: int) -> str:
        """Return what a phrase is called on the page, by which its rule is found."""
        return f"{self.key}{symbol}"

    def kind(self, symbol: int) -> str:
        """Return whether a symbol is the rulebook's or the document's own."""
        book = self.grammar.rulebook
        return "rulebook" if book is not None and symbol < book.size else "private"

    def part(self, begin: int, end: int) -> Part:
        """Return a part of the document."""
        return part_of(self.grammar, self.alphabet, begin, end)


def text_of(shown: Shown, part: Part, label: str) -> Html:
    """Return the text of a part, in which every phrase is an element within the one around it."""
    size = shown.grammar.alphabet_size

    def written(node: Node) -> Html:
        if node.symbol < size:
            return joined(visible(part.spell(node.begin, node.end)))
        inner = map(written, node.parts) if node.parts else [visible(part.spell(*node[1:3]))]
        kind = "s" if shown.kind(node.symbol) == "rulebook" else None
        return element("span", *inner, class_=kind, data_rule=shown.name(node.symbol))

    return element(
        "div",
        *map(written, part.nodes),
        class_="document phrases",
        tabindex=0,
        role="group",
        aria_label=label,
        aria_describedby="phrase",
    )


def around(part: Part) -> Html:
    """Return which phrases hold the whole part, if some do."""
    if not part.around:
        return Html()
    some = part.around[-_AROUND:]
    told = [f"{node.symbol} ({node.end - node.begin:,} letters)" for node in some]
    more = "… › " if len(part.around) > len(some) else ""
    return element("p", f"All of this is within {more}{' › '.join(told)}.", class_="note")


def rules_table(shown: Shown, part: Part, counts: Counts | None) -> Html:
    """Return the rules of the phrases in a part, those used most first, folded."""
    size = shown.grammar.alphabet_size
    found = {node.symbol for node in part.every() if node.symbol >= size}
    if not found:
        return element("p", "No rule is used in this part.", class_="note")
    symbols = np.array(sorted(found), np.int32)
    used = shown.grammar.occurrences[symbols - size]
    elsewhere = _elsewhere(shown, symbols.astype(np.int64), counts)
    order = np.argsort(-used, kind="stable").tolist()
    spell = rules_of(shown.grammar, shown.alphabet)
    expansion = cache(spell.expansion)

    def operand(symbol: int) -> str:
        name = spell.symbol(symbol)
        return name if symbol < size else f"{name} {expansion(symbol - size)}"

    rows = []
    for at in order:
        symbol = int(symbols[at])
        rule = " + ".join(map(operand, spell.rules[symbol - size].tolist()))
        rows.append(
            [
                element("th", str(symbol), scope="row", id=shown.name(symbol)),
                element("td", shown.kind(symbol), class_="text"),
                element("td", visible(rule), class_="phrase"),
                element("td", visible(expansion(symbol - size)), class_="phrase"),
                f"{spell.lengths[symbol - size]:,}",
                f"{shown.grammar.depths[symbol - size]:,}",
                f"{used[at]:,}",
                *([] if elsewhere is None else [elsewhere(at)]),
            ]
        )
    head = ["symbol", "whose", "rule", "stands for", "letters", "level", "used here"]
    head += ["in the corpus"] if elsewhere is not None else []
    listed = table(head, rows, class_="phrases-table", data_key=shown.key)
    return folded(f"{how_many(len(rows), 'rule')} in this part", listed)


def _elsewhere(shown: Shown, symbols: Int64s, counts: Counts | None) -> Callable[[int], str] | None:
    """Return a function of a place in `symbols`: how often the corpus uses the same phrase."""
    if counts is None:
        return None
    times = counts.times(phrase_hashes(shown.grammar, symbols.astype(np.int32)))
    sofar = "" if counts.finished else f" in {counts.done:,} of {counts.total:,} documents so far"
    return lambda at: f"{times[at]:,}{sofar}"
