"""CUDA graphs: a whole training step or prediction as one launch, captured once for each shape.

Recurrent steps and levels are many small kernels, and starting them one by one takes longer than
running them. A graph starts them all at once, but its shapes are fixed (laconic.nn.static_batches).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import pairwise
from threading import local
from typing import Any, TypeAlias
from weakref import WeakSet

import torch
from torch import Tensor

from laconic.batching import Batch
from laconic.errors import InputError
from laconic.nn.gradients import Gradients
from laconic.nn.memory import empty_cache, empty_cache_if_tight, use_expandable_segments
from laconic.nn.model import GrammarModel
from laconic.nn.static_batches import (
    copy_in,
    entries_of,
    fits,
    longer_in,
    make_room,
    padded_length,
    static_batch,
)
from laconic.nn.weighted_sums import gradients_added_to

_MOST_GRAPHS = 256
_INFERENCE = 0.5  # of the memory of training, at most
_streams = local()
_Key: TypeAlias = tuple[Any, ...]
"""What the batches of a graph have in common; documents and padded length first."""


def captured_training(
    model: GrammarModel,
    autocast: torch.dtype | None = None,
    loss: Callable[[Batch], Tensor] | None = None,
    gradients: Gradients | None = None,
    memory: GraphMemory | None = None,
) -> Captured:
    """Return a function of a batch: forward, loss and backward; it returns the loss.

    Gradients replace those of the batch before, so the optimizer's zero_grad is not needed; they
    are added to `gradients` instead, if somebody has such, who clears them.
    `autocast` computes in that type where PyTorch thinks it safe. `loss` is a function of a batch;
    by default model.loss of what the model says. `memory` is shared with others.

    >>> step = captured_training(model)           # doctest: +SKIP
    >>> for batch in loader:                      # doctest: +SKIP
    ...     loss = step(batch.to("cuda", non_blocking=True))
    ...     optimizer.step()
    """
    into = gradients or Gradients(model.parameters(), model.kernels)

    def before() -> None:
        if gradients is None:
            into.attach()  # Somebody may have set them to None, as zero_grad does.
            into.clear()
        into.clean = False

    def run(batch: Batch) -> tuple[Tensor, Sequence[Tensor | None]]:
        if batch.labels is None:
            raise InputError("training needs batches with labels")
        with _mode(model, training=True), _autocast(autocast):
            mean = loss(batch) if loss else model.loss(model(batch), batch.labels)
        return mean.detach(), torch.autograd.grad(mean, into.parameters, allow_unused=True)

    def body(batch: Batch) -> Tensor:
        # Not while libraries warm up: what an earlier piece of a step has found may be there.
        with gradients_added_to(into.by_address):
            mean, found = run(batch)
        into.add(found)
        return mean

    return Captured(body, before=before, warm_up=run, memory=memory, by_kernels=model.kernels)


def captured_inference(
    model: GrammarModel,
    autocast: torch.dtype | None = None,
    after: int = 0,
    memory: GraphMemory | None = None,
) -> Captured:
    """Return a function of a batch that returns the model's outputs, float [B, outputs].

    A shape is captured `after` so many batches of it, which run without a graph. `memory` is shared
    with others.
    """

    def body(batch: Batch) -> Tensor:
        with torch.no_grad(), _mode(model, training=False), _autocast(autocast):
            outputs: Tensor = model(batch)
        return outputs.clone()

    return Captured(body, after=after, memory=memory, cost=_INFERENCE, by_kernels=model.kernels)


class GraphMemory:
    """Memory that graphs share: about what the largest needs, and it is the same for all others.

    For graphs whose results are copied before another one runs. Functions that share it make up one
    training, or one series of predictions, on one device.
    """

    def __init__(self) -> None:
        self.pool: Any = None
        self._largest = 0.0
        self._inputs: Tensor | None = None
        self._stream: torch.cuda.Stream | None = None
        self._users: WeakSet[Captured] = WeakSet()

    def join(self, user: Captured) -> None:
        """Let a function's graphs be forgotten when they are of no use."""
        self._users.add(user)

    @property
    def stream(self) -> torch.cuda.Stream:
        """Where graphs are captured: memory is for one stream.

        A thread has one for each device: libraries keep some memory for each that they have met.
        """
        if self._stream is None:
            known, device = vars(_streams), str(torch.cuda.current_device())
            if device not in known:
                known[device] = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            self._stream = known[device]
        return self._stream

    def make_room(self, size: float) -> bool:
        """Prepare for a graph that needs `size`, in whatever unit; return whether all begins anew.

        Whoever captures it then had better try first whether there is enough memory: a capture that
        fails for want of it is not one from which PyTorch's allocator recovers.
        """
        larger = size > 1.25 * self._largest
        if larger:
            # Blocks of small graphs are of no use to a much larger one, but those of a large one
            # serve all: the others are captured again when they are next needed.
            self.clear()
            self._largest = size
            self.pool = torch.cuda.graph_pool_handle()
            empty_cache()
        return larger

    def inputs(self, size: int) -> Tensor:
        """Return so many bytes for what a graph reads, the same for all: they run one by one.

        Graphs that read of smaller memory before keep that.
        """
        if self._inputs is None or len(self._inputs) < size:
            spare = 0 if self._inputs is None else size // 4
            self._inputs = None
            self._inputs = torch.empty(size + spare, dtype=torch.uint8, device="cuda")
        return self._inputs

    def clear(self) -> None:
        """Let go of all graphs, and of their memory, which they may be using still."""
        if any(len(user) for user in self._users):
            torch.cuda.synchronize()
        for user in self._users:
            user.forget()
        self.pool, self._largest, self._inputs = None, 0.0, None


