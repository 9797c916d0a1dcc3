"""Rows of another protocol: they are run again, and in no table beside those of this one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.data import DATASETS
from experiments.paper import grid
from experiments.paper.__main__ import main
from experiments.paper.protocol import done, same_protocol
from experiments.paper.results import Figures, add_rows, find_row, rows_in
from experiments.paper.table import Results, accuracy_table, caption
from experiments.paper.training import run_rows

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
SMOKE = """
title = "A sample"
sets = ["bacteria"]
preset = "paper-dna"
longest = 60

[settings]
epochs = 1
batch_size = 64
embedding_size = 8
width = 8

[[methods]]
stage = 1
names = ["char_cnn", "mlp-lzd"]
seeds = [0]
"""
AUTOMATIC = """
title = "A sample"
sets = ["bacteria"]
preset = "auto"

[[methods]]
stage = 1
names = ["auto-repair+auto"]
seeds = [0]
"""

pytestmark = pytest.mark.usefixtures("few_documents")


def group_of(text: str, folder: Path) -> grid.Group:
    folder.mkdir(exist_ok=True)
    (folder / "smoke.toml").write_text(text)
    [group] = grid.groups(folder)
    return group


def figures_of(row: grid.Row, **more: object) -> Figures:
    named = {"dataset": row.dataset, "method": row.method.name, "seed": row.seed}
    told = {"protocol": {"departures": []}, "test": {"accuracy": 0.5}}
    about = {"choices": "0123", "machine": "a CPU"}
    return {**named, **told, "about": about, "config": row.config("cuda").to_json(), **more}


def test_a_row_of_another_protocol_is_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, cache = tmp_path / "results", tmp_path / "corpora"

    def run(text: str) -> list[Figures]:
        rows = grid.rows([group_of(text, tmp_path / "grid")])
        assert run_rows(rows, "cpu", results, cache, resumable=False) == []
        return list(rows_in(results))

    first = run(SMOKE)
    assert run(SMOKE) == first
    main(["rows", "--grid", str(tmp_path / "grid"), "--results", str(results)])
    assert "2 done" in capsys.readouterr().out
    longer = SMOKE.replace("epochs = 1", "epochs = 2")
    group_of(longer, tmp_path / "grid")
    main(["rows", "--grid", str(tmp_path / "grid"), "--results", str(results)])
    assert "2 left" in capsys.readouterr().out
    second = run(longer)
    assert [len(row["epochs"]["train_loss"]) for row in (*first, *second)] == [1, 1, 2, 2]
    shorter = run(longer.replace("longest = 60", "longest = 50"))
    assert [row["protocol"]["longest"] for row in shorter] == [50, 50]
    assert run(longer.replace("longest = 60", "longest = 50")) == shorter


def test_what_changes_nothing_is_no_other_protocol(tmp_path: Path) -> None:
    [_, row] = grid.rows([group_of(SMOKE, tmp_path / "grid")])
    found = figures_of(row)
    assert same_protocol(row, found)
    config = dict(found["config"])
    assert same_protocol(row, {**found, "config": {**config, "device": "cpu", "workers": 3}})
    without = {name: value for name, value in config.items() if name != "kernels"}
    assert same_protocol(row, {**found, "config": without})  # it came later
    for changed in ({"kernels": False}, {"learning_rate": 2e-3}, {"composer": "grc"}):
        assert not same_protocol(row, {**found, "config": config | changed})
    few = replace(row, group=replace(row.group, few=100))
    assert not same_protocol(few, {**found, "protocol": {"few": None}})
    assert not same_protocol(row, {**found, "about": {"machine": "a CPU"}})  # an older mlp


def test_what_came_later_was_done_as_without_it(tmp_path: Path) -> None:
    [row] = grid.rows([group_of(AUTOMATIC, tmp_path / "grid")])
    found = figures_of(row)
    assert same_protocol(row, found)
    before = {name: value for name, value in found["config"].items() if name != "keep"}
    assert found["config"]["keep"] == "last"
    assert not same_protocol(row, {**found, "config": before})  # which kept the best epoch


def test_tables_have_rows_of_one_protocol(tmp_path: Path) -> None:
    group = group_of(SMOKE, tmp_path / "grid")
    cnn, mlp = grid.rows([group])
    old = figures_of(cnn, test={"accuracy": 0.25})
    old["config"] |= {"epochs": 9}
    add_rows(tmp_path, old, figures_of(mlp))
    assert done(tmp_path, cnn) is None
    assert find_row(tmp_path, *cnn.key) is not None
    results = Results(tmp_path, [group])
    assert results.of("bacteria", "char_cnn") == []
    lines = accuracy_table(results, group, group.sets)
    assert [line for line in lines if "50.00" in line]
    assert not any("25.00" in line or "CNN" in line for line in lines)
    assert "Not run with this protocol: CNN on characters." in caption(results, group)
    assert Results(tmp_path).values("bacteria", "char_cnn") == [25.0]


def test_small_sets_are_read_more_often(tmp_path: Path) -> None:
    [group] = [each for each in grid.groups(EXPERIMENTS / "both") if each.name == "all"]
    assert group.sized
    assert not group.settings
    assert not group.only
    epochs = {name: group.settings_of(name)["epochs"] for name in group.sets}
    assert epochs["imdb"] == grid.resolve("both", {}).epochs
    sizes = {name: DATASETS[name].train for name in group.sets}
    assert epochs["imdb"] < epochs["yelp_polarity_part"] < epochs["H3"] == max(epochs.values())
    assert all(sizes.values())
    assert group.departures("H3") == group.departures("imdb")
    assert "more epochs for small sets" in group.departures("H3")
    fewer = replace(group, few=1_000)
    assert fewer.settings_of("imdb")["epochs"] == epochs["H3"]
    with pytest.raises(grid.ConfigError, match="nobody knows how many documents of kjv"):
        group_of(
            SMOKE.replace('"bacteria"', '"kjv"').replace("longest", "sized = true\nlongest"),
            tmp_path / "grid",
        )


@pytest.mark.parametrize("name", ["cudnn", "sizes"])
def test_what_stands_beside_converged_rows_is_trained_as_they_are(name: str) -> None:
    converged = {g.name: g for g in grid.groups(EXPERIMENTS / "converged")}
    of = grid.groups(EXPERIMENTS / name)
    assert {group.name for group in of} == converged.keys()
    for group in of:
        other = converged[group.name]
        assert (group.preset, group.longest) == (other.preset, other.longest)
        for dataset in group.sets:
            ours, theirs = (each.settings_of(dataset) for each in (group, other))
            assert ours.pop("kernels", None) is (False if name == "cudnn" else None)
            assert ours == theirs
