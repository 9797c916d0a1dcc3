"""GrammarVectorizer against scikit-learn's own vectorizers, and against our own contract."""

from __future__ import annotations

import csv
import io
import lzma
import os
import pickle
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

pytest.importorskip("sklearn")
import pandas as pd
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, vstack
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import (
    CountVectorizer,
    HashingVectorizer,
    TfidfTransformer,
    TfidfVectorizer,
)
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data
from strategies import RANDOMS

from laconic import (
    Alphabet,
    AlphabetError,
    Codec,
    Corpus,
    GrammarVectorizer,
    compress_many,
    samples,
)

CODECS = ("repair", "lz78", "lzd", "none")
KJV = samples.load("kjv").test.documents[:60]
# White space of every kind, letters whose lower case is longer or depends on what stands beside
# them, letters beyond 16 bits, and the character that stands for unknown ones.
ODD = "aaabAB  \n\t\r\x1c\x85\xa0\u2003\u3000İΣσςéÉßẞǅ中𝔘😀\ufffd\x00"


def odd_texts(random: Random) -> list[str]:
    """Some texts, often repetitive, some of them empty or shorter than an n-gram."""
    letters = random.choice((ODD, "ab", "a ", "aA \n", ODD[:12]))
    made = []
    for _ in range(random.randint(1, 5)):
        word = "".join(random.choices(letters, k=random.choice((0, 1, 2, 5, 12))))
        made.append(word * random.choice((1, 1, 2, 7)))
    return made if any(made) else [*made, "a"]


TEXTS = RANDOMS.map(odd_texts)
RANGES = st.tuples(st.integers(1, 8), st.integers(1, 8)).map(lambda pair: tuple(sorted(pair)))


def same(ours: Any, theirs: Any, most: float = 0.0) -> None:
    """The same matrix: shape, places of entries, also of those that are 0, and values."""
    theirs = csr_matrix(theirs)
    theirs.sort_indices()
    assert isinstance(ours, csr_matrix)
    assert ours.shape == theirs.shape
    assert ours.dtype == theirs.dtype
    assert np.array_equal(ours.indptr, theirs.indptr)
    assert np.array_equal(ours.indices, theirs.indices)
    np.testing.assert_allclose(ours.data, theirs.data, rtol=0, atol=most)


@given(TEXTS, RANGES, st.sampled_from(CODECS), st.booleans())
def test_counts_are_scikit_learns(
    texts: list[str], ngram_range: tuple[int, int], codec: Any, lowercase: bool
) -> None:
    theirs = CountVectorizer(analyzer="char", ngram_range=ngram_range, lowercase=lowercase)
    plain = {"use_idf": False, "norm": None, "codec": codec, "lowercase": lowercase}
    ours = GrammarVectorizer(ngram_range, **plain)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(ValueError, match=r"no n-grams of \d to \d letters"):
            ours.fit_transform(texts)
        return
    same(ours.fit_transform(texts), expected)
    assert ours.vocabulary_ == theirs.vocabulary_
    names = theirs.get_feature_names_out().tolist()
    assert ours.get_feature_names_out().tolist() == names
    others = [text[::-1] + "ä?" for text in texts]
    same(ours.transform(others), theirs.transform(others))
    fitted = GrammarVectorizer(ngram_range, **plain).fit(texts)
    assert fitted.vocabulary_ == theirs.vocabulary_
    given_names = GrammarVectorizer(ngram_range, vocabulary=names[::-1], **plain)
    fixed = CountVectorizer(
        analyzer="char", ngram_range=ngram_range, lowercase=lowercase, vocabulary=names[::-1]
    )
    same(given_names.transform(others), fixed.transform(others))


