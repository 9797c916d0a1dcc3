"""The level loop of the composer GRC with few kernels: five for each level, either way.

A level is a gather, two products, and what is left, which is one kernel of our own (grc.cu). The
way back runs the cell again for many levels at once, since all states are known, goes down level by
level, and finds the gradients of the weights with one product for all those levels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F  # noqa: N812

from laconic.nn.kernels.cuda import CudaError, Module, missing

LARGEST = 1024  # size of a state
EPSILON = 1e-5
_SOURCE = Path(__file__).with_name("grc.cu")
_TOGETHER = 1 << 15  # nodes whose cells are run again at once, if no level is larger
_WARPS, _BLOCKS = 8, 264  # of a block, each of which takes a node; and at most


def compose(
    leaves: Tensor,
    children: Tensor,
    level_offsets: Sequence[int],
    own: Tensor | None,
    *weights: Tensor,
) -> Tensor:
    """Return what laconic.nn.compose_levels does for a GRC: float32 [A + M, size].

    `weights` are weight and bias of hidden, gates and norm. Products are rounded as TF32 on a GPU.
    """
    offsets = tuple(level_offsets)
    made: Tensor = _Compose.apply(children, offsets, leaves, own, *weights)  # type: ignore[no-untyped-call]
    return made


def obstacle(leaves: Tensor) -> str | None:
    """Return why the kernels cannot compose such states, None if they can."""
    if leaves.dtype != torch.float32 or leaves.shape[1] > LARGEST:
        return f"they are for float32 and sizes of {LARGEST} at most"
    if torch.is_autocast_enabled(leaves.device.type):
        return "they are for float32, not for autocast"
    return missing(leaves.device) or _obstacle(leaves.get_device(), leaves.shape[1])


@cache
def _obstacle(device: int, size: int) -> str | None:
    try:
        _module(device, size)
    except CudaError as error:
        return f"they cannot be compiled: {str(error).splitlines()[0]}"
    return None


@cache
def _module(device: int, size: int) -> Module:
    with torch.cuda.device(device):
        return Module(_SOURCE, {"SIZE": size})


class _Compose(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        children: Tensor,
        level_offsets: tuple[int, ...],
        leaves: Tensor,
        own: Tensor | None,
        *weights: Tensor,
    ) -> Tensor:
        terminals, size = leaves.shape
        states = leaves.new_empty(terminals + len(children), size)
        states[:terminals] = leaves
        with _rounded(leaves):
            for begin, end in pairwise(level_offsets):
                pairs, _, _, gates = _cells(states, children[begin:end], weights)
                part = states[terminals + begin : terminals + end]
                _normalised(pairs, gates, _some(own, begin, end), weights, part)
        ctx.save_for_backward(states, children, own, *weights)
        ctx.level_offsets = level_offsets
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        states, children, own, *weights = ctx.saved_tensors
        hidden_weight, _, gates_weight, *_ = weights
        terminals = len(states) - len(children)
        to_weights = [torch.zeros_like(each) for each in weights[:4]]
        norms = grad.new_zeros(2, states.shape[1])
        to_own = None if own is None else torch.zeros_like(own)
        grad = grad.clone(memory_format=torch.contiguous_format)
        with _rounded(states):
            for group in _groups(ctx.level_offsets):
                first, last = group[0][0], group[-1][1]
                pairs, before, hidden, gates = _cells(states, children[first:last], weights)
                for begin, end in reversed(group):
                    here = slice(begin - first, end - first)
                    given = grad[terminals + begin : terminals + end]
                    parts = pairs[here], gates[here], _some(own, begin, end)
                    direct = _normalised_back(
                        *parts, weights, given, _some(to_own, begin, end), norms
                    )
                    to_hidden = gates[here] @ gates_weight
                    torch.ops.aten.gelu_backward.grad_input(
                        to_hidden, before[here], grad_input=before[here]
                    )
                    to_pairs = direct.addmm_(before[here], hidden_weight)
                    rows = children[begin:end].reshape(-1)
                    grad.index_add_(0, rows, to_pairs.view(len(rows), -1))
                found = before.t() @ pairs, before.sum(0), gates.t() @ hidden, gates.sum(0)
                torch._foreach_add_(to_weights, found)
        return None, None, grad[:terminals], to_own, *to_weights, *norms


def _some(own: Tensor | None, begin: int, end: int) -> Tensor | None:
    return None if own is None else own[begin:end]


def _groups(level_offsets: Sequence[int]) -> list[list[tuple[int, int]]]:
    """Return levels, as first and last node, from the top in groups of not too many nodes.

    >>> _groups((0, 70000, 70001, 70003))
    [[(70000, 70001), (70001, 70003)], [(0, 70000)]]
    """
    groups: list[list[tuple[int, int]]] = []
    for begin, end in reversed([each for each in pairwise(level_offsets) if each[0] < each[1]]):
        if groups and groups[-1][-1][1] - begin <= _TOGETHER:
            groups[-1].insert(0, (begin, end))
        else:
            groups.append([(begin, end)])
    return groups


def _cells(
    states: Tensor, children: Tensor, weights: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return operands, hidden numbers before and after GELU, and what the gates are made of."""
    hidden_weight, hidden_bias, gates_weight, gates_bias, *_ = weights
    pairs = states.index_select(0, children.reshape(-1)).view(len(children), -1)
    before = torch.addmm(hidden_bias, pairs, hidden_weight.t())
    hidden = F.gelu(before)
    return pairs, before, hidden, torch.addmm(gates_bias, hidden, gates_weight.t())


