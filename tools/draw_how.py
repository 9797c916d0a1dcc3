"""Draws docs/how_*.svg, the pictures of how a text becomes a prediction.

python tools/draw_how.py            # draw them; --check only says whether they are up to date

The grammars and the forest are computed, not drawn by hand. Colours follow the reader's, light or
dark, and every picture has its own background, so that it can be read on any page.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

import laconic
from laconic.forest import plant

FOLDER = Path(__file__).resolve().parent.parent / "docs"
DOCUMENTS = ("abracadabra", "abrakadabra")
STEP, SIZE = 34, 30
STYLE = """
svg { background: #fff; font: 15px system-ui, sans-serif; color-scheme: light dark; }
text { fill: #374151; text-anchor: middle; dominant-baseline: central; }
.left { text-anchor: start; } .note { fill: #6b7280; font-size: 13px; }
.letter { fill: #e5e7eb; } .rule { fill: #99d5cf; }
.model { fill: #c7d2fe; } .other { fill: #fcd9b6; }
path { fill: none; stroke: #9ca3af; stroke-width: 1.5; marker-end: url(#tip); }
.plain { marker-end: none; } marker path { fill: #9ca3af; stroke: none; marker-end: none; }
@media (prefers-color-scheme: dark) {
  svg { background: #1f2430; } text { fill: #e5e7eb; } .note { fill: #a8b0bd; }
  .letter { fill: #434b5a; } .rule { fill: #0f6d66; }
  .model { fill: #4a4fa0; } .other { fill: #8a5a24; }
}
"""
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
)


class Picture:
    """An SVG picture that is drawn from left to right and from top to bottom."""

    def __init__(self, width: int, height: int, told: str) -> None:
        self.size, self.told, self.parts = (width, height), told, [TIP]

    def text(self, x: float, y: float, words: str, kind: str = "") -> None:
        """Write words around a place, or from it on."""
        self.parts.append(f'<text x="{x:g}" y="{y:g}" class="{kind}">{escape(words)}</text>')

    def box(self, x: float, y: float, words: str, kind: str, width: float = SIZE) -> None:
        """Draw a rounded box around its centre."""
        place = f'x="{x - width / 2:g}" y="{y - SIZE / 2:g}" width="{width:g}" height="{SIZE}"'
        self.parts.append(f'<rect {place} rx="5" class="{kind}"/>')
        self.text(x, y, words)

    def row(self, x: float, y: float, symbols: Sequence[str]) -> list[float]:
        """Draw symbols side by side, rules in their colour, and return where."""
        places = [x + STEP * k for k in range(len(symbols))]
        for place, symbol in zip(places, symbols, strict=True):
            self.box(place, y, symbol, "rule" if symbol.isupper() else "letter")
        return places

    def arrow(self, x: float, y: float, to_x: float, to_y: float, kind: str = "") -> None:
        """Draw an arrow, or with the kind `plain` a line."""
        self.parts.append(f'<path d="M{x:g},{y:g} L{to_x:g},{to_y:g}" class="{kind}"/>')

    def svg(self) -> str:
        """Return the file."""
        width, height = self.size
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
        head += f' width="{width}" height="{height}" role="img" aria-label="{escape(self.told)}">'
        return "\n".join([head, f"<style>{STYLE}</style>", *self.parts, "</svg>", ""])


def grammar_of(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the sequence and the rules of a text, a capital letter for each rule."""
    grammar = laconic.compress(text, "repair")

    def name(symbol: int) -> str:
        first = grammar.alphabet_size
        return chr(symbol) if symbol < first else chr(ord("A") + symbol - first)

    pairs = [(name(left), name(right)) for left, right in grammar.rules.tolist()]
    return [name(each) for each in grammar.sequence.tolist()], pairs


def text_to_grammar() -> Picture:
    """Draw Re-Pair's steps: in each, the most frequent pair becomes one symbol."""
    text = DOCUMENTS[0]
    sequence, pairs = grammar_of(text)
    picture = Picture(
        720, 70 + 55 * (len(pairs) + 1), f"Re-Pair makes {len(sequence)} symbols of {text}"
    )
    symbols = list(text)
    for step in range(len(pairs) + 1):
        y = 60 + 55 * step
        picture.row(40, y, symbols)
        if step:
            left, right = pairs[step - 1]
            rule = chr(ord("A") + step - 1)
            for place, symbol in zip((470, 530, 564), (rule, left, right), strict=True):
                picture.box(place, y, symbol, "rule" if symbol.isupper() else "letter")
            picture.text(500, y, "→")
        if step < len(pairs):
            rule = chr(ord("A") + step)
            joined, k = [], 0
            while k < len(symbols):
                pair = tuple(symbols[k : k + 2]) == pairs[step]
                joined.append(rule if pair else symbols[k])
                k += 2 if pair else 1
            symbols = joined
    assert symbols == sequence
    picture.text(24, 22, f"{len(text)} letters", "left note")
    picture.text(455, 22, "rules, in the order they are made", "left note")
    return picture


def grammars_to_forest() -> Picture:
    """Draw the rules of two documents, and the forest that has equal ones once."""
    picture = Picture(760, 250, "Equal rules of two documents are one node of the forest")
    total = 0
    for number, text in enumerate(DOCUMENTS):
        sequence, pairs = grammar_of(text)
        total += len(pairs)
        y = 55 + 110 * number
        picture.text(24, y - 33, f"“{text}”", "left note")
        picture.row(40, y, sequence)
        for k, (left, right) in enumerate(pairs):
            x = 50 + 130 * k
            for place, symbol in zip(
                (x - 10, x + 44, x + 78), ("ABCDEFG"[k], left, right), strict=True
            ):
                picture.box(place, y + 42, symbol, "rule" if symbol.isupper() else "letter")
            picture.text(x + 17, y + 42, "→")
    forest = plant(laconic.compress_many(DOCUMENTS, "repair"))
    nodes = len(forest.children)
    picture.arrow(450, 110, 520, 110)
    tree(picture, 560, 195)
    picture.text(545, 22, f"{total} rules, {nodes} nodes", "left note")
    return picture


def tree(picture: Picture, x: float, y: float) -> None:
    """Draw the nodes of the forest above their operands."""
    _, pairs = grammar_of(DOCUMENTS[0])
    places: dict[str, tuple[float, float]] = {}
    wide = 0.0
    for name, (left, right) in zip("ABCDEFG", pairs, strict=False):
        if left.isupper():
            below = [places[left], places[right]]
            places[name] = (sum(u for u, _ in below) / 2, min(v for _, v in below) - 62)
        else:
            below = [(x + wide, y), (x + wide + STEP, y)]
            for (u, v), letter in zip(below, (left, right), strict=True):
                picture.box(u, v, letter, "letter")
            places[name] = (x + wide + STEP / 2, y - 62)
            wide += 2.6 * STEP
        u, v = places[name]
        for from_x, from_y in below:
            picture.arrow(from_x, from_y - SIZE / 2, u + (from_x - u) / 4, v + SIZE / 2)
        picture.box(u, v, name, "rule")


def forest_to_levels() -> Picture:
    """Draw levels one above the other, each computed at once from those below."""
    forest = plant(laconic.compress_many(DOCUMENTS, "repair"))
    letters = sorted(set("".join(DOCUMENTS)))
    picture = Picture(
        660, 80 * (len(forest.levels) + 1), "Vectors of rules, computed level by level"
    )
    names = iter("ABCDEFG")
    rows: list[list[str]] = [
        letters,
        *([next(names) for _ in range(s.stop - s.start)] for s in forest.levels),
    ]
    for level, symbols in enumerate(rows):
        y = 80 * (len(rows) - level) - 45
        told = (
            "letters: a learned vector each"
            if not level
            else f"level {level}: composer(left, right), all at once"
        )
        picture.text(330, y, told, "left note")
        for k, symbol in enumerate(symbols):
            x = 40 + 48 * k
            picture.box(x, y, symbol, "rule" if level else "letter")
            for part in range(4):  # a vector
                shade = (ord(symbol) * (part + 3) * 7) % 10
                place = f'x="{x - 14 + 7.4 * part:g}" y="{y + 19}" width="6" height="9" rx="1"'
                picture.parts.append(
                    f'<rect {place} class="model" opacity="{0.3 + shade / 14:.2f}"/>'
                )
        if level:
            picture.arrow(120, y + 62, 120, y + 34)
    return picture


def levels_to_prediction() -> Picture:
    """Draw the two views: the sequence is read in order, n-grams are counted on the rules."""
    sequence, _ = grammar_of(DOCUMENTS[0])
    picture = Picture(
        700, 290, "A model reads the sequence, another counts n-grams; both say a prediction"
    )
    places = picture.row(60, 240, sequence)
    for k, x in enumerate(places):
        picture.arrow(x, 222, x, 186)
        picture.box(x, 168, "", "model", 24)
        if k:
            picture.arrow(places[k - 1] + 12, 168, x - 12, 168)
        picture.arrow(x, 152, places[len(places) // 2] + (x - places[len(places) // 2]) / 3, 106)
    picture.box(places[len(places) // 2], 90, "reading", "model", 120)
    picture.text(
        44,
        275,
        f"the sequence: {len(sequence)} symbols instead of {len(DOCUMENTS[0])} letters",
        "left note",
    )
    for k, gram in enumerate(("ab", "bra", "cad", "dab", "abra")):
        picture.box(400 + 58 * k, 240, gram, "other", 52)
        picture.arrow(400 + 58 * k, 222, 516 + (400 + 58 * k - 516) / 3, 106)
    picture.text(374, 275, "n-grams, counted on the rules", "left note")
    picture.box(516, 90, "counting", "other", 120)
    middle = (places[len(places) // 2] + 516) / 2
    picture.arrow(places[len(places) // 2] + 62, 82, middle - 62, 44)
    picture.arrow(516 - 62, 82, middle + 62, 44)
    picture.box(middle, 34, "prediction", "rule", 120)
    return picture


PICTURES = {
    "how_grammar": text_to_grammar,
    "how_forest": grammars_to_forest,
    "how_levels": forest_to_levels,
    "how_prediction": levels_to_prediction,
}


def main() -> None:
    """Write all pictures, or with --check only compare."""
    for name, draw in PICTURES.items():
        path, drawn = FOLDER / f"{name}.svg", draw().svg()
        if "--check" not in sys.argv:
            path.write_text(drawn, "utf-8")
        elif path.read_text("utf-8") != drawn:
            sys.exit(f"{path} is not up to date: run `make docs`")


if __name__ == "__main__":
    main()
