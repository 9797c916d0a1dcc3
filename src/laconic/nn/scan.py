"""The linear recurrence h[t] = a[t] h[t-1] + b[t] along a sequence, in O(log T) steps."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def linear_scan(a: Tensor, b: Tensor) -> Tensor:
    """Return h with h[t] = a[t] h[t-1] + b[t] and h[-1] = 0, elementwise; a, b, h: float [T, ...].

    Neighbouring maps are composed until each position holds that of its whole prefix. For the way
    back only a and h are kept. O(T log T) work, O(log T) steps.

    >>> linear_scan(torch.tensor([0.5, 0.5, 2.0]), torch.tensor([1.0, 1.0, 1.0]))
    tensor([1.0000, 1.5000, 4.0000])
    """
    scanned: Tensor = _Scan.apply(a, b)  # type: ignore[no-untyped-call]
    return scanned


def _scan(a: Tensor, b: Tensor) -> Tensor:
    reach = 1
    while reach < len(b):
        tail = torch.addcmul(b[reach:], a[reach:], b[:-reach])
        b = torch.cat([b[:reach], tail])
        if 2 * reach < len(b):
            a = torch.cat([a[:reach], a[reach:] * a[:-reach]])
        reach *= 2
    return b


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        h = _scan(a, b.clone() if len(b) == 1 else b)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        # The gradient obeys the same recurrence, from the end: g[t] = grad[t] + a[t+1] g[t+1].
        a, h = ctx.saved_tensors
        following = torch.cat([a[1:], torch.zeros_like(a[:1])])
        g = _scan(following.flip(0), grad.flip(0)).flip(0)
        before = torch.cat([torch.zeros_like(h[:1]), h[:-1]])
        return g * before, g
