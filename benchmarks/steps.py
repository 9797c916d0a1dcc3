"""Ways to make a training step, and contestants that take turns at it: see benchmarks.model."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.optim import Adam, Optimizer

from benchmarks.command import Figures
from benchmarks.peer import peer_batch
from laconic import Grammars
from laconic.batching import Batch, GrammarDataset, LengthSampler
from laconic.nn import GrammarModel
from laconic.nn.graphs import Captured, captured_inference
from laconic.nn.steps import CapturedStep

Phase = Literal["train", "infer"]
PHASES: tuple[Phase, ...] = ("train", "infer")
Step = Callable[[Any], Tensor]


@contextmanager
def rounded_products() -> Iterator[None]:
    """Let products of float32 be those of TF32, as cuDNN's are by default: the same for everybody.

    Around a function, as a decorator, or a part of one; what it was before comes back.
    """
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def eager(model: Any, optimizer: Optimizer) -> tuple[Step, Step]:
    """Return a training step and a prediction as everybody would write them."""

    def train(batch: Any) -> Tensor:
        optimizer.zero_grad()
        loss: Tensor = model.loss(model(batch), batch.labels)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        return loss

    def infer(batch: Any) -> Tensor:
        with torch.no_grad():
            outputs: Tensor = model(batch)
        return outputs

    return train, infer


def graph(model: GrammarModel, optimizer: Optimizer) -> tuple[Step, Step]:
    """Return them as captured CUDA graphs (laconic.nn.graphs), and kernels for the optimizer."""
    step = CapturedStep(model, optimizer)
    return lambda batch: step([batch]), captured_inference(model)


# Ways to make a training step of a model and its optimizer, and a prediction; each is a contestant
# of its own. Both take a batch on the device and do not wait for their result.
WAYS: dict[str, Callable[[Any, Optimizer], tuple[Step, Step]]] = {"eager": eager, "graph": graph}


def batches_of(grammars: Grammars, labels: NDArray[np.int64], size: int, peer: bool) -> list[Any]:
    """Return batches of at most `size` documents: ours of similar lengths, the peer's random.

    Long documents of ours come in smaller batches: none takes much more room than the average.
    """
    if peer:
        order = np.random.default_rng(0).permutation(len(grammars))
        parts = np.array_split(order, -(-len(order) // size))  # no last batch of few documents
        return [peer_batch(grammars.take(rows), labels[rows]) for rows in parts]
    dataset = GrammarDataset(grammars, labels)
    room = int(1.4 * size * max(1.0, dataset.sequence_lengths.mean()))
    sampler = LengthSampler(dataset.sequence_lengths, size, budget=room)
    return [dataset.batch(rows) for rows in sampler]


@dataclass(frozen=True)
class Pass:
    """One pass over batches: wall seconds, milliseconds of each, documents, peak bytes in use."""

    seconds: float
    milliseconds: list[float]
    documents: int
    peak: int


class Contestant:
    """A model, its batches on the host, and its rounds so far."""

    def __init__(
        self, model: torch.nn.Module, way: str, batches: list[Any], device: torch.device
    ) -> None:
        self.device, self.batches = device, batches
        self._before = self._reserved_before = self.reserved = 0
        if device.type == "cuda":
            torch.cuda.empty_cache()
            self._before = torch.cuda.memory_allocated()
            self._reserved_before = torch.cuda.memory_reserved()
        self.model = model.to(device)
        self.optimizer = Adam(model.parameters(), lr=1e-3, fused=device.type == "cuda")
        self._train, self._infer = WAYS[way](model, self.optimizer)
        self.captures = way == "graph"
        self.rounds: dict[Phase, list[Pass]] = {"train": [], "infer": []}
        self.count = len(batches)

    def train(self, batch: Any) -> Tensor:
        """Make a training step of a batch on the host."""
        return self._train(batch.to(self.device, non_blocking=True))

    def infer(self, batch: Any) -> Tensor:
        """Return the outputs for a batch on the host."""
        return self._infer(batch.to(self.device, non_blocking=True))

    def warm_up(self, seconds: float) -> tuple[float, int]:
        """Run for at most about `seconds`; return those of a step, and the peak of its memory.

        The peak is in bytes, above what the model, its gradients and the optimizer hold. It is
        known because the longest batch comes first, which also gets all memory that is needed.
        """
        size = [batch.symbols.numel() for batch in self.batches]
        longest = self.batches[int(np.argmax(size))]
        times = 2 if self.device.type == "cuda" else 1
        peak = max(one_pass(self.train, [longest], self.device).peak for _ in range(times))
        # Parameters, their gradients and what Adam keeps of them.
        state = 4 * sum(p.numel() * p.element_size() for p in self.model.parameters())
        if self.captures:  # A much larger shape makes it begin anew, so that one pass may not do.
            for _ in range(2):
                one_pass(self.train, self.batches, self.device)
        taken: list[float] = []
        for batch in self.batches:
            taken.append(one_pass(self.train, [batch], self.device).seconds)
            if sum(taken) > seconds:
                break
        if self.device.type == "cuda":
            self.reserved = torch.cuda.memory_reserved() - self._reserved_before
        return statistics.mean(taken), max(0, peak - self._before - state)

    def round(self, phase: Phase, number: int) -> None:
        """Measure round `number`: all batches, or the next `count` of them."""
        self.model.train(phase == "train")
        first = number * self.count
        chosen = [self.batches[(first + i) % len(self.batches)] for i in range(self.count)]
        if phase == "infer" and number == 0:
            for some in [chosen, chosen] if self.captures else [chosen[:2]]:
                one_pass(self.infer, some, self.device)
        step = self.train if phase == "train" else self.infer
        self.rounds[phase].append(one_pass(step, chosen, self.device))

    def figures(self, phase: Phase) -> Figures:
        """Return what was measured."""
        rounds = self.rounds[phase]
        return {
            "documents_per_s": [r.documents / r.seconds for r in rounds],
            "ms_mean": 1e3
            * sum(r.seconds for r in rounds)
            / sum(len(r.milliseconds) for r in rounds),
            "ms_median": statistics.median(ms for r in rounds for ms in r.milliseconds),
            "batches": sum(len(r.milliseconds) for r in rounds),
        }


def one_pass(step: Callable[[Any], Any], batches: Sequence[Any], device: torch.device) -> Pass:
    """Run a step on each batch; wait for the device only before and after."""
    cuda = device.type == "cuda"
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()

    def mark() -> Any:
        if not cuda:
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    begin, marks = time.perf_counter(), [mark()]
    for batch in batches:
        step(batch)
        marks.append(mark())
    if cuda:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    ms = [a.elapsed_time(b) if cuda else 1e3 * (b - a) for a, b in pairwise(marks)]
    peak = torch.cuda.max_memory_allocated() if cuda else 0
    return Pass(seconds, ms, sum(map(len, batches)), peak)


def shares(contestant: Contestant) -> Figures:
    """Return the milliseconds of a step, of its composer and of its sequence model, each alone.

    Alone means forward and backward on tensors of the same shapes, over a few batches.
    """
    model, device = cast(GrammarModel, contestant.model), contestant.device
    few = contestant.batches[:: max(1, len(contestant.batches) // 4)][:4]
    width = model.config.embedding_size

    def composer(batch: Batch) -> Tensor:
        states = model.states(batch)
        states.backward(torch.ones_like(states))  # type: ignore[no-untyped-call]
        return states

    def sequence_model(batch: Batch) -> Tensor:
        documents, length = batch.symbols.shape
        inputs = torch.ones(length, documents, width, device=device, requires_grad=True)
        read = model.sequence_model(
            inputs.transpose(0, 1), batch.mask, batch.sequence_lengths, batch.symbols.long()
        )
        read.backward(torch.ones_like(read))
        return cast(Tensor, read)

    def alone(part: Step) -> float:
        run = Captured(lambda batch: part(batch).detach()) if contestant.captures else part

        def step(batch: Batch) -> None:
            run(batch.to(device, non_blocking=True))

        for _ in range(2):
            one_pass(step, few, device)
        return statistics.mean(one_pass(step, few, device).milliseconds)

    model.train()
    one_pass(contestant.train, few[:1], device)
    return {
        "step_ms": statistics.mean(one_pass(contestant.train, few, device).milliseconds),
        "composer_ms": alone(composer),
        "sequence_model_ms": alone(sequence_model),
    }
