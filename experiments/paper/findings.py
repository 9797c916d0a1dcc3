"""What the figures say, in words: every number comes from the results, none is written by hand."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.paper.drawing import SETS, fixed_memory
from experiments.paper.grid import IN_PLACE, Group
from experiments.paper.printed import SPEED_AT_FIXED_MEMORY
from experiments.paper.results import Figures
from experiments.paper.table import NAMES, Results, compared

__all__ = ["about_accuracy", "about_complexity", "about_compression", "about_figure", "summary"]

NOT_YET = "Not measured yet."
_WITHIN = {"DNA": 2.0, "Yelp P.": 6.0}
_FASTER = 1.8
_REPETITION = 0.95
_PROPOSED = ("grc-repair", "grc-lzd")
_IN_PLACE = (f"{IN_PLACE}-repair", f"{IN_PLACE}-lzd")


def about_compression(figures: Figures) -> str:
    """Whether lengths and rules are the paper's."""
    lines = []
    for start, within in _WITHIN.items():
        found = [
            (abs(100 * (ours / theirs - 1)), codec, quantity)
            for what, codec, quantity, ours, theirs in compared(figures)
            if what.startswith(start)
        ]
        if found:
            most, codec, quantity = max(found)
            agrees = "agrees" if most <= within else "does **not** agree"
            lines.append(
                f"{start} {agrees} with the paper's Table 1 within {within:g} %: the largest "
                f"difference is {most:.1f} % ({quantity}, {codec})."
            )
    return " ".join(lines) or NOT_YET


def about_accuracy(results: Results, groups: Sequence[Group]) -> list[str]:
    """Composers beside each other, grammars beside characters, models beside rivals."""
    sets = [name for group in groups for name in group.sets]
    lines = [
        _gru_and_mlp(results, sets),
        _grammars_and_characters(results, sets),
        _codecs(results, sets),
        _rivals(results, sets),
        *_of_one_class(results, sets),
    ]
    return [f"- {line}" for line in lines]


def about_figure(figures: Figures) -> list[str]:
    """How many times faster within the memory that characters need."""
    lines = []
    for name, title in SETS.items():
        parts = []
        for way, told in (("peer", "as in the paper"), ("ours", "Laconic")):
            ratios = {c: fixed_memory(figures["points"], name, way, c) for c in ("repair", "lzd")}
            if None not in ratios.values():
                parts.append(f"{told} Re-Pair {ratios['repair']:.1f} ×, LZD {ratios['lzd']:.1f} ×")
        if not parts:
            lines.append(f"- {title}: not measured yet, or not all of it.")
        else:
            claim = SPEED_AT_FIXED_MEMORY.get(name)
            paper = f" (the paper: around {claim:g} × on its set of the kind)" if claim else ""
            lines.append(f"- {title}: {'; '.join(parts)} as fast as characters{paper}.")
    return lines


def about_complexity(figures: Figures) -> str:
    """What 95 % of repetition saves, and whether the cost follows rules and symbols."""
    points = figures["points"]
    plain = [p for p in points if p["codec"] == "none"]
    lines = []
    for codec, name in (("repair", "Re-Pair"), ("lzd", "LZD")):
        some = [p for p in points if p["codec"] == codec and p["share"] == _REPETITION]
        if plain and some and some[0]["seconds"] > 0:
            # Characters cost the same at any share: the fastest was disturbed least.
            one, all_of_it = some[0], min(plain, key=lambda p: float(p["seconds"]))
            faster = all_of_it["seconds"] / one["seconds"]
            smaller = all_of_it["peak_mb"] / max(one["peak_mb"], 1e-9)
            less = f"{smaller:,.0f} × less memory" if one["peak_mb"] > 1 else "memory below 1 MB"
            lines.append(
                f"{name}, {100 * _REPETITION:.0f} % repeated: {one['letters']:,} letters are "
                f"{one['rules']:,} rules and {one['sequence']:,} symbols; a step is "
                f"**{faster:,.0f} ×** faster than on characters, with {less}."
            )
    return " ".join(lines) or NOT_YET


def summary(results: Results, groups: Sequence[Group]) -> list[str]:
    """What agrees with the paper and what does not, one line each."""
    lines = []
    compression = results.one("compression")
    lines.append(f"- Compression: {about_compression(compression) if compression else NOT_YET}")
    sets = [name for group in groups for name in group.sets]
    lines.append(f"- Composers: {_gru_and_mlp(results, sets)}")
    for device in ("cuda", "cpu"):
        if curve := results.one(f"complexity-{device}"):
            lines.append(f"- Complexity ({curve['about']['machine']}): {about_complexity(curve)}")
    return lines


