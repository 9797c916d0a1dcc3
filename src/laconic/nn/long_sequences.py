"""Recurrent layers on sequences of any length and on any processor: some libraries refuse some.

cuDNN does not read more than 65,535 steps. OneDNN has no LSTM in bfloat16 for processors without
AVX-512, and PyTorch 2.13 asks for one all the same.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

_MOST = 65_535
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "LSTM": torch.lstm,
    "GRU": torch.gru,
    "RNN_TANH": torch.rnn_tanh,
}


def read(reader: nn.RNNBase, x: Tensor) -> Tensor:
    """Return what one layer, in one direction or both, makes of float [T, B, size]."""
    if x.is_cuda and len(x) > _MOST:
        return read_in_parts(reader, x, _MOST)
    known = x.device.type != "cpu" or "AVX512" in torch.backends.cpu.get_cpu_capability()
    if known or not torch.is_autocast_enabled("cpu"):
        made: Tensor = reader(x)[0]
        return made
    with torch.autocast("cpu", enabled=False):
        return read(reader, x.float())


def read_in_parts(reader: nn.RNNBase, x: Tensor, steps: int) -> Tensor:
    """Return the same, some steps at a time: each part begins in the state that the last one left.

    >>> reader, x = nn.GRU(3, 4, bidirectional=True), torch.randn(10, 2, 3)
    >>> torch.allclose(read_in_parts(reader, x, 4), reader(x)[0], atol=1e-6)
    True
    """
    function, weights, training = _FUNCTIONS[reader.mode], reader._flat_weights, reader.training
    ways = []
    for way in range(1 + reader.bidirectional):
        of_way = weights[4 * way : 4 * way + 4]
        state = x.new_zeros(1, x.shape[1], reader.hidden_size)
        states = [state, state] if reader.mode == "LSTM" else [state]
        parts = []
        for part in torch.split(x.flip(0) if way else x, steps):
            given = states if reader.mode == "LSTM" else states[0]
            with warnings.catch_warnings():
                # The weights of one direction are only a part of cuDNN's block: copied, then.
                warnings.filterwarnings("ignore", message="RNN module weights are not part")
                made, *states = function(part, given, of_way, True, 1, 0.0, training, False, False)
            parts.append(made)
        ways.append(torch.cat(parts).flip(0) if way else torch.cat(parts))
    return torch.cat(ways, -1)