@given(
    TEXTS,
    RANGES,
    st.sampled_from(CODECS),
    st.sampled_from([1, 2, 7, 1 << 20, 2**31 - 1]),
    st.booleans(),
    st.booleans(),
    st.sampled_from(["l1", "l2", None]),
)
def test_hashes_are_scikit_learns(
    texts: list[str],
    ngram_range: tuple[int, int],
    codec: Any,
    n_features: int,
    alternate_sign: bool,
    binary: bool,
    norm: Any,
) -> None:
    options: dict[str, Any] = {
        "n_features": n_features,
        "alternate_sign": alternate_sign,
        "binary": binary,
        "norm": norm,
    }
    theirs = HashingVectorizer(analyzer="char", ngram_range=ngram_range, **options)
    ours = GrammarVectorizer(ngram_range, codec=codec, **options)
    # How scipy sums the entries of a column before it divides is its own business.
    same(ours.transform(texts), theirs.transform(texts), 1e-12 if norm else 0.0)


@given(
    TEXTS,
    RANGES,
    st.sampled_from(CODECS),
    st.fixed_dictionaries(
        {
            "sublinear_tf": st.booleans(),
            "use_idf": st.booleans(),
            "smooth_idf": st.booleans(),
            "norm": st.sampled_from(["l1", "l2", None]),
            "binary": st.booleans(),
            "min_df": st.sampled_from([1, 2, 0.4]),
            "max_df": st.sampled_from([1.0, 0.7, 3]),
            "max_features": st.sampled_from([None, 1, 5, 20]),
        }
    ),
)
def test_weights_are_scikit_learns(
    texts: list[str], ngram_range: tuple[int, int], codec: Any, options: dict[str, Any]
) -> None:
    theirs = TfidfVectorizer(analyzer="char", ngram_range=ngram_range, **options)
    ours = GrammarVectorizer(ngram_range, codec=codec, dtype=np.float64, **options)
    try:
        expected = theirs.fit_transform(texts)
    except ValueError:
        with pytest.raises(ValueError, match=r"max_df corresponds|no n-grams of"):
            ours.fit_transform(texts)
        return
    same(ours.fit_transform(texts), expected, 1e-12)
    assert ours.vocabulary_ == theirs.vocabulary_
    if options["use_idf"]:
        assert np.array_equal(ours.idf_, theirs.idf_)
    same(ours.transform(texts[::-1]), theirs.transform(texts[::-1]), 1e-12)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("binary", [False, True])
@pytest.mark.parametrize("max_features", [10, 1_000, 5_000, 20_000])
def test_the_same_of_equally_frequent_ngrams_are_kept(
    dtype: Any, binary: bool, max_features: int
) -> None:
    options: dict[str, Any] = {"max_features": max_features, "binary": binary, "dtype": dtype}
    theirs = CountVectorizer(analyzer="char", ngram_range=(1, 5), **options)
    ours = GrammarVectorizer((1, 5), use_idf=False, norm=None, **options)
    same(ours.fit_transform(KJV), theirs.fit_transform(KJV))
    assert ours.get_feature_names_out().tolist() == theirs.get_feature_names_out().tolist()


def test_runs_of_white_space_may_stay() -> None:
    texts = ["a  b", " \n a"]
    theirs = CountVectorizer(analyzer=list)
    ours = GrammarVectorizer((1, 1), use_idf=False, norm=None, collapse_whitespace=False)
    same(ours.fit_transform(texts), theirs.fit_transform(texts))


def _kmers(text: str) -> Iterator[str]:
    complement = str.maketrans("ACGT", "TGCA")
    for n in (3, 4):
        for begin in range(len(text) - n + 1):
            one = text[begin : begin + n]
            yield min(one, one.translate(complement)[::-1])


