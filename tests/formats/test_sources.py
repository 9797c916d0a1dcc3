"""Where documents come from: pipes, odd names, links; what is read is never lost in silence."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from laconic.cli import app
from laconic.corpus import Corpus
from laconic.corpus.schema import CorpusError
from laconic.formats import RawDocuments, ReadOptions, read


def texts_of(documents: RawDocuments) -> list[bytes]:
    column = documents.text
    return [text for part in documents.parts() for text in part.table.column(column).to_pylist()]


def fed(pipe: Path, data: bytes) -> Path:
    """Return a pipe that somebody else writes these bytes to."""
    os.mkfifo(pipe)
    threading.Thread(target=pipe.write_bytes, args=[data], daemon=True).start()
    return pipe


def test_pipes_are_read_as_often_as_files(tmp_path: Path) -> None:
    rows = b"".join(b"document %d,x\n" % number for number in range(50_000))
    documents = read(fed(tmp_path / "a.csv", b"text,n\n" + rows))
    assert len(texts_of(documents)) == 50_000
    assert texts_of(documents)[-1] == b"document 49999"
    packed = fed(tmp_path / "a.txt.gz", gzip.compress(b"a\nb\n"))
    assert texts_of(read(packed)) == [b"a", b"b"]


def test_a_pipe_may_give_parquet(tmp_path: Path) -> None:
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table({"text": ["a", "b"]}), sink)
    pipe = fed(tmp_path / "a.parquet", sink.getvalue().to_pybytes())
    assert texts_of(read(pipe)) == ["a", "b"]


def test_process_substitution(tmp_path: Path) -> None:
    command = f"'{sys.executable}' -m laconic compress <(printf 'one\\ntwo\\n') --format lines"
    done = subprocess.run(
        ["bash", "-c", f"{command} -o '{tmp_path}/out.parquet'"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [one.text() for one in Corpus.open(tmp_path / "out.parquet")] == ["one", "two"]


def test_a_device_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no such file"):
        read("/dev/zero", ReadOptions(format="lines"))


def test_names_that_are_not_utf8(tmp_path: Path) -> None:
    for name in (b"caf\xe9.txt", b"plain.txt"):
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(name)
    documents = read(tmp_path)
    rows = [row for part in documents.parts() for row in part.table.to_pylist()]
    assert rows == [
        {"path": "caf\\xe9.txt", "text": b"caf\xe9.txt"},
        {"path": "plain.txt", "text": b"plain.txt"},
    ]
    table = pa.table({"text": ["a"]})
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    with open(odd, "wb") as file:
        pa.parquet.write_table(table, file)
    assert texts_of(read(odd)) == ["a"]
    assert read(odd).files == [odd]
    out = tmp_path / "out.parquet"
    app(["compress", odd, "-o", str(out)], exit_on_error=False, result_action="return_value")
    assert len(Corpus.open(out)) == 1


def test_a_bad_row_in_a_file_whose_name_is_not_utf8(tmp_path: Path) -> None:
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.csv")
    Path(odd).write_bytes(b"text,x\na,1\nb\n")
    words = ["-m", "laconic", "compress", odd, "-o", str(tmp_path / "out.parquet")]
    done = subprocess.run([sys.executable, *words], capture_output=True)
    assert done.returncode == 1
    assert b"row 2: 1 columns instead of 2" in done.stderr
    done = subprocess.run([sys.executable, *words, "--on-error", "skip"], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_a_link_to_its_own_folder_gives_no_copies(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x.txt").write_bytes(b"once")
    (tmp_path / "a/again").symlink_to(tmp_path / "a")
    (tmp_path / "a/above").symlink_to(tmp_path)
    assert read(tmp_path).files == [f"{tmp_path}/a/x.txt"]
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read(tmp_path).files == [f"{tmp_path}/a/x.txt", f"{tmp_path}/b/x.txt"]


def test_corpora_have_names_that_pyarrow_can_spell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"text\nhello\n")
    for odd in (b"/\xff.parquet", b"/\xff"):
        out = os.fsdecode(os.fsencode(tmp_path) + odd)
        words = ["-m", "laconic", "compress", str(tmp_path / "a.csv"), "-o", out]
        done = subprocess.run([sys.executable, *words], capture_output=True)
        assert done.returncode == 1
        assert b"not UTF-8; rename" in done.stderr
        assert b"Traceback" not in done.stderr
        assert os.listdir(tmp_path) == ["a.csv"]
    app(
        ["compress", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.parquet")],
        exit_on_error=False,
        result_action="return_value",
    )
    odd_one = os.fsdecode(os.fsencode(tmp_path) + b"/\xff.parquet")
    os.rename(tmp_path / "a.parquet", odd_one)
    with pytest.raises(CorpusError, match="not UTF-8; rename"):
        Corpus.open(odd_one)
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xfe"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Corpus.open(folder)


@pytest.mark.parametrize("piped", [True, False])
def test_standard_input(piped: bool, tmp_path: Path) -> None:
    """`-` is what others write, or a file that the shell opened; it is read as often as a file."""
    source, out = tmp_path / "in.csv", tmp_path / "c.parquet"
    source.write_text("text;label\nabab;a\nbaba;b\n")
    words = ["compress", "-", "-o", str(out), "--format", "csv", "--delimiter", ";"]
    command = [sys.executable, "-m", "laconic", *words, "--label", "label", "--alphabet", "learn"]
    with source.open("rb") as file:
        given = {"input": file.read()} if piped else {"stdin": file}
        done = subprocess.run(command, stderr=subprocess.PIPE, **given)
    assert done.returncode == 0, done.stderr
    assert Corpus.open(out).labels == ["a", "b"]
    done = subprocess.run(command[:7], input=b"a", stderr=subprocess.PIPE)
    said = b"laconic: standard input: which format is it? Choose with --format: csv, tsv, jsonl,"
    assert said in done.stderr
