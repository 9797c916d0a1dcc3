"""Runs rows of the grid: each is trained by laconic.training, tested, and written as one line."""

from __future__ import annotations

import gc
import shutil
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import torch

from benchmarks.steps import rounded_products
from experiments.paper.corpora import CACHE, corpora
from experiments.paper.grid import Row
from experiments.paper.memory import TEST_BATCH, TEST_SYMBOLS
from experiments.paper.protocol import done
from experiments.paper.results import RESULTS, Figures, about, add_rows, pack
from laconic.batching import GrammarDataset
from laconic.errors import OutOfMemoryError
from laconic.nn import GrammarModel
from laconic.tasks import summary
from laconic.training.auto import learn
from laconic.training.holdout import split, targets_of
from laconic.training.loop import Trained
from laconic.training.progress import Progress, TrainingError
from laconic.training.run import Run, RunError
from laconic.training.settings import TrainingConfig
from laconic.training.validation import forward_pass

__all__ = ["LEFT", "Runs", "in_words", "memory_of", "run_row", "run_rows", "tidy"]

Runs: TypeAlias = Callable[[Row, str, Path, Path, int, bool], Figures]  # run_row, and what is alike

# What ends one row, and not the others.
LEFT = (ModuleNotFoundError, OutOfMemoryError, TrainingError)
_LINES = ("train_loss", "valid_loss", "seconds", "documents_per_s", "peak_memory_mb")


@rounded_products()
def run_rows(
    rows: Iterable[Row],
    device: str,
    results: Path = RESULTS,
    cache: Path = CACHE,
    seconds: float | None = None,
    processes: int = 1,
    resumable: bool = True,
) -> list[Row]:
    """Run the rows that have no result of their protocol yet, in order; return those left.

    No row starts after `seconds`. A row that needs a package that is not here, or more memory, or
    whose loss becomes no number, is left, and the others go on. One that was
    interrupted goes on where it was, if it was `resumable`. One process runs many rows: starting
    costs more than some. `processes` is how many share the device (pool.run_in_processes runs
    them): their speeds are not measured.
    """
    began, left = time.perf_counter(), []
    for row in rows:
        if done(results, row):
            continue
        spent = time.perf_counter() - began
        if seconds is not None and spent > seconds:
            left.append(row)
            continue
        try:
            figures = run_row(row, device, results, cache, processes, resumable)
        except LEFT as error:
            print(f"{spent:7.1f} s  {row} left: {error}", file=sys.stderr, flush=True)
            left.append(row)
            continue
        print(f"{spent:7.1f} s  {row}: {in_words(figures)}", file=sys.stderr, flush=True)
    return left


def _say(row: Row, at: Progress) -> None:
    """Tell somebody who waits of every epoch; a row of many seconds would be silent otherwise."""
    if at.line is not None:
        told = f"{at.line['valid']['accuracy']:.1%} held out, {at.line['seconds']:.1f} s"
        print(f"{row}: epoch {at.epoch} of {at.epochs}, {told}", file=sys.stderr, flush=True)


def in_words(figures: Figures) -> str:
    """Return what somebody who waits wants to know of a result."""
    found = figures["test"] if "test" in figures else figures["held_out"]
    return f"{100 * found['accuracy']:.2f} %, {figures['seconds']:.1f} s"


def run_row(
    row: Row,
    device: str,
    results: Path = RESULTS,
    cache: Path = CACHE,
    processes: int = 1,
    resumable: bool = True,
) -> Figures:
    """Train and test one row, write its result, and return it.

    A resumable run is in cache/../runs until the result is written: a kill loses one epoch at most.
    """
    began = time.perf_counter()
    method = row.method
    source, test = corpora(*row.source(cache))
    config = row.config(device)
    folder = None
    if resumable:
        folder = cache.parent / "runs" / row.dataset / f"{method.name}-{row.seed}"
        folder.parent.mkdir(parents=True, exist_ok=True)
    resume = folder is not None and _can_resume(folder, config)
    trained = learn(source, config, folder, resume=resume, progress=partial(_say, row))
    dataset = GrammarDataset(test, trained.task.numbers(test.labels))
    # Larger batches give the same outputs sooner.
    larger = replace(config, batch_size=max(TEST_BATCH, config.batch_size), budget=TEST_SYMBOLS)
    # What is counted is counted once: a model says the sum of its views.
    views = {
        name: forward_pass(alone, larger).outputs(dataset)
        for name, alone in _views(trained.model).items()
    }
    said, right = sum(views.values()), targets_of(dataset)
    tested = {name: summary(trained.task.evaluate(view, right)) for name, view in views.items()}
    targets = trained.task.numbers(source.labels)
    fit, held_out = split(trained.task, targets, config.holdout, row.seed)
    figures: Figures = {
        "dataset": row.dataset,
        "method": method.name,
        "model": method.model,
        "seed": row.seed,
        "protocol": {
            "group": row.group.name,
            "departures": row.group.departures(row.dataset),
            "longest": row.group.longest,
            "few": row.group.few,
        },
        "config": config.to_json(),
        "about": about(),
        "processes": processes,
        "documents": {
            "train": len(fit),
            "valid": len(held_out),
            "test": len(dataset),
            "sequence": float(GrammarDataset(source.grammars).sequence_lengths.mean()),
        },
        "test": summary(trained.task.evaluate(said, right)),
        "right": pack(trained.task.decide(said) == right),
        "views": tested,
        "best_epoch": trained.best_epoch,
        "epochs": _epochs(trained),
        "seconds": time.perf_counter() - began,
        **memory_of(trained),
    }
    if method.model == "auto":
        figures["auto"] = trained.history[-1]["auto"]
    add_rows(results, figures)
    if folder is not None:
        shutil.rmtree(folder)
    del trained, dataset
    tidy()
    return figures


def memory_of(trained: Trained) -> Figures:
    """Return the memory that a training took; of a GPU also what nobody else could have."""
    figures = {"peak_memory_mb": trained.peak_memory}
    if trained.reserved_memory is not None:
        figures["reserved_memory_mb"] = trained.reserved_memory
    return figures


def tidy() -> None:
    """Give back a row's memory: what graphs hold would be counted as the next row's."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _can_resume(folder: Path, config: TrainingConfig) -> bool:
    """Whether a folder has a run with these settings; one with others is removed."""
    try:
        if Run.open(folder).config == config:
            return True
    except RunError:
        pass
    shutil.rmtree(folder, ignore_errors=True)
    return False


def _views(model: GrammarModel) -> dict[str, GrammarModel]:
    """Return each view that a model has as a model of its own."""
    config, weights = model.config, model.state_dict()
    if config.model != "both":
        return {config.model: model}
    found = {}
    for name in ("sequence", "ngram"):
        found[name] = GrammarModel(replace(config, model=name))
        found[name].load_state_dict({key: weights[key] for key in found[name].state_dict()})
        found[name].to(next(model.parameters()).device)
    return found


def _epochs(trained: Trained) -> dict[str, list[Any]]:
    """Return the figures of each epoch, a list for each."""
    lines = [line for line in trained.history if "epoch" in line]
    found = {name: [line[name] for line in lines] for name in _LINES}
    return {"valid_accuracy": [line["valid"]["accuracy"] for line in lines], **found}
