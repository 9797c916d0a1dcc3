"""A blend of views: how much each may say, told by documents that none of them learned from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.tasks import Task

_STEPS = 40
_WIDEST = 5.0  # factors are from 2^-5 to 2^5
_SHARES = tuple(k / 20 for k in range(20))  # of the view that is worse alone
_PRIOR = 4.0  # documents' losses that the share of the worse view must save: half of it a quarter


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


def scaled(task: Task, outputs: npt.ArrayLike, targets: npt.ArrayLike) -> Scaled:
    """Return the factor of outputs, float [N, K], that gives the least loss on these documents.

    The loss is convex in it, so that it can be closed in on.
    """
    said, wanted = torch.as_tensor(outputs).double(), torch.as_tensor(targets)

    def loss(power: float) -> float:
        return float(task.losses(said * 2.0**power, wanted).mean())

    power = _lowest(loss, -_WIDEST, _WIDEST)
    return Scaled(2.0**power, loss(power))


def blended(
    task: Task, counting: npt.ArrayLike, reading: npt.ArrayLike, targets: npt.ArrayLike
) -> Blend:
    """Return the blend of two views' outputs, float [N, K] each, on held-out documents.

    Each is calibrated by a factor. Then the worse one gets the share that lowers the loss most,
    where a share s has to save more than s² times that of some documents: few documents cannot
    make a case for it.
    """
    said = {"counting": _tensor(counting), "reading": _tensor(reading)}
    alone = {name: scaled(task, each, targets) for name, each in said.items()}
    better, worse = sorted(alone, key=lambda name: alone[name].loss)
    prior = _PRIOR * alone[better].loss / len(said[better])
    best, cost = (0.0, alone[better]), alone[better].loss
    for share in _SHARES[1:]:
        parts = {better: (1 - share) * alone[better].factor, worse: share * alone[worse].factor}
        together = scaled(task, sum(parts[name] * said[name] for name in said), targets)
        if together.loss + prior * (1 + share**2) < cost:
            best, cost = (share, together), together.loss + prior * share**2
    share, together = best
    factors = {
        better: alone[better].factor * ((1 - share) * together.factor if share else 1.0),
        worse: alone[worse].factor * share * together.factor,
    }
    losses = {name: each.loss for name, each in alone.items()} | {"both": together.loss}
    read = share if worse == "reading" else 1 - share
    return Blend(factors["counting"], factors["reading"], read, losses)


def _tensor(values: npt.ArrayLike) -> Tensor:
    return torch.from_numpy(np.asarray(values, np.float64))


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
