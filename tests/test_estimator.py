"""The estimators against scikit-learn's checks and against our own contract."""

from __future__ import annotations

import inspect
import io
import pickle
from contextlib import redirect_stdout
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

pytest.importorskip("sklearn")
import pandas as pd
import polars as pl
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MultiLabelBinarizer
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted, validate_data

from laconic import Alphabet, Codec, Corpus, compress_many
from laconic.estimator import GrammarClassifier, GrammarRegressor
from laconic.nn import GrammarModel
from laconic.tasks import LabelError
from laconic.training import linear, turns
from laconic.training.settings import TrainingConfig

TINY: dict[str, Any] = {
    "model": "sequence",
    "embedding_size": 8,
    "width": 8,
    "max_epochs": 1,
    "random_state": 0,
    "device": "cpu",
}
LEARNS = TINY | {"max_epochs": 25, "learning_rate": 0.02, "dropout": 0.0, "batch_size": 8}
SOUNDS = {"moo": "mooo mo moooo", "quack": "quack qua kwak", "über": "ööö üüü ö"}


def farm(documents: int = 24, seed: int = 0) -> tuple[list[str], list[str]]:
    """Texts that are easily told apart, with the animal's sound as their class."""
    rng = np.random.default_rng(seed)
    labels = [list(SOUNDS)[i % len(SOUNDS)] for i in range(documents)]
    texts = [" ".join(rng.permutation(SOUNDS[label].split() * 3)) for label in labels]
    return texts, labels


@cache
def fitted() -> GrammarClassifier:
    return GrammarClassifier(**LEARNS).fit(*farm())


def same_model(a: Any, b: Any, most: float = 0.0) -> bool:
    ours, theirs = a.model_.state_dict(), b.model_.state_dict()
    assert ours.keys() == theirs.keys()
    return all((ours[name] - theirs[name]).abs().max() <= most for name in ours)


# scikit-learn's own checks are made for tables of numbers, so these two read each row of a table as
# a text. What does not apply to texts is therefore asked of their validate_data: the number and the
# names of features, dtypes, sparse matrices, NaN and infinity in X. All else is asked of us.


def _texts(table: Any) -> list[str]:
    return [" ".join(f"{value:.1f}" for value in row) for row in np.asarray(table, float).tolist()]


class _Rows:
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = False, True
        tags.input_tags.string = False
        # One epoch of a tiny model that reads decimals learns nothing; whether it learns text is
        # tested below.
        for some in (tags.classifier_tags, tags.regressor_tags):
            if some is not None:
                some.poor_score = True
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:  # noqa: N803
        return super().fit(_texts(validate_data(self, X)), y, sample_weight)  # type: ignore[misc]

    def _read_rows(self, X: Any) -> list[str]:  # noqa: N803
        check_is_fitted(self)
        return _texts(validate_data(self, X, reset=False))

    def predict(self, X: Any) -> Any:  # noqa: N803
        return super().predict(self._read_rows(X))  # type: ignore[misc]


class RowsClassifier(_Rows, GrammarClassifier):
    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        return super().predict_proba(self._read_rows(X))

    def decision_function(self, X: Any) -> Any:  # noqa: N803
        return super().decision_function(self._read_rows(X))


class RowsRegressor(_Rows, GrammarRegressor):
    pass


def _cannot_hold(estimator: Any) -> dict[str, str]:
    return {
        "check_sample_weight_equivalence_on_dense_data": (
            "a document of weight 2 is in one batch, two documents are in two: other steps"
        ),
    }


