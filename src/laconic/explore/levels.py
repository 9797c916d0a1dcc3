"""A document level by level: what a composer computes first, and what of that."""

from __future__ import annotations

import numpy as np

from laconic.errors import visible
from laconic.explore.phrases import Shown
from laconic.report.markup import Html, element, joined
from laconic.report.tables import gauge, table

PICTURE = 120
"""Letters of a picture."""
_CELL, _ROW = 12, 26  # pixels of a letter, and of a level
_MOST = 24  # levels that are drawn, or listed


def picture(shown: Shown, begin: int) -> Html:
    """Return some letters of a document, and above them every phrase on its level, as SVG."""
    part = shown.part(begin, begin + PICTURE)
    size, depths = shown.grammar.alphabet_size, shown.grammar.depths
    nodes = [node for node in part.every() if node.symbol >= size]
    level = {node.symbol: int(depths[node.symbol - size]) for node in nodes}
    drawn = [node for node in nodes if level[node.symbol] <= _MOST]
    rows = max((level[node.symbol] for node in drawn), default=0)
    wide, high = _CELL * (part.end - part.begin) + 28, _ROW * (rows + 1)

    def box(symbol: int, first: int, last: int) -> Html:
        below = high - _ROW * (level[symbol] + 1)
        return element(
            "rect",
            element("title", f"symbol {symbol}, level {level[symbol]}"),
            x=_CELL * (first - part.begin) + 28,
            y=below + 3,
            width=_CELL * (last - first) - 2,
            height=_ROW - 6,
            rx=3,
            class_="s" if shown.kind(symbol) == "rulebook" else None,
            data_rule=shown.name(symbol),
        )

    letters = [
        element(
            "text",
            visible(part.spell(at, at + 1)).replace("\n", "↵").replace(" ", "·"),
            x=_CELL * (at - part.begin) + 28 + _CELL // 2 - 1,
            y=high - 8,
            text_anchor="middle",
        )
        for at in range(part.begin, part.end)
    ]
    scale = [
        element("text", str(row), x=0, y=high - _ROW * row - 8, class_="level")
        for row in range(1, rows + 1)
    ]
    inner = element(
        "svg",
        *scale,
        *(box(node.symbol, node.begin, node.end) for node in drawn),
        *letters,
        viewBox=f"0 0 {wide} {high}",
        style=f"width:{wide}px;height:{high}px",
        role="img",
        aria_label=f"Letters {part.begin:,} to {part.end:,} with their phrases, level by level",
        class_="levels",
    )
    return element("div", inner, class_="scroll", tabindex=0)


def levels_table(shown: Shown) -> Html:
    """Return how many rules each level of a document has."""
    grammar = shown.grammar
    needed = grammar.reachable()
    numbers = np.bincount(grammar.depths[needed])[1:]
    shared = 0 if grammar.rulebook is None else len(grammar.rulebook)
    of_book = np.bincount(grammar.depths[:shared][needed[:shared]], minlength=len(numbers) + 1)[1:]
    most = int(numbers.max(initial=1))
    rows = []
    for k, number in enumerate(numbers[:_MOST].tolist()):
        own = [f"{of_book[k]:,}", f"{number - of_book[k]:,}"] if shared else [f"{number:,}"]
        rows.append([f"{k + 1}", *own, gauge(number / most)])
    if not rows:
        return element("p", "The document has no rules, and so no levels.", class_="note")
    head = ["level", *(["rulebook’s rules", "private rules"] if shared else ["rules"]), ""]
    more = len(numbers) - len(rows)
    note = element("p", f"{more:,} higher levels are left out.", class_="note") if more else Html()
    return joined(table(head, rows), note)
