"""A corpus in memory, in a file and in a folder of shards: the same documents and columns."""

from __future__ import annotations

import datetime
import decimal
import os
import random
import re
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import CODECS, RANDOMS

from laconic import Alphabet, Codec, compress_many
from laconic.corpus import Corpus, parquet
from laconic.corpus.schema import GRAMMAR_COLUMNS, About, CorpusError, table_of
from laconic.corpus.stored import StoredGrammars

NAMES = GRAMMAR_COLUMNS.names
ABOUT = About(Codec("repair"), Alphabet.bytes(), label="label")
TEXTS = ["abab", "", "banana", "né 漢字", "x" * 100, "the cat the cat the hat", "a"]
LETTERS = {
    "bytes": "ab\x00\n né漢",
    "dna": "ACGT",
    "zhang": "ab -\n.",
    "learned": "xyé漢 ",
}
ALPHABETS = {
    "bytes": Alphabet.bytes(),
    "dna": Alphabet.dna(),
    "zhang": Alphabet.zhang(),
    "learned": Alphabet.learn([LETTERS["learned"]]),
}
# A folder of its own for each example would be slow: they write over each other's files.
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)


def texts_of(corpus: Corpus) -> list[str]:
    return [grammar.text(corpus.alphabet) for grammar in corpus]


def corpus_of(texts: list[str], columns: pa.Table | None = None, about: About = ABOUT) -> Corpus:
    grammars = compress_many(texts, about.codec, alphabet=about.alphabet, threads=1)
    return Corpus.from_arrow(table_of(grammars, about, columns))


def labelled(count: int = len(TEXTS), first: int = 0) -> Corpus:
    texts = [f"{TEXTS[k % len(TEXTS)]} {k}" for k in range(first, first + count)]
    numbers = range(first, first + count)
    labels = pa.array([f"l{k}" for k in numbers], pa.string())
    return corpus_of(texts, pa.table({"label": labels, "id": pa.array(numbers, pa.int64())}))


def folder_of(path: Path, sizes: list[int]) -> Corpus:
    """A folder with shards of these sizes, of what labelled(sum(sizes)) holds."""
    path.mkdir()
    first = 0
    for number, size in enumerate(sizes):
        labelled(size, first).write(path / f"shard-{number:05}.parquet")
        first += size
    return Corpus.open(path)


def same(one: Corpus, other: Corpus) -> None:
    assert len(one) == len(other)
    assert one.about == other.about
    assert one.schema.equals(other.schema)
    assert one.to_arrow().equals(other.to_arrow())
    assert one.grammars == other.grammars


# ---- round trips --------------------------------------------------------------------------------


@given(st.data(), st.sampled_from(sorted(ALPHABETS)), CODECS)
@ONE_FOLDER
def test_documents_come_back_from_a_file(
    tmp_path: Path, data: st.DataObject, name: str, options: dict[str, Any]
) -> None:
    texts = data.draw(st.lists(st.text(LETTERS[name], max_size=40), max_size=6))
    corpus = Corpus.from_documents(texts, alphabet=ALPHABETS[name], threads=1, **options)
    assert len(corpus) == len(texts)
    assert texts_of(corpus) == texts
    corpus.write(tmp_path / "a.parquet")
    again = Corpus.open(tmp_path / "a.parquet")
    same(again, corpus)
    assert texts_of(again) == texts
    assert list(again.problems()) == []
    assert again.lengths.tolist() == [len(ALPHABETS[name].encode(text)) for text in texts]
    rows = [row for table in again.documents() for row in table.to_pylist()]
    assert rows == [{"text": text.encode()} for text in texts]
    assert repr(again) == repr(corpus)
    assert os.listdir(tmp_path) == ["a.parquet"]


@given(st.lists(st.binary(max_size=50), max_size=5))
def test_bytes_come_back(documents: list[bytes]) -> None:
    corpus = Corpus.from_documents(documents, labels=range(len(documents)))
    assert [grammar.to_bytes() for grammar in corpus] == documents
    assert corpus.labels == [*range(len(documents))]


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    corpus = labelled(50)
    for name in ("a", "b"):
        corpus.write(tmp_path / name)
    Corpus.open(tmp_path / "a").write(tmp_path / "c")
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1
    corpus.write(tmp_path / "d", level=19)
    same(Corpus.open(tmp_path / "d"), corpus)


