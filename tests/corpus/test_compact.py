"""Compact corpora: the same tables as plain ones, in fewer bytes; damaged ones are refused."""

from __future__ import annotations

import base64
import csv
import gzip
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laconic import Alphabet, Codec, Corpus, CorpusError, compress_many, samples
from laconic.cli import app
from laconic.codecs import CodecName
from laconic.corpus.parquet import CorpusFile
from laconic.corpus.schema import GRAMMAR_COLUMNS, About, table_of
from laconic.corpus.worker import CompressionJob
from laconic.engines.build import build_corpus
from laconic.engines.local import LocalEngine
from laconic.formats import ReadOptions, read

TEXTS = ["the cat the cat the hat " * 3, "", "banana band", "né 漢字", "x" * 100, "a"]
LETTERS = {"bytes": "ab\x00\n né漢", "dna": "ACGT", "zhang": "ab -\n."}
# A folder of its own for each example would be slow: they write over each other's files.
ONE_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)


def labelled(texts: list[str] = TEXTS, alphabet: str = "bytes", first: int = 0) -> Corpus:
    about = About(Codec("repair"), Alphabet.named(alphabet), label="label")
    grammars = compress_many(texts, about.codec, alphabet=about.alphabet, threads=1)
    numbers = range(first, first + len(texts))
    columns = {
        "label": pa.array([f"l{k}" for k in numbers], pa.string()),
        "id": pa.array(numbers, pa.int64()),
    }
    return Corpus.from_arrow(table_of(grammars, about, pa.table(columns)))


def compacted(corpus: Corpus, path: Path) -> Corpus:
    corpus.write(path, compact=True)
    return Corpus.open(path)


def same(one: Corpus, other: Corpus) -> None:
    assert len(one) == len(other)
    assert one.about == other.about
    assert one.schema.equals(other.schema, check_metadata=True)
    assert one.to_arrow().equals(other.to_arrow(), check_metadata=True)
    assert one.grammars == other.grammars


# ---- there and back -----------------------------------------------------------------------------


@pytest.mark.parametrize("alphabet", ["bytes", "dna", "zhang"])
@ONE_FOLDER
@given(st.data())
def test_a_compact_corpus_is_the_same(tmp_path: Path, alphabet: str, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text(LETTERS[alphabet], max_size=60), max_size=6))
    corpus = labelled(texts, alphabet)
    again = compacted(corpus, tmp_path / "a.parquet")
    same(again, corpus)
    assert again.labels == corpus.labels
    assert again.columns == ["label", "id"]
    assert again.lengths.tolist() == corpus.lengths.tolist()
    assert [grammar.text(again.alphabet) for grammar in again] == texts
    assert list(again.problems()) == []
    assert repr(again) == repr(corpus)
    assert os.listdir(tmp_path) == ["a.parquet"]
    names = data.draw(st.lists(st.sampled_from(corpus.schema.names), unique=True))
    part = again.to_arrow(names)
    assert part.schema.names == names
    assert part.equals(corpus.to_arrow(names), check_metadata=True)
    for name in names:
        assert again.column(name).equals(corpus.column(name))


@pytest.mark.parametrize("alphabet", ["bytes", "dna", "zhang"])
@ONE_FOLDER
@given(st.data())
def test_select_and_batches(tmp_path: Path, alphabet: str, data: st.DataObject) -> None:
    texts = data.draw(st.lists(st.text(LETTERS[alphabet], max_size=30), min_size=1, max_size=6))
    corpus = labelled(texts, alphabet)
    again = compacted(corpus, tmp_path / "a.parquet")
    rows = data.draw(st.lists(st.integers(-len(texts), len(texts) - 1)))
    same(again.select(rows), corpus.select(rows))
    size = data.draw(st.integers(1, 4))
    for one, other in zip(again.batches(size), corpus.batches(size), strict=True):
        same(one, other)


@given(st.lists(st.binary(max_size=300), max_size=4))
@ONE_FOLDER
def test_any_bytes(tmp_path: Path, documents: list[bytes]) -> None:
    again = compacted(Corpus.from_documents(documents, threads=1), tmp_path / "a.parquet")
    assert [grammar.to_bytes() for grammar in again] == documents