def _gru_and_mlp(results: Results, sets: Sequence[str]) -> str:
    better, worse = list[str](), list[str]()
    for name in sets:
        for codec in ("repair", "lzd"):
            gru, mlp = (results.mean(name, f"{c}-{codec}") for c in ("dual_gru", "mlp"))
            if gru is not None and mlp is not None:
                (better if gru > mlp else worse).append(f"{name} {codec}")
    if not better and not worse:
        return NOT_YET
    told = f" Not on {', '.join(worse)}." if worse else ""
    both = len(better) + len(worse)
    return (
        f"dual_gru is better than mlp on {len(better)} of {both} pairs of set and codec, by the "
        f"mean over seeds (the paper: significantly on 17 of 20 of DNA, on 6 of 6 of text).{told}"
    )


def _grammars_and_characters(results: Results, sets: Sequence[str]) -> str:
    """Plain grc; and grc with n-grams in place or without, on sets where both were trained."""
    plain = _above(results, sets, _PROPOSED)
    if plain is None:
        return NOT_YET
    first = (
        f"Trained as shortly as here, grc, with the codec that the held-out part has, is {plain}"
    )
    with_them = [name for name in sets if any(results.of(name, m) for m in _IN_PLACE)]
    either = _above(results, with_them, _PROPOSED + _IN_PLACE)
    second = "Of grc with n-grams in place: " + NOT_YET
    if either is not None:
        second = (
            "If the held-out part may choose n-grams in place, too, which characters do not have, "
            f"it is {either}"
        )
    short = "Characters learn for longer: of training to convergence this says nothing."
    return f"{first} {second} {short}"


def _above(results: Results, sets: Sequence[str], methods: Sequence[str]) -> str | None:
    """Return on how many sets the best of the methods reaches characters; None without any."""
    compared_sets, reached, fast, below = 0, 0, 0, []
    for name in sets:
        plain = results.mean(name, "characters")
        ours = {m: v for m in methods if (v := results.mean(name, m)) is not None}
        if plain is None or not ours:
            continue
        compared_sets += 1
        # Chosen on the held-out part, as a user would.
        best = max(ours, key=lambda method: results.valid(name, method))
        if ours[best] < plain:
            below.append(f"{name} ({ours[best] - plain:+.2f})")
            continue
        reached += 1
        fast += (results.faster(name, best) or 0) >= _FASTER
    if not compared_sets:
        return None
    told = f" Below them: {', '.join(below)} points." if below else ""
    return (
        f"at or above the Bi-LSTM on characters on {reached} of {compared_sets} sets, on {fast} of "
        f"them at {_FASTER:g} × its training speed or more.{told}"
    )


def _of_one_class(results: Results, sets: Sequence[str]) -> list[str]:
    """Return a line on methods that have learned nothing but which class is most frequent."""
    found = []
    for name in sets:
        methods = [NAMES[m] for m in NAMES if _gives_one_class(results.of(name, m))]
        if methods:
            found.append(f"on {name} {', '.join(methods)}")
    if not found:
        return []
    return [
        f"All documents get the most frequent class: {'; '.join(found)}. So few epochs do not "
        "suffice there; methods that are alike in this say nothing about each other."
    ]


def _gives_one_class(rows: Sequence[Figures]) -> bool:
    tests = [row["test"] for row in rows]
    # Without any correlation with the labels, that share is no coincidence.
    return bool(tests) and all(
        test.get("mcc") == 0 and test["accuracy"] == test["majority"] for test in tests
    )


def _codecs(results: Results, sets: Sequence[str]) -> str:
    tally = {"repair": 0, "lzd": 0}
    for name in sets:
        found = {c: v for c in tally if (v := results.mean(name, f"grc-{c}")) is not None}
        if len(found) == 2:
            tally[max(found, key=lambda codec: found[codec])] += 1
    if not sum(tally.values()):
        return "Re-Pair and LZD: " + NOT_YET
    return f"With grc, Re-Pair is better on {tally['repair']} sets and LZD on {tally['lzd']}."


def _rivals(results: Results, sets: Sequence[str]) -> str:
    wins, names = 0, []
    for name in sets:
        ours = [v for m in NAMES if "-" in m and (v := results.mean(name, m)) is not None]
        theirs = {
            m: v
            for m in NAMES
            # On 200 documents, gzip's figure is too rough to be called best.
            if m.startswith("rival_")
            and m != "rival_gzip"
            and (v := results.mean(name, m)) is not None
        }
        if ours and theirs:
            best = max(theirs, key=lambda method: theirs[method])
            wins += max(ours) > theirs[best]
            names.append(f"{name} {max(ours) - theirs[best]:+.1f}")
    if not names:
        return "Rivals: " + NOT_YET
    return (
        f"The best grammar model beats the best linear model on n-grams on {wins} of {len(names)} "
        f"sets (points: {', '.join(names)})."
    )
