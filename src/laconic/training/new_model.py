"""What a training begins with: a model and its optimizer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from laconic.nn import GrammarModel, ModelConfig
from laconic.training.data import Part
from laconic.training.settings import TrainingConfig

__all__ = ["new_model", "new_optimizer"]


def new_model(config: ModelConfig, training: Part) -> GrammarModel:
    """Return a new model, which knows the n-grams that are in two documents at least.

    What only one document has can be learned by heart, and says nothing of others.
    """
    frequencies = shared = None
    if config.in_place is not None:
        shared = training.shared(config.in_place)
        config = replace(config, local_rows=int(shared.sum()))
    if config.counted is not None:
        frequencies = training.frequencies(config.counted)
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
