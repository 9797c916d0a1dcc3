"""What every command and every writer does with its output before anything is made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from laconic import Alphabet, Codec, Corpus, files
from laconic.cli import app
from laconic.corpus.schema import About
from laconic.corpus.worker import CompressionJob
from laconic.engines.build import build_corpus
from laconic.engines.local import LocalEngine
from laconic.errors import InputError
from laconic.formats import read
from laconic.formats.writing import write

COMMANDS = {
    "compress": ("in.csv", "-o", "{}c.parquet"),
    "expand": ("c.parquet", "-o", "{}back.csv"),
    "features": ("c.parquet", "-o", "{}m.npz"),
    "train": ("c.parquet", "-o", "{}run"),
    "evaluate": ("run", "c.parquet", "-o", "{}m.json"),
    "predict": ("run", "in.csv", "-o", "{}p.csv"),
    "explain": ("run", "in.csv", "-o", "{}why.html"),
    "report": ("run", "-o", "{}report.html"),
}
TOLD = "(s3|gs)://bucket/.*: outputs are written to this machine only: give a path here"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be in, with documents and a corpus of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.csv").write_text("text,label\nabab,a\nbaba,b\n")
    Corpus.from_documents(["abab", "baba"], ["a", "b"]).write("c.parquet")
    return tmp_path


def laconic(command: str, place: str) -> None:
    words = [command, *(word.format(place) for word in COMMANDS[command])]
    app(words, exit_on_error=False, result_action="return_value")


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_urls(command: str, here: Path) -> None:
    before = sorted(here.iterdir())
    with pytest.raises(InputError, match=TOLD):
        # Corpora and predictions may be in S3, but in no other store: see test_stores.py.
        laconic(command, "gs://bucket/" if command in ("compress", "predict") else "s3://bucket/")
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("command", ["expand", "features", "predict", "explain"])
def test_files_need_a_folder_and_a_free_name(command: str, here: Path) -> None:
    with pytest.raises(FileNotFoundError, match="none does not exist: make the folder first"):
        laconic(command, "none/")
    name = COMMANDS[command][-1].format("")
    Path(name).touch()
    with pytest.raises(FileExistsError, match=f"{name} exists: choose another name, or use --for"):
        laconic(command, "")
    Path(name).unlink()
    Path(name).mkdir()
    with pytest.raises(FileExistsError, match=f"{name} is a folder: choose another name"):
        laconic(command, "")


@pytest.mark.parametrize("command", ["evaluate", "report"])
def test_figures_and_reports_replace_files_not_folders(command: str, here: Path) -> None:
    name = COMMANDS[command][-1].format("")
    Path(name).mkdir()
    with pytest.raises(FileExistsError, match=f"{name} is a folder: choose another name"):
        laconic(command, "")
    Path(name).rmdir()
    Path(name).touch()
    with pytest.raises(InputError, match="run does not exist; laconic train makes runs"):
        laconic(command, "")  # what comes first when the output is fine


def _vectorizer(path: Any) -> None:
    pytest.importorskip("sklearn")
    from laconic import GrammarVectorizer
    from laconic.features.vectorizer_file import save_vectorizer

    save_vectorizer(GrammarVectorizer((1, 1)).fit(["ab"]), path)


def _matrix(path: Any) -> None:
    from laconic.features.matrix_file import write_matrix

    write_matrix([], 3, np.float32, path)


def _model(path: Any) -> None:
    pytest.importorskip("torch")
    from laconic.nn import GrammarModel, ModelConfig

    GrammarModel(ModelConfig(4, 2, embedding_size=4, width=4)).save_pretrained(path)


def _run(path: Any) -> None:
    pytest.importorskip("torch")
    from laconic.training.run import Run
    from laconic.training.settings import TrainingConfig

    Run.create(Path(path), TrainingConfig(), {})


def _report(path: Any) -> None:
    from laconic.report import write_report

    write_report(path, [])


def _built(path: Any) -> None:
    documents = read("in.csv")
    job = CompressionJob(About(Codec(), Alphabet.bytes(), documents.text))
    build_corpus(documents, Path(path), job, LocalEngine(1))


def _documents(path: Any) -> None:
    layout = {"format": "csv", "columns": ["text"], "text": "text"}
    write([pa.table({"text": ["a"]})], layout, Path(path))


WRITERS: dict[str, Callable[[Any], None]] = {
    "Corpus.write": lambda path: Corpus.from_documents(["ab"]).write(path),
    "build_corpus": _built,
    "formats.write": _documents,
    "save_vectorizer": _vectorizer,
    "write_matrix": _matrix,
    "save_pretrained": _model,
    "Run.create": _run,
    "write_report": _report,
}


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("writer", WRITERS)
def test_writers_refuse_urls(writer: str, kind: Callable[[str], Any], here: Path) -> None:
    before = sorted(here.iterdir())
    with pytest.raises(InputError, match=TOLD):
        WRITERS[writer](kind("s3://bucket/folder/x.csv"))
    assert sorted(here.iterdir()) == before


@pytest.mark.parametrize("command", ["expand", "features", "predict", "explain"])
def test_what_appears_meanwhile_stays(
    command: str, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hours may lie between the first look at a name and the end of the work."""
    if command in ("predict", "explain"):
        flags = ["--model", "ngram", "--epochs", "1", "--holdout", "0.5", "--device", "cpu"]
        app(["train", "c.parquet", "-o", "run", *flags], result_action="return_value")
    work, theirs = files._work, []

    @contextmanager
    def busy(path: Path) -> Iterator[Path]:
        with work(path) as folder:
            if files.PARTIAL not in path.parent.name:
                path.write_text("theirs")
                theirs.append(path)
            yield folder

    monkeypatch.setattr(files, "_work", busy)
    with pytest.raises(FileExistsError, match="exists: choose another name, or use --force"):
        laconic(command, "")
    assert {path.read_text() for path in theirs} == {"theirs"}