@pytest.mark.slow
@parametrize_with_checks(
    # The first counts, reads and blends, in one epoch of a tiny reader.
    [RowsClassifier(**TINY | {"model": "auto"}), RowsRegressor(**TINY)],
    expected_failed_checks=_cannot_hold,
)
def test_scikit_learn(estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # One thing to count and one strength: which are chosen is the question of other tests.
    monkeypatch.setattr(linear, "CANDIDATES", linear.CANDIDATES[:1])
    monkeypatch.setattr(linear, "_STRENGTHS", linear._STRENGTHS[:1])
    monkeypatch.setattr(turns, "_FOLDS", 2)
    check(estimator)


# Those of the checks that ask for no data are asked of the estimators themselves, too.


@pytest.mark.parametrize("estimator", [GrammarClassifier(), GrammarRegressor()])
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


# Our own contract.


def test_it_learns() -> None:
    texts, labels = farm(30, seed=1)
    classifier = fitted()
    assert classifier.score(texts, labels) == 1
    assert classifier.n_iter_ == 25
    assert len(classifier.history_) == 25
    assert 1 <= classifier.best_epoch_ <= 25
    assert classifier.history_[-1]["train_loss"] < classifier.history_[0]["train_loss"]


def test_classes_are_sorted_and_outputs_agree() -> None:
    classifier, texts = fitted(), farm(9, seed=2)[0]
    assert classifier.classes_.tolist() == ["moo", "quack", "über"]
    probabilities, scores = classifier.predict_proba(texts), classifier.decision_function(texts)
    assert probabilities.shape == scores.shape == (9, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    expected = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, expected)
    best = classifier.classes_[probabilities.argmax(axis=1)]
    assert classifier.predict(texts).tolist() == best.tolist()


def test_two_classes_have_one_score() -> None:
    texts = farm(12)[0]
    classifier = GrammarClassifier(**TINY).fit(texts, [True, False] * 6)
    scores, probabilities = classifier.decision_function(texts), classifier.predict_proba(texts)
    assert classifier.classes_.tolist() == [False, True]
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), probabilities[:, 1])
    assert classifier.predict(texts).tolist() == (scores > 0).tolist()


def test_any_container_gives_the_same() -> None:
    texts, labels = farm(12)
    wanted = GrammarClassifier(**TINY).fit(texts, labels)
    corpus = Corpus.from_documents(texts, labels, rulebook=wanted.rulebook_)
    containers: list[Any] = [
        tuple(texts),
        [text.encode() for text in texts],
        np.array(texts),
        np.array(texts, dtype=object),
        pd.Series(texts, index=range(5, 17)),
        pl.Series(texts),
        pa.array(texts),
        pa.chunked_array([texts[:5], texts[5:]]),
        pa.array([text.encode() for text in texts]),
        (text for text in texts),
        corpus,
        list(corpus),
        compress_many(texts, rulebook=wanted.rulebook_),
    ]
    for documents in containers:
        got = GrammarClassifier(**TINY).fit(documents, np.array(labels))
        # A corpus orders its rules in its own way, in which sums are rounded otherwise.
        most = 1e-5 if isinstance(documents, Corpus | list) else 0.0
        assert same_model(got, wanted, most), type(documents)
    probabilities = wanted.predict_proba(texts)
    for documents in containers:
        if not inspect.isgenerator(documents):
            again = wanted.predict_proba(documents)
            np.testing.assert_allclose(again, probabilities, atol=1e-6)
    for targets in (np.array(labels, object), pd.Series(labels, index=texts), pa.array(labels)):
        assert same_model(GrammarClassifier(**TINY).fit(texts, targets), wanted)


def test_the_order_and_number_of_documents_do_not_matter() -> None:
    texts = [*farm(20, seed=3)[0], "", "x"]
    wanted = fitted().predict_proba(texts)
    np.testing.assert_allclose(fitted().predict_proba(texts[::-1])[::-1], wanted, atol=1e-6)
    alone = np.concatenate([fitted().predict_proba([text]) for text in texts])
    np.testing.assert_allclose(alone, wanted, atol=1e-6)


