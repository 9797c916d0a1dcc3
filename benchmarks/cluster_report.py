"""What docs/reliability.md says of Ray's and Spark's processes; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.cluster import LIMIT
from benchmarks.command import Figures

MARKS = (
    "<!-- clusters: written by `make docs` from benchmarks/results -->\n",
    "<!-- end of clusters -->",
)


def section(path: Path, figures: Figures) -> str:
    """Return what docs/reliability.md says of the memory of clusters' processes."""
    about, found = figures["about"], figures["cluster"]
    inputs = found["inputs"]
    note = f" ({about['note']})" if "note" in about else ""
    lines = [
        f"Written by `make docs` from `benchmarks/results/{path.name}`: `{about['command']}`, commit {about['commit']}{note},",
        f"{about['date']}, {about['machine']}.",
        "",
        f"The input is {inputs['source']} {inputs['copies']} times over, {inputs['bytes'] / 1e9:.2f} GB: as {inputs['copies']} files "
        f"(`many`), and as one that no worker can cut (`one.csv`). {found['workers']} workers on",
        f"{found['processors']} processors that had other work to do, too; the driver is the process that began the work, and the aim is "
        f"{LIMIT / 1e6:.0f} MB for it. MB are of",
        "resident memory at the peak, libraries included, of the largest process of each kind; Spark's JVM is beside them.",
        "",
        "| engine | input | driver MB | worker MB | JVM MB | s | bytes | |",
        "|---|---|--:|--:|--:|--:|---|---|",
    ]
    for row in found["rows"]:
        peaks = (row["peak_memory"].get(kind) for kind in ("driver", "worker", "jvm"))
        shown = " | ".join("–" if peak is None else f"{peak / 1e6:,.0f}" for peak in peaks)
        same = "as local" if row["same_bytes"] else "**others**"
        lines.append(
            f"| {row['engine']} | {row['input']} | {shown} | {row['seconds']:,.0f} | {same} | `{row['command']}` |"
        )
    return "\n".join(lines) + "\n"
