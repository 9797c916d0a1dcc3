"""How many threads are meant, and which number of torch's is fastest."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from laconic import threads
from laconic.training.settings import TrainingConfig
from laconic.training.threads import fastest_threads, threads_as_before, use_few_threads

SPINS = "GOMP_SPINCOUNT"


@pytest.mark.parametrize(("quota", "most"), [("150000 100000", 2), ("max 100000", 64), ("", 64)])
def test_a_container_may_have_fewer(
    quota: str, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    monkeypatch.setattr(threads, "_QUOTA", tmp_path / "cpu.max")
    monkeypatch.setattr(threads.os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    assert threads.processors() == most


def test_the_fastest_number_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("laconic.training.threads.processors", lambda: 2)
    before = torch.get_num_threads()
    try:
        assert fastest_threads(lambda: 1.0 / torch.get_num_threads()) == 1.0
        assert torch.get_num_threads() == 1
        assert fastest_threads(lambda: float(torch.get_num_threads())) == 2.0
        assert torch.get_num_threads() == 2
        # What somebody chose stays.
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        assert fastest_threads(lambda: 1.0 / torch.get_num_threads()) == 0.5
    finally:
        torch.set_num_threads(before)


def test_small_models_use_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.training.threads.processors", lambda: 2)
    before = torch.get_num_threads()

    def used(width: int) -> int:
        with threads_as_before():
            torch.set_num_threads(2)
            use_few_threads(TrainingConfig(width=width, embedding_size=8))
            return torch.get_num_threads()

    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert (used(64), used(200)) == (1, 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert used(64) == 2
    assert torch.get_num_threads() == before


@pytest.mark.parametrize(("chosen", "found"), [(None, "1000"), ("7", "7")])
def test_threads_of_torch_do_not_wait_long_for_each_other(chosen: str | None, found: str) -> None:
    """Beside other programs they took five times as long; what somebody chose stays."""
    environment = {name: value for name, value in os.environ.items() if name != SPINS}
    if chosen is not None:
        environment[SPINS] = chosen
    code = f"import laconic, os, sys; print(os.environ[{SPINS!r}], 'torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.split() == [found, "False"]  # set before torch is loaded, which reads it
