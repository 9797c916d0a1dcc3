"""The pictures of docs/results.md, as SVG that is the same from the same figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from experiments.paper.results import Figures

__all__ = ["draw_complexity", "draw_memory", "fixed_memory"]

SETS = {
    "pinyin": "sogou_pinyin",
    "yelp": "yelp_polarity_part",
    "adfa": "adfa_ld",
    "dna": "H3",
}
CODECS = {
    "none": ("characters", "-", "s"),
    "repair": ("Re-Pair", "--", "^"),
    "lzd": ("LZD", ":", "o"),
}
WAYS = {"peer": ("as in the paper", "#9aa5b1"), "ours": ("Laconic", "#1f6fb2")}


def draw_memory(points: Sequence[Figures], path: Path) -> None:
    """Draw peak memory against the time of an epoch, one panel for each set, as the paper has it.

    Labels are sizes of batches. They are placed by adjustText where that is installed, and to the
    right of their points otherwise.
    """
    measured = [p for p in points if p.get("peak_mib")]
    with mpl.rc_context({"svg.hashsalt": "laconic", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 7), layout="constrained")
        FigureCanvasAgg(figure)  # adjustText asks it how large labels are
        for panel, (name, title) in zip(figure.subplots(2, 2).flat, SETS.items(), strict=True):
            some = [p for p in measured if p["set"] == name]
            panel.set(title=title, **_scales(some))
            panel.set(xlabel="peak memory of a step, MiB", ylabel="seconds per epoch")
            _panel(panel, some)
            _plain_numbers(panel, some)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
        _save(figure, path)


def draw_complexity(found: Iterable[tuple[str, Sequence[Figures]]], path: Path) -> None:
    """Draw seconds and memory of a step against |R| + n', for each device that was measured."""
    devices = list(found)
    with mpl.rc_context({"svg.hashsalt": "laconic", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(9, 3.4 * len(devices)), layout="constrained")
        rows = figure.subplots(len(devices), 2, squeeze=False)
        for (device, points), axes in zip(devices, rows, strict=True):
            pairs = (("seconds", "seconds per step"), ("peak_mb", "peak memory, MB"))
            for panel, (key, label) in zip(axes, pairs, strict=True):
                for codec, (name, line, marker) in CODECS.items():
                    some = [p for p in points if p["codec"] == codec and p[key] > 0]
                    some.sort(key=lambda p: int(p["rules"] + p["sequence"]))
                    xs = [p["rules"] + p["sequence"] for p in some]
                    panel.plot(xs, [p[key] for p in some], line, marker=marker, label=name)
                    for x, p in zip(xs, some, strict=True):
                        if codec == "repair" or (codec == "none" and p["share"] == 0):
                            told, at = f"{100 * p['share']:.0f} %", (x, p[key])
                            beside = {"xytext": (-4, 5), "textcoords": "offset points"}
                            panel.annotate(told, at, fontsize=7, ha="right", **beside)
                measured = [p for p in points if p[key] > 0]
                panel.set(xlabel="rules + symbols of the sequence", ylabel=label)
                panel.set(title=device.split(",")[0], **_scales(measured))
                panel.margins(0.12)
                _plain_numbers(panel, measured)
        figure.axes[0].legend(frameon=False)
        _save(figure, path)


def fixed_memory(points: Sequence[Figures], name: str, way: str, codec: str) -> float | None:
    """Return how many times as fast a codec is as characters within the same memory.

    The memory is what characters need with their smallest batch. The codec's time with so much is
    read between its own points, or is that of the largest batch that was measured if all need less.
    """

    def curve(which: str) -> list[tuple[float, float]]:
        return sorted(
            (p["peak_mib"], p["epoch_s"])
            for p in points
            if (p["set"], p["way"], p["codec"]) == (name, way, which) and p.get("peak_mib")
        )

    plain, other = curve("none"), curve(codec)
    if not plain or not other:
        return None
    memory, seconds = plain[0]
    xs, ys = np.log(np.array(other)).T
    return float(seconds / np.exp(np.interp(np.log(memory), xs, ys)))


def _scales(points: Sequence[Figures]) -> dict[str, Any]:
    """Logarithmic ones, which need a point."""
    return {"xscale": "log", "yscale": "log"} if points else {}


def _plain_numbers(panel: Any, points: Sequence[Figures]) -> None:
    """Write 200 instead of 2 × 10², and no more numbers than there is room for."""
    if not points:
        return
    for axis in (panel.xaxis, panel.yaxis):
        least, most = axis.get_view_interval()
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if most < 100 * least else (1,)))
        axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
        axis.set_minor_formatter(NullFormatter())


def _panel(panel: Any, points: Sequence[Figures]) -> None:
    texts = []
    for way, (told, colour) in WAYS.items():
        for codec, (name, line, marker) in CODECS.items():
            some = [p for p in points if (p["way"], p["codec"]) == (way, codec)]
            some.sort(key=lambda p: int(p["batch"]))
            xs, ys = [p["peak_mib"] for p in some], [p["epoch_s"] for p in some]
            label = f"{told}: {name}"
            panel.plot(xs, ys, line, marker=marker, color=colour, label=label, markersize=5)
            for p, x, y in zip(some, xs, ys, strict=True):
                texts.append(panel.text(x, y, f" {p['batch']}", fontsize=7, color=colour))
    if texts and find_spec("adjustText"):
        from adjustText import adjust_text

        # By default it stops after a second, wherever it is then.
        every = [p["peak_mib"] for p in points], [p["epoch_s"] for p in points]
        adjust_text(texts, *every, ax=panel, iter_lim=200)


def _save(figure: Figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
    # Matplotlib ends some lines with blanks.
    text = path.read_text("utf-8")
    path.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")
