"""Gradients of a model's parameters, side by side in one buffer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from laconic.nn.kernels import optimizer as kernels

_ALIGNED = 16  # bytes, to multiples of which gradients begin


class Gradients:
    """Gradients that are added up over the parts of a step, apart from what torch adds up itself.

    Those of a parameter that nothing used are 0, not None. With `by_kernels`, where that can be,
    one kernel adds up all of them.

    >>> weight = nn.Parameter(torch.ones(2))
    >>> gradients = Gradients([weight])
    >>> for loss in (3 * weight.sum(), 4 * weight.sum()):
    ...     gradients.add(torch.autograd.grad(loss, gradients.parameters))
    >>> gradients.attach()
    >>> weight.grad.tolist()
    [7.0, 7.0]
    """

    def __init__(self, parameters: Iterable[nn.Parameter], by_kernels: bool = True) -> None:
        self.parameters = [each for each in parameters if each.requires_grad]
        sizes = [each.numel() * each.element_size() for each in self.parameters]
        room = [-(-size // _ALIGNED) * _ALIGNED for size in sizes]
        *starts, total = accumulate(room, initial=0)
        device = self.parameters[0].device if self.parameters else None
        self._buffer = torch.zeros(total, dtype=torch.uint8, device=device)
        self._views = [
            self._buffer[start : start + size].view(each.dtype).view(each.shape)
            for each, start, size in zip(self.parameters, starts, sizes, strict=True)
        ]
        self.clean = True
        """Whether all are 0."""
        self.chunks: kernels.Chunks | None = None
        """Which kernels need."""
        if by_kernels and not kernels.obstacle(self.parameters):
            self.chunks = kernels.Chunks(self.parameters, [start // 4 for start in starts])

    @property
    def by_address(self) -> dict[int, Tensor]:
        """Those of each parameter, by where that is."""
        pairs = zip(self.parameters, self._views, strict=True)
        return {parameter.data_ptr(): gradient for parameter, gradient in pairs}

    @property
    def array(self) -> Tensor:
        """All of them, float32 [n], with what lies between; for parameters of float32."""
        return self._buffer.view(torch.float32)

    def attach(self) -> None:
        """Make them the parameters' own, to which torch would add, too."""
        for parameter, gradient in zip(self.parameters, self._views, strict=True):
            parameter.grad = gradient

    def detach(self) -> None:
        """Leave the parameters without gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def clear(self) -> None:
        """Set all to 0, unless they are."""
        if not self.clean:
            self._buffer.zero_()
        self.clean = True

    def add(self, found: Sequence[Tensor | None]) -> None:
        """Add what torch.autograd.grad returned, None where there is nothing to add."""
        self.clean = False
        if self.chunks is not None:
            self.chunks.add(found, self.array)
            return
        pairs = zip(self._views, found, strict=True)
        known = [(into, each) for into, each in pairs if each is not None]
        if known:
            torch._foreach_add_(*map(list, zip(*known, strict=True)))