DAY = datetime.date(2026, 11, 15)
NOON = datetime.datetime(2026, 11, 15, 12)
KINDS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "null": (pa.null(), [None]),
    "bool": (pa.bool_(), [True, False]),
    "int8": (pa.int8(), [-128, 127]),
    "uint64": (pa.uint64(), [0, 2**64 - 1]),
    "int64": (pa.int64(), [-(2**63), 2**63 - 1]),
    "float16": (pa.float16(), [np.float16(1.5)]),
    "float64": (pa.float64(), [-0.0, 1e300, float("inf")]),
    "decimal": (pa.decimal128(9, 2), [decimal.Decimal("1.25")]),
    "decimal256": (pa.decimal256(50, 2), [decimal.Decimal("1.25")]),
    "string": (pa.string(), ["", "né", "a\x00b", "x" * 1000]),
    "large_string": (pa.large_string(), ["", "漢"]),
    "string_view": (pa.string_view(), ["", "longer than twelve bytes"]),
    "binary": (pa.binary(), [b"", b"\xff\x00"]),
    "fixed": (pa.binary(3), [b"abc"]),
    "date": (pa.date32(), [DAY]),
    "time": (pa.time64("ns"), [datetime.time(1, 2, 3)]),
    "timestamp": (pa.timestamp("ns", "Europe/Zurich"), [NOON]),
    "seconds": (pa.timestamp("s"), [NOON]),
    "duration": (pa.duration("us"), [datetime.timedelta(1)]),
    "dictionary": (pa.dictionary(pa.int8(), pa.string()), ["b", "a"]),
    "ordered": (pa.dictionary(pa.int32(), pa.string(), ordered=True), ["b", "a"]),
    "list": (pa.list_(pa.string()), [[], ["a", None]]),
    "large_list": (pa.large_list(pa.int16()), [[], [1, None]]),
    "fixed_list": (pa.list_(pa.float32(), 2), [[1.0, 2.0]]),
    "struct": (pa.struct({"x": pa.int32(), "y": pa.list_(pa.int8())}), [{"x": 1, "y": [None]}]),
    "map": (pa.map_(pa.string(), pa.int32()), [[], [("a", 1), ("b", None)]]),
    "deep": (pa.list_(pa.list_(pa.struct({"z": pa.string()}))), [[[]], [[{"z": None}], []]]),
}