def test_a_corpus_brings_its_codec_and_alphabet() -> None:
    texts, labels = ["ACGTACGT", "GGGGCCCC", "ACACACAC", "GCGCGCGC"], [0, 1, 0, 1]
    dna = Corpus.from_documents(texts, labels, codec="lz78", alphabet="dna")
    classifier = GrammarClassifier(**TINY).fit(dna, dna.labels)
    assert (classifier.codec_, classifier.alphabet_) == (Codec("lz78"), Alphabet.dna())
    of_texts, of_grammars = classifier.predict_proba(texts), classifier.predict_proba(dna)
    np.testing.assert_allclose(of_texts, of_grammars, atol=1e-6)
    with pytest.raises(ValueError, match="alphabet"):
        classifier.predict(Corpus.from_documents(texts))
    with pytest.raises(ValueError, match=r"4 terminals.*pass the alphabet"):
        GrammarClassifier(**TINY).fit(list(dna), labels)
    again = GrammarClassifier(codec="lz78", alphabet="dna", **TINY).fit(list(dna), labels)
    assert same_model(again, classifier)


def test_a_corpus_brings_its_labels() -> None:
    texts, labels = ["abab", "cdcd"] * 10, ["ab", "cd"] * 10
    corpus = Corpus.from_documents(texts, labels)
    classifier = GrammarClassifier(**TINY | {"rulebook": None})
    fitted = clone(classifier).fit(corpus)
    assert fitted.classes_.tolist() == ["ab", "cd"]
    given = clone(classifier).fit(corpus, labels)
    np.testing.assert_array_equal(fitted.predict_proba(texts), given.predict_proba(texts))
    with pytest.raises(ValueError, match="requires y"):
        classifier.fit(Corpus.from_documents(texts))


def test_cross_validation_takes_a_corpus() -> None:
    texts, labels = farm(12)
    corpus = Corpus.from_documents(texts, labels)
    classifier = GrammarClassifier(**TINY, rulebook=None)
    assert np.array_equal(
        cross_val_score(classifier, corpus, corpus.labels, cv=2),
        cross_val_score(classifier, texts, labels, cv=2),
    )


def _lowered(texts: list[str]) -> list[str]:
    return [text.lower() for text in texts]


def test_in_a_pipeline() -> None:
    texts, labels = farm(12)
    pipeline = make_pipeline(FunctionTransformer(_lowered), GrammarClassifier(**TINY))
    loud = [text.upper() for text in texts]
    assert same_model(pipeline.fit(loud, labels)[-1], GrammarClassifier(**TINY).fit(texts, labels))
    assert pipeline.predict(loud).tolist() == pipeline.predict(texts).tolist()
    assert pipeline.set_params(grammarclassifier__composer="mlp")[-1].composer == "mlp"


def test_in_a_grid_search() -> None:
    texts, labels = farm(18)
    grid = {"composer": ["grc", "mlp"], "width": np.array([4, 8])}
    search = GridSearchCV(GrammarClassifier(**TINY), grid, cv=2).fit(texts, labels)
    assert len(search.cv_results_["params"]) == 4
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.model_.config.width == search.best_params_["width"]
    assert search.predict(texts[:2]).shape == (2,)


def test_clone_keeps_parameters_only() -> None:
    classifier = GrammarClassifier(codec=Codec("lzd"), alphabet=Alphabet.zhang(), **TINY)
    copy = clone(classifier.fit(*farm(6)))
    assert copy.get_params() == classifier.get_params()
    assert not hasattr(copy, "model_")
    assert same_model(copy.fit(*farm(6)), classifier)


def test_pickle_keeps_everything() -> None:
    classifier, texts = fitted(), farm(5, seed=4)[0]
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(texts), classifier.predict_proba(texts))
    assert again.predict(texts).tolist() == classifier.predict(texts).tolist()
    assert again.get_params() == classifier.get_params()
    assert again.history_ == classifier.history_
    assert all(parameter.requires_grad for parameter in again.model_.parameters())
    assert pickle.loads(pickle.dumps(GrammarClassifier(width=3))).width == 3


def test_the_model_is_saved_as_any(tmp_path: Path) -> None:
    fitted().model_.save_pretrained(tmp_path)
    saved = GrammarModel.from_pretrained(tmp_path).state_dict()
    assert all(
        torch.equal(saved[name], each) for name, each in fitted().model_.state_dict().items()
    )


