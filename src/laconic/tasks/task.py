"""What a task is: labels to numbers, a model's outputs to answers, and how good these are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.errors import InputError
from laconic.tasks.labels import Class

if TYPE_CHECKING:
    from torch import Tensor  # not needed to know names, words and figures

Array: TypeAlias = npt.NDArray[Any]
Floats: TypeAlias = npt.NDArray[np.float64]
Answers: TypeAlias = SimpleNamespace
"""What a model gave, beside what it should have, and what metrics have in common: arrays."""


@dataclass(frozen=True)
class Metric:
    """A figure that says how good answers are: one number, and how people read it."""

    name: str
    """In JSON."""
    words: str
    """In tables and on pages."""
    of: Callable[[Answers], float | None]
    """None where it is not defined."""
    share: bool = False
    """Whether it is shown in percent."""
    lower_is_better: bool = False
    reported: bool = True
    """Whether reports show it."""
    beside: str = ""
    """The name of a figure to compare it with."""
    meaning: str = ""
    """What it says, for reports: a sentence or two."""

    def spelled(self, value: float) -> str:
        """Return the words and the number.

        >>> Metric("r2", "R²", lambda answers: None).spelled(0.54321)
        'R² 0.5432'
        """
        return f"{self.words} " + (f"{100 * value:.2f} %" if self.share else f"{value:.4g}")


@dataclass(frozen=True)
class Task(ABC):
    """What a model learns, and what its outputs stand for: classes, or a number.

    A task is one file with such a class, and its entry in laconic.tasks.TASKS. The fields are what
    is learned from the training's labels; about.json keeps them.
    """

    classes: tuple[Class, ...] = ()
    """Sorted: numbers, then texts; the model has an output for each. Empty for numbers."""
    mean: float = 0.0
    std: float = 1.0
    """Of numbers that are learned standardised; an explained value is outputs * std + mean."""

    name: ClassVar[str]
    """In settings and files."""
    aim: ClassVar[str]
    """For the report; what follows is the number of `things`."""
    things: ClassVar[tuple[()] | tuple[str, str]] = ()
    """What classes are called: one, several. Empty if there are none."""
    single: ClassVar[bool] = False
    """Whether a document is of one class, whose place is its target."""
    metrics: ClassVar[tuple[Metric, ...]]
    """In the order of tables; one of them is called loss."""
    headline: ClassVar[tuple[str, ...]]
    """Names of the metrics that people ask for first; the first is shown of every epoch."""

    @classmethod
    def leading(cls) -> list[Metric]:
        """Return the metrics of the headline."""
        return [metric for name in cls.headline for metric in cls.metrics if metric.name == name]

    @classmethod
    def recognises(cls, values: Sequence[object]) -> bool:
        """Return whether labels are of this task, unless they are said to be of another."""
        return False

    @classmethod
    @abstractmethod
    def of(cls, values: Iterable[object]) -> Self:
        """Return the task that the labels of training set; LabelError for missing or unfit ones."""

    @abstractmethod
    def numbers(self, values: Iterable[object]) -> Array:
        """Return labels as a GrammarDataset takes them; LabelError for missing or unknown ones."""

    @property
    def outputs(self) -> int:
        """How many numbers the model gives for a document."""
        return max(1, len(self.classes))

    @staticmethod
    @abstractmethod
    def losses(outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return the loss of each document, float [B]; `smoothing` is of classes."""

    @abstractmethod
    def decide(self, outputs: npt.ArrayLike) -> Array:
        """Return places of classes [N], zeros and ones [N, K], or numbers like the labels [N]."""

    def predictions(self, outputs: npt.ArrayLike) -> list[Any]:
        """Return for each document what a label would be: a class, a list of classes, a number."""
        return list(self.decide(outputs).tolist())

    def probabilities(self, outputs: npt.ArrayLike) -> Floats:
        """Return the probability of each class, float64 [N, K]; InputError without classes."""
        raise InputError(f"a {self.name} has no probabilities; use predict")

    def sides(self) -> dict[Any, tuple[int, int]]:
        """Return what a phrase can speak for: an output, and 1 for more or -1 for less of it."""
        if self.classes:
            return {each: (place, 1) for place, each in enumerate(self.classes)}
        return {"higher": (0, 1), "lower": (0, -1)}

    def value(self, outputs: Tensor, place: int) -> Tensor:
        """Return what is explained of outputs [B, K], float [B]; linear, `mean` is left out."""
        return outputs[:, place] * self.std

    def answers(self, outputs: Floats, targets: Array) -> Answers:
        """Return what metrics and details are functions of."""
        return Answers(outputs=outputs, targets=targets, predicted=self.decide(outputs))

    def details(self, answers: Answers) -> dict[str, Any]:
        """Return figures that are lists or objects, which summaries leave out."""
        return {}

    def evaluate(self, outputs: npt.ArrayLike, targets: npt.ArrayLike) -> dict[str, Any]:
        """Return how well outputs, float [N, K], fit the targets that `numbers` gave.

        All values are JSON's: `documents`, each metric (None where it is not defined) and
        `details`. `loss` is the mean over documents, without smoothing or weights. InputError for
        other shapes. O(N K).
        """
        scores, wanted = np.asarray(outputs, np.float64), np.asarray(targets)
        if scores.ndim != 2 or scores.shape[1] != self.outputs or len(scores) != len(wanted):
            raise InputError(
                f"outputs of shape {list(scores.shape)} for {len(wanted)} documents "
                f"and {self.outputs} outputs of the model"
            )
        if not len(scores):
            raise InputError("there are no documents to evaluate")
        answers = self.answers(scores, wanted)
        found = {metric.name: metric.of(answers) for metric in self.metrics}
        figures = {name: None if value is None else float(value) for name, value in found.items()}
        return {"documents": len(scores), **figures, **self.details(answers)}

    def rank(self, figures: Mapping[str, Any]) -> tuple[float, ...]:
        """Return what is highest for the best epoch."""
        return (-figures["loss"],)

    def to_json(self) -> dict[str, Any]:
        """Return what laconic.tasks.task_from_json reads."""
        classes = list(self.classes)
        return {"task": self.name, "classes": classes, "mean": self.mean, "std": self.std}


def summary(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of evaluate's figures that are one number each."""
    return {name: each for name, each in figures.items() if not isinstance(each, list | dict)}
