"""Writers: what was read is written back byte for byte; hostile layouts and paths are refused."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic.cli import app
from laconic.errors import InputError
from laconic.formats import ReadOptions, read
from laconic.formats.format import Format
from laconic.formats.registry import format_named
from laconic.formats.writing import layout_for, write

SUFFIXES = ["", ".gz", ".bz2", ".xz", ".zst"]


def again(path: Path, out: Path, options: ReadOptions = ReadOptions()) -> int:  # noqa: B008
    documents = read(path, options)
    tables = [part.table for part in documents.parts()]
    layout = json.loads(json.dumps(documents.layout))
    return write(iter(tables), layout, out)


def check_bytes(data: bytes, name: str, options: ReadOptions = ReadOptions()) -> None:  # noqa: B008
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder, name), Path(folder, "out-" + name)
        path.write_bytes(data)
        again(path, out, options)
        assert out.read_bytes() == data
        assert sorted(one.name for one in Path(folder).iterdir()) == sorted([name, out.name])


def as_csv(rows: list[list[bytes]], **style: Any) -> bytes:
    """Write with Python's own writer; Latin-1 there and back lets any bytes through."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, **style).writerows([[one.decode("latin-1") for one in row] for row in rows])
    return buffer.getvalue().encode("latin-1")


FIELD = st.text(st.sampled_from('ab ,"\r\n\té\\n'), max_size=6).map(str.encode)
BYTES = st.binary(max_size=8)


@pytest.mark.parametrize("data", [b"1\n2\n3\n", b"1\r\n\r\n3", b"", b"\n\n\n\n"])
def test_documents_of_some_lines_round_trip(data: bytes) -> None:
    check_bytes(data, "a.txt", ReadOptions(lines=2))


@given(
    rows=st.lists(st.tuples(FIELD, BYTES | FIELD, FIELD), min_size=1, max_size=6),
    header=st.booleans(),
    final=st.booleans(),
    newline=st.sampled_from(["\n", "\r\n"]),
    quote_all=st.booleans(),
    name=st.sampled_from(["a.csv", "a.tsv"]),
    part_bytes=st.sampled_from([1, 8 << 20]),
)
@settings(max_examples=150, deadline=None)
def test_delimited_round_trip(
    rows: list[tuple[bytes, bytes, bytes]],
    header: bool,
    final: bool,
    newline: str,
    quote_all: bool,
    name: str,
    part_bytes: int,
) -> None:
    # The first data row shows the style; a file without one such field has none to notice.
    plain = [[b"id", b"text", b"n"]] if header else []
    shown = [*plain, [b"1", b"two", b"3"], *map(list, rows)]
    data = as_csv(
        shown,
        lineterminator=newline,
        delimiter="," if name == "a.csv" else "\t",
        quoting=csv.QUOTE_ALL if quote_all else csv.QUOTE_MINIMAL,
    )
    # Python leaves a carriage return bare where lines end in "\n": other readers end the row there.
    if not quote_all and newline == "\n" and b"\r" in data:
        return
    data = data if final else data.removesuffix(newline.encode())
    options = ReadOptions(header=header, text=1, part_bytes=part_bytes)
    check_bytes(data, name, options)


@pytest.mark.parametrize(
    "data",
    [
        b'"1","It was\\n""good"", really"\n"2",""\n',
        b'1,"Title","Body, with comma"\n2,"Other","Body"\n',
        b'1,"Title","Body, with comma"\n2,"Other","Also, with"\n',
        b"1,a,\n2,,b",
        b'1,5" wide\n2,"""quoted"" first"\n3,"a, b"\n',
        b"\xef\xbb\xbf1,a\n2,b\n",
        b"\xef\xbb\xbf\xef\xbb\xbf1,a\n",
        b'1,"a\r\nb"\r2,c\r',
        b"1,caf\xe9 \xff\x00\n",
    ],
)
def test_csv_styles(data: bytes) -> None:
    check_bytes(data, "a.csv", ReadOptions(header=False, text=1, escapes=b"\\n" in data))


