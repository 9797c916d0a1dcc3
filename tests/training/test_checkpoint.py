"""Runs and checkpoints on disk, damaged ones too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from laconic import Alphabet, Codec
from laconic.files import append_line
from laconic.nn import GrammarModel, ModelConfig
from laconic.tasks import Classification, Regression
from laconic.training.checkpoint import (
    CheckpointError,
    Checkpoints,
    Position,
    cut_lines,
)
from laconic.training.run import Run, RunError, about_corpus
from laconic.training.settings import TrainingConfig

GOLDEN = Path(__file__).parents[1] / "golden/v3"

TINY = TrainingConfig(embedding_size=16, width=16, epochs=3, batch_size=16, dropout=0.2, seed=5)


def test_runs_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").touch()
    for name, told in {
        "missing": "does not exist",
        "x.parquet": "is a corpus, not a run",
        ".": "holds Parquet files, not a run: config.json is missing",
    }.items():
        with pytest.raises(RunError, match=told):
            Run.open(tmp_path / name)
    GrammarModel(
        ModelConfig(alphabet_size=4, outputs=2, embedding_size=2, width=2)
    ).save_pretrained(tmp_path / "model")
    with pytest.raises(RunError, match="is a model, not a run; the run is the folder"):
        Run.open(tmp_path / "model")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.json").write_text("{}")
    with pytest.raises(RunError, match=r"about.json is missing"):
        Run.open(tmp_path / "run")
    labels = Regression().to_json() | {"std": 10**400}
    huge = json.dumps({"labels": labels})
    for text in ("[", "[]", "{}", '{"labels": 3}', "[" * 100_000, huge):
        (tmp_path / "run/about.json").write_text(text)
        with pytest.raises(RunError, match=r"about.json is damaged"):
            Run.open(tmp_path / "run")


@pytest.mark.parametrize(
    "change",
    [
        {"corpus": 3},
        {"corpus": {"label": ["a"]}},
        {"corpus": {"path": {}}},
        {"labels": {"task": "classification", "classes": ["a", "\ud800"], "mean": 0, "std": 1}},
    ],
)
def test_what_a_run_says_of_its_documents_may_be_damaged(change: Any, tmp_path: Path) -> None:
    run = shutil.copytree(GOLDEN / "run", tmp_path / "run")
    about = json.loads((run / "about.json").read_text())
    (run / "about.json").write_text(json.dumps(about | change))
    with pytest.raises(RunError, match=r"about.json is damaged"):
        Run.open(run)


def test_figures_that_are_no_numbers(tmp_path: Path) -> None:
    run = shutil.copytree(GOLDEN / "run", tmp_path / "run")
    with (run / "metrics.jsonl").open("a") as file:
        file.write('{"done": true, "peak_memory_mb": []}\n')
    with pytest.raises(RunError, match=r"metrics.jsonl, line \d+: peak_memory_mb is no number"):
        Run.open(run).metrics()


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints")
    model = GrammarModel(TINY.model_config(4, 2, "classification"))
    optimizer = torch.optim.Adam(model.parameters())
    for step in (1, 2, 3):
        sum(each.sum() for each in model.parameters()).backward()  # type: ignore[union-attr]
        optimizer.step()
        states = {"cpu": torch.get_rng_state().unsqueeze(0)}
        Checkpoints(folder).save(Position(step=step, best=(0.5,)), model, optimizer, states)
    return folder


def load(folder: Path) -> Position:
    model = GrammarModel(TINY.model_config(4, 2, "classification"))
    loaded = Checkpoints(folder).load(model, torch.optim.Adam(model.parameters()))
    assert loaded is not None
    return loaded[0]


def test_checkpoints_are_kept_and_found(checkpoints: Path) -> None:
    found = Checkpoints(checkpoints).whole()
    assert [each.name for each in found] == ["step-00000002", "step-00000003"]
    assert load(checkpoints) == Position(step=3, best=(0.5,))
    model = GrammarModel(TINY.model_config(8, 2, "classification"))
    with pytest.raises(CheckpointError, match=r"model.safetensors.*embedding.weight has shape"):
        Checkpoints(checkpoints).load(model, torch.optim.Adam(model.parameters()))
    assert (
        Checkpoints(checkpoints / "none").load(model, torch.optim.Adam(model.parameters())) is None
    )


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors", "state.json"])
def test_damaged_checkpoints(checkpoints: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(checkpoints, folder)
    file = folder / "step-00000003" / name
    data = file.read_bytes()
    for damaged in (b"", data[: len(data) // 2], b"\xff" * 100, b"\xff" * 7 + data[7:], b"[]"):
        file.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=f"{name} is damaged.*from step-00000002"):
            load(folder)
    file.unlink()
    with pytest.raises(CheckpointError, match=name):
        load(folder)
    shutil.rmtree(file.parent)
    assert load(folder).step == 2


@pytest.mark.parametrize(
    "change",
    [{"epoch": -1}, {"batch": 1.5}, {"best": [None]}, {"loss_sum": float("inf")}, {"more": 1},
     {"step": True}, {"best": 3}],
)  # fmt: skip
def test_hostile_positions(checkpoints: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    folder = tmp_path / "checkpoints"
    shutil.copytree(checkpoints, folder)
    file = folder / "step-00000003/state.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    with pytest.raises(CheckpointError, match=r"state.json is damaged"):
        load(folder)


def test_tampered_runs(tmp_path: Path) -> None:
    about = {
        "labels": Classification(("a", "b")).to_json(),
        **about_corpus(Codec(), Alphabet.bytes()),
    }
    run = Run.create(tmp_path / "run", TINY, about)
    for line in ("[1]", "3", '{"epoch": 1', "[" * 100_000):
        run.metrics_path.write_text(f'{{"epoch": 1}}\n{line}\n')
        with pytest.raises(RunError, match=r"metrics.jsonl, line 2: "):
            Run.open(run.folder).metrics()
    GrammarModel(TINY.model_config(256, 3, "classification")).save_pretrained(run.folder / "model")
    told = r"about.json is damaged: it has labels for 2 outputs, the model has 3"
    with pytest.raises(RunError, match=told):
        run.model()


def test_metrics_are_cut_to_what_the_checkpoint_knows(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    for number in range(3):
        append_line(path, json.dumps({"epoch": number}))
    with path.open("a") as file:
        file.write('{"epoch": 3')
    cut_lines(path, 2)
    assert path.read_text() == '{"epoch": 0}\n{"epoch": 1}\n'
    with pytest.raises(CheckpointError, match=r"metrics.jsonl has 2 lines, but .* knows 3"):
        cut_lines(path, 3)
    cut_lines(tmp_path / "none.jsonl", 0)
    assert not (tmp_path / "none.jsonl").exists()