@pytest.mark.parametrize("codec", CODECS)
def test_a_strand_and_its_reverse_complement_are_one(codec: Any) -> None:
    texts = samples.load("bacteria").test.documents[:20]
    theirs = CountVectorizer(analyzer=lambda text: list(_kmers(text)))
    options: dict[str, Any] = {"use_idf": False, "norm": None, "lowercase": False}
    for alphabet in (None, "dna"):
        ours = GrammarVectorizer(
            (3, 4), reverse_complement=True, codec=codec, alphabet=alphabet, **options
        )
        same(ours.fit_transform(texts), theirs.fit_transform(texts))
        assert ours.vocabulary_ == theirs.vocabulary_
    turned = [text.translate(str.maketrans("ACGT", "TGCA"))[::-1] for text in texts]
    same(ours.transform(turned), theirs.transform(texts))


def test_any_container_gives_the_same() -> None:
    texts = [*KJV[:12], ""]
    corpus = Corpus.from_documents(texts)
    containers: list[Any] = [
        tuple(texts),
        [text.encode() for text in texts],
        [texts[0].encode(), *texts[1:]],
        np.array(texts),
        np.array(texts, dtype=object),
        pd.Series(texts, index=range(5, 18)),
        pl.Series(texts),
        pa.array(texts),
        pa.chunked_array([texts[:5], texts[5:]]),
        pa.array([text.encode() for text in texts]),
        corpus,
        list(corpus),
        compress_many(texts, "lzd"),
    ]
    learned, hashed = GrammarVectorizer((1, 3)).fit(texts), GrammarVectorizer(n_features=99)
    wanted = TfidfVectorizer(analyzer="char", ngram_range=(1, 3)).fit_transform(texts)
    for documents in [*containers, iter(texts), iter(list(corpus))]:
        kind = type(documents)
        same(GrammarVectorizer((1, 3)).fit_transform(documents), wanted, 1e-12)
        if not isinstance(documents, Iterator):
            assert GrammarVectorizer((1, 3)).fit(documents).vocabulary_ == learned.vocabulary_, kind
    for documents in [*containers, iter(texts), iter(list(corpus))]:
        same(learned.transform(documents), wanted, 1e-12)
    for documents in [*containers, iter(texts), iter(list(corpus))]:
        same(hashed.transform(documents), hashed.fit_transform(texts), 1e-12)


def test_blocks_are_the_rows_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [*KJV, "", "ü" * 9, ""]
    corpus = Corpus.from_documents(texts)
    vectorizer = GrammarVectorizer((1, 3)).fit(corpus)
    whole, of_texts = vectorizer.transform(corpus), vectorizer.transform(texts)
    monkeypatch.setattr("laconic.features.preprocessing._BLOCK", 700)
    for source, wanted in (
        (corpus, whole),
        (corpus.grammars, whole),
        (list(corpus), whole),
        (iter(corpus.grammars), whole),
        (texts, of_texts),
        (iter(texts), of_texts),
    ):
        blocks = list(vectorizer.transform_batches(source))
        assert len(blocks) > 20
        assert all(block.shape[0] for block in blocks)
        same(vstack(blocks, format="csr"), wanted, 1e-12)


def test_no_documents_are_no_rows() -> None:
    assert GrammarVectorizer(n_features=7).transform([]).shape == (0, 7)
    assert GrammarVectorizer((1, 1)).fit(["ab"]).transform([]).shape == (0, 2)
    for learning in (GrammarVectorizer(), GrammarVectorizer(n_features=7, use_idf=True)):
        with pytest.raises(ValueError, match="X holds no documents"):
            learning.fit([])


def test_hashed_columns_can_be_weighed() -> None:
    hashing = HashingVectorizer(
        analyzer="char", ngram_range=(1, 4), n_features=512, alternate_sign=False, norm=None
    )
    theirs = make_pipeline(hashing, TfidfTransformer(sublinear_tf=True))
    ours = GrammarVectorizer(
        (1, 4), n_features=512, alternate_sign=False, use_idf=True, sublinear_tf=True
    )
    with pytest.raises(NotFittedError):
        ours.transform(KJV)
    same(ours.fit_transform(KJV), theirs.fit_transform(KJV), 1e-12)
    same(ours.transform(KJV[:5]), theirs.transform(KJV[:5]), 1e-12)


