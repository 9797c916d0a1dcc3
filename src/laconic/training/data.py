"""What labels mean to a model, and which documents validate."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset, LengthSampler, Rows
from laconic.corpus import Corpus
from laconic.errors import InputError
from laconic.forest import plant
from laconic.ngrams.hashed import HashedCounter, portions
from laconic.ngrams.in_place import NgramPlacer
from laconic.nn.config import ModelConfig
from laconic.training.settings import TrainingConfig

__all__ = ["Class", "LabelError", "Labels", "Part", "RowSampler", "halves", "numbered", "split"]

Class: TypeAlias = str | int | bool
Task: TypeAlias = Literal["classification", "multilabel", "regression"]
_MOST_CLASSES = 1 << 20
_SHOWN = 10


class LabelError(InputError):
    """Labels that cannot be learned, or that the model does not know."""


@dataclass(frozen=True)
class Labels:
    """What the outputs of a model stand for: classes, or a number's mean and deviation.

    >>> labels = Labels.of(["no", "yes", "no"])
    >>> labels.classes, labels.numbers(["yes", "no"]).tolist()
    (('no', 'yes'), [1, 0])
    >>> labels.numbers(["perhaps"])
    Traceback (most recent call last):
        ...
    laconic.training.data.LabelError: document 0 is of class 'perhaps', unseen in training; known are 'no', 'yes'
    >>> Labels.of([["a"], [], ["b", "a"]]).task
    'multilabel'
    >>> Labels.of([0.5, 1.5])
    Labels(task='regression', classes=(), mean=1.0, std=0.5)
    """  # noqa: E501

    task: Task
    classes: tuple[Class, ...] = ()
    """Of classification and multilabel, sorted: numbers, then texts."""
    mean: float = 0.0
    std: float = 1.0

    @classmethod
    def of(cls, values: Iterable[object], task: str = "auto") -> Labels:
        """Return what the labels of training mean; LabelError for missing or unfit ones."""
        plain = [_plain(value, row) for row, value in enumerate(values)]
        if not plain:
            raise LabelError("there are no documents to learn from")
        if task == "auto":
            task = _task(plain)
        if task == "regression":
            numbers = np.array([_number(value, row) for row, value in enumerate(plain)])
            deviation = float(numbers.std())
            return cls("regression", (), float(numbers.mean()), deviation or 1.0)
        if task == "multilabel":
            found = {each for row, value in enumerate(plain) for each in _several(value, row)}
            if not found:
                raise LabelError("every document's list of labels is empty")
            return cls("multilabel", _sorted(found))
        if task != "classification":
            raise LabelError(f"no task {task!r}: classification, multilabel, regression or auto")
        return cls(
            "classification", _sorted({_class(value, row) for row, value in enumerate(plain)})
        )

    @property
    def outputs(self) -> int:
        """How many numbers the model gives for a document."""
        return max(1, len(self.classes))

    def numbers(self, values: Iterable[object]) -> npt.NDArray[Any]:
        """Return labels as a GrammarDataset takes them.

        int64 [N] for classes, float32 [N, K] of zeros and ones for several labels, standardised
        float32 [N] for numbers. LabelError, with the row, for a class that is unknown, or none.
        """
        plain = [_plain(value, row) for row, value in enumerate(values)]
        if self.task == "regression":
            numbers = np.array([_number(value, row) for row, value in enumerate(plain)], np.float64)
            return ((numbers - self.mean) / self.std).astype(np.float32)
        places = {each: place for place, each in enumerate(self.classes)}
        if self.task == "classification":
            found = (self._place(places, _class(v, row), row) for row, v in enumerate(plain))
            return np.fromiter(found, np.int64, len(plain))
        targets = np.zeros((len(plain), len(places)), np.float32)
        for row, value in enumerate(plain):
            for each in _several(value, row):
                targets[row, self._place(places, each, row)] = 1
        return targets

    def _place(self, places: dict[Class, int], value: Class, row: int) -> int:
        if value in places:
            return places[value]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        known = ", ".join(repr(each) for each in self.classes[:_SHOWN]) + more
        reason = f"is of class {value!r:.100}, unseen in training; known are {known}"
        raise LabelError(f"document {row} {reason}")

    def restore(self, numbers: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return standardised numbers in the units of the labels."""
        return np.asarray(numbers, np.float64) * self.std + self.mean

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return {
            "task": self.task,
            "classes": list(self.classes),
            "mean": self.mean,
            "std": self.std,
        }

    @classmethod
    def from_json(cls, data: object) -> Labels:
        """Return what to_json gave; LabelError for anything else."""
        if not isinstance(data, dict) or data.keys() != {"task", "classes", "mean", "std"}:
            raise LabelError("labels must have task, classes, mean and std")
        task, classes, mean, std = data["task"], data["classes"], data["mean"], data["std"]
        if task not in ("classification", "multilabel", "regression"):
            raise LabelError(f"no task {task!r:.100}")
        if not isinstance(classes, list) or len(classes) > _MOST_CLASSES:
            raise LabelError("classes must be a list")
        if not all(isinstance(each, str | int) for each in classes):
            raise LabelError("classes must be texts and whole numbers")
        if bool(classes) == (task == "regression") or len(set(classes)) < len(classes):
            raise LabelError(f"these are no classes of {task}")
        for value in (mean, std):
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise LabelError("mean and std must be numbers")
        return cls(task, tuple(classes), float(mean), float(std))