def test_parts_and_documents(tmp_path: Path) -> None:
    corpus = labelled()
    again = compacted(corpus, tmp_path / "a.parquet")
    for (first, table, grammars), (number, other, others) in zip(
        again.parts(), corpus.parts(), strict=True
    ):
        assert first == number
        assert table.equals(other)
        assert grammars == others
    assert [table.to_pylist() for table in again.documents()] == [
        table.to_pylist() for table in corpus.documents()
    ]


def test_the_file_has_one_column_instead_of_three(tmp_path: Path) -> None:
    corpus = labelled()
    compacted(corpus, tmp_path / "a.parquet")
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert schema.names == ["label", "id", "length", "grammar"]
    assert CorpusFile(tmp_path / "a.parquet").stored.model
    assert CorpusFile(tmp_path / "a.parquet").about.model is None


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    corpus = labelled()
    for name in ("a", "b"):
        corpus.write(tmp_path / name, compact=True)
    Corpus.open(tmp_path / "a").write(tmp_path / "c", compact=True)
    assert len({(tmp_path / name).read_bytes() for name in "abc"}) == 1
    corpus.write(tmp_path / "plain")
    Corpus.open(tmp_path / "a").write(tmp_path / "from compact")
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "from compact").read_bytes()


def test_columns_of_any_type(tmp_path: Path) -> None:
    about = About(Codec("repair"), Alphabet.bytes(), label="label")
    columns = {
        "label": pa.array(["a", None, "b"]).dictionary_encode(),
        "left": pa.array([{"a": 1, "b": ["x"]}, None, {"a": None, "b": []}]),
        "a.b": pa.array([[1, 2], None, []], pa.list_(pa.int16())),
        "grammars": pa.array([b"\x00", b"", None], pa.large_binary()),
        "nothing": pa.nulls(3),
        "time": pa.array([0, None, 1], pa.timestamp("ns", "Europe/Zurich")),
    }
    grammars = compress_many(TEXTS[:3], about.codec, alphabet=about.alphabet)
    corpus = Corpus.from_arrow(table_of(grammars, about, pa.table(columns)))
    again = compacted(corpus, tmp_path / "a.parquet")
    corpus.write(tmp_path / "plain.parquet")
    same(again, Corpus.open(tmp_path / "plain.parquet"))
    for name in corpus.schema.names:
        assert again.column(name).to_pylist() == corpus.column(name).to_pylist()


@pytest.mark.parametrize("first", [[], [""], ["zzz"]])
def test_a_model_of_other_documents(tmp_path: Path, first: list[str]) -> None:
    """The model is learned from the first part alone; the others need not be like it."""
    folder = tmp_path / "parts"
    folder.mkdir()
    labelled(first).write(folder / "a.parquet")
    labelled(first=len(first)).write(folder / "b.parquet")
    corpus = Corpus.open(folder)
    same(compacted(corpus, tmp_path / "c.parquet"), corpus)


@pytest.mark.parametrize("count", [0, 1])
def test_a_corpus_of_nothing(tmp_path: Path, count: int) -> None:
    corpus = labelled([""] * count)
    again = compacted(corpus, tmp_path / "a.parquet")
    same(again, corpus)
    same(compacted(again, tmp_path / "b.parquet"), corpus)


def test_compact_and_plain_shards_in_one_folder(tmp_path: Path) -> None:
    for number in range(4):
        shard = labelled(TEXTS[number:], first=number)
        shard.write(tmp_path / f"{number}.parquet", compact=number % 2 == 0)
    corpus = Corpus.open(tmp_path)
    texts = [text for number in range(4) for text in TEXTS[number:]]
    assert [grammar.text() for grammar in corpus] == texts
    assert corpus.labels == [f"l{k}" for number in range(4) for k in range(number, len(TEXTS))]
    assert corpus.to_arrow().num_rows == len(texts)
    assert list(corpus.problems()) == []
    corpus.write(tmp_path / "all", compact=True)
    same(Corpus.open(tmp_path / "all"), corpus)


def test_batches_across_compact_and_plain_shards(tmp_path: Path) -> None:
    for number in range(4):
        shard = labelled(TEXTS[number:], first=number)
        shard.write(tmp_path / f"{number}.parquet", compact=number % 2 == 0)
    corpus = Corpus.open(tmp_path)
    texts = [text for number in range(4) for text in TEXTS[number:]]
    assert [grammar.text() for part in corpus.batches(4) for grammar in part] == texts
    rows = [*range(len(texts) - 1, -1, -2)]
    assert [grammar.text() for grammar in corpus.select(rows)] == [texts[row] for row in rows]


