"""The loss of each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from laconic.tasks import Task
from laconic.training.settings import ConfigError, TrainingConfig

Losses: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""outputs float [B, K], labels [B] or [B, K] to the losses of the documents, float [B]."""


def document_losses(config: TrainingConfig, task: Task, weights: Tensor | None) -> Losses:
    """Return the function of training; `weights` (float [K]) are those of classes.

    ConfigError if settings do not fit the task.
    """
    smoothing = config.label_smoothing
    if smoothing and not task.things:
        raise ConfigError(f"label_smoothing is for classes; leave it out of {task.name}")
    if config.class_weights and not task.single:
        raise ConfigError(f"class_weights are for classification; leave them out of {task.name}")
    if weights is None:
        return partial(task.losses, smoothing=smoothing)
    return lambda outputs, targets: task.losses(outputs, targets, smoothing) * weights[targets]


def losses_of_views(
    losses: Losses, views: Sequence[Tensor], labels: Tensor, weight: float
) -> Tensor:
    """Return float [B]: the mean of the loss of the views' sum, and with `weight` of each alone.

    A view alone is taken for all of them, as if the others said the same. Without losses of their
    own, the view that learns first, which is the one that counts, leaves the others less to learn.

    >>> def squares(outputs, labels): return (outputs[:, 0] - labels) ** 2
    >>> read, counted = torch.tensor([[1.0]]), torch.tensor([[0.0]])
    >>> losses_of_views(squares, [read, counted], torch.ones(1), weight=0.5)    # (0 + ½ + ½) / 2
    tensor([0.5000])
    """
    views = [view.float() for view in views]
    together = losses(sum(views[1:], views[0]), labels)
    if len(views) == 1 or not weight:
        return together
    alone = [weight * losses(len(views) * view, labels) for view in views]
    return sum(alone, together) / (1 + weight * len(views))


def class_weights(targets: np.ndarray[tuple[int], np.dtype[np.int64]], classes: int) -> Tensor:
    """Return float [K]: classes weigh the same in sum, and documents 1 on average.

    >>> class_weights(np.array([0, 0, 0, 1]), 2).tolist()
    [0.6666666865348816, 2.0]
    """
    counts = np.bincount(targets, minlength=classes)
    present = max(1, int((counts > 0).sum()))
    weights = len(targets) / (present * np.maximum(1, counts))
    return torch.tensor(weights, dtype=torch.float32)
