"""One ordered pass over a dataset, which validation, prediction and explanation all use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.batching import Batch, GrammarDataset, LengthSampler, pieces
from laconic.nn.graphs import Captured, GraphMemory, captured_inference
from laconic.nn.memory import enough_memory
from laconic.nn.model import GrammarModel
from laconic.nn.piece_size import PieceSize

if TYPE_CHECKING:
    from accelerate import Accelerator

Floats: TypeAlias = npt.NDArray[np.float32]
_CAPTURED_AFTER = 2  # batches of a shape: capturing takes as long as some batches without a graph


class ForwardPass:
    """A model with how documents go through it: without dropout, in batches of similar length.

    Batches have at most `batch_size` documents with `budget` symbols in all, padding included; a
    document that is longer is a batch alone. They go through the model in pieces, if the device has
    too little memory for all of one: `size` says how large, and is measured unless it was before.
    `threads` make batches ahead; for a GPU up to four by default. `autocast` computes in that type
    where PyTorch thinks it safe. On a GPU, batches whose shape was met before run as CUDA graphs,
    unless `graphs` is False. `states` is a function of a batch that gives what model.states does.
    Graphs may share their `memory` with those of training.

    >>> from laconic import compress_many
    >>> from laconic.nn import ModelConfig
    >>> model = GrammarModel(ModelConfig(alphabet_size=256, outputs=2, embedding_size=8, width=8))
    >>> ForwardPass(model).outputs(GrammarDataset(compress_many(["abab", "", "banana"]))).shape
    (3, 2)
    """

    def __init__(
        self,
        model: GrammarModel,
        batch_size: int = 64,
        budget: int | None = None,
        *,
        threads: int = 0,
        autocast: torch.dtype | None = None,
        graphs: bool = True,
        states: Callable[[Batch], Tensor] | None = None,
        memory: GraphMemory | None = None,
        size: PieceSize | None = None,
    ) -> None:
        self.model, self.batch_size, self.budget = model, batch_size, budget
        self.threads, self.autocast, self.graphs, self.states = threads, autocast, graphs, states
        self._captured: Captured | None = None
        self._memory = memory
        self._captured_at: list[Any] = []
        self.size = size or PieceSize()
        self.size.before_retry.append(self._let_go)

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        return next(self.model.parameters()).device

    def outputs(self, dataset: GrammarDataset, accelerator: Accelerator | None = None) -> Floats:
        """Return what the model gives for all documents, float32 [N, outputs], in their order.

        They are told the n-grams that the model needs. The processes of an accelerator share the
        work. OutOfMemoryError says what needs less.
        """
        config, device = self.model.config, self.device
        dataset = dataset.changed(counted=config.counted, in_place=config.in_place)
        processes = accelerator.num_processes if accelerator else 1
        shared = accelerator is not None and 1 < processes <= len(dataset)
        rank = accelerator.process_index if accelerator and shared else 0
        results = torch.zeros(len(dataset), config.outputs, device=device)
        with self.evaluating(), torch.no_grad(), _few_threads(len(dataset)):
            compute = self._function()
            if isinstance(compute, Captured) and self._memory is not None and len(dataset) > 1:
                # What training holds is enough for all graphs: nothing large runs without one.
                middle = int(np.argsort(dataset.sequence_lengths)[len(dataset) // 2])
                compute.prepare(dataset.batch([middle]).to(device))

            def into_results(some: list[Batch]) -> None:
                for piece in some:
                    batch = piece.to(device, non_blocking=True)
                    assert batch.rows is not None
                    results[batch.rows] = compute(batch).float()

            for some in self._pieces(dataset, rank, processes if shared else 1):
                self.size.run(into_results, some, dataset)
        if accelerator and shared:
            # Each row is of one process, and 0 elsewhere.
            results = accelerator.reduce(results, "sum")
        return results.cpu().numpy()

    def batches(
        self, dataset: GrammarDataset, rank: int = 0, processes: int = 1
    ) -> Iterator[Batch]:
        """Yield batches of all documents, or pieces of them, made ahead, on the model's device."""
        for some in self._pieces(dataset, rank, processes):
            for piece in some:
                yield piece.to(self.device, non_blocking=True)

    def _pieces(self, dataset: GrammarDataset, rank: int, processes: int) -> Iterator[list[Batch]]:
        if len(dataset) == 1:
            yield [dataset.batch([0])]
            return
        cuda = self.device.type == "cuda"
        lengths, share = dataset.sequence_lengths, {"rank": rank, "processes": processes}
        sampler = LengthSampler(
            lengths,
            self.batch_size,
            budget=self.budget,
            shuffle=False,
            row_groups=dataset.row_groups,
            **share,
        )
        if cuda and len(sampler) and not self.size.measured:
            self.size.measure(partial(self._take, dataset), sampler.largest(), dataset, self.device)
        # The largest first: what it needs, as memory and graphs, then serves all others.
        order = list(sampler)[::-1] if cuda else sampler
        if self.threads:
            dataset = dataset.changed(threads=1)
        limit = partial(getattr, self.size, "limit")
        threads = self.threads or None
        yield from pieces(dataset, order, limit, threads=threads, pin_memory=cuda)

    def _take(self, dataset: GrammarDataset, rows: list[int]) -> None:
        config = self.model.config
        dataset = dataset.changed(counted=config.counted, in_place=config.in_place)
        with torch.no_grad():
            self._plainly(dataset.batch(rows).to(self.device))

    def _let_go(self) -> None:
        if self._captured is not None:
            self._captured.clear()

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Let the model answer: without dropout, whatever mode it was in and will be again."""
        before = self.model.training
        if before:  # to say so takes as long as a tenth of a short document
            self.model.eval()
        try:
            with enough_memory("use device cpu"):
                yield
        finally:
            if before:
                self.model.train()

    def _function(self) -> Callable[[Batch], Tensor]:
        model = self.model
        if not self.graphs or self.device.type != "cuda" or model.compile_cell or self.states:
            return self._plainly
        # Graphs read weights where these were: a model that moved needs new ones.
        weights = chain(model.parameters(), model.buffers())
        where = [(weight.data_ptr(), weight.dtype) for weight in weights]
        if self._captured is None or where != self._captured_at:
            after = _CAPTURED_AFTER if self._memory is None else 0
            self._captured = captured_inference(model, self.autocast, after, self._memory)
            self._captured_at = where
        return self._captured

    def _plainly(self, batch: Batch) -> Tensor:
        with torch.autocast(self.device.type, self.autocast, enabled=self.autocast is not None):
            outputs: Tensor = self.model(batch, self.states(batch) if self.states else None)
        return outputs


@contextmanager
def _few_threads(documents: int) -> Iterator[None]:
    """Let one document be read by this thread alone: others are waited for longer than they help.

    The number is each thread's own, so that nobody else is slowed down meanwhile.
    """
    before = torch.get_num_threads()
    if documents > 1 or before == 1:
        yield
        return
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
