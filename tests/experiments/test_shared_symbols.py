"""experiments.shared_symbols: a trial tells what held-out documents say, and of what."""

from __future__ import annotations

from pathlib import Path

from experiments.shared_symbols import trial
from laconic.training.settings import TrainingConfig


def test_a_trial_with_and_without_a_rulebook(tmp_path: Path) -> None:
    config = TrainingConfig(epochs=2, embedding_size=4, width=4, device="cpu")
    private, shared = (
        trial("kjv", codec, config, longest=60, cache=tmp_path) for codec in ("none", "none+50")
    )
    assert private["vectors"] == 0 < shared["vectors"] <= 50
    assert shared["symbols"] < private["symbols"] <= 60
    for each in (private, shared):
        assert len(each["held_out"]) == 2
        assert all(0 <= accuracy <= 1 for accuracy in each["held_out"])
        assert each["config"]["seed"] == 0
        assert each["about"]["commit"]
