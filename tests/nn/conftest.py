"""What tests of models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No TF32, by which cuDNN rounds unless it is told not to, and products if they are told to."""
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest")
    yield
    torch.set_float32_matmul_precision(before)