def test_the_seed_decides() -> None:
    texts, labels = farm(9)
    before, numbers = torch.get_rng_state(), np.random.get_state()[1].copy()  # type: ignore[index]
    first = GrammarClassifier(**TINY | {"random_state": 5}).fit(texts, labels)
    assert torch.equal(torch.get_rng_state(), before)
    assert np.array_equal(np.random.get_state()[1], numbers)  # type: ignore[index]
    assert same_model(first, GrammarClassifier(**TINY | {"random_state": 5}).fit(texts, labels))
    other = GrammarClassifier(**TINY | {"random_state": 6}).fit(texts, labels)
    assert not same_model(first, other)
    states = [np.random.RandomState(1), np.random.RandomState(1)]
    one, two = (GrammarClassifier(**TINY | {"random_state": s}).fit(texts, labels) for s in states)
    assert same_model(one, two)
    assert not same_model(one, clone(one).set_params(random_state=states[0]).fit(texts, labels))


@pytest.mark.parametrize("estimator", [GrammarClassifier(), GrammarRegressor()])
def test_before_fit(estimator: Any) -> None:
    with pytest.raises(NotFittedError, match="not fitted"):
        estimator.predict(["a"])
    if isinstance(estimator, GrammarClassifier):
        for method in (estimator.predict_proba, estimator.decision_function):
            with pytest.raises(NotFittedError, match="not fitted"):
                method(["a"])


@pytest.mark.parametrize(
    ("documents", "error", "message"),
    [
        ("one text", TypeError, r"one str; pass a list"),
        (b"bytes", TypeError, r"one bytes; pass a list"),
        ([1, 2], TypeError, "document 0 must be str or bytes.*int"),
        (["a", 2.5], TypeError, "document 1 must be str or bytes.*float"),
        (["a", ["b"]], TypeError, "document 1 must be str or bytes.*list"),
        (np.array([1.0, 2.0]), TypeError, "document 0 must be str or bytes.*float64"),
        (np.array([["a"], ["b"]]), ValueError, "one dimension, got 2.*one column"),
        (pd.DataFrame({"text": ["a", "b"]}), ValueError, "one dimension, got 2.*one column"),
        (np.array("a"), ValueError, "one dimension, got 0"),
        (["a", None], ValueError, "document 1 is missing"),
        (pd.Series(["a", None]), ValueError, "document 1 is missing"),
        (pd.Series(["a", None], dtype="string"), ValueError, "document 1 is missing"),
        (pa.array(["a", None]), ValueError, "document 1 is missing"),
        (["a", float("nan")], ValueError, "document 1 is missing"),
        ({"a": 1, "b": 2}, TypeError, "list of documents, not dict"),
        ({"a", "b"}, TypeError, "list of documents, not set"),
        (7, TypeError, "list of documents, not int"),
        (None, TypeError, "list of documents, not NoneType"),
        ([compress_many(["a"])[0], "a"], TypeError, "document 1"),
    ],
)
def test_what_are_no_documents(documents: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        GrammarClassifier(**TINY).fit(documents, ["x", "y"])
    with pytest.raises(error, match=message):
        fitted().predict(documents)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "requires y to be passed.*a corpus with labels"),
        (["x"], "inconsistent numbers of samples"),
        (["x", "x"], "one class only, 'x'"),
        ([0.5, 1.5], "Unknown label type: continuous.*GrammarRegressor"),
        ([0.0, float("nan")], "document 1: there is no label"),
        (["x", None], "document 1: there is no label"),
        (pd.Series(["x", None]), "document 1: there is no label"),
        (np.array([0.0, np.inf]), "infinity"),
        ([[[0]], [[1]]], "Unknown label type|multiclass-multioutput|dim"),
        ([["a"], ["a", "b"]], "label"),
    ],
)
def test_what_are_no_classes(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GrammarClassifier(**TINY).fit(["a", "b"], labels)


@pytest.mark.parametrize("labels", [None, [1.0], [1.0, float("nan")], [1.0, np.inf], ["a", "b"]])
def test_what_are_no_numbers(labels: Any) -> None:
    with pytest.raises(ValueError, match=r"y|should be a number|inconsistent"):
        GrammarRegressor(**TINY).fit(["a", "b"], labels)


def test_a_text_that_is_no_number_is_named() -> None:
    said = "document 1: the label is 'b', but should be a number; a classifier takes texts"
    with pytest.raises(LabelError, match=said):
        GrammarRegressor(**TINY).fit(["a", "b"], ["1.5", "b"])
    with pytest.raises(LabelError, match="document 1: there is no label"):
        GrammarRegressor(**TINY).fit(["a", "b"], ["1.5", None])


def test_texts_of_numbers_are_numbers() -> None:
    wanted = GrammarRegressor(**TINY).fit(["a", "b"], [1.5, 2.5])
    assert same_model(wanted, GrammarRegressor(**TINY).fit(["a", "b"], ["1.5", "2.5"]))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"codec": "zip"}, "no codec is named 'zip'"),
        ({"alphabet": "greek"}, "no alphabet is named 'greek'"),
        ({"composer": "bach"}, "bach"),
        ({"max_epochs": 0}, "epochs"),
        ({"preset": "fastest"}, "did you mean 'fast'"),
        ({"settings": {"schedul": "cosine"}}, "did you mean 'schedule'"),
        ({"random_state": -1}, "seed"),
    ],
)
def test_parameters_are_checked_by_fit(parameters: dict[str, Any], message: str) -> None:
    classifier = GrammarClassifier(**TINY | parameters)
    with pytest.raises(ValueError, match=message):
        classifier.fit(*farm(6))


