"""Poolings: they make one vector of each document from those of its symbols.

Every pooling is called with the same three tensors:

- outputs, float [B, T, size], finite: the vectors, documents padded at their end;
- mask, bool [B, T]: True on symbols; lengths, int64 [B, T]: terminals that each symbol stands for;
- the result is float [B, size]. A document without symbols gives zeros.

>>> outputs = torch.tensor([[[1.0], [4.0], [9.0]]])
>>> mask, lengths = torch.tensor([[True, True, False]]), torch.tensor([[1, 5, 7]])
>>> {name: pooling(name, 1)(outputs, mask, lengths).item() for name in ("max", "mean", "last")}
{'max': 4.0, 'mean': 2.5, 'last': 4.0}
>>> pooling("length_mean", 1)(outputs, mask, lengths).item()        # (1 * 1 + 4 * 5) / 6
3.5
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import torch
from torch import Tensor, nn

from laconic.errors import InputError


class MaxPooling(nn.Module):
    """The largest value of each feature."""

    def forward(self, outputs: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Pool; see the module's docstring. Nothing of size [B, T, size] is kept for backward."""
        with torch.no_grad():
            largest = outputs.masked_fill(~mask[..., None], -torch.inf).argmax(1)
        return _take(outputs, mask, largest)


class MeanPooling(nn.Module):
    """The mean over symbols."""

    def forward(self, outputs: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Pool; see the module's docstring."""
        return _weighted_mean(outputs, mask, torch.ones_like(lengths))


class LengthMeanPooling(nn.Module):
    """The mean over terminals: a symbol counts as many times as its expansion has terminals."""

    def forward(self, outputs: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Pool; see the module's docstring."""
        return _weighted_mean(outputs, mask, lengths)


class AttentionPooling(nn.Module):
    """The mean with weights from the softmax of one learned query."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, 1, bias=False)  # softmax would not see a bias

    def forward(self, outputs: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Pool; see the module's docstring."""
        scores = self.query(outputs).squeeze(-1).to(_precision(outputs))
        # Not -inf: the softmax of an empty document would be NaN, unused but found by autograd's
        # anomaly detection.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        return _weighted_sum(outputs, scores.softmax(1).masked_fill(~mask, 0))


class LastPooling(nn.Module):
    """What the model had read at its end.

    For a forward model that is the output at the last symbol. Of a bidirectional one, whose outputs
    are a forward half and a backward half, it is the forward half at the last symbol and the
    backward half at the first one, where each of them has seen the whole document.
    """

    def __init__(self, bidirectional: bool) -> None:
        super().__init__()
        self.bidirectional = bidirectional

    def forward(self, outputs: Tensor, mask: Tensor, lengths: Tensor) -> Tensor:
        """Pool; see the module's docstring."""
        size = outputs.shape[-1]
        places = (mask.sum(1) - 1).clamp(min=0)[:, None].repeat(1, size)
        if self.bidirectional:
            places[:, size // 2 :] = 0
        return _take(outputs, mask, places)


Pooling: TypeAlias = MaxPooling | MeanPooling | LengthMeanPooling | AttentionPooling | LastPooling

POOLINGS: dict[str, Callable[[int, bool], Pooling]] = {
    "max": lambda size, bidirectional: MaxPooling(),
    "mean": lambda size, bidirectional: MeanPooling(),
    "length_mean": lambda size, bidirectional: LengthMeanPooling(),
    "attention": lambda size, bidirectional: AttentionPooling(size),
    "last": lambda size, bidirectional: LastPooling(bidirectional),
}


def pooling(name: str, size: int, bidirectional: bool = False) -> Pooling:
    """Return a new pooling of vectors of `size` numbers by its name.

    `bidirectional` says that outputs are a forward half and a backward half, as the sequence
    model's attribute of that name tells. Raises ValueError for an unknown name, a size less than 1,
    or halves of an odd size.
    """
    if name not in POOLINGS:
        raise InputError(f"no pooling {name!r}: choose from {', '.join(POOLINGS)}")
    if size < 1:
        raise InputError(f"size must be at least 1, not {size}")
    if bidirectional and size % 2:
        raise InputError(f"size {size} has no halves: bidirectional outputs have an even size")
    return POOLINGS[name](size, bidirectional)


def _precision(outputs: Tensor) -> torch.dtype:
    """Return the type for sums over symbols: float32 at least."""
    return torch.promote_types(outputs.dtype, torch.float32)


def _weighted_mean(outputs: Tensor, mask: Tensor, weights: Tensor) -> Tensor:
    """Return the mean with int64 weights [B, T], which may be anything at padding."""
    shares = weights.masked_fill(~mask, 0).to(_precision(outputs))
    return _weighted_sum(outputs, shares / shares.sum(1, keepdim=True).clamp(min=1))


def _weighted_sum(outputs: Tensor, weights: Tensor) -> Tensor:
    """Return float [B, size], summed in the precision of the weights, float [B, T]."""
    return (outputs * weights[..., None]).sum(1).to(outputs.dtype)


def _take(outputs: Tensor, mask: Tensor, places: Tensor) -> Tensor:
    """Return float [B, size], each number from its own place, int64 [B, size]; zeros if empty."""
    # Time first, like the recurrent models, so that gradients come in the order they need.
    taken = outputs.transpose(0, 1).gather(0, places[None]).squeeze(0)
    return taken.masked_fill(~mask.any(1, keepdim=True), 0)
