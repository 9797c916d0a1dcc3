"""Several labels: any number of classes for each document, each for itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.tasks import labels
from laconic.tasks.classification import per_class, ratio
from laconic.tasks.labels import Class, LabelError
from laconic.tasks.task import Answers, Array, Floats, Metric, Task

if TYPE_CHECKING:
    from torch import Tensor


def _micro_f1(answers: Answers) -> float:
    right, occur, chosen = (each.sum(keepdims=True) for each in answers.counts)
    return float(ratio(2 * right, occur + chosen)[0])


def _loss(answers: Answers) -> float:
    scores = answers.outputs
    # log(1 + exp(x)), without overflow.
    softplus = np.maximum(scores, 0) + np.log1p(np.exp(-np.abs(scores)))
    return float((softplus - scores * answers.targets).mean())


class Multilabel(Task):
    """A list of labels for each document; one is predicted if it is more probable than not.

    >>> task = Multilabel.of([["a"], [], ["b", "a"]])
    >>> task.numbers([["b"], []]).tolist(), task.predictions([[2.0, -1.0]])
    ([[0.0, 1.0], [0.0, 0.0]], [['a']])
    """

    name = "multilabel"
    aim, things = "Choice among", ("label", "labels")
    metrics = (
        Metric(
            "exact",
            "exact matches",
            lambda a: a.right.all(axis=1).mean(),
            share=True,
            meaning="The share of documents all of whose labels were found, and no others.",
        ),
        Metric(
            "micro_f1",
            "micro-F1",
            _micro_f1,
            meaning="The F1 of all labels of all documents together: frequent labels count more.",
        ),
        Metric(
            "macro_f1",
            "macro-F1",
            lambda a: np.mean([each["f1"] for each in a.per_class]),
            meaning="The mean of each label's F1: rare labels count as much as frequent ones.",
        ),
        Metric("loss", "loss", _loss, lower_is_better=True, reported=False),
    )
    headline = ("micro_f1",)

    @classmethod
    def recognises(cls, values: Sequence[object]) -> bool:
        """Return whether some labels are lists."""
        return any(isinstance(value, list | tuple | set | frozenset) for value in values)

    @classmethod
    def of(cls, values: Iterable[object]) -> Self:
        """Return the choice among the labels that occur."""
        found = labels.ordered(chain.from_iterable(labels.lists(values)))
        if not found:
            raise LabelError("every document's list of labels is empty")
        return cls(found)

    def numbers(self, values: Iterable[object]) -> npt.NDArray[np.float32]:
        """Return zeros and ones, float32 [N, K]."""
        find, rows = labels.finder(self.classes), labels.lists(values)
        targets = np.zeros((len(rows), len(self.classes)), np.float32)
        for row, some in enumerate(rows):
            targets[row, [find(each, row) for each in some]] = 1
        return targets

    @staticmethod
    def losses(outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return mean cross-entropies; with `smoothing` s, each label moves by s towards 1/2."""
        from torch.nn import functional as F  # noqa: N812

        wanted = targets.to(outputs.dtype) * (1 - smoothing) + smoothing / 2
        return F.binary_cross_entropy_with_logits(outputs, wanted, reduction="none").mean(1)

    def decide(self, outputs: npt.ArrayLike) -> Int64s:
        """Return zeros and ones, int64 [N, K]."""
        return (np.asarray(outputs) > 0).astype(np.int64)

    def predictions(self, outputs: npt.ArrayLike) -> list[list[Class]]:
        """Return the labels of each document."""
        return [[self.classes[k] for k in np.flatnonzero(row)] for row in self.decide(outputs)]

    def probabilities(self, outputs: npt.ArrayLike) -> Floats:
        """Return the probability of each label on its own, float64 [N, K]."""
        # Of both signs, this never overflows.
        return np.exp(-np.logaddexp(0, -np.asarray(outputs, np.float64)))

    def answers(self, outputs: Floats, targets: Array) -> Answers:
        """Add `right` [N, K], and for each label how often it was right, is there, was chosen."""
        chosen, wanted = self.decide(outputs) > 0, targets > 0.5
        counts = (chosen & wanted).sum(0), wanted.sum(0), chosen.sum(0)
        return Answers(
            outputs=outputs,
            targets=targets,
            right=chosen == wanted,
            counts=counts,
            per_class=per_class(self.classes, *counts),
        )

    def details(self, answers: Answers) -> dict[str, Any]:
        """Return the scores of each label."""
        return {"per_class": answers.per_class}
