"""What automatic training found out: what counting and reading are worth, and together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from laconic.report.facts import RunFacts, mapping, metrics_of, real
from laconic.report.markup import Html, element, joined
from laconic.report.meanings import linked, of_metric
from laconic.report.numbers import count, decimals, percent, score_of
from laconic.report.tables import folded, gauge, name, table
from laconic.show import how_many
from laconic.tasks import Metric

_NOTE = (
    "Scores are of held-out documents, by models that had not learned from them. The linear model "
    "that is kept learned from as many documents as it says."
)


def views(runs: Sequence[RunFacts]) -> Html:
    """Return the views of each run that has several, with their scores and shares."""
    parts = []
    for run in runs:
        if told := run.auto:
            title = element("h3", name(run.title)) if len(runs) > 1 else Html()
            parts.append(joined(title, _table(run, told), _tried(mapping(told.get("counting")))))
    return joined(*parts, element("p", _NOTE, class_="note")) if parts else Html()


def _table(run: RunFacts, told: Mapping[str, Any]) -> Html:
    counting, reading = mapping(told.get("counting")), mapping(told.get("reading"))
    share = real(reading.get("share"))
    shown = [metric for metric in metrics_of([run]).values() if metric.reported]
    if share is None:
        heads = [linked("views", "view"), *map(of_metric, shown)]
        rows = [[_view("counting", counting), *_scores(counting, shown)]]
        why = _what(reading)
        left = element("p", f"Reading was {why}.", class_="note") if why else Html()
        return joined(table(heads, rows, class_="views"), left)
    parts = {
        "counting": (counting, percent(1 - share), gauge(1 - share)),
        "reading": (reading, percent(share), gauge(share)),
        "both": ({"valid": run.evaluation}, "–", element("td")),
    }
    losses = mapping(told.get("losses"))
    rows = [
        [
            _view("blend" if key == "both" else key, part),
            *cells,
            *_scores(part, shown),
            decimals(real(losses.get(key))),
        ]
        for key, (part, *cells) in parts.items()
    ]
    heads = [
        "view",
        linked("views", "share"),
        "",
        *map(of_metric, shown),
        linked("calibrated", "loss, calibrated"),
    ]
    return table(heads, rows, class_="views")


def _tried(counting: Mapping[str, Any]) -> Html:
    """Return what else could have been counted, with the held-out loss that decided."""
    tried = [
        (loss, str(features))
        for features, value in mapping(counting.get("tried")).items()
        if (loss := real(value)) is not None
    ]
    rows = [[features, decimals(loss, 4)] for loss, features in sorted(tried)]
    if len(rows) < 2:
        return Html()
    title = f"{count(len(rows))} ways to count were tried"
    return folded(title, table(["features", linked("loss", "loss, held out")], rows))


def _scores(part: Mapping[str, Any], metrics: Sequence[Metric]) -> list[str]:
    valid = mapping(part.get("valid"))
    return [score_of(each)(real(valid.get(each.name))) for each in metrics]


def _view(title: str, part: Mapping[str, Any]) -> Html:
    """Return a view's name, and below it what it is made of: beside it, a phone hides that."""
    what = _what(part)
    return joined(title, element("small", f" {what}")) if what else joined(title)


def _what(part: Mapping[str, Any]) -> str:
    """Return what a view is made of, or why there is none."""
    documents = real(part.get("documents"))
    told = [
        str(part.get("features") or part.get("why") or ""),
        "" if documents is None else "from " + how_many(round(documents), "document"),
    ]
    return ", ".join(filter(None, told))
