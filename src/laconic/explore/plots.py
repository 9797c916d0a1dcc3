"""Plots of a corpus as SVG: bars that say how many documents there are of each size."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from laconic.report.markup import Html, element, joined
from laconic.report.numbers import count
from laconic.show import how_many

_WIDE, _HIGH, _BARS = 480, 190, 30
_BOTTOM, _TOP = 165, 20


def histogram(title: str, values: npt.NDArray[np.float64], log: bool = False) -> Html:
    """Return a figure with how many values are in each of some ranges, `log` of equal ratios."""
    if not len(values):
        return Html()
    low, high = float(values.min()), float(values.max())
    log = log and low > 0 and high > 4 * low
    # A few documents unlike all others would leave no room for these.
    last = high if log else min(high, low + 1.5 * (float(np.quantile(values, 0.99)) - low))
    last = last if last > low else high
    whole = bool((values == np.round(values)).all())
    if whole and last - low < _BARS:
        last = float(np.ceil(last))
        edges = np.arange(low, last + 2)  # a bar for each number
    elif log:
        edges = np.geomspace(low, high, _BARS + 1)
    else:
        edges = np.linspace(low, last if last > low else low + 1, _BARS + 1)
    values = np.minimum(values, edges[-1])
    numbers, _ = np.histogram(values, edges)
    half, most = _number(float(np.median(values))), int(numbers.max(initial=1)) or 1
    told = f"From {_number(low)} to {_number(high)}; half of the documents have at most {half}."
    step = _WIDE / len(numbers)
    bars = [
        element(
            "rect",
            x=f"{k * step + 0.5:.1f}",
            y=f"{_BOTTOM - tall:.1f}",
            width=f"{step - 1:.1f}",
            height=f"{tall:.1f}",
        )
        for k, tall in enumerate((_BOTTOM - _TOP) * numbers / most)
        if tall
    ]
    places = np.linspace(0, len(numbers) - 1, min(5, len(numbers))).astype(int).tolist()
    labels = [
        element(
            "text",
            _number(round(edges[k]) if whole else edges[k])
            + (" or more" if k == len(numbers) - 1 and high > last else ""),
            x=f"{(k + k / (len(numbers) - 1 or 1)) * step:.0f}",
            y=_HIGH - 4,
            text_anchor="end" if k == places[-1] and k else "middle" if k else "start",
        )
        for k in places
    ]
    top = element("text", how_many(most, "document"), x=0, y=_TOP - 6)
    line = element("line", x1=0, x2=_WIDE, y1=_BOTTOM, y2=_BOTTOM)
    box = f"0 0 {_WIDE} {_HIGH}"
    name = f"{title}. {told}"
    drawn = element(
        "svg", *bars, line, top, *labels, viewBox=box, role="img", aria_label=name, class_="plot"
    )
    scale = " The scale is logarithmic." if log else ""
    return element(
        "figure", element("h3", title), drawn, element("figcaption", joined(told, scale))
    )


def _number(value: float) -> str:
    return count(round(value)) if value >= 20 or value == round(value) else f"{value:.2f}"
