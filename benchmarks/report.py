"""Write the tables and the picture that show benchmarks/results: `make docs`.

python -m benchmarks.report           # what is generated in docs/
python -m benchmarks.report --check   # only say whether they are up to date
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Mapping
from pathlib import Path

from benchmarks import (
    cluster_report,
    explore_report,
    memory_report,
    model_report,
    ngrams_report,
    readers_report,
    rulebook_report,
    stream_report,
    waiting_report,
    zipped_report,
)
from benchmarks.command import ROOT, Figures, write_pages
from benchmarks.pictures import COLOURS, OTHER, Bar, bars

MARKS = (
    "<!-- figures: written by `make docs` from benchmarks/results -->\n",
    "<!-- end of figures -->",
)
NAMES = {"repair": "Laconic Re-Pair", "lzd": "Laconic LZD", "lz78": "Laconic LZ78"}


def newest(kind: str) -> tuple[Path, Figures]:
    """Return the results measured last that have figures of this kind."""
    read = [
        (path, json.loads(path.read_text()))
        for path in (ROOT / "benchmarks/results").glob("*.json")
    ]
    found = [(path, figures) for path, figures in read if kind in figures]
    if not found:
        sys.exit(f"benchmarks/results has no figures of {kind}; run `make bench` first")
    return max(found, key=lambda item: (item[1]["about"]["date"], item[0].name))


def all_of(kind: str) -> list[tuple[Path, Figures]]:
    """Return the newest results with figures of this kind of every machine, GPUs first."""
    newest_of: dict[str, tuple[Path, Figures]] = {}
    for path in sorted((ROOT / "benchmarks/results").glob("*.json")):
        figures = json.loads(path.read_text())
        if kind in figures:
            newest_of[figures["about"]["machine_name"]] = path, figures
    return sorted(newest_of.values(), key=lambda item: "gpu" not in item[1]["about"]["versions"])


def short_table(short: Figures) -> list[str]:
    """One row per contestant on many short documents."""
    lines = [
        "| | µs per document | time / zlib -6 | MB/s | sequence | rules | bytes |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in short["rows"].items():
        sizes = [f"{row[key]:.0f}" if key in row else "" for key in ("sequence", "rules", "bytes")]
        lines.append(
            f"| {NAMES.get(name, name)} | {row['median_us']:,.1f} | {row['ratio_to_zlib_6']:.2f} "
            f"| {row['mb_per_s']:.1f} | {' | '.join(sizes)} |"
        )
    return lines


def large_table(large: Figures) -> list[str]:
    """One row per contestant on one large document."""
    lines = [
        "| | MB/s | speed / zlib -6 | sequence | rules | (sequence + 2 rules) / n | bytes | peak memory / n |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in large["rows"].items():
        sizes = [f"{row[key]:,}" if key in row else "" for key in ("sequence", "rules")]
        share = f"{row['symbols_per_byte']:.4f}" if "symbols_per_byte" in row else ""
        packed = f"{row['bytes']:,}" if "bytes" in row else ""
        lines.append(
            f"| {NAMES.get(name, name)} | {statistics.median(row['mb_per_s']):.1f} "
            f"| {row['ratio_to_zlib_6']:.2f} | {' | '.join(sizes)} | {share} | {packed} "
            f"| {row['peak_memory_per_byte']:.1f} |"
        )
    return lines


def heading(title: str, path: Path, about: Figures) -> list[str]:
    """What every page says of its figures."""
    versions = ", ".join(f"{name} {number}" for name, number in about["versions"].items())
    return [
        title,
        "",
        f"Written by `make docs` from `benchmarks/results/{path.name}`, which holds every round.",
        "",
        f"- Command: `{about['command']}`, data: {about['data']}, commit {about['commit']}, {about['date']}",
        f"- Machine: {about['machine']}",
        f"- Versions: {versions}",
        "",
    ]


def document(path: Path, figures: Figures) -> str:
    """Return docs/benchmarks.md."""
    about, short = figures["about"], figures["short"]
    lines = [
        *heading("# Benchmarks of compression", path, about),
        "Contestants take turns, round by round; times are medians, ratios are medians of the ratios within a",
        "round. Machines like this are shared and drift: the ratios are what counts.",
        "",
        "![Microseconds to compress a document](compress.svg)",
        "",
        f"## {short['documents']:,} documents of {short['bytes_per_document']:.0f} bytes, one thread",
        "",
        f"English ({short['source']}); zlib and zstd are called once per document from Python, tokenizers learns",
        "byte pairs on each document. *Bytes*: for grammars, every symbol at ⌈log2(256 + rules)⌉ bits, without any",
        "entropy coding.",
        "",
        *short_table(short),
        "",
        "Speed-up on more threads: "
        + "; ".join(
            f"{NAMES[codec]} "
            + ", ".join(f"{s:.2f} on {n}" for n, s in row["speedup"].items() if n != "1")
            for codec, row in figures["threads"].items()
        )
        + ".",
    ]
    for title, large in figures["large"].items():
        lines += ["", f"## One document: {title}", "", *large_table(large)]
    lines += ["", "Peak memory counts the document itself and all that is returned."]
    return "\n".join(lines) + "\n"


def corpora(path: Path, figures: Figures) -> str:
    """Return docs/corpora.md."""
    about, cost = figures["about"], figures["cost"]
    ways = list(
        dict.fromkeys(
            way for each in figures["sizes"].values() for way in each["bytes_per_document"]
        )
    )
    others = ["gzip -6 of each document", "Parquet of the text, zstd -3"]
    lines = [
        *heading("# Benchmarks of corpora", path, about),
        "## Bytes per document",
        "",
        "Whole files, labels and metadata included. *Compact* is `--compact`; the rest are plain lists, zstd level 3",
        "unless another is named. In **bold** what is at or under gzip -6 of each document.",
        "",
        f"| set | documents | letters each | {' | '.join([*others, *ways])} |",
        "|---" * (3 + len(others) + len(ways)) + "|",
    ]
    for name, row in figures["sizes"].items():
        limit = row["gzip -6 of each document"]
        cells = [f"{row[other]:,.0f}" for other in others]
        for way in ways:
            size = row["bytes_per_document"][way]
            cells.append(f"**{size:,.0f}**" if size <= limit else f"{size:,.0f}")
        lines.append(
            f"| {name} | {row['documents']:,} | {row['letters_per_document']:,.0f} | {' | '.join(cells)} |"
        )
    work = cost["cpu_seconds"] - cost["start_cpu_seconds"]
    lines += [
        "",
        f"## `laconic compress` on {cost['input_bytes'] / 1e6:.1f} MB ({cost['source']}), Re-Pair",
        "",
        f"{cost['seconds']:.2f} s, of which {cost['work']:.2f} s are not start-up; peak memory {cost['peak_memory'] / 1e6:.0f} MB. "
        f"Its {cost['workers']} threads are inside the codec {100 * cost['codec_threads'] / cost['workers'] / cost['work']:.0f} % of that time, "
        f"and at least one of them is {100 * cost['codec_running'] / cost['work']:.0f} % of it. Of processor time, {cost['cpu_seconds']:.2f} s "
        f"with {cost['start_cpu_seconds']:.2f} s of start-up, the codec takes {cost['codec_cpu_seconds']:.2f} s (measured alone, on the same "
        f"parts): {100 * cost['codec_cpu_seconds'] / work:.0f} % of what is not start-up; writing Parquet takes most of the rest.",
    ]
    if "large" in figures:
        big = figures["large"]
        lines += [
            "",
            f"{big['input_bytes'] / 1e9:.1f} GB made by repeating it: {big['seconds']:.0f} s, peak memory {big['peak_memory'] / 1e6:.0f} MB, "
            f"threads inside the codec {100 * big['codec_threads'] / cost['workers'] / big['work']:.0f} % of the time.",
        ]
    return "\n".join(lines) + "\n"


def picture(short: Figures) -> str:
    """Return docs/compress.svg: one bar per contestant, that of tokenizers cut off."""
    rows = {name: row["median_us"] for name, row in short["rows"].items() if name != "zlib -9"}
    limit = 1.15 * max(us for name, us in rows.items() if name != "tokenizers")
    groups = {}
    for name, us in sorted(rows.items(), key=lambda item: item[1]):
        told = f"{us:,.0f} (bar cut)" if us > limit else f"{us:.1f}"
        bar = Bar(min(us, limit), told, COLOURS.get(name, OTHER), us > limit)
        groups[NAMES.get(name, name)] = [bar]
    size = f"{short['bytes_per_document']:.0f}"
    return bars(f"Microseconds to compress one English document of {size} characters", groups, {})


def between_marks(name: str, sections: Mapping[tuple[str, str], str]) -> str:
    """Return a page with texts where their figures are: each between the marks that name it."""
    page = (ROOT / name).read_text()
    for (begin, end), text in sections.items():
        before, _, rest = page.partition(begin)
        page = before + begin + text + end + rest.partition(end)[2]
    return page


def main() -> None:
    """Write the files, or check that they are what would be written."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="exit with 1 if a file is out of date")
    check = parser.parse_args().check
    path, figures = newest("short")
    models = all_of("model")
    ngrams = newest("ngrams")
    wanted = {
        "docs/benchmarks.md": document(path, figures),
        "docs/corpora.md": corpora(*newest("sizes")),
        "docs/compress.svg": picture(figures["short"]),
        "docs/explore.md": between_marks(
            "docs/explore.md", {MARKS: explore_report.section(*newest("explore"))}
        ),
        "docs/ngrams.md": between_marks("docs/ngrams.md", {MARKS: ngrams_report.section(*ngrams)}),
        "docs/ngrams.svg": ngrams_report.picture(ngrams[1]["ngrams"]["repeats"]),
        "docs/reliability.md": between_marks(
            "docs/reliability.md",
            {
                readers_report.MARKS: readers_report.section(*newest("readers")),
                stream_report.MARKS: stream_report.section(*newest("stream")),
                cluster_report.MARKS: cluster_report.section(*newest("cluster")),
            },
        ),
        "docs/serving.md": between_marks(
            "docs/serving.md", {MARKS: waiting_report.section(*newest("waiting"))}
        ),
        "docs/sharing_rules.md": between_marks(
            "docs/sharing_rules.md", {MARKS: rulebook_report.section(*newest("rulebook"))}
        ),
        "docs/zip.md": between_marks(
            "docs/zip.md", {MARKS: zipped_report.section(*newest("zipped"))}
        ),
        "docs/model_speed.md": model_report.page(
            models, newest("recurrent"), newest("with_kernels")
        )
        + "".join("\n" + memory_report.section(*each) for each in all_of("memory")),
        "docs/model_speed.svg": model_report.picture(models[0][1]["model"]["rows"]),
    }
    write_pages({ROOT / name: text for name, text in wanted.items()}, check)


if __name__ == "__main__":
    main()
