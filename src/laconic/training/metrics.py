"""How good outputs are: the figures of classification, several labels and regression, in NumPy."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.errors import InputError
from laconic.training.data import Labels

__all__ = ["evaluate_outputs", "summary"]

Floats: TypeAlias = npt.NDArray[np.float64]
_BINS = 10
_LONG = ("confusion", "per_class", "calibration")


def evaluate_outputs(
    labels: Labels, outputs: npt.ArrayLike, targets: npt.ArrayLike
) -> dict[str, Any]:
    """Return how well a model's outputs, float [N, K], fit the targets that Labels.numbers gave.

    All values are JSON's; what is not defined is None. `loss` is the mean over documents, without
    smoothing or weights.

    - classification: accuracy, macro_f1 (over classes that occur or were predicted), mcc,
      majority (share of the most frequent class), confusion [class][predicted], per_class, and
      calibration: bins by the probability of the predicted class, and their mean error, ece.
    - multilabel (a label is predicted from probability 1/2 on): micro_f1, macro_f1, exact,
      per_class.
    - regression, in the units of the labels: mae, rmse, r2, spearman.

    Raises ValueError for other shapes. O(N K).

    >>> labels = Labels("classification", ("no", "yes"))
    >>> figures = evaluate_outputs(labels, [[2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 0])
    >>> round(figures["accuracy"], 3), figures["confusion"], figures["mcc"]
    (0.667, [[1, 1], [0, 1]], 0.5)
    """
    scores, wanted = np.asarray(outputs, np.float64), np.asarray(targets)
    if scores.ndim != 2 or scores.shape[1] != labels.outputs or len(scores) != len(wanted):
        raise InputError(
            f"outputs of shape {list(scores.shape)} for {len(wanted)} documents "
            f"and {labels.outputs} outputs of the model"
        )
    if not len(scores):
        raise InputError("there are no documents to evaluate")
    if labels.task == "classification":
        return _classification(labels, scores, wanted.astype(np.int64))
    if labels.task == "multilabel":
        return _multilabel(labels, scores, wanted.astype(np.float64))
    return _regression(labels, scores[:, 0], wanted.astype(np.float64).reshape(-1))


def summary(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that are one number each."""
    short = {name: value for name, value in figures.items() if name not in _LONG}
    return short | ({"ece": figures["calibration"]["ece"]} if "calibration" in figures else {})


def _classification(
    labels: Labels, scores: Floats, targets: npt.NDArray[np.int64]
) -> dict[str, Any]:
    count, classes = scores.shape
    logs = scores - scores.max(axis=1, keepdims=True)
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    predicted = scores.argmax(axis=1)
    confusion = np.bincount(targets * classes + predicted, minlength=classes**2)
    confusion = confusion.reshape(classes, classes)
    right, occur, chosen = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    per_class = _per_class(labels, right, occur, chosen)
    seen = (occur + chosen) > 0
    return {
        "documents": count,
        "loss": float(-logs[np.arange(count), targets].mean()),
        "accuracy": float((predicted == targets).mean()),
        "macro_f1": float(np.array([each["f1"] for each in per_class])[seen].mean()),
        "mcc": _mcc(right, occur, chosen),
        "majority": float(occur.max() / count),
        "confusion": confusion.tolist(),
        "per_class": per_class,
        "calibration": _calibration(np.exp(logs.max(axis=1)), predicted == targets),
    }


def _per_class(
    labels: Labels, right: npt.NDArray[Any], occur: npt.NDArray[Any], chosen: npt.NDArray[Any]
) -> list[dict[str, Any]]:
    precision, recall = _ratio(right, chosen), _ratio(right, occur)
    f1 = _ratio(2 * right, occur + chosen)
    return [
        {
            "class": name,
            "documents": int(occur[k]),
            "predicted": int(chosen[k]),
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "f1": float(f1[k]),
        }
        for k, name in enumerate(labels.classes)
    ]


def _ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Floats:
    """Return part / whole, 0 where there is nothing."""
    ratios: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return ratios


def _mcc(
    right: npt.NDArray[np.int64], occur: npt.NDArray[np.int64], chosen: npt.NDArray[np.int64]
) -> float:
    """Matthews' correlation for any number of classes (Gorodkin, 2004); 0 where undefined."""
    hits, total = float(right.sum()), float(occur.sum())
    a, b = occur.astype(np.float64), chosen.astype(np.float64)
    spread = (total**2 - a @ a) * (total**2 - b @ b)
    return float((hits * total - a @ b) / np.sqrt(spread)) if spread > 0 else 0.0


def _calibration(confidence: Floats, right: npt.NDArray[np.bool_]) -> dict[str, Any]:
    places = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
    bins, error = [], 0.0
    for place in range(_BINS):
        here = places == place
        count = int(here.sum())
        if count:
            claimed, true = float(confidence[here].mean()), float(right[here].mean())
            error += abs(claimed - true) * count / len(right)
            bins.append({"confidence": claimed, "accuracy": true, "count": count})
    return {"bins": bins, "ece": error}


def _multilabel(labels: Labels, scores: Floats, targets: Floats) -> dict[str, Any]:
    predicted, wanted = scores >= 0, targets > 0.5
    # log(1 + exp(x)), without overflow.
    softplus = np.maximum(scores, 0) + np.log1p(np.exp(-np.abs(scores)))
    right, occur, chosen = ((predicted & wanted).sum(0), wanted.sum(0), predicted.sum(0))
    per_class = _per_class(labels, right, occur, chosen)
    all_f1 = _ratio(np.array([2 * right.sum()]), np.array([occur.sum() + chosen.sum()]))
    return {
        "documents": len(scores),
        "loss": float((softplus - scores * targets).mean()),
        "micro_f1": float(all_f1[0]),
        "macro_f1": float(np.mean([each["f1"] for each in per_class])),
        "exact": float((predicted == wanted).all(axis=1).mean()),
        "per_class": per_class,
    }


def _regression(labels: Labels, scores: Floats, targets: Floats) -> dict[str, Any]:
    predicted, wanted = labels.restore(scores), labels.restore(targets)
    errors = predicted - wanted
    spread = float(((wanted - wanted.mean()) ** 2).sum())
    return {
        "documents": len(scores),
        "loss": float(((scores - targets) ** 2).mean()),
        "mae": float(np.abs(errors).mean()),
        "rmse": float(np.sqrt((errors**2).mean())),
        "r2": 1 - float((errors**2).sum()) / spread if spread > 0 else None,
        "spearman": _correlation(_ranks(predicted), _ranks(wanted)),
    }


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value, equal ones the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts - 1) / 2)[places.reshape(-1)]
    return ranks


def _correlation(a: Floats, b: Floats) -> float | None:
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread > 0 else None
