"""What a practitioner would try first, on the same documents and held-out parts: scikit-learn."""

from __future__ import annotations

import gzip
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from benchmarks.data import DATASETS
from experiments.paper.corpora import documents
from experiments.paper.grid import Group
from experiments.paper.results import RESULTS, Figures, about, add_rows, find_row, pack
from laconic.samples import Split
from laconic.tasks import Classification, summary
from laconic.training.holdout import split
from laconic.training.settings import TrainingConfig, resolve

__all__ = ["RIVALS", "run_rival", "run_rivals"]

Ints: TypeAlias = npt.NDArray[np.int64]
Scores: TypeAlias = npt.NDArray[np.float64]
Learner: TypeAlias = Callable[..., tuple[Scores, Figures]]

STRENGTHS = (1.0, 10.0, 100.0, 1_000.0)  # C of the logistic regression
RIDGES = (1e2, 1e3, 1e4, 1e5)
MOST_FEATURES = 300_000
FASTTEXT_RATES = (0.1, 0.5, 1.0)
_FASTTEXT_SMALL, _FASTTEXT_MANY, _FASTTEXT_FEW = 10_000, 25, 10  # below so many, more epochs
NEAREST_TRAIN, NEAREST_TEST, NEIGHBOURS = 1_000, 200, 3


class _Problem:
    """One data set, labels as numbers, and what the settings of trained models hold out."""

    def __init__(
        self, dataset: str, train: Split, test: Split, seed: int, config: TrainingConfig
    ) -> None:
        self.config = config
        self.kind, self.seed, self.alphabet = (
            DATASETS[dataset].kind,
            seed,
            DATASETS[dataset].alphabet,
        )
        self.task = Classification.of(train.labels)
        targets: Ints = self.task.numbers(train.labels)
        fit, valid = split(self.task, targets, config.holdout, seed)
        self.parts = [[train.documents[i] for i in rows.tolist()] for rows in (fit, valid)]
        self.parts.append(test.documents)
        self.targets = [targets[fit], targets[valid], self.task.numbers(test.labels)]


def words(problem: _Problem) -> tuple[Scores, Figures]:
    """Words and pairs of words, TF-IDF, logistic regression; of traces, calls are the words."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    tokens = {"token_pattern": r"\S+"} if problem.kind == "traces" else {}
    made = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2, **tokens)
    return _logistic(problem, made)


def characters(problem: _Problem) -> tuple[Scores, Figures]:
    """All 1 to 5 characters, TF-IDF, logistic regression."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    made = TfidfVectorizer(
        analyzer="char",
        ngram_range=(1, 5),
        sublinear_tf=True,
        min_df=2,
        max_features=MOST_FEATURES,
        dtype=np.float32,
    )
    return _logistic(problem, made)


def linear(problem: _Problem) -> tuple[Scores, Figures]:
    """The n-grams that ngram rows count, by GrammarVectorizer: TF-IDF, logistic regression."""
    from laconic import GrammarVectorizer

    made = GrammarVectorizer(
        (1, problem.config.ngrams),
        alphabet=problem.alphabet,
        sublinear_tf=True,
        min_df=2,
        max_features=problem.config.ngram_buckets,
        dtype=np.float32,
    )
    # Where there are far more n-grams than documents, it is sooner done; on DNA it would not end.
    scores, more = _logistic(problem, made, dual=problem.kind == "text")
    return scores, {"letters": problem.config.ngrams, **more}


