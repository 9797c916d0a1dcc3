"""Figures, against slow formulas, and against scikit-learn where it is installed."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.tasks import Classification, Multilabel, Regression, summary

CLASSES = Classification(("a", "b", "c", "d"))


def of_classes(targets: list[int], predicted: list[int], score: float = 3.0) -> dict[str, Any]:
    return CLASSES.evaluate(score * np.eye(4)[predicted], targets)


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@given(pairs)
def test_classes_by_counting(rows: list[tuple[int, int]]) -> None:
    targets, predicted = [list(each) for each in zip(*rows, strict=True)]
    figures = of_classes(targets, predicted)
    count = len(rows)
    assert figures["documents"] == count
    assert figures["accuracy"] == pytest.approx(sum(t == p for t, p in rows) / count)
    assert figures["majority"] == max(map(targets.count, range(4))) / count
    scores = []
    for k in range(4):
        for j in range(4):
            assert figures["confusion"][k][j] == rows.count((k, j))
        hits, claimed, there = rows.count((k, k)), predicted.count(k), targets.count(k)
        each = figures["per_class"][k]
        assert each["class"] == "abcd"[k]
        assert each["documents"] == there
        assert each["precision"] == (hits / claimed if claimed else 0)
        assert each["recall"] == (hits / there if there else 0)
        if claimed + there:
            scores.append(2 * hits / (claimed + there))
    assert figures["macro_f1"] == pytest.approx(sum(scores) / len(scores))
    # Matthews' correlation is that of the indicators, summed over classes.
    x, y = np.eye(4)[targets], np.eye(4)[predicted]
    x, y = x - x.mean(0), y - y.mean(0)
    spread = math.sqrt((x * x).sum() * (y * y).sum())
    wanted = (x * y).sum() / spread if spread > 1e-9 else 0
    assert figures["mcc"] == pytest.approx(wanted, abs=1e-9)
    json.dumps(figures, allow_nan=False)


@settings(max_examples=30)
@given(pairs)
def test_classes_by_scikit_learn(rows: list[tuple[int, int]]) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    targets, predicted = [list(each) for each in zip(*rows, strict=True)]
    figures = of_classes(targets, predicted)
    macro = metrics.f1_score(targets, predicted, average="macro", zero_division=0)
    assert figures["macro_f1"] == pytest.approx(macro)
    if len(set(targets)) > 1 and len(set(predicted)) > 1:
        mcc = metrics.matthews_corrcoef(targets, predicted)
        assert figures["mcc"] == pytest.approx(mcc, abs=1e-9)


def test_loss_and_calibration() -> None:
    task = Classification(("no", "yes"))
    probabilities = np.array([[0.9, 0.1], [0.92, 0.08], [0.3, 0.7], [0.0, 1.0]])
    with np.errstate(divide="ignore"):
        outputs = np.maximum(np.log(probabilities), -1000) + np.array([[5], [-3], [800], [0]])
    figures = task.evaluate(outputs, [0, 1, 1, 1])
    assert figures["loss"] == pytest.approx(-np.log([0.9, 0.08, 0.7, 1]).mean())
    bins = figures["calibration"]["bins"]
    assert [each["count"] for each in bins] == [1, 3]
    assert bins[0]["confidence"] == pytest.approx(0.7)
    assert bins[1]["accuracy"] == pytest.approx(2 / 3)
    wanted = abs(0.7 - 1) / 4 + 3 / 4 * abs((0.9 + 0.92 + 1) / 3 - 2 / 3)
    assert figures["calibration"]["ece"] == pytest.approx(wanted)
    short = summary(figures)
    assert short["ece"] == figures["calibration"]["ece"]
    assert all(isinstance(value, int | float) for value in short.values())


@given(st.lists(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=3, max_size=3),
                min_size=1, max_size=12))  # fmt: skip
def test_several_labels(rows: list[list[tuple[bool, bool]]]) -> None:
    task = Multilabel(("x", "y", "z"))
    pairs = np.array(rows)
    targets, predicted = pairs[:, :, 0].astype(float), pairs[:, :, 1]
    figures = task.evaluate(np.where(predicted, 2.0, -2.0), targets)
    flat = [tuple(pair) for row in rows for pair in row]
    hits, claimed = flat.count((True, True)), sum(p for _, p in flat)
    there = sum(t for t, _ in flat)
    assert figures["micro_f1"] == (2 * hits / (claimed + there) if claimed + there else 0)
    assert figures["exact"] == sum(all(t == p for t, p in row) for row in rows) / len(rows)
    wrong, right = math.log1p(math.exp(2)), math.log1p(math.exp(-2))
    wanted = sum(right if t == p else wrong for t, p in flat) / len(flat)
    assert figures["loss"] == pytest.approx(wanted)
    each = [2 * figures["per_class"][k]["recall"] * figures["per_class"][k]["documents"]
            for k in range(3)]  # fmt: skip
    sums = [targets[:, k].sum() + predicted[:, k].sum() for k in range(3)]
    wanted_macro = sum(a / b if b else 0 for a, b in zip(each, sums, strict=True)) / 3
    assert figures["macro_f1"] == pytest.approx(wanted_macro)


numbers = st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=20)


@given(numbers)
def test_numbers(rows: list[tuple[int, int]]) -> None:
    task = Regression(mean=10.0, std=2.0)
    targets, predicted = (np.array(each, float) for each in zip(*rows, strict=True))
    figures = task.evaluate(predicted[:, None], targets)
    errors = [2 * (p - t) for t, p in rows]
    assert figures["mae"] == pytest.approx(sum(map(abs, errors)) / len(rows))
    assert figures["rmse"] == pytest.approx(math.sqrt(sum(e * e for e in errors) / len(rows)))
    spread = sum((2 * (t - targets.mean())) ** 2 for t in targets)
    if spread:
        assert figures["r2"] == pytest.approx(1 - sum(e * e for e in errors) / spread)
    else:
        assert figures["r2"] is None

    def ranks(values: Any) -> list[float]:
        below = [sum(other < value for other in values) for value in values]
        equal = [sum(other == value for other in values) for value in values]
        return [b + (e + 1) / 2 for b, e in zip(below, equal, strict=True)]

    if len(set(targets)) > 1 and len(set(predicted)) > 1:
        wanted = np.corrcoef(ranks(predicted), ranks(targets))[0, 1]
        assert figures["spearman"] == pytest.approx(wanted, abs=1e-9)
    else:
        assert figures["spearman"] is None


def test_shapes_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"outputs of shape \[2, 3\] for 2 documents and 4"):
        CLASSES.evaluate(np.zeros((2, 3)), [0, 1])
    with pytest.raises(ValueError, match="no documents"):
        CLASSES.evaluate(np.zeros((0, 4)), [])
