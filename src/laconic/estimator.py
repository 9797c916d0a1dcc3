"""GrammarClassifier and GrammarRegressor: Laconic as scikit-learn estimators of documents."""
# ruff: noqa: N803  -- X is scikit-learn's name

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from numbers import Integral
from typing import Any, Concatenate, Literal, ParamSpec, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from laconic.errors import InputError, needs

with needs("an estimator", "sklearn,train"):
    import accelerate  # noqa: F401
    import torch
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.preprocessing import LabelEncoder
    from sklearn.utils import (
        _safe_indexing,
        check_consistent_length,
        check_random_state,
        column_or_1d,
    )
    from sklearn.utils.multiclass import type_of_target
    from sklearn.utils.validation import assert_all_finite, check_is_fitted

from laconic.alphabet import Alphabet, as_alphabet
from laconic.arrays import is_integer
from laconic.batching import GrammarDataset
from laconic.codecs import Codec, CodecName, as_codec, compress_many
from laconic.corpus import Corpus
from laconic.corpus.documents import DocumentSource, documents_of
from laconic.grammar import Grammars
from laconic.inference.explanation import Explanation, explain
from laconic.inference.predictor import Predictor
from laconic.inference.top_words import TopWords, top_words
from laconic.nn import GrammarModel, ModelConfig
from laconic.nn.config import check_names
from laconic.rulebook import Rulebook
from laconic.tasks import Class, Classification, Metric, Multilabel, Regression, Task, labels
from laconic.training.auto import learn
from laconic.training.progress import Progress
from laconic.training.settings import TrainingConfig, TrainingSettings, resolve

P = ParamSpec("P")
Weights: TypeAlias = npt.NDArray[np.float64]
_CACHE = 1 << 14  # states of symbols that are kept from call to call


@dataclass(frozen=True, kw_only=True)
class Parameters(TrainingSettings):
    """The parameters of an estimator: the settings of training, and these."""

    codec: CodecName | Codec = "repair"
    alphabet: str | Alphabet = "bytes"
    rulebook: int | str | Rulebook | None = "auto"
    max_epochs: int = TrainingConfig.epochs
    model: Literal["auto", "sequence", "ngram", "both"] = "auto"
    settings: Mapping[str, Any] | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0