def test_a_failed_fit_changes_nothing() -> None:
    classifier = GrammarClassifier(**TINY | {"composer": "bach"})
    with pytest.raises(ValueError, match="bach"):
        classifier.fit(*farm(6))
    with pytest.raises(NotFittedError):
        classifier.predict(["a"])
    classifier.set_params(composer="mlp").fit(*farm(6))
    before = classifier.predict_proba(["a"])
    with pytest.raises(ValueError, match="bach"):
        classifier.set_params(composer="bach").fit(["a", "b"], [5, 6])
    assert classifier.classes_.tolist() == list(SOUNDS)
    assert np.array_equal(classifier.predict_proba(["a"]), before)


def test_its_predictor_knows_the_classes() -> None:
    texts = farm(5, seed=5)[0]
    predictor = fitted().predictor(batch_size=2)
    assert predictor.predict(texts) == fitted().predict(texts).tolist()
    floats = GrammarClassifier(**TINY).fit(texts, [2.0, 1.0, 2.0, 1.0, 2.0])
    assert floats.classes_.tolist() == [1.0, 2.0]
    assert set(floats.predict(texts)) <= {1.0, 2.0}
    with pytest.raises(NotFittedError):
        GrammarClassifier().predictor()


def test_no_documents() -> None:
    with pytest.raises(ValueError, match="no documents"):
        GrammarClassifier(**TINY).fit([], [])
    assert fitted().predict([]).shape == (0,)
    assert fitted().predict_proba([]).shape == (0, 3)


def test_empty_documents_are_documents() -> None:
    classifier = GrammarClassifier(**TINY).fit(["", "a", "", "b"], [0, 1, 0, 1])
    assert np.isfinite(classifier.predict_proba(["", "abc"])).all()
    assert np.isfinite(fitted().predict_proba([""])).all()


def test_letters_outside_the_alphabet_are_named() -> None:
    with pytest.raises(ValueError, match=r"document 1.*'X'"):
        GrammarClassifier(alphabet="dna", **TINY).fit(["ACGT", "AXGT"], [0, 1])


