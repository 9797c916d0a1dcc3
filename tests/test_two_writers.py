"""Two processes that write the same at the same time: one does, the other says who."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from laconic import Corpus
from laconic.cli import app
from laconic.files import locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such locks")
ROUNDS = 6

# Loads what is heavy once; then two processes at a time run a command each, at the same moment.
RACE = """
import importlib, json, os, sys, traceback
from laconic.cli import app

rounds, modules = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for module in modules:
    importlib.import_module(module)

def run(words, barrier):
    os.read(barrier, 1)
    sys.stdout = open(os.devnull, "w")
    try:
        app(words, exit_on_error=False, result_action="return_value")
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["done", ""]

for commands in rounds:
    barrier, start = os.pipe()
    ends = []
    for words in commands:
        end, answer = os.pipe()
        if not os.fork():
            os.write(answer, json.dumps(run(words, barrier)).encode())
            os._exit(0)
        os.close(answer)
        ends.append(end)
    os.write(start, b"x" * len(commands))
    print(json.dumps([json.loads(open(end).read()) for end in ends]), flush=True)
"""


def race(rounds: list[list[list[str]]], *modules: str) -> list[list[Any]]:
    """Return how each command of each round ended."""
    arguments = [json.dumps(rounds), json.dumps(modules)]
    done = subprocess.run(
        [sys.executable, "-c", RACE, *arguments], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    for ends in told:
        assert ["done", ""] in ends, ends
        for kind, message in ends:
            assert kind in ("done", "BlockingIOError", "NothingToDoError"), message
            if kind == "BlockingIOError":
                assert re.search(r" is in use: process \d+ on .+ writes it; wait until", message)
    return told


def laconic(*words: str) -> None:
    app(words, exit_on_error=False, result_action="return_value")


def write_csv(path: Path, word: str, rows: int) -> None:
    lines = (f"{word} {number} {word} {number * 7919},{word}\n" for number in range(rows))
    path.write_text("text,label\n" + "".join(lines))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of two kinds, as files and as a corpus."""
    folder = tmp_path_factory.mktemp("writers")
    for word in ("one", "two"):
        write_csv(folder / f"{word}.csv", word, 3000)
    documents = [f"{word} {number}" for number in range(30) for word in ("one", "two")]
    Corpus.from_documents(documents, ["one", "two"] * 30).write(folder / "c.parquet")
    return folder


@pytest.mark.parametrize("name", ["out.parquet", "out"])
def test_corpora_are_never_mixed(folder: Path, tmp_path: Path, name: str) -> None:
    """The one that comes second may also find nobody there any more, and replace what is there."""
    rounds = []
    for number in range(ROUNDS):
        out = tmp_path / str(number) / name
        flags = ["-o", str(out), "--label", "label", "--shard", "1", "--force"]
        inputs = [str(folder / f"{word}.csv") for word in ("one", "two")]
        rounds += 2 * [[["compress", each, *flags] for each in inputs]]
    told = race(rounds, "laconic.engines.build")
    for number in range(ROUNDS):
        labels = Corpus.open(tmp_path / str(number) / name).labels
        assert len(labels) == 3000
        assert len(set(labels)) == 1
        assert [each.name for each in (tmp_path / str(number)).iterdir()] == [name]
    assert sum(kind == "BlockingIOError" for ends in told for kind, _ in ends) > ROUNDS


@pytest.mark.slow
def test_what_was_interrupted_goes_on_once(folder: Path, tmp_path: Path) -> None:
    """Two that went on with the same work wrote rows twice."""
    source = tmp_path / "in.csv"
    write_csv(source, "word " * 20, 40_000)
    out, rounds = tmp_path / "out.parquet", []
    command = ["compress", str(source), "-o", str(out), "--shard", "1", "--resume"]
    stopped = subprocess.Popen([sys.executable, "-m", "laconic", *command])
    while not (tmp_path / "out.parquet.partial/shards/shard-00000.parquet").exists():
        assert stopped.poll() is None
        time.sleep(0.01)
    stopped.kill()
    stopped.wait()
    for number in range(2):
        shutil.copytree(tmp_path / "out.parquet.partial", tmp_path / f"{number}.parquet.partial")
        again = [*command[:3], str(tmp_path / f"{number}.parquet"), *command[4:]]
        rounds.append([again, again])
    told = race(rounds, "laconic.engines.build")
    for number in range(2):
        assert len(Corpus.open(tmp_path / f"{number}.parquet")) == 40_000
    assert sum(kind == "BlockingIOError" for ends in told for kind, _ in ends) > 0


@pytest.mark.slow
def test_a_run_is_trained_by_one(folder: Path, tmp_path: Path) -> None:
    """Two wrote every epoch twice."""
    pytest.importorskip("torch")
    small = ["--embedding-size", "4", "--width", "4", "--epochs", "2", "--resume"]
    command = ["train", str(folder / "c.parquet"), "-o", str(tmp_path / "run"), *small]
    ((*ends,),) = race([[command, command]], "laconic.training.loop", "laconic.report.run_page")
    assert sorted(kind for kind, _ in ends) == ["BlockingIOError", "done"]
    lines = (tmp_path / "run/metrics.jsonl").read_text().splitlines()
    assert [json.loads(line).get("epoch") for line in lines] == [1, 2, None]
    assert not [*tmp_path.rglob("*.lock"), *tmp_path.rglob("*.partial")]


def test_every_command_says_who_writes(folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("torch")
    corpus, run = str(folder / "c.parquet"), str(tmp_path / "run")
    laconic("train", corpus, "-o", run, "--embedding-size", "4", "--width", "4", "--epochs", "1")
    for name, words in {
        "new.parquet": ["compress", str(folder / "one.csv")],
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
