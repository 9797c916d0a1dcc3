"""Pictures of the docs, in the style of reports: the same figures give the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

from laconic.report.figures import ACCENT, style, svg

__all__ = [
    "COLOURS",
    "OTHER",
    "Bar",
    "Label",
    "bars",
    "plain_numbers",
    "saved",
    "style",
    "titled",
    "write_labels",
]

OTHER = "#a8b3c2"  # whatever is not Laconic's
COLOURS = {"repair": ACCENT, "lzd": "#4fa39b", "lz78": "#a3d1cc", "doubled": "#c2703d"}
_SMALL = 8.5  # points, of labels
_FONTS = "system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif"


class Bar(NamedTuple):
    """One bar, and what stands beside it; `cut` says that it would be longer."""

    value: float
    told: str
    colour: str
    cut: bool = False


class Label(NamedTuple):
    """A word to stand beside a point."""

    text: str
    x: float
    y: float
    colour: str


def bars(title: str, groups: Mapping[str, Sequence[Bar]], legend: Mapping[str, str]) -> str:
    """Draw bars in groups, the names of which stand on the left; `legend` has names of colours."""
    count = sum(map(len, groups.values()))
    apart = 0.5 if count > len(groups) else 0.0
    with style():
        figure = titled(title, 0.8 + 0.31 * (count + apart * len(groups)))
        axes = figure.subplots()
        gap = 0.01 * max(bar.value for some in groups.values() for bar in some)
        middles, place = [], 0.0
        for some in groups.values():
            middles.append(place + (len(some) - 1) / 2)
            for bar in some:
                axes.barh(place, bar.value, height=0.78, color=bar.colour)
                axes.text(bar.value + gap, place, bar.told, va="center_baseline")
                if bar.cut:  # a gap in it
                    at = 0.94 * bar.value
                    ends = [at, 1.012 * at], [place + 0.5, place - 0.5]
                    axes.plot(*ends, color="white", linewidth=4)
                place += 1
            place += apart
        axes.set_yticks(middles, list(groups))
        axes.set(xticks=[], ylim=(place - apart - 0.4, -0.6))
        axes.margins(x=0.16)
        axes.grid(False)
        axes.spines[["bottom", "left"]].set_visible(False)
        patches = [Patch(color=colour, label=name) for colour, name in legend.items()]
        if patches:
            axes.legend(handles=patches, loc="upper right", frameon=False)
        return saved(figure)


def titled(title: str, height: float, width: float = 7.5) -> Figure:
    """Return a figure of so many inches to draw on, with its title."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", w_pad=0.1, h_pad=0.1)
    figure.suptitle(title, x=0.11 / width, ha="left", fontsize=12)
    return figure


def saved(figure: Figure) -> str:
    """Return a figure as SVG that stands alone, on white."""
    width, height = 96 * figure.get_size_inches()
    opening = (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="{width:.0f}" height="{height:.0f}" font-family="{_FONTS}"'
    )
    return str(svg(figure, "p", figure.get_suptitle())).replace("<svg", opening, 1) + "\n"


def plain_numbers(panel: Any) -> None:
    """Make both axes logarithmic; write 200 instead of 2 × 10², and only as many as fit."""
    panel.set(xscale="log", yscale="log")
    for axis in (panel.xaxis, panel.yaxis):
        least, most = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < 100 * least else (1,)))
        axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        axis.set_minor_locator(NullLocator())


def write_labels(panel: Any, labels: Sequence[Label]) -> None:
    """Write labels, each where it hides least of what is there: lines, their points, other labels.

    All lines must be drawn, and the axes have their scales.
    """
    panel.figure.draw_without_rendering()  # which finds out where everything is
    points = 72 / panel.figure.dpi
    taken: list[tuple[float, float, float, float, float]] = []  # left, bottom, right, top, weight
    for line in panel.lines:
        at = points * panel.transData.transform(line.get_xydata())
        taken += [(x - 3, y - 3, x + 3, y + 3, 4.0) for x, y in at.tolist()]
        for one, other in pairwise(at):
            between = one + np.linspace(0, 1, 30)[:, None] * (other - one)
            taken += [(x, y, x, y, 1.0) for x, y in between.tolist()]
    for label in labels:
        x, y = points * panel.transData.transform((label.x, label.y))
        wide, high = 0.62 * _SMALL * len(label.text), 0.8 * _SMALL
        places = [(dx, dy) for dy in (4, -4 - high) for dx in (4, -4 - wide, -wide / 2)]
        boxes = [(x + dx - 1, y + dy, x + dx + wide + 1, y + dy + high) for dx, dy in places]
        hidden = [
            sum(w for a, b, c, d, w in taken if a < right and left < c and b < top and low < d)
            for left, low, right, top in boxes
        ]
        best = int(np.argmin(hidden))
        how = {"textcoords": "offset points", "fontsize": _SMALL, "color": label.colour}
        panel.annotate(label.text, (label.x, label.y), places[best], **how)
        taken.append((*boxes[best], 6.0))
