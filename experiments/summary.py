"""README's figures: those that people ask for first, each from a committed result.

python -m experiments.summary            # write it; --check only says whether it is up to date
"""

from __future__ import annotations

import sys
from statistics import mean, median

from benchmarks.command import ROOT, Figures
from benchmarks.report import MARKS, all_of, between_marks, newest
from experiments import accurate, converged_page
from experiments.paper.both import CHARACTERS, SHARED
from experiments.paper.results import saw_no_test

README = "README.md"
LIMITS = (
    "  <!-- limits: written by `make docs` from experiments/results/converged -->\n",
    "  <!-- end of limits -->",
)


def table() -> str:
    """Return the table: what is done, how Laconic does, and what stands beside it."""
    rows = [compressing(), counting(), *training(), learning()]
    lines = ["| | Laconic | beside it |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def compressing() -> tuple[str, str, str]:
    """Return the time to compress a short document."""
    short = newest("short")[1]["short"]
    ours, zlib = (short["rows"][name]["median_us"] for name in ("repair", "zlib -6"))
    size = f"{short['bytes_per_document']:.0f} bytes"
    return (
        f"[compress](docs/benchmarks.md) a document of {size}, one thread",
        f"Re-Pair {ours:.1f} µs",
        f"zlib -6 {zlib:.1f} µs",
    )


def counting() -> tuple[str, str, str]:
    """Return the time to count n-grams."""
    speed = newest("ngrams")[1]["ngrams"]["speed"]
    ours, theirs = (
        min(speed["rows"][n]["seconds"]) for n in ("repair, from texts", "scikit-learn")
    )
    low, high = speed["range"]
    return (
        f"[TF-IDF](docs/ngrams.md) of characters {low}–{high}, {speed['documents']:,} reviews",
        f"{ours:.1f} s",
        f"scikit-learn, the same matrix: {theirs:.0f} s",
    )


def training() -> list[tuple[str, str, str]]:
    """Return how fast a Bi-LSTM trains on grammars, on characters, and written plainly."""
    _, figures = all_of("model")[0]
    told = []
    for shape, words in (
        ("yelp", "reviews"),
        ("dna", "DNA"),
        ("pinyin", "long documents in pinyin"),
    ):
        ours, plain = (_speeds(figures, shape, codec) for codec in ("repair", "none"))
        peer = f"; the method written plainly: {ours['peer']:,.0f}" if "peer" in ours else ""
        told.append(
            (
                f"[train](docs/model_speed.md) a Bi-LSTM on {words}, documents/s on one H200",
                f"Re-Pair {ours['graph']:,.0f}",
                f"characters, the same code: {plain['graph']:,.0f}{peer}",
            )
        )
    return told


def _speeds(figures: Figures, shape: str, codec: str) -> dict[str, float]:
    wanted = {"shape": shape, "codec": codec, "composer": "grc", "batch": 126}
    row = next(row for row in figures["model"]["rows"] if wanted.items() <= row.items())
    return {way: median(r["train"]["documents_per_s"]) for way, r in row["results"].items()}


def learning() -> tuple[str, str, str]:
    """Return what the most accurate preset reaches on imdb."""
    rows = accurate.by_method(accurate.BOTH, "imdb")
    linear = accurate.by_method(accurate.RESULTS, "imdb")[accurate.WORDS]
    both, none, words = (
        100 * mean(row["test"]["accuracy"] for row in some)
        for some in (rows[SHARED], rows[CHARACTERS], linear)
    )
    seen = "" if saw_no_test(rows[SHARED], "both") else " (chosen with it in sight)"
    return (
        f"[test accuracy](docs/accuracy.md) on imdb, `--preset both`{seen}",
        f"Re-Pair over a rulebook **{both:.1f} %**",
        f"characters {none:.1f} %; words and pairs of words, linear: {words:.1f} %",
    )


def main() -> None:
    """Write README's figures, or with --check only compare."""
    wanted = between_marks(README, {MARKS: table(), LIMITS: converged_page.limits()})
    if "--check" in sys.argv:
        sys.exit(
            0
            if wanted == (ROOT / README).read_text("utf-8")
            else f"{README} is out of date: run `make docs`"
        )
    (ROOT / README).write_text(wanted, "utf-8")


if __name__ == "__main__":
    main()
