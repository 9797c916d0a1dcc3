"""What lies compressed: zip archives, WARC, folders of .gz, binary columns; and hostile ones."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

import laconic.formats.warc
from laconic import Corpus, compress_many
from laconic.cli import app
from laconic.errors import InputError
from laconic.features.vectorizer import GrammarVectorizer
from laconic.formats import ReadError, ReadOptions, read

TEXTS = {
    f"{label}/{n}.txt": f"{label} says {n} times: {label * (n + 2)}. ".encode() * (n + 1)
    for label in ("hen", "cow")
    for n in range(3)
}
FACTS = list(TEXTS.values())


def run(*arguments: object) -> None:
    app([str(each) for each in arguments], exit_on_error=False, result_action="return_value")


def corpus_of(tmp_path: Path, *arguments: object) -> Corpus:
    out = tmp_path / "made.parquet"
    run("compress", *arguments, "-o", out)
    return Corpus.open(out)


def texts_of(corpus: Corpus) -> list[bytes]:
    return [grammar.expand().tobytes() for grammar in corpus.grammars]


def archive(path: Path, files: dict[str, bytes], **options: Any) -> Path:
    with zipfile.ZipFile(path, "w", **({"compression": zipfile.ZIP_DEFLATED} | options)) as made:
        for name, text in files.items():
            made.writestr(name, text)
    return path


# ---- zip ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED])
@pytest.mark.parametrize("codec", ["deflate", "repair"])
def test_an_archive_is_a_corpus(tmp_path: Path, how: int, codec: str) -> None:
    source = archive(tmp_path / "a.zip", TEXTS, compression=how)
    corpus = corpus_of(tmp_path, source, "--codec", codec)
    assert corpus.about.codec.name == codec
    assert texts_of(corpus) == FACTS
    assert corpus.column("path").to_pylist() == list(TEXTS)
    assert corpus.column("label").to_pylist() == [name.split("/")[0] for name in TEXTS]
    run("expand", tmp_path / "made.parquet", "-o", tmp_path / "back.zip")
    with zipfile.ZipFile(tmp_path / "back.zip") as back:
        assert {name: back.read(name) for name in back.namelist()} == TEXTS


def test_what_lies_in_an_archive_is_not_inflated(tmp_path: Path) -> None:
    source = archive(tmp_path / "a.zip", {"zeros": bytes(200 << 20)})
    (grammar,) = corpus_of(tmp_path, source).grammars
    assert grammar.expanded_length == 200 << 20
    assert len(grammar.rules) < 100
    with pytest.raises(ReadError, match="zeros: it is inflated to more than 67,108,864 bytes"):
        list(read([source]).parts())


def test_info_compares_with_repair(tmp_path: Path, capsys: Any) -> None:
    source = archive(tmp_path / "a.zip", {"zeros": bytes(200 << 20), **TEXTS})
    corpus_of(tmp_path, source)
    capsys.readouterr()
    run("info", tmp_path / "made.parquet")
    printed = capsys.readouterr().out
    repair = compress_many(FACTS)
    told = f"{len(repair.sequence) / 6:.1f} symbols and {len(repair.rules) / 6:.1f} rules"
    assert f"Re-Pair    would make sequences of {told} per document" in printed
    assert "(on 6)" in printed  # zeros are left out: they would have to be expanded


def changed(data: bytes, find: bytes, at: int, value: bytes) -> bytes:
    """The bytes with others written `at` bytes after each place where `find` is found."""
    out, place = bytearray(data), data.find(find)
    while place >= 0:
        out[place + at : place + at + len(value)] = value
        place = data.find(find, place + 1)
    return bytes(out)


LOCAL, DIRECTORY, END = b"PK\3\4", b"PK\1\2", b"PK\5\6"
ZIPS: list[tuple[str, Callable[[bytes], bytes], str]] = [
    ("encrypted", lambda z: changed(z, DIRECTORY, 8, b"\1"), "hen/0.txt: it is encrypted"),
    ("method", lambda z: changed(z, DIRECTORY, 10, b"\x0e"), "packed by method 14; pack it by def"),
    ("crc", lambda z: changed(z, DIRECTORY, 16, bytes(4)), "row 1: its checksum is not what was"),
    ("size", lambda z: changed(z, DIRECTORY, 24, b"\7"), "row 1: its length is not what was"),
    ("elsewhere", lambda z: changed(z, LOCAL, 0, b"XX"), "a file is not where the directory says"),
    ("overlap", lambda z: changed(z, DIRECTORY, 20, b"\0\0\1\0"), "its files overlap"),
    ("cut", lambda z: z[:-9], "is no zip archive, or damaged"),
    ("nothing", lambda z: b"hello", "is no zip archive, or damaged"),
]


@pytest.mark.parametrize(("name", "damage", "message"), ZIPS, ids=[name for name, *_ in ZIPS])
def test_bad_archives_are_refused(
    tmp_path: Path, name: str, damage: Callable[[bytes], bytes], message: str
) -> None:
    source = archive(tmp_path / "a.zip", TEXTS)
    source.write_bytes(damage(source.read_bytes()))
    with pytest.raises(InputError) as raised:
        run("compress", source, "-o", tmp_path / "out.parquet")
    assert message in str(raised.value)
    assert "a.zip" in str(raised.value)


@pytest.mark.parametrize("name", ["../up.txt", "/etc/passwd", "a/../../b", "..\\up", "C:/a"])
def test_names_that_escape_are_refused(tmp_path: Path, name: str) -> None:
    source = archive(tmp_path / "a.zip", {"good.txt": b"good", name: b"bad"})
    with pytest.raises(ReadError, match=r"a path must stay within|no path within a folder"):
        list(read([source], ReadOptions(compressed=True)).parts())
    (part,) = read([source], ReadOptions(compressed=True, on_error="skip")).parts()
    assert part.table.column("path").to_pylist() == ["good.txt"]
    assert [reject.row for reject in part.rejects] == [2]


def test_zip64(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made,
        made.open("hen.txt", "w", force_zip64=True) as file,
    ):
        file.write(FACTS[0])
    assert texts_of(corpus_of(tmp_path, path)) == FACTS[:1]


# ---- WARC ---------------------------------------------------------------------------------------

PAGE = b"<html>the hen and then the hens</html>" * 9


def warc(path: Path, zipped: bool) -> Path:
    """Records as crawlers write them: pages plain, by gzip, in chunks, in both; a note."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (PAGE[:7], PAGE[7:])) + b"0\r\n\r\n"
    packed = gzip.compress(PAGE)
    both = b"%x;note=1\r\n%s\r\n0\r\n\r\n" % (len(packed), packed)
    bodies: list[tuple[str, bytes, list[tuple[str, str]]]] = [
        ("plain", PAGE, []),
        ("gzip", packed, [("Content-Encoding", "gzip")]),
        ("zlib", zlib.compress(PAGE), [("Content-Encoding", "deflate")]),
        ("unpacked", PAGE, [("Content-Encoding", "gzip")]),
        ("chunks", chunks, [("Transfer-Encoding", "chunked")]),
        ("both", both, [("Transfer-Encoding", "chunked"), ("content-encoding", "GZIP")]),
        ("empty", b"", []),
    ]
    with path.open("wb") as file:
        writer = WARCWriter(file, gzip=zipped)
        writer.write_record(writer.create_warcinfo_record("x.warc", {"software": "tests"}))
        for name, body, headers in bodies:
            http = StatusAndHeaders("200 OK", [("Content-Type", "text/html"), *headers], "HTTP/1.1")
            uri = f"http://example.com/{name}"
            date = {"WARC-Date": "2026-11-16T00:00:00Z"}
            writer.write_record(
                writer.create_warc_record(
                    uri,
                    "response",
                    payload=io.BytesIO(body),
                    http_headers=http,
                    warc_headers_dict=date,
                )
            )
        note = writer.create_warc_record(
            "urn:note", "resource", payload=io.BytesIO(b"a note"), warc_content_type="text/plain"
        )
        writer.write_record(note)
    return path


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # warcio's files
@pytest.mark.parametrize("codec", ["deflate", "repair"])
@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_warc_by_a_real_library(tmp_path: Path, name: str, codec: str) -> None:
    source = warc(tmp_path / name, name.endswith(".gz"))
    corpus = corpus_of(tmp_path, source, *(["--codec", codec] if codec != "deflate" else []))
    assert corpus.about.codec.name == codec
    types = corpus.column("type").to_pylist()
    assert types == ["warcinfo", *["response"] * 6, "resource"]
    names = [(uri or "").rpartition("/")[2] for uri in corpus.column("uri").to_pylist()]
    assert names[1:7] == ["plain", "gzip", "zlib", "unpacked", "chunks", "both"]
    assert set(corpus.column("date").to_pylist()[1:7]) == {"2026-11-16T00:00:00Z"}
    texts = texts_of(corpus)
    assert texts[1:] == [*[PAGE] * 6, b"a note"]
    assert b"software: tests" in texts[0]


