"""The training loop: one function, on Accelerate, that can be stopped anywhere and goes on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from accelerate import Accelerator

from laconic.batching import Batch, GrammarDataset, LengthSampler, pieces
from laconic.corpus import Corpus
from laconic.errors import needs
from laconic.nn import GrammarModel
from laconic.nn.graphs import GraphMemory
from laconic.nn.memory import (
    enough_memory,
    memory_figures,
    peak_memory_mb,
    reserved_memory_mb,
)
from laconic.nn.piece_size import PieceSize
from laconic.tasks import Task, summary
from laconic.training.checkpoint import Position
from laconic.training.holdout import divide, targets_of
from laconic.training.losses import class_weights, document_losses
from laconic.training.new_model import new_model, new_optimizer
from laconic.training.progress import Progress, WatchedLosses
from laconic.training.schedule import learning_rate
from laconic.training.settings import TrainingConfig

with needs("training", "train"):
    from laconic.training.accelerator import accelerator_for, joined
    from laconic.training.pieces import largest_piece, measure, piece_figures
    from laconic.training.recorder import Recorder
    from laconic.training.step import Step
    from laconic.training.streaming import with_kept_bags, with_stream
    from laconic.training.validation import forward_pass, validate

_CHECK_EVERY = 50  # steps after which a GPU is asked for its losses
_AGREE_EVERY = 10  # steps after which processes agree on whether time is up
_CURE = (
    'use precision = "bf16", a smaller width, fewer buckets of n-grams, shorter documents or '
    "device cpu; the last checkpoint is whole"
)


@dataclass(frozen=True)
class Trained:
    """What came out: the model of the epoch that is kept, and how it went."""

    model: GrammarModel
    task: Task
    history: list[dict[str, Any]]
    """The lines of metrics.jsonl."""
    best_epoch: int
    """The one that is kept."""
    seconds: float
    peak_memory: float
    """MB of the GPU that tensors took, or else of the process."""
    reserved_memory: float | None = None
    """MB that the GPU's allocator held."""


