"""Settings, schedules and losses of trainings, and what is held out."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from laconic.nn import COMPOSERS, GrammarModel
from laconic.nn.pooling import POOLINGS
from laconic.nn.sequence_models import SEQUENCE_MODELS
from laconic.tasks import TASKS, Classification, Multilabel, Regression
from laconic.training import losses
from laconic.training.holdout import split
from laconic.training.presets import PRESETS
from laconic.training.schedule import learning_rate
from laconic.training.settings import ConfigError, TrainingConfig, read_toml, resolve

TINY = TrainingConfig(embedding_size=16, width=16, epochs=3, batch_size=16, dropout=0.2, seed=5)


# Settings


def test_explicit_settings_win_over_the_preset() -> None:
    config = resolve("paper-text", {"epochs": 3, "clip": 2.0})
    assert (config.composer, config.epochs, config.clip) == ("dual_gru", 3, 2.0)
    assert (config.batch_size, config.documents_per_epoch) == (126, 100_000)
    dna = resolve("paper-dna", {})
    assert (dna.dropout, dna.batch_size, dna.halve_every, dna.clip) == (0.0, 10, 20, None)
    assert dna.documents_per_epoch is None
    for name in PRESETS:
        saved = resolve(name, {"trackers": ("tensorboard",)})
        assert TrainingConfig.from_json(json.loads(json.dumps(saved.to_json()))) == saved


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"epochs": 0}, "epochs must be an integer from 1"),
        ({"epochs": 1.5}, "epochs must be an integer"),
        ({"epochs": True}, "epochs must be an integer"),
        ({"dropout": 1.0}, "dropout must be a number from 0 to less than 1"),
        ({"learning_rate": float("nan")}, "learning_rate must be a number above 0 to 1000"),
        ({"schedule": "linear"}, "schedule must be one of halving, cosine, constant"),
        ({"learning_rte": 1}, "did you mean 'learning_rate'"),
        ({"batch-size": 1}, "did you mean 'batch_size'"),
        ({"trackers": [1]}, "trackers must be a list of names"),
    ],
)
def test_settings_that_cannot_be(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        TrainingConfig.from_json(given)


def test_which_epoch_is_kept_is_settled_by_the_model() -> None:
    assert resolve("auto", {}).settled().keep == "last"
    assert resolve(None, {"model": "auto"}).settled().keep == "last"
    assert resolve("auto", {"model": "sequence"}).settled().keep == "best"
    assert resolve("auto", {"keep": "best"}).settled().keep == "best"
    assert TrainingConfig.from_json({"model": "auto"}).keep == "best", "as before it was a setting"


def test_presets_that_cannot_be() -> None:
    with pytest.raises(ConfigError, match=r"no preset 'papertext'; .*did you mean 'paper-text'"):
        resolve("papertext", {})
    with pytest.raises(ConfigError, match="no preset 3; there are auto, fast, accurate"):
        resolve(3, {})  # type: ignore[arg-type]


def test_a_changed_preset_changes_no_config_that_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    config = resolve("fast", {"epochs": 3})
    kept = json.loads(json.dumps(config.to_json()))
    monkeypatch.setitem(PRESETS, "fast", {"width": 7, "patience": 1})
    assert TrainingConfig.from_json(kept) == config
    del kept["patience"]  # as if it was kept before there was such a setting
    assert TrainingConfig.from_json(kept) == config
    monkeypatch.delitem(PRESETS, "fast")
    assert TrainingConfig.from_json(kept) == config


def test_help_names_what_there_is() -> None:
    told = {each.name: each.metadata["help"] for each in fields(TrainingConfig)}
    known = {"composer": COMPOSERS, "sequence_model": SEQUENCE_MODELS, "pooling": POOLINGS}
    for name, registry in (known | {"preset": PRESETS}).items():
        words = told[name].replace(" or ", ", ").rstrip(".").partition(";")[0].split(", ")
        assert set(words) == set(registry)


def test_settings_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    path.write_text('preset = "fast"\nwidth = 99\nlearning_rate = 1\n')
    config = TrainingConfig.from_toml(path)
    assert (config.preset, config.width, config.embedding_size) == ("fast", 99, 64)
    path.write_text("epoch = 3\n")
    with pytest.raises(ConfigError, match=r"none.toml: No such file or directory"):
        TrainingConfig.from_toml(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match=r"big.toml: no setting 'epoch'; did you mean 'epochs'"):
        TrainingConfig.from_toml(path)
    path.write_text("epochs = = 3\n")
    with pytest.raises(ConfigError, match=r"big.toml"):
        TrainingConfig.from_toml(path)


def test_rates_of_every_schedule() -> None:
    base = TrainingConfig(learning_rate=1.0, warmup_steps=4, epochs=4, halve_every=1)
    rates = [[learning_rate(replace(base, schedule=name), step, 10) for step in range(40)]
             for name in ("constant", "halving", "cosine")]  # fmt: skip
    for each in rates:
        assert each[:4] == [0.25, 0.5, 0.75, 1.0]
    assert set(rates[0][4:]) == {1.0}
    assert rates[1][4:] == [0.5 ** (step // 10) for step in range(4, 40)]
    for step in range(4, 40):
        assert rates[2][step] == pytest.approx(0.5 * (1 + math.cos(math.pi * (step - 4) / 36)))
    few = replace(base, warmup_steps=1000, schedule="constant")
    assert learning_rate(few, 3, 10) == 1.0, "the warm-up is a tenth of all steps at most"


# What is held out


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.floats(0, 0.95), st.integers(0, 9))
def test_split(targets: list[int], share: float, seed: int) -> None:
    labels, numbers = Classification((0, 1, 2, 3, 4)), np.array(targets)
    train_rows, valid_rows = split(labels, numbers, share, seed)
    assert sorted([*train_rows, *valid_rows]) == list(range(len(targets)))
    assert set(numbers[train_rows]) == set(targets), "no class is only in validation"
    for each in set(targets):
        here = int((numbers[valid_rows] == each).sum())
        assert abs(here - share * targets.count(each)) < 1 or len(valid_rows) == 1
    again = split(labels, numbers, share, seed)
    assert again[0].tolist() == train_rows.tolist()
    if share == 0:
        assert not len(valid_rows)


# Losses


@pytest.mark.parametrize("task", TASKS)
def test_losses_are_those_of_the_model(task: Any) -> None:
    torch.manual_seed(0)
    classes = () if task == "regression" else ("a", "b", "c")
    labels = TASKS[task](classes)
    model = GrammarModel(TINY.model_config(256, labels.outputs, task))
    outputs = torch.randn(5, labels.outputs)
    targets = {
        "classification": torch.tensor([0, 1, 2, 1, 1]),
        "multilabel": torch.randint(0, 2, (5, 3)).float(),
        "regression": torch.randn(5),
    }[task]
    mine = losses.document_losses(TINY, labels, None)(outputs, targets)
    assert mine.shape == (5,)
    torch.testing.assert_close(mine.mean(), model.loss(outputs, targets))


def test_smoothed_and_weighted_losses() -> None:
    labels = Classification(("a", "b"))
    outputs, targets = torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([1, 1])
    config = replace(TINY, label_smoothing=0.2)
    found = losses.document_losses(config, labels, torch.tensor([1.0, 3.0]))(outputs, targets)
    for row in range(2):
        logs = outputs[row].log_softmax(0)
        wanted = -3 * (0.9 * logs[1] + 0.1 * logs[0])
        torch.testing.assert_close(found[row], wanted)
    several = Multilabel(("a", "b"))
    found = losses.document_losses(config, several, None)(outputs, torch.tensor([[1.0, 0], [0, 1]]))
    p = outputs.sigmoid()
    wanted = -torch.stack([0.9 * p[0, 0].log() + 0.1 * (1 - p[0, 0]).log(),
                           0.1 * p[0, 1].log() + 0.9 * (1 - p[0, 1]).log()]).mean()  # fmt: skip
    torch.testing.assert_close(found[0], wanted)
    with pytest.raises(ConfigError, match="label_smoothing"):
        losses.document_losses(config, Regression(), None)
    with pytest.raises(ConfigError, match="class_weights"):
        losses.document_losses(replace(TINY, class_weights=True), several, None)


def test_a_file_with_a_wrong_type_is_named(tmp_path: Path) -> None:
    path = tmp_path / "big.toml"
    path.write_text('width = "wide"\n')
    with pytest.raises(
        ConfigError, match=r"big\.toml: width must be an integer from 1 to 16777216, not 'wide'"
    ):
        read_toml(path)
