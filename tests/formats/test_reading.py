"""Readers: every format, every error with its file and row, parts that are lazy and repeatable."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import itertools
import json
import lzma
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.errors import InputError
from laconic.formats import RawDocuments, ReadError, ReadOptions, read, read_table
from laconic.formats import delimited as delimited_module
from laconic.formats.records import scan

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": lambda data: gzip.compress(data, 1),
    ".bz2": bz2.compress,
    ".xz": lambda data: lzma.compress(data, preset=0),
}


def zstd(data: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return bytes(sink.getvalue().to_pybytes())


COMPRESSORS[".zst"] = zstd


def put(path: Path, data: bytes) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def rows_of(documents: RawDocuments) -> list[dict[str, Any]]:
    return [row for part in documents.parts() for row in part.table.to_pylist()]


def rejects_of(documents: RawDocuments) -> list[tuple[int, str]]:
    return [(one.row, one.reason) for part in documents.parts() for one in part.rejects]


def numbers_of(documents: RawDocuments) -> list[int]:
    return [int(row) for part in documents.parts() for row in part.rows]


SKIP = ReadOptions(on_error="skip")


# CSV and TSV


def test_csv_columns_travel_as_written(tmp_path: Path) -> None:
    file = put(tmp_path / "a.csv", b'id,text,n\n007,"a, ""b""\nc",1.50\nNA,,null\n')
    documents = read(file, ReadOptions(label="n"))
    assert rows_of(documents) == [
        {"id": "007", "text": b'a, "b"\nc', "n": "1.50"},
        {"id": "NA", "text": b"", "n": "null"},
    ]
    assert (documents.text, documents.label) == ("text", "n")
    assert documents.schema.names == ["id", "text", "n"]
    assert (documents.files, documents.sizes) == ([file], [Path(file).stat().st_size])
    assert documents.bytes_read == documents.sizes[0]


def test_csv_without_header_and_with_zhangs_escapes(tmp_path: Path) -> None:
    file = put(tmp_path / "train.csv", rb'"3","It\n""was"" \\n"' + b"\n")
    documents = read(file, ReadOptions(header=False, text=1, label="0", escapes=True))
    assert rows_of(documents) == [{"0": "3", "1": b'It\n"was" \\\n'}]
    assert documents.layout["quoting"] == "all"


def test_the_text_column_may_be_any_bytes_in_csv(tmp_path: Path) -> None:
    file = put(tmp_path / "a.tsv", b"text\tx\n\xff\x00\t1\n")
    assert rows_of(read(file)) == [{"text": b"\xff\x00", "x": "1"}]


@pytest.mark.parametrize(
    ("data", "row", "reason"),
    [
        (b"text,x\na,1\nb\n", 2, "1 columns instead of 2"),
        (b"text,x\na,1\n\nb,1,2\n", 3, "3 columns instead of 2"),
        (b'text,x\na,1\n"b,1\nc,2\n', 2, "a quote is opened here and never closed"),
        (b'text,x\na,1\nb,"', 2, "a quote is opened here and never closed"),
        (b'text,x\na,1\n"b"c,1\nd,2\n', 2, "text after a closing quote"),
        (b"text,x\na,1\nb,\xe9t\xe9\n", 2, "column 'x' is not UTF-8: byte 0xe9 at position 0"),
        (b"text,x\na,1\n\xff\xff\n", 2, "1 columns instead of 2"),
    ],
)
def test_a_broken_csv_row_stops_with_file_and_row(
    tmp_path: Path, data: bytes, row: int, reason: str
) -> None:
    file = put(tmp_path / "a.csv", data)
    with pytest.raises(ReadError) as caught:
        list(read(file).parts())
    error = caught.value
    assert (error.file, error.row) == (file, row)
    assert str(error) == f"{file}, row {row}: {error.reason}"
    assert reason in error.reason
    assert [found for found, _ in rejects_of(read(file, SKIP))] == [row]


def test_skipped_rows_leave_the_others_with_their_numbers(tmp_path: Path) -> None:
    data = b'text,x\na,1\nbad\n\nb,2\n"c" d,3\ne"f"g,4\nh,\xff\ni,5'
    documents = read(put(tmp_path / "a.csv", data), SKIP)
    assert numbers_of(documents) == [1, 4, 6, 8]
    assert [row["text"] for row in rows_of(documents)] == [b"a", b"b", b'e"f"g', b"i"]
    (part,) = documents.parts()
    assert [(one.row, one.content) for one in part.rejects] == [
        (2, "bad"),
        (5, '"c" d,3'),
        (7, {"text": "h", "x": "\\xff"}),
    ]
    json.dumps([one.content for one in part.rejects])


def test_one_column_keeps_its_empty_lines(tmp_path: Path) -> None:
    documents = read(put(tmp_path / "a.csv", b'text\na\n\n""\nb\n'))
    assert [row["text"] for row in rows_of(documents)] == [b"a", b"", b"", b"b"]


def test_records_longer_than_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delimited_module, "BLOCK", 16)
    texts = ["short", "x" * 500, 'a "quoted"\r\nline, ' * 40, "", "\ufefflong", "end"]
    data = io.StringIO(newline="")
    csv.writer(data).writerows([["text", "x"], *([text, str(i)] for i, text in enumerate(texts))])
    documents = read(put(tmp_path / "a.csv", data.getvalue().encode()))
    assert [row["text"].decode() for row in rows_of(documents)] == texts
    assert numbers_of(documents) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("size", range(1, 14))
def test_blocks_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(delimited_module, "BLOCK", size)
    data = b'\xef\xbb\xbftext,n\r\n"a\r\n",1\r\n\xef\xbb\xbf,2\r\nbad\r\nc"d,3\r\n'
    documents = read(put(tmp_path / "a.csv.gz", gzip.compress(data)), SKIP)
    assert [row["text"] for row in rows_of(documents)] == [b"a\r\n", b"\xef\xbb\xbf", b'c"d']
    assert numbers_of(documents) == [1, 2, 4]
    assert documents.layout["final_newline"] is True
    assert documents.layout["bom"] is True


field = st.text(st.sampled_from('ab,"\r\n\té'), max_size=6)


@given(st.lists(st.lists(field, min_size=2, max_size=2), max_size=8), st.booleans())
@settings(deadline=None)
def test_csv_agrees_with_pythons(rows: list[list[str]], quote_all: bool) -> None:
    buffer = io.StringIO(newline="")
    csv.writer(buffer, quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL).writerows(rows)
    block = buffer.getvalue().encode()
    records = scan(block, ",", final=True)
    assert records.fields.tolist() == [2] * len(rows)
    assert not records.malformed
    assert (records.ends[-1] if rows else 0) == len(block)


@given(st.binary(max_size=30).map(lambda data: bytes(b'a",\n\r'[byte % 5] for byte in data)))
@settings(deadline=None)
def test_blocks_cut_anywhere_give_the_same_records(data: bytes) -> None:
    whole = scan(data, ",", final=True)
    for cut in range(len(data)):
        part = scan(data[:cut], ",", final=False)
        count = len(part.ends)
        assert part.ends.tolist() == whole.ends[:count].tolist()
        assert part.fields.tolist() == whole.fields[:count].tolist()
        rest = data[int(part.ends[-1]) if count else 0 :]
        again = scan(rest, ",", final=True)
        assert again.fields.tolist() == whole.fields[count:].tolist()


def test_mixed_line_ends_around_a_bad_row(tmp_path: Path) -> None:
    documents = read(put(tmp_path / "a.csv", b"text\na\rx,y\n\nb\n"), SKIP)
    assert [row["text"] for row in rows_of(documents)] == [b"a", b"", b"b"]
    assert numbers_of(documents) == [1, 3, 4]


# Columns


@pytest.mark.parametrize(
    ("header", "options", "message"),
    [
        (b"a,b", ReadOptions(), "Choose with --text NAME from: 'a', 'b'"),
        (b"a,b", ReadOptions(text="c"), "no column 'c'; choose --text from: 'a', 'b'"),
        (b"a,b", ReadOptions(text="a", label=7), "no column 7; choose --label from"),
        (b"a,b", ReadOptions(text="a", label="a"), "both the text and the label"),
        (b"a,a", ReadOptions(text="a"), "two columns are named 'a'"),
        (b"a,\xff", ReadOptions(text="a"), "the header is not UTF-8"),
        (b"", ReadOptions(), "is empty"),
    ],
)
def test_unclear_columns(tmp_path: Path, header: bytes, options: ReadOptions, message: str) -> None:
    file = put(tmp_path / "a.csv", header)
    with pytest.raises(ReadError, match=r"a\.csv: ") as caught:
        read(file, options)
    assert message in str(caught.value)
    assert caught.value.row is None


def test_the_text_is_what_the_label_leaves(tmp_path: Path) -> None:
    documents = read(put(tmp_path / "a.csv", b"stars,review\n5,good\n"), ReadOptions(label="stars"))
    assert (documents.text, documents.label) == ("review", "stars")


def test_files_must_have_the_same_columns(tmp_path: Path) -> None:
    put(tmp_path / "a.csv", b"text,x\na,1\n")
    second = put(tmp_path / "b.csv", b"text,y\na,1\n")
    with pytest.raises(ReadError) as caught:
        list(read(tmp_path).parts())
    assert caught.value.file == second
    assert "missing 'x'; unexpected 'y'" in caught.value.reason


# Compression


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed(tmp_path: Path, suffix: str) -> None:
    compress = COMPRESSORS[suffix]
    data = b"text,x\n" + b"".join(b"document %d,%d\n" % (i, i) for i in range(3000))
    two = compress(data[:20000]) + compress(data[20000:])
    documents = read(put(tmp_path / f"a.csv{suffix}", two))
    assert numbers_of(documents) == list(range(1, 3001))
    assert documents.bytes_read == len(two)


@pytest.mark.parametrize(
    ("name", "suffix"),
    [
        *(("a.csv", suffix) for suffix in (".gz", ".bz2", ".xz", ".zst")),
        *((name, ".gz") for name in ("a.jsonl", "a.txt", "a.fa", "a.fq")),
    ],
)
def test_truncated(tmp_path: Path, name: str, suffix: str) -> None:
    letters = "".join(np.random.default_rng(1).choice(list("ACGT"), 1_600_000))
    texts = [letters[at : at + 200] for at in range(0, len(letters), 200)]
    write = {
        "a.csv": "{0},1\n",
        "a.jsonl": '{{"text": "{0}"}}\n',
        "a.txt": "{0}\n",
        "a.fa": ">x\n{0}\n",
        "a.fq": "@x\n{0}\n+\n{0}\n",
    }[name]
    head = "text,x\n" if name == "a.csv" else ""
    data = COMPRESSORS[suffix]((head + "".join(map(write.format, texts))).encode())
    file = put(tmp_path / (name + suffix), data[: len(data) * 3 // 4])
    documents = read(file, SKIP)
    good = rows_of(documents)
    found = [row[documents.text] for row in good]
    found = [text if isinstance(text, str) else text.decode() for text in found]
    assert 0 < len(found) < len(texts)
    assert found == texts[: len(found)]
    ((row, reason),) = rejects_of(documents)
    assert row == len(found) + 1
    assert "breaks off" in reason
    with pytest.raises(ReadError, match="breaks off") as caught:
        list(read(file).parts())
    assert caught.value.row == row


def test_not_compressed_at_all(tmp_path: Path) -> None:
    file = put(tmp_path / "a.txt.gz", b"plain\n")
    with pytest.raises(ReadError, match="row 1: the file breaks off or is damaged"):
        list(read(file).parts())


# JSONL


def test_jsonl(tmp_path: Path) -> None:
    lines = [
        {"text": "é\u2028\n", "n": 1, "tags": ["a"], "meta": {"k": None}},
        {"text": "b", "n": 2.5},
    ]
    data = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    documents = read(put(tmp_path / "a.jsonl", data.encode()))
    assert rows_of(documents) == [lines[0], {**lines[1], "tags": None, "meta": None}]
    assert numbers_of(documents) == [1, 3]
    assert documents.schema.field("text").type == pa.string()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "not JSON"),
        (b"[1]", "list instead of an object"),
        (b'{"n": 1}', "the key 'text' is missing or null"),
        (b'{"text": null}', "the key 'text' is missing or null"),
        (b'{"text": 3}', "the text 'text' is int, not a string"),
        (b'{"text": "\xff"}', "not UTF-8: byte 0xff at position 10"),
        (b"[" * 100000, "not JSON"),
    ],
)
def test_broken_jsonl(tmp_path: Path, line: bytes, reason: str) -> None:
    file = put(tmp_path / "a.jsonl", b'{"text": "a", "n": 1}\n\n' + line + b'\n{"text": "b"}\n')
    with pytest.raises(ReadError) as caught:
        list(read(file).parts())
    assert (caught.value.file, caught.value.row) == (file, 3)
    assert reason in caught.value.reason
    documents = read(file, SKIP)
    assert numbers_of(documents) == [1, 4]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "b", "m": 1}', "unexpected key 'm'"),
        (b'{"text": "b", "n": "x"}', "'n' does not fit the first rows: str instead of int64"),
        (b'{"text": "b", "n": 2.5}', "'n' does not fit the first rows: float instead of int64"),
        (b'{"text": "b", "n": true}', "'n' does not fit the first rows: bool instead of int64"),
        (b'{"text": "b", "n": 99999999999999999999}', "'n' does not fit the first rows: not int64"),
        (b'{"text": "b", "s": {"k": 1, "l": 2}}', "'s' does not fit the first rows: unexpected"),
        (b'{"text": "b", "s": {"k": 1.5}}', "'k': float instead of int64"),
        (b'{"text": "b", "s": 1}', "int instead of struct"),
        (b'{"text": "\\ud800"}', "'text' does not fit the first rows: not string"),
    ],
)
def test_later_jsonl_rows_must_fit(tmp_path: Path, line: bytes, reason: str) -> None:
    put(tmp_path / "a.jsonl", b'{"text": "a", "n": 1, "s": {"k": 1}}\n')
    second = put(tmp_path / "b.jsonl", b'{"text": "a"}\n' + line + b'\n{"text": "c"}\n')
    with pytest.raises(ReadError) as caught:
        list(read(tmp_path).parts())
    assert (caught.value.file, caught.value.row) == (second, 2)
    assert reason in caught.value.reason
    documents = read(tmp_path, SKIP)
    assert numbers_of(documents) == [1, 1, 3]
    json.dumps([one.content for part in documents.parts() for one in part.rejects])


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": "b", "n": "x"}', "'n' does not fit the first rows: str instead of int64"),
        (b'{"text": "b", "n": [1]}', "'n' does not fit the first rows: list instead of int64"),
        (b'{"text": "b", "n": 99999999999999999999}', "'n' does not fit the first rows: not int64"),
        (b'{"text": "b", "s": {"k": "x"}}', "'k': str instead of int64"),
        (b'{"text": "b", "n": 1, "text": "c"}', "the key 'text' occurs twice; rename or remove"),
        (b'{"text": "b", "s": {"k": 1, "k": 2}}', "the key 'k' occurs twice"),
        (b'{"text": "b", "l": ' + b"[" * 400 + b"]" * 400 + b"}", "in each other, more than 32"),
        (
            b'{"text": "b", "s": ' + b'{"k":' * 700 + b"1" + b"}" * 701,
            "in each other, more than 32",
        ),
        (b'{"text": "b", "l": ' + b"[" * 9999 + b"]" * 9999 + b"}", "in each other, over 32 deep"),
    ],
)
def test_misfits_among_the_first_rows_of_jsonl(tmp_path: Path, line: bytes, reason: str) -> None:
    first = b'{"text": "a", "n": 1, "s": {"k": 1}, "l": [[1]]}\n'
    file = put(tmp_path / "a.jsonl", first + line + b'\n{"text": "c", "n": 2}\n')
    documents = read(file, SKIP)
    assert numbers_of(documents) == [1, 3]
    assert [found for found, _ in rejects_of(documents)] == [2]
    with pytest.raises(ReadError) as caught:
        list(read(file).parts())
    assert (caught.value.file, caught.value.row) == (file, 2)
    assert reason in caught.value.reason


def test_jsonl_types_are_those_of_the_rows_that_agree(tmp_path: Path) -> None:
    values = ["1", '"x"', "2.5", "null", "1e400", '{"a": 1}', "3"]
    lines = [f'{{"text": "a", "n": {value}}}' for value in values]
    documents = read(put(tmp_path / "a.jsonl", "\n".join(lines).encode()), SKIP)
    assert documents.schema.field("n").type == pa.float64()
    assert numbers_of(documents) == [1, 3, 4, 5, 7]


# Parquet and tables


def test_parquet_and_its_missing_texts(tmp_path: Path) -> None:
    table = pa.table({"text": ["a", None, "c"], "n": [1, 2, None], "l": [[1], [], None]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    file = str(tmp_path / "a.parquet")
    with pytest.raises(ReadError, match="row 2: no text in column 'text'"):
        list(read(file).parts())
    documents = read(file, SKIP)
    assert numbers_of(documents) == [1, 3]
    assert rows_of(documents) == [table.to_pylist()[0], table.to_pylist()[2]]
    assert documents.bytes_read == documents.sizes[0]


def test_a_corpus_is_no_input(tmp_path: Path) -> None:
    table = pa.table({"text": ["a"]}).replace_schema_metadata({"laconic": "{}"})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(ReadError, match="is a corpus already"):
        read(tmp_path / "a.parquet")


def test_what_is_not_parquet(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="not a Parquet file"):
        read(put(tmp_path / "a.parquet", b"hello, this is not Parquet"))
    with pytest.raises(ReadError, match="decompress the gzip first"):
        read(put(tmp_path / "a.parquet.gz", b"x"))


def test_tables_from_python() -> None:
    table = pa.table({"text": pa.array(["a", "b"]).dictionary_encode(), "n": [1, 2]})
    for source in (table, table.to_batches(), table.to_batches()[0]):
        documents = read_table(source, ReadOptions(label="n"))
        assert documents.files == ["<table>"]
        assert rows_of(documents) == rows_of(documents) == table.to_pylist()
    for once in (table.to_reader(), iter(table.to_batches())):
        documents = read_table(once)
        assert rows_of(documents) == table.to_pylist()
        with pytest.raises(ReadError, match="only once"):
            list(documents.parts())
    with pytest.raises(TypeError, match="choose a split"):
        read_table({"train": table})
    with pytest.raises(TypeError, match="expected an Arrow table"):
        read_table(7)
    with pytest.raises(ReadError, match="the text column 'n' is int64"):
        read_table(table, ReadOptions(text="n"))


def test_bad_utf8_in_a_table() -> None:
    bad = pa.array([b"ok", b"\xff", b"fine"]).view(pa.string())
    documents = read_table(pa.table({"text": bad}), SKIP)
    assert numbers_of(documents) == [1, 3]
    ((row, reason),) = rejects_of(documents)
    assert (row, reason[:27]) == (2, "column 'text' is not UTF-8:")


@pytest.mark.filterwarnings("ignore")
def test_hugging_face_datasets() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["a", "b", "c"], "label": [0, 1, 0]})
    expected = [{"text": "c", "label": 0}, {"text": "a", "label": 0}]
    chosen = dataset.select([2, 0])
    for source in (chosen, chosen.to_iterable_dataset()):
        documents = read_table(source, ReadOptions(label="label"))
        assert rows_of(documents) == rows_of(documents) == expected


# Lines, files, FASTA


def test_lines(tmp_path: Path) -> None:
    documents = read(put(tmp_path / "a.txt", b"a\r\n\r\n\xff\rb\r\nlast"))
    assert [row["text"] for row in rows_of(documents)] == [b"a", b"", b"\xff\rb", b"last"]
    assert (documents.layout["newline"], documents.layout["final_newline"]) == ("\r\n", False)


def test_some_lines_a_document(tmp_path: Path) -> None:
    files = [put(tmp_path / "a.txt", b"1\r\n2\r\n\r\n4\r\n5"), put(tmp_path / "b.txt", b"6\r\n")]
    documents = read(files, ReadOptions(lines=2))
    # Documents do not cross files, and their row is that of the first line.
    texts = [b"1\r\n2", b"\r\n4", b"5", b"6"]
    assert [row["text"] for row in rows_of(documents)] == texts
    assert numbers_of(documents) == [1, 3, 5, 1]
    assert documents.layout["lines"] == 2
    many = read(put(tmp_path / "many.txt", b"word\n" * 2_000_001), ReadOptions(lines=7))
    found = [text for part in many.parts() for text in part.table.column("text").to_pylist()]
    assert len(found) == 285_715
    assert set(found[:-1]) == {b"\n".join([b"word"] * 7)}
    broken = gzip.compress(b"1\n2\n3\n4\n5\n")[:-12]
    documents = read(put(tmp_path / "c.txt.gz", broken), replace(SKIP, lines=2))
    reasons = [each.reason for part in documents.parts() for each in part.rejects]
    assert len(reasons) == 1


@pytest.mark.parametrize(
    ("part", "labels"),
    [
        ("folder", ["ham", "spam"]),
        ("name", ["1_5", "2_3"]),
        (r"_(\d)\.", ["5", "3"]),
        (r"(?<=mail/)\w+", ["ham", "spam"]),
    ],
)
def test_labels_from_paths(tmp_path: Path, part: str, labels: list[str]) -> None:
    put(tmp_path / "mail/ham/1_5.csv", b"text,n\nhello,1\nbye,2\n")
    put(tmp_path / "mail/spam/2_3.csv.gz", gzip.compress(b"text,n\nbuy,3\n"))
    documents = read(f"{tmp_path}/mail/**/*.csv*", ReadOptions(label_from_path=part))
    rows = rows_of(documents)
    assert [row["label"] for row in rows] == [labels[0], labels[0], labels[1]]
    assert [row["path"].rpartition("/")[2] for row in rows] == ["1_5.csv", "1_5.csv", "2_3.csv.gz"]
    assert (documents.label, documents.text) == ("label", "text")
    # The files have no such columns, and are written back without them.
    assert documents.layout["columns"] == ["text", "n"]


def test_labels_that_paths_do_not_give(tmp_path: Path) -> None:
    path = put(tmp_path / "a/b.csv", b"text,label\nx,1\n")
    for options, reason in (
        (ReadOptions(label_from_path="(\\d+)$"), "there is a label already"),
        (ReadOptions(label_from_path="("), "no regular expression"),
    ):
        with pytest.raises(InputError, match=reason):
            read(path, options)
    with pytest.raises(ReadError, match=r"c\.txt: its path has no part"):
        read(put(tmp_path / "c.txt", b"x\n"), ReadOptions(label_from_path=r"_(\d+)_"))
    found = read(path, ReadOptions(with_path=True, label="label"))
    assert rows_of(found) == [{"text": b"x", "label": "1", "path": str(path)}]
    folder = read(tmp_path, ReadOptions(format="files", label_from_path="name"))
    assert [(row["path"], row["label"]) for row in rows_of(folder)] == [
        ("a/b.csv", "b"),
        ("c.txt", "c"),
    ]


def test_the_usual_column_is_the_text_if_there_is_one(tmp_path: Path) -> None:
    path = put(tmp_path / "a.csv", b"text,review,label\nx,y,1\n")
    assert read(path, ReadOptions(usual_text="review", label="label")).text == "review"
    assert read(path, ReadOptions(usual_text="passage", label="label")).text == "text"
    assert read(path, ReadOptions(usual_text="review", text="label")).text == "label"
    lines = put(tmp_path / "a.txt", b"x\n")
    assert read(lines, ReadOptions(usual_text="review")).text == "text"


def test_a_folder_per_class(tmp_path: Path) -> None:
    put(tmp_path / "pos/b.txt", b"good\n\xff")
    put(tmp_path / "neg/deep/a.txt", b"")
    put(tmp_path / "pos/.hidden", b"x")
    put(tmp_path / ".git/x", b"x")
    documents = read(tmp_path)
    assert documents.label == "label"
    assert rows_of(documents) == [
        {"path": "neg/deep/a.txt", "text": b"", "label": "neg"},
        {"path": "pos/b.txt", "text": b"good\n\xff", "label": "pos"},
    ]
    assert numbers_of(documents) == [1, 1]
    one = read(tmp_path / "pos" / "b.txt", ReadOptions(format="files"))
    assert rows_of(one) == [{"path": "b.txt", "text": b"good\n\xff"}]
    assert one.label is None


def test_a_stray_file_beside_classes_takes_no_label_away(tmp_path: Path) -> None:
    for name in ("neg/a.txt", "pos/b.txt", "README"):
        put(tmp_path / name, b"x")
    with pytest.raises(ReadError, match="README: is beside folders that are classes"):
        read(tmp_path)
    documents = read(tmp_path, SKIP)
    assert [row["label"] for row in rows_of(documents)] == ["neg", "pos"]
    (reject,) = (one for part in documents.parts() for one in part.rejects)
    assert (reject.file, reject.row) == (f"{tmp_path}/README", 1)
    everything = read(f"{tmp_path}/**", ReadOptions(format="files"))
    assert everything.label is None
    assert len(rows_of(everything)) == 3


def test_fasta_and_fastq(tmp_path: Path) -> None:
    documents = read(put(tmp_path / "a.fa", b">one x\nACGT\nAC\n>two\n\n>three\nNN"))
    assert rows_of(documents) == [
        {"name": "one x", "sequence": "ACGTAC"},
        {"name": "two", "sequence": ""},
        {"name": "three", "sequence": "NN"},
    ]
    assert (documents.layout["line_width"], documents.layout["final_newline"]) == (4, False)
    documents = read(put(tmp_path / "a.fastq", b"@r 1\r\nAC\r\n+\r\nII\r\n"))
    assert rows_of(documents) == [{"name": "r 1", "sequence": "AC", "qualities": "II"}]
    with pytest.raises(ReadError, match="leave --text out"):
        read(tmp_path / "a.fa", ReadOptions(text="name"))


def test_broken_fastq(tmp_path: Path) -> None:
    file = put(tmp_path / "a.fq", b"@a\nAC\n+\nII\n@b\nACG\n+\nII\n")
    with pytest.raises(ReadError, match="row 2: not FASTQ from here on"):
        list(read(file).parts())
    assert numbers_of(read(file, SKIP)) == [1]


def test_missing_packages_name_the_cure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dnaio", None)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(ImportError, match=r"laconic\[dna\]"):
        read(put(tmp_path / "a.fa", b">a\nA\n"))
    with pytest.raises(ImportError, match="pip install fsspec"):
        read("memory://a.csv")


# Inputs


def test_what_is_not_there(tmp_path: Path) -> None:
    for missing in (tmp_path / "no.csv", tmp_path / "*.csv", tmp_path, tmp_path / "no" / "*.csv"):
        with pytest.raises(FileNotFoundError, match="check the path"):
            read(missing)
    with pytest.raises(FileNotFoundError, match="no inputs"):
        read([])


def test_formats_by_name(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="Choose with --format"):
        read(put(tmp_path / "a.dat", b"x"))
    with pytest.raises(ValueError, match="no format 'exe'; choose --format from: csv, tsv, jsonl"):
        read(tmp_path / "a.dat", ReadOptions(format="exe"))
    put(tmp_path / "a.csv", b"text\nx\n")
    with pytest.raises(ReadError, match=r"mix formats \(1 csv, 1 files\)"):
        read(tmp_path)


def test_globs_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.txt", "a.txt", "sub/c.txt", ".h.txt", "x[1].txt", "d.csv"):
        put(tmp_path / name, name.encode())
    monkeypatch.chdir(tmp_path)
    assert read("*.txt").files == ["a.txt", "b.txt", "x[1].txt"]
    assert read("**/*.txt").files == ["a.txt", "b.txt", "sub/c.txt", "x[1].txt"]
    assert read(".", ReadOptions(format="files")).files == [
        "a.txt",
        "b.txt",
        "d.csv",
        "sub/c.txt",
        "x[1].txt",
    ]
    assert read("sub/").files == ["sub/c.txt"]
    assert read("./sub/*.txt").files == ["./sub/c.txt"]
    assert read("[!a].txt").files == ["b.txt"]
    assert read("x[1].txt").files == ["x[1].txt"]
    assert read(["sub/c.txt", Path("a.txt")]).files == ["sub/c.txt", "a.txt"]
    assert read(tmp_path / "?.txt").files == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    assert read(f"file://{tmp_path}/[ab].txt").files == [
        f"file://{tmp_path}/a.txt",
        f"file://{tmp_path}/b.txt",
    ]


def test_urls_of_fsspec() -> None:
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for name in ("b", "a"):
        memory.pipe(f"/laconic/{name}.csv.gz", gzip.compress(b"text\n%s\n" % name.encode()))
    pa_table = pa.table({"text": ["p"]})
    with memory.open("/laconic/c.parquet", "wb") as sink:
        pa.parquet.write_table(pa_table, sink)
    documents = read("memory://laconic/*.csv.gz")
    assert documents.files == ["memory://laconic/a.csv.gz", "memory://laconic/b.csv.gz"]
    assert [row["text"] for row in rows_of(documents)] == [b"a", b"b"]
    assert rows_of(read("memory://laconic/c.parquet")) == [{"text": "p"}]
    with pytest.raises(FileNotFoundError):
        read("memory://laconic/none.csv")


# Parts


@pytest.mark.parametrize("part_bytes", [1, 7, 100, 1 << 40])
def test_parts_are_cut_by_text_and_repeat(tmp_path: Path, part_bytes: int) -> None:
    rng = np.random.default_rng(0)
    files = []
    for name in "abc":
        lengths = rng.integers(0, 30, 20)
        data = b"".join(b"x" * int(length) + b"\n" for length in lengths)
        files.append(put(tmp_path / f"{name}.txt", data))
    documents = read(files, ReadOptions(part_bytes=part_bytes))
    parts = list(documents.parts())
    for part, again in zip(parts, documents.parts(), strict=True):
        assert part.files == again.files
        assert part.rows.tolist() == again.rows.tolist()
        assert part.table.equals(again.table)
        sizes = [len(row["text"]) for row in part.table.to_pylist()]
        assert len(sizes) == len(part.files) == len(part.rows) > 0
        assert sum(sizes) <= part_bytes or len([size for size in sizes if size]) == 1
    assert [file for part in parts for file in part.files] == [f for f in files for _ in range(20)]
    assert [int(row) for part in parts for row in part.rows] == [*range(1, 21)] * 3
    for before, after in itertools.pairwise(parts):
        used = sum(len(row["text"]) for row in before.table.to_pylist())
        assert used + len(after.table.to_pylist()[0]["text"]) > part_bytes


def test_a_part_may_have_rejects_alone(tmp_path: Path) -> None:
    (part,) = read(put(tmp_path / "a.csv", b"text,x\nbad\n"), SKIP).parts()
    assert (part.files, len(part.rows), part.table.num_rows) == ([], 0, 0)
    assert part.table.schema.names == ["text", "x"]
    assert len(part.rejects) == 1


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl", "a.txt"])
def test_parts_are_lazy(tmp_path: Path, name: str) -> None:
    line = {"a.csv": "%s,1\n", "a.jsonl": '{"text": "%s"}\n', "a.txt": "%s\n"}[name] % ("x" * 999)
    head = "text,n\n" if name == "a.csv" else ""
    file = put(tmp_path / name, (head + line * 24000).encode())
    documents = read(file, ReadOptions(part_bytes=1 << 20))
    before = pa.total_allocated_bytes()
    parts = documents.parts()
    next(parts)
    assert documents.bytes_read < documents.sizes[0] / 3
    for _ in parts:
        assert pa.total_allocated_bytes() - before < 16 << 20
    assert documents.bytes_read == documents.sizes[0]


def test_parquet_files_that_differ_in_little(tmp_path: Path) -> None:
    strict = pa.schema([pa.field("text", pa.large_string(), nullable=False), ("n", pa.int64())])
    pa.parquet.write_table(pa.table({"text": ["a"], "n": [1]}), tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"n": [2], "text": ["b"]}), tmp_path / "b.parquet")
    pa.parquet.write_table(pa.table({"text": ["c"], "n": [3]}, strict), tmp_path / "c.parquet")
    assert [row["text"] for row in rows_of(read(tmp_path))] == ["a", "b", "c"]
    other = str(tmp_path / "d.parquet")
    pa.parquet.write_table(pa.table({"text": ["d"], "n": ["x"]}), other)
    with pytest.raises(ReadError, match="'n' is string, not int64") as caught:
        list(read(tmp_path).parts())
    assert caught.value.file == other


def test_a_quote_never_closed_before_others(tmp_path: Path) -> None:
    data = b'text,x\n"a",1\n"b,2\n"c",3\nd,4\n'
    documents = read(put(tmp_path / "a.csv", data), SKIP)
    assert [row["text"] for row in rows_of(documents)] == [b"a", b"d"]
    assert numbers_of(documents) == [1, 3]
    assert rejects_of(documents)[0][0] == 2


def test_fasta_that_is_not_ascii(tmp_path: Path) -> None:
    file = put(tmp_path / "a.fa", ">é\nAC\n".encode())
    with pytest.raises(ReadError, match="row 1: not FASTA from here on"):
        list(read(file).parts())


CHANGING = {
    "a.csv": b"text\nabc\n",
    "a.csv.gz": gzip.compress(b"text\nabc\n"),
    "a.jsonl": b'{"text": "abc"}\n',
    "a.txt": b"abc\nabd\n",
    "a.fa": b">a\nACGT\n",
    "folder/a.txt": b"abc",
}


@pytest.mark.parametrize("name", CHANGING)
def test_a_file_that_changes_is_noticed(name: str, tmp_path: Path) -> None:
    path = put(tmp_path / name, CHANGING[name])
    documents = read(Path(path).parent if "/" in name else path, ReadOptions(on_error="skip"))
    assert len(rows_of(documents)) > 0
    os.utime(path, ns=(1, 1))
    with pytest.raises(ReadError, match=f"{name}: it was changed while it was read: run this"):
        rows_of(documents)
    documents = read(path, ReadOptions(format="lines"))
    put(tmp_path / name, CHANGING[name] * 2)
    os.utime(path, ns=(1, 1))
    with pytest.raises(ReadError, match="it was changed while it was read"):
        rows_of(documents)


def test_a_parquet_file_that_changes_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pa.parquet.write_table(pa.table({"text": ["abc"]}), path)
    documents = read(path)
    pa.parquet.write_table(pa.table({"text": ["abcd"] * 9}), path)
    with pytest.raises(ReadError, match="it was changed while it was read"):
        rows_of(documents)


def test_a_delimiter_says_that_it_is_a_csv(tmp_path: Path) -> None:
    file = put(tmp_path / "reviews.psv", b"text|label\nabab|5\n")
    [part] = read(file, ReadOptions(delimiter="|")).parts()
    assert part.table.to_pylist() == [{"text": b"abab", "label": "5"}]
    with pytest.raises(ReadError, match=r"which format is '\.psv'\? Choose with --format"):
        read(file, ReadOptions())
