"""Runs trials: each trains, asks the documents that training held out, and looks at no test."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.choices.space import Trial
from experiments.paper.corpora import CACHE, training_corpus
from experiments.paper.grid import Row
from experiments.paper.protocol import config_of
from experiments.paper.results import Figures, about, add_rows, find_row, remove_rows
from experiments.paper.training import memory_of, tidy
from laconic.batching import GrammarDataset
from laconic.corpus import Corpus
from laconic.training.auto import learn
from laconic.training.holdout import targets_of
from laconic.training.settings import TrainingConfig
from laconic.training.validation import forward_pass

__all__ = ["forget_stale", "run_trial", "trial"]

_APART = 0.3  # of the documents, that tell what automatic training is worth


def run_trial(
    row: Row,
    device: str,
    results: Path,
    cache: Path = CACHE,
    processes: int = 1,
    resumable: bool = False,
) -> Figures:
    """Train once, write what the held-out documents say, and return it; as training.run_row."""
    figures = {
        "dataset": row.dataset,
        "method": row.method.name,
        "seed": row.seed,
        "codec": row.method.codec,
        **trial(training_corpus(*row.source(cache)), row.config(device)),
        "processes": processes,
    }
    add_rows(results, figures)
    tidy()
    return figures


def trial(source: Corpus, config: TrainingConfig) -> Figures:
    """Return what one training came to: what the documents say that it holds out, and of what.

    `held_out` is the best loss of all epochs and the best accuracy; `epochs` has every epoch's. Of
    automatic training, which may learn from what it held out, it is what other documents say.
    """
    lengths = GrammarDataset(source.grammars).sequence_lengths
    if config.model == "auto":
        others, source = _apart(source, config.seed)
    trained = learn(source, config)
    lines = [line for line in trained.history if "epoch" in line]
    losses = [line["valid_loss"] for line in lines]
    accuracies = [line["valid"]["accuracy"] for line in lines]
    held_out = {"accuracy": max(accuracies, default=None), "loss": min(losses, default=None)}
    if config.model == "auto":
        dataset = GrammarDataset(others, trained.task.numbers(others.labels))
        said = forward_pass(trained.model, config).outputs(dataset)
        found = trained.task.evaluate(said, targets_of(dataset))
        held_out = {name: found[name] for name in held_out}
    return {
        "config": config.to_json(),
        "about": about(),
        "documents": len(lengths),
        "symbols": float(lengths.mean()),
        "vectors": trained.model.config.residual_rows,
        "held_out": held_out,
        "epochs": {"valid_accuracy": accuracies, "valid_loss": losses},
        "seconds": trained.seconds,
        **memory_of(trained),
    }


def _apart(source: Corpus, seed: int) -> tuple[Corpus, Corpus]:
    """Return documents that no part of a training is to see, and the others."""
    out = np.random.default_rng([seed, 0xA9A7]).random(len(source)) < _APART
    return source[np.flatnonzero(out)], source[np.flatnonzero(~out)]


def forget_stale(results: Path, trials: Sequence[Trial]) -> int:
    """Remove results of trials that had other settings, and return how many there were."""
    stale = []
    for each in trials:
        found = find_row(results, *each.key)
        if found is not None:
            same = found["codec"] == each.method.codec and config_of(found) == each.config("cpu")
            stale += [] if same else [each.key]
    remove_rows(results, stale)
    return len(stale)
