"""What a training begins with: a model that knows the documents' n-grams, and its optimizer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset
from laconic.forest import plant
from laconic.ngrams.hashed import HashedCounter, portions
from laconic.ngrams.in_place import NgramPlacer
from laconic.nn import GrammarModel, ModelConfig
from laconic.training.settings import TrainingConfig


def new_model(config: ModelConfig, training: GrammarDataset) -> GrammarModel:
    """Return a new model, which knows the n-grams that are in two documents at least.

    What only one document has can be learned by heart, and says nothing of others.
    """
    frequencies = shared = None
    if config.in_place is not None:
        shared = _shared_buckets(training, config.in_place)
        config = replace(config, local_rows=int(shared.sum()))
    if config.counted is not None:
        frequencies = _frequencies(training, config.counted)
        frequencies[frequencies < 2] = 0
        config = replace(config, ngram_rows=int(np.count_nonzero(frequencies)))
    model = GrammarModel(config)
    if model.bag is not None and frequencies is not None:
        model.bag.learn(torch.from_numpy(frequencies), len(training))
    if model.local is not None and shared is not None:
        model.local.learn(torch.from_numpy(shared))
    return model


def new_optimizer(config: TrainingConfig, model: GrammarModel) -> torch.optim.Optimizer:
    """Return the optimizer that the settings want."""
    kind = torch.optim.AdamW if config.optimizer == "adamw" else torch.optim.Adam
    # One pass instead of many, of which a table of n-grams is too large for any cache.
    fused = next(model.parameters()).device.type in ("cpu", "cuda")
    rate, decay = config.learning_rate, config.weight_decay
    return kind(model.parameters(), rate, weight_decay=decay, fused=fused)


def _frequencies(dataset: GrammarDataset, counted: HashedCounter) -> Int64s:
    """Return in how many of the documents each n-gram and phrase occurs, int64 [columns]."""
    total = np.zeros(counted.columns, np.int64)
    for rows in portions(dataset.grammars, dataset.rows):
        counts = counted.count(dataset.grammars.take(rows))
        total += np.bincount(counts.indices, minlength=counted.columns)
    return total


def _shared_buckets(dataset: GrammarDataset, ngrams: NgramPlacer) -> npt.NDArray[np.bool_]:
    """Return in which buckets two or more of the documents have n-grams, bool [buckets]."""
    shared = np.zeros(ngrams.buckets, np.bool_)
    owners = np.full(ngrams.buckets, -1)  # one of the documents that have each
    before = 0
    for rows in portions(dataset.grammars, dataset.rows):
        forest = plant(dataset.grammars.take(rows), merge=False)
        documents, buckets = ngrams.by_document(forest, wanted=~shared)
        documents += before
        before += len(rows)
        new = owners[buckets] < 0
        owners[buckets[new]] = documents[new]
        shared[buckets[owners[buckets] != documents]] = True
    return shared
