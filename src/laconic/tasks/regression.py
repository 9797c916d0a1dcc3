"""Regression: a number for each document, which models learn in standard deviations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from laconic.tasks import labels
from laconic.tasks.labels import LabelError
from laconic.tasks.task import Answers, Array, Floats, Metric, Task

if TYPE_CHECKING:
    from torch import Tensor


def _r2(answers: Answers) -> float | None:
    spread = float(((answers.wanted - answers.wanted.mean()) ** 2).sum())
    return 1 - float((answers.errors**2).sum()) / spread if spread > 0 else None


def _spearman(answers: Answers) -> float | None:
    a, b = _ranks(answers.predicted), _ranks(answers.wanted)
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread > 0 else None


def _ranks(values: Floats) -> Floats:
    """Return the rank of each value, equal ones the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = (ends - (counts - 1) / 2)[places.reshape(-1)]
    return ranks


class Regression(Task):
    """A number for each document; metrics but the loss are in the labels' unit.

    >>> task = Regression.of([0.5, "1.5"])
    >>> task
    Regression(classes=(), mean=1.0, std=0.5)
    >>> task.numbers([2]).tolist(), task.predictions([[2.0]])
    ([2.0], [2.0])
    """

    name = "regression"
    aim = "Prediction of a number"
    metrics = (
        Metric(
            "mae",
            "MAE",
            lambda a: np.abs(a.errors).mean(),
            lower_is_better=True,
            meaning="How far predictions are off in the mean, in the units of the labels.",
        ),
        Metric(
            "rmse",
            "RMSE",
            lambda a: np.sqrt((a.errors**2).mean()),
            lower_is_better=True,
            meaning="As MAE, but large errors count more: the root of the mean square.",
        ),
        Metric(
            "r2",
            "R²",
            _r2,
            meaning="The share of the labels' variance that is explained: 1 is perfect, 0 is as "
            "good as always giving the mean, and below that is worse.",
        ),
        Metric(
            "spearman",
            "Spearman",
            _spearman,
            meaning="Whether predictions are in the order of the labels: 1 if entirely, 0 if by "
            "chance.",
        ),
        Metric("loss", "loss", lambda a: a.squares.mean(), lower_is_better=True, reported=False),
    )
    headline = ("r2", "mae")

    @classmethod
    def recognises(cls, values: Sequence[object]) -> bool:
        """Return whether there are floats, or fractions as texts, as CSV has them."""
        if any(isinstance(value, float) for value in values):
            return True
        try:
            numbers = [float(value) for value in values if isinstance(value, str)]
        except ValueError:
            return False
        return len(numbers) == len(values) and any(number % 1 for number in numbers)

    @classmethod
    def of(cls, values: Iterable[object]) -> Self:
        """Return the regression of numbers with such a mean and standard deviation."""
        numbers = labels.numbers(values)
        with np.errstate(over="ignore", invalid="ignore"):
            mean, std = float(numbers.mean()), float(numbers.std())
        if not math.isfinite(mean + std):
            raise LabelError("numbers so large cannot be learned; divide them by a constant")
        return cls((), mean, std or 1.0)

    def numbers(self, values: Iterable[object]) -> npt.NDArray[np.float32]:
        """Return standardised numbers, float32 [N]."""
        return ((labels.numbers(values) - self.mean) / self.std).astype(np.float32)

    def restore(self, numbers: npt.ArrayLike) -> Floats:
        """Return standardised numbers in the unit of the labels."""
        return np.asarray(numbers, np.float64) * self.std + self.mean

    @staticmethod
    def losses(outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return squared errors."""
        return (outputs[:, 0] - targets.to(outputs.dtype).reshape(-1)) ** 2

    def decide(self, outputs: npt.ArrayLike) -> Floats:
        """Return the number of each document, float64 [N]."""
        return self.restore(np.asarray(outputs)[:, 0])

    def answers(self, outputs: Floats, targets: Array) -> Answers:
        """Return what was learned as `squares`, the rest in the unit of the labels; [N] each."""
        predicted, wanted = self.decide(outputs), self.restore(targets.reshape(-1))
        squares = (outputs[:, 0] - targets.reshape(-1)) ** 2
        errors = predicted - wanted
        return Answers(predicted=predicted, wanted=wanted, errors=errors, squares=squares)
