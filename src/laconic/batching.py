"""Batches of documents as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

try:
    import torch
except ModuleNotFoundError as error:
    reason = "batches for training need the package torch: pip install torch, or 'laconic[train]'"
    raise ModuleNotFoundError(reason) from error
from pyarrow import types
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, get_worker_info

from laconic.arrays import Int64s
from laconic.bags import Counted, mixed
from laconic.corpus import Corpus
from laconic.expansion import expand_at_random
from laconic.forest import Forest, plant
from laconic.grammar import Grammars
from laconic.local_ngrams import LocalNgrams
from laconic.prefetch import ahead
from laconic.sampling import LengthSampler, Numbers
from laconic.show import several

__all__ = [
    "Bag",
    "Batch",
    "GrammarDataset",
    "LengthSampler",
    "Local",
    "Rows",
    "batches",
    "collate",
]


class Bag(NamedTuple):
    """What the documents of a batch count, as entries of a sparse matrix, row after row."""

    documents: Tensor
    """int64 [K]: the document of each entry, ascending."""
    buckets: Tensor
    """int64 [K]: which n-gram or phrase, hashed."""
    counts: Tensor
    """float32 [K]: how often."""


class Local(NamedTuple):
    """N-grams in their places (laconic.local_ngrams), each in a bucket."""

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
    counts: Tensor
    """int64 [B]: symbols of each document, may be 0."""
    node_lengths: Tensor
    """int64 [alphabet_size + M]: terminals that each node stands for, 2^63 - 1 means more."""
    node_hashes: Tensor
    """int64 [alphabet_size + M]: 64 bits that depend on those terminals alone, in every batch."""
    labels: Tensor | None
    """int64 [B], float32 [B] or float32 [B, K]."""
    rows: Tensor | None
    """int64 [B]: which documents of the dataset these are."""
    bag: Bag | None = None
    """Their n-grams and phrases, for models that count them."""
    local: Local | None = None
    """Where their n-grams stand, for models that read them in their places."""

    @property
    def mask(self) -> Tensor:
        """Where there are symbols and no padding, bool [B, T]; computed each time."""
        places = torch.arange(self.symbols.shape[1], device=self.counts.device)
        return places < self.counts.unsqueeze(1)

    def to(self, device: torch.device | str | int, non_blocking: bool = False) -> Batch:
        """Return the batch with its tensors on a device; `non_blocking` is for pinned ones."""
        return self._with(lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> Batch:
        """Return the batch in memory that a GPU reads by itself; DataLoader calls this."""
        return self._with(Tensor.pin_memory)

    def _with(self, change: Callable[[Tensor], Tensor]) -> Batch:
        fields: dict[str, Any] = dict(vars(self))
        for name, value in fields.items():
            fields[name] = change(value) if isinstance(value, Tensor) else value
        if self.bag is not None:
            fields["bag"] = Bag(*map(change, self.bag))
        if self.local is not None:
            fields["local"] = Local(*map(change, self.local))
        return Batch(**fields)

    def __len__(self) -> int:
        """The number of documents."""
        return len(self.symbols)

    def __repr__(self) -> str:
        places = several(self.symbols.shape[1], "symbol")
        return (
            f"<Batch: {several(len(self), 'document')} of up to {places}, "
            f"{several(len(self.children), 'node')} on "
            f"{several(len(self.level_offsets) - 1, 'level')}, {self.symbols.device}>"
        )


def collate(
    grammars: Grammars,
    labels: Numbers | None = None,
    rows: Numbers | None = None,
    merge: bool = True,
    counted: Counted | None = None,
    local: LocalNgrams | None = None,
) -> Batch:
    """Return grammars as one batch on the CPU, which shares no memory with them.

    `labels` [B] or [B, K] and `rows` [B] go along: labels as int64 if they are integers in one
    dimension, as float32 otherwise. Without `merge`, equal rules of documents stay apart. With
    `counted`, the batch has a bag of their n-grams and phrases, with `local` the places of their
    n-grams. Raises ValueError for other counts than the documents'. O(rules + B * T +
    alphabet_size), and what counting takes.

    >>> from laconic import compress_many
    >>> batch = collate(compress_many(["abab", "", "xababab"]), labels=[1, 0, 1])
    >>> batch
    <Batch: 3 documents of up to 4 symbols, 1 node on 1 level, cpu>
    >>> batch.symbols.tolist(), batch.counts.tolist()
    ([[256, 256, 0, 0], [0, 0, 0, 0], [120, 256, 256, 256]], [2, 0, 4])
    >>> batch.children.tolist(), batch.node_lengths[[97, 256]].tolist(), batch.level_offsets
    ([[97, 98]], [1, 2], (0, 1))
    """
    forest = plant(grammars, merge)
    size, documents = forest.alphabet_size, len(forest)
    counts = np.diff(forest.sequence_offsets)
    symbols = np.zeros((documents, counts.max(initial=1)), np.int32)
    symbols[np.arange(symbols.shape[1]) < counts[:, None]] = forest.sequence
    hashes = np.concatenate([_terminal_hashes(size), forest.hashes])
    return Batch(
        alphabet_size=size,
        # A tensor can be written to and the forest cannot: torch warns of what would not be copied.
        children=torch.from_numpy(forest.children.copy()),
        level_offsets=tuple(forest.level_offsets.tolist()),
        symbols=torch.from_numpy(symbols),
        counts=torch.from_numpy(counts),
        node_lengths=torch.from_numpy(np.concatenate([np.ones(size, np.int64), forest.lengths])),
        node_hashes=torch.from_numpy(hashes.view(np.int64)),
        labels=None if labels is None else _labels(labels, documents),
        rows=None if rows is None else _rows(rows, documents),
        bag=None if counted is None else _bag(grammars, counted),
        local=None if local is None else _local(forest, local),
    )


def _bag(grammars: Grammars, counted: Counted, threads: int | None = None) -> Bag:
    # A loader's workers are as many as there are processors for, without threads of their own.
    counts = counted.of(grammars, 1 if get_worker_info() is not None else threads)
    documents = np.repeat(np.arange(len(grammars)), np.diff(counts.indptr))
    return Bag(
        torch.from_numpy(documents),
        torch.from_numpy(counts.indices.astype(np.int64)),
        torch.from_numpy(counts.data.astype(np.float32)),
    )


def _local(forest: Forest, local: LocalNgrams) -> Local:
    placed = local.of(forest)
    arrays = placed.nodes, placed.node_buckets, placed.places, placed.place_buckets
    return Local(*(torch.from_numpy(each.astype(np.int64)) for each in arrays))


def _terminal_hashes(alphabet_size: int) -> npt.NDArray[np.uint64]:
    """Hashes of texts of one terminal, uint64 [alphabet_size], as core/fingerprint.hpp has them.

    The polynomial of such a text is its terminal plus 1, which MurmurHash3's end then spreads.
    """
    return mixed(np.arange(1, alphabet_size + 1, dtype=np.uint64))


def _labels(labels: Numbers, documents: int) -> Tensor:
    array = np.asarray(labels)
    if array.ndim not in (1, 2) or len(array) != documents:
        raise ValueError(
            f"labels of shape {list(array.shape)} for {several(documents, 'document')}; "
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
        raise ValueError(f"label {where} is {value}, no finite float32; leave such documents out")
    return torch.from_numpy(numbers)


def _rows(rows: Numbers, documents: int) -> Tensor:
    array = np.asarray(rows).astype(np.int64)
    if array.shape != (documents,):
        raise ValueError(f"rows of shape {list(array.shape)} for {several(documents, 'document')}")
    return torch.from_numpy(array)


class Rows(list[int]):
    """Rows of a dataset for training, with the seed of what is random in their documents."""

    seed: tuple[int, ...] = ()


class GrammarDataset(Dataset[Batch]):
    """Documents in memory, from which PyTorch's loaders take batches by row.

    Labels are as in collate. A corpus gives its own where they are numbers and none are passed; its
    class names are left alone, because training numbers them: pass the numbers. Raises ValueError
    if documents and labels differ in number, or a label of the corpus is missing.

    >>> from laconic import compress_many
    >>> dataset = GrammarDataset(compress_many(["abab", "banana", "abc"]), labels=[0, 1, 0])
    >>> dataset.counts.tolist()
    [2, 4, 3]
    >>> batch = dataset.__getitems__([2, 0])
    >>> batch.rows.tolist(), batch.labels.tolist(), batch.counts.tolist()
    ([2, 0], [0, 0], [3, 2])
    """

    counted: Counted | None = None
    """What of n-grams and phrases goes into batches; a model's config says what it needs."""
    local: LocalNgrams | None = None
    """Which n-grams batches tell the places of; a model's config says so, too."""
    dropout = 0.0
    """Share of symbols that rows with a seed (Rows) have expanded at random."""
    threads: int | None = None
    """That count n-grams; by default as many as there are processors."""

    def __init__(
        self, source: Grammars | Corpus, labels: Numbers | None = None, merge: bool = True
    ) -> None:
        if isinstance(source, Corpus):
            labels = _numbers_of(source) if labels is None else labels
            source = source.grammars
        if not isinstance(source, Grammars):
            raise TypeError(f"a dataset is of Grammars or a Corpus, not {type(source).__name__}")
        self.grammars = source
        self.labels = None if labels is None else _labels(labels, len(source))
        self.merge = merge

    @property
    def counts(self) -> Int64s:
        """The symbols of each document's sequence, int64 [N]: what LengthSampler wants."""
        return np.diff(self.grammars.sequence_offsets)

    def __len__(self) -> int:
        return len(self.grammars)

    def __getitem__(self, row: int) -> Batch:
        return self.__getitems__([index(row)])

    def __getitems__(self, rows: Sequence[int]) -> Batch:
        """Return some documents as one batch, in that order; DataLoader calls this."""
        places = np.asarray(rows)
        grammars = self.grammars.take(places)
        places = places.astype(np.int64) % max(1, len(self))
        labels = None if self.labels is None else self.labels[torch.from_numpy(places)]
        read = grammars
        if self.dropout and isinstance(rows, Rows):
            read = expand_at_random(grammars, self.dropout, rows.seed, places)
        batch = collate(read, labels, places, self.merge, local=self.local)
        if self.counted is None:
            return batch
        # Of the documents as they are: their n-grams are the same, but phrases would change.
        return replace(batch, bag=_bag(grammars, self.counted, self.threads))

    def __repr__(self) -> str:
        labels = "without labels" if self.labels is None else f"labels {list(self.labels.shape)}"
        return f"<GrammarDataset: {several(len(self), 'document')}, {labels}>"


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
        raise ValueError(f"document {row} has no {name!r}; pass labels, or select the others")
    return labels


