"""Corpora in S3: the same bytes as here, whole or not there, also when the command is killed."""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from faulty_proxy import Fault, Proxy, proxy
from s3_server import BUCKET, s3_server

from laconic import Corpus, CorpusError, samples
from laconic.cli import app
from laconic.corpus.inputs import open_inputs
from laconic.errors import InputError, StoreError
from laconic.files import move
from laconic.formats import ReadOptions
from laconic.formats.stores import S3Path

SHARD = ["--shard", "1", "--codec", "lzd"]


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch, s3_server(patch) as files:
        yield files


@pytest.fixture
def url(s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A folder of a bucket that holds nothing; work is kept in a folder of its own, too."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    s3.delete_dir_contents(BUCKET)
    return f"s3://{BUCKET}/some"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("in") / "in.txt"
    verses = [" ".join(str(each).split()) for each in samples.load("kjv").train.documents]
    path.write_text("\n".join(verses * 8) + "\n")
    assert path.stat().st_size > 2 * (4 << 20)  # a part is 4 MiB, and a shard at least that
    return path


def laconic(*words: object) -> None:
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


def objects(s3: Any, folder: str = "some") -> dict[str, bytes]:
    """Return the bytes of all objects below a folder of the bucket."""
    inside = pyarrow.fs.FileSelector(f"{BUCKET}/{folder}", allow_not_found=True, recursive=True)
    found = {}
    for info in s3.get_file_info(inside):
        if info.type == pyarrow.fs.FileType.File:
            with s3.open_input_file(info.path) as file:
                found[info.path.removeprefix(f"{BUCKET}/{folder}/")] = file.read()
    return found


def left(tmp_path: Path) -> list[Path]:
    """Return the files that are left of work."""
    return [each for each in (tmp_path / "cache").rglob("*") if each.is_file()]


@pytest.mark.parametrize("name", ["c.parquet", "c"])
def test_the_same_bytes_as_here(
    name: str, url: str, s3: Any, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laconic("compress", source, "-o", name, *SHARD)
    laconic("compress", source, "-o", f"{url}/{name}", *SHARD)
    assert f"{url}/{name}: " in capsys.readouterr().out
    here = Path(name)
    files = sorted(here.iterdir()) if here.is_dir() else [here]
    assert len(files) > 2 or name != "c"
    expected = {str(each): each.read_bytes() for each in files}
    assert objects(s3) == expected
    assert not left(tmp_path)
    corpus, twin = Corpus.open(f"{url}/{name}"), Corpus.open(name)
    assert corpus[7].text() == twin[7].text()
    assert list(corpus.problems()) == []
    opened = open_inputs([f"{url}/{name}"], ReadOptions())
    assert opened.corpus is not None
    laconic("info", f"{url}/{name}", "--json")
    laconic("info", name, "--json")
    there, told = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert there.pop("corpus") == f"{url}/{name}"
    told.pop("corpus")
    assert there == told
    with pytest.raises(FileExistsError, match=f"{url}/{name} exists: choose another name, or us"):
        laconic("compress", source, "-o", f"{url}/{name}", *SHARD)
    laconic("compress", source, "-o", f"{url}/{name}", *SHARD, "--resume")
    assert "is there already, and whole" in capsys.readouterr().err
    short = tmp_path / "short.txt"
    short.write_text("abab\n\n")
    laconic("compress", short, "-o", f"{url}/{name}", "--force", "--on-error", "skip")
    assert len(Corpus.open(f"{url}/{name}")) == 1  # no shard of the old one is left
    assert b"the document is empty" in objects(s3)[f"{name}.rejects.jsonl"]


def test_documents_and_corpus_in_s3(url: str, s3: Any, source: Path, tmp_path: Path) -> None:
    S3Path(f"{url}/in.txt").put(source)
    laconic("compress", f"{url}/in.txt", "-o", f"{url}/c.parquet", "--codec", "lzd")
    laconic("expand", f"{url}/c.parquet", "-o", "back.txt")
    assert (tmp_path / "back.txt").read_bytes() == source.read_bytes()
    S3Path(f"{url}/in/a.txt").put(source)
    with pytest.raises(FileExistsError, match=r"some/in holds the input .*/in/a\.txt: choose"):
        laconic("compress", f"{url}/in/a.txt", "-o", f"{url}/in", "--force")


def killed(words: list[str], now: Callable[[], bool]) -> bool:
    """Run a command until `now`; return whether it was killed before its end."""
    process = subprocess.Popen([sys.executable, "-m", "laconic", *words], stderr=subprocess.DEVNULL)
    while process.poll() is None and not now():
        time.sleep(0.002)
    process.kill()
    return process.wait() != 0


@pytest.mark.parametrize("moment", ["shard", "upload"])
@pytest.mark.parametrize("name", ["c.parquet", "c"])
def test_killed_and_resumed(
    name: str, moment: str, url: str, s3: Any, source: Path, tmp_path: Path
) -> None:
    laconic("compress", source, "-o", name, *SHARD)
    work = tmp_path / f"cache/laconic/s3/{BUCKET}/some/{name}.partial"
    words = ["compress", str(source), "-o", f"{url}/{name}", *SHARD]
    made = {
        "shard": lambda: (work / "shards/shard-00001.parquet").exists(),
        "upload": lambda: (work / "merged.parquet").exists() or (work / "moved").exists(),
    }
    assert killed(words, made[moment])
    assert work.exists()
    if objects(s3):
        with suppress(CorpusError):
            assert len(Corpus.open(f"{url}/{name}")) == len(Corpus.open(name))
    if not objects(s3):
        with pytest.raises(FileExistsError, match="holds interrupted work: go on with --resume"):
            laconic(*words)
    laconic(*words, "--resume")
    here = Path(name)
    files = sorted(here.iterdir()) if here.is_dir() else [here]
    assert objects(s3) == {str(each): each.read_bytes() for each in files}
    assert not left(tmp_path)


def test_a_folder_is_whole_or_refused(
    url: str, s3: Any, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever upload or removal is the last, nobody takes some shards for all."""
    laconic("compress", source, "-o", "c", *SHARD)
    out = S3Path(f"{url}/c")
    out.put(Path("c"))
    shutil.copytree("c", "again")
    seen: list[str] = []

    def look(done: Callable[..., None]) -> Callable[..., None]:
        def looking(path: S3Path, *words: Any, **options: Any) -> None:
            done(path, *words, **options)
            if str(path) == str(out):
                return
            try:
                seen.append(str(len(Corpus.open(out))))
            except (FileNotFoundError, CorpusError) as error:
                seen.append(error.args[0] if not isinstance(error, CorpusError) else error.reason)

        return looking

    for name in ("put", "unlink"):
        monkeypatch.setattr(S3Path, name, look(getattr(S3Path, name)))
    move(Path("again"), out)
    shards = len(os.listdir("c"))
    missing = [f"{shards} shards were written, but {count} are here" for count in range(1, shards)]
    gone = f"{out} does not exist"
    assert seen == [*missing[::-1], gone, *missing, str(len(Corpus.open("c")))]


def test_what_s3_refuses(url: str, s3: Any, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words, error, reason in (
        (["s3://bucket"], InputError, "that is a bucket: name an object or a folder in it"),
        (["gs://bucket/c"], InputError, "outputs are written to this machine"),
        ([f"{url}/c.csv"], InputError, "a corpus is a .parquet file, or else a new folder"),
    ):
        with pytest.raises(error, match=reason):
            laconic("compress", source, "-o", *words)
    with pytest.raises(FileNotFoundError, match="there is no bucket 'nobody': make it first"):
        laconic("compress", source, "-o", "s3://nobody/c.parquet", "--codec", "lzd")
    with pytest.raises(FileNotFoundError, match=f"{url}/none does not exist"):
        Corpus.open(f"{url}/none")
    Path("mine").mkdir()
    Path("mine/thesis.doc").write_text("mine")
    S3Path(f"{url}/home/thesis.doc").put(Path("mine/thesis.doc"))
    with pytest.raises(FileExistsError, match="home is no corpus: remove it yourself"):
        laconic("compress", source, "-o", f"{url}/home", "--force")
    assert objects(s3) == {"home/thesis.doc": b"mine"}
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(StoreError, match=f"{url}/c: cannot be found: .*; check the connection"):
        laconic("compress", source, "-o", f"{url}/c")


def test_predictions_and_runs(url: str, s3: Any, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rows = [("spam and eggs " * 3, "a"), ("ham and rye " * 3, "b")] * 10
    Path("in.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    laconic("compress", "in.csv", "-o", f"{url}/c.parquet", "--label", "label")
    train = ["--model", "ngram", "--epochs", "1", "--device", "cpu", "--holdout", "0.2"]
    laconic("train", f"{url}/c.parquet", "-o", "run", *train)
    for each in Path("run").rglob("*"):
        if each.is_file():
            S3Path(f"{url}/{each}").put(each)
    laconic("predict", "run", "in.csv", "-o", "p.csv", "--device", "cpu")
    there = ["predict", f"{url}/run", f"{url}/c.parquet", "-o", f"{url}/p.csv", "--device", "cpu"]
    laconic(*there)
    texts = [line.split(",")[:2] for line in Path("p.csv").read_text().splitlines()]
    told = objects(s3)["p.csv"].decode().splitlines()
    assert [line.split(",")[:2] for line in told] == texts
    assert len(told) == 21
    with pytest.raises(FileExistsError, match=r"p\.csv exists: choose another name, or use --for"):
        laconic(*there)
    laconic(*there, "--force")
    for words, reason in (
        (["predict", f"{url}/none", "in.csv", "-o", "q.csv"], "some/none does not exist"),
        (["predict", "run", "in.csv", "-o", "s3://nobody/p.csv"], "there is no bucket 'nobody'"),
    ):
        with pytest.raises(FileNotFoundError, match=reason):
            laconic(*words)
    assert not Path("q.csv").exists()


@pytest.mark.parametrize("name", ["c.parquet", "c"])
def test_a_store_that_fails_costs_no_work(
    name: str,
    url: str,
    s3: Any,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["compress", source, "-o", f"{url}/{name}", *SHARD]
    copy, failures = pyarrow.fs.copy_files, iter([False, True] if name == "c" else [True])

    def refuse(*places: Any, **options: Any) -> None:
        if next(failures, False):
            raise OSError("AWS Error ACCESS_DENIED during PutObject operation")
        copy(*places, **options)

    with monkeypatch.context() as patch:
        patch.setattr(pyarrow.fs, "copy_files", refuse)
        with pytest.raises(StoreError, match=rf"{url}/.*: .*ACCESS_DENIED.*; check the connection"):
            laconic(*words)
    assert "keeps what is done: go on with --resume" in capsys.readouterr().err
    assert len(objects(s3)) == (name == "c")
    laconic(*words, "--resume")
    laconic("compress", source, "-o", name, *SHARD)
    here = Path(name)
    files = sorted(here.iterdir()) if here.is_dir() else [here]
    assert objects(s3) == {str(each): each.read_bytes() for each in files}


BREAKS = "the connection drops during an answer"


@pytest.fixture
def between(s3: Any, url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """What commands find in the place of S3; it lets all pass until it is told otherwise."""
    host, _, port = os.environ["AWS_ENDPOINT_URL"].removeprefix("http://").partition(":")
    with proxy(host, int(port)) as started:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{started.endpoint}")
        yield started


@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz", "in.parquet", "many/*.csv"])
def test_a_connection_that_breaks_is_no_bad_row(
    name: str, url: str, between: Proxy, tmp_path: Path
) -> None:
    """What was not read must not be left out, and nobody is told to fetch a sound file again."""
    texts = [f"{number} {os.urandom(5000).hex()}" for number in range(200)]
    here = Path(name.replace("*", "a"))
    here.parent.mkdir(exist_ok=True)
    table = pa.table({"text": texts})
    if here.suffix == ".parquet":
        pq.write_table(table, here, row_group_size=20)
    else:
        with pa.output_stream(here) as sink:
            pa.csv.write_csv(table, sink)
    S3Path(f"{url}/{here}").put(here)
    words = ["compress", f"{url}/{name}", "-o", "c.parquet", "--codec", "none"]
    words += ["--text", "text", "--on-error", "skip"]
    with between.failing(None, lambda: None) as requests:
        laconic(*words)
    count = requests()
    assert len(Corpus.open("c.parquet")) == 200
    for first in (0, count // 2, count - 2):
        os.unlink("c.parquet")
        failing = between.failing(Fault(BREAKS, first, 1 << 30), lambda: None)
        with failing, pytest.raises(StoreError, match=f"{url}/.*cannot be .*; check the connec"):
            laconic(*words)
        assert os.listdir(tmp_path) == [here.parts[0]]
        laconic(*words)


def test_a_connection_that_breaks_is_no_damaged_corpus(url: str, s3: Any, between: Proxy) -> None:
    Corpus.from_documents([os.urandom(5000) for _ in range(20)]).write("c.parquet")
    there = S3Path(f"{url}/c.parquet")
    there.put(Path("c.parquet"))
    corpus = Corpus.open(f"{url}/c.parquet")

    def get() -> None:
        S3Path(url).get(Path("copy"), "")

    asked: list[tuple[int, Callable[[], object]]] = [
        (2, lambda: Corpus.open(f"{url}/c.parquet")),
        (0, lambda: corpus[3]),
        (0, get),
        (1, there.unlink),
    ]
    for first, ask in asked:
        fault = Fault("503, slow down" if ask == there.unlink else BREAKS, first, 1 << 30)
        failing = between.failing(fault, lambda: None)
        with failing, pytest.raises(StoreError, match=r"cannot be .*; check the connection"):
            ask()
    assert len(corpus[3].to_bytes(corpus.alphabet, 5000)) == 5000


def test_an_upload_of_which_bytes_are_missing(
    url: str, s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("long.txt").write_text("long")
    with s3.open_output_stream(f"{BUCKET}/some/x.txt") as file:
        file.write(b"lo")
    monkeypatch.setattr(pyarrow.fs, "copy_files", lambda *_, **__: None)
    with pytest.raises(
        StoreError, match=r"x\.txt: cannot be written: 2 bytes are there, not 4; ch"
    ):
        S3Path(f"{url}/x.txt").put(Path("long.txt"))