def _init(parameters: Callable[P, object]) -> Callable[Concatenate[Any, P], None]:
    """Return an __init__ that takes the fields of a dataclass, so that they are written once.

    scikit-learn reads them from the signature, type checkers from the types here.
    """
    signature = inspect.signature(parameters)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)

    def init(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
        try:
            check_names(kwargs, signature.parameters, InputError)
        except InputError as error:
            raise TypeError(f"{type(self).__name__}: {error}") from None
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        vars(self).update(given.arguments)

    taken = signature.replace(parameters=[own, *signature.parameters.values()])
    init.__signature__ = taken  # type: ignore[attr-defined]
    return init


class _GrammarEstimator(BaseEstimator):  # type: ignore[misc]
    """The parameters, the documents, the fit and the pickle of both estimators."""

    model_: GrammarModel
    codec_: Codec
    alphabet_: Alphabet
    rulebook_: Rulebook | None
    task_: Task

    __init__ = _init(Parameters)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags

    def __getstate__(self) -> dict[str, Any]:
        # A compiled cell cannot be pickled, and a GPU's memory should not be.
        state: dict[str, Any] = dict(super().__getstate__())
        if "model_" in state:
            model: GrammarModel = state["model_"]
            weights = {name: each.cpu().numpy() for name, each in model.state_dict().items()}
            state["model_"] = model.config.to_json(), weights
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "model_" in state:
            config, weights = state["model_"]
            with torch.device("meta"):
                model = GrammarModel(ModelConfig.from_json(config))
            tensors = {name: torch.tensor(each) for name, each in weights.items()}
            model.load_state_dict(tensors, assign=True)
            for parameter in model.parameters():
                parameter.requires_grad_(True)
            state["model_"] = model.eval()
        super().__setstate__(state)

    def predictor(self, **options: Any) -> Predictor:
        """Return the model as laconic.training's other tools take it, such as explain.

        It shares the weights. `options` are Predictor's. Raises NotFittedError before fit.
        """
        check_is_fitted(self, "model_")
        compressed_by = self.codec_, self.alphabet_
        options |= {"rulebook": self.rulebook_}
        return Predictor(self.model_, self.task_, *compressed_by, self.device, **options)

    def explain(self, document: Any, target: Any = None, **options: Any) -> Explanation:
        """Return what in one document spoke for its prediction, or for another target.

        `options` are those of laconic.inference.explanation.explain.
        """
        return explain(self.predictor(), document, target, **options)

    def top_words(self, documents: DocumentSource, per_class: int = 20, **options: Any) -> TopWords:
        """Return the words that speak most for and against each class in some documents.

        `options` are those of laconic.inference.top_words.top_words.
        """
        return top_words(self.predictor(), documents, per_class, **options)

    def _input(
        self, X: DocumentSource, y: Any, sample_weight: Any
    ) -> tuple[Corpus | Grammars | list[Any], Any, Weights | None]:
        """Return documents, targets and weights as fit takes them, without those of weight 0."""
        if y is None and isinstance(X, Corpus) and X.about.label is not None:
            y = X.labels
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; only a "
                "corpus with labels has its own"
            )
        documents = documents_of(X)
        if len(documents) == 0:
            raise InputError("X holds no documents: 0 samples; at least one is needed")
        y = y.to_pylist() if hasattr(y, "to_pylist") else y
        check_consistent_length(documents, y)
        if sample_weight is None:
            return documents, y, None
        weights = _weights(sample_weight, len(documents))
        kept = np.flatnonzero(weights)
        if len(kept) < len(weights):
            documents, y = _take(documents, kept), _safe_indexing(y, kept)
        # Equal weights take the way of none: rounding shall not tell them apart.
        return documents, y, weights[kept] if np.ptp(weights[kept]) else None

    def _fit(
        self,
        documents: Corpus | Grammars | list[Any],
        task: Task,
        targets: Any,
        weights: Weights | None,
    ) -> None:
        if isinstance(documents, Corpus):
            codec, alphabet = documents.codec, documents.alphabet
            grammars = documents.grammars
        else:
            codec, alphabet = as_codec(self.codec, {}), as_alphabet(self.alphabet)
            if isinstance(documents, Grammars):
                grammars = documents
            else:
                rulebook = self._rulebook(documents, alphabet)
                grammars = compress_many(documents, codec, alphabet=alphabet, rulebook=rulebook)
        if grammars.alphabet_size != alphabet.size:
            raise InputError(
                f"the grammars are over {grammars.alphabet_size} terminals, {alphabet!r} has "
                f"{alphabet.size}; pass the alphabet they were compressed with"
            )
        trained = learn(
            GrammarDataset(grammars, targets),
            self._config(task),
            task=task,
            weights=weights,
            progress=partial(_print, task.leading()[0]) if self.verbose else None,
            say=print if self.verbose else None,
        )
        self.codec_, self.alphabet_, self.task_ = codec, alphabet, task
        self.rulebook_ = grammars.rulebook
        self.model_, self.best_epoch_ = trained.model.eval(), trained.best_epoch
        self.history_ = [line for line in trained.history if "epoch" in line]
        self.n_iter_ = len(self.history_)

    def _rulebook(self, documents: list[Any], alphabet: Alphabet) -> Rulebook | None:
        """Return the rules that documents share: those that are given, or that these have."""
        wanted = self.rulebook or 0
        if isinstance(wanted, Rulebook):
            return wanted
        if wanted != "auto" and (not is_integer(wanted) or wanted < 0):
            raise InputError(
                f'rulebook must be "auto", a number of rules or a Rulebook, not {wanted!r:.40}'
            )
        # Few documents share few rules, perhaps none.
        rules = None if wanted == "auto" else int(wanted)
        return Rulebook.learn(documents, rules, alphabet=alphabet) or None

    def _config(self, task: Task) -> TrainingConfig:
        names = [each.name for each in fields(TrainingSettings)]
        chosen = {name: getattr(self, name) for name in names} | {"epochs": self.max_epochs}
        if self.preset is not None:
            # A preset gives way to what was chosen, and a default was not.
            defaults = {"epochs": TrainingConfig.epochs, **vars(Parameters())}
            chosen = {k: v for k, v in chosen.items() if v != defaults[k]}
        chosen = {k: v.item() if isinstance(v, np.generic) else v for k, v in chosen.items()}
        if isinstance(self.random_state, Integral):
            chosen["seed"] = int(self.random_state)
        else:
            chosen["seed"] = int(check_random_state(self.random_state).randint(1 << 31))
        return resolve(self.preset, chosen | dict(self.settings or {}) | {"task": task.name})

    def _outputs(self, X: DocumentSource) -> npt.NDArray[np.float32]:
        return self._kept_predictor().outputs(documents_of(X))

    def _kept_predictor(self) -> Predictor:
        """Return a predictor that is kept for the next call, with what it has composed."""
        check_is_fitted(self, "model_")
        kept = _KEPT.get(self)
        if kept is None or kept.model is not self.model_:
            kept = _KEPT[self] = self.predictor(cache=_CACHE)
        return kept


