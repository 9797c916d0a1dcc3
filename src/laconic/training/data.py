"""Which documents train and which validate, and what is batched of them."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset, LengthSampler, Rows
from laconic.corpus import Corpus
from laconic.forest import plant
from laconic.ngrams.hashed import HashedCounter, portions
from laconic.ngrams.in_place import NgramPlacer
from laconic.nn.config import ModelConfig
from laconic.tasks import LabelError, Task, task_of
from laconic.training.settings import TrainingConfig

__all__ = ["Part", "RowSampler", "halves", "numbered", "split"]


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
    source: Corpus | GrammarDataset, task: Task | None, name: str
) -> tuple[GrammarDataset, Task]:
    """Return a source of documents with its labels as numbers, and the task that they set.

    Without `task`, a corpus's own labels set the one of this name. LabelError if they cannot.
    """
    if isinstance(source, Corpus):
        values = source.labels
        task = task_of(values, name) if task is None else task
        return GrammarDataset(source, task.numbers(values)), task
    if task is None:
        raise TypeError("pass task=…, which says what the dataset's numbers mean")
    return source, task


def halves(
    source: Corpus | GrammarDataset,
    valid: Corpus | GrammarDataset | None,
    task: Task | None,
    config: TrainingConfig,
) -> tuple[Part, Part | None, Task]:
    """Return the documents that train, those that validate (None: nobody), and their task."""
    dataset, task = numbered(source, task, config.task)
    rows = np.arange(len(dataset))
    if valid is not None:
        checked, _ = numbered(valid, task, config.task)
        if checked.grammars.alphabet_size != dataset.grammars.alphabet_size:
            raise LabelError("the validation's alphabet is not the training's; compress it alike")
        return Part(dataset, rows), Part(checked, np.arange(len(checked))), task
    train, rest = split(task, Part(dataset, rows).targets, config.holdout, config.seed)
    return Part(dataset, train), Part(dataset, rest) if len(rest) else None, task


def split(task: Task, targets: npt.NDArray[Any], share: float, seed: int) -> tuple[Int64s, Int64s]:
    """Return the rows that train and those that validate, each in order; O(N log N).

    Classes have about the same share in both, and none is only in validation. At least one document
    trains; one validates if the share is more than 0 and there are two (of a class).
    """
    rng = np.random.default_rng([seed, 0x5117])
    order = rng.permutation(len(targets))
    strata = task.strata(targets)
    groups = [order]
    if strata is not None:
        groups = [order[strata[order] == number] for number in range(task.outputs)]
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