def test_smaller_than_gzip(tmp_path: Path) -> None:
    """Per document, as many files would be; labels and the model count against the corpus."""
    documents = [str(text).encode() for text in samples.load("kjv").train.documents]
    corpus = Corpus.from_documents(documents)
    same(compacted(corpus, tmp_path / "a.parquet"), corpus)
    corpus.write(tmp_path / "plain.parquet")
    gzipped = sum(len(gzip.compress(document, 6)) for document in documents)
    size = (tmp_path / "a.parquet").stat().st_size
    codes = pq.read_table(tmp_path / "a.parquet").column("grammar").to_pylist()
    assert sum(map(len, codes)) < gzipped
    assert size < gzipped
    assert size < (tmp_path / "plain.parquet").stat().st_size


# ---- with engines -------------------------------------------------------------------------------


def build(
    source: Path, out: Path, codec: CodecName = "repair", workers: int = 1, **options: Any
) -> Any:
    documents = read(source, ReadOptions(label="label", part_bytes=3000))
    about = About(Codec(codec), Alphabet.bytes(), documents.text, documents.label, documents.layout)
    return build_corpus(
        documents, out, CompressionJob(about, "stop"), LocalEngine(workers), **options
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    split = samples.load("kjv").train
    path = tmp_path_factory.mktemp("in") / "kjv.csv"
    with path.open("w", newline="") as file:
        rows = zip(map(str, split.documents[:30]), map(str, split.labels[:30]), strict=True)
        csv.writer(file).writerows([("text", "label"), *rows])
    return path


@pytest.mark.parametrize("sharded", [False, True])
def test_build(source: Path, tmp_path: Path, sharded: bool) -> None:
    build(source, tmp_path / "plain.parquet")
    build(source, tmp_path / "a", compact=True, sharded=sharded, shard_letters=9000)
    same(Corpus.open(tmp_path / "a"), Corpus.open(tmp_path / "plain.parquet"))
    files = sorted((tmp_path / "a").iterdir()) if sharded else [tmp_path / "a"]
    assert len(files) > 1 or not sharded
    assert len({CorpusFile(file).stored.model for file in files}) == 1
    assert all("grammar" in pq.read_schema(file).names for file in files)
    build(source, tmp_path / "b", compact=True, sharded=sharded, shard_letters=9000, workers=2)
    others = sorted((tmp_path / "b").iterdir()) if sharded else [tmp_path / "b"]
    assert [file.read_bytes() for file in files] == [file.read_bytes() for file in others]


@pytest.mark.parametrize("done", [2, 3, 5])
def test_build_goes_on_with_the_same_model(source: Path, tmp_path: Path, done: int) -> None:
    options: dict[str, Any] = {"compact": True, "shard_letters": 4000}
    build(source, tmp_path / "whole", **options)
    calls = 0

    def interrupt(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls > done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(source, tmp_path / "a", progress=interrupt, **options)
    with pytest.raises(FileExistsError, match="begun with other inputs or options"):
        build(source, tmp_path / "a", resume=True, shard_letters=4000)
    build(source, tmp_path / "a", resume=True, **options)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "whole").read_bytes()


def test_build_refuses_other_codecs(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="compact corpora are Re-Pair's; the codec here is 'lzd'"):
        build(source, tmp_path / "a", codec="lzd", compact=True)
    assert not list(tmp_path.iterdir())


def test_build_refuses_a_column_named_grammar(tmp_path: Path) -> None:
    """Before any work is done: there is nothing to go on with."""
    path = tmp_path / "a.csv"
    path.write_text("text,label,grammar\nabab,x,y\n")
    with pytest.raises(CorpusError, match="a column 'grammar' of their own; rename it"):
        build(path, tmp_path / "out", compact=True)
    assert os.listdir(tmp_path) == ["a.csv"]


def test_the_command(source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def laconic(*words: str | Path) -> str:
        app([str(word) for word in words], exit_on_error=False, result_action="return_value")
        return capsys.readouterr().out

    out = tmp_path / "a.parquet"
    laconic("compress", source, "-o", out, "--text", "text", "--label", "label", "--compact")
    assert "grammar" in pq.read_schema(out).names
    assert "all sound" in laconic("verify", out)
    assert "30" in laconic("info", out)
    laconic("expand", out, "-o", tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_bytes() == source.read_bytes()


# ---- what cannot be compact ---------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["lz78", "lzd", "none"])
def test_other_codecs_are_refused(tmp_path: Path, codec: Any) -> None:
    corpus = Corpus.from_documents(["abab"], codec=codec)
    with pytest.raises(ValueError, match=f"Re-Pair's; the codec here is '{codec}'"):
        corpus.write(tmp_path / "a.parquet", compact=True)
    assert not list(tmp_path.iterdir())


def test_large_alphabets_are_refused(tmp_path: Path) -> None:
    for letters, refused in ((256, False), (257, True)):
        text = "".join(map(chr, range(200, 200 + letters)))
        alphabet = Alphabet.learn([text])
        corpus = Corpus.from_documents([text, text * 2], alphabet=alphabet)
        if not refused and alphabet.size <= 256:
            same(compacted(corpus, tmp_path / "a.parquet"), corpus)
            (tmp_path / "a.parquet").unlink()
            continue
        with pytest.raises(ValueError, match=f"at most 256 letters, not {alphabet.size}"):
            corpus.write(tmp_path / "a.parquet", compact=True)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("count", [0, 2])
def test_a_column_named_grammar_is_refused(tmp_path: Path, count: int) -> None:
    about = About(Codec("repair"), Alphabet.bytes())
    grammars = compress_many(["abab"] * count, about.codec, alphabet=about.alphabet)
    columns = pa.table({"grammar": pa.array(range(count), pa.int64())})
    corpus = Corpus.from_arrow(table_of(grammars, about, columns))
    with pytest.raises(CorpusError, match="have a column 'grammar' of their own; rename it"):
        corpus.write(tmp_path / "a.parquet", compact=True)
    assert not list(tmp_path.iterdir())
    corpus.write(tmp_path / "a.parquet")
    same(Corpus.open(tmp_path / "a.parquet"), corpus)


BROKEN: dict[str, tuple[str, Any]] = {
    "sequence beyond": ("sequence", [[1 << 30]]),
    "sequence before": ("sequence", [[-(1 << 30)]]),
    "left": ("rules", [[{"left": 1 << 30, "right": 0}]]),
    "left itself": ("rules", [[{"left": 2, "right": 0}]]),
    "right": ("rules", [[{"left": 0, "right": 1 << 30}]]),
    "letters descend": ("letters", [[98, 97]]),
    "letters beyond": ("letters", [[97, 1 << 30]]),
}
WRITE = """
import sys
from laconic import Corpus, CorpusError
try:
    Corpus.open(sys.argv[1]).write(sys.argv[2], compact=True)
except CorpusError as error:
    print(error)
"""


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_grammars_are_not_compacted(tmp_path: Path, broken: str) -> None:
    """Grammars of a corpus are not checked until they are used; in a child, as this may crash."""
    name, value = BROKEN[broken]
    table = Corpus.from_documents(["abab" * 9]).to_arrow()
    field = table.schema.field(name)
    index = table.schema.get_field_index(name)
    damaged = table.set_column(index, field, pa.array(value, field.type))
    Corpus.from_arrow(damaged.replace_schema_metadata(table.schema.metadata)).write(tmp_path / "a")
    command = [sys.executable, "-c", WRITE, str(tmp_path / "a"), str(tmp_path / "b")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"died: {done.returncode} {done.stderr[-300:]}"
    assert f"{tmp_path / 'a'}, document 0: " in done.stdout
    assert os.listdir(tmp_path) == ["a"]


# ---- hostile files ------------------------------------------------------------------------------


def stored(path: Path) -> tuple[pa.Table, About]:
    """What is in the file of a compact corpus of TEXTS."""
    labelled().write(path, compact=True)
    return pq.read_table(path), CorpusFile(path).stored


def hostile(path: Path, table: pa.Table, about: About, groups: int = 1) -> Path:
    """A file with this inside, and with every checksum right."""
    schema = about.schema(table.schema)
    with pq.ParquetWriter(path, schema, write_page_checksum=True) as writer:
        for rows in np.array_split(np.arange(len(table)), groups):
            writer.write_table(table.take(rows).replace_schema_metadata(schema.metadata))
    return path


def with_codes(table: pa.Table, codes: list[Any], kind: Any = None) -> pa.Table:
    index = table.schema.get_field_index("grammar")
    array = pa.array(codes, kind or pa.large_binary())
    return table.set_column(index, pa.field("grammar", array.type), array)


def opened(path: Path) -> Corpus:
    corpus = Corpus.open(path)
    assert len(corpus.grammars) == len(corpus)
    return corpus


def test_what_hostile_files_are_made_of(tmp_path: Path) -> None:
    table, about = stored(tmp_path / "a.parquet")
    same(opened(hostile(tmp_path / "b.parquet", table, about)), labelled())
    same(opened(hostile(tmp_path / "b.parquet", table, about, groups=3)), labelled())


def packed_text(data: bytes) -> str:
    return base64.b64encode(zlib.compress(data)).decode()


MODELS: list[tuple[Any, str]] = [
    (lambda plain: "", "must have one column 'letters'"),
    (lambda plain: "!!!", "its metadata are wrong: the model cannot be read: "),
    (lambda plain: "é", "its metadata are wrong: the model cannot be read: "),
    (lambda plain: "abc", "its metadata are wrong: the model cannot be read: "),
    (lambda plain: "abcd", "its metadata are wrong: the model cannot be read: "),
    (lambda plain: packed_text(plain[:-1]), "its metadata are wrong: the model cannot be read: "),
    (lambda plain: packed_text(plain[:-2]), "the model has 132160 frequencies, not 132161"),
    (lambda plain: packed_text(plain + b"\1\0"), "the model has 132162 frequencies, not 132161"),
    (lambda plain: packed_text(b""), "the model has 0 frequencies, not 132161"),
    (lambda plain: packed_text(bytes(1 << 27)), "the model has 524288 frequencies, not 132161"),
    (lambda plain: packed_text(bytes(2) + plain[2:]), "the model has a frequency of 0"),
    (lambda plain: packed_text(b"\1\0" + plain[2:]), "the model has frequencies that do not add"),
    (lambda plain: packed_text(b"\xff" * len(plain)), "the model has frequencies that do not add"),
]


@pytest.mark.parametrize(("damage", "message"), MODELS)
def test_damaged_models(tmp_path: Path, damage: Any, message: str) -> None:
    table, about = stored(tmp_path / "a.parquet")
    plain = zlib.decompress(base64.b64decode(about.model or ""))
    path = hostile(tmp_path / "b.parquet", table, replace(about, model=damage(plain)))
    with pytest.raises(CorpusError) as caught:
        opened(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    if "letters" not in message:
        corpus = Corpus.open(path)
        assert corpus.labels == labelled().labels  # which need no model
        assert len(list(corpus.problems())) == 1


def test_a_model_of_another_alphabet(tmp_path: Path) -> None:
    table, about = stored(tmp_path / "a.parquet")
    for alphabet, message in (
        (Alphabet.dna(), "frequencies, not "),
        (Alphabet.learn(["".join(map(chr, range(300)))]), "alphabets of 1 to 256 letters"),
    ):
        path = hostile(tmp_path / "b.parquet", table, replace(about, alphabet=alphabet))
        with pytest.raises(CorpusError, match=message) as caught:
            opened(path)
        assert caught.value.file == str(path)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("row", [0, 2, 5])
@pytest.mark.parametrize(
    ("code", "message"),
    [
        (None, "grammar is missing"),
        (b"", "its (length|code) "),
        (b"\xff" * 9, "its code "),
        (b"\xff" * 5000, "its code "),
    ],
)
def test_damaged_codes(
    tmp_path: Path, groups: int, row: int, code: bytes | None, message: str
) -> None:
    table, about = stored(tmp_path / "a.parquet")
    codes = table.column("grammar").to_pylist()
    codes[row] = code
    path = hostile(tmp_path / "b.parquet", with_codes(table, codes), about, groups)
    with pytest.raises(CorpusError, match=message) as caught:
        opened(path)
    assert caught.value.file == str(path)
    assert caught.value.document == row
    assert f"{path}, document {row}: " in str(caught.value)
    problems = list(Corpus.open(path).problems())
    assert len(problems) == 1
    assert f"document {row}: " in problems[0]


@ONE_FOLDER
@given(st.data())
def test_any_damage_to_codes(tmp_path: Path, data: st.DataObject) -> None:
    """An error with file and document, or another document that is as long and sound."""
    table, about = stored(tmp_path / "a.parquet")
    codes = table.column("grammar").to_pylist()
    row = data.draw(st.integers(0, len(codes) - 1))
    code = bytearray(codes[row])
    match data.draw(st.sampled_from(["flip", "cut", "any", "more"])) if code else "any":
        case "flip":
            bit = data.draw(st.integers(0, 8 * len(code) - 1))
            code[bit // 8] ^= 1 << bit % 8
        case "cut":
            del code[data.draw(st.integers(0, len(code) - 1)) :]
        case "more":
            code += data.draw(st.binary(min_size=1))
        case _:
            code = bytearray(data.draw(st.binary(max_size=60)))
    codes[row] = bytes(code)
    path = hostile(tmp_path / "b.parquet", with_codes(table, codes), about)
    where: tuple[str | None, int | None] = (str(path), row)
    try:
        corpus = opened(path)
    except CorpusError as error:
        where = error.file, error.document
    else:
        assert corpus.lengths.tolist() == labelled().lengths.tolist()
        others = [k for k in range(len(codes)) if k != row]
        assert [corpus[k].text() for k in others] == [TEXTS[k] for k in others]
        corpus[row].to_bytes()
    assert where == (str(path), row)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([b"abc"] * 6, pa.binary()),
        (["abc"] * 6, pa.large_string()),
        ([1] * 6, pa.int64()),
        ([b"abc"] * 6, pa.binary(3)),
        ([None] * 6, pa.null()),
        ([[1]] * 6, pa.list_(pa.int64())),
    ],
)
def test_codes_of_other_types(tmp_path: Path, values: Any, kind: pa.DataType) -> None:
    table, about = stored(tmp_path / "a.parquet")
    path = hostile(tmp_path / "b.parquet", with_codes(table, values, kind), about)
    with pytest.raises(CorpusError, match=r"'grammar' is .*, not large_binary") as caught:
        opened(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("name", ["grammar", "length"])
def test_missing_columns(tmp_path: Path, name: str) -> None:
    table, about = stored(tmp_path / "a.parquet")
    path = hostile(tmp_path / "b.parquet", table.drop_columns([name]), about)
    with pytest.raises(CorpusError, match=f"must have one column '{name}'") as caught:
        opened(path)
    assert caught.value.file == str(path)


@pytest.mark.parametrize("name", ["grammar", *GRAMMAR_COLUMNS.names])
def test_columns_too_many(tmp_path: Path, name: str) -> None:
    table, about = stored(tmp_path / "a.parquet")
    more = table.append_column(name, pa.array(range(len(table))))
    path = hostile(tmp_path / "b.parquet", more, about)
    with pytest.raises(CorpusError, match=f"must have one column '{name}'"):
        opened(path)


@pytest.mark.parametrize("kind", [pa.string(), pa.int32(), pa.float64()])
def test_lengths_of_other_types(tmp_path: Path, kind: pa.DataType) -> None:
    """As in plain corpora: "its column 'length' is string, not int64"."""
    table, about = stored(tmp_path / "a.parquet")
    index = table.schema.get_field_index("length")
    other = table.set_column(index, "length", table.column("length").cast(kind))
    path = hostile(tmp_path / "b.parquet", other, about)
    with pytest.raises(CorpusError, match=f"'length' is {kind}, not int64"):
        opened(path)


def test_wrong_lengths(tmp_path: Path) -> None:
    table, about = stored(tmp_path / "a.parquet")
    index = table.schema.get_field_index("length")
    lengths: list[int | None] = table.column("length").to_pylist()
    for wrong, message in ((3, "is given as 3, its grammar stands for 11"), (None, "is missing")):
        lengths[2] = wrong
        other = table.set_column(index, "length", pa.array(lengths, pa.int64()))
        path = hostile(tmp_path / "b.parquet", other, about)
        with pytest.raises(CorpusError, match=f"b.parquet, document 2: .*length {message}"):
            opened(path)
