"""How a training goes: what is told after each step, and losses, which are watched."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

from laconic.errors import InputError
from laconic.training.checkpoint import Position


class TrainingError(InputError):
    """A training that cannot go on; says why, and what to do."""

    @classmethod
    def of_loss(cls, loss: float, epoch: int, step: int | None = None) -> TrainingError:
        """Return the error of a loss that is infinite or no number."""
        where = f"epoch {epoch}" + ("" if step is None else f", step {step}")
        return cls(
            f"the loss is {loss} in {where}; use a lower learning_rate, or clip gradients "
            "(clip = 1); the last checkpoint is from before"
        )


class Progress(NamedTuple):
    """Where a training is, after a step; and after an epoch, with its line of metrics.jsonl."""

    epoch: int
    """From 1; 0 before them, while documents are read and counted, which are then the steps."""
    epochs: int
    step: int
    steps: int
    """Of this epoch."""
    loss: float | None
    """Mean of this epoch so far, if known."""
    learning_rate: float
    line: dict[str, Any] | None = None


class WatchedLosses:
    """Losses of an epoch's steps, added up in order; TrainingError for one that is no number.

    A device is asked for them `every` so many steps: asking makes it wait.
    """

    def __init__(self, at: Position, every: int) -> None:
        self._sum, self._documents = at.loss_sum, at.documents
        self._epoch, self._every = at.epoch, every
        self._waiting: list[tuple[int, Tensor, Tensor | int]] = []

    def add(self, step: int, loss_sum: Tensor, documents: Tensor | int) -> None:
        """Add the sum of a step's losses, and the number of its documents."""
        self._waiting.append((step, loss_sum, documents))
        if len(self._waiting) >= self._every:
            self._settle()

    @property
    def mean(self) -> float | None:
        """Of the documents so far, as far as the device was asked."""
        return self._sum / self._documents if self._documents else None

    def settled(self, at: Position, seconds: float) -> Position:
        """Return a position that knows all losses so far, and the time that they took."""
        self._settle()
        return replace(at, loss_sum=self._sum, documents=self._documents, seconds=seconds)

    def _settle(self) -> None:
        if not self._waiting:
            return
        steps, sums, counts = zip(*self._waiting, strict=True)
        losses = torch.stack(sums).tolist()
        for step, loss, documents in zip(steps, losses, map(float, counts), strict=True):
            if not math.isfinite(loss):
                raise TrainingError.of_loss(loss, self._epoch + 1, step)
            self._sum += loss
            self._documents += round(documents)
        self._waiting = []
