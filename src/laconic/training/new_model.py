"""What a training begins with: a model that knows the documents' n-grams, and its optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset
from laconic.corpus.stored import Watch
from laconic.forest import plant
from laconic.grammar import Grammars
from laconic.ngrams.hashed import HashedCounter, portions
from laconic.ngrams.in_place import NgramPlacer
from laconic.nn import GrammarModel, ModelConfig
from laconic.training.settings import TrainingConfig


def new_model(
    config: ModelConfig, training: GrammarDataset, watch: Watch | None = None
) -> GrammarModel:
    """Return a new model, which knows the n-grams that are in two documents at least.

    What only one document has can be learned by heart, and says nothing of others. `watch` is told
    how many documents were counted, of how many.
    """
    frequencies = shared = None
    if config.in_place is not None:
        shared = _shared_buckets(_portions(training, watch), config.in_place)
        config = replace(config, local_rows=int(shared.sum()))
    if config.counted is not None:
        frequencies = _frequencies(_portions(training, watch), config.counted)
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


def _portions(dataset: GrammarDataset, watch: Watch | None) -> Iterator[Grammars]:
    done = 0
    for rows in portions(dataset.grammars, dataset.rows):
        yield dataset.grammars.take(rows)
        done += len(rows)
        if watch is not None:
            watch(done, len(dataset))


def _frequencies(documents: Iterable[Grammars], counted: HashedCounter) -> Int64s:
    """Return in how many of the documents each n-gram and phrase occurs, int64 [columns]."""
    total = np.zeros(counted.columns, np.int64)
    for some in documents:
        counts = counted.count(some)
        total += np.bincount(counts.indices, minlength=counted.columns)
    return total


def _shared_buckets(parts: Iterable[Grammars], ngrams: NgramPlacer) -> npt.NDArray[np.bool_]:
    """Return in which buckets two or more of the documents have n-grams, bool [buckets]."""
    shared = np.zeros(ngrams.buckets, np.bool_)
    owners = np.full(ngrams.buckets, -1)  # one of the documents that have each
    before = 0
    for some in parts:
        forest = plant(some, merge=False)
        documents, buckets = ngrams.by_document(forest, wanted=~shared)
        documents += before
        before += len(some)
        new = owners[buckets] < 0
        owners[buckets[new]] = documents[new]
        shared[buckets[owners[buckets] != documents]] = True
    return shared
