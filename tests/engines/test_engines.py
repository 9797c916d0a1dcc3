"""Engines: the same bytes from each; bad documents are named or rejected; work goes on."""

import csv
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from laconic import Alphabet, Codec, Corpus, CorpusError, samples
from laconic.corpus.schema import About
from laconic.corpus.worker import CompressionJob, DocumentError, Result, compress_table
from laconic.engines import Engine, engine_named
from laconic.engines.build import NoDocumentsError, build_corpus
from laconic.engines.local import LocalEngine
from laconic.engines.shards import NothingToDoError, UnfinishedCorpus
from laconic.formats import RawDocuments, ReadError, ReadOptions, read


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
        key: options.pop(key)
        for key in ("on_error", "part_bytes", "format", "label")
        if key in options
    }
    documents = read(source, ReadOptions(**{"label": "label", "part_bytes": 20_000} | reading))
    alphabet = Alphabet.named(options.pop("alphabet", "bytes"))
    codec = Codec(options.pop("codec", "repair"))
    about = About(codec, alphabet, documents.text, documents.label, documents.layout)
    job = CompressionJob(about, reading.get("on_error", "stop"))
    return build_corpus(documents, out, job, engine or LocalEngine(2), **options)


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
    with pytest.raises(ReadError, match=r"bad\.csv, row 2, position 2: 'X' is not in the alphabet"):
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
    with pytest.raises(ReadError, match=r"in\.csv, row 31, position 3: 'N' is not in the alphabet"):
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
    assert tally.rejected == 150


def test_rejects_come_in_the_order_of_files(tmp_path: Path) -> None:
    """Also those of a file of which no document remains."""
    (tmp_path / "in").mkdir()
    for name, lines in {"a": "one field\n", "b": ",1\nACGT,0\none field\n", "c": ",1\n"}.items():
        (tmp_path / f"in/{name}.csv").write_text(f"text,label\n{lines}")
    _, rejects = build(tmp_path / "in", tmp_path / "c.parquet", on_error="skip")
    assert rejects is not None
    told = [json.loads(line) for line in rejects.read_text().splitlines()]
    assert [(each["file"][-5], each["row"]) for each in told] == [
        *(("a", 1), ("b", 1), ("b", 3), ("c", 1))
    ]


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

    def run(self, tables: Any, job: CompressionJob) -> Iterator[Result]:
        for number, result in enumerate(super().run(tables, job)):
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

    error = pickle.loads(pickle.dumps(DocumentError("bad", document=3)))
    assert (error.document, error.reason, str(error)) == (3, "bad", "document 3: bad")


def test_a_worker_takes_any_arrow_text() -> None:
    texts = ["abab", "naïve", "xyz"]
    about = About(Codec(), Alphabet.bytes())
    plain = pa.table({"text": pa.array(texts), "n": [1, 2, 3]})
    want = compress_table(plain, CompressionJob(about)).table
    for kind in (pa.large_string(), pa.binary(), pa.large_binary()):
        column = pa.chunked_array(
            [pa.array(["?", "abab"], pa.string())[1:], pa.array(["naïve", "xyz"])]
        )
        table = pa.table({"text": column.cast(kind), "n": [1, 2, 3]})
        assert compress_table(table, CompressionJob(about)).table.equals(want)
    zhang = About(Codec(), Alphabet.zhang())
    got = Corpus.from_arrow(compress_table(plain, CompressionJob(zhang)).table)
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
    for bad, reason in (("", ": the document is empty"), ("x", ", position 0: 'x' is not")):
        with pytest.raises(ReadError, match=f"<table>, row 3{reason}"):
            Corpus.from_table(pa.table({"text": ["AC", "GT", bad]}), alphabet="dna")
    assert len(Corpus.from_table(pa.table({"text": pa.array([], pa.string())}))) == 0
    with pytest.raises(ReadError, match="no column 'body'"):
        Corpus.from_table(pa.table(rows), text="body")


