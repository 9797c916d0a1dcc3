"""Accuracy against the length of what is read, over sizes of rulebooks: tables and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from matplotlib.ticker import MaxNLocator

from benchmarks.data import DATASETS
from benchmarks.pictures import COLOURS, Label, saved, style, titled, write_labels
from experiments.paper.grid import Group, Method, groups, shared_rules
from experiments.paper.table import Results, caption, spread, table
from laconic.rulebook import RULES

__all__ = ["PICTURE", "Size", "draw_sizes", "sizes_of", "sizes_section"]

HERE = Path(__file__).parent
PICTURE = "rulebooks_sizes.svg"
_LETTERS = 4  # of DNA: so many texts of four letters are as many rules as are learned by default
SIZES = """## How many rules to share

```
python -m experiments.paper run --grid experiments/sizes --results experiments/results/sizes --device cuda --processes 15
```

The more rules are shared, the shorter is what is read: n' is the mean length of a sequence. Of reviews and pinyin, no rules and as many as
are learned by default are the rows of the tables above. Lines at points: standard deviations over seeds.
"""


@dataclass(frozen=True)
class Size:
    """A rulebook of so many rules: the symbols that are read of a document, and how well."""

    rules: int
    symbols: float
    accuracies: list[float]

    @property
    def mean(self) -> float:
        """The mean accuracy in %."""
        return mean(self.accuracies)

    @property
    def deviation(self) -> float:
        """The standard deviation over seeds; 0 of one."""
        return stdev(self.accuracies) if len(self.accuracies) > 1 else 0.0


def sizes_of(name: str, results: Results, converged: Results, methods: Sequence[str]) -> list[Size]:
    """Return what there is of a set, the fewest rules first."""
    default = RULES if DATASETS[name].kind != "dna" else min(RULES, _LETTERS**4)
    found: dict[int, Size] = {}
    for where in (results, converged):
        for method in (*methods, "grc-repair", "grc-repair+auto"):
            named = shared_rules(Method.named(method).codec)[1]
            rules, rows = default if named is None else named, where.of(name, method)
            if rows and rules not in found:
                symbols = mean(row["documents"]["sequence"] for row in rows)
                found[rules] = Size(rules, symbols, where.values(name, method))
    return [found[rules] for rules in sorted(found)]


def sizes_section(results: Path, converged: Results) -> tuple[list[str], dict[str, str]]:
    """Return the section of docs/rulebooks.md, and its picture by name."""
    own = Results(results)
    parts, drawn = [SIZES], dict[str, list[Size]]()
    for group, name in _sets():
        methods = [method for _, names, _ in group.methods for method in names]
        # Rows of other tables alone would be no curve.
        if any(own.of(name, method) for method in methods):
            drawn[name] = sizes_of(name, own, converged, methods)
            parts += [f"{name}. {caption(own, group)}\n", "\n".join(_table(drawn[name])) + "\n"]
    if not drawn:
        return parts, {}
    parts.insert(1, f"![Accuracy against the length of what is read]({PICTURE})\n")
    return parts, {PICTURE: draw_sizes(drawn)}


def draw_sizes(sets: Mapping[str, Sequence[Size]]) -> str:
    """Draw accuracy against n', a panel for each set; labels are how many rules are shared."""
    with style():
        title = "Accuracy against the length of what is read, by rules that documents share"
        figure = titled(title, 3.4, max(7.5, 3.6 * len(sets)))
        panels = figure.subplots(1, len(sets), squeeze=False)[0]
        for panel, (name, sizes) in zip(panels, sets.items(), strict=True):
            panel.set_title(name, loc="left", fontsize=10.5)
            panel.set(xlabel="symbols of a sequence, n'", ylabel="test accuracy, %")
            _curve(panel, sizes)
        return saved(figure)


def _curve(panel: Any, sizes: Sequence[Size]) -> None:
    colour = COLOURS["repair"]
    xs, ys = [each.symbols for each in sizes], [each.mean for each in sizes]
    panel.plot(xs, ys, "-", marker="o", color=colour, markersize=5)
    for each in sizes:
        ends = [each.mean - each.deviation, each.mean + each.deviation]
        panel.vlines(each.symbols, *ends, color=colour, linewidth=1)
    panel.margins(0.24, 0.14)
    panel.xaxis.set_major_locator(MaxNLocator(5))
    write_labels(panel, [Label(f"{s.rules:,}", s.symbols, s.mean, colour) for s in sizes])


def _table(sizes: Sequence[Size]) -> list[str]:
    cells = [[f"{s.rules:,}", f"{s.symbols:,.0f}", spread(s.accuracies)] for s in sizes]
    return table(["shared rules", "n'", "accuracy"], cells)


def _sets() -> Iterator[tuple[Group, str]]:
    for group in groups(HERE / "sizes"):
        for name in group.sets:
            yield group, name