def test_a_given_vocabulary() -> None:
    names = ["th", "e", "zzz", "the lord", "qq"]
    options: dict[str, Any] = {"analyzer": "char", "ngram_range": (1, 3)}
    for given_names in (names, set(names), {name: k for k, name in enumerate(names)}):
        theirs = TfidfVectorizer(vocabulary=given_names, **options)
        ours = GrammarVectorizer((1, 3), vocabulary=given_names)
        with pytest.raises(NotFittedError):
            ours.transform(KJV)
        same(ours.fit_transform(KJV), theirs.fit_transform(KJV), 1e-12)
        assert ours.vocabulary_ == theirs.vocabulary_
        same(ours.transform(KJV[:3]), theirs.transform(KJV[:3]), 1e-12)


def test_names_come_back() -> None:
    texts = ["abab", "", "ba"]
    vectorizer = GrammarVectorizer((1, 2))
    matrix = vectorizer.fit_transform(texts)
    names = [row.tolist() for row in vectorizer.inverse_transform(matrix)]
    assert names == [["a", "ab", "b", "ba"], [], ["a", "b", "ba"]]
    dense = [row.tolist() for row in vectorizer.inverse_transform(matrix.toarray())]
    assert dense == names
    with pytest.raises(ValueError, match="no names"):
        GrammarVectorizer(n_features=5).fit(texts).get_feature_names_out()
    with pytest.raises(AttributeError, match="n_features"):
        _ = GrammarVectorizer(n_features=5).fit(texts).vocabulary_


def test_a_corpus_brings_its_alphabet() -> None:
    texts = ["ACGTACGT", "GGGGCCCC"]
    dna = Corpus.from_documents(texts, codec="lz78", alphabet="dna")
    vectorizer = GrammarVectorizer((2, 3), use_idf=False, norm=None).fit(dna)
    assert set(vectorizer.get_feature_names_out()) >= {"ac", "ggg"}
    same(vectorizer.transform(dna), vectorizer.transform(texts))
    with pytest.raises(ValueError, match=r"over 4 terminals.*pass the alphabet"):
        vectorizer.transform(dna.grammars)
    read = clone(vectorizer).set_params(alphabet="dna").fit(dna.grammars)
    assert read.vocabulary_ == vectorizer.vocabulary_
    same(read.transform(texts), vectorizer.transform(texts))


def test_under_bytes_letters_are_the_bytes_of_utf8() -> None:
    corpus = Corpus.from_documents(["Éé"])
    vectorizer = GrammarVectorizer((1, 1)).fit(corpus)
    assert vectorizer.get_feature_names_out().tolist() == ["\x89", "\xa9", "\xc3"]


@pytest.mark.parametrize(
    "parameters", [{}, {"n_features": 64, "use_idf": True}, {"vocabulary": ["\xc3", "\xa9", "caf"]}]
)
def test_texts_are_read_as_the_corpus_that_was_learned_from(parameters: dict[str, Any]) -> None:
    texts = ["Un café", "né à Łódź", "plain"]
    corpus = Corpus.from_documents(texts)
    for learned in (corpus, corpus.grammars, iter(list(corpus.grammars))):
        vectorizer = GrammarVectorizer((1, 3), **parameters).fit(learned)
        assert vectorizer.alphabet_ == corpus.alphabet
        wanted = vectorizer.transform(corpus)
        same(vectorizer.transform(texts), wanted)
        same(pickle.loads(pickle.dumps(vectorizer)).transform(texts), wanted)
    hashes: dict[str, Any] = {"n_features": 64, "use_idf": False, "vocabulary": None}
    wanted = GrammarVectorizer((1, 3), n_features=64).transform(texts)
    same(clone(vectorizer).fit(corpus).set_params(**hashes).transform(texts), wanted)
    assert vectorizer.fit(texts).alphabet_ is None
    same(vectorizer.transform(texts), clone(vectorizer).fit_transform(texts))