@dataclass(frozen=True)
class Part:
    """Some documents of a dataset: those that train, or those that validate."""

    dataset: GrammarDataset
    rows: Int64s

    @property
    def targets(self) -> npt.NDArray[Any]:
        """Their labels as numbers; LabelError if there are none."""
        if self.dataset.labels is None:
            raise LabelError("these documents have no labels; training and evaluation need them")
        return self.dataset.labels.numpy()[self.rows]

    @property
    def sequence_lengths(self) -> Int64s:
        """The symbols of each, int64 [N]."""
        return self.dataset.sequence_lengths[self.rows]

    def batched_for(self, model: ModelConfig, dropout: float = 0.0) -> Part:
        """Return the part with batches for a model; when they train, symbols are expanded."""
        dataset = copy(self.dataset)
        dataset.counted, dataset.in_place, dataset.dropout = model.counted, model.in_place, dropout
        return Part(dataset, self.rows)

    def frequencies(self, counted: HashedCounter) -> Int64s:
        """Return in how many of the documents each n-gram and phrase occurs, int64 [columns]."""
        total = np.zeros(counted.columns, np.int64)
        for rows in portions(self.dataset.grammars, self.rows):
            counts = counted.count(self.dataset.grammars.take(rows))
            total += np.bincount(counts.indices, minlength=counted.columns)
        return total

    def shared(self, local: NgramPlacer) -> npt.NDArray[np.bool_]:
        """Return in which buckets two or more of the documents have n-grams, bool [buckets]."""
        shared = np.zeros(local.buckets, np.bool_)
        owners = np.full(local.buckets, -1)  # one of the documents that have each
        before = 0
        for rows in portions(self.dataset.grammars, self.rows):
            forest = plant(self.dataset.grammars.take(rows), merge=False)
            documents, buckets = local.by_document(forest, wanted=~shared)
            documents += before
            before += len(rows)
            new = owners[buckets] < 0
            owners[buckets[new]] = documents[new]
            shared[buckets[owners[buckets] != documents]] = True
        return shared

    def __len__(self) -> int:
        return len(self.rows)


class RowSampler(Sampler[list[int]]):
    """Batches of a part, as rows of its dataset; with `seed`, for training (batching.Rows)."""

    def __init__(self, sampler: LengthSampler, rows: Int64s, seed: int | None = None) -> None:
        self.sampler, self.rows, self.seed = sampler, rows, seed

    def __iter__(self) -> Iterator[list[int]]:
        yield from map(self._rows, self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)

    def largest(self) -> list[int]:
        """Return the batch of this epoch that has most symbols, padding included."""
        lengths = self.sampler.lengths
        return self._rows(max(self.sampler, key=lambda at: len(at) * int(lengths[at].max())))

    def _rows(self, places: list[int]) -> list[int]:
        rows: list[int] = self.rows[places].tolist()
        if self.seed is None:
            return rows
        seeded = Rows(rows)
        seeded.seed = self.seed, self.sampler.epoch
        return seeded


