"""Several processes: each goes on with its own random state, and tells the end of another."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from laconic.errors import InputError
from laconic.training.accelerator import joined, set_random_states
from laconic.training.progress import TrainingError


def process(index: int) -> Any:
    return SimpleNamespace(process_index=index, num_processes=3, device=torch.device("cpu"))


def test_every_process_goes_on_with_its_own_state() -> None:
    """Torch reads the storage from its beginning: of a row of a table that is another's."""
    states, drawn = [], []
    with torch.random.fork_rng(devices=[]):
        for seed in (1, 2, 3):
            torch.manual_seed(seed)
            states.append(torch.get_rng_state())
            drawn.append(torch.rand(3))
        for index in (2, 0, 1):
            set_random_states(process(index), {"cpu": torch.stack(states)})
            assert torch.equal(torch.rand(3), drawn[index])
        with pytest.raises(InputError, match="its random states are damaged"):
            set_random_states(process(1), {"cpu": torch.zeros(2, 16, dtype=torch.uint8)})


def test_the_end_of_another_process_is_no_bug() -> None:
    told = "another process of this training has ended.* go on with --resume"
    with pytest.raises(TrainingError, match=told), joined(process(0)):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:537] Connection closed by peer")
    with pytest.raises(RuntimeError, match="shapes differ"), joined(process(0)):
        raise RuntimeError("shapes differ")
