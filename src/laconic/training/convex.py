"""A convex fit: linear models of sparse features, by L-BFGS that never leaves the documents' span.

The weights of a linear model that is kept small are sums of documents, W = Xᵀ A, on the whole way
from 0. So it is A [N, K] that is searched for, and the scores X W are carried along: vectors are
of documents instead of features, steps along a line cost next to nothing, and documents that do
not train are scored for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

_MEMORY = 20  # steps that are remembered: they are small
_STEPS = 100  # at most; rarely more than 30
_LINE = 8  # places looked at on each line
_BIAS = 1e-8  # the square of a gradient that is none
_FEW_ROWS, _TOGETHER = 512, 32  # whose inner products are found once, so many at a time


@dataclass(frozen=True)
class SparseRows:
    """A sparse matrix [N, width] of documents, row after row."""

    starts: Tensor
    """int32 [N]: the first entry of each row."""
    columns: Tensor
    """int32 [nnz]."""
    values: Tensor
    """float32 [nnz]."""
    width: int

    @classmethod
    def stacked(cls, parts: Iterable[tuple[Tensor, Tensor, Tensor]], width: int) -> SparseRows:
        """Return one matrix of some: columns and values of entries, and how many each row has."""
        columns, values, sizes = zip(*parts, strict=True)
        counts = torch.cat(sizes)
        starts = (counts.cumsum(0) - counts).int()
        return cls(starts, torch.cat([each.int() for each in columns]), torch.cat(values), width)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.starts)

    def reweighed(self, factors: Tensor, second: int) -> SparseRows:
        """Return the matrix with columns times factors, float32 [width], and rows of norm 1 again.

        Columns from the `second` part on, which come last in every row, have a norm of their own.
        O(nnz).
        """
        owners, starts, values = self._by_column
        end = len(owners)
        first = int(starts[second]) if second < self.width else end
        counts = torch.diff(starts, append=starts.new_tensor([end]))
        parts = slice(first), slice(first, end)
        by_column = values * torch.repeat_interleave(factors, counts)
        norms = values.new_zeros(2, len(self))
        for norm, part in zip(norms, parts, strict=True):
            norm.index_add_(0, owners[part], by_column[part].square())
        norms.clamp_(min=torch.finfo(norms.dtype).tiny).sqrt_()
        for norm, part in zip(norms, parts, strict=True):
            by_column[part] /= norm.index_select(0, owners[part])
        seconds = torch.bincount(owners[parts[1]], minlength=len(self))
        sizes = torch.stack([self.sizes - seconds, seconds], 1)
        by_row = self.values * factors.index_select(0, self.columns)
        by_row /= torch.repeat_interleave(norms.T.reshape(-1), sizes.reshape(-1))
        made = SparseRows(self.starts, self.columns, by_row, self.width)
        # Sorting them takes longest, and they are sorted already.
        vars(made)["_by_column"] = owners, starts, by_column
        return made

    @property
    def sizes(self) -> Tensor:
        """How many entries each row has, int32 [N]."""
        return torch.diff(self.starts, append=self.starts.new_tensor([len(self.columns)]))

    @property
    def owners(self) -> Tensor:
        """The row of each entry, int32 [nnz]."""
        numbers = torch.arange(len(self), dtype=torch.int32, device=self.starts.device)
        return torch.repeat_interleave(numbers, self.sizes)

    def times(self, weights: Tensor) -> Tensor:
        """Return X W, float32 [N, K], of W, float32 [width, K]."""
        return _sums(self.columns, weights, self.starts, self.values)

    def transposed_times(self, rows: Tensor) -> Tensor:
        """Return Xᵀ A, float32 [width, K], of A, float32 [N, K]."""
        owners, starts, values = self._by_column
        return _sums(owners, rows, starts, values)

    def both_times(self, rows: Tensor) -> Tensor:
        """Return X Xᵀ A, float32 [N, K], of A, float32 [N, K]."""
        if len(self) > _FEW_ROWS or rows.device.type != "cpu":
            return self.times(self.transposed_times(rows))
        return self._products @ rows

    @cached_property
    def _products(self) -> Tensor:
        """Inner products of all rows, which take as long as twenty times two passes or so."""
        every = torch.split(torch.eye(len(self)), _TOGETHER, 1)
        return torch.cat([self.times(self.transposed_times(some)) for some in every], 1)

    def with_column(self, members: Tensor) -> Tensor:
        """Return how many rows of each set have each column, float32 [width, K], of bool [N, K]."""
        owners, starts, _ = self._by_column
        return F.embedding_bag(owners, members.float(), starts, mode="sum")

    @cached_property
    def _by_column(self) -> tuple[Tensor, Tensor, Tensor]:
        order = torch.sort(self.columns, stable=True).indices
        counts = torch.bincount(self.columns, minlength=self.width)
        return self.owners[order], (counts.cumsum(0) - counts).int(), self.values[order]


def _sums(rows: Tensor, table: Tensor, starts: Tensor, weights: Tensor) -> Tensor:
    return F.embedding_bag(rows, table, starts, mode="sum", per_sample_weights=weights)


@dataclass(frozen=True)
class Fit:
    """A linear model: what each document adds to the weights, the bias, and all scores."""

    added: Tensor
    """float64 [N, K]."""
    scores: Tensor
    """float64 [N, K], without the bias."""
    bias: Tensor
    """float64 [K]."""

    @classmethod
    def nothing(cls, documents: int, outputs: int, device: torch.device | str = "cpu") -> Fit:
        """Return the model that says 0 of every document."""
        zeros = torch.zeros(documents, outputs, dtype=torch.float64, device=device)
        return cls(zeros, zeros, zeros.new_zeros(outputs))

    @property
    def outputs(self) -> Tensor:
        """What the model says of every document, float64 [N, K]."""
        return self.scores + self.bias

    def dot(self, other: Fit) -> float:
        """Return the inner product of the two models' weights."""
        return float((self.added * other.scores).sum() + self.bias @ other.bias)

    def plus(self, other: Fit, factor: float) -> Fit:
        """Return a sum of models."""
        added = self.added + factor * other.added
        return Fit(added, self.scores + factor * other.scores, self.bias + factor * other.bias)


