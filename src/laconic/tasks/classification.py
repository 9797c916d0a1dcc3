"""Classification: one class for each document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.tasks import labels
from laconic.tasks.labels import Class, LabelError
from laconic.tasks.task import Answers, Floats, Metric, Task

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Classification", "per_class", "ratio"]

_BINS = 10  # of calibration


class _Answers(Answers):
    @cached_property
    def logs(self) -> Floats:
        """Logarithms of probabilities, [N, K]."""
        logs: Floats = self.outputs - self.outputs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        return logs

    @cached_property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether each document got its class."""
        return np.asarray(self.predicted == self.targets)

    @cached_property
    def confusion(self) -> Int64s:
        """Documents of each class [K] that got each class [K]."""
        size = self.outputs.shape[1]
        pairs = np.bincount(self.targets * size + self.predicted, minlength=size**2)
        return pairs.reshape(size, size)

    @cached_property
    def per_class(self) -> list[dict[str, Any]]:
        """Precision, recall and F1 of each class."""
        table = self.confusion
        return per_class(self.task.classes, table.diagonal(), table.sum(axis=1), table.sum(axis=0))

    @cached_property
    def calibration(self) -> dict[str, Any]:
        """Bins by the probability of the predicted class, and their mean error."""
        confidence = np.exp(self.logs.max(axis=1))
        places = np.minimum((confidence * _BINS).astype(np.int64), _BINS - 1)
        bins, error = [], 0.0
        for place in range(_BINS):
            here = places == place
            count = int(here.sum())
            if count:
                claimed, true = float(confidence[here].mean()), float(self.right[here].mean())
                error += abs(claimed - true) * count / len(places)
                bins.append({"confidence": claimed, "accuracy": true, "count": count})
        return {"bins": bins, "ece": error}


def _macro_f1(answers: _Answers) -> float:
    """Return the mean over classes that occur or were predicted."""
    seen = (answers.confusion.sum(axis=1) + answers.confusion.sum(axis=0)) > 0
    return float(np.array([each["f1"] for each in answers.per_class])[seen].mean())


def _mcc(answers: _Answers) -> float:
    """Matthews' correlation for any number of classes (Gorodkin, 2004); 0 where undefined."""
    table = answers.confusion.astype(np.float64)
    hits, total = float(table.trace()), float(table.sum())
    a, b = table.sum(axis=1), table.sum(axis=0)
    spread = (total**2 - a @ a) * (total**2 - b @ b)
    return float((hits * total - a @ b) / np.sqrt(spread)) if spread > 0 else 0.0


def _loss(answers: _Answers) -> float:
    return float(-answers.logs[np.arange(len(answers.targets)), answers.targets].mean())


class Classification(Task):
    """One class for each document.

    >>> task = Classification.of(["no", "yes", "no"])
    >>> task.classes, task.numbers(["yes", "no"]).tolist()
    (('no', 'yes'), [1, 0])
    >>> task.numbers(["yes", "perhaps"])
    Traceback (most recent call last):
        ...
    laconic.tasks.labels.LabelError: document 1: it is of class 'perhaps', unseen in training; known are 'no', 'yes'
    >>> figures = task.evaluate([[2.0, 0.0], [0.0, 2.0], [0.0, 2.0]], [0, 1, 0])
    >>> round(figures["accuracy"], 3), figures["confusion"], figures["mcc"]
    (0.667, [[1, 1], [0, 1]], 0.5)
    """  # noqa: E501

    name = "classification"
    aim, things = "Classification into", ("class", "classes")
    smooths = weighs = True
    metrics = (
        Metric(
            "accuracy", "accuracy", lambda a: float(a.right.mean()), share=True, beside="majority"
        ),
        Metric(
            "majority",
            "largest class",
            lambda a: float(a.confusion.sum(axis=1).max() / len(a.targets)),
            share=True,
            reported=False,
        ),
        Metric("macro_f1", "macro-F1", _macro_f1),
        Metric("mcc", "MCC", _mcc),
        Metric(
            "ece",
            "calibration error",
            lambda a: a.calibration["ece"],
            share=True,
            lower_is_better=True,
            reported=False,
        ),
        Metric("loss", "loss", _loss, lower_is_better=True, reported=False),
    )
    headline = ("accuracy",)
    answers = _Answers

    @classmethod
    def of(cls, values: Iterable[object]) -> Self:
        """Return the classification into the classes that occur."""
        found = labels.ordered(labels.single(values))
        if len(found) == 1:
            raise LabelError(f"every document is of class {found[0]!r}; two are needed")
        return cls(found)

    def numbers(self, values: Iterable[object]) -> Int64s:
        """Return the place of each class, int64 [N]."""
        find = labels.finder(self.classes)
        found = [find(each, row) for row, each in enumerate(labels.single(values))]
        return np.array(found, np.int64)

    def strata(self, targets: npt.NDArray[Any]) -> Int64s:
        """Return the classes themselves."""
        return targets

    @staticmethod
    def losses(
        outputs: Tensor, targets: Tensor, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
        """Return cross-entropies; with `smoothing` s, classes get s / K of each other's labels."""
        from torch.nn import functional as F  # noqa: N812

        losses = F.cross_entropy(outputs, targets, label_smoothing=smoothing, reduction="none")
        return losses if weights is None else losses * weights[targets]

    def decide(self, outputs: npt.ArrayLike) -> Int64s:
        """Return the place of the highest output, int64 [N]."""
        places: Int64s = np.asarray(outputs).argmax(axis=1)
        return places

    def predictions(self, outputs: npt.ArrayLike) -> list[Class]:
        """Return the class of each document."""
        return [self.classes[place] for place in self.decide(outputs).tolist()]

    def probabilities(self, outputs: npt.ArrayLike) -> Floats:
        """Return the probability of each class, float64 [N, K]."""
        scores = np.asarray(outputs, np.float64)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True, initial=-np.inf))
        return np.asarray(scores / scores.sum(axis=1, keepdims=True))

    def value(self, outputs: Tensor, place: int) -> Tensor:
        """Return the output less the mean of the others, float [B]."""
        count = outputs.shape[1]
        if count == 1:
            return outputs[:, place]
        # What speaks for every class alike changes no probability.
        return (count * outputs[:, place] - outputs.sum(1)) / (count - 1)

    def details(self, answers: _Answers) -> dict[str, Any]:
        """Return confusion [class][predicted], the scores of each class, and calibration."""
        return {
            "confusion": answers.confusion.tolist(),
            "per_class": answers.per_class,
            "calibration": answers.calibration,
        }

    def rank(self, figures: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the accuracy; of equal ones, the lower loss is better."""
        return figures["accuracy"], -figures["loss"]


def per_class(
    classes: Sequence[Class],
    right: npt.NDArray[Any],
    occur: npt.NDArray[Any],
    chosen: npt.NDArray[Any],
) -> list[dict[str, Any]]:
    """Return the scores of each class, given how often it was right, is there and was chosen."""
    precision, recall = ratio(right, chosen), ratio(right, occur)
    f1 = ratio(2 * right, occur + chosen)
    return [
        {
            "class": name,
            "documents": int(occur[k]),
            "predicted": int(chosen[k]),
            "precision": float(precision[k]),
            "recall": float(recall[k]),
            "f1": float(f1[k]),
        }
        for k, name in enumerate(classes)
    ]


def ratio(part: npt.NDArray[Any], whole: npt.NDArray[Any]) -> Floats:
    """Return part / whole, 0 where there is nothing."""
    ratios: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return ratios
