"""Runs trials: each trains, asks the documents that training held out, and looks at no test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.choices.space import Trial
from experiments.paper.corpora import CACHE, training_corpus
from experiments.paper.grid import Row
from experiments.paper.results import Figures, about, add_rows, find_row, remove_rows
from experiments.paper.training import reserved_mb, tidy
from laconic.training.auto import learn
from laconic.training.holdout import labelled_dataset
from laconic.training.settings import TrainingConfig

__all__ = ["forget_stale", "run_trial", "trial"]


def run_trial(
    row: Row,
    device: str,
    results: Path,
    cache: Path = CACHE,
    processes: int = 1,
    resumable: bool = False,
) -> Figures:
    """Train once, write what the held-out documents say, and return it; as training.run_row."""
    assert isinstance(row, Trial)
    codec, longest = row.method.codec, row.group.longest
    figures = {
        "method": row.method.name,
        "seed": row.seed,
        **trial(row.dataset, codec, row.config(device), longest, cache, row.documents),
        "processes": processes,
    }
    add_rows(results, figures)
    tidy()
    return figures


def trial(
    dataset: str,
    codec: str,
    config: TrainingConfig,
    longest: int | None = None,
    cache: Path = CACHE,
    documents: int | None = None,
) -> Figures:
    """Return what one training came to, on so many documents, chosen by the seed; None: all.

    `held_out` is the best loss of all epochs and the best accuracy; `epochs` has every epoch's.
    `codec` is as in the names of experiments.paper's methods.
    """
    source = training_corpus(dataset, codec, longest, cache)
    data, task = labelled_dataset(source, None, config.task)
    rng = np.random.default_rng([config.seed, 0xC405])
    part = data.select(np.sort(rng.permutation(len(data))[:documents]))
    trained = learn(part, config, task=task)
    lines = [line for line in trained.history if "epoch" in line]
    losses = [line["valid_loss"] for line in lines]
    accuracies = [line["valid"]["accuracy"] for line in lines]
    figures: Figures = {
        "dataset": dataset,
        "codec": codec,
        "config": config.to_json(),
        "about": about(),
        "documents": len(part),
        "symbols": float(part.sequence_lengths.mean()),
        "vectors": trained.model.config.residual_rows,
        "held_out": {"accuracy": max(accuracies), "loss": min(losses)},
        "epochs": {"valid_accuracy": accuracies, "valid_loss": losses},
        "seconds": trained.seconds,
        "peak_memory_mb": trained.peak_memory,
    }
    return figures | reserved_mb(trained.model)


def forget_stale(results: Path, trials: Sequence[Trial]) -> int:
    """Remove results of trials that had other settings, and return how many there were."""
    stale = []
    for each in trials:
        found = find_row(results, *each.key)
        if found is not None:
            of = TrainingConfig.from_json({**found["config"], "device": "cpu"})
            same = found["codec"] == each.method.codec and of == each.config("cpu")
            stale += [] if same else [each.key]
    remove_rows(results, stale)
    return len(stale)