def test_what_is_done_survives_what_a_crash_leaves(documents_csv: Path, tmp_path: Path) -> None:
    """A shard that lost its bytes when the system went down is made again."""
    options: dict[str, Any] = {"shard_letters": 30_000}
    out = tmp_path / "c.parquet"
    with pytest.raises(Interrupted):
        build(documents_csv, out, FaultyEngine(9), **options)
    shard = tmp_path / "c.parquet.partial" / "shards" / "shard-00001.parquet"
    assert shard.exists()
    shard.write_bytes(b"")
    build(documents_csv, out, resume=True, **options)
    assert len(Corpus.open(out)) == 400


def test_two_do_not_work_in_the_same_folder(documents_csv: Path, tmp_path: Path) -> None:
    out, refused = tmp_path / "c.parquet", []

    def meanwhile(_: Any) -> None:
        for options in ({"resume": True}, {"force": True}):
            with pytest.raises(
                BlockingIOError, match=f"c.parquet is in use: process {os.getpid()} on "
            ):
                build(documents_csv, out, **options)
            refused.append(options)

    build(documents_csv, out, progress=meanwhile)
    assert refused
    assert [each.name for each in tmp_path.iterdir()] == ["c.parquet"]


def test_an_input_that_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [("hello hello", "a")] * 9000)
    with pytest.raises(Interrupted):
        build(source, tmp_path / "c.parquet", FaultyEngine(3), shard_letters=15_000)
    write_csv(source, [("HELLO HELLO", "a")] * 9000)
    with pytest.raises(FileExistsError, match="begun with other inputs or options"):
        build(source, tmp_path / "c.parquet", resume=True, shard_letters=15_000)


def test_an_input_that_changes_meanwhile_is_noticed(tmp_path: Path) -> None:
    """Old and new rows must not end in one corpus, nor must what was there before be lost."""
    source = write_csv(tmp_path / "in.csv", [("hello hello" * 99, "a")] * 4000)
    out = tmp_path / "c.parquet"
    build(source, out)
    before, changes = out.read_bytes(), iter([("HELLO HELLO" * 99, "b")])

    def change(_: Any) -> None:
        for row in changes:  # once, and to as many bytes
            write_csv(source, [row] * 4000)

    with pytest.raises(ReadError, match=r"in.csv: it was changed while it was read: run this agai"):
        build(source, out, force=True, on_error="skip", progress=change)
    assert out.read_bytes() == before
    build(source, out, force=True)
    assert set(Corpus.open(out).labels) == {"b"}


def test_work_is_not_gone_on_with_if_parts_are_cut_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = write_csv(tmp_path / "in.csv", [("hello hello", "a")] * 9000)
    with pytest.raises(Interrupted):
        build(source, tmp_path / "c.parquet", FaultyEngine(3), shard_letters=15_000)
    monkeypatch.setattr(RawDocuments, "cuts", [3, 1, 4])
    with pytest.raises(FileExistsError, match="begun with other inputs or options"):
        build(source, tmp_path / "c.parquet", resume=True, shard_letters=15_000)


def test_killed_before_the_work_folder_was_removed(documents_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "c"
    with pytest.raises(Interrupted):
        build(documents_csv, out, FaultyEngine(9), sharded=True, shard_letters=30_000)
    build(documents_csv, tmp_path / "whole", sharded=True, shard_letters=30_000)
    shutil.rmtree(tmp_path / "c.partial" / "shards")
    (tmp_path / "whole").rename(out)
    with pytest.raises(NothingToDoError, match="is there already, and whole"):
        build(documents_csv, out, resume=True, sharded=True, shard_letters=30_000)
    (tmp_path / ".c.lock").touch()  # killed at the very end
    with pytest.raises(NothingToDoError, match="is there already, and whole"):
        build(documents_csv, out, resume=True, sharded=True, shard_letters=30_000)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]