@pytest.mark.parametrize(
    "data",
    [
        b'"id","text"\n1,"a"\n2,"b"\n',
        b'"id","text"\n"1","a, b"\n',
        b'id,text\n1,"a, b"\n',
        b'"text"\n"a"\n""\n',
        b'text\na\n""\n"b, c"\n',
        b"text,n\n",
        b"text,n",
        b'"text","n"\n',
        b'"a ""quoted"" name",text\n1,2\n',
    ],
)
def test_csv_headers(data: bytes) -> None:
    check_bytes(data, "a.csv")


def test_real_newlines_and_escapes_are_written_as_escapes(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'"1","a\nb"\n')
    options = ReadOptions(header=False, text=1, escapes=True)
    again(tmp_path / "a.csv", tmp_path / "b.csv", options)
    assert (tmp_path / "b.csv").read_bytes() == b'"1","a\\nb"\n'


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.csv", b'text,n\n"a, b",1\nc,'),
        ("a.tsv", b"text\tn\r\na, b\t1\r\n"),
        ("a.jsonl", b'{"text": "a", "n": 1}\n{"text": "b", "n": null}'),
        ("a.txt", b"a\n\n\xff\nb"),
        ("a.fa", b">x y\nACGT\nAC\n>z\nAC"),
        ("a.fq", b"@x y\nACGT\n+x y\nIIII\n@z\nA\n+z\nI\n"),
    ],
)
def test_compressed_round_trip(tmp_path: Path, name: str, data: bytes, suffix: str) -> None:
    plain, packed = tmp_path / name, tmp_path / (name + suffix)
    plain.write_bytes(data)
    again(plain, packed)
    # The layout now comes from the compressed file, whose end is known only when it is read.
    back = tmp_path / f"back-{name}"
    again(packed, back)
    assert back.read_bytes() == data
    if suffix:
        assert packed.read_bytes() != data
        once = packed.read_bytes()
        again(plain, packed)
        assert packed.read_bytes() == once


@given(st.lists(st.binary(max_size=5).map(lambda data: data.replace(b"\n", b"\r"))), st.booleans())
@settings(deadline=None)
def test_lines_round_trip(lines: list[bytes], final: bool) -> None:
    check_bytes(b"\n".join([b"first", *lines]) + b"\n" * final, "a.txt")
    check_bytes(b"\r\n".join([b"first", *lines]) + b"\r\n" * final, "a.txt")


VALUE = st.fixed_dictionaries(
    {
        "text": st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        "n": st.integers(-(2**63), 2**63 - 1),
        "x": st.floats(allow_nan=False, allow_infinity=False),
        "tags": st.lists(st.text(max_size=2), max_size=2),
        "deep": st.fixed_dictionaries({"k": st.none() | st.booleans()}),
    }
)