def record(block: bytes, kind: str = "application/http; msgtype=response", more: str = "") -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: response\r\nContent-Type: {kind}\r\n{more}"
    return f"{head}Content-Length: {len(block)}\r\n\r\n".encode() + block + b"\r\n\r\n"


GOOD = record(b"HTTP/1.1 200 OK\r\n\r\n" + PAGE)
BAD_WARCS: list[tuple[str, bytes, str]] = [
    ("text", gzip.compress(b"hello"), "row 1: a record does not begin with WARC/"),
    (
        "length",
        gzip.compress(GOOD.replace(b"Content-Length", b"Content-Size")),
        "no Content-Length",
    ),
    ("two", gzip.compress(GOOD + GOOD), "several records are one gzip member"),
    ("short", gzip.compress(GOOD[:-20]), "a record is shorter than it says"),
    ("headers", gzip.compress(b"WARC/1.0\r\nA: " + b"a" * 99_999), "headers do not end within"),
    (
        "cut",
        gzip.compress(GOOD) + gzip.compress(GOOD)[:-30],
        "row 2: the compressed bytes break of",
    ),
    (
        "damaged",
        gzip.compress(GOOD) + b"\x1f\x8b\7" + bytes(30),
        "row 2: it is gzip, but not by def",
    ),
    (
        "crc",
        gzip.compress(GOOD)[:-8] + bytes(4) + gzip.compress(GOOD)[-4:],
        "bytes are damaged (Error -3",
    ),
    ("garbage", gzip.compress(GOOD) + b"garbage", "row 2: a record does not begin with WARC/"),
    (
        "br",
        gzip.compress(record(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nxyz")),
        "row 1: its body is packed by br",
    ),
]


@pytest.mark.parametrize(("name", "data", "message"), BAD_WARCS, ids=[n for n, *_ in BAD_WARCS])
def test_bad_warcs_are_refused(tmp_path: Path, name: str, data: bytes, message: str) -> None:
    (tmp_path / "a.warc.gz").write_bytes(data)
    with pytest.raises(InputError) as raised:
        run("compress", tmp_path / "a.warc.gz", "-o", tmp_path / "out.parquet")
    assert message in str(raised.value)
    assert "a.warc.gz, row" in str(raised.value)


@pytest.mark.parametrize("step", [1, 7, 100])
@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_records_may_be_cut_anywhere_while_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, pack: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(laconic.formats.warc, "_READ", step)
    texts = [b"hen " * n for n in range(1, 30)]
    records = [record(b"HTTP/1.1 200 OK\r\n\r\n" + text) for text in texts]
    (tmp_path / "a.warc").write_bytes(b"".join(map(pack, records)))
    (part,) = read([tmp_path / "a.warc"]).parts()
    assert part.table.column("text").to_pylist() == texts


def test_a_bad_record_alone_is_skipped(tmp_path: Path) -> None:
    bad = record(b"HTTP/1.1 200 OK\r\nContent-Encoding: br\r\n\r\nxyz")
    data = b"".join(map(gzip.compress, (GOOD, bad, GOOD)))
    (tmp_path / "a.warc.gz").write_bytes(data)
    assert texts_of(corpus_of(tmp_path, tmp_path / "a.warc.gz", "--on-error", "skip")) == [PAGE] * 2


# ---- folders and columns ------------------------------------------------------------------------


def test_folders_of_gz_are_taken_as_they_lie(tmp_path: Path) -> None:
    for name, text in TEXTS.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / f"{name}.gz").write_bytes(gzip.compress(text))
    plain = corpus_of(tmp_path, tmp_path / "in")
    assert plain.about.codec.name == "repair"
    texts, labels = texts_of(plain), plain.column("label")
    assert sorted(texts) == sorted(FACTS)
    zipped = corpus_of(tmp_path, tmp_path / "in", "--compressed", "--force")
    assert zipped.about.codec.name == "deflate"
    assert texts_of(zipped) == texts
    assert zipped.column("label").equals(labels)


def test_columns_of_gzip_values(tmp_path: Path) -> None:
    blobs = [gzip.compress(text) for text in FACTS]
    table = pa.table({"body": pa.array(blobs, pa.binary()), "n": list(range(6))})
    pq.write_table(table, tmp_path / "in.parquet")
    corpus = corpus_of(tmp_path, tmp_path / "in.parquet", "--text", "body", "--compressed")
    assert texts_of(corpus) == FACTS
    assert corpus.column("length").to_pylist() == list(map(len, FACTS))
    made = Corpus.from_table(table, text="body", codec="deflate", compressed=True)
    assert made.grammars == corpus.grammars == compress_many(blobs, "deflate", compressed=True)
    bad = table.set_column(0, "body", pa.array([*blobs[:4], b"text", blobs[5]], pa.binary()))
    with pytest.raises(InputError, match="row 5: it is compressed neither by gzip nor by zlib"):
        Corpus.from_table(bad, text="body", codec="deflate", compressed=True)
    pq.write_table(bad, tmp_path / "bad.parquet")
    skipped = corpus_of(
        *(tmp_path, tmp_path / "bad.parquet", "--text", "body", "--compressed", "--force"),
        *("--on-error", "skip"),
    )
    assert skipped.column("n").to_pylist() == [0, 1, 2, 3, 5]
    empty = pa.table({"body": pa.array([gzip.compress(b"")], pa.binary())})
    with pytest.raises(InputError, match="row 1: the document is empty"):
        Corpus.from_table(empty, codec="deflate", compressed=True, text="body")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("a.csv",),
            "documents of csv are text; compressed ones are of parquet, files, zip or war",
        ),
        (("a.zip", "--codec", "repair"), 'compressed is for codec "deflate"'),
        (("a.zip", "--alphabet", "dna"), "what is compressed is bytes, not Alphabet"),
    ],
)
def test_what_cannot_be_compressed(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    archive(tmp_path / "a.zip", TEXTS)
    (tmp_path / "a.csv").write_text("text\nhen\n")
    name, *flags = arguments
    with pytest.raises(InputError, match=message):
        run("compress", tmp_path / name, "-o", tmp_path / "o.parquet", "--compressed", *flags)


def test_features_are_those_of_the_text() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    texts = [text.decode() for text in FACTS]
    labels = [name.split("/")[0] for name in TEXTS]
    zipped = compress_many([gzip.compress(text) for text in FACTS], "deflate", compressed=True)
    vectorizer = GrammarVectorizer(ngram_range=(1, 4)).fit(texts)
    ours, theirs = vectorizer.transform(zipped), vectorizer.transform(texts)
    assert (ours != theirs).nnz == 0
    models = [linear.LogisticRegression().fit(matrix, labels) for matrix in (ours, theirs)]
    assert np.array_equal(models[0].coef_, models[1].coef_)


def test_a_member_of_many_zeros_in_a_warc_is_small(tmp_path: Path) -> None:
    block = b"HTTP/1.1 200 OK\r\n\r\n" + bytes(100 << 20)
    (tmp_path / "a.warc.gz").write_bytes(gzip.compress(record(block)))
    (grammar,) = corpus_of(tmp_path, tmp_path / "a.warc.gz").grammars
    assert grammar.expanded_length == 100 << 20
    assert len(grammar.rules) < 100
    assert struct.pack("<I", 0) == grammar.substring(5, 9).tobytes()
