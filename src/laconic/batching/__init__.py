"""Batches: documents as tensors, which of them go together, and threads that make them ahead."""

from laconic.errors import needs

with needs("a batch for training", "train"):
    import torch  # noqa: F401

from laconic.batching.batch import Bag, Batch, NgramsInPlace, collate
from laconic.batching.cutting import cut
from laconic.batching.dataset import GrammarDataset
from laconic.batching.loader import batches, pieces
from laconic.batching.sampler import LengthSampler

__all__ = [
    "Bag",
    "Batch",
    "GrammarDataset",
    "LengthSampler",
    "NgramsInPlace",
    "batches",
    "collate",
    "cut",
    "pieces",
]