@given(
    st.lists(VALUE, min_size=1, max_size=4),
    st.sampled_from([(", ", ": "), (",", ":")]),
    st.booleans(),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
@settings(deadline=None)
def test_jsonl_round_trip(
    rows: list[dict[str, Any]], separators: tuple[str, str], ascii: bool, newline: str, final: bool
) -> None:
    shown = {"text": "é", "n": 0, "x": 0.5, "tags": ["a"], "deep": {"k": True}}
    lines = [
        json.dumps({key: row[key] for key in shown}, separators=separators, ensure_ascii=ascii)
        for row in [shown, *rows]
    ]
    check_bytes((newline.join(lines) + newline * final).encode(), "a.jsonl")


def test_jsonl_with_missing_keys() -> None:
    check_bytes(b'{"text": "a", "n": 1}\n{"text": "b"}\n', "a.jsonl")


@given(
    st.lists(st.text("ACGTN", min_size=1, max_size=30), min_size=1, max_size=5), st.integers(0, 8)
)
@settings(deadline=None)
def test_fasta_round_trip(sequences: list[str], width: int) -> None:
    lines = []
    for number, sequence in enumerate(["ACGTACGTAC", *sequences]):
        step = width or len(sequence)
        lines.append(f">s{number} of many")
        lines += [sequence[at : at + step] for at in range(0, len(sequence), step)]
    for newline in ("\n", "\r\n"):
        check_bytes((newline.join(lines) + newline).encode(), "a.fasta")


def test_fastq_round_trip() -> None:
    for data in (b"@a b\nAC\n+\nI@\n@c\nA\n+\n+\n", b"@a\r\nAC\r\n+\r\nII\r\n", b"@a\nA\n+a\nI"):
        check_bytes(data, "a.fastq")


def test_a_folder_round_trip(tmp_path: Path) -> None:
    texts = {"pos/a.txt": b"good\r\n", "neg/deep/b": b"\xff\x00", "neg/c.txt": b""}
    for name, text in texts.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(text)
    (tmp_path / "in" / "neg" / "d.txt.gz").write_bytes(gzip.compress(b"packed"))
    out = tmp_path / "out"
    assert again(tmp_path / "in", out) == 4
    assert {name: (out / name).read_bytes() for name in texts} == texts
    assert gzip.decompress((out / "neg" / "d.txt.gz").read_bytes()) == b"packed"
    with pytest.raises(FileExistsError, match="choose another folder"):
        again(tmp_path / "in", out)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["in", "out"]


def test_parquet_round_trip(tmp_path: Path) -> None:
    table = pa.table({"n": [1, None], "text": ["a", "b"], "l": [[1.5], None]})
    pa.parquet.write_table(table, tmp_path / "a.parquet")
    assert again(tmp_path / "a.parquet", tmp_path / "b.parquet") == 2
    assert pa.parquet.read_table(tmp_path / "b.parquet").equals(table)
    empty = {"format": "parquet", "columns": ["text"], "text": "text"}
    assert write([], empty, tmp_path / "c.parquet") == 0
    assert pa.parquet.read_table(tmp_path / "c.parquet").column_names == ["text"]


def test_other_formats_by_suffix(tmp_path: Path) -> None:
    source = tmp_path / "a.jsonl"
    source.write_text('{"id": 1, "ok": true, "text": "a, \\"b\\""}\n{"id": null, "text": "c"}\n')
    for name, expected in {
        "b.csv": b'id,ok,text\n1,true,"a, ""b"""\n,,c\n',
        "b.tsv": b'id\tok\ttext\n1\ttrue\t"a, ""b"""\n\t\tc\n',
        "b.txt": b'a, "b"\nc\n',
    }.items():
        assert again(source, tmp_path / name) == 2
        assert (tmp_path / name).read_bytes() == expected
    again(tmp_path / "b.csv", tmp_path / "c.jsonl")
    assert json.loads((tmp_path / "c.jsonl").read_text().splitlines()[1]) == {
        "id": "",
        "ok": "",
        "text": "c",
    }
    with pytest.raises(ValueError, match="fasta needs a column 'name'"):
        again(source, tmp_path / "b.fa")


@pytest.mark.parametrize("path", ["/etc/x", "../x", "a/../../x", "", ".", "a\0b", None])
def test_hostile_paths_are_refused(tmp_path: Path, path: str | None) -> None:
    table = pa.table({"path": ["fine", path], "text": [b"x", b"x"]})
    layout = {"format": "files", "columns": ["path", "text"], "text": "text"}
    with pytest.raises(ValueError, match="refused to write"):
        write([table], layout, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


GOOD = {"format": "csv", "columns": ["a", "b"], "text": "a"}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"format": "exe"}, "format"),
        ({"format": ["csv"]}, "format"),
        ({"columns": "ab"}, "columns"),
        ({"columns": [1, "a"]}, "columns"),
        ({"columns": ["a", "a"]}, "columns"),
        ({"text": "c"}, "text"),
        ({"text": []}, "text"),
        ({"delimiter": "\n"}, "delimiter"),
        ({"header": 1}, "header"),
        ({"quoting": "some"}, "quoting"),
        ({"quoting": []}, "quoting"),
        ({"newline": "x"}, "newline"),
        ({"quoted": ["c"]}, "quoted"),
        ({"quoted": [["a"]]}, "quoted"),
        ({"quoted": 3}, "quoted"),
        ({"format": "fasta", "columns": ["a", "name"], "line_width": -1}, "line_width"),
        ({"format": "fasta", "columns": ["a", "name"], "line_width": True}, "line_width"),
        ({"format": "jsonl", "separators": ["\n", ":"]}, "separators"),
    ],
)
def test_hostile_layouts_are_refused(tmp_path: Path, change: dict[str, Any], key: str) -> None:
    with pytest.raises(ValueError, match=f"layout: '{key}' must be"):
        write([], {**GOOD, **change}, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_layouts_of_the_wrong_kind() -> None:
    with pytest.raises(ValueError, match="'format' must be"):
        layout_for(Path("a.csv"), [])  # type: ignore[arg-type]
    assert layout_for(Path("x"), GOOD)["format"] == "csv"
    assert layout_for(Path("x.jsonl.gz"), GOOD)["format"] == "jsonl"


@pytest.mark.parametrize(
    ("layout", "row", "message"),
    [
        ({"format": "lines", "columns": ["t"]}, {"t": "a\nb"}, "a text holds a newline"),
        ({"format": "csv", "columns": ["t", "u"]}, {"t": "a"}, "no column 'u'"),
        ({"format": "csv", "columns": ["t", "u"]}, {"t": "a", "u": [1]}, "column 'u' is list"),
        ({"format": "jsonl", "columns": ["t"]}, {"t": b"\xff"}, "column 't' is not UTF-8"),
        (
            {"format": "fasta", "columns": ["name", "t"]},
            {"name": "a\n>b", "t": "A"},
            "column 'name' holds a newline",
        ),
    ],
)
def test_documents_that_a_format_cannot_hold(
    tmp_path: Path, layout: dict[str, Any], row: dict[str, Any], message: str
) -> None:
    out = tmp_path / "out"
    out.write_bytes(b"before")
    with pytest.raises(ValueError, match=message):
        write([pa.Table.from_pylist([row])], {**layout, "text": "t"}, out)
    assert out.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [out]


def test_a_format_that_can_only_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    reads = Format("csv", (".csv",), format_named("csv").open)
    monkeypatch.setattr("laconic.formats.delimited.FORMATS", [reads])
    with pytest.raises(ValueError, match=r"back\.csv: csv can only be read; choose another"):
        layout_for(Path("back.csv"), GOOD)


@pytest.mark.parametrize("name", ["a.parquet.gz", "folder.xz"])
def test_what_is_written_whole_has_no_compressed_name(name: str) -> None:
    layout = {"format": "files", "columns": ["path", "text"], "text": "text"}
    with pytest.raises(ValueError, match="is not written as"):
        layout_for(Path(name), layout)


def test_thousands_of_columns_take_no_thousand_times_as_long(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(4000)]
    row = ["text", *names]
    (tmp_path / "a.csv").write_text("\n".join([",".join(row)] * 3) + "\n")
    laconic = partial(app, exit_on_error=False, result_action="return_value")
    laconic(["compress", str(tmp_path / "a.csv"), "-o", str(tmp_path / "a.parquet")])
    started = time.process_time()
    laconic(["expand", str(tmp_path / "a.parquet"), "-o", str(tmp_path / "b.csv")])
    assert (tmp_path / "b.csv").read_bytes() == (tmp_path / "a.csv").read_bytes()
    assert time.process_time() - started < 4


@pytest.mark.parametrize("separators", [(", ", ": "), (",", ":")])
def test_the_style_of_a_long_line_of_json(separators: tuple[str, str]) -> None:
    row = {"text": "a, b: c" * 700_000, "n": 1}
    check_bytes(json.dumps(row, separators=separators).encode() + b"\n", "a.jsonl")


@pytest.mark.parametrize("delimiter", [";", "|", "^", "]", "\\", " ", "\t"])
def test_other_delimiters_come_back(delimiter: str, tmp_path: Path) -> None:
    path, back = tmp_path / "a.csv", tmp_path / "b.csv"
    rows = [["text", "n"], ["a,b", "1"], [f'"a{delimiter}b"', "2"]]
    path.write_text("".join(f"{delimiter.join(row)}\n" for row in rows))
    documents = read(path, ReadOptions(delimiter=delimiter))
    tables = [part.table for part in documents.parts()]
    assert tables[0].column("text").to_pylist() == [b"a,b", f"a{delimiter}b".encode()]
    write(tables, documents.layout, back)
    assert back.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("delimiter", ["", ";;", '"', "\n", "a", "é"])
def test_what_is_no_delimiter(delimiter: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,n\na,1\n")
    with pytest.raises(InputError, match="the delimiter must be one character such as ; or"):
        read(tmp_path / "a.csv", ReadOptions(delimiter=delimiter))