def test_documents_of_weight_zero_are_left_out() -> None:
    texts, labels = farm(12)
    weights = np.array([2.0, 2.0, 0.0] * 4)  # a whole class goes
    kept = [i for i in range(12) if weights[i]]
    some = [texts[i] for i in kept], [labels[i] for i in kept]
    settings = TINY | {"rulebook": None}  # as the corpus has none
    wanted = GrammarClassifier(**settings).fit(*some)
    assert wanted.classes_.tolist() == ["moo", "quack"]
    for documents in (texts, Corpus.from_documents(texts), compress_many(texts)):
        got = GrammarClassifier(**settings).fit(documents, labels, sample_weight=weights)
        assert got.classes_.tolist() == wanted.classes_.tolist()
        assert same_model(got, wanted, most=1e-5)
    got = GrammarClassifier(**settings)
    got.fit(texts, pd.Series(labels), sample_weight=weights.tolist())
    assert same_model(got, wanted)


def test_weights_pull() -> None:
    texts = ["aa aa"] * 20  # nothing but the labels' frequency is there to learn
    labels, settings = [0, 1] * 10, LEARNS | {"holdout": 0.0, "max_epochs": 40}
    weights = np.where(np.array(labels) == 1, 9.0, 1.0)
    classifier = GrammarClassifier(**settings).fit(texts, labels, sample_weight=weights)
    assert classifier.predict_proba(texts[:1])[0, 1] == pytest.approx(0.9, abs=0.03)
    assert GrammarClassifier(**settings).fit(texts, labels).predict_proba(texts[:1])[
        0, 1
    ] == pytest.approx(0.5, abs=0.05)
    regressor = GrammarRegressor(**settings).fit(texts, labels, sample_weight=weights)
    assert regressor.predict(texts[:1])[0] == pytest.approx(0.9, abs=0.03)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], "one number for each of the 2"),
        ([[1.0], [1.0]], "one number for each of the 2"),
        ([1.0, -1.0], r"sample_weight\[1\] is -1"),
        ([1.0, float("nan")], "sample_weight"),
        ([0.0, 0.0], "zero for every document"),
        ([0.0, 1.0], "one class only"),
    ],
)
def test_what_are_no_weights(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GrammarClassifier(**TINY).fit(["a", "b"], [0, 1], sample_weight=weights)


def test_several_labels() -> None:
    texts = ["moo", "quack", "moo quack", "baa"] * 6
    indicator = MultiLabelBinarizer().fit_transform([text.split() for text in texts])
    classifier = GrammarClassifier(**LEARNS).fit(texts, indicator)
    assert classifier.classes_.tolist() == [0, 1, 2]
    assert classifier.predict(texts[:4]).tolist() == [[0, 1, 0], [0, 0, 1], [0, 1, 1], [1, 0, 0]]
    assert classifier.score(texts, indicator) == 1
    probabilities, scores = classifier.predict_proba(texts), classifier.decision_function(texts)
    np.testing.assert_allclose(probabilities, 1 / (1 + np.exp(-scores)))


def test_regression() -> None:
    counts = [i % 12 for i in range(48)]
    texts, numbers = ["a" * n + "b" * (12 - n) for n in counts], [1000.0 + n for n in counts]
    regressor = GrammarRegressor(**LEARNS | {"pooling": "mean"}).fit(texts, numbers)
    assert regressor.score(texts, numbers) > 0.9
    assert regressor.predict(texts).shape == (48,)
    assert not hasattr(regressor, "predict_proba")
    constant = GrammarRegressor(**TINY).fit(["a", "b", "c"], [3.0, 3.0, 3.0])
    assert np.isfinite(constant.predict(["a", "z"])).all()


def test_presets_give_way_to_what_was_chosen() -> None:
    small: dict[str, Any] = {"max_epochs": 1, "random_state": 0, "device": "cpu", "width": 8}
    config = GrammarClassifier(preset="fast", **small).fit(*farm(6)).model_.config
    assert (config.embedding_size, config.width) == (64, 8)
    more = GrammarClassifier(settings={"identity_buckets": 32, "optimizer": "adamw"}, **TINY)
    assert more.fit(*farm(6)).model_.config.identity_buckets == 32


def test_defaults_are_those_of_training() -> None:
    defaults = {field.name: field.default for field in fields(TrainingConfig)}
    for name, parameter in inspect.signature(GrammarClassifier).parameters.items():
        setting = "epochs" if name == "max_epochs" else name
        if setting in defaults and setting != "model":  # which is auto
            assert parameter.default == defaults[setting], name


def test_patience_stops_early() -> None:
    # Labels without reason: what is held out cannot improve for long.
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 24).tolist()
    settings = LEARNS | {"max_epochs": 60, "patience": 2, "holdout": 0.5}
    assert GrammarClassifier(**settings).fit(farm(24)[0], labels).n_iter_ < 60


