"""Sequences read in parts or in another type: outputs stay the same (cuDNN: test_gpu.py)."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from laconic.nn.long_sequences import read, read_in_parts


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


def test_a_processor_without_an_lstm_in_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch asks for one wherever autocast is on; the layer is read in float32 then."""
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX2")
    reader, x = torch.nn.LSTM(3, 4, bidirectional=True), torch.randn(5, 2, 3)
    with torch.autocast("cpu", torch.bfloat16):
        found = read(reader, x.bfloat16())
        assert torch.is_autocast_enabled("cpu")
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, reader(x.bfloat16().float())[0])
