"""Vectors of the n-grams that end in each symbol, which the sequence model reads with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.batching import Batch
from laconic.nn.config import ModelError
from laconic.nn.levels import sum_levels
from laconic.nn.sums import weighted_sums

__all__ = ["LocalVectors"]


class LocalVectors(nn.Module):
    """What n-grams say of the places where they end: learned vectors, summed for each symbol.

    However documents are split into symbols, their n-grams are the same: a word that one grammar
    has as a rule and another in pieces is read alike. The sums are computed bottom-up, as states
    of symbols are. While training, a share `dropout` of the n-grams and of the sums is left out.

    Every hashed bucket has a vector; with `rows`, so many of them have, `learn` says which, and
    n-grams of the others say nothing.

    >>> from laconic import compress_many
    >>> from laconic.batching import collate
    >>> from laconic.local_ngrams import LocalNgrams
    >>> batch = collate(compress_many(["abab", "abc"]), local=LocalNgrams(3, buckets=100))
    >>> LocalVectors(buckets=100, size=8, output_size=5)(batch).shape    # ab ab, a b c
    torch.Size([2, 3, 5])
    """

    places: Tensor | None
    """int32 [buckets]: the row of each bucket, from 1; 0 is that of buckets that have none."""

    def __init__(
        self,
        buckets: int,
        size: int,
        output_size: int,
        dropout: float = 0.0,
        rows: int | None = None,
    ) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(buckets if rows is None else 1 + rows, size) * 0.02)
        places = None if rows is None else torch.zeros(buckets, dtype=torch.int32)
        self.register_buffer("places", places)
        self.register_load_state_dict_post_hook(_check_places)  # type: ignore[no-untyped-call]
        self.bias = nn.Parameter(torch.zeros(size))
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(size, output_size)

    def learn(self, seen: Tensor) -> None:
        """Give rows to the buckets that n-grams were seen in, bool [buckets]."""
        if self.places is None or int(seen.sum()) != len(self.table) - 1:
            raise ValueError(
                f"{int(seen.sum())} buckets were seen, there are {len(self.table)} rows"
            )
        self.places.copy_(torch.where(seen, seen.cumsum(0), 0))

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
        if self.places is not None:
            rows = self.places.index_select(0, rows).long()
            known = known & (rows > 0)
        weights = self.dropout(known.to(self.table.dtype))
        return weighted_sums(self.table, rows, weights, into, count)


def _check_places(local: LocalVectors, _: object) -> None:
    """Raise ModelError for rows that there are not: a file may say anything."""
    places = local.places
    if places is None or places.is_meta or not len(places):
        return
    least, most = int(places.min()), int(places.max())
    if least < 0 or most >= len(local.table):
        raise ModelError(
            f"local.places is from {least} to {most}; there are {len(local.table)} rows"
        )
