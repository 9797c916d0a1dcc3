"""Batches of documents as tensors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from laconic.batching.packing import laid_out, moved, packed, packed_size
from laconic.batching.sampler import Numbers
from laconic.errors import InputError
from laconic.forest import Forest, plant
from laconic.grammar import Grammars
from laconic.ngrams import Counts
from laconic.ngrams.hashed import HashedCounter
from laconic.ngrams.in_place import NgramPlacer
from laconic.show import how_many


class Bag(NamedTuple):
    """What the documents of a batch count, as entries of a sparse matrix, row after row."""

    documents: Tensor
    """int64 [K]: the document of each entry, ascending."""
    buckets: Tensor
    """int64 [K]: which n-gram or phrase, hashed."""
    counts: Tensor
    """float32 [K]: how often."""


class NgramsInPlace(NamedTuple):
    """N-grams in their places (laconic.ngrams.in_place), each in a bucket."""

    nodes: Tensor
    """int64 [K]: the node of each that lies within one."""
    node_buckets: Tensor
    """int64 [K]."""
    places: Tensor
    """int64 [L]: t * B + d for each that ends in symbol t of document d and begins before it."""
    place_buckets: Tensor
    """int64 [L]."""


@dataclass(frozen=True, eq=False, repr=False)
class Batch:
    """Documents as tensors: one forest of their rules (laconic.forest) and padded sequences.

    Nodes 0..alphabet_size-1 are the terminals; node alphabet_size + i has the operands children[i].
    Level l is the rows level_offsets[l]..level_offsets[l + 1]-1 of `children`. Those offsets are
    Python's integers, so that a loop over levels never waits for the device.
    """

    alphabet_size: int
    children: Tensor
    """int32 [M, 2]."""
    level_offsets: tuple[int, ...]
    symbols: Tensor
    """int32 [B, T], in nodes, 0 after the end; T is the longest document's, at least 1."""
    sequence_lengths: Tensor
    """int64 [B]: symbols of each document, may be 0."""
    node_lengths: Tensor
    """int64 [alphabet_size + M]: terminals that each node stands for, 2^63 - 1 means more."""
    node_hashes: Tensor
    """int64 [alphabet_size + M]: 64 bits that depend on those terminals alone, in every batch."""
    node_shared: Tensor
    """int32 [alphabet_size + M]: the rule of the rulebook that each node is, or -1."""
    labels: Tensor | None
    """int64 [B], float32 [B] or float32 [B, K]."""
    rows: Tensor | None
    """int64 [B]: which documents of the dataset these are."""
    bag: Bag | None = None
    """Their n-grams and phrases, for models that count them."""
    in_place: NgramsInPlace | None = None
    """Where their n-grams stand, for models that read them in their places."""

    @property
    def mask(self) -> Tensor:
        """Where there are symbols and no padding, bool [B, T]; computed each time."""
        places = torch.arange(self.symbols.shape[1], device=self.sequence_lengths.device)
        return places < self.sequence_lengths.unsqueeze(1)

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> Batch:
        """Return the batch with its tensors on a device; `non_blocking` is for pinned ones."""
        return self._with(lambda tensors: moved(tensors, device, non_blocking))

    def pin_memory(self) -> Batch:
        """Return the batch in memory that a GPU reads by itself, all at once; DataLoader's way."""
        return self._with(lambda tensors: packed(tensors, pin_memory=True))

    def in_buffer(self, buffer: Callable[[int], Tensor]) -> Batch:
        """Return a batch of these shapes in a buffer of so many bytes, with whatever is there."""
        return self._with(lambda tensors: laid_out(tensors, buffer(packed_size(tensors))))

    def _with(self, change: Callable[[list[Tensor]], list[Tensor]]) -> Batch:
        """Return the batch with other tensors, given all of them."""
        fields = vars(self).items()
        kept = [value if isinstance(value, tuple) else (value,) for _, value in fields]
        changed = iter(change([each for some in kept for each in some if isinstance(each, Tensor)]))

        def new(value: Any) -> Any:
            if isinstance(value, Bag | NgramsInPlace):
                return type(value)(*map(new, value))
            return next(changed) if isinstance(value, Tensor) else value

        return Batch(**{name: new(value) for name, value in fields})

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.symbols)

    def __repr__(self) -> str:
        places = how_many(self.symbols.shape[1], "symbol")
        return (
            f"<Batch: {how_many(len(self), 'document')} of up to {places}, "
            f"{how_many(len(self.children), 'node')} on "
            f"{how_many(len(self.level_offsets) - 1, 'level')}, {self.symbols.device}>"
        )