def batches(
    dataset: GrammarDataset,
    sampler: Sampler[list[int]] | Sequence[list[int]],
    workers: int = 0,
    pin_memory: bool = False,
) -> Batches:
    """Return the batches that a sampler names, made in so many processes beside.

    The workers, each with the dataset in memory (shared where processes fork), live until the
    loader goes. `pin_memory` is for GPUs; then, without workers, threads make batches while the GPU
    is busy with those before. Torch's global random state is left alone.
    """
    if pin_memory and not workers:
        return _MadeAhead(dataset, sampler)
    return DataLoader(
        dataset,
        batch_sampler=sampler,
        num_workers=workers,
        collate_fn=_unchanged,
        pin_memory=pin_memory,
        persistent_workers=workers > 0,
        generator=torch.Generator(),
    )


class _MadeAhead:
    """Batches in pinned memory from threads: the core, which does most of it, needs no GIL."""

    threads = 2

    def __init__(
        self, dataset: GrammarDataset, sampler: Sampler[list[int]] | Sequence[list[int]]
    ) -> None:
        self.dataset, self.sampler = dataset, sampler

    def __iter__(self) -> Iterator[Batch]:
        return ahead(self._made, self.sampler, self.threads)

    def __len__(self) -> int:
        return len(self.sampler)  # type: ignore[arg-type]

    def _made(self, rows: list[int]) -> Batch:
        return self.dataset.__getitems__(rows).pin_memory()


Batches: TypeAlias = DataLoader[Batch] | _MadeAhead


def _unchanged(batch: Any) -> Any:
    return batch
