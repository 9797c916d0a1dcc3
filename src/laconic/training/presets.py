"""Presets: settings that go together, by name; what somebody chooses wins over them."""

from __future__ import annotations

from typing import Any

_ACCURATE: dict[str, Any] = {
    "composer": "grc",
    "dropout": 0.2,
    "local_ngrams": 7,
    "local_buckets": 1 << 20,
    "local_size": 64,
    "local_dropout": 0.7,
    "epochs": 5,
    "holdout": 0.1,
}
_PAPER: dict[str, Any] = {
    "composer": "dual_gru",
    "embedding_size": 200,
    "sequence_model": "lstm",
    "width": 200,
    "layers": 1,
    "direction": "both",
    "pooling": "max",
    "dropout": 0.5,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "warmup_steps": 1000,
    "schedule": "halving",
    "halve_every": 10,
    "clip": None,
    "epochs": 50,
    "batch_size": 126,
    "documents_per_epoch": 100_000,
    "holdout": 0.2,
}
PRESETS: dict[str, dict[str, Any]] = {
    # What is counted and how long is read is decided by held-out documents: laconic.training.auto.
    "auto": {"model": "auto", "holdout": 0.2},
    # For a minute on one processor; what is not a matter of time held-out documents chose, as for
    # all presets but the paper's: docs/choices.md.
    "fast": {
        "embedding_size": 64,
        "width": 64,
        "epochs": 5,
        "batch_size": 16,
        "learning_rate": 4e-3,
        "dropout": 0.0,
    },
    # What mattered on imdb, and what did not: docs/accuracy.md.
    "accurate": _ACCURATE,
    # What also counts is more accurate: docs/results.md, Two views.
    "both": _ACCURATE | {"model": "both", "ngrams": 10, "ngram_buckets": 1 << 22, "phrases": 0},
    "paper-text": _PAPER,
    "paper-dna": _PAPER
    | {"dropout": 0.0, "batch_size": 10, "halve_every": 20, "documents_per_epoch": None},
}
