"""What a training keeps: in a run's folder, or without one in memory."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import accelerate
import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

import laconic
from laconic.batching import GrammarDataset
from laconic.corpus import Corpus
from laconic.corpus.stored import StoredGrammars
from laconic.files import append_line, sweep
from laconic.nn import GrammarModel
from laconic.nn.pretrained import parameters_of
from laconic.tasks import Task
from laconic.training.accelerator import random_states, set_random_states
from laconic.training.checkpoint import CheckpointError, Position, cut_lines
from laconic.training.holdout import targets_of
from laconic.training.progress import TrainingError
from laconic.training.run import Run, RunError, about_corpus
from laconic.training.settings import TrainingConfig

# These do not change what comes out.
_FREE = {"checkpoint_minutes", "minutes", "workers", "trackers"}


class Recorder:
    """Keeps checkpoints, metrics and the model; only the main process writes.

    Methods are called by all processes, in the same order. As long as it is entered, no other
    training writes to the run.
    """

    def __init__(self, folder: Path | None, config: TrainingConfig, accelerator: Accelerator):
        self._folder, self._config, self._accelerator = folder, config, accelerator
        self._run: Run | None = None
        self._kept: dict[str, Tensor] = {}
        self._saved = time.monotonic()
        self._lock = ExitStack()
        self.history: list[dict[str, Any]] = []
        self.finished = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.close()

    def ended(
        self, training: GrammarDataset, validation: GrammarDataset | None, resume: bool
    ) -> bool:
        """Return whether the run to go on with is finished; RunError if it is of something else."""
        if not resume or self._folder is None or not (self._folder / "config.json").exists():
            return False
        run = Run.open(self._folder)
        self._check_same(run, _fingerprint([training, *([validation] if validation else [])]))
        if run.finished:
            self.history, self.finished = run.metrics(), True
        return self.finished

    def open(
        self,
        source: Corpus | GrammarDataset,
        training: GrammarDataset,
        validation: GrammarDataset | None,
        task: Task,
        model: GrammarModel,
        optimizer: torch.optim.Optimizer,
        resume: bool,
        notes: Mapping[str, Any],
    ) -> Position:
        """Begin a run, or go on: then model, optimizer and random states are those of it."""
        trackers = {name: str(value) for name, value in self._config.to_json().items()}
        if self._config.trackers:
            self._accelerator.init_trackers("laconic", config=trackers)
        if self._folder is None:
            return Position()
        if not isinstance(source, Corpus):
            raise TypeError("a run needs a corpus: a dataset does not know its codec and alphabet")
        if self._main:
            self._lock.enter_context(Run.claimed(self._folder))
        self._wait()
        there = (self._folder / "config.json").exists()
        about = _about(source, training, validation, task, model, self._accelerator.device)
        for name, value in notes.items():
            known = about.get(name)
            about[name] = known | value if isinstance(known, dict) else value
        self._wait()
        if not (there and resume):
            if self._main:
                with self._full_disk():
                    Run.create(self._folder, self._config, about, source.rulebook)
            self._wait()
            self._run = Run.open(self._folder)
            return Position()
        self._run = Run.open(self._folder)
        self._check_same(self._run, about["fingerprint"])
        if self._run.finished:
            self.history, self.finished = self._run.metrics(), True
            return Position()
        return self._resume(self._run, model, optimizer)

    def _check_same(self, run: Run, fingerprint: str) -> None:
        mine, theirs = self._config.to_json(), run.config.to_json()
        differ = [name for name in mine if mine[name] != theirs[name] and name not in _FREE]
        if differ:
            told = ", ".join(f"{name} was {theirs[name]}, now {mine[name]}" for name in differ)
            raise RunError(
                f"{run.folder} was begun with other settings: {told}; "
                "go on with those, or choose another folder"
            )
        if run.fingerprint != fingerprint:
            raise RunError(
                f"{run.folder} was begun with other documents or labels; choose another folder"
            )

    def _resume(self, run: Run, model: GrammarModel, optimizer: torch.optim.Optimizer) -> Position:
        if self._main:
            sweep(run.folder)
        self._wait()
        loaded = run.checkpoints.load(model, optimizer)
        at, states = loaded or (Position(processes=self._accelerator.num_processes), {})
        if at.processes != self._accelerator.num_processes:
            raise RunError(f"{run.folder} was begun on {at.processes} processes; use as many")
        if loaded:
            try:
                set_random_states(self._accelerator, states)
            except ValueError as error:
                path = run.checkpoints.whole()[-1] / "optimizer.safetensors"
                raise CheckpointError(f"{path}: {error}") from None
        if self._main:
            with self._full_disk():
                cut_lines(run.metrics_path, at.lines)
        self._wait()
        self.history = run.metrics()
        if self._main and at.best_epoch is not None and at.best_epoch == at.epoch and not at.batch:
            # It may have been killed between the checkpoint and the model.
            with self._full_disk():
                model.save_pretrained(run.folder / "model")
        self._wait()
        return at

    def due(self) -> bool:
        """Return whether a checkpoint should be saved by now; the same in all processes."""
        if self._run is None:
            return False
        due = time.monotonic() - self._saved >= 60 * self._config.checkpoint_minutes
        if self._accelerator.num_processes > 1:
            # The clock of the main process decides.
            vote = torch.tensor([float(due and self._main)], device=self._accelerator.device)
            due = bool(self._accelerator.reduce(vote, "sum").item())
        return due

    def save(self, at: Position, model: GrammarModel, optimizer: torch.optim.Optimizer) -> None:
        """Write a checkpoint; TrainingError if weights are no numbers any more."""
        if self._run is None:
            return
        for weight in model.parameters():
            if not bool(torch.isfinite(weight).all()):
                raise TrainingError.of_loss(float("nan"), at.epoch + 1, at.step)
        states = random_states(self._accelerator)
        if self._main:
            processes = self._accelerator.num_processes
            at = replace(at, lines=len(self.history), processes=processes)
            with self._full_disk():
                self._run.checkpoints.save(at, model, optimizer, states)
        self._wait()
        self._saved = time.monotonic()

    def end_epoch(
        self,
        at: Position,
        line: dict[str, Any],
        model: GrammarModel,
        optimizer: torch.optim.Optimizer,
    ) -> None:
        """Keep an epoch: its line, a checkpoint, and the model if it is the one to keep so far.

        In this order: after a kill, lines that the checkpoint does not know are cut off, and a
        model that it knows to be kept is written again.
        """
        self.add(line)
        self.save(at, model, optimizer)
        if at.best_epoch == at.epoch:
            self.keep(model)

    def keep(self, model: GrammarModel) -> None:
        """Keep a model, in place of the one before."""
        if self._run is None:
            weights = model.state_dict().items()
            self._kept = {name: weight.detach().cpu().clone() for name, weight in weights}
        elif self._main:
            with self._full_disk():
                model.save_pretrained(self._run.folder / "model")
                self._run.tell(parameters=parameters_of(model))
        self._wait()

    def restore_kept(self, model: GrammarModel) -> None:
        """Give the model the weights of the epoch that is kept."""
        self._wait()
        model.load_state_dict(self._run.model().state_dict() if self._run else self._kept)

    def finish(self, line: dict[str, Any]) -> None:
        """Write the last line, which says that the run is finished."""
        self.add(line)
        for tracker in self._accelerator.trackers if self._config.trackers else ():
            tracker.finish()
        self._wait()

    def add(self, line: dict[str, Any]) -> None:
        """Write a line of metrics."""
        self.history.append(line)
        if self._run is not None and self._main:
            with self._full_disk():
                append_line(self._run.metrics_path, json.dumps(line, allow_nan=False))
        if self._config.trackers and "epoch" in line:
            figures = {f"valid/{name}": value for name, value in (line["valid"] or {}).items()}
            plain = {k: v for k, v in (line | figures).items() if isinstance(v, int | float)}
            self._accelerator.log(plain, step=line["step"])

    @property
    def _main(self) -> bool:
        return bool(self._accelerator.is_main_process)

    def _wait(self) -> None:
        self._accelerator.wait_for_everyone()

    @contextmanager
    def _full_disk(self) -> Any:
        try:
            yield
        except OSError as error:
            told = error.strerror or str(error)
            raise TrainingError(
                f"{self._folder} cannot be written to: {told}; what was written before is whole: "
                "make room and go on with --resume"
            ) from error


def _about(
    corpus: Corpus,
    training: GrammarDataset,
    validation: GrammarDataset | None,
    task: Task,
    model: GrammarModel,
    device: torch.device,
) -> dict[str, Any]:
    grammars = training.grammars
    parts = [training, *([validation] if validation else [])]
    counted: dict[str, int] = {}
    if task.single:
        counts = np.bincount(np.concatenate([targets_of(each) for each in parts]))
        counted = {str(task.classes[k]): int(n) for k, n in enumerate(counts)}
    return {
        "task": task.name,
        "classes": list(task.classes),
        "labels": task.to_json(),
        **about_corpus(corpus.codec, corpus.alphabet, corpus.rulebook),
        "corpus": {
            "documents": len(grammars),
            "letters": int(corpus.lengths.sum()),
            "symbols": int(grammars.sequence_offsets[-1]),
            "rules": int(grammars.rule_offsets[-1]),
            "classes": counted,
            "training": len(training),
            "validation": len(validation) if validation else 0,
        },
        "parameters": parameters_of(model),
        # As modules say it: a tree that is not installed has no other version.
        "versions": {each.__name__: str(each.__version__) for each in (laconic, torch, accelerate)},
        "machine": _machine(device),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "fingerprint": _fingerprint(parts),
    }


def _machine(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()}, {os.cpu_count()} processors"


def _fingerprint(parts: list[GrammarDataset]) -> str:
    """Return a digest of documents, labels and who validates; O(bytes)."""
    digest = hashlib.sha256()
    for part in parts:
        grammars = part.grammars
        if isinstance(grammars, StoredGrammars):
            arrays: list[Any] = [np.frombuffer(grammars.digest, np.uint8)]
        else:
            names = ("rules", "rule_offsets", "sequence", "sequence_offsets")
            arrays = [getattr(grammars, name) for name in names]
        for array in (*arrays, part.rows, targets_of(part)):
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