def collate(
    grammars: Grammars,
    labels: Numbers | None = None,
    rows: Numbers | None = None,
    merge: bool = True,
    counted: HashedCounter | None = None,
    in_place: NgramPlacer | None = None,
) -> Batch:
    """Return grammars as one batch on the CPU, which shares no memory with them.

    `labels` [B] or [B, K] and `rows` [B] go along: labels as int64 if they are integers in one
    dimension, as float32 otherwise. Without `merge`, equal rules of documents stay apart. With
    `counted`, the batch has a bag of their n-grams and phrases, with `in_place` the places of their
    n-grams. Raises ValueError for other numbers than the documents'. O(rules + B * T +
    alphabet_size), and what counting takes.

    >>> from laconic import compress_many
    >>> batch = collate(compress_many(["abab", "", "xababab"]), labels=[1, 0, 1])
    >>> batch
    <Batch: 3 documents of up to 4 symbols, 1 node on 1 level, cpu>
    >>> batch.symbols.tolist(), batch.sequence_lengths.tolist()
    ([[256, 256, 0, 0], [0, 0, 0, 0], [120, 256, 256, 256]], [2, 0, 4])
    >>> batch.children.tolist(), batch.node_lengths[[97, 256]].tolist(), batch.level_offsets
    ([[97, 98]], [1, 2], (0, 1))
    """
    forest = plant(grammars, merge)
    size, documents = forest.alphabet_size, len(forest)
    lengths = np.diff(forest.sequence_offsets)
    symbols = np.zeros((documents, lengths.max(initial=1)), np.int32)
    symbols[np.arange(symbols.shape[1]) < lengths[:, None]] = forest.sequence
    return Batch(
        alphabet_size=size,
        # A tensor can be written to and the forest cannot: torch warns of what would not be copied.
        children=torch.from_numpy(forest.children.copy()),
        level_offsets=tuple(forest.level_offsets.tolist()),
        symbols=torch.from_numpy(symbols),
        sequence_lengths=torch.from_numpy(lengths),
        node_lengths=torch.from_numpy(forest.lengths.copy()),
        node_hashes=torch.from_numpy(forest.hashes.view(np.int64).copy()),
        node_shared=torch.from_numpy(forest.shared.copy()),
        labels=None if labels is None else as_labels(labels, documents),
        rows=None if rows is None else _rows(rows, documents),
        bag=None if counted is None else bag_of(grammars, counted),
        in_place=None if in_place is None else _in_place(forest, in_place),
    )


def bag_of(grammars: Grammars, counted: HashedCounter, threads: int | None = None) -> Bag:
    """Return what the documents count."""
    return as_bag(counts_of(grammars, counted, threads))


def counts_of(grammars: Grammars, counted: HashedCounter, threads: int | None = None) -> Counts:
    """Return what the documents of a batch count, as a sparse matrix."""
    # A loader's workers are as many as there are processors for, without threads of their own.
    return counted.count(grammars, 1 if get_worker_info() is not None else threads)


def as_bag(counts: Counts) -> Bag:
    """Return counts as tensors."""
    documents = np.repeat(np.arange(len(counts.indptr) - 1), np.diff(counts.indptr))
    return Bag(
        torch.from_numpy(documents),
        torch.from_numpy(counts.indices.astype(np.int64)),
        torch.from_numpy(counts.data.astype(np.float32)),
    )


def _in_place(forest: Forest, ngrams: NgramPlacer) -> NgramsInPlace:
    placed = ngrams.place(forest)
    arrays = placed.nodes, placed.node_buckets, placed.places, placed.place_buckets
    return NgramsInPlace(*(torch.from_numpy(each.astype(np.int64)) for each in arrays))


def as_labels(labels: Numbers, documents: int) -> Tensor:
    """Return labels of so many documents as a tensor; ValueError or TypeError if unfit."""
    array = np.asarray(labels)
    if array.ndim not in (1, 2) or len(array) != documents:
        raise InputError(
            f"labels of shape {list(array.shape)} for {how_many(documents, 'document')}; "
            "pass one number or one row of numbers for each"
        )
    if array.size and array.dtype.kind not in "biuf":
        raise TypeError(f"labels must be numbers, not {array.dtype}; number the classes from 0")
    if array.ndim == 1 and array.dtype.kind != "f":
        return torch.from_numpy(array.astype(np.int64))
    with np.errstate(over="ignore"):  # what becomes infinite is found below
        numbers = array.astype(np.float32)
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        where, value = bad[0].tolist(), array[tuple(bad[0])]
        raise InputError(f"label {where} is {value}, no finite float32; leave such documents out")
    return torch.from_numpy(numbers)


def _rows(rows: Numbers, documents: int) -> Tensor:
    array = np.asarray(rows).astype(np.int64)
    if array.shape != (documents,):
        raise InputError(f"rows of shape {list(array.shape)} for {how_many(documents, 'document')}")
    return torch.from_numpy(array)
