"""All results in memory, and the tables of docs/results.md made from them."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

from benchmarks.data import DATASETS
from experiments.paper.grid import COMPOSERS, IN_PLACE, Group, Method, Row
from experiments.paper.grid import rows as rows_of
from experiments.paper.printed import COMPRESSION, DNA, TEXT_ERRORS
from experiments.paper.protocol import same_protocol
from experiments.paper.results import Figures, read, rows_in
from experiments.paper.significance import marks

__all__ = [
    "CODECS",
    "MISSING",
    "NAMES",
    "Results",
    "accuracy_table",
    "caption",
    "compression_table",
    "machines_of",
    "speed_table",
    "spread",
    "table",
    "told",
]

CODECS = {"repair": "Re-Pair", "lzd": "LZD", "lz78": "LZ78"}
_COMPOSERS = {
    "mlp": "mlp",
    "dual_gru": "gru",
    "grc": "grc",
    IN_PLACE: "grc, n-grams in place",
    **{name: name for name in COMPOSERS[3:]},
}
NAMES = {
    "characters": "Bi-LSTM on characters",
    **{f"{c}-{k}": f"Bi-LSTM-{_COMPOSERS[c]} ({CODECS[k]})" for c in _COMPOSERS for k in CODECS},
    "grc-deflate": "Bi-LSTM-grc (deflate)",
    "grc-repair+auto": "Bi-LSTM-grc (Re-Pair over a rulebook)",
    "bpe": "Bi-LSTM on byte pairs (BPE)",
    "char_cnn": "CNN on characters",
    "rival_words": "words 1–2, TF-IDF, logistic regression",
    "rival_chars": "characters 1–5, TF-IDF, logistic regression",
    "rival_kmers": "3–5-mers, ridge",
    "rival_fasttext": "fastText, words 1–2 (DNA: 6-mers 1–2)",
    "rival_gzip": "gzip, 3 nearest neighbours, top-1 (1,000 train, 200 test)",
}
MISSING = "–"


class Results:
    """Everything in a folder of results, but rows of another protocol than these groups have."""

    def __init__(self, folder: Path, groups: Iterable[Group] = ()) -> None:
        self.folder = folder
        self._rows: dict[tuple[str, str], list[Figures]] = {}
        planned = {(row.dataset, row.method.name): row for row in rows_of(groups)}
        for row in rows_in(folder):
            key = row["dataset"], row["method"]
            wanted = planned.get(key)
            if wanted is None or same_protocol(wanted, row):
                self._rows.setdefault(key, []).append(row)

    def of(self, dataset: str, method: str) -> list[Figures]:
        """Return the results of all seeds, by seed."""
        return sorted(self._rows.get((dataset, method), []), key=lambda row: int(row["seed"]))

    def values(self, dataset: str, method: str, name: str = "accuracy") -> list[float]:
        """Return a figure of the test part, in %, seed by seed."""
        return [100 * row["test"][name] for row in self.of(dataset, method)]

    def mean(self, dataset: str, method: str) -> float | None:
        """Return the mean accuracy in %; None without results."""
        found = self.values(dataset, method)
        return statistics.mean(found) if found else None

    def valid(self, dataset: str, method: str) -> float:
        """Return the mean accuracy of the best epochs on the held-out part, in %; 0 without any."""
        rows = self.of(dataset, method)
        found = [100 * max(row["epochs"]["valid_accuracy"]) for row in rows]
        return statistics.mean(found) if found else 0.0

    @cached_property
    def measured(self) -> dict[tuple[str, str], Figures]:
        """The points of speed.json, by set and method: alone on a device, after warm-up."""
        points = (self.one("speed") or {"points": []})["points"]
        return {(p["set"], p["method"]): p for p in points if "error" not in p}

    def speed(self, dataset: str, method: str) -> Figures | None:
        """Return documents_per_s, peak_mb and reserved_mb (None of a CPU) of training, if known.

        Of sets that were measured alone, as were characters, from there; of the other DNA sets,
        H3's, which has the same lengths and batches. Of the rest, from rows that shared their GPU
        with no others: the median epoch, because the first captures graphs, and the mean over
        seeds.
        """
        for name in (dataset, *(["H3"] if dataset in DNA["characters"] else [])):
            if (name, "characters") in self.measured:
                return self.measured.get((name, method))
        alone = [row for row in self.of(dataset, method) if row["processes"] == 1]
        if not alone:
            return None
        epochs = [statistics.median(row["epochs"]["documents_per_s"]) for row in alone]
        # On a CPU it is the process's, which other rows ran in before.
        on_gpu = [row for row in alone if "gpu" in row["about"]["versions"]]
        found: Figures = {"documents_per_s": statistics.mean(epochs)}
        for name in ("peak", "reserved"):
            room = [row[key] for row in on_gpu if (key := f"{name}_memory_mb") in row]
            found[f"{name}_mb"] = statistics.mean(room) if room else None
        return found

    def faster(self, dataset: str, method: str) -> float | None:
        """Return how many times as fast as on characters it trains; None if that is unknown."""
        plain, other = (self.speed(dataset, each) for each in ("characters", method))
        return other["documents_per_s"] / plain["documents_per_s"] if plain and other else None

    def one(self, name: str) -> Figures | None:
        """Return a result that is no row, such as compression or figure; None without it."""
        path = self.folder / f"{name}.json"
        return read(path) if path.exists() else None

    @cached_property
    def methods(self) -> list[str]:
        """Methods that have results, in the order of NAMES."""
        there = {method for _, method in self._rows}
        return [name for name in NAMES if name in there]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a Markdown table, numbers to the right."""
    lines = ["| " + " | ".join(header) + " |", "|---" + "|--:" * (len(header) - 1) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def caption(results: Results, group: Group) -> str:
    """Return what has to be known of a table: protocol, seeds, machine, taken from the results."""
    planned = (name for _, names, _ in group.methods for name in names)
    methods = dict.fromkeys((*results.methods, *planned))
    found = [row for name in group.sets for m in methods for row in results.of(name, m)]
    trained = [row for row in found if "protocol" in row]
    if not trained:
        pairs = [(name, group.departures(name)) for name in group.sets]
        depart = f"What will depart from the paper: {told(pairs)}."
        return f"No row has been run yet. {depart}{_in_place(results, group)}"
    departures = told([(row["dataset"], row["protocol"]["departures"]) for row in trained])
    counts = sorted(set(Counter((row["dataset"], row["method"]) for row in trained).values()))
    several = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    machines = machines_of(trained)
    few = " Two seeds cannot be significantly different from two others." if counts[0] < 3 else ""
    few += _not_run(results, group)
    return (
        f"**Departs from the paper's protocol**: {departures}.{_in_place(results, group)} Mean ± "
        f"standard deviation over {several} seeds.{few} Trained on {machines}."
    )


def machines_of(rows: Iterable[Figures]) -> str:
    """Return the machines that rows were trained on; how many processors they had does not matter.

    >>> machines_of({"about": {"machine": f"a GPU, {k} processors, Linux"}} for k in (2, 16))
    'a GPU, Linux'
    """
    named = {re.sub(r", \d+ processors?", "", row["about"]["machine"]) for row in rows}
    return " and ".join(sorted(named))


def _not_run(results: Results, group: Group) -> str:
    """Return which methods of the grid have no row of this protocol, for tables leave them out."""
    planned = dict.fromkeys(name for _, names, _ in group.methods for name in names)
    missing = [n for n in planned if not any(results.of(name, n) for name in group.sets)]
    named = ", ".join(NAMES.get(name, name) for name in missing)
    return f" Not run with this protocol: {named}." if missing else ""


def told(pairs: Iterable[tuple[str, list[str]]]) -> str:
    """Return departures in words, said once for all sets that share them."""
    sets: dict[str, list[str]] = {}
    for name, departures in pairs:
        known = sets.setdefault("; ".join(departures) or "none", [])
        if name not in known:
            known.append(name)
    if len(sets) == 1:
        return next(iter(sets))
    return " | ".join(f"{', '.join(names)}: {words}" for words, names in sets.items())


def _in_place(results: Results, group: Group) -> str:
    """Return what rows with n-grams in place have, from the results or else from the grid."""
    names = dict.fromkeys(name for _, names, _ in group.methods for name in names)
    pairs = [(s, m) for m in map(Method.named, names) if m.local for s in group.sets]
    found = [row["config"] for s, m in pairs for row in results.of(s, m.name)]
    planned = [Row(0, s, m, 0, group).config("cpu").to_json() for s, m in pairs]
    settings = dict.fromkeys(
        f"of 1 to {of['local_ngrams']} letters ({of['local_buckets']:,} buckets, dropout "
        f"{of['local_dropout']:g})"
        for of in found or planned
    )
    if not settings:
        return ""
    return f" N-grams in place: read with the symbol that they end in, {', '.join(settings)}."


def accuracy_table(
    results: Results, group: Group, sets: Sequence[str], figure: str = "accuracy"
) -> list[str]:
    """Return the table of a group, a column for each set, with the paper's marks.

    Sets whose speeds were measured have a second one: how many times as fast as characters, and
    how many times fewer symbols there are to read.
    """
    kinds = {name: DATASETS[name].kind for name in sets}
    marked = {
        name: marks({m: results.values(name, m, figure) for m in NAMES}, kinds[name])
        for name in sets
    }
    shown = [n for n in NAMES if any(results.of(name, n) for name in (*group.sets, *sets))]
    timed = [name for name in sets if (name, "characters") in results.measured]
    rows = []
    for method in shown:
        cells = [NAMES[method]]
        for name in sets:
            values = results.values(name, method, figure)
            cell = spread(values)
            if values and marked[name].best == method:
                cell = f"**{cell}**" if marked[name].clearly else f"({cell})"
            cells.append(("† " if method in marked[name].daggers else "") + cell)
            cells += [_ratios(results, name, method)] if name in timed else []
        rows.append(cells)
    # Whoever distributes a set, its name ends alike.
    same = [name.rpartition("-")[2] for name in sets]
    if all(name in DNA["characters"] for name in same):
        for method, values_of in DNA.items():
            cells = [f"*the paper's {NAMES.get(method, method)}*"]
            for full, name in zip(sets, same, strict=True):
                cells += [f"*{values_of[name]:.2f}*", *([""] if full in timed else [])]
            rows.append(cells)
    header = [""]
    for name in sets:
        header.append(("‡ " if marked[name].close else "") + name)
        header += ["× characters (n/n')"] if name in timed else []
    return table(header, rows)


def paper_text_table() -> list[str]:
    """Return the paper's accuracies on text: its sets are others than ours."""
    rows = [
        [NAMES.get(method, method), *(f"{100 - error:.2f}" for error in errors)]
        for method, errors in TEXT_ERRORS.items()
    ]
    return table(["", "Sogou", "Yelp P.", "Yelp F."], rows)


def speed_table(results: Results, sets: Sequence[str], methods: Sequence[str]) -> list[str]:
    """Return documents/s of characters, and how many times as fast and small the others are.

    Only of sets that were measured alone, if there are such.
    """
    alone = {name for name, _ in results.measured}
    sets = [name for name in sets if not alone or name in alone]
    speeds = {name: results.speed(name, "characters") or {} for name in sets}
    heads = {"documents_per_s": "characters: documents/s", "peak_mb": "peak MB"}
    if any(plain.get("reserved_mb") for plain in speeds.values()):  # old results do not know
        heads["reserved_mb"] = "reserved"
    rows = []
    for name, plain in speeds.items():
        room = plain.get("peak_mb")
        cells = [name, *(_number(plain.get(key), "{:,.0f}") for key in heads)]
        for method in methods:
            memory = (results.speed(name, method) or {}).get("peak_mb")
            smaller = room / memory if room and memory else None
            faster = _number(results.faster(name, method), "{:.2f} ×")
            cells.append(f"{faster}, {_number(smaller, '{:.2f} ×')}")
        rows.append(cells)
    return table(["", *heads.values(), *(NAMES[m] for m in methods)], rows)


def compression_table(figures: Figures) -> list[str]:
    """Return lengths and rules of every set, mean / largest."""
    rows = []
    for name, of in figures["sets"].items():
        cells = [name, f"{of['none']['documents']:,}", _pair(of["none"]["letters"])]
        for codec in CODECS:
            cells += [_pair(of[codec]["sequence"]), f"{of[codec]['rules']['mean']:,.1f}"]
        rows.append(cells)
    heads = [head for name in CODECS.values() for head in (f"{name}: n'", "rules")]
    return table(["", "documents", "n", *heads], rows)


def beside_table(figures: Figures) -> list[str]:
    """Return our lengths and rules beside the paper's, where the sets are comparable.

    Of DNA, means over the ten sets; of reviews, per letter, as the documents are others. LZD's
    lengths count one entry for each distinct letter and an empty one more, as the paper's do.
    """
    rows = [
        [
            what,
            CODECS[codec],
            quantity,
            f"{ours:.4g}",
            f"{theirs:.4g}",
            f"{100 * (ours / theirs - 1):+.1f} %",
        ]
        for what, codec, quantity, ours, theirs in compared(figures)
    ]
    return table(["", "codec", "", "here", "paper", "difference"], rows)


def compared(figures: Figures) -> list[tuple[str, str, str, float, float]]:
    """Return (sets, codec, quantity, ours, the paper's) for what can be compared."""
    sets, found = figures["sets"], []
    pairs = [("DNA", [name for name in sets if name in DNA["characters"]], False)]
    pairs += [("Yelp P.", [name for name in sets if name == "yelp_polarity_part"], True)]
    for printed, names, per_letter in pairs:
        if not names:
            continue
        for codec in ("repair", "lzd"):
            theirs = COMPRESSION[printed]
            length = statistics.mean(_counted(sets[name], codec) for name in names)
            rules = statistics.mean(sets[name][codec]["rules"]["mean"] for name in names)
            letters = statistics.mean(sets[name]["none"]["letters"]["mean"] for name in names)
            ours, wanted = (letters, theirs["none"][0]) if per_letter else (1.0, 1.0)
            unit = " per letter" if per_letter else ""
            title = f"{printed} ({', '.join(names)})" if per_letter else printed
            found += [
                (title, codec, f"length{unit}", length / ours, theirs[codec][0] / wanted),
                (title, codec, f"rules{unit}", rules / ours, theirs[codec][1] / wanted),
            ]
    return found


def _counted(of: Figures, codec: str) -> float:
    length = float(of[codec]["sequence"]["mean"])
    return length + of["none"]["distinct"] + 1 if codec == "lzd" else length


def spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation, or what there is."""
    if not values:
        return MISSING
    if len(values) == 1:
        return f"{values[0]:.2f}"
    return f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}"


def _pair(of: Figures) -> str:
    return f"{of['mean']:,.1f} / {of['max']:,}"


def _ratios(results: Results, dataset: str, method: str) -> str:
    point, faster = results.measured.get((dataset, method)), results.faster(dataset, method)
    if point is None or faster is None:
        return ""
    return f"{faster:.2f} × ({point['letters'] / point['sequence']:.1f})"


def _number(value: float | None, form: str) -> str:
    return MISSING if value is None else form.format(value)
