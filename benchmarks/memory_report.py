"""The section of docs/model_speed.md that shows benchmarks.memory; used by benchmarks.report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from benchmarks.command import Figures


def section(path: Path, figures: Figures) -> str:
    """Return what a card of 8 GB learns beside one with more, and what it takes."""
    about, rows = figures["about"], figures["memory"]["rows"]
    sets = "; ".join(
        f"*{name}*: {of['documents']:,} documents of {of['letters']:,.0f} letters, "
        f"{of['longest']:,} at most"
        for name, of in figures["memory"]["sets"].items()
    )
    worst, beside = max(rows, key=ratio), about.get("beside")
    told = f" Beside it ran {beside}, so that speeds are left out." if beside else ""
    lines = [
        "## Memory of a training\n",
        f"{_epochs(figures['memory'].get('epochs', 1))} of a part of each set, in a process that may take 8 GB of the GPU and in one that may take all; steps, seeds and documents are the same.",
        "Allocated is what tensors took at the peak, reserved what PyTorch held for them. A batch of 64 documents is cut into so many pieces, on average.\n",
        f"`{path.name}`: `{about['command']}`, {about['machine']}, commit {about['commit']}, {about['date']}, torch {about['versions']['torch']}.{told} {sets}.\n",
        *([about["note"] + "\n"] if "note" in about else []),
        f"Reserved is at most {ratio(worst):.2f} × what is allocated ({worst['set']}, {worst['settings']}).\n",
        "| set | settings | may take | allocated MB | reserved MB | | pieces | documents/s | held-out accuracy % |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|",
    ]
    keys = dict.fromkeys((row["set"], row["settings"], row["limited"]) for row in rows)
    for name, settings, limited in keys:
        some = [
            r for r in rows if (r["set"], r["settings"], r["limited"]) == (name, settings, limited)
        ]
        cells = [
            name,
            settings,
            "8 GB" if limited else "all",
            f"{_most(some, 'peak_memory_mb'):,.0f}",
            f"{_most(some, 'reserved_memory_mb'):,.0f}",
            f"{max(map(ratio, some)):.2f} ×",
            f"{mean(row['pieces_per_batch'] for row in some):.2f}",
            ""
            if beside or "beside" in some[0]
            else f"{mean(row['documents_per_s'] for row in some):,.0f}",
            ", ".join(f"{100 * row['accuracy']:.1f}" for row in some),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def ratio(row: Figures) -> float:
    """Return how many times what is allocated is reserved."""
    found: float = row["reserved_memory_mb"] / row["peak_memory_mb"]
    return found


def _epochs(count: int) -> str:
    return "One epoch" if count == 1 else f"{count} epochs"


def _most(rows: Sequence[Figures], name: str) -> float:
    return float(max(row[name] for row in rows))
