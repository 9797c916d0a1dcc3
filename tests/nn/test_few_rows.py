"""Rows of a small table, and a gradient as embedding has it."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from laconic.nn.few_rows import _FewRows, few_rows

ON = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("device", ON)
@pytest.mark.parametrize("count", [0, 1, 5000])
def test_gradients_are_those_of_an_embedding(device: str, count: int) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    torch.manual_seed(0)
    rows, towards = torch.randint(0, 20, (count,)), torch.randn(count, 7, dtype=torch.float64)
    found = []
    for function in (lambda t, r: F.embedding(r, t), _FewRows.apply, few_rows):
        table = torch.arange(168.0, dtype=torch.float64).view(24, 7).to(device).requires_grad_()
        made = function(table, rows.to(device))
        (gradient,) = torch.autograd.grad(made, table, towards.to(device))
        found.append((made.detach(), gradient))
    for made, gradient in found[1:]:
        assert torch.equal(made, found[0][0])
        assert torch.allclose(gradient, found[0][1], atol=1e-10)