def test_verbose_prints_a_line_per_epoch() -> None:
    quiet, said = io.StringIO(), io.StringIO()
    with redirect_stdout(quiet):
        GrammarClassifier(**TINY).fit(*farm(6))
    with redirect_stdout(said):
        GrammarClassifier(**TINY | {"max_epochs": 3, "verbose": 1}).fit(*farm(6))
    assert quiet.getvalue() == ""
    assert len(said.getvalue().splitlines()) == 3


@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_estimators_count(kind: str) -> None:
    texts, labels = farm(40)
    classifier = GrammarClassifier(
        model=kind,
        ngrams=3,
        phrases=2,
        ngram_buckets=4096,
        embedding_size=8,
        width=8,
        max_epochs=3,
        learning_rate=0.02,
        grammar_dropout=0.2,
        random_state=0,
    ).fit(texts, labels)
    config = classifier.model_.config
    assert (config.model, config.ngrams, config.phrases) == (kind, 3, 2)
    assert config.ngram_rows > 0
    assert classifier.score(texts, labels) > 0.9
    scores = classifier.predict_proba(texts)
    alone = np.concatenate([classifier.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(scores, alone, atol=1e-6)
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(texts), scores)
    with pytest.raises(ValueError, match="model must be one of auto, sequence, ngram, both"):
        clone(classifier).set_params(model="bag").fit(texts, labels)


def test_by_default_few_documents_are_counted() -> None:
    texts, labels = farm(30)
    said = io.StringIO()
    with redirect_stdout(said):
        classifier = GrammarClassifier(random_state=0, device="cpu", verbose=1).fit(texts, labels)
    assert classifier.model_.config.model == "ngram"
    assert (classifier.n_iter_, classifier.history_) == (0, [])
    assert classifier.score(*farm(30, seed=1)) == 1
    counted, read = said.getvalue().splitlines()
    assert counted.startswith(
        "counting   accuracy 100.00 % held out, only 6 documents: n-grams of 1–"
    )
    assert "cannot show if it helps" in read
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(again.predict_proba(texts), classifier.predict_proba(texts))
    values = [float(len(text)) for text in texts]
    regressor = GrammarRegressor(random_state=0, device="cpu").fit(texts, values)
    assert regressor.score(texts, values) > 0.5
    several = [[label == "moo", label != "quack"] for label in labels]
    many = GrammarClassifier(random_state=0, device="cpu").fit(texts, np.array(several, int))
    assert many.score(texts, np.array(several, int)) == 1


def test_what_cannot_be_read_with_is_told_though_nothing_is_read() -> None:
    with pytest.raises(ValueError, match="bach"):
        GrammarClassifier(composer="bach").fit(*farm(6))


def test_a_misspelt_parameter_is_told_as_in_toml() -> None:
    with pytest.raises(TypeError, match="GrammarClassifier: no setting 'max_epoch'; did you mean "):
        GrammarClassifier(max_epoch=3)  # type: ignore[call-arg]


def test_top_words_of_many_documents() -> None:
    texts, _ = farm()
    found = fitted().top_words(texts, per_class=3, min_count=2)
    assert set(found.of) == set(SOUNDS)
    assert found.documents == len(texts)
    said = {word.text for sides in found.of.values() for word in sides.speaking_for}
    assert said <= {word for sounds in SOUNDS.values() for word in sounds.split()}
