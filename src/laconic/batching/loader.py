"""Batches of a dataset, made beside what uses them: in processes, or in threads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from laconic.batching.batch import Batch
from laconic.batching.cutting import cut
from laconic.batching.dataset import GrammarDataset
from laconic.batching.prefetch import ahead
from laconic.batching.sampler import LengthSampler
from laconic.threads import processors

# That make batches for a GPU, at most: the core, which does most of it, needs no GIL. Two are too
# few where n-grams are counted, and told their places: a GPU waits for them.
_THREADS = 4
_Named: TypeAlias = tuple[list[list[int]], tuple[int, ...] | None]
"""The rows of each piece of a batch, and the batch's seed."""


def batches(
    dataset: GrammarDataset,
    sampler: LengthSampler | Collection[list[int]],
    workers: int = 0,
    *,
    pin_memory: bool = False,
    seed: int | None = None,
    threads: int | None = None,
) -> Batches:
    """Return the batches that a sampler names, made in so many processes beside.

    The workers, each with the dataset in memory (shared where processes fork), live until the
    loader goes. Without them, `threads` make batches ahead, by default up to four if `pin_memory`
    says that they are for a GPU, which is then busy with those before. `seed` and the sampler's
    epoch are the seed of what is random in documents. Torch's global random state is left alone.
    """
    made = pieces(
        dataset, sampler, workers=workers, pin_memory=pin_memory, seed=seed, threads=threads
    )
    return Batches(made)


def pieces(
    dataset: GrammarDataset,
    sampler: LengthSampler | Collection[list[int]],
    limit: Callable[[], int | None] = lambda: None,
    *,
    workers: int = 0,
    pin_memory: bool = False,
    seed: int | None = None,
    threads: int | None = None,
) -> Pieces:
    """Return the batches that a sampler names, each as the pieces that it is cut into.

    `limit` is asked before a batch is made, a little ahead of who needs it, how many symbols a
    piece may have at most, padding included (laconic.batching.cutting). All else is as in batches.
    """
    named = _NamedPieces(dataset, sampler, limit, seed)
    if not workers:
        wanted = min(_THREADS, processors()) * pin_memory if threads is None else threads
        return _FromThreads(dataset, named, wanted, pin_memory)
    return DataLoader(
        _ByName(dataset),
        sampler=named,
        batch_size=None,
        num_workers=workers,
        collate_fn=_unchanged,
        pin_memory=pin_memory,
        persistent_workers=True,
        generator=torch.Generator(),
    )


class Batches:
    """Batches that were not cut, one after the other."""

    def __init__(self, made: Pieces) -> None:
        self._made = made

    def __iter__(self) -> Iterator[Batch]:
        return (batch for (batch,) in self._made)

    def __len__(self) -> int:
        return len(self._made)


class _NamedPieces(Sampler[_Named]):
    def __init__(
        self,
        dataset: GrammarDataset,
        sampler: LengthSampler | Collection[list[int]],
        limit: Callable[[], int | None],
        seed: int | None,
    ) -> None:
        self.lengths, self.sampler = dataset.sequence_lengths, sampler
        self.limit, self.seed = limit, seed

    def __iter__(self) -> Iterator[_Named]:
        epoch = getattr(self.sampler, "epoch", 0)
        seed = None if self.seed is None else (self.seed, epoch)
        for rows in self.sampler:
            if (limit := self.limit()) is None:
                yield [rows], seed
            else:
                parts = cut(self.lengths[rows], limit)
                yield [[rows[place] for place in part] for part in parts], seed

    def __len__(self) -> int:
        return len(self.sampler)


class _ByName(Dataset[list[Batch]]):
    def __init__(self, dataset: GrammarDataset) -> None:
        self.dataset = dataset

    def __getitem__(self, named: _Named) -> list[Batch]:
        parts, seed = named
        return [self.dataset.batch(rows, seed) for rows in parts]


class _FromThreads:
    def __init__(
        self, dataset: GrammarDataset, named: _NamedPieces, threads: int, pin_memory: bool
    ) -> None:
        self.dataset, self.named = _ByName(dataset), named
        self.threads, self.pin_memory = threads, pin_memory

    def __iter__(self) -> Iterator[list[Batch]]:
        return ahead(self._made, self.named, self.threads)

    def __len__(self) -> int:
        return len(self.named)

    def _made(self, named: _Named) -> list[Batch]:
        made = self.dataset[named]
        return [batch.pin_memory() for batch in made] if self.pin_memory else made


Pieces: TypeAlias = DataLoader[list[Batch]] | _FromThreads


def _unchanged(batch: Any) -> Any:
    return batch
