"""Two sets of DNA in as many epochs, and as many steps, as the paper: who learns, and when."""

from __future__ import annotations

import statistics
from pathlib import Path

from experiments.paper.grid import groups
from experiments.paper.printed import DNA
from experiments.paper.results import Figures
from experiments.paper.table import MISSING, NAMES, Results, caption, spread, table

__all__ = ["learns_section"]

GRID = Path(__file__).parent.parent / "learns"
LONGER = "as_many_steps"  # a folder of the grid, and of its results
_CLOSE = 5.0  # points, on a quarter of the paper's documents
_LEARNED = 0.6  # held-out accuracy, of which chance has a half
EPOCHS = f"""### As many epochs as the paper

The tables above take a small part of the paper's steps, in which mlp hardly begins. The same in batches of 10 and 50 epochs, as the paper prints it, on about a quarter of its documents,
and so in about a quarter of its steps. *Learns*: the first epoch in which more than {_LEARNED:.0%} of held-out documents are right, seed by seed.

```
python -m experiments.paper run --grid experiments/learns --results experiments/results/learns --device cuda --processes 15
```
"""
STEPS = f"""### As many steps as the paper

The same documents for 225 epochs, which are as many steps as the paper's 50 on all of them; the rate is halved as much later.

```
python -m experiments.paper run --grid experiments/learns/{LONGER} --results experiments/results/learns/{LONGER} --device cuda --processes 8
```
"""


def learns_section(results: Results) -> list[str]:
    """Return the sections of docs/results.md; nothing without rows."""
    longer = Results(results.folder / LONGER)
    return [*_section(EPOCHS, results, GRID), *_section(STEPS, longer, GRID / LONGER)]


def _section(introduction: str, results: Results, grid: Path) -> list[str]:
    """Return a section about the rows of a grid; nothing without rows."""
    cells, lines, [group] = [], list[str](), groups(grid)
    planned = dict.fromkeys(name for _, names, _ in group.methods for name in names)
    for name in group.sets:
        for method in planned:
            rows = results.of(name, method)
            if not rows:
                continue
            ours, theirs = results.values(name, method), DNA.get(method, {}).get(name)
            told = [MISSING] * 2
            if theirs is not None:
                points = statistics.mean(ours) - theirs
                told = [f"{theirs:.2f}", f"{points:+.2f}"]
                if method == "mlp-lzd":
                    within = "within" if points >= -_CLOSE else "**not** within"
                    lines.append(
                        f"- mlp on LZD, {name}: {statistics.mean(ours):.1f} %, {within} {_CLOSE:g} "
                        f"points of the paper's {theirs:.1f} %{_failed(rows)}."
                    )
            begins = ", ".join(str(_begins(row) or "never") for row in rows)
            cells.append([name, NAMES[method], spread(ours), *told, begins])
    if not cells:
        return []
    heads = ["", "test accuracy, %", "the paper's", "difference", "learns"]
    return [
        introduction,
        caption(results, group) + "\n",
        "\n".join(table(["", *heads], cells)) + "\n",
        "\n".join(lines) + "\n",
    ]


def _begins(row: Figures) -> int | None:
    """Return the first epoch that learned something, from 1; None if none has."""
    held = row["epochs"]["valid_accuracy"]
    return next((epoch for epoch, each in enumerate(held, 1) if each > _LEARNED), None)


def _failed(rows: list[Figures]) -> str:
    """Return how the seeds do that learn, if some do not."""
    learned = [100 * row["test"]["accuracy"] for row in rows if _begins(row)]
    if not learned or len(learned) == len(rows):
        return ""
    return (
        f"; {statistics.mean(learned):.1f} % of the {len(learned)} of {len(rows)} seeds that learn"
    )
