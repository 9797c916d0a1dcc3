"""Figures as SVG: text stays text, and the same numbers give the same bytes.

No name that a user chose is drawn: matplotlib would take dollars for formulas and lack glyphs.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.errors import needs
from laconic.report.markup import Html

with needs("a report", "report"):
    import matplotlib.style
    from matplotlib.axes import Axes
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, MaxNLocator

Floats: TypeAlias = npt.NDArray[np.float64]
ACCENT, INK, FAINT = "#0f766e", "#374151", "#e5e7eb"
# Each is easy to see on white, and the first ones are told apart by nearly every eye.
COLOURS = (ACCENT, "#c2611f", "#6d5bd0", "#b8457f", "#2f78bd", "#7c7f1e", "#64748b", "#78716c")
_MOST_POINTS = 2400  # of a figure's curves together: more cannot be seen, and would fill the file
_MOST_DOTS = 100
_MOST_PIXELS = 200  # of a side of a heat map

_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#9ca3af",
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "font.size": 10.5,
    "grid.color": FAINT,
    "grid.linewidth": 0.8,
    "lines.linewidth": 2.0,
    "svg.fonttype": "none",
    "svg.hashsalt": "laconic",
    "text.color": INK,
    "xtick.color": INK,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.major.size": 0,
}


class Curve(NamedTuple):
    """Points (epoch, value) and how to draw them."""

    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False
    kept: float | None = None  # an epoch to ring


def curves(name: str, label: str, lines: Sequence[Curve], share: bool = False) -> Html:
    """Draw values over epochs, of a `share` in percent; the figure's ids begin with `name`."""
    with style():
        figure = Figure(figsize=(5, 3.2))
        axes = figure.subplots()
        dots = sum(len(curve.points) for curve in lines) <= _MOST_DOTS
        for curve in lines:
            x, y = _thinned(curve.points, max(20, _MOST_POINTS // len(lines)))
            axes.plot(
                x,
                y,
                color=curve.colour,
                linestyle=(0, (2, 2)) if curve.dashed else "-",
                linewidth=1.4 if curve.dashed else 2.2,
                marker="o" if len(x) == 1 or dots else "",
                markersize=2.5 if curve.dashed else 4,
            )
            axes.plot(
                *_thinned([point for point in curve.points if point[0] == curve.kept], 1),
                color=curve.colour,
                marker="o",
                markersize=10,
                markerfacecolor="none",
                markeredgewidth=1.5,
            )
        last = max((x for curve in lines for x, _ in curve.points), default=1.0)
        first = min((x for curve in lines for x, _ in curve.points), default=1.0)
        pad = 0.9 if first == last else 0.03 * (last - first)
        axes.set_xlim(first - pad, last + pad)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True, min_n_ticks=1))
        axes.set_xlabel("epoch")
        if share:
            axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{round(100 * y, 6):g} %"))
        return svg(figure, name, label)


def calibration(
    name: str, bins: Sequence[tuple[float, float, float]], colour: str = ACCENT
) -> Html:
    """Draw how often predictions of each (confidence, accuracy, documents) were right."""
    with style():
        figure = Figure(figsize=(5, 3.7))
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="#9ca3af", linewidth=1, linestyle=(0, (4, 3)))
        confidence, accuracy, counts = np.array(bins, dtype=float).reshape(-1, 3).T
        shares = counts / max(1.0, counts.max(initial=0.0))
        axes.plot(confidence, accuracy, color=colour, linewidth=1.6)
        axes.scatter(confidence, accuracy, s=12 + 130 * shares, color=colour, alpha=0.75, zorder=3)
        axes.set(
            xlim=(-0.02, 1.04),
            ylim=(-0.02, 1.04),
            xlabel="confidence",
            ylabel="share that was right",
        )
        return svg(figure, name, "How often predictions of each confidence were right")


def heat_map(name: str, shares: Floats) -> Html:
    """Draw a confusion matrix too large for a table: float [K, K], each row's shares."""
    with style():
        figure = Figure(figsize=(5, 4.4))
        axes: Axes = figure.subplots()
        colours = LinearSegmentedColormap.from_list("laconic", ["#ffffff", ACCENT])
        # Square roots: a confusion of 1 % must show beside 99 % of right answers. Few colours and
        # one pixel for each number make a small image.
        drawn = np.round(np.sqrt(_coarse(shares)) * 15) / 15
        ends = (-0.5, len(shares) - 0.5)
        axes.imshow(
            drawn, cmap=colours, vmin=0, vmax=1, interpolation="none", extent=(*ends, *ends[::-1])
        )
        axes.grid(False)
        axes.set(xlabel="predicted class", ylabel="true class")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(nbins=8, integer=True))
        return svg(figure, name, "Confusion matrix: shares of each true class")


def style() -> AbstractContextManager[None]:
    """Return the style of all figures; what is drawn and saved in it has it."""
    return matplotlib.style.context(["default", _STYLE])


def _coarse(shares: Floats) -> Floats:
    """Return the largest shares within squares: float [S, S], S at most _MOST_PIXELS."""
    step = -(-len(shares) // _MOST_PIXELS)
    starts = np.arange(0, len(shares), step)
    rows = np.maximum.reduceat(shares, starts, axis=0)
    coarse: Floats = np.maximum.reduceat(rows, starts, axis=1)
    return coarse


def _thinned(points: Sequence[tuple[float, float]], most: int) -> tuple[list[float], list[float]]:
    if len(points) > most:
        chosen = np.linspace(0, len(points) - 1, most).round().astype(int)
        points = [points[k] for k in chosen]
    return [x for x, _ in points], [y for _, y in points]


def svg(figure: Figure, name: str, label: str) -> Html:
    """Return a figure for a page: in the fonts and the width of what is around it."""
    file = io.StringIO()
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :].rstrip()
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<style[^>]*>.*?</style>\s*", "", text, flags=re.DOTALL)
    # Within one page ids must differ; those that nothing points to only fill the file.
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', text))
    text = re.sub(r' id="([^"]*)"', lambda m: f' id="{name}-{m[1]}"' if m[1] in used else "", text)
    text = re.sub(r'(url\(#|href="#)', rf"\g<1>{name}-", text)
    text = re.sub(r" font-family: [^;]*;", "", text)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"\n\s*", "\n", text)
    text = re.sub(r'="[^"]*"', lambda m: re.sub(r"-?\d+\.\d{3,}", _short, m[0]), text)
    start = rf'<svg role="img" aria-label="{label}" \1>'
    return Html(re.sub(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>', start, text, count=1))


def _short(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}"
