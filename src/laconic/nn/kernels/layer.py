"""Layers of torch.nn, LSTM or GRU, read by kernels of our own: the same weights, other code."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.nn.kernels import recurrent


def obstacle(reader: nn.Module | None, x: Tensor) -> str | None:
    """Return why the kernels cannot read float [T, B, size] as the layer does, None if they can."""
    if not isinstance(reader, nn.LSTM | nn.GRU):
        return "they are for LSTM and GRU"
    if x.dtype == torch.float64:
        return "they are for float32 and shorter numbers"
    if not x.numel():
        return "there is nothing to read"
    ways, gru = 1 + reader.bidirectional, isinstance(reader, nn.GRU)
    return recurrent.obstacle(x.device, x.shape[1], ways, reader.hidden_size, gru)


def read(reader: nn.RNNBase, x: Tensor, lengths: Tensor) -> Tensor:
    """Return float32 [T, B, ways * width] of float [T, B, size]; 0 at padding.

    The second way reads each document from its end. Of the layer's inputs x may be the first few.
    """
    width, ways = reader.hidden_size, 1 + reader.bidirectional
    slots = [in_slots(reader, way, x.shape[-1]) for way in ("", "_reverse")[:ways]]
    from_input, bias, from_state = map(torch.stack, zip(*slots, strict=True))
    gru = isinstance(reader, nn.GRU)
    made = recurrent.read(x, lengths, from_input, bias, from_state, gru)
    return made if width % 8 == 0 else made.view(*x.shape[:2], ways, -1)[..., :width].flatten(2)


def in_slots(reader: nn.RNNBase, way: str, size: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the weights of inputs [W, 4, size], biases [W, 4] and weights of states [W, 4, W].

    W is the width, rounded up to a multiple of 8: a unit more has weights of 0, and stays 0.
    """
    width = reader.hidden_size
    names = (f"{each}_l0{way}" for each in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    from_input, from_state, bias, other_bias = (
        weights.view(-1, width, *weights.shape[1:]) for weights in map(reader.get_parameter, names)
    )
    from_input, biases = from_input[..., :size], bias + other_bias
    if isinstance(reader, nn.GRU):
        # The new state is made of two parts, one of which the reset gate opens.
        from_input = F.pad(from_input, (0, 0, 0, 0, 0, 1))
        from_state = torch.cat([F.pad(from_state[:2], (0, 0, 0, 0, 0, 1)), from_state[2:]])
        biases = torch.cat([biases[:2], bias[2:], other_bias[2:]])
    more = -width % 8
    return (
        F.pad(from_input.transpose(0, 1), (0, 0, 0, 0, 0, more)),
        F.pad(biases.t(), (0, 0, 0, more)),
        F.pad(from_state.transpose(0, 1), (0, more, 0, 0, 0, more)),
    )
