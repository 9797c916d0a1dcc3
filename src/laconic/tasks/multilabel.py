"""Several labels: any number of classes for each document, each for itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.tasks import labels
from laconic.tasks.classification import per_class, ratio
from laconic.tasks.labels import Class, LabelError
from laconic.tasks.task import Answers, Floats, Metric, Task

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Multilabel"]


class _Answers(Answers):
    @cached_property
    def wanted(self) -> npt.NDArray[np.bool_]:
        """Which labels there are, [N, K]."""
        return self.targets > 0.5

    @cached_property
    def counts(self) -> tuple[Int64s, Int64s, Int64s]:
        """How often each label was right, is there and was chosen, [K] each."""
        chosen = self.predicted > 0
        return (chosen & self.wanted).sum(0), self.wanted.sum(0), chosen.sum(0)

    @cached_property
    def per_class(self) -> list[dict[str, Any]]:
        """Precision, recall and F1 of each label."""
        return per_class(self.task.classes, *self.counts)


def _micro_f1(answers: _Answers) -> float:
    right, occur, chosen = (each.sum(keepdims=True) for each in answers.counts)
    return float(ratio(2 * right, occur + chosen)[0])


def _loss(answers: _Answers) -> float:
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
    many = smooths = True
    metrics = (
        Metric(
            "exact",
            "exact matches",
            lambda a: float((a.predicted == a.wanted).all(axis=1).mean()),
            share=True,
        ),
        Metric("micro_f1", "micro-F1", _micro_f1),
        Metric("macro_f1", "macro-F1", lambda a: float(np.mean([c["f1"] for c in a.per_class]))),
        Metric("loss", "loss", _loss, lower_is_better=True, reported=False),
    )
    headline = ("micro_f1",)
    answers = _Answers

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
    def losses(
        outputs: Tensor, targets: Tensor, smoothing: float = 0.0, weights: Tensor | None = None
    ) -> Tensor:
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

    def details(self, answers: _Answers) -> dict[str, Any]:
        """Return the scores of each label."""
        return {"per_class": answers.per_class}
