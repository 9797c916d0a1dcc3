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
from laconic.errors import InputError
from laconic.grammar import Grammars
from laconic.inference.predictor import Predictor

Floats: TypeAlias = npt.NDArray[np.float64]
_MOST_TIMES = 10.0
_MOST_LETTERS = 1 << 26
ValueOf: TypeAlias = Callable[[Tensor], Tensor]
"""Outputs [B, outputs] to what is explained, [B]; it is linear."""


def check_letters(letters: int, document: int | None = None) -> None:
    """Raise InputError for a document of more letters than can have scores of their own.

    A small grammar may stand for more of them than any memory holds.
    """
    if letters > _MOST_LETTERS:
        reason = f"it has {letters:,} letters; documents of at most {_MOST_LETTERS:,} are explained"
        raise InputError(reason, document=document)


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
        scores = _scores(predictor, alone, inputs, inputs, value_of)[0]
    else:
        scores = _integrated(predictor, alone, inputs, value_of, steps)
    return _numpy(scores)[: int(batch.sequence_lengths[0])], nothing


def scores_of_many(
    predictor: Predictor, grammars: Grammars, steps: int | None = None
) -> tuple[Floats, Int64s]:
    """Return scores of all symbols of all sequences for each output, [Σn', K], and their hashes.

    Gradients are those at the documents, or with `steps` the means at so many places on the way.
    """
    is_told = _last_is_told(predictor)
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
            for place in range(config.outputs - is_told):
                value_of = partial(predictor.task.value, place=place)
                at = [1.0] if steps is None else _middles(steps)
                found = [_scores(predictor, batch, inputs, k * inputs, value_of) for k in at]
                scores[places, place] = _numpy(_mean(torch.stack(found))[mask])
    if is_told:
        scores[:, -1] = -scores[:, :-1].sum(1)
    return scores, hashes


def _backward(predictor: Predictor) -> AbstractContextManager[Any]:
    # cuDNN keeps nothing for a way back when it is not training.
    if predictor.device.type != "cuda":
        return nullcontext()
    return cast(AbstractContextManager[Any], torch.backends.cudnn.flags(enabled=False))


def _scores(
    predictor: Predictor, batch: Batch, inputs: Tensor, at: Tensor, value_of: ValueOf
) -> Tensor:
    """Return the gradients of each document's value somewhere, times inputs, float64 [B, T]."""
    somewhere = at.detach().requires_grad_()
    with torch.enable_grad(), _backward(predictor):
        values = value_of(predictor.model.read(somewhere, batch))
        (slopes,) = torch.autograd.grad(values.sum(), somewhere)
    return (slopes * inputs).sum(-1).double()


def _integrated(
    predictor: Predictor,
    batch: Batch,
    inputs: Tensor,
    value_of: ValueOf,
    steps: int,
) -> Tensor:
    """Return the mean scores on the straight way from zero to one document, float64 [T]."""
    places = _middles(steps)
    budget = predictor.forward.budget or inputs.shape[1]
    together = max(1, budget // inputs.shape[1])
    found = []
    for begin in range(0, steps, together):
        scale = inputs.new_tensor(places[begin : begin + together]).view(-1, 1, 1)
        copies = replace(
            batch,
            symbols=batch.symbols.repeat(len(scale), 1),
            sequence_lengths=batch.sequence_lengths.repeat(len(scale)),
        )
        found.append(_scores(predictor, copies, inputs, scale * inputs, value_of))
    return _mean(torch.cat(found)[:, None])[0]


def _mean(scores: Tensor) -> Tensor:
    """Return the mean over places, float64 [B, T], of scores [places, B, T].

    At some place the gradient of a recurrent layer may explode, and say nothing but that: no place
    counts more than ten times as much as the one in the middle.
    """
    sizes = scores.abs().sum(-1, keepdim=True)
    most = _MOST_TIMES * sizes.median(0).values
    kept = torch.where(sizes > most, most / sizes, 1.0)
    return (scores * kept).mean(0)


def _last_is_told(predictor: Predictor) -> bool:
    """Return whether the values of all outputs add up to 0, so that the last need not be asked."""
    outputs = predictor.model.config.outputs
    each = torch.eye(outputs, dtype=torch.float64)
    values = torch.stack([predictor.task.value(each, place) for place in range(outputs)])
    return outputs > 1 and bool(values.sum(0).abs().max() < 1e-9)


def _middles(steps: int) -> list[float]:
    """Return the middles of equal steps from 0 to 1.

    With pooling by maximum the gradient jumps, and finer rules gain nothing.
    """
    return [(k + 0.5) / steps for k in range(steps)]


def _numpy(tensor: Tensor) -> npt.NDArray[Any]:
    return tensor.cpu().numpy()
