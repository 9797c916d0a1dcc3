"""Vectors of the n-grams that end in each symbol, which the sequence model reads with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.batching import Batch
from laconic.nn.levels import sum_levels
from laconic.nn.sums import weighted_sums

__all__ = ["LocalVectors"]


class LocalVectors(nn.Module):
    """What n-grams say of the places where they end: learned vectors, summed for each symbol.

    However documents are split into symbols, their n-grams are the same: a word that one grammar
    has as a rule and another in pieces is read alike. The sums are computed bottom-up, as states
    of symbols are. While training, a share `dropout` of the n-grams and of the sums is left out.

    >>> from laconic import compress_many
    >>> from laconic.batching import collate
    >>> from laconic.local_ngrams import LocalNgrams
    >>> batch = collate(compress_many(["abab", "abc"]), local=LocalNgrams(3, buckets=100))
    >>> LocalVectors(buckets=100, size=8, output_size=5)(batch).shape    # ab ab, a b c
    torch.Size([2, 3, 5])
    """

    def __init__(self, buckets: int, size: int, output_size: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(buckets, size) * 0.02)
        self.bias = nn.Parameter(torch.zeros(size))
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(size, output_size)

    def forward(self, batch: Batch) -> Tensor:
        """Return float [B, T, output_size]."""
        local, (documents, length) = batch.local, batch.symbols.shape
        if local is None:
            raise ValueError("the batch has no local n-grams")
        nodes = batch.alphabet_size + len(batch.children)
        own = self._sums(local.node_buckets, local.nodes, nodes)
        within = sum_levels(own, batch.children, batch.level_offsets)
        across = self._sums(local.place_buckets, local.places, length * documents)
        # Time first, as the LSTM wants it.
        sums = within.index_select(0, batch.symbols.t().reshape(-1)) + across
        read: Tensor = self.project(self.dropout(F.gelu(sums + self.bias)))
        return read.view(length, documents, -1).transpose(0, 1)

    def _sums(self, buckets: Tensor, into: Tensor, count: int) -> Tensor:
        # Negative ones, ~bucket, are room for more in a graph, and count nothing.
        known = buckets >= 0
        rows = torch.where(known, buckets, ~buckets)
        weights = self.dropout(known.to(self.table.dtype))
        return weighted_sums(self.table, rows, weights, into, count)