def train(
    source: Corpus | GrammarDataset,
    config: TrainingConfig,
    folder: Path | None = None,
    *,
    task: Task | None = None,
    valid: Corpus | GrammarDataset | None = None,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    notes: Mapping[str, Any] | None = None,
    until: float | None = None,
) -> Trained:
    """Train a model on a corpus, or on a dataset whose numbers `task` explains.

    `valid` chooses the epoch that is kept, or else the share `holdout` of the source does, unless
    `keep` says that it is the last, and that is read to its end. `weights` (float [N]) are those of
    the source's documents; of `groups` [N], none both trains and validates. With `folder`, a run is
    written there (laconic.training.run), to which `notes` are added; `resume` goes on with it.
    `progress` is called after every step and epoch, and before, while documents are read; it may
    raise to stop. `until`, of time.perf_counter(), ends the epoch in which it comes with the next
    step, and the training with it. In several processes (torchrun), each calls this; the gradient
    is that of the mean loss over the documents of all. On the CPU, the same arguments and number of
    threads give the same weights, also after interruptions. Torch's random state is left as it was.

    Raises TrainingError for a loss that is no number or a full disk, OutOfMemoryError, RunError if
    something else is in the folder, LabelError and ConfigError.
    """
    began, accelerator = time.perf_counter(), accelerator_for(config, folder)
    device, processes = accelerator.device, accelerator.num_processes
    cuda = device.type == "cuda"
    corpora = [each for each in (source, valid) if isinstance(each, Corpus)]
    config = with_stream(config.settled(), corpora, accelerator, folder if resume else None)

    def reading(done: int, total: int) -> None:
        if progress:
            progress(Progress(0, config.epochs, done, total, None, 0.0))

    parts = divide(source, valid, task, config, reading, groups, weights)
    training, validation, task = parts.training, parts.validation, parts.task
    by_row = None if parts.weights is None else parts.weights[: len(training)]
    del parts
    with (
        joined(accelerator),
        torch.random.fork_rng(devices=[device] if cuda else []),
        enough_memory(_CURE),
        Recorder(folder, config, accelerator) as recorder,
    ):
        torch.manual_seed(config.seed)
        wanted = config.model_config(training.grammars.alphabet_size, task.outputs, task.name)
        training = with_kept_bags(training, wanted.counted)
        model = new_model(wanted, training, reading).to(device)
        if validation is not None:
            validation = with_kept_bags(validation, wanted.counted)
        model.compile_cell, model.kernels = config.compile, config.kernels
        optimizer = new_optimizer(config, model)
        torch.manual_seed(config.seed + accelerator.process_index)  # dropout is each one's own
        training = training.changed(
            counted=model.config.counted,
            in_place=model.config.in_place,
            dropout=config.grammar_dropout,
        )
        sampler = LengthSampler(
            training.sequence_lengths,
            config.batch_size,
            budget=config.budget,
            seed=config.seed,
            rank=accelerator.process_index,
            processes=processes,
            documents=_fewer(config.documents_per_epoch, len(training)),
            row_groups=training.row_groups,
        )
        size = PieceSize()
        loader = pieces(
            training,
            sampler,
            lambda: size.limit,
            workers=config.workers,
            pin_memory=cuda,
            seed=config.seed,
        )
        by_class = None
        if config.class_weights and task.single:
            by_class = class_weights(targets_of(training), task.outputs).to(device)
        memory = GraphMemory()  # Steps and validation take turns.
        losses_of = document_losses(config, task, by_class)
        step = Step(
            model,
            optimizer,
            losses_of,
            config,
            accelerator,
            by_row,
            size,
            memory,
        )
        forward = forward_pass(model, config, processes, memory, size)

        def figures_of(epoch: int) -> dict[str, Any] | None:
            if validation is None:
                return None
            return validate(forward, validation, task, epoch, accelerator)

        # The folder comes last: what is wrong with settings or documents leaves nothing there.
        at = recorder.open(
            source, training, validation, task, model, optimizer, resume, notes or {}
        )
        if recorder.finished:
            recorder.restore_kept(model)
            return _finished(recorder, model, task, began, device)
        if cuda:
            measure(size, model, losses_of, optimizer, config, accelerator, training, sampler)
        late = cut = False
        for epoch in range(at.epoch, config.epochs):
            if late or _out_of_patience(config, at):
                break
            sampler.set_epoch(epoch, start=at.batch)
            steps = -(-len(sampler) // config.accumulate)
            losses = WatchedLosses(at, every=_CHECK_EVERY if cuda else 1)
            started, known = time.perf_counter(), at.documents
            first, cuts = at.batch, 0
            model.train()
            for number, group in _groups(loader, config.accumulate):
                # As if all epochs had as many steps: streamed, they differ a little.
                rate = learning_rate(config, epoch * steps + at.batch // config.accumulate, steps)
                # Where memory is short, it is tried again with smaller pieces.
                seed = config.seed, epoch
                if not step.reserved:
                    largest = training.batch(largest_piece(sampler, size.limit), seed)
                    size.run(step.reserve, [largest], training, seed)
                found = size.run(step.find, group, training, seed)
                loss_sum, count = step.apply(found, rate)
                at = replace(at, batch=at.batch + number, step=at.step + 1)
                cuts += len(group)
                losses.add(at.step, loss_sum, count)
                if recorder.due() and at.batch < len(sampler):
                    spent = at.seconds + time.perf_counter() - started
                    recorder.save(losses.settled(at, spent), model, optimizer)
                if progress:
                    done = -(-at.batch // config.accumulate)
                    progress(Progress(epoch + 1, config.epochs, done, steps, losses.mean, rate))
                if late := until is not None and _time_is_up(until, at.step, accelerator):
                    break
            at = losses.settled(at, at.seconds)
            trained_for = time.perf_counter() - started
            figures = figures_of(epoch + 1)
            line = {
                "epoch": epoch + 1,
                "step": at.step,
                "train_loss": at.loss_sum / at.documents,
                "valid_loss": figures["loss"] if figures else None,
                "valid": summary(figures) if figures else None,
                "learning_rate": rate,
                "seconds": at.seconds + time.perf_counter() - started,
                "documents_per_s": (at.documents - known) / trained_for,
                **memory_figures(device),
                **(piece_figures(size, cuts, at.batch - first) if cuda else {}),
                "read_by": model.read_by,
            }
            last = epoch + 1 == config.epochs and at.batch == len(sampler)
            cut = late and not last
            at = _after_epoch(at, task, figures, kept=last and config.keep == "last")
            recorder.end_epoch(at, line, model, optimizer)
            if progress:
                progress(Progress(epoch + 1, config.epochs, steps, steps, losses.mean, rate, line))
        recorder.restore_kept(model)
        figures = figures_of(at.epoch)
        ended = {"late": True} if cut else {}
        recorder.finish({"done": True, "best_epoch": at.best_epoch, "valid": figures, **ended})
        return _finished(recorder, model, task, began, device)


def _after_epoch(at: Position, task: Task, figures: dict[str, Any] | None, kept: bool) -> Position:
    """Return the beginning of the next epoch, which knows which one is the best so far.

    An epoch that is `kept` is the best one, whatever its score.
    """
    # Without validation, the last one is.
    score = task.rank(figures) if figures else (float(at.epoch),)
    at = replace(at, epoch=at.epoch + 1, batch=0, loss_sum=0.0, documents=0, seconds=0.0)
    better = kept or at.best_epoch is None or score > at.best
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
    memory = peak_memory_mb(device), reserved_memory_mb(device)
    return Trained(model.eval(), task, recorder.history, best, seconds, *memory)


def _time_is_up(until: float, step: int, accelerator: Accelerator) -> bool:
    """Return whether it is later, to any of the processes: all stop after the same step."""
    late = time.perf_counter() > until
    if accelerator.num_processes == 1:
        return late
    if step % _AGREE_EVERY:
        return False
    vote = torch.tensor([float(late)], device=accelerator.device)
    return bool(accelerator.reduce(vote, "sum").item())


def _fewer(wanted: int | None, there: int) -> int | None:
    return None if wanted is None or wanted >= there else wanted


def _groups(loader: Iterable[list[Batch]], size: int) -> Iterator[tuple[int, list[Batch]]]:
    """Yield the pieces of so many batches, and the number of these, which is less at the end."""
    batches_left = iter(loader)
    while group := list(islice(batches_left, size)):
        yield len(group), list(chain.from_iterable(group))
