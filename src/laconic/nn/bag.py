"""A linear model of the n-grams and phrases that documents count, to add to what reads them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from laconic.batching import Bag
from laconic.errors import InputError
from laconic.nn.config import ModelError
from laconic.nn.weighted_sums import sums_of, weighted_sums


class NgramBag(nn.Module):
    """Scores of documents as a sum over their n-grams: one learned number for each and output.

    An n-gram that occurs c times weighs (1 + log c) * idf, or c * idf if not `logarithmic`; a
    document's weights are divided by their Euclidean norm, as in TF-IDF, those from the column
    `first_shared` on by their own: they are few, and would drown. Of the hashed `columns`, `rows`
    have numbers; `learn` says which, and before it is called none has.

    >>> bag = NgramBag(columns=4, rows=3, outputs=1)
    >>> bag.learn(torch.tensor([2, 2, 0, 2]), documents=2)
    >>> _ = nn.init.ones_(bag.table)
    >>> documents, buckets = torch.tensor([0, 0, 2]), torch.tensor([0, 3, 1])
    >>> bag(Bag(documents, buckets, torch.ones(3)), 3).squeeze(1).tolist()   # 10 * 2 / √2, 0, 10
    [14.142135620117188, 0.0, 10.0]
    """

    # The weights of a document have norm 1, so that what is learned must be large: a factor lets
    # the optimizer get there in steps that suit the other parameters.
    scale = 10.0

    kernels = True
    """Whether kernels of our own add up, where they can."""

    places: Tensor
    """int32 [columns]: the row of each column, from 1; 0 is that of columns that have none."""
    idf: Tensor
    """float32 [1 + rows], 0 for row 0, so that it never counts."""

    def __init__(
        self,
        columns: int,
        rows: int,
        outputs: int,
        dropout: float = 0.0,
        *,
        first_shared: int | None = None,
        logarithmic: bool = True,
    ) -> None:
        super().__init__()
        self.first_shared = columns if first_shared is None else first_shared
        self.logarithmic = logarithmic
        self.table = nn.Parameter(torch.zeros(1 + rows, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("places", torch.zeros(columns, dtype=torch.int32))
        self.register_buffer("idf", torch.zeros(1 + rows))
        self.register_load_state_dict_post_hook(_check_places)  # type: ignore[no-untyped-call]

    def learn(self, frequencies: Tensor, documents: int) -> None:
        """Give rows to columns that occur, int64 [columns], in some of so many documents."""
        used = frequencies.nonzero().squeeze(1)
        if len(used) != len(self.idf) - 1:
            raise InputError(f"{len(used)} columns occur, and there are {len(self.idf) - 1} rows")
        places = torch.zeros_like(frequencies)
        places[used] = torch.arange(1, 1 + len(used))
        self.places.copy_(places)
        self.idf[1:] = ((1 + documents) / (1 + frequencies[used])).log() + 1

    def forward(self, bag: Bag, documents: int) -> Tensor:
        """Return float [documents, outputs]."""
        rows = self.rows(bag)
        weights = self.dropout(self.weights(bag, rows, documents))
        given = rows, weights, bag.documents, documents
        sums = weighted_sums(self.table, *given, by_kernels=self.kernels)
        return self.bias + self.scale * sums

    def rows(self, bag: Bag) -> Tensor:
        """Return the row of every entry, int64 [K]; 0 for what has none."""
        return self.places.index_select(0, bag.buckets).long()

    def added(self, bag: Bag, documents: int) -> tuple[Tensor, Tensor]:
        """Return what every entry adds to the outputs, float [K, outputs], and whether it can.

        Their sum over a document and the bias are what forward returns without dropout.
        """
        rows = self.rows(bag)
        weights = self.weights(bag, rows, documents)
        return self.scale * weights[:, None] * self.table.index_select(0, rows), rows > 0

    def weights(self, bag: Bag, rows: Tensor, documents: int) -> Tensor:
        """Return the weight of every entry, float [K]; 0 for what counts 0 or has no row."""
        counts = bag.counts.to(self.idf.dtype).clamp(min=1)
        known = (1 + counts.log() if self.logarithmic else counts) * self.idf.index_select(0, rows)
        known = known.masked_fill(bag.counts == 0, 0)
        owners = bag.documents + documents * (bag.buckets >= self.first_shared)
        squares = sums_of(known.square(), owners, 2 * documents, self.kernels)
        norms = squares.clamp(min=torch.finfo(squares.dtype).tiny).sqrt()
        shares = known / norms.index_select(0, owners)
        return shares.to(self.table.dtype)


def _check_places(bag: NgramBag, _: object) -> None:
    """Raise ModelError for rows that there are not: a file may say anything."""
    places = bag.places
    if places.is_meta or not len(places):
        return
    least, most = int(places.min()), int(places.max())
    if least < 0 or most >= len(bag.idf):
        raise ModelError(f"bag.places is from {least} to {most}; there are {len(bag.idf)} rows")
    if bag.idf[0] != 0 or not bag.idf.isfinite().all():
        raise ModelError("bag.idf must be finite, and 0 for row 0, which no column has")
    if most and (places[places > 0].bincount()[1:] > 1).any():
        raise ModelError("bag.places gives two columns the same row")