def kmers(problem: _Problem) -> tuple[Scores, Figures]:
    """Counts of all 3 to 5 letters, ridge regression on the classes."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import RidgeClassifier

    counts = CountVectorizer(analyzer="char", ngram_range=(3, 5), lowercase=False, dtype=np.float32)
    return _best(
        problem, counts, [(a, RidgeClassifier(alpha=a, solver="sparse_cg")) for a in RIDGES]
    )


def nearest(problem: _Problem) -> tuple[Scores, Figures]:
    """The majority of the three nearest documents by gzip (Jiang et al. 2023), on a subset.

    Every pair is compressed, so a thousand training documents and 200 of the test have to do. One
    class is said, and counts if it is right: of two that are as frequent, that of the nearest.
    """
    rng = np.random.default_rng([problem.seed, 0x6219])
    sizes = min(NEAREST_TRAIN, len(problem.parts[0])), min(NEAREST_TEST, len(problem.parts[2]))
    known = rng.permutation(len(problem.parts[0]))[: sizes[0]]
    asked = np.sort(rng.permutation(len(problem.parts[2]))[: sizes[1]])
    texts = [problem.parts[0][i].encode() for i in known.tolist()]
    own = np.array([_size(text) for text in texts], np.float64)
    scores = np.zeros((len(asked), problem.task.outputs))
    for row, place in enumerate(asked.tolist()):
        text = problem.parts[2][place].encode()
        alone = _size(text)
        both = np.array([_size(text + b" " + other) for other in texts], np.float64)
        distances = (both - np.minimum(alone, own)) / np.maximum(alone, own)
        for order, near in enumerate(np.argsort(distances, kind="stable")[:NEIGHBOURS].tolist()):
            # Ties go to the class of the nearest.
            scores[row, problem.targets[0][known[near]]] += 1 - 0.01 * order
    problem.targets[2] = problem.targets[2][asked]
    return scores, {"train_documents": sizes[0], "test_documents": sizes[1]}


def fast_text(problem: _Problem) -> tuple[Scores, Figures]:
    """Words and pairs of words by fastText; of DNA, six letters at every place, and pairs."""
    # Its authors' own package has no wheels: pip install fasttext-numpy2 (MIT; 0.10.4).
    from fasttext import train_supervised

    lines = [[_words(text, problem.kind) for text in part] for part in problem.parts]
    epochs = _FASTTEXT_MANY if len(lines[0]) < _FASTTEXT_SMALL else _FASTTEXT_FEW
    best, chosen, scores = -1.0, 0.0, np.zeros((len(lines[2]), problem.task.outputs))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "train.txt"
        labelled = zip(problem.targets[0].tolist(), lines[0], strict=True)
        file.write_text("".join(f"__label__{k} {line}\n" for k, line in labelled), "utf-8")
        for rate in FASTTEXT_RATES:
            # One thread: several would not give the same again.
            settings = {"lr": rate, "epoch": epochs, "dim": 10, "wordNgrams": 2, "thread": 1}
            model = train_supervised(str(file), seed=problem.seed, verbose=0, **settings)

            def said(part: list[str], model: Any = model) -> Ints:
                names = model.predict(part)[0]
                return np.array([int(name[0].removeprefix("__label__")) for name in names])

            accuracy = float((said(lines[1]) == problem.targets[1]).mean())
            if accuracy > best:
                best, chosen = accuracy, rate
                scores[:] = 0
                scores[np.arange(len(scores)), said(lines[2])] = 1
    return scores, {"rate": chosen, "epochs": epochs, "valid_accuracy": best}


def _words(text: str, kind: str) -> str:
    """Return the words of a document with blanks between them, in one line."""
    if kind == "dna":
        return " ".join(text[i : i + 6] for i in range(len(text) - 5))
    return " ".join(text.split() if kind == "traces" else re.findall(r"\w+", text.lower()))


RIVALS: dict[str, Callable[[_Problem], tuple[Scores, Figures]]] = {
    "rival_words": words,
    "rival_chars": characters,
    "rival_kmers": kmers,
    "rival_linear": linear,
    "rival_fasttext": fast_text,
    "rival_gzip": nearest,
}


def rivals_of(group: Group, kind: str) -> Iterator[str]:
    """Yield the names of the rivals that make sense for such documents and models."""
    without = {"rival_words" if kind == "dna" else "rival_kmers"}
    for name in RIVALS:
        # Views are compared with a linear model of their own n-grams.
        if name not in without and (name == "rival_linear") == group.of_views:
            yield name


def run_rivals(
    groups: Iterable[Group],
    seeds: Iterable[int],
    results: Path = RESULTS,
    names: Iterable[str] = (),
    sets: Iterable[str] = (),
) -> None:
    """Run the rivals that have no result yet, on all sets of the groups, or on those named."""
    wanted, only = set(names), set(sets)
    for seed in seeds:
        for group in groups:
            for dataset in group.sets:
                if only and dataset not in only:
                    continue
                for name in rivals_of(group, DATASETS[dataset].kind):
                    if (wanted and name not in wanted) or find_row(results, dataset, name, seed):
                        continue
                    try:
                        found = run_rival(dataset, name, seed, group)
                    except ModuleNotFoundError as error:
                        print(f"{dataset}/{name}-{seed} left: {error}", file=sys.stderr)
                        continue
                    add_rows(results, found)
                    told = f"{100 * found['test']['accuracy']:.2f} %, {found['seconds']:.1f} s"
                    print(f"{dataset}/{name}-{seed}: {told}", file=sys.stderr, flush=True)


def run_rival(dataset: str, name: str, seed: int, group: Group) -> Figures:
    """Return the result of one rival on what the group's models of that seed learn from."""
    train, test = documents(dataset, group.longest)
    began = time.perf_counter()
    config = resolve(group.preset, group.settings_of(dataset))
    problem = _Problem(dataset, train, test, seed, config)
    scores, more = RIVALS[name](problem)
    tested = problem.task.evaluate(scores, problem.targets[2])
    return {
        "dataset": dataset,
        "method": name,
        "seed": seed,
        "config": {"what": (RIVALS[name].__doc__ or "").splitlines()[0], **more},
        "about": about(),
        "test": {key: summary(tested)[key] for key in ("documents", "accuracy", "macro_f1", "mcc")},
        "right": pack(problem.task.decide(scores) == problem.targets[2]),
        "seconds": time.perf_counter() - began,
    }


def _logistic(problem: _Problem, vectorizer: Any, dual: bool = False) -> tuple[Scores, Figures]:
    """Return the best of some strengths; `dual` finds the same weights of two classes sooner."""
    from sklearn.linear_model import LogisticRegression

    options: dict[str, Any] = {"solver": "lbfgs"}
    if problem.task.outputs == 2:
        options = {"solver": "liblinear", "dual": dual}
    models = [(c, LogisticRegression(C=c, max_iter=300, **options)) for c in STRENGTHS]
    return _best(problem, vectorizer, models)


def _best(
    problem: _Problem, vectorizer: Any, models: list[tuple[float, Any]]
) -> tuple[Scores, Figures]:
    """Return the test scores of the model that is best on the held-out part."""
    fit = vectorizer.fit_transform(problem.parts[0])
    valid, test = (vectorizer.transform(part) for part in problem.parts[1:])
    best, found = -1.0, None
    for strength, model in models:
        model.fit(fit, problem.targets[0])
        accuracy = float((model.predict(valid) == problem.targets[1]).mean())
        if accuracy > best:
            best, found = accuracy, (strength, model)
    assert found is not None
    scores = np.zeros((test.shape[0], problem.task.outputs))
    scores[np.arange(len(scores)), found[1].predict(test)] = 1
    more = {"features": int(fit.shape[1]), "strength": found[0], "valid_accuracy": best}
    return scores, more


def _size(text: bytes) -> int:
    return len(gzip.compress(text, 9))