def minimised(
    rows: SparseRows,
    losses: Callable[[Tensor], Tensor],
    weights: Tensor,
    decay: float,
    start: Fit,
    tolerance: float = 1e-3,
) -> Fit:
    """Return the model of the least mean loss plus decay / 2 times its squared weights.

    `losses` is a convex function of outputs [N, K], float [N]; `weights`, float [N] of sum 1, are
    those of documents, 0 for such as do not train. `start` may be any fit of the same rows with 0
    where weights are. Ends when the gradient is `tolerance` times that of the best bias alone: at
    0, where classes differ in size, most of it says no more than that. Two passes through the
    matrix for a step.
    """

    def slopes(outputs: Tensor) -> Tensor:
        outputs = outputs.detach().requires_grad_(True)
        with torch.enable_grad():
            total = (losses(outputs) * weights).sum()
        return torch.autograd.grad(total, outputs)[0]

    def gradient(at: Fit) -> Fit:
        by_document = slopes(at.outputs)
        added = by_document + decay * at.added
        scores = rows.both_times(added.float()).double()
        return Fit(added, scores, by_document.sum(0))

    nothing = Fit.nothing(len(rows), len(start.bias), start.bias.device)

    def of_bias(at: Fit) -> Fit:
        return Fit(nothing.added, nothing.scores, slopes(at.outputs).sum(0))

    alone = _descended(nothing, of_bias, slopes, decay, _BIAS)
    first = gradient(alone)
    return _descended(start, gradient, slopes, decay, tolerance**2 * first.dot(first))


def _descended(
    at: Fit,
    gradient: Callable[[Fit], Fit],
    slopes: Callable[[Tensor], Tensor],
    decay: float,
    enough: float,
) -> Fit:
    """Return where the square of the gradient is so small, by L-BFGS from a fit on."""
    here, past = gradient(at), list[tuple[Fit, Fit]]()
    for _ in range(_STEPS):
        if here.dot(here) <= enough:
            break
        step = _direction(here, past)
        length = _along(at, step, slopes, decay)
        if not length:
            break
        after = at.plus(step, length)
        there = gradient(after)
        change = there.plus(here, -1.0)
        moved = Fit(step.added * length, step.scores * length, step.bias * length)
        if moved.dot(change) > 0:
            past = [*past, (moved, change)][-_MEMORY:]
        at, here = after, there
    return at


def _direction(gradient: Fit, past: list[tuple[Fit, Fit]]) -> Fit:
    """Return the way down that L-BFGS's two loops give."""
    way, factors = gradient, []
    for moved, change in reversed(past):
        factor = moved.dot(way) / moved.dot(change)
        way = way.plus(change, -factor)
        factors.append(factor)
    size = 1.0
    if past:
        moved, change = past[-1]
        size = moved.dot(change) / change.dot(change)
    way = Fit(way.added * size, way.scores * size, way.bias * size)
    for (moved, change), factor in zip(past, reversed(factors), strict=True):
        way = way.plus(moved, factor - change.dot(way) / moved.dot(change))
    return Fit(-way.added, -way.scores, -way.bias)


def _along(at: Fit, step: Fit, slopes: Callable[[Tensor], Tensor], decay: float) -> float:
    """Return how far to go: to where the slope is a tenth of that here, or 0 if it is none."""
    along, square = float((at.added * step.scores).sum()), float((step.added * step.scores).sum())

    def slope(length: float) -> float:
        there = slopes(at.outputs + length * step.outputs)
        return float((there * step.outputs).sum()) + decay * (along + length * square)

    first = slope(0.0)
    if first >= 0:
        return 0.0
    low, low_slope, high, high_slope = 0.0, first, None, 0.0
    length = 1.0
    for _ in range(_LINE):
        found = slope(length)
        if abs(found) <= 0.1 * abs(first):
            return length
        if found < 0:
            low, low_slope = length, found
        else:
            high, high_slope = length, found
        if high is None:
            length *= 4
        else:
            # The secant, kept away from both ends.
            share = low_slope / (low_slope - high_slope)
            length = low + (high - low) * min(0.9, max(0.1, share))
    return low or length