@pytest.mark.parametrize("letter", "İΣ")
def test_letters_that_only_text_can_lower(letter: str) -> None:
    text = f"a{letter} b{letter}c"
    alphabet = Alphabet.learn([text])
    grammars = compress_many([text], alphabet=alphabet)
    with pytest.raises(ValueError, match=rf"{letter}.*lowercase=False"):
        GrammarVectorizer(alphabet=alphabet).fit(grammars)
    kept = GrammarVectorizer(alphabet=alphabet, lowercase=False).fit(grammars)
    theirs = TfidfVectorizer(analyzer="char", ngram_range=(1, 5), lowercase=False).fit([text])
    assert kept.vocabulary_ == theirs.vocabulary_


def test_errors_number_documents_through_all_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.features.preprocessing._BLOCK", 3)
    texts: list[Any] = ["ACGT"] * 9
    vectorizer = GrammarVectorizer(n_features=8, alphabet="dna")
    for bad, error, message in (
        ("ACXT", AlphabetError, "document 7, position 2: 'X'"),
        (None, ValueError, "document 7 is missing"),
        (3, TypeError, "document 7 must be str"),
    ):
        texts[7] = bad
        for source in (texts, iter(texts)):
            with pytest.raises(error, match=message):
                vectorizer.transform(source)
    texts[7] = "a\ud800"
    with pytest.raises(AlphabetError, match=r"document 7, position 1: .*lone surrogate"):
        GrammarVectorizer(n_features=8).transform(texts)
    texts[7] = b"a\xff"
    with pytest.raises(AlphabetError, match=r"document 7, position 1: .*not UTF-8"):
        GrammarVectorizer(n_features=8).transform(texts)


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        ("one text", TypeError, r"one str; pass a list"),
        ([1, 2], TypeError, "document 0 must be str or bytes.*int"),
        (np.array([["a"], ["b"]]), ValueError, "one dimension, got 2.*one column"),
        (pd.Series(["a", None]), ValueError, "document 1 is missing"),
        ({"a", "b"}, TypeError, "list of documents, not set"),
    ],
)
def test_what_are_no_documents(documents: Any, error: type[Exception], message: str) -> None:
    fitted = GrammarVectorizer().fit(["a"])
    hashing = GrammarVectorizer(n_features=5)
    for method in (
        GrammarVectorizer().fit,
        GrammarVectorizer().fit_transform,
        fitted.transform,
        hashing.transform,
        hashing.fit_transform,
    ):
        with pytest.raises(error, match=message):
            method(documents)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"ngram_range": (0, 2)}, "1 <= first <= last"),
        ({"ngram_range": (3, 2)}, "1 <= first <= last"),
        ({"ngram_range": (1, 65)}, "1 <= first <= last <= 64"),
        ({"ngram_range": (1, 65), "n_features": 5}, "1 <= first <= last <= 64"),
        ({"ngram_range": 3}, "two integers"),
        ({"ngram_range": (1.0, 2.0)}, "two integers"),
        ({"n_features": 0}, "n_features must be"),
        ({"n_features": 1 << 31}, "n_features must be"),
        ({"n_features": 5.0}, "n_features must be"),
        ({"max_features": 0}, "max_features must be"),
        ({"min_df": 0}, "min_df must be"),
        ({"min_df": -0.5}, "min_df must be"),
        ({"max_df": 1.5}, "max_df must be"),
        ({"max_df": True}, "max_df must be"),
        ({"min_df": 3, "max_df": 2}, "max_df corresponds"),
        ({"norm": "l3"}, "norm must be"),
        ({"n_features": 5, "vocabulary": ["a"]}, "one of the two"),
        ({"n_features": 5, "sublinear_tf": True}, "alternate_sign=False"),
        ({"dtype": np.int64}, "int64 cannot hold weights"),
        ({"codec": "zip"}, "no codec is named 'zip'"),
        ({"alphabet": "greek"}, "no alphabet is named 'greek'"),
        ({"threads": 0}, "threads must be"),
        ({"vocabulary": []}, "vocabulary is empty"),
        ({"vocabulary": ["a", "a"]}, "'a' is given twice"),
        ({"vocabulary": {"a": 0, "b": 2}}, "without gaps"),
    ],
)
def test_parameters_are_checked(parameters: dict[str, Any], message: str) -> None:
    vectorizer = GrammarVectorizer(**parameters)
    with pytest.raises(ValueError, match=message):
        vectorizer.fit_transform(["a b", "b c"])


