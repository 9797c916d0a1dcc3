"""Documents, in memory or on disk, from which PyTorch's loaders take batches by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import index
from typing import Any

import numpy as np
import torch
from pyarrow import types
from torch.utils.data import Dataset

from laconic.arrays import Int64s
from laconic.batching.batch import Bag, Batch, as_labels, bag_of, collate
from laconic.batching.grammar_dropout import expand_at_random
from laconic.batching.kept_bags import KeptBags
from laconic.batching.sampler import Numbers, RowGroups
from laconic.corpus import Corpus
from laconic.corpus.stored import StoredGrammars
from laconic.errors import InputError
from laconic.grammar import Grammars
from laconic.ngrams.hashed import HashedCounter
from laconic.ngrams.in_place import NgramPlacer
from laconic.show import how_many


class GrammarDataset(Dataset[Batch]):
    """Documents, in memory or streamed from StoredGrammars, made into batches by row.

    Labels are as in collate. A corpus gives its own where they are numbers and none are passed; its
    class names are left alone, because training numbers them: pass the numbers. Raises ValueError
    if documents and labels differ in number, or a label of the corpus is missing.

    `rows` (int [N]) are the documents of the source that the dataset has, and labels are then
    theirs; by default it has all. `merge`, `counted` and `in_place` are as in collate: a model's
    config says which n-grams it needs. `dropout` is the share of symbols that batches with a seed
    have expanded at random. `threads` count n-grams, by default one for each processor. `kept` has
    bags of documents of this source, counted once; it serves copies that count the same.

    >>> from laconic import compress_many
    >>> dataset = GrammarDataset(compress_many(["abab", "banana", "abc"]), labels=[0, 1, 0])
    >>> dataset.sequence_lengths.tolist()
    [2, 4, 3]
    >>> batch = dataset.batch([2, 0])
    >>> batch.rows.tolist(), batch.labels.tolist(), batch.sequence_lengths.tolist()
    ([2, 0], [0, 0], [3, 2])
    >>> dataset.select([1, 2]).batch([0]).labels.tolist()
    [1]
    """

    def __init__(
        self,
        source: Grammars | StoredGrammars | Corpus,
        labels: Numbers | None = None,
        *,
        rows: Numbers | None = None,
        merge: bool = True,
        counted: HashedCounter | None = None,
        in_place: NgramPlacer | None = None,
        dropout: float = 0.0,
        threads: int | None = None,
        kept: KeptBags | None = None,
    ) -> None:
        if isinstance(source, Corpus):
            labels = _numbers_of(source) if labels is None else labels
            source = source.grammars
        if not isinstance(source, Grammars | StoredGrammars):
            raise TypeError(f"a dataset is of Grammars or a Corpus, not {type(source).__name__}")
        self.grammars = source
        self.rows: Int64s = np.arange(len(source)) if rows is None else np.asarray(rows, np.int64)
        self.labels = None if labels is None else as_labels(labels, len(self.rows))
        self.merge, self.counted, self.in_place = merge, counted, in_place
        self.dropout, self.threads, self.kept = dropout, threads, kept

    def changed(self, **arguments: Any) -> GrammarDataset:
        """Return the dataset with other arguments of the constructor; the grammars are shared."""
        every = vars(self) | arguments
        return GrammarDataset(every.pop("grammars"), **every)

    def select(self, rows: Numbers) -> GrammarDataset:
        """Return a dataset of some of the documents, which shares the grammars."""
        chosen = np.asarray(rows, np.int64)
        labels = None if self.labels is None else self.labels.numpy()[chosen]
        return self.changed(rows=self.rows[chosen], labels=labels)

    @property
    def sequence_lengths(self) -> Int64s:
        """The symbols of each document's sequence, int64 [N]: what LengthSampler wants."""
        return np.diff(self.grammars.sequence_offsets)[self.rows]

    def lengths_of(self, rows: Sequence[int] | Int64s) -> Int64s:
        """Return the symbols of some documents' sequences, int64 [n], in O(n)."""
        chosen = self.rows[np.asarray(rows, np.int64)]
        offsets = self.grammars.sequence_offsets
        lengths: Int64s = offsets[chosen + 1] - offsets[chosen]
        return lengths

    @property
    def row_groups(self) -> RowGroups | None:
        """How its documents lie on disk, which LengthSampler wants, too; None in memory."""
        if isinstance(self.grammars, Grammars):
            return None
        starts = np.searchsorted(self.rows, self.grammars.starts)
        return RowGroups(starts, self.grammars.sizes, self.grammars.buffer)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, row: int) -> Batch:
        return self.batch([index(row)])

    def __getitems__(self, rows: Sequence[int]) -> Batch:
        """Return some documents as one batch; PyTorch's DataLoader calls this."""
        return self.batch(rows)

    def batch(self, rows: Sequence[int] | Int64s, seed: Sequence[int] | None = None) -> Batch:
        """Return some documents as one batch, in that order.

        With `seed`, symbols are expanded at random; how depends on it and the documents' rows of
        the source alone.
        """
        places = np.asarray(rows, None if len(rows) else np.int64)
        taken = self.rows[places]
        grammars = self.grammars.take(taken)
        places = places.astype(np.int64) % max(1, len(self))
        labels = None if self.labels is None else self.labels[torch.from_numpy(places)]
        read = grammars
        if self.dropout and seed is not None:
            read = expand_at_random(grammars, self.dropout, seed, taken)
        batch = collate(read, labels, places, self.merge, in_place=self.in_place)
        if self.counted is None:
            return batch
        # Of the documents as they are: their n-grams are the same, but phrases would change.
        return replace(batch, bag=self._bag(taken, grammars, self.counted))

    def _bag(self, rows: Int64s, grammars: Grammars, counted: HashedCounter) -> Bag:
        if self.kept is None or self.kept.counted != counted:
            return bag_of(grammars, counted, self.threads)
        return self.kept.bag_of(rows, grammars, self.threads)

    def __repr__(self) -> str:
        labels = "without labels" if self.labels is None else f"labels {list(self.labels.shape)}"
        return f"<GrammarDataset: {how_many(len(self), 'document')}, {labels}>"


def _numbers_of(corpus: Corpus) -> list[Any] | None:
    name = corpus.about.label
    if name is None or name not in corpus.schema.names:
        return None
    kind = corpus.schema.field(name).type
    if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        return None
    labels = corpus.labels
    if None in labels:
        row = labels.index(None)
        raise InputError(f"it has no {name!r}; pass labels, or select the others", document=row)
    return labels
