"""What each symbol of a sequence adds to what a model says: gradients times inputs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.arrays import Int64s
from laconic.batching import Batch, GrammarDataset
from laconic.grammar import Grammars
from laconic.inference.predictor import Predictor

Floats: TypeAlias = npt.NDArray[np.float64]
ValueOf: TypeAlias = Callable[[Tensor], Tensor]
"""Outputs [B, outputs] to what is explained, [B]; it is linear."""


def scores_of_document(
    predictor: Predictor, batch: Batch, value_of: ValueOf, steps: int | None
) -> tuple[Floats, Tensor]:
    """Return the scores of one document's symbols, float64 [n'], and the outputs for zero vectors.

    The gradient is that at the document, or with `steps` the mean at so many places on the way.
    """
    model, alone = predictor.model, replace(batch, bag=None)
    with torch.no_grad():
        inputs = model.inputs(alone)
        nothing = model.read(torch.zeros_like(inputs), alone)
    if steps is None:
        slopes = _slopes(predictor, alone, inputs, value_of)
    else:
        slopes = _mean_slopes(predictor, alone, inputs, value_of, steps)
    scores = _numpy((slopes * inputs).sum(-1)[0].double())
    return scores[: int(batch.sequence_lengths[0])], nothing


def scores_of_many(predictor: Predictor, grammars: Grammars) -> tuple[Floats, Int64s]:
    """Return scores of all symbols of all sequences for each output, [Σn', K], and their hashes."""
    config, begins = predictor.model.config, grammars.sequence_offsets
    scores = np.empty((len(grammars.sequence), config.outputs))
    hashes = np.empty(len(grammars.sequence), np.int64)
    dataset = GrammarDataset(grammars, in_place=config.in_place)
    with predictor.forward.evaluating(), torch.no_grad():
        for batch in predictor.forward.batches(dataset):
            mask = batch.mask
            inside = mask.cpu().numpy()
            rows = _numpy(cast(Tensor, batch.rows))
            places = (begins[rows][:, None] + np.arange(inside.shape[1]))[inside]
            hashes[places] = _numpy(batch.node_hashes.index_select(0, batch.symbols[mask]))
            inputs = predictor.model.inputs(batch)
            for place in range(config.outputs):
                value_of = partial(predictor.task.value, place=place)
                slopes = _slopes(predictor, batch, inputs, value_of)
                scores[places, place] = _numpy((slopes * inputs).sum(-1)[mask].double())
    return scores, hashes


def _backward(predictor: Predictor) -> AbstractContextManager[Any]:
    # cuDNN keeps nothing for a way back when it is not training.
    if predictor.device.type != "cuda":
        return nullcontext()
    return cast(AbstractContextManager[Any], torch.backends.cudnn.flags(enabled=False))


def _slopes(predictor: Predictor, batch: Batch, inputs: Tensor, value_of: ValueOf) -> Tensor:
    """Return the gradients of each document's value, float [B, T, size]."""
    inputs = inputs.detach().requires_grad_()
    with torch.enable_grad(), _backward(predictor):
        values = value_of(predictor.model.read(inputs, batch))
        (slopes,) = torch.autograd.grad(values.sum(), inputs)
    return slopes


def _mean_slopes(
    predictor: Predictor,
    batch: Batch,
    inputs: Tensor,
    value_of: ValueOf,
    steps: int,
) -> Tensor:
    """Return the mean gradient on the straight way from zero to `inputs` of one document.

    At the middles of equal steps: with pooling by maximum the gradient jumps, and finer rules gain
    nothing.
    """
    places = (np.arange(steps) + 0.5) / steps
    budget = predictor.forward.budget or inputs.shape[1]
    together = max(1, budget // inputs.shape[1])
    total = torch.zeros_like(inputs)
    for begin in range(0, steps, together):
        scale = inputs.new_tensor(places[begin : begin + together]).view(-1, 1, 1)
        copies = replace(
            batch,
            symbols=batch.symbols.repeat(len(scale), 1),
            sequence_lengths=batch.sequence_lengths.repeat(len(scale)),
        )
        total += _slopes(predictor, copies, scale * inputs, value_of).sum(0)
    return total / steps


def _numpy(tensor: Tensor) -> npt.NDArray[Any]:
    return tensor.cpu().numpy()