# Not in the estimators, which predicting must not change.
_KEPT: WeakKeyDictionary[_GrammarEstimator, Predictor] = WeakKeyDictionary()


class GrammarClassifier(ClassifierMixin, _GrammarEstimator):  # type: ignore[misc]
    """A classifier of documents that reads their grammars, with scikit-learn's methods.

    X is a list, array, Series or Arrow array of str or bytes, or a Corpus, whose codec, alphabet
    and rulebook then replace the parameters; y are classes, or zeros and ones [N, K] for K labels
    of which a document may have several. `rulebook` is how many rules fit learns that documents
    share, a Rulebook, or None; each document has rules of its own on top. The share `holdout` of
    the documents tells how much automatic training lets reading say, and of other models which
    epoch was best and is kept (`keep`; with holdout=0 the last one); fit stops after `patience`
    epochs that were not better. `preset` is one of laconic.training.settings's; parameters not at
    their default win. With `local_ngrams`, n-grams of up to so many letters are read with the
    symbols they end in. `model` "ngram" counts n-grams of up to `ngrams` letters, and phrases of up
    to `phrases` symbols, instead of reading sequences; "both" adds the two, and trains each by a
    loss of its own, too, with the weight `view_loss`. `settings` are more fields of TrainingConfig.
    `verbose` prints a line per epoch.

    After fit: classes_ (sorted), model_ (a GrammarModel: save_pretrained writes it), codec_,
    alphabet_, rulebook_, task_, history_ (a dict per epoch), n_iter_ (epochs), best_epoch_ (the
    one that is kept, from 1; 0 if what was read is left out).

    >>> texts = ["to be or not to be", "ab ab ab ab", "be or not be", "ab ba ab ba"] * 5
    >>> classifier = GrammarClassifier(
    ...     embedding_size=16, width=16, max_epochs=20, learning_rate=0.01, random_state=0
    ... )
    >>> classifier.fit(texts, ["English", "noise"] * 10).predict(["not to be", "ba ba ab"]).tolist()
    ['English', 'noise']
    """

    classes_: npt.NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: DocumentSource, y: Any = None, sample_weight: Any = None) -> GrammarClassifier:
        """Train on documents and their classes, which a corpus may have; returns self.

        Documents of weight 0 are left out; the others' weights, divided by their mean, are factors
        of the loss, not of what chooses the epoch. Raises TypeError or ValueError for
        documents, labels or parameters that cannot be, such as one class only.
        """
        documents, y, weights = self._input(X, y, sample_weight)
        _check_labels(y)
        with np.errstate(invalid="ignore"):  # it casts infinity to an integer, and then complains
            kind = type_of_target(y, input_name="y")
        if kind == "multilabel-indicator":
            y = np.asarray(y.toarray() if hasattr(y, "toarray") else y)
            numbers, classes = (y != 0).astype(np.float32), np.arange(y.shape[1])
            task: Task = Multilabel(tuple(classes.tolist()))
        elif kind in ("binary", "multiclass"):
            encoder = LabelEncoder()
            numbers, classes = encoder.fit_transform(column_or_1d(y, warn=True)), encoder.classes_
            if len(classes) < 2:
                only = classes.tolist()[0]
                raise InputError(f"y has one class only, {only!r}; a classifier needs two classes")
            task = Classification(_names(classes))
        else:
            raise InputError(
                f"Unknown label type: {kind}. y must be one class for each document, or zeros and "
                "ones [N, K] (see MultiLabelBinarizer); GrammarRegressor predicts numbers"
            )
        self._fit(documents, task, numbers, weights)
        self.classes_ = classes  # only now: a fit that fails leaves the one before as it was
        return self

    def decision_function(self, X: DocumentSource) -> npt.NDArray[np.float64]:
        """Return scores, float64 [N, classes]; of two classes [N], above 0 for the second."""
        scores = self._outputs(X).astype(np.float64)
        binary = len(self.classes_) == 2 and self.task_.single
        return scores[:, 1] - scores[:, 0] if binary else scores

    def predict_proba(self, X: DocumentSource) -> npt.NDArray[np.float64]:
        """Return the probability of each class, or of each label on its own, float64 [N, K]."""
        return self._kept_predictor().probabilities(documents_of(X))

    def predict(self, X: DocumentSource) -> npt.NDArray[Any]:
        """Return the class of each document [N], or zeros and ones [N, K] for several labels."""
        outputs = self._outputs(X)  # NotFittedError first
        decided = self.task_.decide(outputs)
        return np.asarray(self.classes_[decided]) if self.task_.single else decided


