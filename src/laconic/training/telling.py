"""How much columns tell classes apart: what linear models are told of, beside how rare each is."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.tasks import Task
from laconic.training.convex import SparseRows

_PLAIN = 2.0  # mean ratios that every column weighs beside its own
_UNSEEN = 1.0  # documents with a column, and without it, that each class has beside those seen
_TOGETHER = 16  # classes that are looked at at once
_MOST = 1 << 28  # classes times columns, beyond which it takes longer than it is worth


def can_tell(task: Task, columns: int) -> bool:
    """Return whether documents have classes, few enough to look at every one of them."""
    return bool(task.things) and task.outputs * columns <= _MOST


def telling(matrix: SparseRows, targets: Tensor, task: Task, rows: Tensor) -> Tensor:
    """Return factors of a matrix's columns, float32 [width], by the classes of some rows.

    How much a column tells a class from the others is the logarithm of a ratio, up or down: of the
    share of the documents in it that have the column to that of the documents outside. The class
    that it tells best counts (Wang and Manning, 2012, have such ratios of two classes). By ratios
    alone what occurs twice would weigh most: what tells nothing has two thirds of the mean factor.
    """
    classes = torch.arange(task.outputs, device=targets.device)
    members = targets[:, None] == classes if task.single else targets > 0
    counted = torch.zeros(len(matrix), dtype=torch.bool, device=targets.device)
    counted[rows] = True
    total, documents = matrix.with_column(counted[:, None]), counted.sum()
    ratios = torch.zeros_like(total)
    members = members & counted[:, None]
    for some in torch.split(members, _TOGETHER, 1):
        inside, size = matrix.with_column(some), some.sum(0)
        odds = (inside + _UNSEEN) / (size + 2 * _UNSEEN)
        others = (total - inside + _UNSEEN) / (documents - size + 2 * _UNSEEN)
        best = (odds / others).log_().abs_().amax(1, keepdim=True)
        ratios = torch.maximum(ratios, best)
    mean = (ratios.double() * total).sum() / total.double().sum().clamp(min=1)
    return (ratios + _PLAIN * mean).float().squeeze(1)
