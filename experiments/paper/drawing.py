"""The pictures of docs/results.md, as SVG that is the same from the same figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.pictures import COLOURS, Label, plain_numbers, saved, style, titled, write_labels
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
WAYS = {"peer": ("as in the paper", "#64748b"), "ours": ("Laconic", COLOURS["repair"])}


def draw_memory(points: Sequence[Figures]) -> str:
    """Draw peak memory against the time of an epoch, one panel for each set, as the paper has it.

    Labels are sizes of batches.
    """
    measured = [p for p in points if p.get("peak_mib")]
    with style():
        figure = titled("Peak memory against the time of an epoch, by size of batches", 7.5, 9)
        for panel, (name, title) in zip(figure.subplots(2, 2).flat, SETS.items(), strict=True):
            panel.set_title(title, loc="left", fontsize=10.5)
            panel.set(xlabel="peak memory of a step, MiB", ylabel="seconds per epoch")
            _panel(panel, [p for p in measured if p["set"] == name])
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
        return saved(figure)


def draw_complexity(found: Iterable[tuple[str, Sequence[Figures]]]) -> str:
    """Draw seconds and memory of a step against |R| + n', for each device that was measured."""
    devices = list(found)
    with style():
        title = "Cost of a training step on one document, by how much of it is repetition"
        figure = titled(title, 0.4 + 3.3 * len(devices), 9)
        rows = figure.subplots(len(devices), 2, squeeze=False)
        for (device, points), axes in zip(devices, rows, strict=True):
            pairs = (("seconds", "seconds per step"), ("peak_mb", "peak memory, MB"))
            for panel, (key, label) in zip(axes, pairs, strict=True):
                panel.set_title(device.split(",")[0], loc="left", fontsize=10.5)
                panel.set(xlabel="rules + symbols of the sequence", ylabel=label)
                _curves(panel, points, key)
        figure.axes[0].legend(frameon=False)
        return saved(figure)


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


def _curves(panel: Any, points: Sequence[Figures], key: str) -> None:
    """Draw one line for each codec; beside some points stands the share that is repeated."""
    labels = []
    for codec, (name, line, marker) in CODECS.items():
        some = [p for p in points if p["codec"] == codec and p[key] > 0]
        some.sort(key=lambda p: int(p["rules"] + p["sequence"]))
        xs, ys = [p["rules"] + p["sequence"] for p in some], [p[key] for p in some]
        colour = COLOURS.get(codec, WAYS["peer"][1])
        panel.plot(xs, ys, line, marker=marker, color=colour, label=name, markersize=5)
        for x, y, p in zip(xs, ys, some, strict=True):
            if codec == "repair" or (codec == "none" and p["share"] == 0):
                labels.append(Label(f"{100 * p['share']:.0f} %", x, y, colour))
    panel.margins(0.14)
    if labels:
        plain_numbers(panel)
        write_labels(panel, labels)


def _panel(panel: Any, points: Sequence[Figures]) -> None:
    labels = []
    for way, (told, colour) in WAYS.items():
        for codec, (name, line, marker) in CODECS.items():
            some = [p for p in points if (p["way"], p["codec"]) == (way, codec)]
            some.sort(key=lambda p: int(p["batch"]))
            xs, ys = [p["peak_mib"] for p in some], [p["epoch_s"] for p in some]
            label = f"{told}: {name}"
            panel.plot(xs, ys, line, marker=marker, color=colour, label=label, markersize=5)
            sizes = [str(p["batch"]) for p in some]
            labels += [Label(*each, colour) for each in zip(sizes, xs, ys, strict=True)]
    panel.margins(0.1)
    if labels:
        plain_numbers(panel)
        write_labels(panel, labels)