class Captured:
    """A function of batches on a CUDA device, run as graphs; its result is one tensor.

    A shape is captured when it is seen first, and again when a forest outgrows it. All graphs share
    their memory and that of what they read, also with others of the same `memory`; `cost` is how
    much a symbol takes of it, to be compared with those. `before` is called before each run;
    `warm_up`, by default the function itself, has libraries set themselves up outside of any graph.
    With `by_kernels` a kernel of our own copies batches, where it can. Not for models whose shapes
    or control flow depend on values on the device, nor for several processes with
    DistributedDataParallel.
    """

    def __init__(
        self,
        body: Callable[[Batch], Tensor],
        before: Callable[[], None] | None = None,
        after: int = 0,
        warm_up: Callable[[Batch], Any] | None = None,
        memory: GraphMemory | None = None,
        cost: float = 1.0,
        by_kernels: bool = True,
    ) -> None:
        self._body, self._before, self._after = body, before, after
        self._warm_up, self._memory, self._cost = warm_up or body, memory or GraphMemory(), cost
        self._memory.join(self)
        self._by_kernels = by_kernels
        self._met: Counter[_Key] = Counter()
        self._graphs: dict[_Key, _Graph] = {}
        self._warm: set[bool] = set()
        use_expandable_segments()

    def __call__(self, batch: Batch) -> Tensor:
        """Run the function on a batch; O(symbols) to copy it in."""
        key = _key(batch)
        with torch.cuda.device(batch.symbols.device):  # else graphs would be of another's stream
            if self._met[key] < self._after:
                self._met[key] += 1
                return self._body(batch)
            graph = self._graph_for(batch)
            if self._before:
                self._before()
            copy_in(graph.batch, batch, self._by_kernels)
            graph.graph.replay()
            return graph.result.clone()

    def reserve(self, batch: Batch) -> None:
        """Capture about the largest batch there will be, whose memory then serves all others.

        Else a batch that is larger than those before it makes their graphs useless.
        """
        with torch.cuda.device(batch.symbols.device):
            self._graph_for(batch)

    def prepare(self, batch: Batch) -> None:
        """Run the function without a graph, unless it was before: a small batch takes little room.

        Libraries set themselves up when they are first used, which cannot be captured; and the
        composer is used by the first batch that has rules.
        """
        rules = len(batch.children) > 0
        if rules in self._warm:
            return
        with torch.cuda.device(batch.symbols.device):
            stream = self._memory.stream
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                self._warm_up(batch)
            torch.cuda.current_stream().wait_stream(stream)
            empty_cache()
        self._warm.add(rules)

    def _graph_for(self, batch: Batch) -> _Graph:
        key, entries = _key(batch), entries_of(batch)
        graph = self._graphs.pop(key, None)
        sizes = [end - begin for begin, end in pairwise(batch.level_offsets)]
        if graph is None or not fits(sizes, graph.room) or not fits(entries, graph.entries):
            before, longer = graph.room if graph else (), longer_in(batch, key[0][1])
            room = make_room(sizes, before, longer)
            graph = self._capture(batch, key[0], room, graph.entries if graph else entries)
        self._graphs[key] = graph  # again as the one used last
        if len(self._graphs) > _MOST_GRAPHS:
            del self._graphs[next(iter(self._graphs))]
        return graph

    def forget(self) -> None:
        """Let go of the graphs: they are captured again when they are next needed."""
        self._graphs.clear()

    def clear(self) -> None:
        """Let go of the graphs, and of their memory, with all who share it."""
        self._memory.clear()

    def __len__(self) -> int:
        """The number of graphs captured so far."""
        return len(self._graphs)

    def _capture(
        self, batch: Batch, shape: tuple[int, int], room: list[int], entries: Sequence[int]
    ) -> _Graph:
        memory = self._memory
        if memory.make_room(shape[0] * shape[1] * self._cost):
            self._warm.clear()
        static = static_batch(batch, shape, room, entries, memory.inputs)
        copy_in(static, batch, self._by_kernels)
        self.prepare(static)
        empty_cache_if_tight()
        graph = torch.cuda.CUDAGraph()
        # Not torch.cuda.graph, which empties all caches each time, also of pinned memory. Batches
        # are put there by other threads meanwhile, which is no part of the graph.
        with torch.cuda.stream(memory.stream):
            graph.capture_begin(pool=memory.pool, capture_error_mode="thread_local")
            try:
                result = self._body(static)
            finally:
                graph.capture_end()
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
        return entries_of(self.batch)


def _key(batch: Batch) -> _Key:
    if not batch.symbols.is_cuda:
        raise InputError('CUDA graphs need batches on the device; use batch.to("cuda")')
    shape = len(batch), padded_length(batch.symbols.shape[1])
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
