"""Clusters: workers read and write on their own, and make what this process alone would make."""

import gzip
import json
import os
import pickle
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread, current_thread
from typing import Any

import pytest

from laconic import Alphabet, Codec, Corpus, samples
from laconic.corpus.schema import About
from laconic.corpus.worker import CompressionJob
from laconic.engines import Cluster, Engine
from laconic.engines.build import build_corpus
from laconic.engines.local import LocalEngine
from laconic.engines.portions import Task, make_shards
from laconic.errors import InputError
from laconic.formats import RawDocuments, ReadError, ReadOptions, read

OPTIONS: dict[str, Any] = {"shard_letters": 12_000}


class Workers:
    """A cluster of threads: what is sent travels as between processes, in a folder of their own."""

    def __init__(self, workers: int = 3) -> None:
        self.workers = workers

    def each(self, work: Any, items: Sequence[Any]) -> Iterator[Any]:
        with ThreadPoolExecutor(self.workers, "worker") as pool:
            packed = [pickle.dumps((work, item)) for item in items]
            for done in pool.map(_unpacked, packed):
                yield pickle.loads(done)


def _unpacked(packed: bytes) -> bytes:
    work, item = pickle.loads(packed)
    return pickle.dumps(work(item))


class Killed(Workers):
    """Loses its workers after some tasks."""

    def each(self, work: Any, items: Sequence[Any]) -> Iterator[Any]:
        yield from super().each(work, items[: len(items) // 2])
        raise ConnectionError("the workers are gone")


def build(sources: Any, out: Path, engine: Engine | Cluster, **options: Any) -> Any:
    reading = {key: options.pop(key) for key in ("on_error", "part_bytes") if key in options}
    documents = read(sources, ReadOptions(**{"part_bytes": 4000} | reading))
    alphabet = Alphabet.named(options.pop("alphabet", "bytes"))
    about = About(Codec(), alphabet, documents.text, documents.label, documents.layout)
    job = CompressionJob(about, reading.get("on_error", "stop"))
    return build_corpus(documents, out, job, engine, **OPTIONS | options)


def contents(out: Path) -> dict[str, bytes]:
    """Return the bytes of all files of a corpus, and of the rejected rows beside it."""
    files = sorted(out.iterdir()) if out.is_dir() else [out]
    beside = out.with_name(out.name + ".rejects.jsonl")
    return {
        each.name.replace(out.name, ""): each.read_bytes()
        for each in [*files, beside]
        if each.exists()
    }


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One file that cannot be split, of which only the end tells that it lacks a newline."""
    verses = map(str, samples.load("kjv").train.documents[:400])
    path = tmp_path_factory.mktemp("one") / "kjv.txt.gz"
    path.write_bytes(gzip.compress("\n".join(" ".join(each.split()) for each in verses).encode()))
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files, most of them much smaller than a shard, one larger."""
    folder = tmp_path_factory.mktemp("many")
    verses = [" ".join(str(each).split()) for each in samples.load("kjv").train.documents[:400]]
    for number in range(20):
        some = verses[150:] if number == 7 else verses[7 * number : 7 * number + 7]
        (folder / f"{number:02}.txt").write_text("\n".join([*some, ""]))
    return folder / "*.txt"


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("name", ["c.parquet", "c"])
@pytest.mark.parametrize("inputs", ["one", "many"])
def test_the_same_bytes_as_here(
    inputs: str,
    name: str,
    compact: bool,
    workers: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    source = request.getfixturevalue(inputs)
    options = {"sharded": name == "c", "compact": compact}
    here, there = tmp_path / "here" / name, tmp_path / "there" / name
    tally, _ = build(source, here, LocalEngine(2), **options)
    again, _ = build(source, there, Workers(workers), **options)
    assert contents(there) == contents(here)
    assert again == tally
    assert os.listdir(there.parent) == [name]
    if name == "c":
        assert len(contents(here)) > 3
    assert list(Corpus.open(there)) == list(Corpus.open(here))


def test_documents_do_not_come_to_this_process(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_by: list[tuple[str, list[str]]] = []
    parts = RawDocuments.parts

    def watched(documents: RawDocuments) -> Any:
        read_by.append((current_thread().name, documents.files))
        return parts(documents)

    monkeypatch.setattr(RawDocuments, "parts", watched)
    build(many, tmp_path / "c", Workers(2), sharded=True)
    assert {name.split("_")[0] for name, _ in read_by} == {"worker"}
    assert len(read_by) > 3
    files = [file for _, some in read_by for file in some]
    assert sorted(files) == sorted(read(many).files)  # each by one


@pytest.mark.parametrize("inputs", ["one", "many"])
@pytest.mark.parametrize("name", ["c.parquet", "c"])
def test_lost_workers_and_resume(
    inputs: str, name: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """What they finished is kept, and not made again, whichever engine goes on."""
    source, sharded = request.getfixturevalue(inputs), name == "c"
    whole, out = tmp_path / "whole" / name, tmp_path / "out" / name
    build(source, whole, LocalEngine(1), sharded=sharded)
    for engine in (Workers(3), LocalEngine(2)):
        with pytest.raises(ConnectionError, match="the workers are gone"):
            build(source, out, Killed(4), sharded=sharded)
        assert not out.exists()
        work = out.with_name(f"{name}.partial")
        shards = sorted((work / "shards").iterdir())
        assert shards
        assert not (work / "making").exists()
        kept = {each.name: each.stat().st_mtime_ns for each in shards}
        seen: dict[str, int] = {}

        def see(_: Any, work: Path = work, seen: dict[str, int] = seen) -> None:
            seen |= {each.name: each.stat().st_mtime_ns for each in (work / "shards").iterdir()}

        build(source, out, engine, sharded=sharded, resume=True, progress=see)
        assert kept.items() <= seen.items()
        assert contents(out) == contents(whole)
        shutil.rmtree(out.parent)


def test_the_first_bad_row_is_told(many: Path, tmp_path: Path) -> None:
    """Of two bad documents, one of which a worker meets before the other."""
    files = read(many).files
    verses = [Path(each).read_text() for each in files]
    for number, text in enumerate(verses):
        bad = {7: text + "ok\n" * 2000 + "\n", 15: "\n" + text}.get(number, text)
        (tmp_path / f"{number:02}.txt").write_text(bad)
    for engine in (LocalEngine(2), Workers(1), Workers(4), Workers(8)):
        with pytest.raises(ReadError, match=r"07\.txt, row 2251: the document is empty"):
            build(tmp_path / "*.txt", tmp_path / "c", engine, resume=True)
    assert not (tmp_path / "c").exists()


def test_rejected_rows_are_the_same(many: Path, tmp_path: Path) -> None:
    lines = ["good good good", "", "fine", "more of it"] * 700
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("\n".join(lines[number:]))
    for name, engine in (("a", LocalEngine(2)), ("b", Workers(2)), ("c", Workers(7))):
        tally, rejects = build(
            tmp_path / "?.txt",
            tmp_path / name / "out",
            engine,
            on_error="skip",
            sharded=True,
        )
        assert tally.rejected == len(rejects.read_text().splitlines())
    assert contents(tmp_path / "b/out") == contents(tmp_path / "a/out")
    assert contents(tmp_path / "c/out") == contents(tmp_path / "a/out")
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [each["row"] for each in told[:3]] == [2, 6, 10]


def test_what_can_be_read_once_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    writer = Thread(target=lambda: (tmp_path / "pipe.txt").write_text("abab\n"))
    writer.start()
    with pytest.raises(
        InputError, match=r"pipe\.txt: only one process can read it.* --engine local"
    ):
        build(tmp_path / "pipe.txt", tmp_path / "c", Workers(2))
    writer.join()
    assert os.listdir(tmp_path) == ["pipe.txt"]


def test_workers_that_should_stop_write_nothing_more(many: Path, tmp_path: Path) -> None:
    """A worker may outlive the command that began it: then another may be at work there."""
    kept: list[Task] = []

    class Late(Workers):
        def each(self, work: Any, items: Sequence[Any]) -> Iterator[Any]:
            kept.extend(items)
            yield work(items[0])
            raise ConnectionError("lost")

    with pytest.raises(ConnectionError, match="lost"):
        build(many, tmp_path / "c", Late(2), sharded=True)
    work = tmp_path / "c.partial"
    before = sorted(work.rglob("*"))
    late = [make_shards(task) for task in kept[1:]]
    assert all(not outcome.made and outcome.error is None for outcome in late)
    assert sorted(work.rglob("*")) == before


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # of Ray's and Spark's own
@pytest.mark.parametrize("name", ["ray", "spark"])
def test_ray_and_spark(
    name: str, one: Path, many: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    engine = request.getfixturevalue(f"{name}_engine")
    for number, source in enumerate((one, many)):
        here, there = tmp_path / f"here{number}" / "c", tmp_path / f"there{number}" / "c"
        build(source, here, LocalEngine(2), sharded=True)
        build(source, there, engine, sharded=True)
        assert contents(there) == contents(here)
    with pytest.raises(ReadError, match=r"00\.txt, row 1, position 1: 'h' is not in the alphabet"):
        build(many, tmp_path / "dna", engine, alphabet="dna")
    assert not list(tmp_path.glob("dna*"))
