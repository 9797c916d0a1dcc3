"""The figures of benchmarks.readers in docs/reliability.md; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import Figures
from laconic.formats.registry import MODULES

MARKS = (
    "<!-- readers: written by `make docs` from benchmarks/results -->\n",
    "<!-- end of readers -->",
)


def section(path: Path, figures: Figures) -> str:
    """Return what docs/reliability.md shows between the marks of readers."""
    about, found = figures["about"], figures["readers"]
    order = {name: at for at, name in enumerate(MODULES)}
    rows = sorted(found["rows"], key=lambda row: order[row["reader"]])
    commits = sorted({row.get("commit", about["commit"]) for row in rows})
    most = max(rows, key=lambda row: row["peak_memory"] - row["largest"])
    over = [row for row in rows if row["peak_memory"] > found["allowed"] + row["largest"]]
    lines = [
        f"`{path.name}`: `{about['command']}`, commit {' and '.join(commits)}, {about['date']}; {about['machine']}.",
        "",
        f"Of {len(rows)} inputs, {len(over) or 'none'} took more than {found['allowed'] / 1e9:.0f} GB beside the largest "
        f"document; most took {most['reader']}, {most['what']}: {most['peak_memory'] / 1e6:,.0f} MB"
        + (
            f", the document of {most['largest'] / 1e6:,.0f} MB included."
            if most["largest"]
            else "."
        ),
        "",
        "| reader | | input | bytes as stored | peak memory, MB | largest document, MB | seconds | outcome |",
        "|---|---|---|--:|--:|--:|--:|---|",
    ]
    for row in rows:
        largest = f"{row['largest'] / 1e6:,.0f}" if row["largest"] >= 1e6 else "–"
        lines.append(
            f"| {row['reader']} | {row['kind']} | {row['what']} | {row['bytes']:,} "
            f"| {row['peak_memory'] / 1e6:,.0f} | {largest} | {row['seconds']:.0f} | {_outcome(row)} |"
        )
    return "\n".join([*lines, ""])


def _outcome(row: Figures) -> str:
    if row["error"]:
        return f"error: {row['error']}".replace("|", "\\|")
    rejected = f", {row['rejected']:,} rejected" if row["rejected"] else ""
    return f"{row['documents']:,} documents{rejected}"
