"""A layer of LSTM or GRU by kernels of our own: all time steps in one launch, both ways at once.

Weights are given slot by slot (see recurrent.cu): each unit has four numbers to be computed, side
by side, of which an LSTM makes its gates, and a GRU its gates and the two parts of what is new.
What goes forward is multiplied in float16, whose 11 bits are those of TF32 (states are within ±1,
so that its range is enough), gradients in bfloat16; sums, states and outputs are float32.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from laconic.nn.kernels.cuda import CudaError, Module, cannot_compile, missing, too_old

WIDEST = 256
_PTX, _SOURCE = (Path(__file__).with_name(f"{name}.cu") for name in ("ptx", "recurrent"))
_CAPABILITY = (9, 0)  # of GPUs that have clusters of blocks
_DOCUMENTS = 16  # of a cluster
_AHEAD = 4  # steps whose inputs are on their way
_LARGEST = 65504.0  # of float16
_MIXED = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 8)  # products of another type


def read(
    x: Tensor,
    lengths: Tensor,
    from_input: Tensor,
    bias: Tensor,
    from_state: Tensor,
    gru: bool = False,
) -> Tensor:
    """Return the states of all units after each symbol, float32 [T, B, ways * W]; 0 at padding.

    x: float [T, B, size]; lengths: int64 [B]; from_input: float [ways, W, 4, size]; bias: float
    [ways, W, 4]; from_state: float [ways, W, 4, W]. W is a multiple of 8, 256 at most. The second
    of two ways reads each document from its end. O(T) steps, whatever B, up to some hundreds.
    """
    arguments = x, lengths, from_input, bias, from_state, gru
    with torch.cuda.device(x.device), torch.autocast("cuda", enabled=False):
        if torch.is_grad_enabled():
            read: Tensor = _Read.apply(*arguments)  # type: ignore[no-untyped-call]
            return read
        return _forward(*arguments)[0]


def obstacle(device: torch.device, documents: int, ways: int, width: int, gru: bool) -> str | None:
    """Return why the kernels cannot read such a batch, in one sentence, or None if they can."""
    if width > WIDEST:
        return f"they are for widths of {WIDEST} at most"
    if why := missing(device):
        return why
    index = torch.cuda.current_device() if device.index is None else device.index
    with torch.cuda.device(index):
        return _obstacle(index, -(-width // 8) * 8, -(-documents // _DOCUMENTS) * ways, gru)


@cache
def _obstacle(device: int, width: int, clusters: int, gru: bool) -> str | None:
    if why := too_old(device, _CAPABILITY):
        return why
    try:
        _Layout(device, width, clusters, gru)
    except CudaError as error:
        return cannot_compile(error)
    return None


class _Read(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, lengths: Tensor, *weights: Any) -> Tensor:
        from_input, bias, from_state, ctx.gru = weights
        keep = any(ctx.needs_input_grad)
        outputs, gates, states = _forward(x, lengths, from_input, bias, from_state, ctx.gru, keep)
        ctx.save_for_backward(x, lengths, from_input, from_state, outputs)
        # Not saved, since the way back writes into them: the largest things there are.
        ctx.kept = gates, states
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if ctx.kept is None:
            raise RuntimeError("a recurrent layer can go back only once; run it forward again")
        (gates, states), ctx.kept = ctx.kept, None
        x, lengths, from_input, from_state, outputs = ctx.saved_tensors
        with torch.cuda.device(x.device), torch.autocast("cuda", enabled=False):
            return _backward(ctx, grad, gates, states, x, lengths, from_input, from_state, outputs)


def _forward(
    x: Tensor,
    lengths: Tensor,
    from_input: Tensor,
    bias: Tensor,
    from_state: Tensor,
    gru: bool,
    keep: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return outputs, and gates and states for the way back, if they are to be kept."""
    steps, documents, size = x.shape
    ways, width = from_state.shape[:2]
    half = torch.float16
    rows = x.reshape(-1, size).to(half).clamp(-_LARGEST, _LARGEST)
    gates = torch.addmm(bias.flatten().to(half), rows, from_input.reshape(-1, size).to(half).t())
    outputs = x.new_empty(steps, documents, ways * width, dtype=torch.float32)
    states = x.new_empty((steps, documents, ways, width) if keep else (1,), dtype=half)
    weights = from_state.to(half).contiguous()
    layout = _Layout(x.get_device(), width, -(-documents // _DOCUMENTS) * ways, gru)
    kernel, numbers = "train" if keep else "predict", (steps, documents, ways)
    layout.launch(kernel, weights, gates, states, outputs, lengths, *numbers)
    return outputs, gates, states


def _backward(
    ctx: Any,
    grad: Tensor,
    gates: Tensor,
    states: Tensor,
    x: Tensor,
    lengths: Tensor,
    from_input: Tensor,
    from_state: Tensor,
    outputs: Tensor,
) -> tuple[Tensor | None, ...]:
    steps, documents, size = x.shape
    ways, width = from_state.shape[:2]
    tiles, short = -(-documents // _DOCUMENTS), torch.bfloat16
    weights = from_state.reshape(ways, 4 * width, width).transpose(1, 2).to(short).contiguous()
    biases = grad.new_empty(tiles, ways, width, 4, dtype=torch.float32)
    layout = _Layout(x.get_device(), width, tiles * ways, ctx.gru)
    numbers, given = (steps, documents, ways), grad.float().contiguous()
    layout.launch("backward", weights, gates, states, given, biases, lengths, *numbers)
    made = gates.view(short).view(steps, documents, ways, 4 * width)
    rows, to_x = made.view(steps * documents, -1), None
    if ctx.needs_input_grad[0]:
        to_x = product(rows, from_input.reshape(-1, size).to(short)).view_as(x).to(x.dtype)
    to_input = product(rows.t(), x.reshape(-1, size).to(short)).view_as(from_input)
    # Padding is 0 in both, so that a document's first step meets no state, either way.
    read = outputs.view(steps, documents, ways, width).to(short)
    pairs = [(made[1:, :, 0], read[:-1, :, 0]), (made[:-1, :, -1], read[1:, :, -1])]
    to_state = [product(g.flatten(0, 1).t(), r.flatten(0, 1)) for g, r in pairs[:ways]]
    return to_x, None, to_input, biases.sum(0), torch.stack(to_state).view_as(from_state), None


def product(a: Tensor, b: Tensor) -> Tensor:
    """Return a product of bfloat16 matrices, in float32."""
    if not a.is_cuda:
        return a.float() @ b.float()
    return torch.mm(a, b, out_dtype=torch.float32) if _MIXED else (a @ b).float()


class _Layout:
    """How units are spread over the blocks of a cluster, and so many clusters over a device."""

    def __init__(self, device: int, width: int, clusters: int, gru: bool) -> None:
        properties = torch.cuda.get_device_properties(device)
        self.blocks = blocks_of(width, clusters, properties.multi_processor_count)
        self.warps = -(-width // 8 // self.blocks)
        self.clusters, threads = clusters, 32 * self.warps
        states, slots = -(-width // 16) * 512, 4 * self.warps * 288
        forward = 2 * states + _AHEAD * threads * 32
        backward = 2 * slots + 2 * self.blocks * threads * 16 + _AHEAD * threads * 56
        self.shared = {"train": forward, "predict": forward, "backward": backward}
        self.module = _module(device, width, self.blocks, gru)

    def launch(self, name: str, *arguments: Tensor | int) -> None:
        """Start one of the kernels."""
        blocks, threads = self.clusters * self.blocks, 32 * self.warps
        self.module.launch(name, blocks, threads, self.shared[name], *arguments)


def blocks_of(width: int, clusters: int, processors: int) -> int:
    """Return how many blocks share the units of a cluster.

    The more, the shorter a step, as long as all blocks run at once; but eight only where there is
    much room, since they have to be neighbours. Weights must fit into registers.

    >>> [blocks_of(200, clusters, 132) for clusters in (2, 16, 64, 128)]
    [7, 4, 2, 2]
    """
    groups = width // 8
    least = 1 if width <= 128 else 2 if width <= 208 else 4
    fitting = [n for n in range(least, 9) if (n - 1) * -(-groups // n) < groups]
    return max(
        (n for n in fitting if n * clusters * (1 + (n > 4)) <= processors), default=fitting[0]
    )


@cache
def _module(device: int, width: int, blocks: int, gru: bool) -> Module:
    return Module({"WIDTH": width, "BLOCKS": blocks, "GRU": int(gru)}, _PTX, _SOURCE)
