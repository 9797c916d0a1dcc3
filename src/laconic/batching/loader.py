"""Batches of a dataset, made beside what uses them: in processes, or in threads."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Dataset, Sampler

from laconic.batching.batch import Batch
from laconic.batching.dataset import GrammarDataset
from laconic.batching.prefetch import ahead
from laconic.batching.sampler import LengthSampler

_THREADS = 2  # that make batches for a GPU: the core, which does most of it, needs no GIL
_Named: TypeAlias = tuple[list[int], tuple[int, ...] | None]
"""The rows of a batch, and its seed."""


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
    loader goes. Without them, `threads` make batches ahead, by default two if `pin_memory` says
    that they are for a GPU, which is then busy with those before. `seed` and the sampler's epoch
    are the seed of what is random in documents. Torch's global random state is left alone.
    """
    named = _NamedBatches(sampler, seed)
    if not workers:
        wanted = _THREADS * pin_memory if threads is None else threads
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


class _NamedBatches(Sampler[_Named]):
    def __init__(self, sampler: LengthSampler | Collection[list[int]], seed: int | None) -> None:
        self.sampler, self.seed = sampler, seed

    def __iter__(self) -> Iterator[_Named]:
        epoch = getattr(self.sampler, "epoch", 0)
        seed = None if self.seed is None else (self.seed, epoch)
        return ((rows, seed) for rows in self.sampler)

    def __len__(self) -> int:
        return len(self.sampler)


class _ByName(Dataset[Batch]):
    def __init__(self, dataset: GrammarDataset) -> None:
        self.dataset = dataset

    def __getitem__(self, named: _Named) -> Batch:
        return self.dataset.batch(*named)


class _FromThreads:
    def __init__(
        self, dataset: GrammarDataset, named: _NamedBatches, threads: int, pin_memory: bool
    ) -> None:
        self.dataset, self.named = dataset, named
        self.threads, self.pin_memory = threads, pin_memory

    def __iter__(self) -> Iterator[Batch]:
        return ahead(self._made, self.named, self.threads)

    def __len__(self) -> int:
        return len(self.named)

    def _made(self, named: _Named) -> Batch:
        batch = self.dataset.batch(*named)
        return batch.pin_memory() if self.pin_memory else batch


Batches: TypeAlias = DataLoader[Batch] | _FromThreads


def _unchanged(batch: Any) -> Any:
    return batch
