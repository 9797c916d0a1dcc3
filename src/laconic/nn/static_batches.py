"""Batches of fixed shapes, into which others are copied: what CUDA graphs read.

Lengths are padded to one of few, and the levels of forests to sizes with room for batches to come.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def static_batch(
    batch: Batch,
    shape: tuple[int, int],
    room: Sequence[int],
    least: Sequence[int],
    buffer: Callable[[int], Tensor],
) -> Batch:
    """Return a batch with that room for others like one; what it holds means nothing as yet.

    There is room for an eighth more n-grams than such a batch of the shape's length would have, and
    for `least`. It lies in a `buffer` of so many bytes, which may be used for others, too: whatever
    is there, `copy_in` writes all of it.
    """
    nodes, longer = sum(room), longer_in(batch, shape[1])
    wanted = [padded_length(int(each * longer * _SPARE) + 1, 8) for each in entries_of(batch)]
    sizes = list(map(max, wanted, least))
    every = batch.alphabet_size + nodes

    def shaped(like: Tensor, *shape: int) -> Tensor:
        return like.new_empty(shape, device="meta")

    bag, here = batch.bag, batch.in_place
    counted, *places = [sizes[k] for k in (0, 1, 1, 2, 2)]
    made = replace(
        batch,
        children=shaped(batch.children, nodes, 2),
        level_offsets=tuple(accumulate(room, initial=0)),
        symbols=shaped(batch.symbols, *shape),
        sequence_lengths=shaped(batch.sequence_lengths, len(batch)),
        node_lengths=shaped(batch.node_lengths, every),
        node_hashes=shaped(batch.node_hashes, every),
        node_shared=shaped(batch.node_shared, every),
        labels=None if batch.labels is None else shaped(batch.labels, *batch.labels.shape),
        rows=None,
        bag=None if bag is None else Bag(*(shaped(each, counted) for each in bag)),
        in_place=None if here is None else NgramsInPlace(*map(shaped, here, places)),
    )
    return made.in_buffer(buffer)


def copy_in(static: Batch, batch: Batch, by_kernels: bool = True) -> None:
    """Write a batch into a larger one; its nodes move to where their levels begin there.

    Nothing of what was there stays: what there is room for counts nothing. With `by_kernels`, where
    that can be, one kernel does it.
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
    static.node_lengths.fill_(1).index_copy_(0, rows, batch.node_lengths)
    static.node_hashes.zero_().index_copy_(0, rows, batch.node_hashes)
    static.node_shared.fill_(-1).index_copy_(0, rows, batch.node_shared)
    if static.labels is not None and batch.labels is not None:
        static.labels.copy_(batch.labels)
    if static.bag is not None and batch.bag is not None:
        size, count = len(static.bag.counts), len(batch.bag.counts)
        _repeat(static.bag.buckets, batch.bag.buckets)
        torch.arange(size, out=static.bag.documents).remainder_(len(batch))
        static.bag.documents[:count] = batch.bag.documents
        static.bag.counts[:count] = batch.bag.counts
        static.bag.counts[count:].zero_()
    if static.in_place is not None and batch.in_place is not None:
        moved_nodes = rows.index_select(0, batch.in_place.nodes)
        fields = zip(static.in_place, batch.in_place._replace(nodes=moved_nodes), strict=True)
        for room, values in fields:
            _repeat(room, values)
        static.in_place.node_buckets[len(batch.in_place.nodes) :].bitwise_not_()
        static.in_place.place_buckets[len(batch.in_place.places) :].bitwise_not_()


def _repeat(room: Tensor, values: Tensor) -> None:
    """Write values, and them again as often as there is room; zeros if there are none.

    Room for n-grams is spread over what n-grams there are: a GPU adds to one place one by one.
    """
    if len(values):
        room.copy_(values[torch.arange(len(room), device=values.device) % len(values)])
    else:
        room.zero_()
