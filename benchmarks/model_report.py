"""The page and the picture that show the figures of benchmarks.model; used by benchmarks.report."""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.command import Figures
from benchmarks.pictures import COLOURS, OTHER, Bar, bars

WAYS = {"graph": "Laconic, CUDA graphs", "eager": "Laconic, eager", "peer": "paper-style peer"}
CODECS = {
    "repair": "Re-Pair",
    "lzd": "LZD",
    "repair+auto": "Re-Pair over a rulebook",
    "none": "none",
}
INTRODUCTION = """# Speed and memory of models

Written by `make docs` from `benchmarks/results/model-*.json`.

One training step is: copy the batch to the device, forward, backward, Adam. The model has d = 200 and one Bi-LSTM
layer. *yelp* are 3,800 reviews, *yelp_all* 12,835, *dna* 2,649 sequences of 500 letters, *pinyin* 600 long documents,
*adfa* traces of system calls. The *peer* (`benchmarks/peer.py`) is the method in plain PyTorch as the paper describes
it: random batches, packed sequences, rules of each document apart, autograd. `none` is the same model reading
characters: a codec without rules, under the same sampler and code. Ours come in batches of documents of similar length,
at most 1.4 times the symbols of an average batch, so that batches of long documents have fewer of them: this is why they
need no more memory than the peer's, whose random batches mix long and short. Memory is what a step has allocated at its
peak, above the model and the optimizer; what is reserved, which graphs and caches keep from step to step, includes these. CUDA graphs
were captured before the rounds that are timed.
"""


def speed(results: Figures, way: str, phase: str = "train") -> float | None:
    """Return documents per second, the median of rounds; None if it did not run."""
    found = results.get(way, {}).get(phase)
    return statistics.median(found["documents_per_s"]) if found else None


def share(found: Figures, part: str) -> str:
    """Return how much of a step a part takes when it runs alone."""
    shares = found.get("shares")
    if not shares:
        return ""
    value = shares.get(part)
    if value is None:
        value = shares[f"{part}_ms"] / shares["step_ms"]
    return f"{100 * value:.0f} %"


