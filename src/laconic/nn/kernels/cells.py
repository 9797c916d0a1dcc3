"""Composers' cells with few kernels: two products each, and what is left as kernels (cells.cu).

Beside each kernel stands what it computes, for the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.nn.composers import GRC, DualGRU
from laconic.nn.kernels.cuda import Module

EPSILON = 1e-5  # LayerNorm's
_SOURCE = Path(__file__).with_name("cells.cu")
_BLOCKS = 528  # at most, of 256 threads
Weights: TypeAlias = Sequence[Tensor]
Kept: TypeAlias = tuple[Tensor, ...]
"""Of some nodes, a row for each; the operands, left and right, first."""


class FusedCell(Protocol):
    """A cell in parts; `weights` are the composer's parameters, in their order."""

    def run(self, pairs: Tensor, weights: Weights) -> Kept:
        """Return what the other parts need."""

    def states(self, kept: Kept, own: Tensor | None, weights: Weights, states: Tensor) -> None:
        """Write the states of the nodes."""

    def back(
        self,
        kept: Kept,
        own: Tensor | None,
        weights: Weights,
        given: Tensor,
        to_own: Tensor | None,
        to_weights: Weights,
    ) -> Tensor:
        """Return the operands' gradients, given those of states; what is kept becomes gradients."""

    def finish(self, kept: Kept, to_weights: Weights) -> None:
        """Add to the weights' gradients, when `back` was through with all nodes."""


class GRCCell:
    """Of laconic.nn.composers.GRC."""

    def run(self, pairs: Tensor, weights: Weights) -> Kept:
        """Return operands, hidden numbers before and after GELU, and what the gates are made of."""
        hidden_weight, hidden_bias, gates_weight, gates_bias, *_ = weights
        before = torch.addmm(hidden_bias, pairs, hidden_weight.t())
        hidden = F.gelu(before)
        return pairs, before, hidden, torch.addmm(gates_bias, hidden, gates_weight.t())

    def states(self, kept: Kept, own: Tensor | None, weights: Weights, states: Tensor) -> None:
        """Write the states of the nodes."""
        pairs, _, _, gates = kept
        *_, weight, bias = weights
        if _on_gpu(pairs):
            _launch("grc_forward", 32, pairs, gates, own, weight, bias, states)
        else:
            joined = self._joined(pairs, gates, own)[-1]
            states.copy_(F.layer_norm(joined, joined.shape[1:], weight, bias, EPSILON))

    def back(
        self,
        kept: Kept,
        own: Tensor | None,
        weights: Weights,
        given: Tensor,
        to_own: Tensor | None,
        to_weights: Weights,
    ) -> Tensor:
        """Return the operands' gradients."""
        pairs, before, _, gates = kept
        hidden_weight, _, gates_weight, _, weight, _ = weights
        *_, to_weight, to_bias = to_weights
        if _on_gpu(pairs):
            to_pairs, to = torch.empty_like(pairs), (to_own, to_weight, to_bias)
            _launch("grc_backward", 32, pairs, gates, own, weight, given, to_pairs, *to)
        else:
            f_left, f_right, i, left, right, c, joined = self._joined(pairs, gates, own)
            centred = joined - joined.mean(1, keepdim=True)
            scale = (centred.square().mean(1, keepdim=True) + EPSILON).rsqrt()
            normal, d = centred * scale, given * weight
            to_weight += (given * normal).sum(0)
            to_bias += given.sum(0)
            d = d - d.mean(1, keepdim=True) - normal * (d * normal).mean(1, keepdim=True)
            d = d * scale
            if to_own is not None:
                to_own.copy_(d)
            opened = d * left * f_left * (1 - f_left), d * right * f_right * (1 - f_right)
            gates.copy_(torch.cat([*opened, d * c * i * (1 - i), d * i], 1))
            to_pairs = torch.cat([d * f_left, d * f_right], 1)
        to_hidden = gates @ gates_weight
        torch.ops.aten.gelu_backward.grad_input(to_hidden, before, grad_input=before)
        return to_pairs.addmm_(before, hidden_weight)

    def finish(self, kept: Kept, to_weights: Weights) -> None:
        """Add to the gradients of both products."""
        pairs, before, hidden, gates = kept
        found = before.t() @ pairs, before.sum(0), gates.t() @ hidden, gates.sum(0)
        torch._foreach_add_(list(to_weights[:4]), found)

    def _joined(self, pairs: Tensor, gates: Tensor, own: Tensor | None) -> Kept:
        *open_, c = gates.chunk(4, 1)
        f_left, f_right, i = (each.sigmoid() for each in open_)
        left, right = pairs.chunk(2, 1)
        joined = f_left * left + f_right * right + i * c
        return f_left, f_right, i, left, right, c, joined if own is None else joined + own


