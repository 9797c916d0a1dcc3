"""Files of results: rows in lines, of several processes at once, of other machines; damage."""

from __future__ import annotations

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from experiments.paper.__main__ import main
from experiments.paper.results import add_rows, find_row, read, rounded, rows_in, write
from experiments.paper.table import Results


def row(method: str, seed: int, accuracy: float = 0.5, dataset: str = "H3") -> dict[str, Any]:
    named = {"dataset": dataset, "method": method, "seed": seed}
    return {**named, "test": {"accuracy": accuracy}, "note": "a\u2028b"}


def test_rows_are_lines_in_a_fixed_order(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    assert find_row(folder, "H3", "grc-lzd", 0) is None
    add_rows(folder, row("mlp-lzd", 0), row("grc-lzd", 10), row("bpe", 1, dataset="imdb"))
    add_rows(folder, row("grc-lzd", 2), row("grc-lzd", 0, 1 / 3))
    assert sorted(path.name for path in folder.iterdir()) == ["H3.jsonl", "imdb.jsonl"]
    text = (folder / "H3.jsonl").read_text("utf-8")
    lines = [json.loads(line) for line in text.split("\n")[:-1]]
    assert lines == list(rows_in(folder))[:4]
    named = [(each["method"], each["seed"]) for each in lines]
    assert named == [("grc-lzd", 0), ("grc-lzd", 2), ("grc-lzd", 10), ("mlp-lzd", 0)]
    assert Results(folder).values("H3", "grc-lzd") == [33.3333, 50.0, 50.0]
    add_rows(folder, row("grc-lzd", 2, 0.75))  # instead of the one before, and of no other
    changed = (folder / "H3.jsonl").read_text("utf-8")
    pairs = zip(text.split("\n"), changed.split("\n"), strict=True)
    assert [new for old, new in pairs if old != new] == [changed.split("\n")[1]]
    assert find_row(folder, "H3", "grc-lzd", 2) == row("grc-lzd", 2, 0.75)


def add(folder: Path, seed: int) -> None:
    for method in ("a", "b", "c", "d"):
        add_rows(folder, row(method, seed))


def test_processes_add_rows_at_the_same_time(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        list(pool.map(add, [tmp_path] * 12, range(12)))
    assert list(rows_in(tmp_path)) == [row(m, seed) for m in "abcd" for seed in range(12)]
    assert [path.name for path in tmp_path.iterdir()] == ["H3.jsonl"]


def test_rows_of_another_machine_are_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    add_rows(here, row("a", 0), row("b", 0))
    add_rows(there, row("b", 0, 0.9), row("a", 0, dataset="imdb"))
    main(["merge", str(there), "--results", str(here)])
    assert "added 2 rows" in capsys.readouterr().out
    wanted = [row("a", 0), row("b", 0, 0.9), row("a", 0, dataset="imdb")]
    assert list(rows_in(here)) == wanted
    with pytest.raises(SystemExit, match="nowhere has no rows"):
        main(["merge", str(tmp_path / "nowhere"), "--results", str(here)])


def test_damage_is_named(tmp_path: Path) -> None:
    add_rows(tmp_path, row("a", 0), row("a", 1))
    path = tmp_path / "H3.jsonl"
    path.write_text(path.read_text("utf-8")[:-9], "utf-8")
    with pytest.raises(ValueError, match=r"H3.jsonl, line 2 is damaged"):
        add_rows(tmp_path, row("a", 2))
    write(tmp_path / "speed.json", {"points": [{"set": "H3", "seconds": 1 / 3}]})
    assert read(tmp_path / "speed.json")["points"] == [{"set": "H3", "seconds": 0.333333}]
    (tmp_path / "speed.json").write_text("{")
    with pytest.raises(ValueError, match=r"speed.json is damaged"):
        read(tmp_path / "speed.json")


def test_numbers_are_rounded_everywhere() -> None:
    assert rounded({"a": [1.23456789, {"b": (2.0000001,)}], "c": 12345678}) == {
        "a": [1.23457, {"b": [2.0]}],
        "c": 12345678,
    }
