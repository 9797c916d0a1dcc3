"""Two processes that write the same at the same time: one does, the other says who."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import race

from laconic import Corpus
from laconic.cli import app
from laconic.files import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")


@pytest.mark.parametrize(
    ("kind", "times"),
    [
        ("two compress to a file", 5),
        ("two compress to a folder", 5),
        pytest.param("two resume a file", 2, marks=pytest.mark.slow),
        pytest.param("two resume a folder", 2, marks=pytest.mark.slow),
        pytest.param("two train a run", 1, marks=pytest.mark.slow),
    ],
)
def test_one_writes_and_the_other_says_who(kind: str, times: int, tmp_path: Path) -> None:
    """As tools/race.py: corpora of two inputs were mixed, rows and epochs written twice."""
    make, name, modules = race.KINDS[kind]
    if "training" in modules[0]:
        pytest.importorskip("torch")
    rounds = race.Rounds(tmp_path, seed=1)
    for _ in range(5):  # the system decides whether they meet
        some = [make(rounds, name) for _ in range(times)]
        told = race.race(some, modules)
        for each, ends in zip(some, told, strict=True):
            assert not race.unfair(ends)
            assert not each.wrong()
        if any(race.IN_USE.search(said) for ends in told for _, said in ends):
            return
    pytest.fail("the two never met")


def test_findings_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that never finds anything would look just like one that works."""
    ends = [[("OSError", "no disk"), ("OSError", "no disk")]]
    monkeypatch.setattr(race, "race", lambda some, _: ends * len(some))
    report = race.campaign(times=1, seed=1)
    assert "neither did its work" in report.findings[0]
    assert race.unfair([("done", ""), ("OSError", "x is in use")]) == "OSError: x is in use"


def laconic(*words: str) -> None:
    app(words, exit_on_error=False, result_action="return_value")


def test_every_command_says_who_writes(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    corpus, run = str(tmp_path / "c.parquet"), str(tmp_path / "run")
    Corpus.from_documents(["one 1", "two 2"] * 20, ["one", "two"] * 20).write(corpus)
    race.write_csv(tmp_path / "one.csv", "one", 9)
    laconic("train", corpus, "-o", run, *race.TINY, "--epochs", "1")
    for name, words in {
        "new.parquet": ["compress", str(tmp_path / "one.csv")],
        "back.csv": ["expand", corpus],
        "m.npz": ["features", corpus, "--n-features", "64"],
        "m.features.json": ["features", corpus],
        "m.json": ["evaluate", run, corpus],
        "p.csv": ["predict", run, corpus],
        "why.html": ["explain", run, corpus],
        "report.html": ["report", run],
    }.items():
        out = "m.npz" if words[0] == "features" else name
        told = f"{name} is in use: process {os.getpid()} on "
        with locked(tmp_path / name), pytest.raises(BlockingIOError, match=told):
            laconic(*words, "-o", str(tmp_path / out))
        laconic(*words, "-o", str(tmp_path / out))
        (tmp_path / out).unlink()
    with locked(tmp_path / "run/metrics.jsonl"), pytest.raises(BlockingIOError, match="metrics"):
        laconic("train", corpus, "-o", run, "--resume")
