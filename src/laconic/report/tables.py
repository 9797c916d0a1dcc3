"""Tables that put the runs side by side: scores, corpus, settings, where they were made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from laconic.report.facts import RunFacts, mapping, metrics_of, real
from laconic.report.markup import Html, element, joined
from laconic.report.meanings import linked, of_metric
from laconic.report.numbers import count, decimals, duration, megabytes, percent, score_of, setting
from laconic.show import how_many
from laconic.tasks import Metric

_MOST_CLASSES = 500  # in the table of counts
_SHOWN_CLASSES = 12  # before the rest is folded


def name(text: str) -> Html:
    """Return a name that a user chose: cut where it is long, whole when pointed at."""
    return element("span", text, class_="name", title=text if len(text) > 12 else None)


def listed(kind: str, names: Sequence[str]) -> str:
    """Return the different names, without empty ones.

    >>> listed("codec", ["repair", "", "none", "repair"]), listed("codec", ["lzd"])
    ('codecs repair and none', 'codec lzd')
    >>> listed("counts", ["words", "letters"])
    'counts words and letters'
    """
    different = list(dict.fromkeys(filter(None, names)))
    last = " and ".join(filter(None, [", ".join(different[:-1]), *different[-1:]]))
    more = "s" if len(different) > 1 and kind and not kind.endswith("s") else ""
    return f"{kind}{more} {last}".strip() if different else ""


def table(head: Sequence[str], rows: Sequence[Sequence[str]], **attributes: str) -> Html:
    """Return a table that scrolls by itself; a row's first cell is its heading.

    A head of empty texts is left out. A cell that is a <td> or <th> already stays as it is.
    """
    cells = [_cell("th", each, "col") for each in head]
    top = element("thead", element("tr", *cells)) if any(head) else Html()
    body = [
        element("tr", _cell("th", row[0], "row"), *(_cell("td", each) for each in row[1:]))
        for row in rows
    ]
    inner = element("table", top, element("tbody", *body), **attributes)
    # Reachable by keyboard: what scrolls must be able to hold the focus.
    return element("div", inner, class_="scroll", tabindex=0)


def gauge(share: float, kind: str = "") -> Html:
    """Return a cell with a bar as long as the share, in the colour of its kind."""
    bar = element("span", class_=f"bar {kind}".strip(), style=f"width:{100 * share:.1f}%")
    return element("td", bar, class_="gauge")


def folded(title: str, content: Html) -> Html:
    """Return content that opens on a click."""
    return element("details", element("summary", title), content)


def _cell(kind: str, content: str, scope: str | None = None) -> Html:
    if isinstance(content, Html) and content.startswith(f"<{kind}"):
        return content
    return element(kind, content, scope=scope)


class Column(NamedTuple):
    """A figure that every run may have: its head, its value, and which of several is the best."""

    title: str
    head: str
    value: Callable[[RunFacts], float | None]
    shown: Callable[[float | None], str]
    best: Callable[[list[float]], float] | None  # None: neither more nor less is better


def _score(metric: Metric) -> Column:
    best = min if metric.lower_is_better else max
    value, head = (lambda run: run.score(metric.name)), of_metric(metric)
    return Column(metric.words, head, value, score_of(metric), best)


def _cost(
    key: str,
    title: str,
    value: Callable[[RunFacts], float | None],
    shown: Callable[[float | None], str],
    best: Callable[[list[float]], float] | None,
) -> Column:
    return Column(title, linked(key, title), value, shown, best)


_COSTS = (
    _cost("time", "time", lambda run: run.seconds, duration, min),
    _cost("speed", "documents/s", lambda run: run.documents_per_second, count, max),
    _cost("memory", "peak memory", lambda run: run.peak_memory_mb, megabytes, min),
    _cost("reserved", "reserved", lambda run: run.reserved_memory_mb, megabytes, min),
    _cost("sequence", "sequence", lambda run: run.per_document("symbols"), count, None),
)


def columns_of(runs: Sequence[RunFacts]) -> list[Column]:
    """Return the figures that some of these runs have: scores, and what they cost."""
    scores = [_score(metric) for metric in metrics_of(runs).values() if metric.reported]
    return [each for each in (*scores, *_COSTS) if any(each.value(run) is not None for run in runs)]


def summary(runs: Sequence[RunFacts]) -> Html:
    """Return a row per run; the best of each column stands out where there are several.

    Codec and composer have columns where runs differ in them: the page's lead tells the others.
    """
    columns = columns_of(runs)
    best = {column.title: _best(column, runs) for column in columns}
    made: dict[str, Callable[[RunFacts], str]] = {
        "codec": lambda run: run.codec,
        "composer": lambda run: run.composer,
    }
    made = {title: how for title, how in made.items() if len(set(map(how, runs))) > 1}
    rows = []
    for run in runs:
        row: list[str] = [name(run.title)]
        row += [element("td", how(run) or "–", class_="text") for how in made.values()]
        for column in columns:
            shown = column.shown(column.value(run))
            marked = "best" if shown == best[column.title] else None
            row.append(element("td", shown, class_=marked))
        rows.append(row)
    head = [
        "run",
        *(element("th", each, scope="col", class_="text") for each in made),
        *(each.head for each in columns),
    ]
    return joined(table(head, rows, class_="summary"), held_out(runs))


def held_out(runs: Sequence[RunFacts]) -> Html:
    """Return on which documents scores were measured, if there are any."""
    held = linked("held-out", "documents held out")
    note = element("p", "Scores are of ", held, " from training.", class_="note")
    return note if any(run.evaluation for run in runs) else Html()


def _best(column: Column, runs: Sequence[RunFacts]) -> str | None:
    """Return how the best value is shown; None where all runs show the same."""
    known = [value for run in runs if (value := column.value(run)) is not None]
    if column.best is None or len({column.shown(value) for value in known}) < 2:
        return None
    return column.shown(column.best(known))


def corpus(runs: Sequence[RunFacts]) -> Html:
    """Return how many documents of which classes there are and how well they compress."""
    lines: list[tuple[str, Callable[[RunFacts], float | None], Callable[[float | None], str]]] = [
        ("documents", lambda run: _statistic(run, "documents"), count),
        (linked("held-out", "held out"), lambda run: _statistic(run, "validation"), count),
        (linked("letters", "mean letters, n"), lambda run: run.per_document("letters"), count),
        (linked("sequence", "mean sequence, n′"), lambda run: run.per_document("symbols"), count),
        (linked("rules", "mean rules"), lambda run: run.per_document("rules"), count),
        (linked("sequence", "n / n′"), _ratio, lambda value: decimals(value, 2)),
    ]
    rows = [
        [title, *(shown(value(run)) for run in runs)]
        for title, value, shown in lines
        if any(value(run) is not None for run in runs)
    ]
    parts = [table(["", *_titles(runs)], rows)] if rows else []
    counted = [mapping(mapping(run.about.get("corpus")).get("classes")) for run in runs]
    # Runs that are compared mostly read the same documents: these are counted once.
    different = [each for k, each in enumerate(counted) if each and each not in counted[:k]]
    parts += [element("div", _classes(each)) for each in different]
    return element("div", *parts, class_="pair") if parts else Html()


def _classes(classes: Mapping[str, object]) -> Html:
    numbers = {str(key): real(value) or 0 for key, value in classes.items()}
    total, most = sum(numbers.values()), max(numbers.values(), default=0)
    rows = [
        [
            name(key),
            count(number),
            percent(number / total if total else None),
            gauge(number / (most or 1)),
        ]
        for key, number in list(numbers.items())[:_MOST_CLASSES]
    ]
    head = ["class", "documents", "share", ""]
    parts = [table(head, rows[:_SHOWN_CLASSES], class_="classes")]
    if len(rows) > _SHOWN_CLASSES:
        rest = how_many(len(rows) - _SHOWN_CLASSES, "more class", "more classes")
        parts.append(folded(rest, table(head, rows[_SHOWN_CLASSES:], class_="classes")))
    if len(numbers) > len(rows):
        left = how_many(len(numbers) - len(rows), "further class", "further classes")
        parts.append(element("p", f"{left} left out.", class_="note"))
    return joined(*parts)


def _statistic(run: RunFacts, key: str) -> float | None:
    return real(mapping(run.about.get("corpus")).get(key))


def _ratio(run: RunFacts) -> float | None:
    letters, symbols = run.per_document("letters"), run.per_document("symbols")
    return letters / symbols if letters is not None and symbols else None


def settings(runs: Sequence[RunFacts]) -> Html:
    """Return first what differs from the defaults or between runs, then the rest, folded."""
    keys = list(dict.fromkeys(key for run in runs for key in run.config))
    if not keys:
        return Html()
    missing = object()
    changed: list[list[str]] = []
    rest: list[list[str]] = []
    for key in keys:
        values = [run.config.get(key, missing) for run in runs]
        usual = [run.defaults.get(key, missing) for run in runs]
        # Where nothing was said, what was found not to be needed is as good as nothing.
        said = [
            default if default is None and value is False else value
            for value, default in zip(values, usual, strict=True)
        ]
        same = said == usual and all(value == said[0] for value in said)
        shown = ["–" if value is missing else setting(value) for value in values]
        (rest if same else changed).append([str(key), *map(_value, shown)])
    head = ["", *_titles(runs)]
    none = element("p", "All settings are the defaults.")
    first = table(head, changed, class_="facts") if changed else none
    if not rest:
        return first
    title = f"{how_many(len(rest), 'setting')} left at the default"
    return joined(first, folded(title, table(head, rest, class_="facts")))


def provenance(runs: Sequence[RunFacts]) -> Html:
    """Return when, where and with which versions the runs were made."""
    parameters = [real(run.about.get("parameters")) for run in runs]
    facts: dict[str, list[object]] = {
        "date": [_date(run.about.get("date")) for run in runs],
        "machine": [run.about.get("machine") for run in runs],
        "corpus": [mapping(run.about.get("corpus")).get("path") for run in runs],
        "alphabet": [run.about.get("alphabet") for run in runs],
        "rulebook": [run.about.get("rulebook") for run in runs],
        "parameters": [None if each is None else count(each) for each in parameters],
        "seed": [run.config.get("seed") for run in runs],
    }
    versions = [mapping(run.about.get("versions")) for run in runs]
    for key in dict.fromkeys(key for each in versions for key in each):
        facts[str(key)] = [each.get(key) for each in versions]
    known = {
        title: ["–" if value is None else setting(value) for value in values]
        for title, values in facts.items()
        if any(value is not None for value in values)
    }
    if not known:
        return Html()
    if all(len(set(values)) == 1 for values in known.values()):
        return table([], [[t, _value(v[0])] for t, v in known.items()], class_="facts")
    rows = [
        [title, _value(values[0], len(runs))]
        if len(set(values)) == 1
        else [title, *map(_value, values)]
        for title, values in known.items()
    ]
    return table(["", *_titles(runs)], rows, class_="facts")


def _date(value: object) -> object:
    """Return a moment as people write it; what is none as it is."""
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return value
    if moment.tzinfo is None:
        return value
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _value(text: str, columns: int | None = None) -> Html:
    return element("td", text, class_="value", colspan=columns)


def _titles(runs: Sequence[RunFacts]) -> list[Html]:
    """Heads of columns; a single run needs none."""
    return [name(run.title) for run in runs] if len(runs) > 1 else [Html()]
