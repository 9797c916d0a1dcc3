"""The figures of benchmarks.explore in docs/explore.md; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import Figures


def section(path: Path, figures: Figures) -> str:
    """Return what docs/explore.md shows between the marks of figures."""
    about, found = figures["about"], figures["explore"]
    vast = found["vast"]
    lines = [
        f"`{path.name}`: `{about['command']}`, commit {about['commit']}, {about['date']}; {about['machine']}, shared with "
        f"others (load {found['load']:.1f} at the beginning). Waits are from a request to the whole page, of documents in random order.",
        "",
        f"| {found['source']} | documents | from the command to the list, s | a document, ms: median, 95 %, slowest | processor, ms | the same while counting | all counted after, s | a search, ms | peak memory, MB |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in found["corpora"].items():
        lines.append(
            f"| {name} | {row['documents']:,} | {row['list_s']:.2f} | {_waits(row['counted'])} | {row['counted']['cpu_ms']:.0f} | {_waits(row['while_counting'])} "
            f"| {row['counted_s']:.1f} | {row['search_ms']:,.0f} | {row['peak_memory'] / 1e6:,.0f} |"
        )
    lines += [
        "",
        f"One document of {vast['letters']:,} letters: its first part takes {vast['first_part_ms']:,.0f} ms, parts anywhere in it "
        f"{_waits(vast['parts'])} ms (median, 95 %, slowest; {vast['parts']['cpu_ms']:.0f} ms of processor); peak memory {vast['peak_memory'] / 1e6:,.0f} MB.",
    ]
    return "\n".join([*lines, ""])


def _waits(row: Figures) -> str:
    return f"{row['median_ms']:,.0f}, {row['p95_ms']:,.0f}, {row['max_ms']:,.0f}"
