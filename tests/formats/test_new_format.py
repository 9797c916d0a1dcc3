"""A format of one's own (docs/extending.md): a file like this one, and one line of the registry."""

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from laconic import Corpus
from laconic.cli import app
from laconic.formats import ReadError, ReadOptions, registry
from laconic.formats.columns import fixed_columns
from laconic.formats.format import FileRows, Format, Layout, Reject, shown
from laconic.formats.sources import Source, Stream


class FortunesReader:
    """Unix fortunes: a line "%" ends every text."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self.text, self.label = fixed_columns(sources[0].name, ["text"], "text", options)
        self.schema = pa.schema([("text", pa.binary())])
        self.style: Layout = {}

    def read(self, stream: Stream) -> Iterator[FileRows]:
        *texts, rest = stream.read().split(b"%\n")
        yield FileRows.after(0, pa.table([pa.array(texts, pa.binary())], schema=self.schema))
        if reason := stream.failure or (rest and 'no line "%" ends it'):
            yield FileRows(rejects=[Reject(stream.name, len(texts) + 1, reason, shown(rest))])


def blocks(tables: Iterable[pa.Table], layout: Layout) -> Iterator[bytes]:
    for table in tables:
        yield b"".join(text + b"%\n" for text in table.column(layout["text"]).to_pylist())


FORMATS = [Format("fortunes", (".fortunes",), FortunesReader, blocks=blocks)]


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.MODULES, "fortunes", __name__)


def laconic(*words: str | Path) -> None:
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


def test_it_is_compressed_and_written_back(tmp_path: Path) -> None:
    source, corpus = tmp_path / "a.fortunes.gz", tmp_path / "corpus.parquet"
    source.write_bytes(gzip.compress(b"To be,\nor not.\n%\nThat is it.\n%\n"))
    laconic("compress", source, "-o", corpus)
    assert [grammar.text() for grammar in Corpus.open(corpus)] == [
        "To be,\nor not.\n",
        "That is it.\n",
    ]
    laconic("expand", corpus, "-o", tmp_path / "back.fortunes")
    assert (tmp_path / "back.fortunes").read_bytes() == gzip.decompress(source.read_bytes())
    laconic("expand", corpus, "-o", tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_text() == 'text\n"To be,\nor not.\n"\n"That is it.\n"\n'


def test_a_bad_row_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.fortunes").write_bytes(b"one\n%\ntwo\n")
    with pytest.raises(ReadError, match=r'a\.fortunes, row 2: no line "%" ends it'):
        laconic("compress", tmp_path / "a.fortunes", "-o", tmp_path / "corpus.parquet")
