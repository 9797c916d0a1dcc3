"""Batches of fixed shapes, into which others are copied: what CUDA graphs read.

Lengths are padded to one of few, and the levels of forests to sizes with room for batches to come.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise, zip_longest

import torch
from torch import Tensor

from laconic.batching import Bag, Batch, NgramsInPlace
from laconic.nn.kernels import batches as kernels

_ROOM = 32  # nodes that a level has room for at least, and to a multiple of which it is rounded
_SPARE = 9 / 8  # of what a batch has, that there is room for: as long ones have more or less
_MORE_LEVELS = 2  # that there is room for: how deep the deepest document is varies


def padded_length(length: int, per_doubling: int = 4) -> int:
    """Return one of so many lengths per doubling: at most 1/4 longer, from 32 on.

    Padding costs little where kernels of ours read; each further length is a graph to be captured.

    >>> [padded_length(n) for n in (1, 100, 128, 129, 300, 1509)]
    [8, 112, 128, 160, 320, 1536]
    """
    step = max(8, 1 << max(0, (length - 1).bit_length() - per_doubling.bit_length()))
    return -(-length // step) * step


def fits(sizes: Sequence[int], room: Sequence[int]) -> bool:
    """Return whether there is room for levels, or entries, of these sizes."""
    return len(sizes) <= len(room) and all(map(int.__le__, sizes, room))


def make_room(sizes: Sequence[int], before: Sequence[int], longer: float = 1.0) -> list[int]:
    """Return room for levels of these sizes, an eighth more of each, and for two more levels.

    And for as much more as sequences can be `longer` than those of the batch they are from.
    """
    wanted = [int(size * longer * _SPARE) // _ROOM * _ROOM + _ROOM for size in sizes]
    if wanted and len(wanted) >= len(before):
        wanted += [_ROOM] * _MORE_LEVELS
    return [max(pair) for pair in zip_longest(wanted, before, fillvalue=0)]


def longer_in(batch: Batch, length: int) -> float:
    """Return how many times as long as those of a batch sequences of some length are.

    A graph is for all batches whose lengths are padded to the same: the first one may be short.
    """
    return length / batch.symbols.shape[1]


def entries_of(batch: Batch) -> list[int]:
    """Return how many n-grams a batch counts, has within nodes, and across symbols."""
    counted = 0 if batch.bag is None else len(batch.bag.counts)
    here = batch.in_place
    return [counted, len(here.nodes) if here else 0, len(here.places) if here else 0]


def empty_batch(
    batch: Batch, shape: tuple[int, int], room: Sequence[int], least: Sequence[int] = (0, 0, 0)
) -> Batch:
    """Return an empty batch with that room: no sequence needs the nodes that it has.

    There is room for an eighth more n-grams than such a batch of the shape's length would have, and
    for `least`.
    """
    nodes, longer = sum(room), longer_in(batch, shape[1])
    wanted = [padded_length(int(each * longer * _SPARE) + 1, 8) for each in entries_of(batch)]
    sizes = list(map(max, wanted, least))
    return replace(
        batch,
        children=batch.children.new_zeros(nodes, 2),
        level_offsets=tuple(accumulate(room, initial=0)),
        symbols=batch.symbols.new_zeros(shape),
        sequence_lengths=torch.zeros_like(batch.sequence_lengths),
        node_lengths=batch.node_lengths.new_ones(batch.alphabet_size + nodes),
        node_hashes=batch.node_hashes.new_zeros(batch.alphabet_size + nodes),
        node_shared=batch.node_shared.new_full((batch.alphabet_size + nodes,), -1),
        labels=None if batch.labels is None else torch.zeros_like(batch.labels),
        rows=None,
        bag=None if batch.bag is None else _empty_bag(batch.bag, len(batch), sizes[0]),
        in_place=None if batch.in_place is None else _empty_places(batch.in_place, sizes[1:]),
    )


def _empty_bag(bag: Bag, documents: int, size: int) -> Bag:
    """Return a bag of so many entries, which count 0.

    They are spread over documents and buckets: a GPU adds to one place one after the other.
    """
    places = torch.arange(size, device=bag.counts.device)
    buckets = places * 0 if not len(bag.counts) else bag.buckets[places % len(bag.counts)]
    return Bag(places % documents, buckets, torch.zeros_like(places, dtype=torch.float32))


def _empty_places(ngrams: NgramsInPlace, sizes: Sequence[int]) -> NgramsInPlace:
    """Return so many entries of nodes and of places, spread likewise, which count nothing."""
    found: list[Tensor] = []
    for size, into, buckets in zip(sizes, ngrams[::2], ngrams[1::2], strict=True):
        if len(into):
            from_batch = torch.arange(size, device=into.device) % len(into)
            found += into[from_batch], ~buckets[from_batch]
        else:
            found += into.new_zeros(size), ~buckets.new_zeros(size)
    return NgramsInPlace(*found)


def copy_in(static: Batch, batch: Batch, by_kernels: bool = True) -> None:
    """Write a batch into a larger one; its nodes move to where their levels begin there.

    With `by_kernels`, where that can be, one kernel does it.
    """
    if by_kernels and not kernels.obstacle(static, batch):
        kernels.copy_in(static, batch)
    else:
        copy_in_plainly(static, batch)


def copy_in_plainly(static: Batch, batch: Batch) -> None:
    """Write a batch into a larger one, array by array."""
    terminals, length = batch.alphabet_size, batch.symbols.shape[1]
    places = torch.arange(
        terminals + len(batch.children), dtype=torch.int32, device=batch.symbols.device
    )
    levels = zip(static.level_offsets, pairwise(batch.level_offsets), strict=False)
    moves = [(new - old, end - old) for new, (old, end) in levels]
    static.children.zero_()
    if moves:
        by, sizes = torch.tensor(moves, dtype=torch.int32).t().to(places.device, non_blocking=True)
        count = len(batch.children)
        places[terminals:] += torch.repeat_interleave(by, sizes, output_size=count)
        children = places.index_select(0, batch.children.reshape(-1)).view(-1, 2)
        static.children.index_copy_(0, places[terminals:].long() - terminals, children)
    static.symbols[:, length:].zero_()
    moved = places.index_select(0, batch.symbols.reshape(-1)).view(batch.symbols.shape)
    static.symbols[:, :length] = moved
    static.sequence_lengths.copy_(batch.sequence_lengths)
    rows = places.long()
    static.node_lengths.index_copy_(0, rows, batch.node_lengths)
    static.node_hashes.index_copy_(0, rows, batch.node_hashes)
    static.node_shared.fill_(-1).index_copy_(0, rows, batch.node_shared)
    if static.labels is not None and batch.labels is not None:
        static.labels.copy_(batch.labels)
    if static.bag is not None and batch.bag is not None:
        for room, values in zip(static.bag, batch.bag, strict=True):
            room[: len(values)] = values
        static.bag.counts[len(batch.bag.counts) :].zero_()
    if static.in_place is not None and batch.in_place is not None:
        moved_nodes = rows.index_select(0, batch.in_place.nodes)
        fields = zip(static.in_place, batch.in_place._replace(nodes=moved_nodes), strict=True)
        for room, values in fields:
            room[: len(values)] = values
        for buckets, count in (
            (static.in_place.node_buckets, len(batch.in_place.nodes)),
            (static.in_place.place_buckets, len(batch.in_place.places)),
        ):
            # What an earlier batch left is room again.
            buckets[count:] = torch.where(buckets[count:] < 0, buckets[count:], ~buckets[count:])
