"""Signals and full disks: whenever they come, one line says what happened, and nothing is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="has no such signals")
SIGNALS = [signal.SIGINT, signal.SIGTERM]


def stop(command: list[str], number: int, folder: Path) -> str:
    """Send a signal when the command has said that it is ready; return what it says on stderr."""
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 128 + number, said
    return said


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("module", ["cyclopts", "numpy"])
def test_while_modules_load(
    number: int, module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{module}.py").write_text("import time; print('ready', flush=True); time.sleep(9)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", ":".join(sys.path))
    words = ["info", "x.parquet"] if module == "numpy" else ["--help"]
    assert stop(["-m", "laconic", *words], number, tmp_path) == "laconic: stopped\n"


# What a library makes of the interruption must not be taken for a bug.
WRITING = """
import sys, time
from laconic import Corpus, cli, files

def write(path):
    with files.whole("out") as new:
        new.write_text("half")
        print("ready", flush=True)
        try:
            time.sleep(9)
        except KeyboardInterrupt:
            raise {error}

Corpus.open = write
cli.main()
"""


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize("error", ["", "RuntimeError('from a library')"])
def test_while_a_file_is_written(number: int, error: str, tmp_path: Path) -> None:
    code = WRITING.format(error=error)
    assert stop(["-c", code, "verify", "x.parquet"], number, tmp_path) == "laconic: stopped\n"
    assert not list(tmp_path.iterdir())


def laconic(*words: object, folder: Path, status: int = 0) -> str:
    command = [sys.executable, *map(str, words)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    return done.stderr


def test_output_that_nobody_reads_is_no_success(tmp_path: Path) -> None:
    """Like other programs, which SIGPIPE ends, so that `set -o pipefail` sees it."""
    (tmp_path / "many.txt").write_text("some words\n" * 2_000)
    laconic("-m", "laconic", "compress", "many.txt", "-o", "many.parquet", folder=tmp_path)
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "laconic", "info", "many.parquet"]
    done = subprocess.run(command, cwd=tmp_path, stdout=writes, stderr=subprocess.PIPE, text=True)
    os.close(writes)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


LIMITED = """
import resource, sys
from laconic.__main__ import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
main()
"""


def test_full_disks(tmp_path: Path) -> None:
    """To a file that may not grow, the system says nearly the same as on a full disk."""
    (tmp_path / "in.txt").write_text("\n".join("ab" * 200 + str(n) for n in range(32_000)))
    words = ["compress", "in.txt", "--codec", "lzd", "--shard", "1", "-o"]
    whole = tmp_path / "whole.parquet"
    laconic("-m", "laconic", *words, whole.name, folder=tmp_path)
    size = whole.stat().st_size
    # There is room for none of the three shards, or for each, but not for all of them in one file.
    for most, kept in ((size // 9, []), (size // 2, ["out.parquet.partial"])):
        said = laconic("-c", LIMITED, most, *words, "out.parquet", folder=tmp_path, status=1)
        lines = said.splitlines()
        assert lines[-1].startswith("laconic: the disk is full: [Errno 27]")
        assert lines[-1].endswith("; make room, or choose another place")
        assert lines[:-1] == [
            f"laconic: {each} keeps what is done: go on with --resume" for each in kept
        ]
        found = sorted(each.name for each in tmp_path.iterdir())
        assert found == ["in.txt", *kept, "whole.parquet"]
    laconic("-m", "laconic", *words, "out.parquet", "--resume", folder=tmp_path)
    assert (tmp_path / "out.parquet").read_bytes() == whole.read_bytes()


# Automatic training has its checkpoints where it reads.
READING = """
import time
import laconic.training.auto as auto
from laconic import cli

def train(*_, **__):
    print("ready", flush=True)
    time.sleep(9)

auto.train = train
cli.main()
"""


def test_while_a_model_reads(tmp_path: Path) -> None:
    rows = [f"{'good' if k % 3 else 'bad'} soup {k},{min(k % 3, 1)}" for k in range(300)]
    (tmp_path / "soups.csv").write_text("\n".join(["text,label", *rows, ""]))
    words = ["train", "soups.csv", "-o", "run", "--epochs", "1", "--device", "cpu", "--json"]
    said = stop(["-c", READING, *words], signal.SIGINT, tmp_path)
    assert said == "laconic: run keeps what is done: go on with --resume\nlaconic: stopped\n"
    told = laconic("-m", "laconic", "predict", "run", "soups.csv", folder=tmp_path, status=1)
    assert told.startswith("laconic: run has no model yet: training is not finished; if it")
