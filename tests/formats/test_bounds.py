"""Memory while reading: bounded whatever an input holds, and nothing is lost where it runs out."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import Alphabet, Codec
from laconic.corpus import worker
from laconic.corpus.schema import About
from laconic.errors import InputError, OutOfMemoryError
from laconic.formats import ReadError, ReadOptions, parquet, read, read_table, records, sources
from laconic.formats.format import FileRows, shown
from laconic.formats.pages import pages_of
from laconic.formats.parts import cut_into_parts

READ = """
import json, re, sys
from pathlib import Path
from laconic.formats import ReadOptions, read

rows = {}
for file in sys.argv[1:]:
    documents = read(file, ReadOptions(text="text", on_error="skip", part_bytes=4 << 20))
    rows[file] = sum(part.table.num_rows for part in documents.parts())
# What getrusage tells is that of the process before, too, if it was larger.
peak = re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([rows, 1024 * int(peak[1])]))
"""
LETTERS = "x" * (1 << 20)


def in_a_child(*files: Path) -> tuple[dict[str, int], int]:
    """Return how many documents each file has, and the most memory that reading them took."""
    # The limit is for the failing case: nobody wants 21 GB to be asked for.
    command = ["bash", "-c", 'ulimit -v 6000000; exec "$@"', "-", sys.executable, "-c", READ]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows, peak = json.loads(done.stdout)
    return rows, peak


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells of Linux's memory")
def test_few_bytes_of_parquet_may_stand_for_many(tmp_path: Path) -> None:
    count, folder = 800, tmp_path
    codes = pa.array(np.zeros(count, np.int32))
    same = pa.DictionaryArray.from_arrays(codes, pa.array([LETTERS]))
    short = pa.array(["a"] * count)
    lists = pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32), same)
    # The dictionary comes late: nothing is known of the values before.
    late = pa.concat_arrays([pa.nulls(2000, same.type), same])
    tables = {
        "typed": pa.table({"text": same}),
        "beside": pa.table({"text": short, "other": same}),
        "lists": pa.table({"text": short, "other": lists}),
        "late": pa.table({"text": pa.array(["a"] * len(late)), "other": late}),
    }
    for name, table in tables.items():
        pa.parquet.write_table(table, folder / f"{name}.parquet", store_schema=name == "typed")
    assert (folder / "typed.parquet").stat().st_size < 60_000
    some = pa.table({"text": [LETTERS] * 500})
    pa.parquet.write_table(
        some,
        folder / "prefixes.parquet",
        use_dictionary=False,
        column_encoding={"text": "DELTA_BYTE_ARRAY"},
    )
    files = sorted(folder.iterdir())
    rows, peak = in_a_child(*files)
    expected = {"typed": count, "beside": count, "lists": count, "late": len(late), "prefixes": 500}
    assert {Path(file).stem: found for file, found in rows.items()} == expected
    assert peak < 600 << 20


def test_dictionaries_of_tables_in_memory() -> None:
    codes = pa.array(np.zeros(1000, np.int32))
    table = pa.table({"text": pa.DictionaryArray.from_arrays(codes, pa.array([LETTERS]))})
    before, rows = pa.total_allocated_bytes(), 0
    for part in read_table(table).parts():
        assert pa.total_allocated_bytes() - before < 200 << 20
        assert part.rows[0] == rows + 1
        rows += part.table.num_rows
    assert rows == 1000


def test_out_of_memory_is_no_bad_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skip = ReadOptions(on_error="skip")
    file = str(tmp_path / "a.parquet")
    pa.parquet.write_table(pa.table({"text": ["a"] * 9}), file)

    def batches(*_: object, **__: object) -> Iterator[Any]:
        raise pa.ArrowMemoryError("malloc of size 21474836480 failed")

    with monkeypatch.context() as patch:
        patch.setattr(pa.parquet.ParquetFile, "iter_batches", batches)
        with pytest.raises(OutOfMemoryError, match=r"a\.parquet: out of memory; .*--max-document"):
            list(read(file, skip).parts())

    class Stored:
        def __init__(self, _: object) -> None:
            pass

        def read1(self, _: int) -> bytes:
            raise pa.ArrowMemoryError("malloc failed")

        def close(self) -> None:
            pass

    (tmp_path / "a.txt").write_bytes(b"a\n")
    monkeypatch.setattr(sources, "decompressor", lambda raw, _: (Stored(raw), 1 << 10))
    with pytest.raises(OutOfMemoryError, match="out of memory"):
        list(read(tmp_path / "a.txt", skip).parts())


def test_a_worker_that_runs_out_of_memory_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def compress(*_: object) -> Any:
        raise MemoryError

    monkeypatch.setattr(worker, "compress_symbols", compress)
    about = About(Codec(), Alphabet.bytes())
    with pytest.raises(OutOfMemoryError, match="fewer --workers"):
        worker.compress_table(pa.table({"text": ["a"]}), worker.CompressionJob(about, "skip"))


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv.gz", "a.jsonl.gz", "a.fa.gz"])
def test_many_rows_of_no_text_are_many_parts(tmp_path: Path, name: str) -> None:
    head, line = {
        "a.txt.gz": (b"", b"\n"),
        "a.csv.gz": (b"text\n", b"\n"),
        "a.jsonl.gz": (b'{"text":"a"}\n', b'{"text":""}\n'),
        "a.fa.gz": (b"", b">\n\n"),
    }[name]
    count = 600_000 if name != "a.jsonl.gz" else 300_000
    (tmp_path / name).write_bytes(gzip.compress(head + line * count, 1))
    sizes = [part.table.num_rows for part in read(tmp_path / name).parts()]
    assert sum(sizes) in (count, count + 1)
    assert max(sizes) <= 1 << 18


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_many_bad_rows_are_many_parts(tmp_path: Path, name: str) -> None:
    head = b"text,x\n" if name == "a.csv" else b'{"text": "a"}\n'
    (tmp_path / name).write_bytes(head + b"[\n" * 200_000)
    counts = [
        len(part.rejects) for part in read(tmp_path / name, ReadOptions(on_error="skip")).parts()
    ]
    assert sum(counts) == 200_000
    assert max(counts) < 50_000


def test_what_stands_beside_the_text_counts(tmp_path: Path) -> None:
    rows = (b"a,%s\n" % (b"%d" % number * 100_000) for number in range(500))
    (tmp_path / "a.csv").write_bytes(b"text,x\n" + b"".join(rows))
    sizes = [part.table.nbytes for part in read(tmp_path / "a.csv").parts()]
    assert sum(sizes) > 100 << 20
    assert max(sizes) < 40 << 20


def test_many_small_files_are_many_parts() -> None:
    one = FileRows.after(0, pa.table({"text": pa.array([b""])}))
    schema = pa.schema([("text", pa.binary())])
    parts = list(cut_into_parts(repeat(("a", one), 20_000), schema, "text", 4 << 20))
    assert sum(part.table.num_rows for part in parts) == 20_000
    assert max(part.table.num_rows for part in parts) < 10_000


@pytest.mark.parametrize(
    ("name", "head", "row"),
    [
        ("a.txt", "", "{}\n"),
        ("a.txt.gz", "", "{}\n"),
        ("a.jsonl", "", '{{"text": "{}"}}\n'),
        ("a.csv", "text,n\n", '"{}",1\n'),
        ("a.tsv", "text\tn\n", "{}\t1\n"),
        ("a.fa", "", ">a\n{}\n"),
        ("a.fq", "", "@a\n{0}\n+\n{0}\n"),
    ],
)
@pytest.mark.parametrize("megabytes", [3, 12])
def test_longer_than_allowed(
    tmp_path: Path, name: str, head: str, row: str, megabytes: int
) -> None:
    data = (head + row.format("A") + row.format("C" * (megabytes << 20)) + row.format("G")).encode()
    (tmp_path / name).write_bytes(gzip.compress(data, 1) if name.endswith(".gz") else data)
    with pytest.raises(ReadError, match=r"row 2: .* longer than 1,048,576 .*--max-document"):
        list(read(tmp_path / name, ReadOptions(max_document=1 << 20)).parts())
    documents = read(tmp_path / name, ReadOptions(max_document=1 << 20, on_error="skip"))
    if megabytes > 3 and name[2:4] not in ("tx", "js"):
        # Where the next row begins is not known without reading the whole one.
        with pytest.raises(ReadError, match=r"row 2: .*--max-document"):
            list(documents.parts())
        return
    parts = list(documents.parts())
    assert [row for part in parts for row in part.rows.tolist()] == [1, 3]
    assert [one.row for part in parts for one in part.rejects] == [2]
    enough = read(tmp_path / name, ReadOptions(max_document=megabytes << 20))
    assert sum(part.table.num_rows for part in enough.parts()) == 3


def test_parquet_and_files_longer_than_allowed(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for name, text in (("a", b"A"), ("b.zst", b"C" * (3 << 20)), ("c", b"G")):
        if name.endswith(".zst"):
            text = pa.compress(text, "zstd", asbytes=True)
        (folder / name).write_bytes(text)
    table = pa.table({"text": ["A", "C" * (3 << 20), "G"]})
    pa.parquet.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    for path in (folder, tmp_path / "a.parquet"):
        with pytest.raises(ReadError, match=r"longer than 1,048,576 .*--max-document"):
            list(read(path, ReadOptions(max_document=1 << 20)).parts())
        documents = read(path, ReadOptions(max_document=1 << 20, on_error="skip"))
        parts = list(documents.parts())
        assert sum(part.table.num_rows for part in parts) == 2
        assert sum(len(part.rejects) for part in parts) == 1
    huge = pa.table({"text": ["C" * (80 << 20)]})
    pa.parquet.write_table(huge, tmp_path / "huge.parquet", compression="zstd")
    skip = ReadOptions(max_document=1 << 20, on_error="skip")
    with pytest.raises(ReadError, match=r"row group 0 has rows of .*--max-document"):
        list(read(tmp_path / "huge.parquet", skip).parts())


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [False, True])
def test_pages_of_parquet_tell_what_they_hold(
    tmp_path: Path, version: str, dictionary: bool
) -> None:
    texts = [f"text {number % 900} " * 10 for number in range(5000)]
    file = tmp_path / "a.parquet"
    pa.parquet.write_table(
        pa.table({"text": texts}),
        file,
        use_dictionary=dictionary,
        data_page_size=10_000,
        data_page_version=version,
        compression="zstd",
    )
    chunk = pa.parquet.ParquetFile(file).metadata.row_group(0).column(0)
    with pa.OSFile(str(file)) as raw:
        pages = list(pages_of(raw, chunk))
    assert sum(page.values for page in pages if not page.is_dictionary) == 5000
    assert [page.values for page in pages if page.is_dictionary] == [900] * dictionary
    assert all(page.uses_dictionary == dictionary for page in pages if not page.is_dictionary)
    # Headers are not in the pages, but in the column.
    share = sum(page.size for page in pages) / chunk.total_uncompressed_size
    assert 0.9 < share < 1
    with pa.OSFile(str(file)) as raw:
        assert list(pages_of(raw, chunk)) == pages
    damaged = bytearray(file.read_bytes())
    damaged[4:40] = bytes(36)
    list(pages_of(pa.BufferReader(bytes(damaged)), chunk))


def test_one_long_text_among_many_short_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"text": ["a"] * 1000 + ["x" * (70 << 20)] + ["b"]})
    file = tmp_path / "a.parquet"
    pa.parquet.write_table(table, file, compression="zstd", use_dictionary=False)
    parts = list(read(file, ReadOptions(on_error="skip")).parts())
    assert sum(part.table.num_rows for part in parts) == 1001
    assert [one.row for part in parts for one in part.rejects] == [1001]
    monkeypatch.setattr(parquet, "_PAGE", 30 << 20)
    skip = ReadOptions(max_document=1 << 20, on_error="skip")
    with pytest.raises(ReadError, match=r"row group 0 has a page of .*--max-document"):
        list(read(file, skip).parts())


def test_a_damaged_dictionary_costs_no_rows_before_it(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    texts = [f"text {number} " * 2000 for number in range(1000)]
    texts += [f"text {number % 3} " * 9000 for number in range(1000)]
    pa.parquet.write_table(pa.table({"text": texts}), file, row_group_size=1000)
    chunk = pa.parquet.ParquetFile(file).metadata.row_group(1).column(0)
    data = bytearray(file.read_bytes())
    begin = chunk.dictionary_page_offset
    data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(data)
    parts = list(read(file, ReadOptions(on_error="skip")).parts())
    assert sum(part.table.num_rows for part in parts) == 1000
    assert sum(len(part.rejects) for part in parts) == 1


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells of Linux's memory")
def test_long_texts_after_many_short_ones(tmp_path: Path) -> None:
    table = pa.table({"text": ["a"] * 20_000 + ["x" * (8 << 20)] * 24})
    file = tmp_path / "a.parquet"
    pa.parquet.write_table(table, file, compression="zstd", use_dictionary=False)
    rows, peak = in_a_child(file)
    assert list(rows.values()) == [20_024]
    assert peak < 800 << 20


def test_a_quote_that_is_never_closed_is_an_error_not_a_row(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b'text,n\na,1\n"b,2\n' + b"c,3\n" * 3_000_000)
    options = ReadOptions(max_document=1 << 20, on_error="skip")
    with pytest.raises(ReadError, match=r"row 2: .*--max-document, or close its quote"):
        list(read(tmp_path / "a.csv", options).parts())


def test_a_record_of_too_many_lines(tmp_path: Path) -> None:
    (tmp_path / "a.fa").write_bytes(b">a\n" + b"AC\n" * 5_000_000)
    with pytest.raises(ReadError, match="row 1: the record has more than 4,194,304 lines"):
        list(read(tmp_path / "a.fa").parts())


def test_a_line_of_too_many_values(tmp_path: Path) -> None:
    line = b'{"text": "a", "l": [%s0]}\n' % (b"0," * 4_500_000)
    text = b'{"text": "%s"}\n' % (b"0," * 4_500_000)
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "a", "l": [1]}\n' + line + text)
    documents = read(tmp_path / "a.jsonl", ReadOptions(on_error="skip"))
    parts = list(documents.parts())
    assert [row for part in parts for row in part.rows.tolist()] == [1, 3]
    assert ["values in a line" in one.reason for part in parts for one in part.rejects] == [True]


def test_a_first_line_that_is_too_long(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "%s"}\n' % (b"x" * (12 << 20)))
    with pytest.raises(ReadError, match=r"no JSON object in it, .* longer than .*--max-document"):
        read(tmp_path / "a.jsonl", ReadOptions(max_document=1 << 20))
    (tmp_path / "a.jsonl").write_bytes(b"{nonsense}\n")
    with pytest.raises(ReadError, match=r"no JSON object in it, so no columns \(not JSON \("):
        read(tmp_path / "a.jsonl")


def test_an_xz_file_that_asks_for_gigabytes(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    data = lzma.compress(b"a\n" * 1000, filters=filters, check=lzma.CHECK_CRC32)
    (tmp_path / "a.txt.xz").write_bytes(data)
    with pytest.raises(InputError, match=r"a\.txt\.xz: takes more than .* pack it with xz -9"):
        list(read(tmp_path / "a.txt.xz").parts())


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_too_many_columns(tmp_path: Path, name: str) -> None:
    names = [f"c{number}" for number in range(20_000)]
    rows = {"a.csv": ",".join(names) + "\n", "a.jsonl": json.dumps(dict.fromkeys(names, "")) + "\n"}
    (tmp_path / name).write_text(rows[name])
    with pytest.raises(ReadError, match="20,000 columns; at most 10,000 are read"):
        read(tmp_path / name)


def test_rejects_of_wide_rows_are_short() -> None:
    row = {f"column {number}": "x" * 1000 for number in range(5000)}
    assert len(json.dumps(shown(row))) < 3000
    assert shown({"a": "x" * 2000}) == {"a": "x" * 1000}


@given(st.binary(max_size=40).map(lambda data: bytes(b'a",\n\r'[byte % 5] for byte in data)))
@settings(deadline=None)
def test_pieces_of_any_size_give_the_same_records(data: bytes) -> None:
    whole = {final: records.scan(data, ",", final=final) for final in (True, False)}
    usual = records._PIECE
    try:
        for records._PIECE in (1, 2, 3, 7):
            for final, expected in whole.items():
                found = records.scan(data, ",", final=final)
                assert found.ends.tolist() == expected.ends.tolist()
                assert found.fields.tolist() == expected.fields.tolist()
                assert found.blank.tolist() == expected.blank.tolist()
                assert found.malformed == expected.malformed
    finally:
        records._PIECE = usual
