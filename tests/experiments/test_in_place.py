"""Rows that read n-grams in their places: settings, captions, findings, speeds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.paper import grid
from experiments.paper.findings import about_accuracy
from experiments.paper.results import add_rows, find_row, read
from experiments.paper.speed import METHODS, measure_speed
from experiments.paper.table import NAMES, Results, accuracy_table, caption
from laconic.training.settings import ConfigError

LOCAL = {"local_ngrams": 3, "local_buckets": 4_096, "local_size": 4, "local_dropout": 0.5}
SMALL = {"embedding_size": 8, "width": 8, "budget": 2000}
GROUP = grid.Group(
    name="small",
    title="Samples",
    sets=("bacteria", "kjv"),
    preset="paper-dna",
    settings=SMALL,
    methods=((1, ("characters", "grc-lzd", "grc_ngrams-lzd"), (0,)),),
    longest=60,
    only={"kjv": {"epochs": 3}},
    local=LOCAL,
)
PLAIN = replace(GROUP, methods=((1, ("characters", "grc-lzd"), (0,)),), local={})


def keep(folder: Path, dataset: str, method: str, test: float, valid: float, **config: Any) -> None:
    figures = {
        "dataset": dataset,
        "method": method,
        "seed": 0,
        "protocol": {"group": "small", "departures": []},
        "config": config,
        "about": {"machine": "a GPU", "versions": {}},
        "processes": 2,
        "test": {"accuracy": test / 100},
        "epochs": {"valid_accuracy": [valid / 100]},
    }
    add_rows(folder, figures)


def test_only_methods_with_ngrams_in_place_have_their_settings() -> None:
    for row in grid.rows([GROUP]):
        config = row.config("cpu").to_json()
        assert config["composer"] == ("dual_gru" if row.method.codec == "none" else "grc")
        assert (config["sequence_model"], config["model"]) == ("lstm", "sequence")
        assert config["epochs"] == (3 if row.dataset == "kjv" else 50)
        if row.method.name == "grc_ngrams-lzd":
            assert {name: config[name] for name in LOCAL} == LOCAL
        else:
            assert config["local_ngrams"] == 0
    row = grid.Row(1, "kjv", grid.Method.named("grc_ngrams-lzd"), 0, PLAIN)
    with pytest.raises(ConfigError, match=r"the group small needs a table \[local\]"):
        row.config("cpu")


@pytest.mark.parametrize(
    ("names", "letters", "buckets", "size", "dropout"),
    [
        (("dna", "jaist", "gue", "nt"), 8, 65_536, 32, 0.7),
        (("text", "pinyin", "zhang"), 7, 1_048_576, 64, 0.7),
        (("traces",), 7, 65_536, 64, 0.5),
        (("samples",), 5, 16_384, 32, 0.5),
    ],
)
def test_every_group_of_the_paper_has_such_rows(
    names: tuple[str, ...], letters: int, buckets: int, size: int, dropout: float
) -> None:
    there = {group.name: group for group in grid.groups()}
    for group in (there[name] for name in names):
        rows = [row for row in grid.rows([group]) if row.method.local]
        assert {row.seed for row in rows} >= {0, 1}
        assert {row.method.codec for row in rows} == {"repair", "lzd"}
        for config in (row.config("cpu") for row in rows):
            assert (config.local_ngrams, config.local_buckets) == (letters, buckets)
            assert (config.local_size, config.local_dropout) == (size, dropout)


def test_captions_say_what_is_read_in_place(tmp_path: Path) -> None:
    words = "N-grams in place: read with the symbol that they end in, of 1 to"
    assert f"{words} 3 letters (4,096 buckets, dropout 0.5)." in caption(Results(tmp_path), GROUP)
    assert "N-grams in place" not in caption(Results(tmp_path), PLAIN)
    keep(tmp_path, "kjv", "characters", 80.0, 80.0)
    assert f"{words} 3 letters" in caption(Results(tmp_path), GROUP)
    # What was trained counts, whatever the grid says since.
    keep(tmp_path, "kjv", "grc_ngrams-lzd", 81.0, 80.0, **LOCAL | {"local_ngrams": 6})
    assert f"{words} 6 letters (4,096 buckets, dropout 0.5). Mean" in caption(
        Results(tmp_path), GROUP
    )
    assert NAMES["grc_ngrams-repair"] == "Bi-LSTM-grc, n-grams in place (Re-Pair)"
    lines = accuracy_table(Results(tmp_path), GROUP, ["kjv"])
    assert "| Bi-LSTM-grc, n-grams in place (LZD) | (81.00) |" in lines


def test_findings_tell_plain_grc_and_the_better_by_the_held_out_part(tmp_path: Path) -> None:
    def told() -> str:
        return about_accuracy(Results(tmp_path), [GROUP])[1]

    assert told() == "- Not measured yet."
    for name in GROUP.sets:
        keep(tmp_path, name, "characters", 80.0, 80.0)
        keep(tmp_path, name, "grc-lzd", 79.0, 80.0)
    assert "on characters on 0 of 2 sets" in told()
    assert "points. Of grc with n-grams in place: Not measured yet. Characters learn" in told()
    # Where there are no rows with them, there is nothing to choose.
    keep(tmp_path, "kjv", "grc_ngrams-lzd", 85.0, 81.0)
    plain, _, either = told().partition("If the held-out part may choose n-grams in place")
    assert "on 0 of 2 sets" in plain
    assert "bacteria (-1.00), kjv (-1.00) points" in plain
    assert "on 1 of 1 sets" in either
    # Better on the test alone does not count.
    keep(tmp_path, "bacteria", "grc_ngrams-lzd", 90.0, 79.0)
    assert "Below them: bacteria (-1.00) points." in told().partition("If the held-out")[2]


def test_findings_name_methods_that_give_one_class(tmp_path: Path) -> None:
    keep(tmp_path, "kjv", "characters", 80.0, 80.0)
    assert len(about_accuracy(Results(tmp_path), [GROUP])) == 4
    row = find_row(tmp_path, "kjv", "characters", 0)
    assert row is not None
    add_rows(tmp_path, row | {"test": {"accuracy": 0.8, "majority": 0.8, "mcc": 0.0}})
    line = about_accuracy(Results(tmp_path), [GROUP])[4]
    assert "the most frequent class: on kjv Bi-LSTM on characters." in line
    add_rows(tmp_path, row | {"test": {"accuracy": 0.8, "majority": 0.8, "mcc": 0.1}})
    assert len(about_accuracy(Results(tmp_path), [GROUP])) == 4


@pytest.mark.slow
def test_speeds_of_groups_without_ngrams_in_place_are_measured(tmp_path: Path) -> None:
    given = "cpu", tmp_path, tmp_path / "corpora", 0.0, ["bacteria"], 1
    measure_speed([PLAIN], *given)
    found = [point["method"] for point in read(tmp_path / "speed.json")["points"]]
    assert found == [name for name in METHODS if "ngrams" not in name]
    measure_speed([GROUP], *given)
    found = [point["method"] for point in read(tmp_path / "speed.json")["points"]]
    assert found == list(METHODS)
