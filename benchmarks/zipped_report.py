"""The figures of benchmarks.zipped in docs/zip.md; used by benchmarks.report."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.command import Figures

_CODECS = {"deflate": "deflate", "repair": "Re-Pair", "lzd": "LZD", "lz78": "LZ78"}


def section(path: Path, figures: Figures) -> str:
    """Return what docs/zip.md shows between its marks."""
    about, found = figures["about"], figures["zipped"]
    lines = [
        f"`{path.name}`: `{about['command']}`, commit {about['commit']}, {about['date']}; {about['machine']}.",
        "",
        "MB of text per second, one thread, in turns; in brackets the median of the ratios to Re-Pair within a round.",
        "",
    ]
    names = list(next(iter(found["speed"].values()))["rows"])
    lines += [f"| | {' | '.join(names)} |", "|---" + "|--:" * len(names) + "|"]
    for title, part in found["speed"].items():
        cells = [
            f"{statistics.median(row['mb_per_s']):,.1f} ({row['ratio']:,.2f})"
            for row in part["rows"].values()
        ]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    lines += [
        "",
        "Small files that stand for much, in a process of their own; memory beside Python's, the file included.",
        "",
        "| | bytes of .gz | seconds | `gunzip`, seconds | peak memory, MB | sequence | rules |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for title, row in found["small"].items():
        lines.append(
            f"| {title} | {row['bytes']:,} | {row['seconds']:.2f} | {row['gunzip']:.2f} "
            f"| {row['peak'] / 1e6:.1f} | {row['sequence']:,} | {row['rules']:,} |"
        )
    lines += [
        "",
        "Symbols in 100 letters of text: n' of the sequence, and in brackets the size |C| + 2|R| of the grammars. In **bold** the shortest "
        "sequence.",
        "",
        f"| set | documents | letters each | {' | '.join(_CODECS.values())} |",
        "|---" + "|--:" * (2 + len(_CODECS)) + "|",
    ]
    for name, row in found["sets"].items():
        letters, cells = row["letters"], []
        shortest = min(row[codec]["sequence"] for codec in _CODECS)
        for codec in _CODECS:
            sequence, rules = row[codec]["sequence"], row[codec]["rules"]
            told = f"{100 * sequence / letters:.1f}"
            told = f"**{told}**" if sequence == shortest else told
            cells.append(f"{told} ({100 * (sequence + 2 * rules) / letters:.1f})")
        each = letters / row["documents"]
        lines.append(f"| {name} | {row['documents']:,} | {each:,.0f} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])
