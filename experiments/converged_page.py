"""Write docs/rulebooks.md: what shared rules are worth, everything trained until it is done.

The page says how the rows are run; `--check` only says whether it is what would be written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median

from benchmarks.command import write_pages
from experiments.paper.grid import Group, Method, groups, shared_rules
from experiments.paper.table import Results, caption, spread, table

HERE = Path(__file__).parent
GRID = HERE / "converged"
RESULTS = HERE / "results" / "converged"
PAGE = Path("docs") / "rulebooks.md"
SHARED, PRIVATE, PAIRS, LETTERS = "grc-repair+auto", "grc-repair", "bpe", "characters"
SPARSE = "grc-none+64"  # what held-out documents prefer where it was tried, which is DNA
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
Re-Pair on top, grc. *64 shared rules only*: so few, and no private ones on top, which on held-out parts of the ten DNA sets was best (two seeds of each, in the mean:
71.2 %; with private rules on top 70.4; 256 rules with private ones 70.3, without 70.5; 1,024 without 69.4). *Private rules only*: the same without the rulebook. *Byte pairs*: 4,000 of the package tokenizers, a learned vector each. The
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
SIZES = """## How many rules to share

```
python -m experiments.paper run --grid experiments/sizes --results experiments/results/sizes --device cuda --processes auto
```
"""
VECTORS = {
    SHARED: "spelled and learned",
    "grc_spelled-repair+auto": "spelled only",
    "grc-repair+auto_letters": "learned only",
}
TABLES = """Test accuracy, %, mean ± standard deviation over seeds, and n', the mean length of what is read. **Bold**: the best mean.
"""


def page() -> str:
    """Return the page."""
    results, of = Results(RESULTS), groups(GRID)
    parts = [INTRODUCTION, "## In short\n", "\n".join(findings(results, of)) + "\n"]
    parts += ["## Accuracy\n", TABLES]
    for group in of:
        parts += [f"### {group.title}\n", caption(results, group) + "\n"]
        parts.append("\n".join(_table(results, group)) + "\n")
    return "\n".join([*parts, FEW, *_few(), SIZES, *_sizes()])


def _few() -> Iterator[str]:
    """Yield a table for each number of documents: what gives shared symbols their vectors."""
    for folder in sorted((HERE / "few").iterdir()):
        results, of = Results(HERE / "results" / "few" / folder.name), groups(folder)
        sets = [name for group in of for name in group.sets if results.of(name, SHARED)]
        cells = [[name, *(spread(results.values(name, m)) for m in VECTORS)] for name in sets]
        yield f"{int(folder.name):,} training documents:\n"
        yield "\n".join(table(["", *VECTORS.values()], cells)) + "\n"


def _sizes() -> Iterator[str]:
    """Yield a table for each set: rules that are shared, what is read, how well."""
    results = Results(HERE / "results" / "sizes")
    for group in groups(HERE / "sizes"):
        for name in group.sets:
            methods = [m for _, names, _ in group.methods for m in names if results.of(name, m)]
            cells = [
                [
                    f"{shared_rules(Method.named(m).codec)[1]:,}",
                    f"{results.of(name, m)[0]['documents']['sequence']:,.0f}",
                    spread(results.values(name, m)),
                ]
                for m in methods
            ]
            if cells:
                yield f"{name}. {caption(results, group)}\n"
                yield "\n".join(table(["shared rules", "n'", "accuracy"], cells)) + "\n"


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
    write_pages({PAGE: page()}, check="--check" in sys.argv[1:])
