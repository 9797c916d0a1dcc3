"""What docs/reliability.md says of corpora larger than memory; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import Figures
from benchmarks.stream import LIMIT

MARKS = (
    "<!-- larger than memory: written by `make docs` from benchmarks/results -->\n",
    "<!-- end of larger than memory -->",
)


def section(path: Path, figures: Figures) -> str:
    """Return what docs/reliability.md says of corpora larger than memory."""
    about, found = figures["about"], figures["stream"]
    corpus = found["corpus"]
    lines = [
        f"Written by `make docs` from `benchmarks/results/{path.name}`: `{about['command']}`, commit {about['commit']},",
        f"{about['date']}, {about['machine']}.",
        "",
        f"The corpus is {corpus['source']} {corpus['copies']} times over: {corpus['documents']:,} documents, "
        f"{corpus['bytes'] / 1e9:.2f} GB on disk in {corpus['row_groups']:,} row groups,",
        f"{corpus['letters'] / 1e9:.1f} GB of text, {corpus['bytes_in_memory'] / 1e9:.1f} GB as grammars in memory. "
        f"Each command runs in a process of its own on {found['processors']} processors;",
        f"the aim is {LIMIT / 1e9} GB. MB are of resident memory, libraries included, at the peak and in each quarter of the time.",
        "",
        "| command | peak MB | quarters | s | |",
        "|---|--:|---|--:|---|",
    ]
    for name, row in found["rows"].items():
        quarters = ", ".join(f"{peak / 1e6:.0f}" for peak in row["peaks_of_quarters"])
        lines.append(
            f"| {name} | {row['peak_memory'] / 1e6:,.0f} | {quarters} | {row['seconds']:,.0f} | `{row['command']}` |"
        )
    lines += [
        "",
        "Training reads all of the corpus several times, for the first pass, for the n-gram table and to validate; its epoch is cut short",
        "to some of the documents, which are those of a few buffers. Seconds are of a machine that had other work to do, too.",
        *[f"\n{name}: {row['note']}." for name, row in found["rows"].items() if "note" in row],
    ]
    return "\n".join(lines) + "\n"
