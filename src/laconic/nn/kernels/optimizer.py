"""Clipping and Adam for all parameters at once: two kernels, whatever the model (optimizer.cu).

What they compute is what torch's clip_grad_norm_ and Adam or AdamW do, to whose state they keep.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam, AdamW, Optimizer

from laconic.nn.kernels.cuda import Kernels

KERNELS = Kernels(Path(__file__).with_name("optimizer.cu"))
_CHUNK, _THREADS = 2048, 256  # of which a chunk has 8 numbers each
_SOURCES = 128  # gradients that one launch adds
_BLOCKS = 1056


def obstacle(parameters: Sequence[nn.Parameter]) -> str | None:
    """Return why kernels cannot work on such parameters, in one sentence, or None if they can."""
    if any(p.dtype != torch.float32 or not p.is_contiguous() for p in parameters):
        return "they are for float32 that is contiguous"
    devices = {p.device for p in parameters}
    if len(devices) != 1:
        return "they are for parameters on one device"
    return KERNELS.obstacle(devices.pop())


def obstacle_to_adam(optimizer: Optimizer, parameters: Sequence[nn.Parameter]) -> str | None:
    """Return why they cannot do what an optimizer does to all parameters, or None."""
    if type(optimizer) not in (Adam, AdamW) or len(optimizer.param_groups) != 1:
        return "they are for Adam and AdamW with the same settings for all parameters"
    settings = optimizer.param_groups[0]
    if set(map(id, settings["params"])) != set(map(id, parameters)):
        return "they are for all parameters that learn, and the optimizer has others"
    odd = [name for name in ("amsgrad", "maximize", "differentiable") if settings[name]]
    return f"they do not know {odd[0]}" if odd else None


class Chunks:
    """Where parts of parameters, and of the array of their gradients, begin (optimizer.cu)."""

    def __init__(self, parameters: Sequence[nn.Parameter], starts: Sequence[int]) -> None:
        rows = [
            (number, begin, start + begin, min(_CHUNK, parameter.numel() - begin))
            for number, (parameter, start) in enumerate(zip(parameters, starts, strict=True))
            for begin in range(0, parameter.numel(), _CHUNK)
        ]
        device = parameters[0].device
        self.count, self.blocks = len(rows), max(1, min(len(rows), _BLOCKS))
        self.table = torch.tensor(rows, dtype=torch.int64).reshape(-1, 4).to(device)
        self.kernels = KERNELS.on(device)

    def add(self, found: Sequence[Tensor | None], gradients: Tensor) -> None:
        """Add the gradients of all parameters, where there are any, to those in the array."""
        # Not contiguous ones are copied; they live until the kernel has been started.
        plain = [None if each is None else each.contiguous() for each in found]
        for first in range(0, len(plain), _SOURCES):
            part = plain[first : first + _SOURCES]
            addresses = [None if each is None else each.data_ptr() for each in part]
            sources = (ctypes.c_void_p * _SOURCES)(*addresses)
            self._launch("add_gradients", sources, first, self.table, self.count, gradients)

    def _launch(self, name: str, *arguments: Any) -> None:
        self.kernels.launch(name, self.blocks, _THREADS, 0, *arguments)


class FusedAdam:
    """The step of an Adam or AdamW on gradients in one array, which are 0 thereafter.

    With `clip`, gradients that are longer together are made so long. The optimizer's state is used
    and made as it makes it itself, so that either can go on where the other was.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        parameters: Sequence[nn.Parameter],
        chunks: Chunks,
        gradients: Tensor,
        clip: float | None,
    ) -> None:
        self._optimizer, self._parameters, self._chunks = optimizer, parameters, chunks
        self._gradients, device, self._clip = gradients, gradients.device, clip or 0.0
        group = optimizer.param_groups[0]
        decoupled = isinstance(optimizer, AdamW) or group.get("decoupled_weight_decay", False)
        self._told = self._numbers()
        numbers = torch.tensor([*self._told, decoupled], dtype=torch.float64)
        self._settings = numbers.to(device)
        self._squares = torch.zeros(chunks.blocks, device=device)
        self._corrections = torch.zeros(len(parameters), 2, device=device)
        self._states: list[Any] = []
        self._pointers: Tensor | None = None

    def __call__(self) -> None:
        """Apply the gradients; nothing waits for the device."""
        self.prepare()
        for place, number in enumerate(told := self._numbers()):
            if number != self._told[place]:  # of most steps the rate alone
                self._settings[place].fill_(number)
        self._told = told
        chunks, count = self._chunks, len(self._parameters)
        given = chunks.table, chunks.count, self._gradients, self._pointers
        measured = self._settings, self._squares
        chunks._launch("measure_gradients", *given, count, *measured, self._corrections)
        chunks._launch("apply_adam", *given, *measured, chunks.blocks, self._corrections)

    def prepare(self) -> None:
        """Have the optimizer's state: made at first, and when somebody has loaded another."""
        state = self._optimizer.state
        if len(self._states) != len(self._parameters) or any(
            state.get(p) is not s for p, s in zip(self._parameters, self._states, strict=True)
        ):
            self._look()

    def _numbers(self) -> tuple[float, ...]:
        """Return the settings in the order of optimizer.cu, as they are now."""
        group = self._optimizer.param_groups[0]
        return group["lr"], self._clip, *group["betas"], group["eps"], group["weight_decay"]

    def _look(self) -> None:
        rows = []
        for parameter in self._parameters:
            state = self._optimizer.state[parameter]
            if not state:
                # All or nothing: memory may be short.
                moments = [torch.zeros_like(parameter, requires_grad=False) for _ in range(2)]
                names = "step", "exp_avg", "exp_avg_sq"
                made = torch.zeros((), device=parameter.device), *moments
                state.update(zip(names, made, strict=True))
            for name in ("step", "exp_avg", "exp_avg_sq"):
                # Adam counts steps on the CPU, unless one kernel does all.
                state[name] = state[name].to(parameter.device, torch.float32).contiguous()
            kept = state["exp_avg"], state["exp_avg_sq"], state["step"]
            rows.append([each.data_ptr() for each in (parameter, *kept)])
        self._states = [self._optimizer.state[parameter] for parameter in self._parameters]
        self._pointers = torch.tensor(rows, dtype=torch.int64).to(self._gradients.device)
