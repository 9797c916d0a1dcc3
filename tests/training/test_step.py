"""Steps: the same from one batch and from its parts, by torch and by graphs, and after resuming."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from laconic import Corpus, samples
from laconic.batching import GrammarDataset
from laconic.nn import GrammarModel
from laconic.nn.piece_size import PieceSize
from laconic.tasks import TASKS
from laconic.training.accelerator import accelerator_for
from laconic.training.checkpoint import Checkpoints, Position
from laconic.training.loop import train
from laconic.training.losses import document_losses
from laconic.training.new_model import new_model, new_optimizer
from laconic.training.settings import TrainingConfig
from laconic.training.step import Found, Step

ON = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[
            pytest.mark.gpu,
            pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
        ],
    ),
]
CONFIG = TrainingConfig(
    model="both", embedding_size=16, width=16, dropout=0.0, ngram_dropout=0.0, ngrams=3
)


def corpus(count: int = 60) -> Corpus:
    split = samples.load("kjv").train
    return Corpus.from_documents(split.documents[:count], split.labels[:count])


class Trained:
    """A model, its optimizer, and steps on documents."""

    def __init__(self, config: TrainingConfig) -> None:
        source = corpus()
        labels = np.arange(len(source)) % 2
        data = GrammarDataset(source.grammars, labels)
        torch.manual_seed(0)
        made = new_model(config.model_config(256, 2, "classification"), data)
        self.accelerator = accelerator_for(config, None)
        self.model: GrammarModel = made.to(self.accelerator.device)
        self.model.kernels = config.kernels
        wanted = self.model.config
        self.data = data.changed(counted=wanted.counted, in_place=wanted.in_place)
        self.optimizer = new_optimizer(config, self.model)
        self._step = Step(
            self.model,
            self.optimizer,
            document_losses(config, TASKS["classification"], None),
            config,
            self.accelerator,
            None,
            PieceSize(),
        )

    def step(self, *parts: list[int]) -> tuple[float, float]:
        """Make a step from these documents."""
        loss, count = self._step.apply(self.find(*parts), 1e-3)
        return float(loss), float(count)

    def find(self, *parts: list[int]) -> Found:
        """Find the gradients of these documents."""
        if not self._step.reserved:
            self._step.reserve([self.data.batch(range(30))])
        return self._step.find([self.data.batch(rows) for rows in parts])


def assert_same(one: Trained, other: Trained) -> None:
    # Adam divides by what may be next to nothing: where it does, roundings decide, which are larger
    # on a GPU. A step that went another way would be off by some 1e-3.
    most = 1e-6 if one.accelerator.device.type == "cpu" else 2e-4
    for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True):
        assert float((a - b).detach().abs().mean()) < most


@pytest.mark.parametrize("device", ON)
def test_parts_are_the_whole(device: str) -> None:
    config = replace(CONFIG, device=device)
    one, other = Trained(config), Trained(config)
    for begin in (0, 10, 20):
        whole = list(range(begin, begin + 20))
        losses = one.step(whole), other.step(whole[:3], whole[3:15], whole[15:])
        assert losses[0] == pytest.approx(losses[1], rel=1e-3)
    assert_same(one, other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kernels", [True, False])
def test_either_way_goes_on_where_the_other_was(kernels: bool, tmp_path: Path) -> None:
    config = replace(CONFIG, device="cuda", kernels=kernels)
    one, other = Trained(config), Trained(replace(config, graphs=False, kernels=False))
    for begin in (0, 10):
        for each in (one, other):
            each.step(list(range(begin, begin + 20)))
    assert_same(one, other)
    for number, each in enumerate((one, other)):
        at = Checkpoints(tmp_path / str(number))
        at.save(Position(step=2), each.model, each.optimizer, {})
    for number, each in enumerate((other, one)):
        assert Checkpoints(tmp_path / str(number)).load(each.model, each.optimizer)
    for begin in (20, 30):
        for each in (one, other):
            each.step(list(range(begin, begin + 20)))
    assert_same(one, other)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("changes", [{}, {"accumulate": 3, "clip": None}, {"kernels": False}])
def test_trainings_learn_with_graphs_as_without(changes: dict[str, Any]) -> None:
    config = replace(CONFIG, device="cuda", epochs=2, learning_rate=5e-3, **changes)
    losses = [
        train(corpus(400), replace(config, graphs=graphs)).history[1]["train_loss"]
        for graphs in (True, False)
    ]
    assert losses[0] == pytest.approx(losses[1], rel=0.05)


@pytest.mark.parametrize("device", ON)
def test_what_was_found_in_vain_is_not_applied(device: str) -> None:
    """As when memory was too short for the last of some pieces."""
    config = replace(CONFIG, device=device)
    one, other = Trained(config), Trained(config)
    rows = list(range(20))
    before = [each.detach().clone() for each in one.model.parameters()]
    one.find(rows[5:])
    for now, then in zip(one.model.parameters(), before, strict=True):
        assert torch.equal(now, then)
    assert not any(float(state["step"]) for state in one.optimizer.state.values())
    assert one.step(rows) == pytest.approx(other.step(rows), rel=1e-3)
    assert_same(one, other)
