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
    "On documents that were held out. Where these are a part of the training's, the kept model has "
    "learned to count from them, too, after they had told how much each view may say."
)


def views(runs: Sequence[RunFacts]) -> Html:
    """Return the views of each run that has several, with their scores and shares."""
    parts = []
    for run in runs:
        told = mapping(run.metrics[-1].get("auto")) if run.metrics else {}
        if told:
            title = element("h3", name(run.title)) if len(runs) > 1 else Html()
            parts.append(joined(title, _table(run, told), _tried(mapping(told.get("counting")))))
    return joined(*parts, element("p", _NOTE, class_="note")) if parts else Html()


def _table(run: RunFacts, told: Mapping[str, Any]) -> Html:
    counting, reading = mapping(told.get("counting")), mapping(told.get("reading"))
    share = real(reading.get("share"))
    shown = [metric for metric in metrics_of([run]).values() if metric.reported]
    losses = mapping(told.get("losses"))
    rows = [
        _row("counting", counting, None if share is None else 1 - share, shown, losses),
        _row("reading", reading, share, shown, losses),
        _row("both", {"valid": run.evaluation}, None, shown, losses),
    ]
    heads = [
        "view",
        linked("views", "share"),
        "",
        *map(of_metric, shown),
        linked("calibrated", "loss, calibrated"),
        element("th", "what", scope="col", class_="text"),
    ]
    return table(heads, rows if share is not None else rows[:2], class_="views")


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


def _row(
    view: str,
    part: Mapping[str, Any],
    share: float | None,
    metrics: Sequence[Metric],
    losses: Mapping[str, Any],
) -> list[Any]:
    valid = mapping(part.get("valid"))
    scores = [score_of(each)(real(valid.get(each.name))) for each in metrics]
    bar = element("td") if share is None else gauge(share)
    cells = [percent(share), bar, *scores, decimals(real(losses.get(view)))]
    return ["blend" if view == "both" else view, *cells, element("td", _what(part), class_="text")]


def _what(part: Mapping[str, Any]) -> str:
    """Return what a view is made of, or why there is none."""
    documents = real(part.get("documents"))
    told = [
        str(part.get("features") or part.get("why") or ""),
        "" if documents is None else "from " + how_many(round(documents), "document"),
    ]
    return ", ".join(filter(None, told))