def table(rows: list[Figures]) -> list[str]:
    """One line per row and way."""
    lines = [
        "| documents | codec | composer | batch, at most | on average | | documents/s | ms per step | predict/s | peak MiB | reserved | composer | Bi-LSTM | collate ms |",
        "|---|---|---|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in rows:
        for way, found in row["results"].items():
            if "error" in found:
                continue
            memory = [found.get(name) for name in ("peak_mib", "reserved_mib")]
            cells = [
                row["shape"],
                CODECS[row["codec"]],
                row["composer"],
                f"{row['batch']}",
                f"{(speed(row['results'], way) or 0) * found['train']['ms_mean'] / 1e3:.0f}",
                WAYS[way],
                f"{speed(row['results'], way):,.0f}",
                f"{found['train']['ms_mean']:,.1f}",
                f"{speed(row['results'], way, 'infer'):,.0f}",
                *("" if each is None else f"{each:,.0f}" for each in memory),
                share(found, "composer"),
                share(found, "sequence_model"),
                f"{found['collate_ms']:.1f}",
            ]
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def findings(rows: list[Figures]) -> list[str]:
    """The ratios that matter, from the fastest way that was measured."""
    way = "graph" if any("graph" in row["results"] for row in rows) else "eager"
    by = {(r["shape"], r["codec"], r["composer"], r["batch"]): r["results"] for r in rows}
    lines = []
    for (shape, codec, composer, batch), results in by.items():
        title = f"{shape}, {CODECS[codec]}, {composer}, batch {batch}"
        ours, peer = speed(results, way), speed(results, "peer")
        if ours and peer and codec != "none":
            less = ""
            if results[way]["peak_mib"]:
                less = (
                    f", {results[way]['peak_mib'] / results['peer']['peak_mib']:.2f} × its memory"
                )
            lines.append(f"- {title}: **{ours / peer:.1f} ×** the peer's documents/s{less}.")
        plain = speed(by.get((shape, "none", composer, batch), {}), way)
        if ours and plain and codec != "none":
            lines.append(f"- {title}: {ours / plain:.2f} × the documents/s of characters.")
        small = speed(by.get((shape, codec, composer, 126), {}), way)
        if ours and small and batch == 1024:
            lines.append(f"- {title}: {ours / small:.2f} × the documents/s of batch 126.")
        peer = speed(by.get((shape, codec, composer, 126), {}), "peer")
        if ours and peer and batch == 1024:
            lines.append(f"- {title}: **{ours / peer:.1f} ×** the documents/s of the peer at 126.")
    return lines


def recurrent(path: Path, figures: Figures) -> str:
    """Return the section that shows a recurrent layer alone, ours beside cuDNN's."""
    about = figures["about"]
    lines = [
        "## A recurrent layer alone\n",
        "Both directions of one layer, microseconds per time step, our kernels (laconic.nn.kernels) beside cuDNN as PyTorch calls it, both as",
        f"CUDA graphs of {figures['steps']} steps: prediction, and forward and backward with all gradients. Errors are the largest differences from float64, in",
        "shares of the largest value.\n",
        f"`{path.name}`: `{about['command']}`, {about['machine']}, commit {about['commit']}, {about['date']}, torch {about['versions']['torch']}.\n",
        *([about["note"] + "\n"] if "note" in about else []),
        "| cell | width | batch | predict, ours | cuDNN | train, ours | cuDNN | | error of outputs, ours | cuDNN | of gradients, ours | cuDNN |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in figures["recurrent"]:
        times = [
            row[f"{who}_{what}_us"] for what in ("predict", "train") for who in ("ours", "cudnn")
        ]
        errors = [
            row[f"{who}_{of}_error"] for of in ("outputs", "gradients") for who in ("ours", "cudnn")
        ]
        cells = [
            row["cell"],
            row["width"],
            row["documents"],
            *(f"{time:.2f}" for time in times),
            f"{times[3] / times[2]:.1f} ×",
            *(f"{error:.1e}" for error in errors),
        ]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


def page(
    results: list[tuple[Path, Figures]],
    layer: tuple[Path, Figures],
    kernels: tuple[Path, Figures],
) -> str:
    """Return docs/model_speed.md."""
    parts = [INTRODUCTION, "![Documents per second](model_speed.svg)\n"]
    for path, figures in results:
        about = figures["about"]
        versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
        parts.append(f"## {about['machine']}\n")
        parts.append(
            f"`{path.name}`: `{about['command']}`, data: {about['data']}, commit {about['commit']}, "
            f"{about['date']}; {versions}.\n"
        )
        if "note" in about:
            parts.append(about["note"] + "\n")
        rows = figures["model"]["rows"]
        parts.append("\n".join(findings(rows)) + "\n")
        parts.append("\n".join(table(rows)) + "\n")
    path, figures = kernels
    about, rows = figures["about"], figures["with_kernels"]["rows"]
    parts += [
        "## Time steps and levels by kernels of our own\n",
        f"`{path.name}`: `{about['command']}`, {about['machine']}, {about['date']}, torch {about['versions']['torch']}.\n",
        about["note"] + "\n",
        "\n".join(findings(rows)) + "\n",
        "\n".join(table(rows)) + "\n",
    ]
    return "\n".join([*parts, recurrent(*layer)])


def picture(rows: list[Figures]) -> str:
    """Return docs/model_speed.svg: bars of documents/s on yelp, dual_gru, batch 126."""
    colours = {"peer": OTHER, "eager": COLOURS["lz78"], "graph": COLOURS["repair"]}
    groups: dict[str, list[Bar]] = {}
    for codec, title in {"none": "characters", "repair": "Re-Pair", "lzd": "LZD"}.items():
        for row in rows:
            if (row["shape"], row["codec"], row["composer"]) == ("yelp", codec, "dual_gru"):
                of = {way: speed(row["results"], way) for way in colours}
                groups[title] = [Bar(v, f"{v:,.0f}", colours[way]) for way, v in of.items() if v]
    return bars(
        "Documents per second in training: Yelp reviews, Dual-GRU, an H200",
        groups,
        {
            c: WAYS[w]
            for w, c in colours.items()
            if any(b.colour == c for g in groups.values() for b in g)
        },
    )