def test_killed_while_a_folder_was_replaced(
    documents_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever moment it was, one of the two corpora is there, and no shard goes astray."""
    out, work = tmp_path / "c", tmp_path / "c.partial"
    options: dict[str, Any] = {"sharded": True, "shard_letters": 30_000}
    old = write_csv(tmp_path / "old.csv", [("hello hello", "a")] * 9)

    def killed(_: UnfinishedCorpus) -> None:
        raise Interrupted

    build(old, out, **options)
    with monkeypatch.context() as patch:
        patch.setattr(UnfinishedCorpus, "discard", killed)
        with pytest.raises(Interrupted):
            build(documents_csv, out, force=True, **options)
    assert len(Corpus.open(work / "shards")) == 9
    with pytest.raises(NothingToDoError, match="is there already, and whole"):
        build(documents_csv, out, resume=True, **options)
    assert len(Corpus.open(out)) == 400
    # Where names cannot be exchanged, it may have been between two renames.
    (work / "shards").mkdir(parents=True)
    out.rename(work / "replaced")
    bad = write_csv(tmp_path / "bad.csv", [("", "a")])
    with pytest.raises(ReadError, match="the document is empty"):
        build(bad, out, force=True, **options)
    assert len(Corpus.open(out)) == 400
    assert not work.exists()


@pytest.mark.parametrize("name", ["c.parquet", "c"])
def test_a_link_leads_to_the_corpus(documents_csv: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / name).symlink_to(tmp_path / "disk" / name)
    for force in (False, True):
        build(documents_csv, tmp_path / name, sharded=name == "c", force=force)
        assert (tmp_path / name).is_symlink()
        assert len(Corpus.open(tmp_path / "disk" / name)) == 400
    assert len([*tmp_path.iterdir(), *(tmp_path / "disk").iterdir()]) == 3


def test_a_failed_run_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [("good", "a"), ("", "b")])
    for _ in range(2):
        with pytest.raises(ReadError, match="row 2: the document is empty"):
            build(source, tmp_path / "c.parquet")
    build(source, tmp_path / "c.parquet", on_error="skip")
    assert len(Corpus.open(tmp_path / "c.parquet")) == 1


def test_rejected_rows_are_told_even_if_none_is_left(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [("", "a"), ("", "b")])
    with pytest.raises(NoDocumentsError, match=r"see .*c\.parquet\.rejects\.jsonl"):
        build(source, tmp_path / "c.parquet", on_error="skip")
    lines = (tmp_path / "c.parquet.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in lines] == [1, 2]


def test_nothing_but_corpora_is_replaced(tmp_path: Path) -> None:
    source = write_csv(tmp_path / "in.csv", [("good", "a")])
    with pytest.raises(FileExistsError, match="is the input itself"):
        build(source, source, sharded=True, force=True)
    with pytest.raises(FileExistsError, match="holds the input"):
        build(source, tmp_path, sharded=True, force=True)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.doc").write_text("mine")
    with pytest.raises(FileExistsError, match="is no corpus: remove it yourself"):
        build(source, tmp_path / "home", sharded=True, force=True)
    assert (tmp_path / "home" / "thesis.doc").read_text() == "mine"
    assert source.exists()


@pytest.mark.parametrize("workers", [1, 8])
def test_the_first_bad_row_is_told_whatever_the_workers(tmp_path: Path, workers: int) -> None:
    """The reader finds a bad line before the codec comes to a bad document far ahead of it."""
    source = tmp_path / "in.txt"
    source.write_bytes(b"good good\n" * 3 + b"\n" + b"more\n" * 2_000_000 + b"x" * 8 + b"\xff\n")
    with pytest.raises(ReadError, match="row 4: the document is empty"):
        build(source, tmp_path / "c.parquet", LocalEngine(workers), label=None)


def test_a_column_named_like_our_own_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("text,length\nabc,3\n")
    documents = read(tmp_path / "in.csv", ReadOptions(text="text"))
    job = CompressionJob(About(Codec(), Alphabet.bytes(), "text"))
    with pytest.raises(CorpusError, match="the column 'length' has the name of one of the corpus"):
        build_corpus(documents, tmp_path / "c.parquet", job, LocalEngine(1))
    assert not (tmp_path / "c.parquet.partial").exists()


def test_a_missing_shard_is_noticed(documents_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "c"
    with pytest.raises(Interrupted):
        build(documents_csv, out, FaultyEngine(9), sharded=True, shard_letters=30_000)
    build(documents_csv, out, sharded=True, shard_letters=30_000, resume=True)
    names = sorted(out.iterdir())
    assert len(Corpus.open(out)) == 400
    names[1].unlink()
    with pytest.raises(
        CorpusError, match=f"{len(names)} shards were written, but {len(names) - 1}"
    ):
        Corpus.open(out)