class DualGRUCell:
    """Of laconic.nn.composers.DualGRU, to whose states what is the nodes' own is added."""

    def run(self, pairs: Tensor, weights: Weights) -> Kept:
        """Return operands, what gates are made of, what resets let through, and candidates."""
        gates_weight, gates_bias, weight, bias = weights
        gates = torch.addmm(gates_bias, pairs, gates_weight.t())
        if _on_gpu(pairs):
            open_ = torch.empty_like(pairs)
            _launch("dual_gru_open", 1, pairs, gates, open_)
        else:
            open_ = gates[:, -pairs.shape[1] :].sigmoid() * pairs
        return pairs, gates, open_, torch.addmm(bias, open_, weight.t())

    def states(self, kept: Kept, own: Tensor | None, weights: Weights, states: Tensor) -> None:
        """Write the states of the nodes."""
        pairs, gates, _, candidates = kept
        if _on_gpu(pairs):
            _launch("dual_gru_forward", 1, pairs, gates, candidates, own, states)
        else:
            shares, parts = self._parts(pairs, gates, candidates)
            made = (shares * parts).sum(1)
            states.copy_(made if own is None else made + own)

    def back(
        self,
        kept: Kept,
        own: Tensor | None,
        weights: Weights,
        given: Tensor,
        to_own: Tensor | None,
        to_weights: Weights,
    ) -> Tensor:
        """Return the operands' gradients."""
        pairs, gates, _, candidates = kept
        gates_weight, _, weight, _ = weights
        if _on_gpu(pairs):
            to_pairs = torch.empty_like(pairs)
            _launch("dual_gru_backward", 1, pairs, gates, candidates, given, to_pairs, to_own)
            _launch("dual_gru_reset", 1, pairs, gates, candidates @ weight, to_pairs)
        else:
            size = given.shape[1]
            shares, parts = self._parts(pairs, gates, candidates)
            made = parts[:, 2]
            to_shares = shares * (parts - (shares * parts).sum(1, keepdim=True)) * given[:, None]
            candidates.copy_(given * shares[:, 2] * made * (1 - made))
            if to_own is not None:
                to_own.copy_(given)
            open_, to_open = gates[:, 3 * size :].sigmoid(), candidates @ weight
            to_pairs = (shares[:, :2] * given[:, None]).flatten(1) + to_open * open_
            to_resets = to_open * pairs * open_ * (1 - open_)
            gates.copy_(torch.cat([to_shares.flatten(1), to_resets], 1))
        return to_pairs.addmm_(gates, gates_weight)

    def finish(self, kept: Kept, to_weights: Weights) -> None:
        """Add to the gradients of both products."""
        pairs, gates, open_, candidates = kept
        found = gates.t() @ pairs, gates.sum(0), candidates.t() @ open_, candidates.sum(0)
        torch._foreach_add_(list(to_weights), found)

    def _parts(self, pairs: Tensor, gates: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
        """Return shares and what they are of, [n, 3, size] each."""
        size = candidates.shape[1]
        shares = gates[:, : 3 * size].view(-1, 3, size).softmax(1)
        return shares, torch.cat([pairs, candidates.sigmoid()], 1).view(-1, 3, size)


FUSED: dict[type[nn.Module], FusedCell] = {GRC: GRCCell(), DualGRU: DualGRUCell()}


@cache
def module(device: int, size: int) -> Module:
    """Return the kernels for states of a size, compiled if need be; raises CudaError."""
    with torch.cuda.device(device):
        return Module({"SIZE": size}, _SOURCE)


def _on_gpu(pairs: Tensor) -> bool:
    return pairs.is_cuda


def _launch(name: str, threads: int, *arguments: Tensor | None) -> None:
    """Start a kernel, so many threads for each node, or for each of its numbers if it is one."""
    pairs = arguments[0]
    assert pairs is not None
    nodes, size = len(pairs), pairs.shape[1] // 2
    blocks = -(-nodes * (threads if threads > 1 else size) // 256)
    kernels = module(pairs.get_device(), size)
    kernels.launch(name, min(blocks, _BLOCKS), 256, 0, *arguments, nodes)