class GrammarRegressor(RegressorMixin, _GrammarEstimator):  # type: ignore[misc]
    """A regressor of documents that reads their grammars: GrammarClassifier, for numbers.

    >>> texts = ["a" * n for n in range(1, 21)]
    >>> regressor = GrammarRegressor(
    ...     codec="none", embedding_size=16, width=16, max_epochs=30, learning_rate=0.01, dropout=0,
    ...     random_state=0,
    ... )
    >>> short, long = regressor.fit(texts, range(1, 21)).predict(["aaa", "a" * 18])
    >>> bool(short < 10 < long)
    True
    """

    def fit(self, X: DocumentSource, y: Any = None, sample_weight: Any = None) -> GrammarRegressor:
        """Train on documents and their numbers y [N]; returns self. Else as GrammarClassifier."""
        documents, y, weights = self._input(X, y, sample_weight)
        values = column_or_1d(y, warn=True)
        if values.dtype.kind not in "biuf":
            values = labels.numbers(values)
        values = values.astype(np.float64)
        assert_all_finite(values, input_name="y")
        task = Regression.of(values)
        self._fit(documents, task, task.numbers(values), weights)
        return self

    def predict(self, X: DocumentSource) -> npt.NDArray[np.float64]:
        """Return the number of each document, float64 [N]."""
        outputs = self._outputs(X)
        return self.task_.decide(outputs)


def _check_labels(y: Any) -> None:
    """Raise LabelError with the row for a missing label, before NumPy makes a text of it."""
    values = y if isinstance(y, np.ndarray) or hasattr(y, "toarray") else np.asarray(y, object)
    if values.ndim == 1 and values.dtype.kind in "fO":
        deque(labels.plain(values), maxlen=0)


def _names(classes: npt.NDArray[Any]) -> tuple[Class, ...]:
    """Return classes as a task has them, or their numbers where it cannot have them."""
    names = classes.tolist()
    plain = all(isinstance(each, str | int) for each in names)
    return tuple(names) if plain else tuple(range(len(names)))


def _take(
    documents: Corpus | Grammars | list[Any], rows: npt.NDArray[np.int64]
) -> Corpus | Grammars | list[Any]:
    if isinstance(documents, Corpus):
        return documents.select(rows)
    return documents.take(rows) if isinstance(documents, Grammars) else [documents[i] for i in rows]


def _weights(sample_weight: Any, documents: int) -> Weights:
    """Return weights of documents, float64 [N], of mean 1 over those that have any."""
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (documents,):
        raise InputError(
            f"sample_weight has shape {list(weights.shape)}; pass one number for each of the "
            f"{documents} documents"
        )
    assert_all_finite(weights, input_name="sample_weight")
    if weights.min() < 0:
        row = int(weights.argmin())
        raise InputError(f"sample_weight[{row}] is {weights[row]}; weights must not be negative")
    if not weights.any():
        raise InputError("sample_weight is zero for every document; leave some in")
    scaled: Weights = weights / weights[weights > 0].mean()
    return scaled


def _print(metric: Metric, progress: Progress) -> None:
    if progress.line is not None:
        line = progress.line
        figures = {"loss": line["train_loss"], "held-out loss": line["valid_loss"]}
        figures |= {metric.words: (line["valid"] or {}).get(metric.name)}
        shown = [f"{name} {value:.4f}" for name, value in figures.items() if value is not None]
        print(f"epoch {line['epoch']} of {progress.epochs}: {', '.join(shown)}")
