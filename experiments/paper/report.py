"""Writes docs/results.md and its pictures from the results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.command import write_pages
from experiments.paper.both import about_both, both_section
from experiments.paper.differences import DIFFERENCES, about_differences, differences
from experiments.paper.drawing import draw_complexity, draw_memory
from experiments.paper.findings import (
    NOT_YET,
    about_accuracy,
    about_complexity,
    about_compression,
    about_figure,
    summary,
)
from experiments.paper.grid import Group
from experiments.paper.learns import learns_section
from experiments.paper.results import RESULTS
from experiments.paper.table import (
    Results,
    accuracy_table,
    beside_table,
    caption,
    compression_table,
    paper_text_table,
    speed_table,
)

__all__ = ["page", "write_report"]

COLUMNS = 5  # sets in a table, as in the paper
INTRODUCTION = """# The paper's experiments, on our code

Written by `make docs` from `experiments/results/paper`; `python -m experiments.paper --help` says how each part is run.
*Learning Directly from Grammar Compressed Text* (Sasaki, Akimoto and Maehara, ICML 2020) is what we compare with. The
sets are smaller than the paper's or other ones ([where they come from](paper_data.md)), so its accuracies stand beside ours
for orientation only: what can be compared is the order of methods, the ratios of time and memory, and the compression.
"""
MARKS = """† dual_gru is better than mlp with this codec (p < 0.02). ‡ The best setting of the proposed method is less than 5 (DNA)
or 3 points below characters (p < 0.03, 0.02). **Bold** and (brackets): the best setting, significantly better than all others
(p < 0.05) or not. Wilcoxon's rank-sum test, one-sided, Holm's correction over the settings that the best is compared with. All
methods of a seed hold out the same 20 % of train; the epoch that is best there is tested. Linear models on
n-grams are scikit-learn's, on the same documents; the held-out part chooses their regularisation. – : not run yet.
× characters: how many times as fast as characters it trains, alone on the GPU; (n/n'): how many times fewer symbols it reads.
"""
SPEED = """Alone on the GPU, after warm-up, with the batches and settings of the rows above; making batches on the CPU is included. Of grammars:
how many times as fast as characters, and how many times less memory.
"""
SPEED_OF_ROWS = """Not measured alone yet (`python -m experiments.paper speed`). Until then from rows that had the device to themselves: documents per
second of the median epoch, and peak memory. Of grammars: how many times as fast as characters, and how many times less memory.
"""
COMPLEXITY = """One document of fixed length; its first part is English and the rest repeats it. A step is forward, loss and backward of
grc and a Bi-LSTM (d = 200), without CUDA graphs. Characters cost the same however repetitive they are; grammars cost what
their rules and symbols do.
"""
FIGURE = """Dual-GRU, one Bi-LSTM, sizes of batches beside the points. *As in the paper*: plain PyTorch, random batches, packed sequences
(`benchmarks/peer.py`). *Laconic*: documents of similar length, at most 1.4 times the symbols of an average batch, CUDA graphs.
Memory is above model and optimizer. The ratios are at the memory that characters need with their smallest batch.
"""


def page(
    results: Results,
    groups: Sequence[Group],
    both: Results | None = None,
    learns: Results | None = None,
) -> dict[str, str]:
    """Return the files of the page by name: results.md, and the pictures that it shows.

    `both` has the rows of both views over rulebooks, `learns` those of the paper's protocol as
    printed.
    """
    short = summary(results, groups) + (about_both(both, results)[:1] if both else [])
    parts = [INTRODUCTION, "## In short\n", "\n".join(short) + "\n"]
    parts += _compression(results)
    parts += ["## Accuracy\n", MARKS]
    for group in groups:
        parts += _accuracy(results, group)
    parts += learns_section(learns) if learns else []
    parts += [
        "### The paper's own sets of text\n",
        "Its accuracies, %, on sets of which we have other or fewer documents:\n",
        "\n".join(paper_text_table()) + "\n",
    ]
    parts += ["### What the tables say\n", "\n".join(about_accuracy(results, groups)) + "\n"]
    sets = [name for group in groups for name in group.sets]
    parts += ["### Differences and their significance\n", DIFFERENCES]
    parts += ["\n".join(about_differences(results, sets)) + "\n", *differences(results, sets)]
    parts += _speed(results, groups)
    parts += both_section(both, results) if both else []
    pictures: dict[str, str] = {}
    parts += _figure(results, pictures)
    parts += _complexity(results, pictures)
    return {"results.md": "\n".join(parts), **pictures}


def write_report(
    groups: Sequence[Group],
    results: Path = RESULTS,
    to: Path = Path("docs/results.md"),
    check: bool = False,
) -> None:
    """Write the page, or exit with 1 if it is not what would be written."""
    made = page(
        Results(results, groups),
        groups,
        *(Results(results.parent / name) for name in ("both", "learns")),
    )
    write_pages(
        {to: made.pop("results.md")} | {to.parent / name: made[name] for name in made}, check
    )


def _compression(results: Results) -> list[str]:
    figures = results.one("compression")
    if figures is None:
        return ["## Compression\n", NOT_YET + "\n"]
    return [
        "## Compression\n",
        "Letters n, symbols n' of the sequence (mean / largest) and rules, of whole documents, train "
        "and test.\n",
        "\n".join(compression_table(figures)) + "\n",
        "Beside the paper's Table 1. LZD's lengths are counted as there: with one entry for each "
        "distinct letter of a document, and an empty one.\n",
        "\n".join(beside_table(figures)) + "\n",
        about_compression(figures) + "\n",
    ]


def _accuracy(results: Results, group: Group) -> list[str]:
    parts = [f"### {group.title}\n", f"Test accuracy, %. {caption(results, group)}\n"]
    for first in range(0, len(group.sets), COLUMNS):
        sets = group.sets[first : first + COLUMNS]
        parts.append("\n".join(accuracy_table(results, group, sets)) + "\n")
    if "adfa_ld" in group.sets:
        parts += [
            "The same with macro-F1, %, because most traces are of one class:\n",
            "\n".join(accuracy_table(results, group, ["adfa_ld"], "macro_f1")) + "\n",
        ]
    return parts


def _timed(results: Results, sets: Sequence[str]) -> list[str]:
    """Return the methods whose speed was measured on some set."""
    points = (results.one("speed") or {"points": []})["points"]
    methods = dict.fromkeys(point["method"] for point in points if point["set"] in sets)
    return [method for method in methods if method != "characters"]


def _speed(results: Results, groups: Sequence[Group]) -> list[str]:
    sets = [name for group in groups for name in group.sets]
    speed = results.one("speed")
    where = f"Measured on {speed['about']['machine']}. " if speed else ""
    dna = "H3 stands for all sets of DNA, which have the same lengths and batches.\n"
    return [
        "## Training speed and memory\n",
        SPEED if speed else SPEED_OF_ROWS,
        *([where + dna] if speed else []),
        "\n".join(speed_table(results, sets, _timed(results, sets))) + "\n",
    ]


def _figure(results: Results, pictures: dict[str, str]) -> list[str]:
    figures = results.one("figure")
    parts = ["## Memory against time\n", FIGURE]
    if figures is None or not any(point.get("peak_mib") for point in figures["points"]):
        return [*parts, NOT_YET + "\n"]
    pictures["results_memory.svg"] = draw_memory(figures["points"])
    return [
        *parts,
        f"Measured on {figures['about']['machine']}.\n",
        "![Peak memory against seconds per epoch](results_memory.svg)\n",
        "\n".join(about_figure(figures)) + "\n",
    ]


def _complexity(results: Results, pictures: dict[str, str]) -> list[str]:
    parts = ["## Cost follows rules and symbols, not letters\n", COMPLEXITY]
    found = [
        (device, curve)
        for device in ("cuda", "cpu")
        if (curve := results.one(f"complexity-{device}"))
    ]
    if not found:
        return [*parts, NOT_YET + "\n"]
    named = [(curve["about"]["machine"], curve["points"]) for _, curve in found]
    pictures["results_complexity.svg"] = draw_complexity(named)
    parts.append("![Cost of a step](results_complexity.svg)\n")
    for _, curve in found:
        parts.append(f"{curve['about']['machine']}: {about_complexity(curve)}\n")
    return parts
