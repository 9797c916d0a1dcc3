"""laconic predict: from standard input, to standard output, and what it says of empty documents."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from laconic import Corpus
from laconic.cli import app

TOLD = "laconic: 2 documents without a letter, the first in row 1 (from 0): what is predicted"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    corpus = Corpus.from_documents(["abab", "baba"] * 4, [5, 6] * 4)
    corpus.write(folder / "c.parquet")
    flags = ["--model", "ngram", "--epochs", "1", "--holdout", "0.5", "--device", "cpu"]
    words = ["train", str(folder / "c.parquet"), "-o", str(folder / "run"), *flags]
    app(words, exit_on_error=False, result_action="return_value")
    return folder / "run"


def test_from_standard_input_to_standard_output(run: Path) -> None:
    words = ["predict", str(run), "-", "-o", "-", "--format", "csv", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-m", "laconic", *words],
        input='text,label\nabab,5\n"",6\nbaba,6\n"",5\n',
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert [line.split(",")[0] for line in done.stdout.splitlines()] == ["row", *"0123"]
    assert TOLD in done.stderr


def test_empty_documents_are_told(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Corpus.from_documents(["abab", "", ""]).write(tmp_path / "empty.parquet")
    for name, told in (("empty.parquet", True), ("full.parquet", False)):
        out = tmp_path / f"{name}.csv"
        words = ["predict", str(run), str(tmp_path / name), "-o", str(out), "--device", "cpu"]
        if not told:
            Corpus.from_documents(["abab"]).write(tmp_path / name)
        app(words, exit_on_error=False, result_action="return_value")
        assert (TOLD in capsys.readouterr().err) == told
        assert out.exists()


def test_a_column_without_a_name_comes_along(run: Path, tmp_path: Path) -> None:
    """As pandas writes an index."""
    file, out = tmp_path / "indexed.csv", tmp_path / "out.csv"
    file.write_text(",text,label\n7,abab,5\n8,baba,6\n")
    words = ["predict", str(run), str(file), "-o", str(out), "--device", "cpu"]
    app(words, exit_on_error=False, result_action="return_value")
    header, first, second = out.read_text().splitlines()
    assert header == "row,prediction,p(5),p(6),,label"
    assert [line.split(",")[-2:] for line in (first, second)] == [["7", "5"], ["8", "6"]]


def test_no_documents_give_a_header(run: Path) -> None:
    words = [sys.executable, "-m", "laconic", "predict", str(run), "-", "--format", "lines"]
    done = subprocess.run([*words, "--device", "cpu"], input="", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "row,prediction,p(5),p(6)\n"), done.stderr


def test_every_command_takes_a_delimited_file(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Labels '5' in a file are the 5 that the model knows; a delimiter says that it is a CSV."""
    file = tmp_path / "new.psv"
    file.write_text("text|label\n" + "abab|5\nbaba|6\n" * 3)

    def laconic(*words: object) -> str:
        app([str(word) for word in words], exit_on_error=False, result_action="return_value")
        return capsys.readouterr().out

    read = ["--delimiter", "|"]
    assert json.loads(laconic("evaluate", run, file, *read, "--json"))["documents"] == 6
    assert laconic("predict", run, file, *read).startswith("row,prediction,p(5),p(6),label\n0,")
    assert "prediction: " in laconic("explain", run, file, *read, "--row", 1)
    told = json.loads(laconic("explain", run, file, *read, "--top", 2, "--min-count", 1, "--json"))
    assert list(told["of"]) == ["5", "6"]
    out = tmp_path / "f.npz"
    assert "6 documents" in laconic("features", file, "-o", out, *read, "--text", "text")
    laconic("train", file, "-o", tmp_path / "run", *read, "--device", "cpu")
    assert (tmp_path / "run" / "model").is_dir()
