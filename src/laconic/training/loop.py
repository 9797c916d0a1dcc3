"""The training loop: one function, on Accelerate, that can be stopped anywhere and goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from laconic.batching import Batch, GrammarDataset, LengthSampler, batches
from laconic.corpus import Corpus
from laconic.errors import InputError, needs
from laconic.nn import GrammarModel
from laconic.nn.graphs import captured_training
from laconic.tasks import Task, summary
from laconic.training.accelerator import accelerator_for, peak_memory_mb, told_of_memory
from laconic.training.checkpoint import Position
from laconic.training.data import Part, RowSampler, halves
from laconic.training.losses import Losses, class_weights, document_losses, losses_of_views
from laconic.training.new_model import new_model, new_optimizer
from laconic.training.recorder import Recorder, TrainingError
from laconic.training.schedule import learning_rate
from laconic.training.settings import TrainingConfig

with needs("training", "train"):
    from accelerate import Accelerator

__all__ = ["Progress", "Trained", "TrainingError", "outputs_of", "train"]

_CHECK_EVERY = 50  # steps after which a GPU is asked for its losses: asking makes it wait


class Progress(NamedTuple):
    """Where a training is, after a step; and after an epoch, with its line of metrics.jsonl."""

    epoch: int
    """From 1."""
    epochs: int
    step: int
    steps: int
    """Of this epoch."""
    loss: float | None
    """Mean of this epoch so far, if known."""
    learning_rate: float
    line: dict[str, Any] | None = None


@dataclass(frozen=True)
class Trained:
    """What came out: the model of the best epoch, and how it went."""

    model: GrammarModel
    task: Task
    history: list[dict[str, Any]]
    """The lines of metrics.jsonl."""
    best_epoch: int
    seconds: float
    peak_memory: float
    """MB of the GPU, or else of the process."""


def train(
    source: Corpus | GrammarDataset,
    config: TrainingConfig,
    folder: Path | None = None,
    *,
    task: Task | None = None,
    valid: Corpus | GrammarDataset | None = None,
    weights: npt.ArrayLike | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    notes: Mapping[str, Any] | None = None,
) -> Trained:
    """Train a model on a corpus, or on a dataset whose numbers `task` explains.

    `valid` chooses the best epoch, or else the share `holdout` of the source does. `weights` (float
    [N]) are those of the source's documents. With `folder`, a run is written there (laconic.
    training.run), to which `notes` are added; `resume` goes on with it. `progress` is called after
    every step and epoch, and may raise to stop. In several processes (torchrun), each calls this;
    the gradient is that of the mean loss over the documents of all. On the CPU, the same arguments
    give the same weights, also after interruptions. Torch's random state is left as it was.

    Raises TrainingError for a loss that is no number, too little memory or a full disk, RunError if
    something else is in the folder, LabelError and ConfigError.
    """
    began, accelerator = time.perf_counter(), accelerator_for(config, folder)
    device = accelerator.device
    training, validation, task = halves(source, valid, task, config)
    with (
        torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        told_of_memory(config),
    ):
        torch.manual_seed(config.seed)
        size = training.dataset.grammars.alphabet_size
        wanted = config.model_config(size, task.outputs, task.name)
        model = new_model(wanted, training).to(device)
        model.compile_cell = config.compile
        training = training.batched_for(model.config, config.grammar_dropout)
        optimizer = new_optimizer(config, model)
        torch.manual_seed(config.seed + accelerator.process_index)  # dropout is each one's own
        sampler = LengthSampler(
            training.sequence_lengths,
            config.batch_size,
            budget=config.budget,
            seed=config.seed,
            rank=accelerator.process_index,
            processes=accelerator.num_processes,
            documents=_fewer(config.documents_per_epoch, len(training)),
        )
        gradients = _gradients(config, accelerator, model, task, training, weights, sampler)
        loader = batches(
            training.dataset,
            RowSampler(sampler, training.rows, config.seed),
            config.workers,
            pin_memory=device.type == "cuda",
        )
        # The folder comes last: what is wrong with settings or documents leaves nothing there.
        recorder = Recorder(folder, config, accelerator)
        at = recorder.open(
            source, training, validation, task, model, optimizer, resume, notes or {}
        )
        if recorder.finished:
            return _finished(recorder, model, task, began, device)
        for epoch in range(at.epoch, config.epochs):
            if _out_of_patience(config, at):
                break
            sampler.set_epoch(epoch, start=at.batch)
            steps = -(-len(sampler) // config.accumulate)
            losses = _Watched(at, epoch, every=_CHECK_EVERY if device.type == "cuda" else 1)
            started, known = time.perf_counter(), at.documents
            model.train()
            for group in _groups(loader, config.accumulate):
                rate = learning_rate(config, at.step, steps)
                for settings in optimizer.param_groups:
                    settings["lr"] = rate
                loss_sum, count = gradients(group)
                if config.clip:
                    accelerator.clip_grad_norm_(model.parameters(), config.clip)
                optimizer.step()
                at = replace(at, batch=at.batch + len(group), step=at.step + 1)
                losses.add(at.step, loss_sum, count)
                if recorder.due() and at.batch < len(sampler):
                    spent = at.seconds + time.perf_counter() - started
                    recorder.save(losses.settled(at, spent), model, optimizer)
                if progress:
                    done = -(-at.batch // config.accumulate)
                    progress(Progress(epoch + 1, config.epochs, done, steps, losses.mean, rate))
            at = losses.settled(at, at.seconds)
            trained_for = time.perf_counter() - started
            figures = _validate(model, validation, task, config, accelerator, epoch)
            line = {
                "epoch": epoch + 1,
                "step": at.step,
                "train_loss": at.loss_sum / at.documents,
                "valid_loss": figures["loss"] if figures else None,
                "valid": summary(figures) if figures else None,
                "learning_rate": rate,
                "seconds": at.seconds + time.perf_counter() - started,
                "documents_per_s": (at.documents - known) / trained_for,
                "peak_memory_mb": peak_memory_mb(device),
            }
            at = _after_epoch(at, task, figures)
            recorder.end_epoch(at, line, model, optimizer)
            if progress:
                progress(Progress(epoch + 1, config.epochs, steps, steps, losses.mean, rate, line))
        recorder.restore_best(model)
        figures = _validate(model, validation, task, config, accelerator, at.epoch - 1)
        recorder.finish({"done": True, "best_epoch": at.best_epoch, "valid": figures})
        return _finished(recorder, model, task, began, device)


def outputs_of(
    model: GrammarModel, part: Part, config: TrainingConfig, accelerator: Accelerator | None = None
) -> npt.NDArray[np.float32]:
    """Return the model's outputs for a part's documents, float32 [N, K], in their order.

    Processes share the work. The model's mode is left as it was.
    """
    device, part = next(model.parameters()).device, part.batched_for(model.config)
    processes = accelerator.num_processes if accelerator else 1
    shared = accelerator is not None and 1 < processes <= len(part)
    sampler = LengthSampler(
        part.sequence_lengths,
        config.batch_size,
        budget=config.budget,
        shuffle=False,
        rank=accelerator.process_index if accelerator and shared else 0,
        processes=processes if shared else 1,
    )
    results = torch.zeros(len(part), model.config.outputs, device=device)
    places = np.zeros(len(part.dataset), np.int64)
    places[part.rows] = np.arange(len(part))
    bf16 = config.precision == "bf16"
    before = model.training
    model.eval()
    with torch.no_grad(), torch.autocast(device.type, torch.bfloat16, enabled=bf16):
        for batch in batches(part.dataset, RowSampler(sampler, part.rows)):
            assert batch.rows is not None
            rows = torch.from_numpy(places[batch.rows.numpy()]).to(device)
            results[rows] = model(batch.to(device)).float()
    model.train(before)
    if accelerator and shared:
        # Each row is of one process, and 0 elsewhere.
        results = accelerator.reduce(results, "sum")
    return results.cpu().numpy()


Gradients = Callable[[list[Batch]], tuple[Tensor, Tensor]]


def _gradients(
    config: TrainingConfig,
    accelerator: Accelerator,
    model: GrammarModel,
    task: Task,
    training: Part,
    weights: npt.ArrayLike | None,
    sampler: LengthSampler,
) -> Gradients:
    """Return a function of some batches that sets gradients to those of the mean over documents.

    The mean is over the documents of these batches in all processes. The function returns the sum
    of losses and the number of documents, of all processes, as tensors.
    """
    device, processes = accelerator.device, accelerator.num_processes
    by_class = None
    if config.class_weights and task.weighs:
        by_class = class_weights(training.targets, task.outputs).to(device)
    losses = document_losses(config, task, by_class)
    if _can_capture(config, accelerator) and weights is None:
        rows = RowSampler(sampler, training.rows, config.seed).largest()
        return _captured(config, model, losses, training.dataset.__getitems__(rows))
    by_document = None
    if weights is not None:
        by_document = torch.as_tensor(np.asarray(weights, np.float32), device=device)
        if by_document.shape != (len(training.dataset),):
            shape = list(by_document.shape)
            raise InputError(f"weights of shape {shape} for {len(training.dataset)} documents")
    parameters = [each for each in model.parameters() if each.requires_grad]

    def gradients(group: list[Batch]) -> tuple[Tensor, Tensor]:
        model.zero_grad()
        tally = torch.zeros(2, device=device)
        for batch in group:
            batch = batch.to(device, non_blocking=True)
            assert batch.labels is not None
            with accelerator.autocast():
                views = model.views(batch)
            each = losses_of_views(losses, views, batch.labels, config.view_loss)
            if by_document is not None and batch.rows is not None:
                each = each * by_document[batch.rows]
            loss = each.sum()
            accelerator.backward(loss)
            # Made on the device: a number that is copied there would make us wait for it.
            tally += torch.stack([loss.detach(), torch.full_like(loss, len(batch))])
        if processes > 1:
            tally = _add_over_processes(accelerator, tally, parameters)
        torch._foreach_mul_([p.grad for p in parameters if p.grad is not None], 1 / tally[1])
        return tally[0], tally[1]

    return gradients


def _add_over_processes(
    accelerator: Accelerator, tally: Tensor, parameters: list[nn.Parameter]
) -> Tensor:
    """Replace gradients by their sums over processes, and return the sum of tallies.

    One message for all: most models are small, and a sum, unlike DistributedDataParallel's mean, is
    right also if processes have different numbers of documents.
    """
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = accelerator.reduce(torch.cat([tally, *(each.reshape(-1) for each in grads)]), "sum")
    pieces = flat.split([len(tally), *(each.numel() for each in grads)])
    for parameter, piece in zip(parameters, pieces[1:], strict=True):
        parameter.grad = piece.view(parameter.shape).clone()
    total: Tensor = pieces[0].clone()
    return total


def _can_capture(config: TrainingConfig, accelerator: Accelerator) -> bool:
    alone = accelerator.num_processes == 1 and config.accumulate == 1
    return config.graphs and alone and accelerator.device.type == "cuda" and not config.compile


def _captured(
    config: TrainingConfig, model: GrammarModel, losses: Losses, largest: Batch
) -> Gradients:
    autocast = torch.bfloat16 if config.precision == "bf16" else None

    def mean_loss(batch: Batch) -> Tensor:
        assert batch.labels is not None
        return losses_of_views(losses, model.views(batch), batch.labels, config.view_loss).mean()

    step = captured_training(model, autocast, mean_loss)
    first = [largest]

    def gradients(group: list[Batch]) -> tuple[Tensor, Tensor]:
        batch = group[0]
        while first:
            step.reserve(first.pop().to("cuda"))
        mean = step(batch.to("cuda", non_blocking=True))
        return mean * len(batch), torch.full_like(mean, len(batch))

    return gradients


class _Watched:
    """Losses of steps, added up in order; TrainingError for one that is no number."""

    def __init__(self, at: Position, epoch: int, every: int) -> None:
        self._sum, self._documents = at.loss_sum, at.documents
        self._epoch, self._every = epoch, every
        self._waiting: list[tuple[int, Tensor, Tensor]] = []

    def add(self, step: int, loss_sum: Tensor, documents: Tensor) -> None:
        self._waiting.append((step, loss_sum, documents))
        if len(self._waiting) >= self._every:
            self._settle()

    @property
    def mean(self) -> float | None:
        return self._sum / self._documents if self._documents else None

    def settled(self, at: Position, seconds: float) -> Position:
        self._settle()
        return replace(at, loss_sum=self._sum, documents=self._documents, seconds=seconds)

    def _settle(self) -> None:
        if not self._waiting:
            return
        steps = [step for step, _, _ in self._waiting]
        values = torch.stack([torch.stack(pair) for _, *pair in self._waiting]).tolist()
        for step, (loss, documents) in zip(steps, values, strict=True):
            if not np.isfinite(loss):
                raise TrainingError.of_loss(loss, self._epoch + 1, step)
            self._sum += loss
            self._documents += round(documents)
        self._waiting = []


def _validate(
    model: GrammarModel,
    part: Part | None,
    task: Task,
    config: TrainingConfig,
    accelerator: Accelerator,
    epoch: int,
) -> dict[str, Any] | None:
    if part is None:
        return None
    outputs = outputs_of(model, part, config, accelerator)
    if not np.isfinite(outputs).all():
        raise TrainingError.of_loss(float("nan"), epoch + 1, None)
    return task.evaluate(outputs, part.targets)


def _after_epoch(at: Position, task: Task, figures: dict[str, Any] | None) -> Position:
    """Return the beginning of the next epoch, which knows whether this one was the best."""
    # Without validation, the last one is.
    score = task.rank(figures) if figures else (float(at.epoch),)
    at = replace(at, epoch=at.epoch + 1, batch=0, loss_sum=0.0, documents=0, seconds=0.0)
    better = at.best_epoch is None or score > at.best
    return replace(at, best_epoch=at.epoch, best=score) if better else at


def _out_of_patience(config: TrainingConfig, at: Position) -> bool:
    if config.patience is None or at.best_epoch is None or at.batch:
        return False
    return at.epoch - at.best_epoch >= config.patience


def _finished(
    recorder: Recorder, model: GrammarModel, task: Task, began: float, device: torch.device
) -> Trained:
    best = recorder.history[-1]["best_epoch"]
    seconds = time.perf_counter() - began
    return Trained(model.eval(), task, recorder.history, best, seconds, peak_memory_mb(device))


def _fewer(wanted: int | None, there: int) -> int | None:
    return None if wanted is None or wanted >= there else wanted


def _groups(loader: Iterable[Batch], size: int) -> Iterator[list[Batch]]:
    batches_left = iter(loader)
    while group := list(islice(batches_left, size)):
        yield group
