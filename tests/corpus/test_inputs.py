"""What an input is: a corpus, or raw files of any format."""

from pathlib import Path

import pytest

from laconic import Corpus, CorpusError
from laconic.alphabet import AlphabetError
from laconic.corpus.inputs import open_inputs
from laconic.errors import NoDocumentError
from laconic.formats import ReadError, ReadOptions

TEXTS = ["abab", "banana", "cc"]


def test_a_corpus_and_a_csv_give_the_same_documents(tmp_path: Path) -> None:
    Corpus.from_documents(TEXTS, [1, 2, 3]).write(tmp_path / "c.parquet")
    (tmp_path / "c.csv").write_text("label,text\n1,abab\n2,banana\n3,cc\n")
    corpus = open_inputs([str(tmp_path / "c.parquet")], ReadOptions())
    raw = open_inputs([str(tmp_path / "c.csv")], ReadOptions(part_bytes=8))
    assert corpus.columns == raw.columns == ["label"]
    assert [each.text() for part in corpus.parts() for each in part.documents] == TEXTS
    assert [each.decode() for part in raw.parts() for each in part.documents] == TEXTS
    assert corpus.document(1).text() == raw.document(1).decode() == "banana"
    for opened in (corpus, raw):
        with pytest.raises(NoDocumentError):
            opened.document(3)
    error = AlphabetError("too odd", document=12)
    (grammars,) = corpus.parts()
    assert grammars.located(error) is error
    last = list(raw.parts())[-1].located(error, first=11)
    assert isinstance(last, ReadError)
    assert str(last) == f"{tmp_path}/c.csv, row 3: too odd"


def test_what_is_damaged_is_told_by_who_knows_it(tmp_path: Path) -> None:
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(CorpusError, match="is not Parquet, or was cut short"):
        open_inputs([str(tmp_path / "c.parquet")], ReadOptions())
    with pytest.raises(ReadError, match="not a Parquet file"):
        open_inputs([str(tmp_path / "c.parquet")], ReadOptions(format="parquet"))
