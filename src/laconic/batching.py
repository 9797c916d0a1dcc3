"""Batches of documents as tensors, and which documents go together into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

try:
    import torch
except ModuleNotFoundError as error:
    reason = "batches for training need the package torch: pip install torch, or 'laconic[train]'"
    raise ModuleNotFoundError(reason) from error
from pyarrow import types
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler

from laconic.arrays import Int64s
from laconic.corpus import Corpus
from laconic.forest import plant
from laconic.grammar import Grammars
from laconic.show import several

__all__ = ["Batch", "GrammarDataset", "LengthSampler", "batches", "collate"]

Numbers: TypeAlias = npt.ArrayLike | Tensor


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
) -> Batch:
    """Return grammars as one batch on the CPU, which shares no memory with them.

    `labels` [B] or [B, K] and `rows` [B] go along: labels as int64 if they are integers in one
    dimension, as float32 otherwise. Without `merge`, equal rules of documents stay apart. Raises
    ValueError for other counts than the documents'. O(rules + B * T + alphabet_size).

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
    )


def _terminal_hashes(alphabet_size: int) -> npt.NDArray[np.uint64]:
    """The hashes of texts of one terminal, by the rule of core/forest.cpp, uint64 [alphabet_size].

    The polynomial of such a text is its terminal plus 1, which MurmurHash3's end then spreads.
    """
    hashes = np.arange(1, alphabet_size + 1, dtype=np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashes = (hashes ^ hashes >> np.uint64(33)) * np.uint64(factor)
    return hashes ^ hashes >> np.uint64(33)


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
        return collate(grammars, labels, places, self.merge)

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


class LengthSampler(Sampler[list[int]]):
    """Yields the rows of one batch after another, documents of similar length together.

    `counts` (int [N]) are the symbols of each document. The documents are sorted by length and cut
    into batches: evenly into the fewest of at most `batch_size`, so that sizes differ by one at
    most; or, with `budget`, each as large as it can be with documents times the longest (what
    padding leaves to compute) at most `budget` and at most `batch_size` documents. A document
    longer than the budget is a batch alone.

    With `shuffle`, keys counts * u, u uniform in [1, 1 + jitter], are sorted instead, ties at
    random, and the batches come in random order. Cuts are made as if the p-th shortest document
    had (1 + jitter) times its count, so that every epoch has as many batches and the budget holds.
    Proof: each key is at most (1 + jitter) times its count, so the p-th smallest key is at most
    (1 + jitter) times the p-th smallest count; and a document's count is at most its key.

    An epoch is made from `seed` and its number alone, on any machine. `documents` takes that many
    at random, without repeats, for each epoch, and cuts anew.

    Of `processes`, each with a sampler of its own `rank` and `batch_size` and `budget` for itself,
    all have the same number of batches, none is empty, and together they take each document once.
    If N is no multiple of `processes`, somebody must take two documents at once, even if
    batch_size is 1, or if no two are within the budget; then they are of the shortest.

    Iterating again gives the same batches until set_epoch is called. O(N log N) per epoch. Raises
    ValueError for arguments outside their range.

    >>> sampler = LengthSampler([5, 1, 9, 1, 5, 8], batch_size=2, shuffle=False)
    >>> list(sampler), len(sampler)
    ([[1, 3], [0, 4], [5, 2]], 3)
    >>> list(LengthSampler([5, 1, 9, 1, 5, 8], budget=15, shuffle=False))
    [[1, 3, 0], [4], [5], [2]]
    """

    def __init__(
        self,
        counts: Numbers,
        batch_size: int = 126,
        *,
        budget: int | None = None,
        shuffle: bool = True,
        jitter: float = 0.1,
        seed: int = 0,
        rank: int = 0,
        processes: int = 1,
        documents: int | None = None,
    ) -> None:
        self.counts = _counts(counts)
        total = len(self.counts)
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, not {batch_size}")
        if budget is not None and budget < 1:
            raise ValueError(f"budget must be at least 1 symbol, not {budget}")
        if not 0 <= jitter <= 1:
            raise ValueError(f"jitter must be from 0 to 1, not {jitter}")
        if processes < 1:
            raise ValueError(f"processes must be at least 1, not {processes}")
        if not 0 <= rank < processes:
            raise ValueError(f"rank must be from 0 to {processes - 1}, not {rank}")
        if documents is not None and not 1 <= documents <= total:
            raise ValueError(f"documents must be from 1 to the {total} there are, not {documents}")
        taken = total if documents is None else documents
        if 0 < taken < processes:
            raise ValueError(f"{several(taken, 'document')} for {processes} processes; use fewer")
        self.batch_size, self.budget = batch_size, budget
        self.shuffle, self.jitter, self.seed = shuffle, jitter, seed
        self.rank, self.processes, self.documents = rank, processes, documents
        self.set_epoch(0)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Make the next iterations epoch `epoch`, without its first `start` batches.

        The training loop tells where it resumes, because only it knows what it has trained on:
        workers ask the sampler for batches ahead of that. ValueError for more than there are.
        """
        rng = np.random.default_rng([self.seed, epoch])
        order = rng.permutation(len(self.counts))[: self.documents]
        if not self.shuffle:
            order.sort()
        counts, jitter = self.counts[order], self.jitter if self.shuffle else 0.0
        # Not uniform(1, 1 + jitter): like this, rounding makes no key larger than its cap.
        keys = counts * (1 + jitter * rng.random(len(order)))
        caps = np.sort(counts * (1 + jitter))
        if self.budget is None:
            cuts = self._even_cuts(len(order))
        else:
            cuts = self._greedy_cuts(caps, self.budget)
        ranges = np.stack([cuts[:-1], cuts[1:]], axis=1)
        if not 0 <= start <= len(ranges):
            raise ValueError(f"start must be from 0 to the {len(ranges)} batches, not {start}")
        self._order = order[np.argsort(keys, kind="stable")]
        self._ranges = rng.permutation(ranges) if self.shuffle else ranges
        self.epoch, self.start = epoch, start

    def __len__(self) -> int:
        """The number of batches of the whole epoch, for this process."""
        return len(self._ranges)

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order  # set_epoch does not change an iteration that goes on
        for begin, end in self._ranges[self.start :].tolist():
            yield order[begin:end][self.rank :: self.processes].tolist()

    def _even_cuts(self, total: int) -> Int64s:
        number = -(-total // (self.batch_size * self.processes))
        # Matters for batch_size=1 only: ⌊total / number⌋ documents must go round all processes.
        number = min(number, total // self.processes)
        return np.arange(number + 1) * total // max(1, number)

    def _greedy_cuts(self, caps: npt.NDArray[np.float64], budget: int) -> Int64s:
        """Cuts by budget: every batch is rows of one document per process, as many as fit.

        What is too few for a row is added to the first one, where documents are shortest.
        """
        rest = len(caps) % self.processes
        ends = np.arange(rest + self.processes, len(caps) + 1, self.processes)
        # An empty document is padded to one symbol.
        longest = np.maximum(1, caps[ends - 1].astype(np.int64)).tolist()
        cuts, documents = [0], 0
        for row, length in enumerate(longest):
            documents += 1 if row or not rest else 2
            if row and (documents > self.batch_size or documents * length > budget):
                cuts.append(int(ends[row - 1]))
                documents = 1
        return np.array([*cuts, len(caps)] if len(caps) else cuts, np.int64)


def _counts(counts: Numbers) -> Int64s:
    array = np.asarray(counts)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("counts must be integers in one dimension")
    if array.size and array.min() < 0:
        raise ValueError(f"document {int(array.argmin())} has a negative count")
    return array.astype(np.int64)


def batches(
    dataset: GrammarDataset,
    sampler: Sampler[list[int]],
    workers: int = 0,
    pin_memory: bool = False,
) -> DataLoader[Batch]:
    """Return a loader of the batches that a sampler names, made in so many processes beside.

    The workers, each with the dataset in memory (shared where processes fork), live until the
    loader goes. `pin_memory` is for GPUs. Torch's global random state is left alone.
    """
    return DataLoader(
        dataset,
        batch_sampler=sampler,
        num_workers=workers,
        collate_fn=_unchanged,
        pin_memory=pin_memory,
        persistent_workers=workers > 0,
        generator=torch.Generator(),
    )


def _unchanged(batch: Any) -> Any:
    return batch