def through_parquet(table: pa.Table) -> pa.Table:
    """The table as Parquet gives it back: it has no seconds and no views, and names elements."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return pq.read_table(pa.BufferReader(sink.getvalue()))


@pytest.mark.parametrize(("kind", "values"), KINDS.values(), ids=KINDS)
def test_columns_of_any_type_come_back(tmp_path: Path, kind: pa.DataType, values: Any) -> None:
    array = pa.array([*values, None, *values], kind)
    columns = pa.table({"c": array, "né.list": array})
    corpus = corpus_of([f"abab {k}" for k in range(len(array))], columns)
    assert corpus.to_arrow(corpus.columns).equals(columns)
    corpus.write(tmp_path / "a.parquet")
    again = Corpus.open(tmp_path / "a.parquet")
    assert again.columns == ["c", "né.list"]
    assert again.to_arrow(again.columns).equals(through_parquet(columns))
    assert again.column("c").to_pylist() == array.to_pylist()
    assert again.grammars == corpus.grammars
    same(Corpus.from_arrow(again.to_arrow()), again)
    assert [value for batch in again.batches(2) for value in batch.column("c").to_pylist()] == (
        array.to_pylist()
    )
    if pa.types.is_string_view(kind):
        return  # pyarrow cannot take some of them
    rows = [len(array) - 1, 0, 0]
    picked = again.select(rows)
    assert picked.column("c").to_pylist() == array.take(pa.array(rows)).to_pylist()
    picked.write(tmp_path / "b.parquet")
    same(Corpus.open(tmp_path / "b.parquet"), picked)


@given(st.data(), st.lists(st.sampled_from(sorted(KINDS)), unique=True), st.integers(0, 5))
@ONE_FOLDER
def test_any_columns_come_back(
    tmp_path: Path, data: st.DataObject, names: list[str], count: int
) -> None:
    made = {}
    for name in names:
        kind, values = KINDS[name]
        drawn = data.draw(
            st.lists(st.sampled_from([None, *values]), min_size=count, max_size=count)
        )
        made[name] = pa.array(drawn, kind)
    columns = pa.table(made) if names else None
    corpus = corpus_of([f"abab {k}" for k in range(count)], columns)
    corpus.write(tmp_path / "a.parquet")
    again = Corpus.open(tmp_path / "a.parquet")
    if columns is not None:
        assert again.to_arrow(names).equals(through_parquet(columns))
    assert again.grammars == corpus.grammars
    assert again.columns == names
    assert list(again.problems()) == []


def test_metadata_and_nullability_of_columns_come_back(tmp_path: Path) -> None:
    field = pa.field("c", pa.int32(), nullable=False, metadata={"unit": "m"})
    corpus = corpus_of(["a"], pa.table([pa.array([1], pa.int32())], pa.schema([field])))
    corpus.write(tmp_path / "a.parquet")
    again = Corpus.open(tmp_path / "a.parquet")
    assert again.schema.field("c").equals(field)
    again.write(tmp_path / "b.parquet")
    assert Corpus.open(tmp_path / "b.parquet").schema.field("c").equals(field)


def test_any_arrow_tool_reads_it(tmp_path: Path) -> None:
    labelled(3).write(tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet")
    assert table.schema.names == ["label", "id", *NAMES]
    same(Corpus.from_arrow(table), labelled(3))


# ---- empty corpora ------------------------------------------------------------------------------


def empties(path: Path) -> dict[str, Corpus]:
    nothing = labelled(0)
    nothing.write(path / "empty.parquet")
    (path / "folder").mkdir()
    for name in ("a", "b"):
        nothing.write(path / "folder" / f"{name}.parquet")
    return {
        "memory": nothing,
        "file": Corpus.open(path / "empty.parquet"),
        "folder": Corpus.open(path / "folder"),
        "selected": labelled(3).select([]),
        "masked": labelled(3).select([False] * 3),
        "sliced": labelled(3).select(slice(3, None)),
    }


def test_empty_corpora(tmp_path: Path) -> None:
    for name, corpus in empties(tmp_path).items():
        assert len(corpus) == 0, name
        assert list(corpus) == []
        assert corpus.labels == []
        assert corpus.lengths.tolist() == []
        assert corpus.columns == ["label", "id"]
        assert len(corpus.grammars) == 0
        assert corpus.to_arrow().num_rows == 0
        assert corpus.to_arrow().schema.equals(labelled(1).schema)
        assert list(corpus.problems()) == []
        assert sum(table.num_rows for table in corpus.documents()) == 0
        assert sum(len(batch) for batch in corpus.batches(3)) == 0
        assert len(corpus.select([])) == 0
        assert len(corpus.select(slice(None))) == 0
        assert repr(corpus).startswith("<Corpus: 0 documents, repair over")
        corpus.write(tmp_path / "again.parquet")
        assert len(Corpus.open(tmp_path / "again.parquet")) == 0
        with pytest.raises(IndexError, match="there is no document 0"):
            corpus[0]
        with pytest.raises(IndexError):
            corpus.select([0])


# ---- files and folders --------------------------------------------------------------------------


def test_a_folder_of_shards_is_one_corpus(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "many", [3, 1, 0, 5])
    whole = labelled(9)
    assert folder.to_arrow().equals(whole.to_arrow())
    assert folder.labels == whole.labels
    assert texts_of(folder) == texts_of(whole)
    assert [folder[k] for k in (-9, -1, 3, 4)] == [whole[k] for k in (0, 8, 3, 4)]
    assert folder.lengths.tolist() == whole.lengths.tolist()
    folder.write(tmp_path / "one.parquet")
    one = Corpus.open(tmp_path / "one.parquet")
    assert one.to_arrow().equals(whole.to_arrow())
    starts = [first for first, _, _ in folder.parts()]
    assert starts == [0, 3, 4]


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    folder_of(tmp_path / "many", [2, 2])
    (tmp_path / "many" / "notes.txt").write_text("x")
    assert len(Corpus.open(tmp_path / "many")) == 4
    assert len(Corpus.open(str(tmp_path / "many"))) == 4


def other_codec() -> Corpus:
    return corpus_of(
        ["a"],
        pa.table({"label": ["x"], "id": [1]}),
        About(Codec("lzd"), ABOUT.alphabet, label="label"),
    )


def other_columns() -> Corpus:
    return corpus_of(["a"], pa.table({"label": ["x"], "id": ["1"]}))


@pytest.mark.parametrize("other", [other_codec, other_columns])
def test_shards_must_be_alike(tmp_path: Path, other: Callable[[], Corpus]) -> None:
    folder_of(tmp_path / "many", [2, 2])
    other().write(tmp_path / "many" / "shard-00002.parquet")
    with pytest.raises(CorpusError, match=r"shard-00002.parquet: its codec, alphabet, rulebook"):
        Corpus.open(tmp_path / "many")


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing does not exist"):
        Corpus.open(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=r"holds no \.parquet files"):
        Corpus.open(tmp_path)
    path = tmp_path / "a.parquet"
    path.write_bytes(b"")
    with pytest.raises(CorpusError, match=r"a\.parquet: .*Parquet"):
        Corpus.open(path)
    path.write_bytes(b"PAR1" * 100)
    with pytest.raises(CorpusError, match=r"a\.parquet: .*Parquet"):
        Corpus.open(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(CorpusError, match=r"a\.parquet: is not a corpus: its schema metadata has"):
        Corpus.open(path)
    (tmp_path / "b.parquet").mkdir()
    with pytest.raises(FileNotFoundError, match="holds no"):
        Corpus.open(tmp_path / "b.parquet")


@pytest.mark.parametrize("name", NAMES)
def test_files_with_missing_and_doubled_columns(tmp_path: Path, name: str) -> None:
    table = labelled(2).to_arrow()
    doubled = table.append_column(table.schema.field(name), table.column(name))
    for wrong in (table.drop_columns([name]), doubled):
        pq.write_table(wrong, tmp_path / "a.parquet")
        with pytest.raises(CorpusError, match=r"a\.parquet: "):
            Corpus.open(tmp_path / "a.parquet")


def test_a_damaged_footer_is_noticed(tmp_path: Path) -> None:
    labelled(9).write(tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    footer = data.index(b"label", data.index(b"PAR1", 4) - 6000 if len(data) > 6000 else 4)
    for at in range(footer, len(data) - 8, 97):
        damaged = bytearray(data)
        damaged[at] ^= 4
        (tmp_path / "b.parquet").write_bytes(damaged)
        with pytest.raises(CorpusError, match=r"b\.parquet: "):
            Corpus.open(tmp_path / "b.parquet").to_arrow()


def test_files_that_others_wrote_are_read(tmp_path: Path) -> None:
    corpus = labelled(9)
    pq.write_table(corpus.to_arrow(), tmp_path / "a.parquet", row_group_size=4)
    assert Corpus.open(tmp_path / "a.parquet").to_arrow().equals(corpus.to_arrow())
    corpus.write(tmp_path / "b.parquet")
    with pq.ParquetFile(tmp_path / "b.parquet") as file:  # gives the file's metadata with the table
        copied = file.read().append_column("more", pa.array(range(9)))
    pq.write_table(copied, tmp_path / "c.parquet")
    assert Corpus.open(tmp_path / "c.parquet").labels == corpus.labels


def test_a_damaged_page_is_named_with_its_documents(tmp_path: Path) -> None:
    folder_of(tmp_path / "many", [3, 4, 2])
    path = tmp_path / "many" / "shard-00001.parquet"
    data = bytearray(path.read_bytes())
    chunk = pq.ParquetFile(path).metadata.row_group(0).column(3)
    data[chunk.data_page_offset + chunk.total_compressed_size - 1] ^= 1
    path.write_bytes(data)
    corpus = Corpus.open(tmp_path / "many")
    (problem,) = corpus.problems()
    assert problem.startswith(f"{path}: row group 0 is damaged: ")
    assert problem.endswith("(documents 3 to 6)")
    assert corpus[0] == labelled(9)[0]
    with pytest.raises(CorpusError, match="row group 0 is damaged"):
        corpus[3]


def test_problems_name_file_and_document(tmp_path: Path) -> None:
    folder_of(tmp_path / "many", [3, 4])
    path = tmp_path / "many" / "shard-00001.parquet"
    table = Corpus.open(path).to_arrow()
    lengths = table.column("length").to_pylist()
    lengths[2] += 1
    at = table.schema.get_field_index("length")
    wrong = table.set_column(at, table.schema.field(at), pa.array(lengths))
    Corpus.from_arrow(wrong).write(path)
    (problem,) = Corpus.open(tmp_path / "many").problems()
    assert problem.startswith(f"{path}, document 2: its length is given as")
    with pytest.raises(CorpusError, match=r"shard-00001.parquet, document 2: its length"):
        Corpus.open(tmp_path / "many")[6]


def test_a_row_group_that_would_not_fit_is_refused(tmp_path: Path) -> None:
    from laconic.corpus.parquet import CorpusFile

    labelled(9).write(tmp_path / "a.parquet")
    with pytest.raises(CorpusError, match=r"row group 0 would take \d+ bytes, more than the limit"):
        CorpusFile(tmp_path / "a.parquet", limit=100).read(0)


def test_a_file_appears_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.parquet"
    labelled(2).write(path)
    before = path.read_bytes()

    def fail(*_: object, **__: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", fail)
    with pytest.raises(OSError, match="no space left"):
        labelled(3).write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.parquet"]


def test_a_corpus_can_be_written_over_itself(tmp_path: Path) -> None:
    labelled(9).write(tmp_path / "a.parquet")
    corpus = Corpus.open(tmp_path / "a.parquet")
    corpus.write(tmp_path / "a.parquet")
    same(Corpus.open(tmp_path / "a.parquet"), labelled(9))


# ---- taking parts -------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "file", "folder"])
def nine(request: pytest.FixtureRequest, tmp_path: Path) -> Corpus:
    """The documents of labelled(9), in one place or another."""
    if request.param == "folder":
        return folder_of(tmp_path / "many", [3, 1, 0, 5])
    if request.param == "file":
        labelled(9).write(tmp_path / "a.parquet")
        return Corpus.open(tmp_path / "a.parquet")
    return labelled(9)


ROWS: dict[str, Any] = {
    "some": [0, 4, 8],
    "any order": [8, 0, 3, 3, 2],
    "negative": [-1, -9, 0],
    "mask": [k % 2 == 0 for k in range(9)],
    "none": [],
    "all": range(9),
    "slice": slice(None),
    "step": slice(1, 8, 3),
    "backwards": slice(None, None, -2),
    "beyond": slice(5, 99),
    "int8": np.array([-1, 8], np.int8),
    "uint8": np.array([0, 8], np.uint8),
    "uint64": np.array([0, 8], np.uint64),
}


@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_select(nine: Corpus, rows: Any) -> None:
    picked = nine.select(rows)
    numbers = np.arange(9)[rows if isinstance(rows, slice) or len(rows) else slice(0)]
    assert picked.column("id").to_pylist() == numbers.tolist()
    assert picked.labels == [f"l{k}" for k in numbers]
    assert [*picked] == [nine[int(k)] for k in numbers]
    assert picked.about == nine.about
    assert picked.schema.equals(nine.schema)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u8"])
def test_select_with_small_integers_from_many_documents(dtype: str) -> None:
    corpus = corpus_of([""] * 70000, pa.table({"id": range(70000)}))
    rows = np.array([5, 100], dtype)
    assert corpus.select(rows).column("id").to_pylist() == [5, 100]
    if dtype.startswith("i"):
        assert corpus.select(-rows).column("id").to_pylist() == [69995, 69900]


@given(RANDOMS)
@ONE_FOLDER
def test_select_from_shards_as_from_a_list(tmp_path: Path, random: random.Random) -> None:
    if not (tmp_path / "many").exists():
        folder_of(tmp_path / "many", [3, 1, 0, 5])
    corpus = Corpus.open(tmp_path / "many")
    rows = [random.randrange(-9, 9) for _ in range(random.randrange(12))]
    assert corpus.select(rows).column("id").to_pylist() == [[*range(9)][k] for k in rows]
    start, stop, step = (random.choice((None, *range(-11, 12))) for _ in range(3))
    part = slice(start, stop, step or None)
    assert corpus.select(part).column("id").to_pylist() == [*range(9)][part]


def test_select_refuses(nine: Corpus) -> None:
    for rows in ([9], [0, -10], [2**62], np.array([2**64 - 1], np.uint64)):
        with pytest.raises(IndexError, match=r"document -?\d+ of 9"):
            nine.select(rows)
    for mask in ([True], [True] * 10, [[True] * 9]):
        with pytest.raises(IndexError, match="a mask of shape"):
            nine.select(mask)
    for wrong in (3, [1.0], ["a"], [[1, 2]], None, [None]):
        with pytest.raises(TypeError, match="rows must be integers in one dimension"):
            nine.select(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("compact", [False, True])
def test_what_is_filtered_stays_in_its_files(tmp_path: Path, compact: bool) -> None:
    texts = ["abab", "abba", "banana", "bandana", "cabbage"]
    for name, some in {"a": texts[:3], "b": texts[3:]}.items():
        columns = {"id": range(len(some))}
        corpus_of(some, pa.table(columns)).write(tmp_path / f"{name}.parquet", compact=compact)
    corpus = Corpus.open(tmp_path)
    for mask in ([0, 1, 1, 0, 1], [0, 0, 0, 1, 0], [0] * 5, [1] * 5):
        kept = np.array(mask, bool)
        found = corpus.filter(kept)
        assert [each.text() for each in found] == [texts[k] for k in np.flatnonzero(kept)]
        assert found.to_arrow().equals(corpus.select(np.flatnonzero(kept)).to_arrow())
        assert found.lengths.tolist() == corpus.lengths[kept].tolist()
        stored = StoredGrammars(found, buffer=1 << 20)
        assert stored.take(np.arange(len(found))) == corpus.grammars.take(np.flatnonzero(kept))
    assert corpus.filter([True] * 5).filter([False] * 4 + [True])[0].text() == "cabbage"
    assert len(corpus.filter([True] * 4 + [False]).group_starts) == 3
    with pytest.raises(IndexError, match=r"a mask of shape \(5,\) and dtype int64 for 5 documents"):
        corpus.filter(np.ones(5, np.int64))


def test_an_error_of_what_is_filtered_names_the_document_in_its_file(tmp_path: Path) -> None:
    corpus = corpus_of(["abab", "abba", "banana"])
    table = corpus.to_arrow()
    lengths = table.column_names.index("length")
    wrong = table.set_column(lengths, table.schema.field(lengths), pa.array([4, 4, 7]))
    path = tmp_path / "wrong.parquet"
    Corpus.from_arrow(wrong).write(path)
    some = Corpus.open(path).filter([True, False, True]).filter([False, True])
    said = f"{path}, document 2: its length is given as 7, its grammar stands for 6"
    with pytest.raises(CorpusError, match=re.escape(said)):
        some.grammars  # noqa: B018
    assert list(some.problems()) == [said]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 8, 9, 10, 1000])
def test_batches(nine: Corpus, size: int) -> None:
    batches = list(nine.batches(size))
    assert [len(batch) for batch in batches] == [
        *([size] * (9 // size)),
        *([9 % size] if 9 % size else []),
    ]
    assert [label for batch in batches for label in batch.labels] == nine.labels
    assert [text for batch in batches for text in texts_of(batch)] == texts_of(nine)
    assert all(batch.about == nine.about for batch in batches)


@pytest.mark.parametrize("size", [0, -1])
def test_batches_refuse(nine: Corpus, size: int) -> None:
    with pytest.raises(ValueError, match=f"size must be at least 1, not {size}"):
        list(nine.batches(size))


def test_documents_are_found_by_number(nine: Corpus) -> None:
    whole = list(nine)
    assert [nine[k] for k in range(-9, 9)] == whole + whole
    assert nine[np.int64(3)] == whole[3]  # type: ignore[index]
    for number in (9, -10):
        with pytest.raises(IndexError, match=f"there is no document {number}: the corpus has 9"):
            nine[number]
    with pytest.raises(TypeError):
        nine["a"]  # type: ignore[index]


def test_columns_labels_and_tables(nine: Corpus) -> None:
    assert nine.columns == ["label", "id"]
    assert nine.column("id").to_pylist() == [*range(9)]
    assert nine.labels == [f"l{k}" for k in range(9)]
    with pytest.raises(KeyError, match="no column 'x'; there are label, id, letters"):
        nine.column("x")
    table = nine.to_arrow(["id", "label"])
    assert table.schema.names == ["id", "label"]
    assert nine.to_arrow([]).num_columns == 0
    same(Corpus.from_arrow(nine.to_arrow()), nine)
    assert len(nine.grammars) == 9
    assert nine.codec == Codec("repair")
    assert nine.alphabet == Alphabet.bytes()
    assert repr(nine) == "<Corpus: 9 documents, repair over Alphabet.bytes(), columns label, id>"


def test_documents_have_their_columns(nine: Corpus) -> None:
    tables = list(nine.documents())
    assert all(table.schema.names == ["label", "id", "text"] for table in tables)
    rows = [row for table in tables for row in table.to_pylist()]
    assert [row["text"].decode() for row in rows] == texts_of(labelled(9))
    assert [row["id"] for row in rows] == [*range(9)]


def test_no_labels() -> None:
    with pytest.raises(ValueError, match="has no labels"):
        _ = Corpus.from_documents(["a"]).labels
    gone = About(ABOUT.codec, ABOUT.alphabet, label="gone")
    with pytest.raises(ValueError, match="has no labels"):
        _ = corpus_of(["a"], None, gone).labels


def test_labels_must_fit() -> None:
    with pytest.raises(ValueError, match="2 documents, but 1 labels"):
        Corpus.from_documents(["a", "b"], labels=[1])
    assert Corpus.from_documents(iter(["a", "b"]), labels=iter([None, 2.5])).labels == [None, 2.5]


def test_labels_that_are_categories(tmp_path: Path) -> None:
    (tmp_path / "many").mkdir()
    for number, labels in enumerate((["a", "b"], ["c", None], ["b", "d"])):
        columns = pa.table({"label": pa.array(labels).dictionary_encode()})
        corpus_of(["x", "y"], columns).write(tmp_path / "many" / f"{number}.parquet")
    corpus = Corpus.open(tmp_path / "many")
    assert corpus.labels == ["a", "b", "c", None, "b", "d"]
    assert corpus.select([5, 0, 2]).labels == ["d", "a", "c"]
    assert [batch.labels for batch in corpus.batches(3)] == [["a", "b", "c"], [None, "b", "d"]]
    corpus.write(tmp_path / "one.parquet")
    assert Corpus.open(tmp_path / "one.parquet").labels == corpus.labels


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    """Either they are refused when the corpus is made, or they can be read."""
    columns = pa.table([pa.array([1, 2]), pa.array([3, 4])], names=["a", "a"])
    try:
        corpus = corpus_of(["x", "y"], columns)
    except CorpusError:
        return
    corpus.write(tmp_path / "a.parquet")
    table = Corpus.open(tmp_path / "a.parquet").to_arrow()
    assert table.column(0).to_pylist() == [1, 2]
    assert table.column(1).to_pylist() == [3, 4]


def test_a_column_beside_the_text_it_is_named_like() -> None:
    """Documents come back in the column `text`: another one of that name would hide it."""
    columns = pa.table({"text": ["mine"]})
    try:
        corpus = corpus_of(["abab"], columns)
    except CorpusError:
        return
    (table,) = corpus.documents()
    assert table.schema.names.count("text") == 1


def test_large_tables_are_written_so_that_they_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = Corpus.from_documents([bytes([i % 7, i % 11] * 300) for i in range(200)], codec="none")
    with monkeypatch.context() as patch:
        patch.setattr(parquet, "_MOST_UNPACKED", 100_000)
        corpus.write(tmp_path / "a.parquet")
        with pytest.raises(CorpusError, match="is too large; split it"):
            Corpus.from_documents([b"ab" * 9000], codec="none").write(tmp_path / "b.parquet")
    assert not (tmp_path / "b.parquet").exists()
    with pq.ParquetFile(tmp_path / "a.parquet") as file:
        assert file.num_row_groups > 5
    assert Corpus.open(tmp_path / "a.parquet").to_arrow().equals(corpus.to_arrow())


def test_slices_and_one_document_instead_of_many() -> None:
    corpus = labelled(9)
    assert corpus[2:5].labels == corpus.labels[2:5]
    with pytest.raises(TypeError, match="many documents, not one"):
        Corpus.from_documents("abc")


def test_more_shards_than_files_may_be_open(tmp_path: Path) -> None:
    for number in range(80):
        labelled(1).write(tmp_path / f"{number:03}.parquet")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, hard))
    try:
        assert len(list(Corpus.open(tmp_path))) == 80
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("compact", [False, True])
def test_a_corpus_that_is_replaced_is_noticed(compact: bool, tmp_path: Path) -> None:
    """Where row groups are is known from when it was opened: of another file, they may be sound."""
    path = tmp_path / "c.parquet"
    Corpus.from_documents(["abab"] * 9).write(path, compact=compact)
    opened = Corpus.open(path)
    Corpus.from_documents(["baba"] * 9).write(path, compact=compact)
    with pytest.raises(CorpusError, match=r"c.parquet.*: was replaced while it was read: open it"):
        list(opened.parts())


def test_too_little_memory_is_not_called_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.parquet"
    Corpus.from_documents(["abab"]).write(path)
    corpus = Corpus.open(path)

    def fail(*_: Any, **__: Any) -> None:
        raise pa.ArrowMemoryError("malloc of size 64 failed")

    why = r"out of memory for {} \(malloc of size 64 failed\): use a machine with more, or fetch"
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", fail)
    with pytest.raises(CorpusError, match=why.format("row group 0")):
        corpus[0]
    monkeypatch.setattr(pq, "ParquetFile", fail)
    with pytest.raises(CorpusError, match=why.format("its footer")):
        Corpus.open(path)


def test_indexed_as_arrays_are(nine: Corpus) -> None:
    first, texts = nine.labels[0], [each.text() for each in nine]
    mask = [label == first for label in nine.labels]
    for which in (mask, np.array(mask), np.flatnonzero(mask), np.flatnonzero(mask).tolist()):
        assert nine[which].labels == [first] * sum(mask)
    assert [each.text() for each in nine[[8, -1, 0]]] == [texts[8], texts[8], texts[0]]
    assert nine[np.int8(3)].text() == texts[3]
    assert len(nine[[]]) == 0
    with pytest.raises(IndexError, match="a mask of shape"):
        nine[[True]]
    with pytest.raises(TypeError):
        nine["label"]  # type: ignore[call-overload]


def test_as_a_table_of_pandas(nine: Corpus) -> None:
    pytest.importorskip("pandas")
    table = nine.to_pandas()
    assert list(table.columns) == [*nine.columns, "length"]
    assert table["label"].tolist() == nine.labels
    assert table["length"].tolist() == nine.lengths.tolist()
    full = nine.to_pandas(documents=True)
    assert full["text"].tolist() == [each.text() for each in nine]
    assert full.drop(columns="text").equals(table)


def test_a_part_is_a_row_group_whose_documents_are_read_alone(tmp_path: Path) -> None:
    texts = [f"document {k} of some, document by document" for k in range(6)]
    whole = Corpus.from_documents(texts, labels=list("abcdef"))
    whole[:4].write(tmp_path / "1.parquet")
    whole[4:].write(tmp_path / "2.parquet")
    corpus = Corpus.open(tmp_path)
    assert corpus.group_starts.tolist() == [0, 4, 6]
    last = corpus.part(1)
    assert last.labels == ["e", "f"]
    assert last.select([1])[0].text() == texts[5]
    assert last.about == corpus.about


def test_labels_and_documents_are_read_without_pandas(tmp_path: Path) -> None:
    labels = ["a", "b", None, "a"]
    Corpus.from_documents(["ab", "cd", "ef", "gh"], labels).write(tmp_path / "c.parquet")
    code = (
        "import sys; from laconic.corpus import Corpus; "
        "corpus = Corpus.open(sys.argv[1]); corpus.select([2, 0])[0]; "
        "print(corpus.labels, 'pandas' in sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "c.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"{labels} False\n"
