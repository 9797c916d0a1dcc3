"""Sequences read in parts: the same outputs and gradients as in one go (cuDNN: test_gpu.py)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from laconic.nn.long_sequences import read_in_parts


@pytest.mark.parametrize("bidirectional", [False, True])
@pytest.mark.parametrize("cell", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_reading_in_parts_is_reading(cell: Any, bidirectional: bool) -> None:
    torch.manual_seed(0)
    reader = cell(3, 4, bidirectional=bidirectional).double()
    x = torch.randn(23, 2, 3, dtype=torch.float64, requires_grad=True)
    wanted = reader(x)[0]
    weights = [x, *reader.parameters()]
    slopes = torch.autograd.grad(wanted.square().sum(), weights)
    for steps in (1, 7, 22, 23, 100):
        made = read_in_parts(reader, x, steps)
        assert torch.allclose(made, wanted, atol=1e-12)
        found = torch.autograd.grad(made.square().sum(), weights)
        for one, other in zip(found, slopes, strict=True):
            assert torch.allclose(one, other, atol=1e-10)
