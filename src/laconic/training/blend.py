"""A blend of views: how much each may say, told by documents that none of them learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.arrays import Int64s
from laconic.tasks import Task
from laconic.training.threads import one_thread

_STEPS = 24
_WIDEST = 5.0  # factors are from 2^-5 to 2^5
_SHARES = tuple(k / 20 for k in range(21))  # of reading
SURE = 1.5  # standard errors that are taken off a mean gain: docs/blended.md


class Scaled(NamedTuple):
    """Outputs as calibrated as one factor makes them: the factor, and the mean loss then."""

    factor: float
    loss: float


class Blend(NamedTuple):
    """What views' outputs are multiplied by, before they are added up."""

    counting: float
    reading: float
    share: float
    """Of what is said, that reading says: 0 if it is left out."""
    losses: dict[str, float]
    """On held-out documents: of counting, of reading, and of both, calibrated."""


@one_thread()
def scaled(
    task: Task,
    outputs: npt.ArrayLike,
    targets: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
) -> Scaled:
    """Return the factor of outputs, float [N, K], that gives the least loss on these documents.

    The loss is convex in it, so that it can be closed in on. `weights` are documents', float [N].
    """
    said, wanted = torch.as_tensor(outputs).double(), torch.as_tensor(targets)
    each = _of_mean_1(weights, len(said)).to(said.device)

    def loss(power: float) -> float:
        return float((task.losses(said * 2.0**power, wanted) * each).mean())

    power = _lowest(loss, -_WIDEST, _WIDEST)
    return Scaled(2.0**power, loss(power))


class Mixtures(NamedTuple):
    """Two views in every proportion, from counting alone to reading alone."""

    factors: list[tuple[float, float]]
    """What counting's and reading's outputs are multiplied by."""
    losses: Tensor
    """Of held-out documents, times their weights, as calibrated as can be, [mixtures, N]."""
    groups: Tensor
    """Of the documents, by number, int64 [N]: those of one are alike, and count as one chance."""

    def blend(self, sure: float = SURE) -> Blend:
        """Return the mixture that is best for sure.

        Counting speaks alone, or reading if it is better for sure; the other view gets the share
        that for sure lowers the loss most. What is sure of a gain is its mean over documents less
        so many standard errors: a few documents may see one by chance.
        """
        last = len(_SHARES) - 1
        ground = last if self._gains(0, sure)[last] > 0 else 0
        gains = self._gains(ground, sure)
        best = max(range(len(_SHARES)), key=lambda place: (gains[place], place == ground))
        told = {"counting": 0, "reading": last, "both": best}
        means = {name: float(self.losses[place].mean()) for name, place in told.items()}
        return Blend(*self.factors[best], _SHARES[best], means)

    def _gains(self, ground: int, sure: float) -> list[float]:
        """Return by how much the loss of each is lower than that of one, for sure."""
        saved = self.losses[ground] - self.losses
        means = saved.mean(1, keepdim=True)
        by_group = saved.new_zeros(len(saved), int(self.groups.max()) + 1)
        by_group.index_add_(1, self.groups, saved - means)
        errors = by_group.square().sum(1).sqrt() / saved.shape[1]
        gains: list[float] = (means.squeeze(1) - sure * errors).tolist()
        return gains


@one_thread()
def mixtures(
    task: Task,
    counting: npt.ArrayLike,
    reading: npt.ArrayLike,
    targets: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    groups: Int64s | None = None,
) -> Mixtures:
    """Return the mixtures of two views' outputs, float [N, K] each, on held-out documents.

    `weights`, float [N], tell how much each of these counts; `groups`, int64 [N], which are alike.
    """
    counted, read = _tensor(counting), _tensor(reading)
    each = _of_mean_1(weights, len(counted))
    alone = (
        scaled(task, counted, targets, each).factor,
        scaled(task, read, targets, each).factor,
    )
    wanted, factors, losses = torch.as_tensor(targets), [], []
    most = 2.0**_WIDEST / max(alone)  # Nothing is multiplied by more, alone or together.
    for share in _SHARES:
        parts = (1 - share) * alone[0], share * alone[1]
        together = parts[0] * counted + parts[1] * read
        factor = min(most, scaled(task, together, targets, each).factor) if 0 < share < 1 else 1.0
        factors.append((factor * parts[0], factor * parts[1]))
        losses.append(task.losses(factor * together, wanted) * each)
    of = torch.arange(len(counted)) if groups is None else torch.from_numpy(groups)
    return Mixtures(factors, torch.stack(losses), of)


def _tensor(values: npt.ArrayLike) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.float64))


def _of_mean_1(weights: npt.ArrayLike | None, documents: int) -> Tensor:
    """Return weights over their mean, float64 [N]; ones if there are none, or all are 0."""
    each = torch.ones(documents) if weights is None else torch.as_tensor(weights).cpu()
    each = each.double()
    return each / each.mean() if each.any() else torch.ones_like(each)


def _lowest(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function of one valley is lowest, by the golden section."""
    ratio = (5**0.5 - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(_STEPS):
        if at_left < at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = function(right)
    return (low + high) / 2
