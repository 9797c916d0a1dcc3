"""Draws docs/method.svg and docs/data.svg: `python tools/draw_pictures.py [folder]`.

The grammar in the first picture is computed, not drawn by hand: it is Re-Pair's of "abracadabra".
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

import laconic

TEXT = "abracadabra"
INK, FAINT, PAPER = "#374151", "#9ca3af", "#f8fafc"
LETTER, RULE, MODEL = "#e5e7eb", "#99d5cf", "#c7d2fe"
STYLE = {
    "font.size": 11,
    "font.family": "sans-serif",
    "svg.fonttype": "none",
    "svg.hashsalt": "laconic",
    "text.color": INK,
}
# Room by room, from files to answers: name, what it does, column, row.
ROOMS = {
    "your files": ("CSV, JSONL, FASTA,\nParquet, folders", 0, 0),
    "formats": ("documents,\nsome at a time", 1, 0),
    "engines": ("threads, Ray, Spark:\ncodecs make grammars", 2, 0),
    "corpus": ("grammars and columns\nin Parquet", 3, 0),
    "batching": ("forests of rules,\nsimilar lengths", 3, 1),
    "nn": ("composer, sequence\nmodel, n-grams", 2, 1),
    "training": ("loop, checkpoints,\na run's folder", 1, 1),
    "inference": ("predictions,\nexplanations", 0, 1),
    "features": ("n-gram matrices\nfor scikit-learn", 4, 0),
    "report": ("one page about\nruns or documents", 0, 2),
    "tasks": ("labels, loss,\nmetrics", 2, 2),
}
WAYS = [
    ("your files", "formats"),
    ("formats", "engines"),
    ("engines", "corpus"),
    ("corpus", "batching"),
    ("corpus", "features"),
    ("batching", "nn"),
    ("nn", "training"),
    ("training", "inference"),
    ("inference", "report"),
    ("tasks", "nn"),
]


def box(
    axes: Axes, x: float, y: float, text: str, colour: str, w: float = 0.8, h: float = 0.8
) -> None:
    """Draw a rounded box around its centre."""
    style = "round,pad=0,rounding_size=0.12"
    place = (x - w / 2, y - h / 2)
    axes.add_patch(FancyBboxPatch(place, w, h, boxstyle=style, fc=colour, ec="none"))
    axes.text(x, y, text, ha="center", va="center", linespacing=1.5)


def arrow(axes: Axes, begin: tuple[float, float], end: tuple[float, float]) -> None:
    """Draw an arrow."""
    how = {"arrowstyle": "-|>,head_width=0.18,head_length=0.35", "color": FAINT, "lw": 1.3}
    axes.annotate("", xy=end, xytext=begin, arrowprops=how)


def row(axes: Axes, x: float, y: float, names: Sequence[str], rules: str) -> list[float]:
    """Draw symbols side by side, and return where."""
    places = [x + 0.9 * k for k in range(len(names))]
    for place, name in zip(places, names, strict=True):
        box(axes, place, y, name, RULE if name in rules else LETTER)
    return places


def canvas(width: float, bottom: float, top: float, scale: float = 0.5) -> tuple[Figure, Axes]:
    """Return an empty drawing of that many units."""
    figure = Figure(figsize=(width * scale, (top - bottom) * scale))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(bottom, top))
    axes.set_axis_off()
    return figure, axes


def method() -> Figure:
    """Draw text, grammar, tree and model."""
    grammar = laconic.compress(TEXT, "repair")
    size, rules = grammar.alphabet_size, "ABCDEFGH"[: len(grammar.rules)]

    def name(symbol: int) -> str:
        return chr(symbol) if symbol < size else rules[symbol - size]

    sequence = [name(each) for each in grammar.sequence.tolist()]
    pairs = [[name(each) for each in pair] for pair in grammar.rules.tolist()]
    figure, axes = canvas(23.2, 1.6, 9.6)
    for x, title, told in (
        (0.6, "text", f"{len(TEXT)} letters"),
        (6.6, "grammar", "compressed once, by Re-Pair"),
        (12.6, "composer", "a vector per rule, bottom-up"),
        (18.2, "sequence model", f"reads {len(sequence)} symbols"),
    ):
        axes.text(x, 9.0, title, weight="bold", size=13)
        axes.text(x, 8.35, told, color="#6b7280", size=10)
    for k, letter in enumerate(TEXT):
        box(axes, 1.0 + 0.9 * (k % 4), 6.6 - 0.95 * (k // 4), letter, LETTER)
    arrow(axes, (4.9, 5.6), (6.2, 5.6))
    for k, pair in enumerate(pairs):
        box(axes, 7.0, 6.9 - 0.95 * k, rules[k], RULE)
        axes.text(7.85, 6.9 - 0.95 * k, "→", ha="center", va="center")
        row(axes, 8.7, 6.9 - 0.95 * k, pair, rules)
    axes.text(6.6, 3.55, "sequence", color="#6b7280", size=10)
    row(axes, 7.0, 2.7, sequence, rules)
    arrow(axes, (10.9, 5.6), (12.2, 5.6))
    levels = {rules[k]: int(depth) for k, depth in enumerate(grammar.depths)}
    places: dict[str, tuple[float, float]] = {}
    wide = 0.0
    for k, pair in enumerate(pairs):
        if levels[rules[k]] == 1:
            for each in pair:
                box(axes, 13.0 + wide, 3.2, each, LETTER)
                wide += 0.95
            places[rules[k]] = (13.0 + wide - 1.425, 5.0)
            for side in (-0.475, 0.475):
                arrow(
                    axes, (places[rules[k]][0] + side, 3.65), (places[rules[k]][0] + side / 3, 4.55)
                )
        else:
            below = [places[each] for each in pair]
            x = sum(u for u, _ in below) / len(below)
            places[rules[k]] = (x, 3.2 + 1.8 * levels[rules[k]])
            for u, v in below:
                arrow(axes, (u, v + 0.45), (x + (u - x) / 4, places[rules[k]][1] - 0.45))
    for each, (x, y) in places.items():
        box(axes, x, y, each, RULE)
    axes.text(12.6, 2.1, "equal rules of a batch: once", color="#6b7280", size=10)
    arrow(axes, (16.5, 5.6), (17.8, 5.6))
    reads = row(axes, 18.6, 2.7, sequence, rules)
    for k, x in enumerate(reads):
        arrow(axes, (x, 3.15), (x, 4.35))
        box(axes, x, 4.8, "", MODEL, 0.5)
        if k:
            arrow(axes, (reads[k - 1] + 0.2, 4.8), (x - 0.2, 4.8))
        arrow(axes, (x, 5.25), (reads[2] + (x - reads[2]) / 3, 6.25))
    box(axes, reads[2], 6.7, "prediction", MODEL, 2.8)
    return figure


def data() -> Figure:
    """Draw the way of the data through the rooms."""
    figure, axes = canvas(25.2, 0.2, 9.0)
    places = {name: (2.6 + 5 * x, 7.6 - 3 * y) for name, (_, x, y) in ROOMS.items()}
    for name, (told, _, _) in ROOMS.items():
        x, y = places[name]
        colour = LETTER if name == "your files" else MODEL if y < 6 else RULE
        box(axes, x, y, "", colour, 3.9, 2.0)
        axes.text(x, y + 0.55, name, ha="center", va="center", weight="bold", size=12)
        axes.text(x, y - 0.35, told, ha="center", va="center", size=9, linespacing=1.3)
    for begin, end in WAYS:
        (x, y), (u, v) = places[begin], places[end]
        side = (u > x) - (u < x)
        rise = (v > y) - (v < y)
        arrow(axes, (x + 2.0 * side, y + 1.05 * rise), (u - 2.0 * side, v - 1.05 * rise))
    return figure


def main(folder: Path) -> None:
    """Write both pictures."""
    with matplotlib.style.context(STYLE):
        for name, draw in (("method", method), ("data", data)):
            figure = draw()
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
            if "--png" in sys.argv:
                figure.savefig(folder / f"{name}.png", dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent / "docs")
