"""The figures of benchmarks.ngrams in docs/ngrams.md, and its picture; used by benchmarks.report."""

from __future__ import annotations

from pathlib import Path

from benchmarks.command import Figures
from benchmarks.pictures import COLOURS, OTHER, plain_numbers, saved, style, titled

CODECS = {"repair": "Re-Pair", "lzd": "LZD", "lz78": "LZ78", "none": "none"}
LINES = {
    "scikit-learn": "scikit-learn",
    "lz78": "Laconic, LZ78",
    "lzd": "Laconic, LZD",
    "repair": "Laconic, Re-Pair",
    "doubled": "a rule per doubling",
}


def section(path: Path, figures: Figures) -> str:
    """Return what docs/ngrams.md shows between its marks."""
    about, found = figures["about"], figures["ngrams"]
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    runs = ", ".join(
        f"`{run['command']}` (commit {run['commit']})" for run in found["runs"].values()
    )
    lines = [
        f"`{path.name}`: {runs}; data: {about['data']}; {about['date']}; {about['machine']}; {versions}.",
        "",
        *_speed(found["speed"]),
        *_repeats(found["repeats"]),
        *_accuracy(found["accuracy"]),
        *_memory(found["memory"]),
    ]
    return "\n".join(lines)


def _speed(speed: Figures) -> list[str]:
    low, high = speed["range"]
    lines = [
        f"**Time.** TF-IDF of {speed['documents']:,} documents ({speed['letters'] / 1e6:.1f} M letters), characters {low}-{high}, "
        f"`max_features={speed['max_features']:,}`, the same names and columns. In one run, contestants in turns, the "
        "fastest round of each, two threads; *from texts* includes compressing them. Both processors were free; "
        "the gain needs that: five earlier runs beside other programs gave 8 to 74 times (medians then, and two of them before weights were threaded), and "
        "the ratio of processor seconds is what to expect of one processor.",
        "",
        "| | seconds | times scikit-learn's speed | processor seconds, all threads | ratio | largest difference of an entry |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, row in speed["rows"].items():
        codec, _, source = name.partition(", ")
        title = f"Laconic, {CODECS[codec]}, {source}" if source else name
        gap = f"{row['difference']:.0e}" if "difference" in row else ""
        lines.append(
            f"| {title} | {min(row['seconds']):.2f} | {row['ratio']:.1f} "
            f"| {min(row['cpu_seconds']):.2f} | {row['cpu_ratio']:.1f} | {gap} |"
        )
    return [*lines, ""]


def _repeats(repeats: Figures) -> list[str]:
    rows = repeats["rows"]
    last = rows[-1]
    told = []
    for name, title in (("scikit-learn", "scikit-learn"), ("repair", "on Re-Pair's grammar")):
        found = [row for row in rows if name in row]
        told.append(
            f"{title} {1e3 * found[0][name]:.2f} ms for k = 1 and {1e3 * found[-1][name]:,.2f} ms for k = {found[-1]['k']:,}"
        )
    return [
        f"**Repeated documents.** A document of {repeats['letters']:,} letters repeated k times, one thread: {'; '.join(told)}; on a grammar "
        f"with a rule for each doubling {1e3 * last['doubled']:.2f} ms for k = {last['k']:,}, {last['k'] * repeats['letters'] / 1e9:.1f} billion letters.",
        "",
    ]


def _accuracy(accuracy: Figures) -> list[str]:
    lines = [
        "**Accuracy** of logistic regression on our matrix and on scikit-learn's own (`sublinear_tf=True`; texts: characters 1-5, "
        "200,000 features, C = 10; DNA: k-mers 3-6, C = 1), and the seconds that the features of the training documents took:",
        "",
        "| set | train / test | ours % | scikit-learn's % | ours s | scikit-learn's s |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, row in accuracy.items():
        ours, theirs = row["ours"], row["scikit-learn"]
        lines.append(
            f"| {name} | {row['train']:,} / {row['test']:,} | {100 * ours['accuracy']:.2f} | {100 * theirs['accuracy']:.2f} "
            f"| {ours['features_s']:.2f} | {theirs['features_s']:.2f} |"
        )
    return [*lines, ""]


def _memory(memory: Figures) -> list[str]:
    return [
        f"**Memory.** `laconic features {memory['words']}` on a corpus of {memory['text_bytes'] / 1e9:.2f} GB of text ({memory['documents']:,} documents): "
        f"{memory['seconds']:.0f} s, peak memory {memory['peak_memory'] / 1e6:.0f} MB, a matrix of {memory['matrix_bytes'] / 1e9:.1f} GB.",
        "",
    ]


def picture(repeats: Figures) -> str:
    """Return docs/ngrams.svg: seconds against k, both axes logarithmic."""
    rows = repeats["rows"]
    with style():
        title = f"Seconds to count the 1-5-grams of {repeats['letters']:,} letters repeated k times"
        figure = titled(title, 3.8)
        axes = figure.subplots()
        for name, title in LINES.items():
            some = [(row["k"], row[name]) for row in rows if name in row]
            colour = COLOURS.get(name, OTHER)
            line = "--" if name == "doubled" else "-"
            axes.plot(*zip(*some, strict=True), line, color=colour, label=title, marker="o", ms=4)
        plain_numbers(axes)
        axes.set_xticks([row["k"] for row in rows[::2]])
        axes.set(xlabel="k", ylabel="seconds")
        figure.legend(loc="outside right center", frameon=False)
        return saved(figure)
