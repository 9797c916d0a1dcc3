"""What a model gets right and wrong: confusion, calibration, scores of each class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.report import figures
from laconic.report.facts import RunFacts, mapping, real
from laconic.report.markup import Html, element, joined
from laconic.report.meanings import linked
from laconic.report.numbers import count, decimals, percent
from laconic.report.tables import folded, name, table
from laconic.show import how_many

Floats: TypeAlias = npt.NDArray[np.float64]
_LARGEST_TABLE = 20  # classes; larger matrices are drawn
_HALF = 7  # classes whose table fits half the page
_MOST_CLASSES = 500
_MOST_CONFUSIONS = 10
_MOST_RUNS = 8  # with figures of their own
_FEW = 8  # classes whose scores are not folded
_CORNER = element("small", "true ↓ predicted →")


def outcomes(runs: Sequence[RunFacts]) -> Html:
    """Return confusion, calibration and scores per class of each run that has them."""
    parts = []
    for k, run in enumerate(runs[:_MOST_RUNS]):
        colour = figures.COLOURS[k % len(figures.COLOURS)]
        left = joined(_confusion(k, run), _per_class(run))
        right = _calibration(k, run, colour)
        if left or right:
            title = element("h3", name(run.title)) if len(runs) > 1 else Html()
            columns = [element("div", each) for each in (left, right) if each]
            matrix = _matrix(run)
            wide = matrix is not None and _HALF < len(matrix) <= _LARGEST_TABLE
            kind = "run pair wide" if wide else "run pair"
            parts.append(element("div", title, *columns, class_=kind))
    if parts and len(runs) > _MOST_RUNS:
        note = f"Of the first {_MOST_RUNS} runs; reports of fewer runs show the others."
        parts.append(element("p", note, class_="note"))
    return joined(*parts)


def _matrix(run: RunFacts) -> Floats | None:
    """Return the confusion matrix, float [K, K], rows are true classes; None if there is none."""
    rows = run.evaluation.get("confusion")
    if not isinstance(rows, list | tuple) or not rows:
        return None
    try:
        matrix = np.array(rows, dtype=float)
    except (TypeError, ValueError, OverflowError):
        return None
    square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
    return matrix if square and np.isfinite(matrix).all() and matrix.min() >= 0 else None


def _names(run: RunFacts, number: int) -> list[str]:
    return run.classes if len(run.classes) == number else [str(k) for k in range(number)]


def _confusion(k: int, run: RunFacts) -> Html:
    matrix = _matrix(run)
    if matrix is None:
        return Html()
    names = _names(run, len(matrix))
    shares = matrix / np.maximum(1.0, matrix.sum(axis=1, keepdims=True))
    title = element("h3", linked("confusion", "Confusion"))
    if len(matrix) > _LARGEST_TABLE:
        drawn = figures.heat_map(f"confusion-{k}", shares)
        note = "Classes are numbered in the order of the model's outputs."
        worst = _worst(matrix, names)
        return element("figure", title, drawn, element("figcaption", note), worst)
    rows = [
        [
            name(names[i]),
            *(
                element(
                    "td",
                    count(matrix[i, j]),
                    style=f"--share:{shares[i, j]:.3f}",
                )
                for j in range(len(matrix))
            ),
        ]
        for i in range(len(matrix))
    ]
    note = "Documents: one row for each true class, one column for each predicted class."
    kind = "confusion many" if len(matrix) > 4 else "confusion"
    inner = table([_CORNER, *map(name, names)], rows, class_=kind)
    return element("figure", title, inner, element("figcaption", note))


def _worst(matrix: Floats, names: list[str]) -> Html:
    wrong = matrix.copy()
    np.fill_diagonal(wrong, 0)
    order = np.argsort(-wrong, axis=None, kind="stable")[:_MOST_CONFUSIONS]
    pairs = [divmod(int(each), len(matrix)) for each in order]
    rows = [
        [name(names[i]), element("td", name(names[j]), class_="text"), count(wrong[i, j])]
        for i, j in pairs
        if wrong[i, j]
    ]
    return table(["true class", "taken for", "documents"], rows, class_="worst") if rows else Html()


def _calibration(k: int, run: RunFacts, colour: str) -> Html:
    given = run.evaluation.get("calibration")
    bins = mapping(given).get("bins", given)
    points = []
    for each in bins if isinstance(bins, list | tuple) else ():
        values = [real(mapping(each).get(key)) for key in ("confidence", "accuracy", "count")]
        known = [value for value in values if value is not None]
        if len(known) == 3 and known[2] > 0:
            points.append((known[0], known[1], known[2]))
    if not points:
        return Html()
    error = real(mapping(given).get("ece"))
    note = "On the line, a model is as often right as it is sure; larger dots are more documents."
    if error is not None:
        note += f" Expected calibration error: {percent(error)}."
    drawn = figures.calibration(f"calibration-{k}", points, colour)
    return element(
        "figure",
        element("h3", linked("calibration", "Calibration")),
        drawn,
        element("figcaption", note),
    )


def _per_class(run: RunFacts) -> Html:
    """Return precision, recall and F1 of each class, folded where there are many."""
    given = run.evaluation.get("per_class")
    if isinstance(given, Mapping):
        scores = [(str(key), mapping(value)) for key, value in given.items()]
    elif isinstance(given, list | tuple):
        names = _names(run, len(given))
        scores = [(names[k], mapping(each)) for k, each in enumerate(given)]
    else:
        return Html()
    columns = [
        key
        for key in ("precision", "recall", "f1", "documents")
        if any(real(values.get(key)) is not None for _, values in scores)
    ]
    if not columns:
        return Html()
    rows = []
    for title, values in scores[:_MOST_CLASSES]:
        cells = [
            (count if key == "documents" else decimals)(real(values.get(key))) for key in columns
        ]
        rows.append([name(title), *cells])
    heads = [linked("per-class", key.replace("f1", "F1")) for key in columns]
    inner = table(["class", *heads], rows, class_="scores")
    if len(scores) <= _FEW:
        return inner
    return folded(f"Scores of {how_many(len(scores), 'class', 'classes')}", inner)