def numbered(
    source: Corpus | GrammarDataset, labels: Labels | None, task: str
) -> tuple[GrammarDataset, Labels]:
    """Return a source of documents with its labels as numbers, and what they mean.

    Without `labels`, a corpus's own say what there is to learn. LabelError if they cannot.
    """
    if isinstance(source, Corpus):
        values = source.labels
        labels = Labels.of(values, task) if labels is None else labels
        return GrammarDataset(source, labels.numbers(values)), labels
    if labels is None:
        raise TypeError("pass labels=Labels(…), which say what the dataset's numbers mean")
    return source, labels


def halves(
    source: Corpus | GrammarDataset,
    valid: Corpus | GrammarDataset | None,
    labels: Labels | None,
    config: TrainingConfig,
) -> tuple[Part, Part | None, Labels]:
    """Return the documents that train, those that validate (None: nobody), and their labels."""
    dataset, labels = numbered(source, labels, config.task)
    rows = np.arange(len(dataset))
    if valid is not None:
        checked, _ = numbered(valid, labels, config.task)
        if checked.grammars.alphabet_size != dataset.grammars.alphabet_size:
            raise LabelError("the validation's alphabet is not the training's; compress it alike")
        return Part(dataset, rows), Part(checked, np.arange(len(checked))), labels
    train, rest = split(labels, Part(dataset, rows).targets, config.holdout, config.seed)
    return Part(dataset, train), Part(dataset, rest) if len(rest) else None, labels


def split(
    labels: Labels, targets: npt.NDArray[Any], share: float, seed: int
) -> tuple[Int64s, Int64s]:
    """Return the rows that train and those that validate, each in order; O(N log N).

    Classes have about the same share in both, and none is only in validation. At least one document
    trains; one validates if the share is more than 0 and there are two (of a class).
    """
    rng = np.random.default_rng([seed, 0x5117])
    order = rng.permutation(len(targets))
    groups = [order]
    if labels.task == "classification":
        groups = [order[targets[order] == number] for number in range(len(labels.classes))]
    wanted = np.array([len(group) * share for group in groups])
    counts = np.floor(wanted).astype(np.int64)
    rest = round(wanted.sum()) - counts.sum()
    # The largest remainders first, so that the sum is right to one document.
    for place in np.argsort(counts - wanted, kind="stable")[:rest]:
        counts[place] += 1
    counts = np.minimum(counts, [max(0, len(group) - 1) for group in groups])
    largest = int(np.argmax([len(group) for group in groups]))
    if share > 0 and counts.sum() == 0 and len(groups[largest]) > 1:
        counts[largest] = 1
    valid = [group[:count] for group, count in zip(groups, counts, strict=True)]
    train = [group[count:] for group, count in zip(groups, counts, strict=True)]
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(valid))


def _plain(value: object, row: int) -> object:
    """Return NumPy's values as Python's; LabelError for what is missing."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        raise LabelError(f"document {row} has no label; give it one, or leave it out")
    return value


def _task(values: Sequence[object]) -> Task:
    if any(isinstance(value, list | tuple | set | frozenset) for value in values):
        return "multilabel"
    if any(isinstance(value, float) for value in values) or _are_fractions(values):
        return "regression"
    return "classification"


def _are_fractions(values: Sequence[object]) -> bool:
    """Whether all are texts of numbers, as CSV has them, and some of them no integers."""
    try:
        numbers = [float(value) for value in values if isinstance(value, str)]
    except ValueError:
        return False
    return len(numbers) == len(values) and any(number % 1 for number in numbers)


def _class(value: object, row: int) -> Class:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return str(value)  # of the type itself, not of NumPy's
    if isinstance(value, int):
        return value
    kind = type(value).__name__
    raise LabelError(f"document {row} has a label of type {kind}; classes are texts or integers")


def _several(value: object, row: int) -> list[Class]:
    if not isinstance(value, list | tuple | set | frozenset):
        kind = type(value).__name__
        raise LabelError(f"document {row} has a {kind} for a label; several labels are a list")
    return [_class(each, row) for each in value]


def _number(value: object, row: int) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise LabelError(f"document {row} has the label {value!r:.100}; regression needs numbers")
    return number


def _sorted(found: set[Class]) -> tuple[Class, ...]:
    return tuple(sorted(found, key=lambda each: (isinstance(each, str), each)))
