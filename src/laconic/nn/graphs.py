"""CUDA graphs: a whole training step or prediction as one launch, captured once for each shape.

Recurrent steps and levels are many small kernels, and starting them one by one takes longer than
running them. A graph starts them all at once, but its shapes are fixed: batches are padded to one
of few lengths, and the levels of their forests to sizes that have room for the batches to come.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest
from typing import Any, TypeAlias

import torch
from torch import Tensor

from laconic.batching import Bag, Batch, NgramsInPlace
from laconic.errors import InputError
from laconic.nn.gradients import Gradients
from laconic.nn.model import GrammarModel

_MOST_GRAPHS = 256
_Key: TypeAlias = tuple[Any, ...]
"""What the batches of a graph have in common; documents and padded length first."""
_ROOM = 32  # nodes that a level has room for at least, and to a multiple of which it is rounded


def captured_training(
    model: GrammarModel,
    autocast: torch.dtype | None = None,
    loss: Callable[[Batch], Tensor] | None = None,
    gradients: Gradients | None = None,
) -> Captured:
    """Return a function of a batch: forward, loss and backward; it returns the loss.

    Gradients replace those of the batch before, so the optimizer's zero_grad is not needed; they
    are added to `gradients` instead, if somebody has such, who clears them.
    `autocast` computes in that type where PyTorch thinks it safe. `loss` is a function of a batch;
    by default model.loss of what the model says.

    >>> step = captured_training(model)           # doctest: +SKIP
    >>> for batch in loader:                      # doctest: +SKIP
    ...     loss = step(batch.to("cuda", non_blocking=True))
    ...     optimizer.step()
    """
    into = gradients or Gradients(model.parameters(), model.kernels)

    def before() -> None:
        into.attach()
        if gradients is None:
            into.clear()
        into.clean = False

    def run(batch: Batch) -> tuple[Tensor, Sequence[Tensor | None]]:
        if batch.labels is None:
            raise InputError("training needs batches with labels")
        with _mode(model, training=True), _autocast(autocast):
            mean = loss(batch) if loss else model.loss(model(batch), batch.labels)
        return mean.detach(), torch.autograd.grad(mean, into.parameters, allow_unused=True)

    def body(batch: Batch) -> Tensor:
        mean, found = run(batch)
        into.add(found)
        return mean

    return Captured(body, before=before, warm_up=run)


def captured_inference(
    model: GrammarModel, autocast: torch.dtype | None = None, after: int = 0
) -> Captured:
    """Return a function of a batch that returns the model's outputs, float [B, outputs].

    A shape is captured `after` so many batches of it, which run without a graph.
    """

    def body(batch: Batch) -> Tensor:
        with torch.no_grad(), _mode(model, training=False), _autocast(autocast):
            outputs: Tensor = model(batch)
        return outputs.clone()

    return Captured(body, after=after)


class Captured:
    """A function of batches on a CUDA device, run as graphs; its result is one tensor.

    A shape is captured when it is seen first, and again when a forest outgrows it. All graphs share
    their memory, which is about that of the largest, but for copies of what they read. `before` is
    called before each run; `warm_up`, by default the function itself, has libraries set themselves
    up outside of any graph. Not for models whose shapes or control flow depend on values on the
    device, nor for several processes with DistributedDataParallel.
    """

    def __init__(
        self,
        body: Callable[[Batch], Tensor],
        before: Callable[[], None] | None = None,
        after: int = 0,
        warm_up: Callable[[Batch], Any] | None = None,
    ) -> None:
        self._body, self._before, self._after = body, before, after
        self._warm_up = warm_up or body
        self._met: Counter[_Key] = Counter()
        self._graphs: dict[_Key, _Graph] = {}
        self._pool: Any = None
        self._largest = 0
        self._warm: set[bool] = set()

    def __call__(self, batch: Batch) -> Tensor:
        """Run the function on a batch; O(symbols) to copy it in."""
        key = _key(batch)
        if self._met[key] < self._after:
            self._met[key] += 1
            return self._body(batch)
        graph = self._graph_for(batch)
        if self._before:
            self._before()
        _copy_in(graph.batch, batch)
        graph.graph.replay()
        return graph.result.clone()

    def reserve(self, batch: Batch) -> None:
        """Capture about the largest batch there will be, whose memory then serves all others.

        Else a batch that is larger than those before it makes their graphs useless.
        """
        self._graph_for(batch)

    def _graph_for(self, batch: Batch) -> _Graph:
        key, entries = _key(batch), _entries(batch)
        graph = self._graphs.pop(key, None)
        sizes = [end - begin for begin, end in pairwise(batch.level_offsets)]
        if graph is None or not _fits(sizes, graph.room) or not _fits(entries, graph.entries):
            room = _make_room(sizes, graph.room if graph else ())
            graph = self._capture(batch, key[0], room, graph.entries if graph else entries)
        self._graphs[key] = graph  # again as the one used last
        if len(self._graphs) > _MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        return graph

    def __len__(self) -> int:
        """The number of graphs captured so far."""
        return len(self._graphs)

    def _capture(
        self, batch: Batch, shape: tuple[int, int], room: list[int], entries: Sequence[int]
    ) -> _Graph:
        if shape[0] * shape[1] > 1.25 * self._largest:
            # Blocks of small graphs are of no use to a much larger one, but those of a large one
            # serve all: the others are captured again when they are next needed.
            self._largest = shape[0] * shape[1]
            self._graphs.clear()
            self._pool = torch.cuda.graph_pool_handle()
            torch.cuda.empty_cache()
        static = _static(batch, shape, room, entries)
        _copy_in(static, batch)
        if bool(room) not in self._warm:
            # Libraries set themselves up when they are first used, which cannot be captured; and
            # the composer is used by the first batch that has rules.
            self._warm.add(bool(room))
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._warm_up(static)
            torch.cuda.current_stream().wait_stream(side)
            torch.cuda.empty_cache()
        graph = torch.cuda.CUDAGraph()
        # Batches are put into pinned memory by other threads meanwhile, which is no part of it.
        with torch.cuda.graph(graph, pool=self._pool, capture_error_mode="thread_local"):
            result = self._body(static)
        return _Graph(graph, static, room, result)


@dataclass(frozen=True)
class _Graph:
    graph: torch.cuda.CUDAGraph
    batch: Batch
    room: list[int]
    result: Tensor

    @property
    def entries(self) -> list[int]:
        """The n-grams that there is room for."""
        return _entries(self.batch)


def _key(batch: Batch) -> _Key:
    if not batch.symbols.is_cuda:
        raise InputError('CUDA graphs need batches on the device; use batch.to("cuda")')
    shape = len(batch), _padded_length(batch.symbols.shape[1])
    labels = None if batch.labels is None else (batch.labels.shape, batch.labels.dtype)
    return shape, batch.alphabet_size, labels, batch.bag is None, batch.in_place is None


@contextmanager
def _mode(model: GrammarModel, training: bool) -> Iterator[None]:
    """Capture dropout, or its absence, whatever mode the model happens to be in."""
    before = [(module, module.training) for module in model.modules()]
    model.train(training)
    try:
        yield
    finally:
        for module, mode in before:
            module.training = mode


def _autocast(dtype: torch.dtype | None) -> AbstractContextManager[Any]:
    # Weights that are cast inside a graph must be cast there again at every replay.
    return torch.autocast("cuda", dtype=dtype, cache_enabled=False) if dtype else nullcontext()


def _padded_length(length: int) -> int:
    """Return one of 8 lengths per doubling: at most 1/8 longer, from 64 on.

    >>> [_padded_length(n) for n in (1, 100, 128, 129, 300, 1509)]
    [8, 104, 128, 144, 320, 1536]
    """
    step = max(8, 1 << max(0, (length - 1).bit_length() - 4))
    return -(-length // step) * step


def _fits(sizes: Sequence[int], room: Sequence[int]) -> bool:
    return len(sizes) <= len(room) and all(map(int.__le__, sizes, room))


def _make_room(sizes: Sequence[int], before: Sequence[int]) -> list[int]:
    """Return room for levels of these sizes, a quarter more of each, and one more level."""
    wanted = [(size + size // 4) // _ROOM * _ROOM + _ROOM for size in sizes]
    if wanted and len(wanted) >= len(before):
        wanted.append(_ROOM)
    return [max(pair) for pair in zip_longest(wanted, before, fillvalue=0)]


def _entries(batch: Batch) -> list[int]:
    """Return how many n-grams a batch counts, has within nodes, and across symbols."""
    counted = 0 if batch.bag is None else len(batch.bag.counts)
    here = batch.in_place
    return [counted, len(here.nodes) if here else 0, len(here.places) if here else 0]


def _static(
    batch: Batch, shape: tuple[int, int], room: Sequence[int], least: Sequence[int] = (0, 0, 0)
) -> Batch:
    """Return an empty batch with that room: no sequence needs the nodes that it has.

    There is room for a quarter more n-grams than the batch has, and for `least`.
    """
    nodes = sum(room)
    wanted = [_padded_length(each * 5 // 4 + 1) for each in _entries(batch)]
    entries = list(map(max, wanted, least))
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
        bag=None if batch.bag is None else _empty_bag(batch.bag, len(batch), entries[0]),
        in_place=None if batch.in_place is None else _empty_places(batch.in_place, entries[1:]),
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


def _copy_in(static: Batch, batch: Batch) -> None:
    """Write a batch into a larger one; its nodes move to where their levels begin there."""
    terminals, length = batch.alphabet_size, batch.symbols.shape[1]
    places = torch.arange(
        terminals + len(batch.children), dtype=torch.int32, device=batch.symbols.device
    )
    levels = zip(static.level_offsets, pairwise(batch.level_offsets), strict=False)
    moves = [(new - old, end - old) for new, (old, end) in levels]
    if moves:
        by, sizes = torch.tensor(moves, dtype=torch.int32).t().to(places.device, non_blocking=True)
        count = len(batch.children)
        places[terminals:] += torch.repeat_interleave(by, sizes, output_size=count)
        static.children.zero_()
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
