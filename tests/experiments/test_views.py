"""Two views of documents, and speeds that are measured alone: rows, points, tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.paper import grid
from experiments.paper.__main__ import DEFAULT_GROUPS, VIEWS_GROUPS
from experiments.paper.report import page
from experiments.paper.results import add_rows, read, write
from experiments.paper.rivals import rivals_of, run_rival
from experiments.paper.speed import METHODS, SETS, measure_speed
from experiments.paper.table import Results, accuracy_table, speed_table
from laconic.training.settings import ConfigError

SMOKE = """
title = "Samples"
sets = ["bacteria", "kjv"]
preset = "paper-dna"
longest = 60

[settings]
batch_size = 64
embedding_size = 8
width = 8
budget = 2000

[local]
local_ngrams = 3
local_buckets = 64
local_size = 4

[[methods]]
stage = 1
names = ["characters", "grc-lzd"]
seeds = [0]
"""


def groups_of(*names: str) -> list[grid.Group]:
    there = {group.name: group for group in grid.groups()}
    return [there[name] for name in names]


@pytest.fixture
def smoke(tmp_path: Path) -> list[grid.Group]:
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "smoke.toml").write_text(SMOKE)
    return grid.groups(tmp_path / "grid")


def keep(folder: Path, dataset: str, method: str, *accuracies: float) -> None:
    for seed, accuracy in enumerate(accuracies):
        figures: dict[str, Any] = {"dataset": dataset, "method": method, "seed": seed}
        figures["test"] = {"accuracy": accuracy / 100}
        if not method.startswith("rival_"):
            figures["protocol"] = {"group": "views_text", "departures": ["of another preset"]}
            figures["config"] = {"epochs": 7}
            figures["about"] = {"machine": "a GPU"}
        add_rows(folder, figures)


def test_rows_of_views_differ_in_the_model_alone() -> None:
    views = groups_of(*VIEWS_GROUPS)
    rows = grid.rows(views)
    assert len(rows) == 14 * 3 * 3
    assert all(group.of_views for group in views)
    for row in rows:
        config, other = row.config("cpu"), grid.Method.named("both-repair")
        assert config.model == row.method.model
        same = grid.Row(row.stage, row.dataset, other, row.seed, row.group).config("cpu").to_json()
        assert config.to_json() | {"model": "both"} == same
        assert config.phrases == 0  # which the rival has not
        assert 7 <= config.local_ngrams <= config.ngrams
    # Results of both protocols lie in one folder.
    assert not set(map(str, rows)) & set(map(str, grid.rows(groups_of(*DEFAULT_GROUPS))))
    assert not any(group.of_views for group in groups_of(*DEFAULT_GROUPS))
    assert grid.Method.named("grc-repair").model == "sequence"


@pytest.mark.usefixtures("few_documents")
def test_the_linear_rival_learns_from_grammars() -> None:
    [views], [plain] = groups_of("views_dna"), groups_of("dna")
    assert list(rivals_of(views, "dna")) == ["rival_linear"]
    assert list(rivals_of(plain, "dna")) == [
        "rival_chars",
        "rival_kmers",
        "rival_fasttext",
        "rival_gzip",
    ]
    found = run_rival("bacteria", "rival_linear", 0, replace(views, longest=300))
    assert found["test"]["accuracy"] > 0.5  # four species
    assert found["config"]["letters"] == 10
    assert found["config"]["features"] <= sum(4**n for n in range(1, 11))
    assert found["config"]["features"] > sum(4**n for n in range(1, 9))
    assert found["config"]["strength"] in (1.0, 10.0, 100.0)


def test_speeds_are_measured_once_and_only_of_known_sets(
    smoke: list[grid.Group], tmp_path: Path
) -> None:
    given = smoke, "cpu", tmp_path / "results", tmp_path / "corpora", 0.0, ["kjv"], 2
    measure_speed(*given)
    before = read(tmp_path / "results/speed.json")
    assert [(p["set"], p["method"]) for p in before["points"]] == [("kjv", m) for m in METHODS]
    assert all(p["documents_per_s"] > 0 and p["batches"] == 2 for p in before["points"])
    assert all(p["passes"] == 1 for p in before["points"])
    of = {point["method"]: point for point in before["points"]}
    plain = of["characters"]
    assert of["char_cnn"]["sequence"] == plain["letters"] == plain["sequence"]
    assert of["bpe"]["sequence"] == of["bpe"]["letters"] < plain["letters"]  # tokens
    grammars = [point for name, point in of.items() if "-" in name]
    assert all(p["sequence"] < p["letters"] == plain["letters"] for p in grammars)
    for codec in ("repair", "lzd"):
        assert of[f"grc_ngrams-{codec}"]["sequence"] == of[f"grc-{codec}"]["sequence"]
    measure_speed(*given)
    assert read(tmp_path / "results/speed.json") == before
    with pytest.raises(ConfigError, match="no group has the set 'imdb'"):
        measure_speed(smoke, "cpu", tmp_path, sets=["imdb"])


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_speeds_and_memory_on_a_gpu(smoke: list[grid.Group], tmp_path: Path) -> None:
    measure_speed(smoke, "cuda", tmp_path, tmp_path / "corpora", 0.1, ["bacteria"], 2)
    points = read(tmp_path / "speed.json")["points"]
    assert len(points) == len(METHODS)
    assert all(p["peak_mb"] > 0 and p["passes"] > 1 for p in points)


def test_every_set_whose_speed_is_wanted_has_rows() -> None:
    groups = groups_of(*DEFAULT_GROUPS)
    assert set(SETS) <= {name for group in groups for name in group.sets}
    for group in groups:
        assert set(METHODS) <= {name for _, names, _ in group.methods for name in names}


def point(dataset: str, method: str, speed: float, room: float, symbols: float) -> dict[str, Any]:
    figures = {"documents_per_s": speed, "peak_mb": room, "letters": 500.0, "sequence": symbols}
    return {"set": dataset, "method": method, **figures}


def test_tables_take_speeds_from_what_was_measured_alone(tmp_path: Path) -> None:
    [dna] = groups_of("dna")
    for dataset in ("H3", "H4"):
        keep(tmp_path, dataset, "grc-lzd", 81.0)
    assert "× characters" not in accuracy_table(Results(tmp_path), dna, ["H3", "H4"])[0]
    points = [
        point("H3", "characters", 1000.0, 600.0, 500.0),
        point("H3", "grc-lzd", 3500.0, 200.0, 125.0),
        {"set": "H3", "method": "mlp-lzd", "error": "out of memory"},
    ]
    write(tmp_path / "speed.json", {"about": {"machine": "a GPU"}, "points": points})
    results = Results(tmp_path)
    assert results.faster("H3", "grc-lzd") == results.faster("H4", "grc-lzd") == 3.5
    assert results.faster("H3", "mlp-lzd") is None
    assert results.faster("imdb", "grc-lzd") is None
    lines = accuracy_table(results, dna, ["H3", "H4"])
    assert lines[0] == "|  | H3 | × characters (n/n') | H4 |"
    assert "| Bi-LSTM-grc (LZD) | (81.00) | 3.50 × (4.0) | (81.00) |" in lines
    assert not any("Bi-LSTM-mlp (LZD)" in line for line in lines if "paper" not in line)
    assert all(line.count("|") == lines[0].count("|") for line in lines)
    [_, _, row] = speed_table(results, ["H3", "H4"], ["grc-lzd", "mlp-lzd"])
    assert row == "| H3 | 1,000 | 600 | 3.50 ×, 3.00 × | –, – |"
    reserved = [point | {"reserved_mb": 700.0} for point in points]
    write(tmp_path / "speed.json", {"about": {"machine": "a GPU"}, "points": reserved})
    [heads, _, row] = speed_table(Results(tmp_path), ["H3", "H4"], ["grc-lzd", "mlp-lzd"])
    assert heads.startswith("|  | characters: documents/s | peak MB | reserved |")
    assert row == "| H3 | 1,000 | 600 | 700 | 3.50 ×, 3.00 × | –, – |"
    text = page(results, [dna])["results.md"]
    assert "Measured on a GPU. H3 stands for all sets of DNA" in text
