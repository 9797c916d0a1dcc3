"""Classification: one class for each document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.tasks import labels
from laconic.tasks.labels import Class, LabelError
from laconic.tasks.task import Answers, Array, Floats, Metric, Task

if TYPE_CHECKING:
    from torch import Tensor

_BINS = 10


def _macro_f1(answers: Answers) -> float:
    """Return the mean over classes that occur or were predicted."""
    scores = np.array([each["f1"] for each in answers.per_class])
    return float(scores[(answers.occur + answers.chosen) > 0].mean())


def _mcc(answers: Answers) -> float:
    """Matthews' correlation for any number of classes (Gorodkin, 2004); 0 where undefined."""
    a, b = answers.occur.astype(np.float64), answers.chosen.astype(np.float64)
    hits, total = float(answers.right.sum()), float(len(answers.right))
    spread = (total**2 - a @ a) * (total**2 - b @ b)
    return float((hits * total - a @ b) / np.sqrt(spread)) if spread > 0 else 0.0


def _ece(answers: Answers) -> float:
    return float(answers.calibration["ece"])


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
    aim, things, single = "Classification into", ("class", "classes"), True
    metrics = (
        Metric(
            "accuracy",
            "accuracy",
            lambda a: a.right.mean(),
            share=True,
            beside="majority",
            meaning="The share of documents whose class was found. Compare it with that of the "
            "largest class, which one gets by always giving that.",
        ),
        Metric("majority", "largest class", lambda a: a.shares.max(), share=True, reported=False),
        Metric(
            "macro_f1",
            "macro-F1",
            _macro_f1,
            meaning="The mean of each class's F1, so that rare classes count as much as frequent "
            "ones. Far below the accuracy, it says that rare classes are missed.",
        ),
        Metric(
            "mcc",
            "MCC",
            _mcc,
            meaning="Matthews' correlation of true and predicted classes: 1 is perfect, 0 is as "
            "good as chance, whatever the classes' shares.",
        ),
        Metric("ece", "calibration error", _ece, lower_is_better=True, reported=False),
        Metric("loss", "loss", lambda a: -a.logs.mean(), lower_is_better=True, reported=False),
    )
    headline = ("accuracy",)

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

    @staticmethod
    def losses(outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return cross-entropies; with `smoothing` s, classes get s / K of each other's labels."""
        from torch.nn import functional as F  # noqa: N812

        return F.cross_entropy(outputs, targets, label_smoothing=smoothing, reduction="none")

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
        others = outputs.shape[1] - 1
        if not others:
            return outputs[:, place]
        # What speaks for every class alike changes no probability.
        return ((others + 1) * outputs[:, place] - outputs.sum(1)) / others

    def answers(self, outputs: Floats, targets: Array) -> Answers:
        """Add `right`, `logs` of the true class, `confusion` and what follows from it."""
        (count, size), predicted = outputs.shape, self.decide(outputs)
        logs = outputs - outputs.max(axis=1, keepdims=True)
        logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
        confusion = np.bincount(targets * size + predicted, minlength=size**2).reshape(size, size)
        occur, chosen, right = confusion.sum(axis=1), confusion.sum(axis=0), predicted == targets
        return Answers(
            outputs=outputs,
            targets=targets,
            predicted=predicted,
            right=right,
            logs=logs[np.arange(count), targets],
            occur=occur,
            chosen=chosen,
            shares=occur / count,
            confusion=confusion,
            per_class=per_class(self.classes, confusion.diagonal(), occur, chosen),
            calibration=_calibration(np.exp(logs.max(axis=1)), right),
        )

    def details(self, answers: Answers) -> dict[str, Any]:
        """Return confusion [class][predicted], the scores of each class, and calibration."""
        return {
            "confusion": answers.confusion.tolist(),
            "per_class": answers.per_class,
            "calibration": answers.calibration,
        }

    def rank(self, figures: Mapping[str, Any]) -> tuple[float, ...]:
        """Return the accuracy; of equal ones, the lower loss is better."""
        return figures["accuracy"], -figures["loss"]


def _calibration(confidence: Floats, right: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return bins by the probability of the predicted class, and their mean error."""
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


def per_class(
    classes: Sequence[Class], right: Array, occur: Array, chosen: Array
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


def ratio(part: Array, whole: Array) -> Floats:
    """Return part / whole, 0 where there is nothing."""
    ratios: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return ratios
