"""Which documents train, and which are held out to validate."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset
from laconic.corpus import Corpus
from laconic.corpus.stored import StoredGrammars, Watch
from laconic.errors import InputError
from laconic.tasks import LabelError, Task, task_of
from laconic.training.settings import TrainingConfig

_MOST_HELD_OUT = 2_500  # documents, that tell losses apart well enough: all others may train


class Divided(NamedTuple):
    """Documents that train, those that validate (None: no documents), and their task."""

    training: GrammarDataset
    validation: GrammarDataset | None
    task: Task
    rows: Int64s
    """Of the source, that train."""
    groups: Int64s | None = None
    """Of those that train, then of those that validate, by number, if there are groups."""
    weights: npt.NDArray[np.float32] | None = None
    """Likewise, if there are weights; documents that only validate have 1."""


def divide(
    source: Corpus | GrammarDataset,
    valid: Corpus | GrammarDataset | None,
    task: Task | None,
    config: TrainingConfig,
    watch: Watch | None = None,
    groups: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
) -> Divided:
    """Hold out documents of the source, unless `valid` has others that validate.

    `watch` is as in StoredGrammars. Documents of one group, of `groups` [N], stay together;
    `weights`, float [N], are the source's documents', too.
    """
    buffer = config.buffer_bytes
    dataset, task = labelled_dataset(source, task, config.task, buffer, watch)
    together = None if groups is None else _numbered(groups, len(dataset))
    weighed = None if weights is None else _checked(weights, len(dataset))
    if valid is not None:
        if isinstance(valid, Corpus) and isinstance(source, Corpus):
            valid.check_like(source.codec, source.alphabet, source.rulebook)
        validation, _ = labelled_dataset(valid, task, config.task, buffer, watch)
        if validation.grammars.alphabet_size != dataset.grammars.alphabet_size:
            raise LabelError("the validation's alphabet is not the training's; compress it alike")
        if together is not None:  # Nobody knows those of others: each is one.
            apart = 1 + together.max() + np.arange(len(validation))
            together = np.concatenate([together, apart])
        if weighed is not None:
            weighed = np.concatenate([weighed, np.ones(len(validation), np.float32)])
        return Divided(dataset, validation, task, np.arange(len(dataset)), together, weighed)
    if together is None:
        rows, rest = split(task, targets_of(dataset), config.holdout, config.seed)
    else:
        rows, rest = split_groups(together, targets_of(dataset), task, config.holdout, config.seed)
        together = together[np.concatenate([rows, rest])]
    held_out = dataset.select(rest) if len(rest) else None
    weighed = None if weighed is None else weighed[np.concatenate([rows, rest])]
    return Divided(dataset.select(rows), held_out, task, rows, together, weighed)


def automatic_share(documents: int) -> float:
    """Return the share of so many documents that automatic training holds out by itself.

    >>> automatic_share(5_000), automatic_share(25_000)
    (0.2, 0.1)
    """
    return min(TrainingConfig.holdout, _MOST_HELD_OUT / max(1, documents))


def labelled_dataset(
    source: Corpus | GrammarDataset,
    task: Task | None,
    name: str,
    buffer: int | None = None,
    watch: Watch | None = None,
) -> tuple[GrammarDataset, Task]:
    """Return a source of documents with its labels as numbers, and the task that they set.

    Without `task`, a corpus's own labels set the one of this name. LabelError if they cannot. With
    `buffer`, a corpus's grammars stay on disk, and so many bytes of them are held at a time.
    """
    if isinstance(source, Corpus):
        values = source.labels
        task = task_of(values, name) if task is None else task
        numbers = task.numbers(values)
        del values
        grammars = source.grammars if buffer is None else StoredGrammars(source, buffer, watch)
        return GrammarDataset(grammars, numbers), task
    if task is None:
        raise TypeError("pass task=…, which says what the dataset's numbers mean")
    return source, task


def targets_of(dataset: GrammarDataset) -> npt.NDArray[Any]:
    """Return the labels of documents as numbers; LabelError if there are none."""
    if dataset.labels is None:
        raise LabelError("these documents have no labels; training and evaluation need them")
    return dataset.labels.numpy()


def _checked(weights: npt.ArrayLike, documents: int) -> npt.NDArray[np.float32]:
    """Return weights, float32 [N]; InputError unless there is one for each document, to add up."""
    array = np.asarray(weights, np.float32)
    if array.shape != (documents,):
        raise InputError(f"weights of shape {list(array.shape)} for {documents} documents")
    if not np.isfinite(array).all() or array.min(initial=0) < 0 or not array.any():
        raise InputError("weights of documents must be finite, at least 0, and not all of them 0")
    return array


def _numbered(groups: npt.ArrayLike, documents: int) -> Int64s:
    """Return the group of each document as a number, int64 [N]."""
    names = np.asarray(groups, object)
    if names.shape != (documents,):
        raise LabelError(f"groups of shape {list(names.shape)} for {documents} documents")
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(str(name), len(numbers)) for name in names], np.int64)


def split_groups(
    groups: Int64s, targets: npt.NDArray[Any], task: Task, share: float, seed: int
) -> tuple[Int64s, Int64s]:
    """Return the rows that train and those that validate, whole groups in each, at random.

    Those that validate are about the share of all, and at most half of any class, as far as groups
    allow: at least one validates, and one trains. LabelError if there is but one.
    """
    sizes = np.bincount(groups)
    if len(sizes) < 2 and share > 0:
        raise LabelError("all documents are of one group; some must train, and others validate")
    classes = _classes_of(groups, targets, task)
    room, most = share * len(groups), np.zeros(task.outputs)
    for places, counts in classes:
        most[places] += counts / 2
    held = list[int]()
    order = np.random.default_rng([seed, 0x6409]).permutation(len(sizes)).tolist()
    for group in order if share > 0 else ():
        places, counts = classes[group]
        if sizes[group] <= room and (counts <= most[places]).all():
            held.append(group)
            room -= sizes[group]
            most[places] -= counts
    if share > 0 and not held:
        held = [min(order, key=lambda group: sizes[group])]
    out = np.isin(groups, held[: len(sizes) - 1])
    return np.flatnonzero(~out), np.flatnonzero(out)


def _classes_of(
    groups: Int64s, targets: npt.NDArray[Any], task: Task
) -> list[tuple[Int64s, Int64s]]:
    """Return the classes that each group has, and in how many documents; of numbers, none."""
    order = np.argsort(groups, kind="stable")
    found = []
    for rows in np.split(order, np.cumsum(np.bincount(groups))[:-1]):
        of = targets[rows] if task.single else np.nonzero(targets[rows] > 0)[-1]
        found.append(np.unique(of if task.things else of[:0], return_counts=True))
    return found


def split(task: Task, targets: npt.NDArray[Any], share: float, seed: int) -> tuple[Int64s, Int64s]:
    """Return the rows that train and those that validate, each in order; O(N log N).

    Classes have about the same share in both, and none is only in validation. At least one document
    trains; one validates if the share is more than 0 and there are two (of a class).
    """
    rng = np.random.default_rng([seed, 0x5117])
    order = rng.permutation(len(targets))
    groups = [order]
    if task.single:
        groups = [order[targets[order] == place] for place in range(task.outputs)]
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
