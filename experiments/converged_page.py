"""Write docs/rulebooks.md: what shared rules are worth, everything trained until it is done.

The page says how the rows are run; `--check` only says whether it is what would be written.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean, median

from benchmarks.command import write_pages
from experiments.paper.grid import Group, groups
from experiments.paper.significance import welch
from experiments.paper.table import Results, caption, spread, table
from experiments.rulebook_sizes import sizes_section
from experiments.sample_reads import RESULTS as SAMPLE_RESULTS

HERE = Path(__file__).parent
GRID = HERE / "converged"
RESULTS = HERE / "results" / "converged"
PAGE = Path("docs") / "rulebooks.md"
SHARED, PRIVATE, PAIRS, LETTERS = "grc-repair+auto", "grc-repair", "bpe", "characters"
SPARSE = "grc-none+64"  # what held-out documents prefer where it was tried, which is DNA
_NOISE = 0.05  # p below which a difference is none of chance
COLUMNS = {
    SHARED: "over a rulebook",
    SPARSE: "64 shared rules only",
    PRIVATE: "private rules only",
    PAIRS: "byte pairs",
    LETTERS: "characters",
}
INTRODUCTION = """# What shared rules are worth

Written by `make docs` from `experiments/results/converged`. [What a rulebook is](sharing_rules.md), and
[what models make of it](models.md#shared-symbols).

Reading only: one Bi-LSTM (d = 200) over the symbols, no n-grams, nothing counted; the same epochs, batches and settings for all methods of a
set, long enough for characters, which need the most steps. *Over a rulebook*: the rules that `Rulebook.learn` makes of the training documents by default,
Re-Pair on top, grc. *64 shared rules only*: so few, and no private ones on top, which held-out parts of the ten DNA sets preferred
to more shared rules, with private ones and without. *Private rules only*: the same without the rulebook. *Byte pairs*: 4,000 of the package tokenizers, a learned vector each. The
rulebook's defaults (half within words, how many) were chosen on held-out parts of training sets ([how](models.md#shared-symbols)), no test in sight.
Rows whose settings name `kernels` ran on Laconic's own LSTM, all others on cuDNN's.

```
python -m experiments.paper run --grid experiments/converged --results experiments/results/converged --device cuda --processes 12
```
"""
FEW = """## Few documents

A vector for every shared symbol has to be learned from few uses. *Spelled and learned*: what models do, the composer's vector of a symbol's letters and a learned one
beside it, where four training documents have the symbol. *Spelled only*: no learned ones. *Learned only*: shared symbols are letters, of which nobody
knows how they are spelled. Everything (the rulebook, too) from so many documents at random; sogou_pinyin has 2,400 in all.

```
python -m experiments.paper run --grid experiments/few/1000 --results experiments/results/few/1000 --device cuda --processes auto
```
"""
KERNELS = """## Kernels of our own, and cuDNN's

The rows over a rulebook of the tables above ran on Laconic's own LSTM (bf16 products, float32 states). The same rows on cuDNN's float32, `--no-kernels`:
test accuracy, %, over the same seeds; *p* is that of Welch's test, two-sided, that the two are the same.

```
python -m experiments.paper run --grid experiments/cudnn --results experiments/results/cudnn --device cuda --processes 15
```
"""
SAMPLE = """## On a laptop

The bundled sample of English (1,920 passages of the King James text that train, 480 that test, six classes), read over a rulebook by the preset `fast` on a CPU in
six epochs; test accuracy, %, mean ± standard deviation over seeds. Its test documents were looked at before, while examples were written, but
the preset was chosen on held-out parts of other sets.

```
python -m experiments.sample_reads
```
"""
VECTORS = {
    SHARED: "spelled and learned",
    "grc_spelled-repair+auto": "spelled only",
    "grc-repair+auto_letters": "learned only",
}
TABLES = """Test accuracy, %, mean ± standard deviation over seeds, and n', the mean length of what is read. **Bold**: the best mean.
"""


def page() -> dict[str, str]:
    """Return the files of the page by name: rulebooks.md, and the picture that it shows."""
    results, of = Results(RESULTS), groups(GRID)
    parts = [INTRODUCTION, "## In short\n", "\n".join(findings(results, of)) + "\n"]
    parts += ["## Accuracy\n", TABLES]
    for group in of:
        parts += [f"### {group.title}\n", caption(results, group) + "\n"]
        parts.append("\n".join(_table(results, group)) + "\n")
    sizes, pictures = sizes_section(HERE / "results" / "sizes", results)
    parts += [FEW, *_few(), *sizes, SAMPLE, _sample(), KERNELS, *_kernels()]
    return {PAGE.name: "\n".join(parts), **pictures}


def _sample() -> str:
    """Return what the preset fast reads of the bundled sample."""
    figures = json.loads(SAMPLE_RESULTS.read_text("utf-8"))
    accuracies = [100 * each["accuracy"] for each in figures["seeds"]]
    about = figures["about"]
    told = f"`laconic train train.csv -o run {figures['flags']}`, commit {about['commit']}, {about['machine']}"
    return (
        f"{told}: **{spread(accuracies)}** ({', '.join(f'{each:.1f}' for each in accuracies)}).\n"
    )


def _few() -> Iterator[str]:
    """Yield a table for each number of documents: what gives shared symbols their vectors."""
    for folder in sorted((HERE / "few").iterdir()):
        results, of = Results(HERE / "results" / "few" / folder.name), groups(folder)
        sets = [name for group in of for name in group.sets if results.of(name, SHARED)]
        cells = [[name, *(spread(results.values(name, m)) for m in VECTORS)] for name in sets]
        yield f"{int(folder.name):,} training documents:\n"
        yield "\n".join(table(["", *VECTORS.values()], cells)) + "\n"


def _kernels() -> Iterator[str]:
    """Yield a table of the same rows with kernels of our own and with cuDNN's, and what it says."""
    ours, theirs = Results(RESULTS), Results(HERE / "results" / "cudnn")
    cells, apart = [], list[str]()
    for group in groups(HERE / "cudnn"):
        for name in group.sets:
            rows = [row for row in ours.of(name, SHARED) if row["config"].get("kernels")]
            pair = [100 * row["test"]["accuracy"] for row in rows], theirs.values(name, SHARED)
            if not all(pair):
                continue
            points = mean(pair[0]) - mean(pair[1])
            p = min(1.0, 2 * min(welch(*pair), welch(pair[1], pair[0])))
            apart += [name] if p < _NOISE else []
            cells.append([name, *map(spread, pair), f"{points:+.2f}", f"{p:.2f}"])
    if not cells:
        yield "Not measured yet.\n"
        return
    heads = ["kernels of our own", "cuDNN, float32", "difference", "p"]
    yield "\n".join(table(["", *heads], cells)) + "\n"
    where = f"all but {', '.join(apart)}" if apart else f"all {len(cells)} sets"
    yield f"The difference is within noise (p of at least {_NOISE:g}) on {where}.\n"


def findings(results: Results, of: Iterable[Group]) -> list[str]:
    """Return on how many sets the rulebook is at or above each rival, and where not."""
    sets = [name for group in of for name in group.sets]
    lines = []
    for rival in (PRIVATE, PAIRS, LETTERS, None):
        pairs = beside(results, sets, rival or LETTERS, best=rival is None)
        below = [f"{name} {b - a:.1f}" for name, (a, b) in pairs.items() if a < b]
        if pairs:
            gains = [a - b for a, b in pairs.values()]
            more = f"; below on {', '.join(below)}" if below else ""
            chosen = "" if rival else f", if DNA has {COLUMNS[SPARSE]}"
            lines.append(
                f"- Against {COLUMNS[rival or LETTERS]}{chosen}: at or above on {len(pairs) - len(below)} of "
                f"{len(pairs)} sets, by {median(gains):.1f} points in the median and "
                f"{max(gains):.1f} at most{more}."
            )
    return lines


def beside(
    results: Results, sets: Iterable[str], rival: str, best: bool = False
) -> dict[str, tuple[float, float]]:
    """Return the mean accuracies over a rulebook and of a rival, of the sets that have both.

    With `best`, the rulebook is the one that held-out documents prefer.
    """
    return {
        name: (ours, theirs)
        for name in sets
        if (ours := results.mean(name, SPARSE if best and results.of(name, SPARSE) else SHARED))
        is not None
        and (theirs := results.mean(name, rival)) is not None
    }


def limits() -> str:
    """Return what README says of characters and byte pairs: where they are ahead."""
    results = Results(RESULTS)
    sets = [name for group in groups(GRID) for name in group.sets]
    letters, pairs = (beside(results, sets, rival, best=True) for rival in (LETTERS, PAIRS))
    ahead = {name: theirs - ours for name, (ours, theirs) in letters.items() if theirs > ours}
    above = sum(ours > theirs for ours, theirs in pairs.values())
    private, byte_pairs = (results.mean("imdb", method) for method in (PRIVATE, PAIRS))
    return (
        f"  On {len(ahead)} of {len(letters)} sets ({', '.join(ahead)}) a Bi-LSTM that reads characters, trained until it converges, is\n"
        f"  up to {max(ahead.values(), default=0):.1f} points ahead of one that reads grammars over a [rulebook](docs/rulebooks.md) (of DNA: 64 shared rules, no private ones). On the other\n"
        f"  {len(letters) - len(ahead)} grammars are at or above it, and above byte pairs on {above} of {len(pairs)} sets of text and traces; with private rules alone they are\n"
        f"  below byte pairs on reviews (imdb: {private:.1f} against {byte_pairs:.1f} %). One to three seeds each.\n"
    )


def _table(results: Results, group: Group) -> list[str]:
    shown = [m for m in COLUMNS if any(results.of(name, m) for name in group.sets)]
    rows = []
    for name in group.sets:
        means = {method: results.mean(name, method) or 0.0 for method in shown}
        cells = [name]
        for method in shown:
            found = results.of(name, method)
            cell = spread(results.values(name, method))
            if found and means[method] == max(means.values()):
                cell = f"**{cell}**"
            length = f" ({found[0]['documents']['sequence']:,.0f})" if found else ""
            cells.append(cell + length)
        rows.append(cells)
    return table(["", *(f"{COLUMNS[method]} (n')" for method in shown)], rows)


if __name__ == "__main__":
    made = {PAGE.parent / name: text for name, text in page().items()}
    write_pages(made, check="--check" in sys.argv[1:])
