"""What a training begins with: a model that knows the documents' n-grams, and its optimizer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import cast

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
from laconic.nn.bag import NgramBag
from laconic.rulebook import Rulebook
from laconic.training.settings import TrainingConfig


def new_model(
    config: ModelConfig, training: GrammarDataset, watch: Watch | None = None
) -> GrammarModel:
    """Return a new model, which knows the n-grams that are in two documents at least.

    What only one document has can be learned by heart, and says nothing of others. `watch` is told
    how many documents were counted, of how many.
    """
    frequencies = shared = known = None
    if (book := training.grammars.rulebook) is not None:
        config = replace(config, shared_rules=len(book))
        # A map that stands for letters has no room for anything else.
        composes = config.reads_sequences and config.composer != "linear_recurrence"
        if config.residual_documents and composes:
            known = _rule_frequencies(_portions(training, watch), book) >= config.residual_documents
            config = replace(config, residual_rows=int(known.sum()))
    if config.in_place is not None:
        shared = _shared_buckets(_portions(training, watch), config.in_place)
        config = replace(config, local_rows=int(shared.sum()))
    if config.counted is not None:
        frequencies = _frequencies(training, config.counted, watch)
        frequencies[frequencies < 2] = 0
        config = replace(config, ngram_rows=int(np.count_nonzero(frequencies)))
    model = GrammarModel(config)
    if model.bag is not None and frequencies is not None:
        model.bag.learn(torch.from_numpy(frequencies), len(training))
    if model.residuals is not None and known is not None:
        model.residuals.learn(torch.from_numpy(known))
    if model.local is not None and shared is not None:
        model.local.learn(torch.from_numpy(shared))
    return model


def counting_model(config: ModelConfig, frequencies: Int64s, documents: int) -> GrammarModel:
    """Return a new model that counts only, of n-grams by column: in how many documents each is."""
    frequencies = np.where(frequencies < 2, 0, frequencies)
    model = GrammarModel(replace(config, ngram_rows=int(np.count_nonzero(frequencies))))
    cast(NgramBag, model.bag).learn(torch.from_numpy(frequencies), documents)
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


def _frequencies(dataset: GrammarDataset, counted: HashedCounter, watch: Watch | None) -> Int64s:
    """Return in how many of the documents each n-gram and phrase occurs, int64 [columns]."""
    total = np.zeros(counted.columns, np.int64)
    kept = dataset.kept
    parts = portions(dataset.grammars, dataset.rows)
    for rows, some in zip(parts, _portions(dataset, watch), strict=True):
        counts = counted.count(some)
        total += np.bincount(counts.indices, minlength=counted.columns)
        if kept is not None and kept.counted == counted:
            kept.keep(rows, counts)  # Not even the first epoch counts them again.
    return total


def _rule_frequencies(parts: Iterable[Grammars], book: Rulebook) -> Int64s:
    """Return how many of the documents use each shared rule, in sequences or rules, int64 [S]."""
    total = np.zeros(len(book), np.int64)
    for part in parts:
        documents = np.arange(len(part))
        used = np.concatenate([part.sequence, part.rules.ravel()]).astype(np.int64)
        owners = np.concatenate(
            [
                np.repeat(documents, np.diff(part.sequence_offsets)),
                np.repeat(documents, 2 * np.diff(part.rule_offsets)),
            ]
        )
        number = used - book.alphabet_size
        is_shared = (number >= 0) & (number < len(book))
        seen = np.unique(owners[is_shared] * len(book) + number[is_shared])
        total += np.bincount(seen % len(book), minlength=len(book))
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
