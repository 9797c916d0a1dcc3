"""Engines: the same bytes from each; bad documents are named or rejected; work goes on."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laconic import Alphabet, Codec, Corpus, samples
from laconic.engines import Engine, engine_named
from laconic.engines.build import NoDocumentsError, build_corpus
from laconic.engines.local import LocalEngine
from laconic.engines.worker import DocumentError, Result, Task, compress_table
from laconic.format import About
from laconic.readers import ReadError, ReadOptions, read


def write_csv(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *rows])
    return path


@pytest.fixture(scope="module")
def documents_csv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    split = samples.load("kjv").train
    rows = list(zip(map(str, split.documents[:400]), map(str, split.labels[:400]), strict=True))
    return write_csv(tmp_path_factory.mktemp("in") / "kjv.csv", rows)


def build(source: Path, out: Path, engine: Engine | None = None, **options: Any) -> Any:
    reading = {
        key: options.pop(key) for key in ("on_error", "part_bytes", "format") if key in options
    }
    documents = read(source, ReadOptions(**{"label": "label", "part_bytes": 20_000} | reading))
    alphabet = Alphabet.named(options.pop("alphabet", "bytes"))
    codec = Codec(options.pop("codec", "repair"))
    about = About(codec, alphabet, documents.text, documents.label, documents.layout)
    task = Task(about, reading.get("on_error", "stop"))
    return build_corpus(documents, out, task, engine or LocalEngine(2), **options)


@pytest.fixture(scope="module")
def expected(documents_csv: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    out = tmp_path_factory.mktemp("out") / "corpus.parquet"
    build(documents_csv, out, LocalEngine(1))
    return out.read_bytes()


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_threads_do_not_change_a_byte(
    documents_csv: Path, tmp_path: Path, workers: int, expected: bytes
) -> None:
    build(documents_csv, tmp_path / "c.parquet", engine_named("local", workers))
    assert (tmp_path / "c.parquet").read_bytes() == expected
    assert [path.name for path in tmp_path.iterdir()] == ["c.parquet"]


@pytest.fixture(scope="module")
def ray_engine() -> Iterator[Engine]:
    import ray

    yield engine_named("ray", 2)
    ray.shutdown()


@pytest.fixture(scope="module")
def spark_engine() -> Iterator[Engine]:
    from pyspark.sql import SparkSession

    yield engine_named("spark", 2)
    active = SparkSession.getActiveSession()
    assert active is not None
    active.stop()


@pytest.mark.engine
@pytest.mark.filterwarnings("ignore")  # of Ray's and Spark's own
@pytest.mark.parametrize("name", ["ray", "spark"])
def test_clusters_do_not_change_a_byte(
    name: str,
    documents_csv: Path,
    tmp_path: Path,
    expected: bytes,
    request: pytest.FixtureRequest,
) -> None:
    engine = request.getfixturevalue(f"{name}_engine")
    build(documents_csv, tmp_path / "c.parquet", engine)
    assert (tmp_path / "c.parquet").read_bytes() == expected
    bad = write_csv(tmp_path / "bad.csv", [("ACGT", "0"), ("ACXT", "1"), ("", "1"), ("GG", "0")])
    with pytest.raises(ReadError, match=r"bad\.csv, row 2: position 2: 'X' is not in the alphabet"):
        build(bad, tmp_path / "bad.parquet", engine, alphabet="dna")
    build(bad, tmp_path / "bad.parquet", engine, alphabet="dna", on_error="skip", force=True)
    assert [g.text("dna") for g in Corpus.open(tmp_path / "bad.parquet")] == ["ACGT", "GG"]


def test_parts_are_row_groups_and_shards_are_files(documents_csv: Path, tmp_path: Path) -> None:
    tally, rejects = build(documents_csv, tmp_path / "c", sharded=True, shard_letters=30_000)
    assert tally.documents == 400
    assert rejects is None
    names = sorted(path.name for path in (tmp_path / "c").iterdir())
    assert names == [f"shard-{i:05}.parquet" for i in range(len(names))]
    assert len(names) > 3
    corpus = Corpus.open(tmp_path / "c")
    assert len(corpus) == 400
    assert tally.letters == corpus.lengths.sum()
    assert tally.rules == len(corpus.grammars.rules)
    assert tally.symbols == len(corpus.grammars.sequence)


def test_merging_shards_gives_what_one_shard_gives(
    documents_csv: Path, tmp_path: Path, expected: bytes
) -> None:
    build(documents_csv, tmp_path / "c.parquet", shard_letters=30_000)
    assert (tmp_path / "c.parquet").read_bytes() == expected


def test_stops_at_a_bad_document_with_file_and_row(tmp_path: Path) -> None:
    rows = [("ACGT" * 20, "0")] * 30 + [("ACGN", "1"), ("", "0")]
    source = write_csv(tmp_path / "in.csv", rows)
    with pytest.raises(ReadError, match=r"in\.csv, row 31: position 3: 'N' is not in the alphabet"):
        build(source, tmp_path / "c.parquet", alphabet="dna", part_bytes=300)
    assert not (tmp_path / "c.parquet").exists()


def test_skips_bad_documents_and_says_so(tmp_path: Path) -> None:
    rows = [("ACGT", "0"), ("", "1"), ("ACGNA", "2"), ("AC", "3"), ("nn", "4")] * 50
    source = write_csv(tmp_path / "in.csv", rows)
    tally, rejects = build(
        source, tmp_path / "c.parquet", alphabet="dna", on_error="skip", part_bytes=100
    )
    assert rejects == tmp_path / "c.parquet.rejects.jsonl"
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [reject["row"] for reject in told] == [
        row for row in range(1, 251) if (row - 1) % 5 in (1, 2, 4)
    ]
    assert told[0] == {
        "file": str(source),
        "row": 2,
        "reason": "the document is empty",
        "content": {"text": "", "label": "1"},
    }
    assert told[1]["reason"].startswith("position 3: 'N' is not in the alphabet 'dna'")
    corpus = Corpus.open(tmp_path / "c.parquet")
    assert corpus.labels == ["0", "3"] * 50
    assert tally.documents == 100
    assert len(tally.rejects) == 150


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [("", "0")] * 3)
    with pytest.raises(NoDocumentsError, match="no document to compress"):
        build(source, tmp_path / "c.parquet", on_error="skip")
    assert not (tmp_path / "c.parquet").exists()


class Interrupted(BaseException):
    pass


class FaultyEngine(LocalEngine):
    """Stops after some results, as a killed process would."""

    def __init__(self, after: int) -> None:
        super().__init__(2)
        self.after = after

    def run(self, tables: Any, task: Task) -> Iterator[Result]:
        for number, result in enumerate(super().run(tables, task)):
            if number == self.after:
                raise Interrupted
            yield result


@pytest.mark.parametrize("sharded", [False, True])
def test_resume_goes_on_and_gives_the_same_bytes(
    documents_csv: Path, tmp_path: Path, sharded: bool
) -> None:
    options: dict[str, Any] = {"shard_letters": 30_000, "sharded": sharded}
    whole, out = tmp_path / "whole.parquet", tmp_path / "c.parquet"
    build(documents_csv, whole, **options)
    for after in (0, 1, 4, 3, 5):
        with pytest.raises(Interrupted):
            build(documents_csv, out, FaultyEngine(after), resume=True, **options)
        assert not out.exists()
    done: list[int] = []
    build(
        documents_csv,
        out,
        resume=True,
        progress=lambda tally: done.append(tally.documents),
        **options,
    )
    assert done[0] > 100  # what was finished is not done again
    paths = sorted(whole.iterdir()) if sharded else [whole]
    for path in paths:
        twin = out / path.name if sharded else out
        assert twin.read_bytes() == path.read_bytes()
    assert not (tmp_path / "c.parquet.partial").exists()


def test_what_is_in_the_way_is_not_lost(documents_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.parquet"
    out.write_text("mine")
    with pytest.raises(FileExistsError, match="exists: choose another name, or use --force"):
        build(documents_csv, out)
    with pytest.raises(Interrupted):
        build(documents_csv, out, FaultyEngine(3), force=True, shard_letters=30_000)
    assert out.read_text() == "mine"
    with pytest.raises(FileExistsError, match="holds interrupted work: go on with --resume"):
        build(documents_csv, out)
    with pytest.raises(FileExistsError, match="begun with other inputs or options"):
        build(documents_csv, out, codec="lzd", resume=True, shard_letters=30_000)
    build(documents_csv, out, force=True)
    assert len(Corpus.open(out)) == 400


def test_errors_travel_between_processes() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(DocumentError(3, "bad")))
    assert (error.row, error.reason, str(error)) == (3, "bad", "row 3: bad")


def test_a_worker_takes_any_arrow_text() -> None:
    texts = ["abab", "naïve", "xyz"]
    about = About(Codec(), Alphabet.bytes())
    plain = pa.table({"text": pa.array(texts), "n": [1, 2, 3]})
    want = compress_table(plain, Task(about)).table
    for kind in (pa.large_string(), pa.binary(), pa.large_binary()):
        column = pa.chunked_array(
            [pa.array(["?", "abab"], pa.string())[1:], pa.array(["naïve", "xyz"])]
        )
        table = pa.table({"text": column.cast(kind), "n": [1, 2, 3]})
        assert compress_table(table, Task(about)).table.equals(want)
    zhang = About(Codec(), Alphabet.zhang())
    got = Corpus.from_arrow(compress_table(plain, Task(zhang)).table)
    assert [g.text("zhang") for g in got] == ["abab", "na ve", "xyz"]


def test_unknown_engines_and_workers() -> None:
    with pytest.raises(ValueError, match="no engine is named 'dask'; there are local, ray, spark"):
        engine_named("dask")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="workers must be at least 1"):
        engine_named("local", 0)


def test_a_hugging_face_dataset_becomes_a_corpus() -> None:
    import datasets

    rows = {"text": ["abab", "naïve", "xyz"], "stars": [1, 2, 3], "id": ["a", "b", "c"]}
    want = Corpus.from_table(pa.table(rows), label="stars")
    got = Corpus.from_table(datasets.Dataset.from_dict(rows), label="stars")
    assert got.labels == want.labels == [1, 2, 3]
    assert [g.text() for g in got] == rows["text"]
    assert got.columns == ["stars", "id"]
    with pytest.raises(ReadError, match="no column 'body'"):
        Corpus.from_table(pa.table(rows), text="body")
