"""laconic features, the matrices and the vectorizers that it writes."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")
from scipy.sparse import csr_matrix, load_npz, random_array, vstack
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer

from laconic import Alphabet, Codec, Corpus, GrammarVectorizer, samples
from laconic.cli import app
from laconic.features.matrix_file import write_matrix
from laconic.features.vectorizer_file import load_vectorizer, save_vectorizer
from laconic.formats import ReadError

KJV = samples.load("kjv").test.documents[:40]


def laconic(*words: str | Path) -> None:
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Texts, one of which is not ASCII, in a CSV file."""
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["label", "text"], *(["x", t] for t in [*KJV, "Né ΑΣ"])])
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "texts.parquet"
    Corpus.from_documents(KJV).write(path)
    return path


def same(ours: Any, theirs: Any, most: float = 1e-12) -> None:
    assert ours.shape == theirs.shape
    assert abs(ours - theirs).max() <= most


def test_raw_texts(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "matrix.npz"
    laconic("features", table, "-o", out, "--text", "text", "--max-features", "500")
    theirs = TfidfVectorizer(analyzer="char", ngram_range=(1, 5), max_features=500)
    expected = theirs.fit_transform([*KJV, "Né ΑΣ"])
    same(load_npz(out), expected)
    names = tmp_path / "matrix.features.json"
    assert json.loads(names.read_text())["ngrams"] == theirs.get_feature_names_out().tolist()
    told = capsys.readouterr().out
    assert told.startswith(f"{out}: 41 documents × 500 columns, {expected.nnz:,} entries, ")
    assert str(names) in told


def test_a_corpus(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "matrix.npz"
    laconic(
        *("features", corpus, "-o", out, "--ngram-range", "2", "3", "--min-df", "0.1"),
        *("--max-df", "30", "--sublinear-tf", "--norm", "l1", "--dtype", "float32"),
    )
    theirs = TfidfVectorizer(
        analyzer="char",
        ngram_range=(2, 3),
        min_df=0.1,
        max_df=30,
        sublinear_tf=True,
        norm="l1",
        dtype=np.float32,
    )
    found = load_npz(out)
    assert found.dtype == np.float32
    same(found, theirs.fit_transform(KJV), 1e-6)


def test_counts(corpus: Path, tmp_path: Path) -> None:
    out = tmp_path / "matrix.npz"
    laconic("features", corpus, "-o", out, "--no-use-idf", "--norm", "none", "--compress")
    found = load_npz(out)
    assert found.dtype == np.int64
    theirs = CountVectorizer(analyzer="char", ngram_range=(1, 5)).fit_transform(KJV)
    same(found, theirs, 0)
    assert isinstance(found, csr_matrix)


@pytest.mark.parametrize("source", ["corpus", "table"])
def test_hashed(
    source: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = request.getfixturevalue(source)
    out = tmp_path / "matrix.npz"
    words = ["--text", "text"] if source == "table" else []
    laconic("features", path, "-o", out, "--n-features", "999", "--json", *words)
    texts = [*KJV, "Né ΑΣ"] if source == "table" else KJV
    theirs = HashingVectorizer(analyzer="char", ngram_range=(1, 5), n_features=999)
    same(load_npz(out), theirs.transform(texts))
    told = json.loads(capsys.readouterr().out)
    assert (told["rows"], told["columns"], told["features"]) == (len(texts), 999, None)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted({path.name, "matrix.npz"})


def test_like_another(corpus: Path, table: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.npz", tmp_path / "two.npz"
    laconic("features", corpus, "-o", one, "--ngram-range", "1", "3", "--max-features", "300")
    names = tmp_path / "one.features.json"
    laconic("features", table, "-o", two, "--text", "text", "--like", names)
    theirs = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), max_features=300).fit(KJV)
    same(load_npz(two), theirs.transform([*KJV, "Né ΑΣ"]))
    assert not (tmp_path / "two.features.json").exists()


def test_texts_like_a_corpus_of_bytes(tmp_path: Path) -> None:
    texts = ["Un café", "né à Łódź", "plain"]
    raw, corpus = tmp_path / "texts.jsonl", tmp_path / "texts.parquet"
    raw.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    Corpus.from_documents(texts).write(corpus)
    laconic("features", corpus, "-o", tmp_path / "one.npz")
    like = ("--text", "text", "--like", tmp_path / "one.features.json")
    laconic("features", raw, "-o", tmp_path / "two.npz", *like)
    same(load_npz(tmp_path / "two.npz"), load_npz(tmp_path / "one.npz"), 0)


@pytest.mark.parametrize(
    "words",
    [
        ("--n-features", "10"),
        ("--ngram-range", "1", "2"),
        ("--max-df", "1"),
        ("--norm", "none"),
        ("--no-lowercase",),
        ("--codec", "repair"),
        ("--alphabet", "bytes"),
    ],
)
def test_settings_beside_like_are_refused(
    words: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    laconic("features", corpus, "-o", tmp_path / "one.npz", "--max-features", "9")
    like = ("--like", tmp_path / "one.features.json")
    with pytest.raises(ValueError, match=rf"{words[0]}: .*--like.*leave"):
        laconic("features", corpus, "-o", tmp_path / "two.npz", *like, *words)
    assert not (tmp_path / "two.npz").exists()


def test_nothing_is_replaced_or_left(corpus: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "matrix.npz"
    laconic("features", corpus, "-o", out, "--max-features", "9")
    before = out.read_bytes()
    with pytest.raises(FileExistsError, match="--force"):
        laconic("features", corpus, "-o", out)
    out.rename(tmp_path / "other.npz")
    with pytest.raises(FileExistsError, match=r"matrix\.features\.json exists"):
        laconic("features", corpus, "-o", out)
    laconic("features", corpus, "-o", out, "--max-features", "9", "--force")
    assert out.read_bytes() == before
    for words, message in (
        (("-o", tmp_path / "matrix.csv"), "npz"),
        (("-o", tmp_path / "no" / "matrix.npz"), "make the folder first"),
        (("-o", tmp_path / "new.npz", "--min-df", "many"), "--min-df must be a number"),
        (("-o", tmp_path / "new.npz", "--ngram-range", "3", "2"), "1 <= first <= last"),
    ):
        with pytest.raises((ValueError, OSError), match=message):
            laconic("features", corpus, *words)
    hashed = ("-o", tmp_path / "new.npz", "--text", "text", "--n-features", "9")
    table.write_text("text\nAna\n")
    for words in (hashed, hashed[:-2]):
        with pytest.raises(ReadError, match=r"texts\.csv.*row 1.*position 1: 'n' is not"):
            laconic("features", table, *words, "--alphabet", "dna")
    assert not list(tmp_path.glob("*new*"))
    assert not list(tmp_path.glob(".*"))


def test_blocks_make_one_matrix(tmp_path: Path) -> None:
    wanted = csr_matrix(random_array((50, 7), density=0.3, rng=np.random.default_rng(0)))
    for sizes in ([50], [1] * 50, [20, 0, 30]):
        ends = np.cumsum([0, *sizes])
        blocks = [wanted[a:b] for a, b in pairwise(ends)]
        done = write_matrix(blocks, 7, np.float64, tmp_path / "m.npz")
        assert done == (50, 7, wanted.nnz)
        found = load_npz(tmp_path / "m.npz")
        assert (found != wanted).nnz == 0
        assert np.array_equal(found.indptr, wanted.indptr)
    write_matrix([], 7, np.float32, tmp_path / "none.npz")
    assert load_npz(tmp_path / "none.npz").shape == (0, 7)
    assert vstack([load_npz(tmp_path / "none.npz"), wanted]).shape == (50, 7)


def test_a_matrix_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    def blocks() -> Iterator[csr_matrix]:
        yield csr_matrix([[1.0, 0.0]])
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        write_matrix(blocks(), 2, np.float64, tmp_path / "m.npz")
    assert not list(tmp_path.iterdir())


def test_many_entries_have_wide_indices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.features.matrix_file._MOST_32", 3)
    wanted = csr_matrix([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]])
    write_matrix([wanted], 3, np.float64, tmp_path / "m.npz")
    with np.load(tmp_path / "m.npz") as arrays:
        assert arrays["indices"].dtype == arrays["indptr"].dtype == np.int64
    assert (load_npz(tmp_path / "m.npz") != wanted).nnz == 0


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_idf": False, "norm": None, "binary": True},
        {"codec": Codec("repair", min_count=3), "alphabet": Alphabet.learn(KJV)},
        {"alphabet": "zhang", "dtype": np.float32, "max_features": np.int64(50)},
        {"vocabulary": ["th", "e", "\n", "é"]},
    ],
)
def test_a_vectorizer_comes_back(settings: dict[str, Any], tmp_path: Path) -> None:
    vectorizer = GrammarVectorizer((1, 3), **settings).fit(KJV)
    save_vectorizer(vectorizer, tmp_path / "v.json")
    again = load_vectorizer(tmp_path / "v.json")
    ours, theirs = again.transform(KJV[:9]), vectorizer.transform(KJV[:9])
    assert ours.dtype == theirs.dtype
    assert (ours != theirs).nnz == 0
    assert again.vocabulary_ == vectorizer.vocabulary_


def test_ngrams_of_no_document_weigh_infinitely_much_unless_smoothed(tmp_path: Path) -> None:
    vectorizer = GrammarVectorizer((1, 1), vocabulary=["e", "é"], smooth_idf=False)
    with np.errstate(divide="ignore"):
        vectorizer.fit(KJV)
    save_vectorizer(vectorizer, tmp_path / "v.json")
    assert load_vectorizer(tmp_path / "v.json").idf_.tolist() == [1.0, math.inf]


def test_a_vectorizer_appears_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectorizer = GrammarVectorizer((1, 2)).fit(KJV)
    save_vectorizer(vectorizer, tmp_path / "v.json")
    before = (tmp_path / "v.json").read_bytes()

    def half(path: Path, text: str, *_: object, **__: object) -> None:
        path.write_bytes(text[: len(text) // 2].encode())
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", half)
    with pytest.raises(OSError, match="no space left"):
        save_vectorizer(vectorizer, str(tmp_path / "v.json"))
    assert (tmp_path / "v.json").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_what_is_no_vectorizer(tmp_path: Path) -> None:
    path = tmp_path / "v.json"
    save_vectorizer(GrammarVectorizer((1, 2)).fit(KJV), path)
    fields = json.loads(path.read_text())
    settings = fields["settings"]
    damaged: list[Any] = [
        "{",
        [1],
        {},
        fields | {"laconic": "corpus"},
        fields | {"ngrams": "abc"},
        fields | {"ngrams": [1, 2]},
        fields | {"ngrams": ["a", "a"]},
        fields | {"idf": [1.0]},
        fields | {"idf": None},
        fields | {"idf": [10**400, *fields["idf"][1:]]},
        fields | {"idf": [None, *fields["idf"][1:]]},
        fields | {"idf": [math.nan, *fields["idf"][1:]]},
        fields | {"idf": [math.inf, *fields["idf"][1:]]},
        fields | {"idf": ["1.5", *fields["idf"][1:]]},
        fields | {"idf": [True, *fields["idf"][1:]]},
        fields | {"idf": [-1, *fields["idf"][1:]]},
        fields | {"ngrams": [], "idf": []},
        fields | {"alphabet": 1},
        fields | {"alphabet": "{}"},
        fields | {"settings": settings | {"ngram_range": [1, 65]}},
        fields | {"settings": settings | {"n_features": 5}},
        fields | {"settings": settings | {"ngram_range": [2, 1]}},
        fields | {"settings": settings | {"codec": {"name": "zip"}}},
        fields | {"settings": settings | {"surprise": 1}},
    ]
    for content in damaged:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        with pytest.raises(ValueError, match=r"v\.json is no vectorizer"):
            load_vectorizer(path)
    with pytest.raises(ValueError, match="no names"):
        save_vectorizer(GrammarVectorizer(n_features=5), path)
