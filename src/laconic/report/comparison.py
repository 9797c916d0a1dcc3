"""Runs compared by any setting in which they differ: those of one value are one row."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import get_close_matches

from laconic.errors import InputError
from laconic.report.facts import RunFacts, real
from laconic.report.markup import Html, element, joined
from laconic.report.meanings import linked
from laconic.report.numbers import setting
from laconic.report.tables import Column, columns_of, name, table

_ABOUT = ("codec", "alphabet", "rulebook")  # what documents were made with: settings, to a reader
_MOST = 40  # settings
_FEWEST = 3  # runs: of two, the tables of scores and of settings say all of it


def comparison(runs: Sequence[RunFacts], by: str | None = None) -> Html:
    """Return a table for each setting in which runs differ, of which `by` is first, and open.

    InputError for a setting in which they do not differ.
    """
    different = _different(runs)
    if by is not None and by not in different:
        near = get_close_matches(by, different, n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        there = ", ".join(different) or "none: they are alike"
        raise InputError(f"the runs do not differ in {by!r}{meant}; they differ in: {there}")
    if not different or (len(runs) < _FEWEST and by is None):
        return Html()
    names = sorted(different, key=lambda each: each != by)
    told = [
        element(
            "details",
            element("summary", f"{each}: {len(set(different[each]))} values"),
            _table(each, different[each], runs),
            open=None if k else "open",
            name="by-setting",  # one is open at a time
        )
        for k, each in enumerate(names[:_MOST])
    ]
    title = linked("by-setting", "Runs of one value together")
    return joined(element("p", title, ", in the mean.", class_="note"), *told)


def _different(runs: Sequence[RunFacts]) -> dict[str, list[str]]:
    """Return the settings in which runs differ, with each run's value as JSON, so that it sorts."""
    found: dict[str, list[str]] = {}
    for key in (*_ABOUT, *dict.fromkeys(key for run in runs for key in run.config)):
        held = [run.about if key in _ABOUT else run.config for run in runs]
        values = [json.dumps(each.get(key), sort_keys=True, default=str) for each in held]
        if len(set(values)) > 1:
            found[str(key)] = values
    return found


def _table(key: str, values: Sequence[str], runs: Sequence[RunFacts]) -> Html:
    columns = columns_of(runs)
    groups = [
        (value, [run for run, its in zip(runs, values, strict=True) if its == value])
        for value in sorted(set(values), key=_order)
    ]
    means = {column.title: [_mean(column, group) for _, group in groups] for column in columns}
    rows = []
    for k, (value, group) in enumerate(groups):
        row: list[str] = [name(setting(json.loads(value))), str(len(group))]
        for column in columns:
            known = [each for each in means[column.title] if each is not None]
            best = column.best is not None and len(set(known)) > 1
            marked = (
                best and column.best is not None and means[column.title][k] == column.best(known)
            )
            row.append(element("td", *_cell(column, group), class_="best" if marked else None))
        rows.append(row)
    return table([key, "runs", *(column.head for column in columns)], rows, class_="by-setting")


def _order(value: str) -> tuple[bool, float, str]:
    """Sort numbers as numbers, and before texts."""
    number = real(json.loads(value))
    return number is None, number or 0.0, value


def _mean(column: Column, runs: Sequence[RunFacts]) -> float | None:
    known = list(_known(column, runs))
    return sum(known) / len(known) if known else None


def _known(column: Column, runs: Sequence[RunFacts]) -> Iterator[float]:
    return (value for run in runs if (value := column.value(run)) is not None)


def _cell(column: Column, runs: Sequence[RunFacts]) -> Iterator[str]:
    yield column.shown(_mean(column, runs)) + " "
    known = list(_known(column, runs))
    if len(known) > 1 and min(known) < max(known):
        spread = f"({column.shown(min(known))} – {column.shown(max(known))})"
        yield element("small", spread)