@pytest.mark.parametrize("vocabulary", ["ab", 7, ["a", 1]])
def test_what_is_no_vocabulary(vocabulary: Any) -> None:
    with pytest.raises(TypeError, match="vocabulary"):
        GrammarVectorizer(vocabulary=vocabulary).fit(["a b", "b c"])


def test_a_failed_fit_changes_nothing() -> None:
    vectorizer = GrammarVectorizer((1, 2))
    with pytest.raises(ValueError, match="no n-grams"):
        vectorizer.fit([""])
    with pytest.raises(NotFittedError):
        vectorizer.transform(["a"])
    before = vectorizer.fit_transform(["ab", "b"])
    with pytest.raises(ValueError, match="no n-grams"):
        vectorizer.fit([""])
    same(vectorizer.transform(["ab", "b"]), before)


def test_what_was_not_learned_is_asked_for() -> None:
    vectorizer = GrammarVectorizer((1, 2), use_idf=False).fit(KJV)
    for parameters in ({"use_idf": True}, {"use_idf": True, "n_features": 9}):
        with pytest.raises(NotFittedError):
            clone(vectorizer).set_params(**parameters).transform(KJV)
        with pytest.raises(NotFittedError):
            vectorizer.set_params(**parameters).transform(KJV)


def test_clone_and_pickle() -> None:
    vectorizer = GrammarVectorizer((1, 3), codec=Codec("lzd"), max_features=50).fit(KJV)
    copy = clone(vectorizer)
    assert copy.get_params() == vectorizer.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(KJV)
    again = pickle.loads(pickle.dumps(vectorizer))
    same(again.transform(KJV), vectorizer.transform(KJV))
    assert again.vocabulary_ == vectorizer.vocabulary_


