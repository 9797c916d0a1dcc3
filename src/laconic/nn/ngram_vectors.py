"""Vectors of the n-grams that end in each symbol, which the sequence model reads with it."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.batching import Batch
from laconic.errors import InputError
from laconic.nn.config import ModelError
from laconic.nn.levels import sum_levels
from laconic.nn.weighted_sums import weighted_sums

_LONG = 16  # terminals: symbols of many more would drown all others


class NgramVectors(nn.Module):
    """What n-grams say of the places where they end: learned vectors, summed for each symbol.

    However documents are split into symbols, their n-grams are the same: those of a word that one
    grammar has as a rule and another in pieces, too. The sums are computed bottom-up, as states of
    symbols are; that of a symbol of more than 16 terminals is made as large as if it had 16. While
    training, a share `dropout` of the n-grams and of the sums is left out.

    Every hashed bucket has a vector; with `rows`, so many of them have, `learn` says which, and
    n-grams of the others say nothing.

    >>> from laconic import compress_many
    >>> from laconic.batching import collate
    >>> from laconic.ngrams.in_place import NgramPlacer
    >>> batch = collate(compress_many(["abab", "abc"]), in_place=NgramPlacer(3, buckets=100))
    >>> NgramVectors(buckets=100, size=8, output_size=5)(batch).shape    # ab ab, a b c
    torch.Size([2, 3, 5])
    """

    kernels = True
    """Whether kernels of our own add up, where they can."""

    rows_of: Tensor | None
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
        rows_of = None if rows is None else torch.zeros(buckets, dtype=torch.int32)
        self.register_buffer("rows_of", rows_of)
        self.register_load_state_dict_post_hook(_check_rows)  # type: ignore[no-untyped-call]
        self.bias = nn.Parameter(torch.zeros(size))
        self.dropout = nn.Dropout(dropout)
        self.project = nn.Linear(size, output_size)

    def learn(self, known: Tensor) -> None:
        """Give rows to those buckets, bool [buckets], whose n-grams shall have vectors."""
        if self.rows_of is None:
            raise InputError("every bucket has a row; pass rows=, if only some shall")
        count, rows = int(known.sum()), len(self.table) - 1
        if count != rows:
            raise InputError(f"{count} buckets are known, and there are {rows} rows")
        self.rows_of.copy_(torch.where(known, known.cumsum(0), 0))

    def forward(self, batch: Batch) -> Tensor:
        """Return float [B, T, output_size]."""
        ngrams, (documents, length) = batch.in_place, batch.symbols.shape
        if ngrams is None:
            raise InputError("the batch has no n-grams in place")
        nodes, places = batch.alphabet_size + len(batch.children), length * documents
        # All at once: the table's gradient is as large as the table.
        buckets = torch.cat([ngrams.node_buckets, ngrams.place_buckets])
        into = torch.cat([ngrams.nodes, ngrams.places + nodes])
        own, across = torch.split(self._sums(buckets, into, nodes + places), [nodes, places])
        within = sum_levels(own, batch.children, batch.level_offsets)
        symbols = batch.symbols.t().reshape(-1)  # Time first, as the LSTM wants it.
        lengths = batch.node_lengths.index_select(0, symbols).clamp(min=_LONG)
        sums = (within.index_select(0, symbols) + across) * (_LONG / lengths)[:, None]
        read: Tensor = self.project(self.dropout(F.gelu(sums + self.bias)))
        return read.view(length, documents, read.shape[-1]).transpose(0, 1)

    def _sums(self, buckets: Tensor, into: Tensor, count: int) -> Tensor:
        # Negative ones, ~bucket, are room for more in a graph, and count nothing.
        known = buckets >= 0
        rows = torch.where(known, buckets, ~buckets)
        if self.rows_of is not None:
            rows = self.rows_of.index_select(0, rows).long()
            known = known & (rows > 0)
        weights = self.dropout(known.to(self.table.dtype))
        return weighted_sums(self.table, rows, weights, into, count, self.kernels)


def _check_rows(vectors: NgramVectors, _: object) -> None:
    """Raise ModelError for rows that there are not: a file may say anything."""
    rows = vectors.rows_of
    if rows is None or rows.is_meta or not len(rows):
        return
    least, most = int(rows.min()), int(rows.max())
    if least < 0 or most >= len(vectors.table):
        raise ModelError(
            f"local.rows_of is from {least} to {most}; there are {len(vectors.table)} rows"
        )
