"""Batches of a dataset, made beside the training: in processes, or for a GPU in threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import torch
from torch.utils.data import DataLoader, Sampler

from laconic.batching.batch import Batch
from laconic.batching.dataset import GrammarDataset
from laconic.batching.prefetch import ahead

__all__ = ["Batches", "batches"]


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
