"""The figures of benchmarks.rulebook in docs/sharing_rules.md; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import Figures


def section(path: Path, figures: Figures) -> str:
    """Return what docs/sharing_rules.md shows between its marks."""
    about, found = figures["about"], figures["rulebook"]
    speed, across, sizes = found["speed"], found["across"], found["sizes"]
    size = speed["bytes"] / 1e6
    lines = [
        f"`{path.name}`: `{about['command']}`, commit {about['commit']}, {about['date']}; {about['machine']}, "
        f"{found['load']:.1f} processes wanted to run before it began.",
        "",
        f"{found['rules']:,} rules of {found['data']}'s {speed['documents']:,} training documents ({size:.1f} MB), {speed['threads']} threads, "
        f"in turns: the fastest of {len(speed['rows']['tokenizers']['learn'])} rounds.",
        "",
        "| | learning, s | times as fast | parsing, s | times as fast | symbols left, million |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, row in speed["rows"].items():
        cells = [
            cell
            for what in ("learn", "parse")
            for cell in (f"{min(row[what]):.2f}", f"{row[f'{what}_ratio']:.1f}")
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {row['symbols'] / 1e6:.2f} |")
    lines += [
        "",
        f'Across words (`boundary="none"`), where tokenizers would hold every document as one word: {across["mb_per_s"]:.1f} MB/s, '
        f"{across['peak_memory_per_byte']:.1f} bytes of memory a byte; {across['symbols'] / 1e6:.2f} million symbols are left.",
        "",
        f"Bytes a document on disk, of {sizes['documents']:,} test documents of {sizes['bytes']:,.0f} bytes under what training documents taught; a "
        "rulebook and a dictionary of its size (8 bytes a rule) are counted, too.",
        "",
        "| | bytes |",
        "|---|--:|",
    ]
    lines += [f"| {name} | {each:,.0f} |" for name, each in sizes["rows"].items()]
    return "\n".join([*lines, ""])
