"""Memory of a device: who does not use a GPU leaves it alone."""

from __future__ import annotations

import pytest
import torch

from laconic.nn.memory import give_back_memory


def test_who_has_not_used_a_gpu_does_not_begin_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its driver takes hundreds of MB of a GPU, and fails if that is full."""
    used = list[str]()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: used.append("synchronize"))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: used.append("empty"))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    give_back_memory()
    assert not used
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    give_back_memory()
    assert used == ["synchronize", "empty"]
