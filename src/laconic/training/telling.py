"""How much columns tell classes apart: what linear models are told of, beside how rare each is."""

from __future__ import annotations

import torch
from torch import Tensor

from laconic.tasks import Task
from laconic.training.convex import SparseRows

_PLAIN = 2.0  # mean ratios that every column weighs beside its own
_UNSEEN = 1.0  # documents with a column, and without it, that each class has beside those seen
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
    owners = matrix.owners
    known = counted.index_select(0, owners)
    owners, columns = owners[known], matrix.columns[known]
    total = torch.bincount(columns, minlength=matrix.width).double()
    documents, ratios = float(counted.sum()), torch.zeros_like(total)
    for members_of_one in (members & counted[:, None]).unbind(1):
        size = float(members_of_one.sum())
        here = members_of_one.index_select(0, owners)
        inside = torch.bincount(columns[here], minlength=matrix.width).double()
        odds = (inside + _UNSEEN) / (size + 2 * _UNSEEN)
        others = (total - inside + _UNSEEN) / (documents - size + 2 * _UNSEEN)
        ratios = torch.maximum(ratios, (odds / others).log().abs())
    mean = (ratios * total).sum() / total.sum().clamp(min=1)
    return (ratios + _PLAIN * mean).float()
