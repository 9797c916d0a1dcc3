"""Rows of the paper's experiments in several processes: who dies, who waits, what is left."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace
from multiprocessing import active_children
from pathlib import Path
from typing import Any

import pytest
import torch

from experiments.paper import grid
from experiments.paper.__main__ import main
from experiments.paper.corpora import corpora, symbols
from experiments.paper.memory import Needs
from experiments.paper.pool import (
    MPS,
    _Child,
    _Job,
    _lacks_memory,
    _Pool,
    longest_first,
    run_in_processes,
    sharing,
)
from experiments.paper.results import Figures, add_rows, rows_in
from experiments.paper.training import run_row, run_rows

GRID = """
title = "Samples"
sets = ["bacteria", "kjv"]
preset = "accurate"
longest = 100
few = 240

[settings]
epochs = 2
embedding_size = 8
width = 8
ngram_buckets = 4096
local_buckets = 4096
local_size = 4

[[methods]]
stage = 1
names = ["sequence-lzd", "ngram-lzd", "both-lzd", "auto-lzd"]
seeds = [0]
"""
pytestmark = pytest.mark.usefixtures("quick_children")
ROWS = {f"{s}/{m}-lzd-0" for s in ("bacteria", "kjv") for m in grid.MODELS}


@pytest.fixture
def rows(tmp_path: Path) -> list[grid.Row]:
    return rows_of(GRID, tmp_path)


def rows_of(text: str, folder: Path) -> list[grid.Row]:
    (folder / "grid").mkdir()
    (folder / "grid" / "smoke.toml").write_text(text)
    return grid.rows(grid.groups(folder / "grid"))


def done(folder: Path) -> dict[str, Figures]:
    rows = rows_in(folder / "results")
    return {f"{row['dataset']}/{row['method']}-{row['seed']}": row for row in rows}


def test_two_processes_run_all_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows_of(GRID, tmp_path)
    names = {"--grid": "grid", "--results": "results", "--cache": "build/corpora"}
    given = [each for name, to in names.items() for each in (name, str(tmp_path / to))]
    main(["run", "--device", "cpu", "--processes", "2", *given])
    out, err = capfd.readouterr()
    assert "all rows are done" in out
    assert MPS not in err
    assert done(tmp_path).keys() == ROWS
    found = {m: done(tmp_path)[f"kjv/{m}-lzd-0"] for m in grid.MODELS}
    assert all(row["processes"] == 2 for row in found.values())
    assert {m: row["config"]["model"] for m, row in found.items()} == {m: m for m in grid.MODELS}
    assert all(row["model"] == m for m, row in found.items())
    assert found["auto"]["auto"]["counting"]["valid"]["accuracy"] > 0
    views = found["auto"]["views"]
    assert views.keys() <= {"sequence", "ngram"}
    assert found["auto"]["test"]["accuracy"] >= min(view["accuracy"] for view in views.values())
    assert not list((tmp_path / "build/runs").glob("*/*"))
    assert not active_children()


def test_a_killed_childs_row_is_tried_again_alone(
    rows: list[grid.Row], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    killed: list[int] = []

    def kill() -> None:
        # A child has a row as soon as it is there.
        while not (there := active_children()):
            time.sleep(0.01)
        assert there[0].pid is not None
        killed.append(there[0].pid)
        os.kill(there[0].pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    some = grid.chosen(rows, ["*/sequence-*", "*/ngram-*"])
    left = run_in_processes(some, "cpu", tmp_path / "results", tmp_path / "build/corpora")
    killer.join()
    assert left == []
    assert len(killed) == 1
    assert done(tmp_path).keys() == set(map(str, some))
    lines = capfd.readouterr().err.splitlines()
    [told] = [line for line in lines if "its process ended with -9" in line]
    assert "is tried again alone at the end" in told
    name = told.split()[2]
    assert name in ROWS
    assert lines[-1].split()[2] == f"{name}:"


def figures_of(row: grid.Row, **more: object) -> Figures:
    """What such a row would have left on a GPU."""
    about = {"versions": {"gpu": "H200"}}
    named = {"dataset": row.dataset, "method": row.method.name, "seed": row.seed}
    return {**named, "about": about, "config": row.config("cuda").to_json(), **more}


def test_rows_need_what_they_took_before(rows: list[grid.Row], tmp_path: Path) -> None:
    cache = tmp_path / "corpora"
    one, other = grid.chosen(rows, ["kjv/sequence-*", "kjv/both-*"])
    add_rows(tmp_path, figures_of(one, peak_memory_mb=1000.0))
    needs = Needs(tmp_path, cache)
    assert needs.of(one) == pytest.approx(1500 + 2200)  # what is reserved is not known of old rows
    needs.learn(figures_of(one, peak_memory_mb=1000.0, reserved_memory_mb=7000.0))
    assert needs.of(replace(one, seed=3)) == 8500
    needs.fell_short(one)
    assert needs.of(one) == 17_000
    # Of others it says nothing, nor of the same with larger batches, nor do rows of a CPU.
    guess = needs.of(other)
    larger = replace(one.group, settings={**one.group.settings, "batch_size": 640})
    assert needs.of(replace(one, group=larger)) != 17_000
    of_cpu = figures_of(other, peak_memory_mb=9e9, about={"versions": {}})
    needs.learn(of_cpu)
    assert needs.of(other) == guess


@pytest.mark.parametrize(
    ("name", "kernels", "reserved"),  # MB, measured on an H200: experiments/results/paper
    [
        ("H3K4me3/grc-deflate-0", True, 818),
        ("adfa_ld/grc-deflate-0", True, 2_686),
        ("sogou_pinyin/grc-deflate-0", True, 7_214),
        ("H3/characters-0", False, 1_750),
        ("adfa_ld/characters-0", False, 50_000),
    ],
)
@pytest.mark.skipif("LACONIC_DATA" not in os.environ, reason="needs LACONIC_DATA")
def test_guesses_are_careful_and_not_absurd(
    name: str, kernels: bool, reserved: float, tmp_path: Path
) -> None:
    [row] = grid.chosen(grid.rows(grid.groups()), [name])
    settings = {**row.group.settings, "kernels": kernels}
    row = replace(row, group=replace(row.group, settings=settings))
    guess = Needs(tmp_path, tmp_path / "corpora").of(row)
    assert reserved < guess - 1_500 < 1.5 * reserved + 1_000


def test_rows_older_than_kernels_say_nothing_of_those_with_them(
    rows: list[grid.Row], tmp_path: Path
) -> None:
    [row] = grid.chosen(rows, ["kjv/sequence-*"])
    old = figures_of(row, peak_memory_mb=30_000.0)
    del old["config"]["kernels"]
    needs = Needs(tmp_path, tmp_path / "corpora")
    guess = needs.of(row)
    needs.learn(old)
    assert needs.of(row) == guess


def test_rows_start_when_there_is_room(rows: list[grid.Row], tmp_path: Path) -> None:
    sizes = [60.0, 70.0, 20.0, 30.0, 10.0, 10.0]
    started: list[int] = []

    class Known(Needs):
        def of(self, row: grid.Row) -> float:
            return sizes[rows.index(row)]

    class Quiet(_Pool):
        """Starts no process."""

        def _begin(self, job: Any) -> None:
            started.append(rows.index(job.row))
            self._children.append(_Child(None, None, 0, job))  # type: ignore[arg-type]

        def done(self, number: int) -> list[int]:
            self._children = [c for c in self._children if c.job and rows[number] != c.job.row]
            started.clear()
            self._hand_out()
            return list(started)

    given = "cpu", tmp_path, tmp_path, 3, False, run_row
    pool = Quiet(3, given, print, Known(tmp_path, tmp_path), room=100)
    pool._waiting = [_Job(row) for row in rows[: len(sizes)]]
    pool._hand_out()
    assert started == [0, 2, 4]  # 70 has no room beside 60; 20 has, then 30 has none, and 10 has
    assert pool.done(2) == [3]
    assert pool.done(4) == []  # three have passed the one of 70: now it is waited for
    assert pool.done(3) == []
    assert pool.done(0) == [1, 5]


def test_a_row_without_room_waits_and_is_left_when_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    # Its matrices would take some hundred terabytes, which no machine promises.
    rows = rows_of(GRID + "\n[only.kjv]\nembedding_size = 4_194_304\n", tmp_path)
    some = grid.chosen(rows, ["bacteria/sequence-*", "bacteria/ngram-*", "kjv/both-*"])
    # The one without room comes first, beside another.
    left = run_in_processes(some, "cpu", tmp_path / "results", tmp_path / "build/corpora")
    assert list(map(str, left)) == ["kjv/both-lzd-0"]
    assert done(tmp_path).keys() == {str(row) for row in some if row not in left}
    told = [line for line in capfd.readouterr().err.splitlines() if "kjv/both" in line]
    assert "kjv/both-lzd-0 is tried again alone at the end: out of memory" in told[0]
    assert "kjv/both-lzd-0 left: out of memory" in told[-1]


def test_an_error_that_hides_one_of_memory_is_of_memory() -> None:
    def raised(first: str, then: str) -> RuntimeError:
        try:
            try:
                raise RuntimeError(first)
            except RuntimeError:
                raise RuntimeError(then)  # noqa: B904 -- as the end of a capture does
        except RuntimeError as error:
            return error

    assert _lacks_memory(raised("CUDA error: out of memory", "the capture was invalidated"))
    assert _lacks_memory(RuntimeError("CUDA error: out of memory"))
    assert not _lacks_memory(raised("one thing", "and another"))


def test_time_that_is_up_ends_children_and_keeps_results(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rows = rows_of(GRID + "\n[only.kjv]\nepochs = 100_000\n", tmp_path)
    some = grid.chosen(rows, ["*/sequence-*"])
    results, cache = tmp_path / "results", tmp_path / "build/corpora"
    assert run_rows(grid.chosen(some, ["bacteria/*"]), "cpu", results, cache) == []
    began = time.perf_counter()
    left = run_in_processes(some, "cpu", results, cache, processes=1, stop_after=8)
    assert 8 <= time.perf_counter() - began < 30
    assert list(map(str, left)) == ["kjv/sequence-lzd-0"]
    assert done(tmp_path).keys() == {"bacteria/sequence-lzd-0"}
    assert not active_children()
    late = run_in_processes(some, "cpu", results, cache, seconds=-1)
    assert late == left
    assert "s  kjv" not in capfd.readouterr().err


def test_the_longest_rows_of_a_stage_and_seed_start_first(tmp_path: Path) -> None:
    text = GRID.replace("seeds = [0]", "seeds = [0, 1]").replace('"auto-lzd"]', '"sequence-none"]')
    rows = rows_of(text, tmp_path)
    cache = tmp_path / "corpora"
    ordered = longest_first(rows, cache)
    assert [row.seed for row in ordered] == sorted(row.seed for row in rows)
    # Characters are more symbols than LZD's, and bacteria has more documents than kjv.
    names = [f"{row.dataset}/{row.method.codec}" for row in ordered if row.seed == 0]
    sizes = {n: symbols(*n.split("/"), 100, cache) for n in names}
    assert [sizes[n] for n in names] == sorted((sizes[n] for n in names), reverse=True)
    assert names[0].endswith("/none")
    train, _ = corpora("kjv", "lzd", 100, cache)
    assert sizes["kjv/lzd"] == len(train.grammars.sequence)


def test_a_gpu_is_shared_as_long_as_rows_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    log = tmp_path / "log"
    control = tmp_path / MPS
    control.write_text(f'#!/bin/sh\n[ -n "$1" ] && echo "$1" >> {log} || cat >> {log}\n')
    control.chmod(0o755)
    with sharing(True, said.append):
        assert log.read_text() == "-d\n"
    assert log.read_text() == "-d\nquit\n"
    assert [line.split()[0] for line in said] == ["started", "stopped"]
    with sharing(False, said.append):
        assert log.read_text() == "-d\nquit\n"

    control.write_text("#!/bin/sh\nexit 1\n")  # as when somebody has started it
    with sharing(True, said.append):
        pass
    assert said[2:] == [f"{MPS} -d ended with 1: it may be running already"]
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    with sharing(True, said.append):
        pass
    assert said[3:] == [f"there is no {MPS} here: processes take turns on the GPU"]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_processes_share_a_gpu(rows: list[grid.Row], tmp_path: Path) -> None:
    cache = tmp_path / "build/corpora"
    assert run_in_processes(rows, "cuda", tmp_path / "results", cache, processes=3) == []
    assert done(tmp_path).keys() == ROWS
    found = done(tmp_path)["kjv/both-lzd-0"]
    assert found["config"]["device"] == "cuda"
    assert found["reserved_memory_mb"] > found["peak_memory_mb"] > 0


def test_no_processes_are_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--processes", "0"])
    assert "'0' is not a number of processes" in capsys.readouterr().err
