"""The figures of benchmarks.waiting in docs/serving.md; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import Figures


def section(path: Path, figures: Figures) -> str:
    """Return what docs/serving.md shows between its marks."""
    about, found = figures["about"], figures["waiting"]
    lines = [
        f"`{path.name}`: `{about['command']}`, commit {about['commit']}, {about['date']}; {about['machine']}, no GPU, "
        f"{found['load']:.1f} processes wanted to run when it began.",
        "",
        f"One document at a time, of {found['letters_per_document']:,.0f} letters, by the model that `laconic train` makes of the bundled sample of English by default; "
        "beside it TF-IDF of characters 1–5 and logistic regression; in turns.",
        "",
        "| | median, ms | 95 % within, ms |",
        "|---|--:|--:|",
    ]
    for name, row in found["one_document"].items():
        lines.append(f"| {name} | {row['median_ms']:.1f} | {row['p95_ms']:.1f} |")
    lines += [
        "",
        "Seconds of an epoch on that sample, with the threads that are chosen by default and with `OMP_NUM_THREADS` = 1 and 2; *busy* is beside a process "
        "that keeps one of the two processors busy.",
        "",
        "| | default | 1 | 2 | default / best |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, row in found["epochs"].items():
        shown = name.replace("beside a busy process", "busy")
        cells = [f"{row['median'][threads]:.1f}" for threads in ("default", "1", "2")]
        lines.append(f"| {shown} | {' | '.join(cells)} | {row['ratio_to_best']:.2f} |")
    return "\n".join([*lines, ""])