def _normalised(
    pairs: Tensor, gates: Tensor, own: Tensor | None, weights: Sequence[Tensor], states: Tensor
) -> None:
    """Write the states of some nodes."""
    *_, weight, bias = weights
    if pairs.is_cuda:
        _launch("forward", len(pairs), pairs, gates, own, weight, bias, states)
        return
    *_, joined = _joined(pairs, gates, own)
    states.copy_(F.layer_norm(joined, joined.shape[1:], weight, bias, EPSILON))


def _normalised_back(
    pairs: Tensor,
    gates: Tensor,
    own: Tensor | None,
    weights: Sequence[Tensor],
    given: Tensor,
    to_own: Tensor | None,
    norms: Tensor,
) -> Tensor:
    """Return the operands' gradients but for those through the gates; these replace the gates."""
    *_, weight, _ = weights
    if pairs.is_cuda:
        direct = torch.empty_like(pairs)
        _launch("backward", len(pairs), pairs, gates, own, weight, given, direct, to_own, norms)
        return direct
    (f_left, f_right, i), left, right, c, joined = _joined(pairs, gates, own)
    centred = joined - joined.mean(1, keepdim=True)
    scale = (centred.square().mean(1, keepdim=True) + EPSILON).rsqrt()
    normal, d = centred * scale, given * weight
    norms += torch.stack([(given * normal).sum(0), given.sum(0)])
    to = scale * (d - d.mean(1, keepdim=True) - normal * (d * normal).mean(1, keepdim=True))
    if to_own is not None:
        to_own.copy_(to)
    opened = (to * left * f_left * (1 - f_left), to * right * f_right * (1 - f_right))
    gates.copy_(torch.cat([*opened, to * c * i * (1 - i), to * i], 1))
    return torch.cat([to * f_left, to * f_right], 1)


def _joined(pairs: Tensor, gates: Tensor, own: Tensor | None) -> tuple[Any, ...]:
    *open_, c = gates.chunk(4, 1)
    f_left, f_right, i = (each.sigmoid() for each in open_)
    left, right = pairs.chunk(2, 1)
    joined = f_left * left + f_right * right + i * c
    return (f_left, f_right, i), left, right, c, joined if own is None else joined + own


def _launch(name: str, nodes: int, *arguments: Tensor | None) -> None:
    first = arguments[0]
    assert first is not None
    with torch.cuda.device(first.device):
        module = _module(first.get_device(), first.shape[1] // 2)
        blocks = min(-(-nodes // _WARPS), _BLOCKS)
        module.launch(name, blocks, 32 * _WARPS, 0, *arguments, nodes)


@contextmanager
def _rounded(like: Tensor) -> Iterator[None]:
    """Let products of float32 be those of TF32, as cuDNN's are; obstacles keep who minds away."""
    before = torch.get_float32_matmul_precision()
    if not like.is_cuda or before != "highest":
        yield
        return
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