def test_in_a_pipeline_and_a_grid_search() -> None:
    train = samples.load("kjv").train
    texts, labels = train.documents[::20], train.labels[::20]
    pipeline = make_pipeline(GrammarVectorizer((1, 3)), LogisticRegression())
    theirs = make_pipeline(TfidfVectorizer(analyzer="char", ngram_range=(1, 3)), pipeline[-1])
    assert pipeline.fit(texts, labels).score(texts, labels) > 0.5
    ours = pipeline.predict_proba(texts)
    np.testing.assert_allclose(ours, theirs.fit(texts, labels).predict_proba(texts), atol=1e-4)
    grid = {"grammarvectorizer__ngram_range": [(1, 1), (1, 3)]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(texts, labels)
    assert search.best_params_["grammarvectorizer__ngram_range"] == (1, 3)
    corpus = Corpus.from_documents(texts, labels)
    assert np.array_equal(
        cross_val_score(pipeline, corpus, corpus.labels, cv=2),
        cross_val_score(theirs, texts, labels, cv=2),
    )


def test_linear_models_learn_from_batches() -> None:
    train = samples.load("bacteria").train
    corpus = Corpus.from_documents(train.documents, train.labels, alphabet="dna")
    vectorizer = GrammarVectorizer((3, 5), n_features=1 << 12)
    model = SGDClassifier(random_state=0)
    classes = sorted(set(corpus.labels))
    for _ in range(5):
        for part in corpus.batches(256):
            model.partial_fit(vectorizer.transform(part), part.labels, classes)
    assert model.score(vectorizer.transform(corpus), corpus.labels) > 0.9


def test_threads_do_not_change_the_matrix() -> None:
    one, two = (GrammarVectorizer((1, 4), threads=n).fit_transform(KJV) for n in (1, 2))
    same(one, two)


# scikit-learn's own checks are made for tables of numbers, so this reads each row as a text, as in
# test_estimator.py.


class RowsVectorizer(GrammarVectorizer):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        tags.input_tags.string = False
        return tags

    def fit(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        return super().fit(_rows(validate_data(self, X)), y)

    def fit_transform(self, X: Any, y: Any = None) -> Any:  # noqa: N803
        return super().fit_transform(_rows(validate_data(self, X)), y)

    def transform(self, X: Any) -> Any:  # noqa: N803
        if not isinstance(X, list) or not X or not isinstance(X[0], str):
            check_is_fitted(self)
            X = _rows(validate_data(self, X, reset=False))  # noqa: N806
        return super().transform(X)


def _rows(table: Any) -> list[str]:
    return [" ".join(f"{value:.1f}" for value in row) for row in np.asarray(table, float).tolist()]


@parametrize_with_checks([RowsVectorizer((1, 2))])
def test_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize("estimator", [GrammarVectorizer(), GrammarVectorizer(n_features=9)])
@pytest.mark.parametrize(
    "check",
    [
        "check_estimator_cloneable",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_estimator_repr",
        "check_no_attributes_set_in_init",
        "check_mixin_order",
        "check_parameters_default_constructible",
        "check_get_params_invariance",
        "check_set_params",
        "check_do_not_raise_errors_in_init_or_set_params",
    ],
)
def test_scikit_learn_without_data(estimator: Any, check: str) -> None:
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


SETS = [
    *(f"text/{name}/train.csv.xz" for name in ("imdb", "yelp_polarity_part", "sogou_pinyin")),
    "logs/adfa_ld/train.csv.xz",
    *(
        f"dna/{name}/train.tsv.xz"
        for name in (
            *("H3", "H3K14ac", "H3K36me3", "H3K4me1", "H3K4me2"),
            *("H3K4me3", "H3K79me3", "H3K9ac", "H4", "H4ac"),
        )
    ),
]


def real_texts(name: str, count: int) -> list[str]:
    folder = os.environ.get("LACONIC_DATA")
    if not folder or not (Path(folder) / name).exists():
        pytest.skip(f"LACONIC_DATA does not name a folder with {name}")
    with lzma.open(Path(folder) / name) as packed, io.TextIOWrapper(packed, "utf-8") as file:
        delimiter = "\t" if name.endswith(".tsv.xz") else ","
        rows = csv.reader(file, delimiter=delimiter)
        return [row[1].replace("\\n", "\n") for row, _ in zip(rows, range(count), strict=False)]


@pytest.mark.parametrize("name", SETS)
def test_real_documents(name: str) -> None:
    texts = real_texts(name, 1000)
    options: dict[str, Any] = {"analyzer": "char", "ngram_range": (1, 8)}
    counting = CountVectorizer(**options)
    counts = counting.fit_transform(texts)
    names = counting.get_feature_names_out().tolist()
    weights = TfidfTransformer().fit_transform(counts)
    hashes = HashingVectorizer(norm=None, **options).transform(texts)
    for codec in CODECS:
        ours = GrammarVectorizer((1, 8), codec=codec)  # type: ignore[arg-type]
        same(ours.fit_transform(texts), weights, 1e-6)
        assert ours.get_feature_names_out().tolist() == names
        plain = clone(ours).set_params(use_idf=False, norm=None)
        same(plain.fit_transform(texts), counts)
        hashing = clone(ours).set_params(n_features=1 << 20, norm=None)
        same(hashing.transform(texts), hashes)
