"""The loss of each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from laconic.training.data import Labels
from laconic.training.settings import ConfigError, TrainingConfig

__all__ = ["Losses", "class_weights", "document_losses", "losses_of_views"]

Losses: TypeAlias = Callable[[Tensor, Tensor], Tensor]
"""outputs float [B, K], labels [B] or [B, K] to the losses of the documents, float [B]."""


def document_losses(config: TrainingConfig, labels: Labels, weights: Tensor | None) -> Losses:
    """Return the function of training: cross-entropies, or squared errors.

    `weights` (float [K]) are those of classes. With `label_smoothing` s, classes get s / K of each
    other's labels; of several labels, each moves by s towards 1/2. ConfigError if settings do not
    fit the labels.
    """
    smoothing = config.label_smoothing
    if labels.task == "regression" and smoothing:
        raise ConfigError("label_smoothing is for classes; leave it out of regression")
    if labels.task != "classification" and config.class_weights:
        raise ConfigError(f"class_weights are for classification; leave them out of {labels.task}")

    def classification(outputs: Tensor, targets: Tensor) -> Tensor:
        losses = F.cross_entropy(outputs, targets, label_smoothing=smoothing, reduction="none")
        return losses if weights is None else losses * weights[targets]

    def multilabel(outputs: Tensor, targets: Tensor) -> Tensor:
        wanted = targets.to(outputs.dtype) * (1 - smoothing) + smoothing / 2
        return F.binary_cross_entropy_with_logits(outputs, wanted, reduction="none").mean(1)

    def regression(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs[:, 0] - targets.to(outputs.dtype)) ** 2

    return {
        "classification": classification,
        "multilabel": multilabel,
        "regression": regression,
    }[labels.task]


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
