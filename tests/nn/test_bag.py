"""The linear model of n-grams: TF-IDF as NumPy has it, its gradients, and what changes nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from laconic import compress_many, samples
from laconic.batching import Bag, Batch, collate
from laconic.ngrams.hashed import HashedCounter
from laconic.nn import ModelError
from laconic.nn.bag import NgramBag

TEXTS = ["how much wood would a woodchuck chuck", "", "x", "banana banana banana", "abcdefg"]
COUNTED = HashedCounter(3, 2, 50)


def batch_of(texts: list[str]) -> Batch:
    return collate(compress_many(texts), counted=COUNTED)


def bag_of(texts: list[str]) -> Bag:
    found = batch_of(texts).bag
    assert found is not None
    return found


def dense(bag: Bag, documents: int, columns: int) -> Any:
    counts = np.zeros((documents, columns))
    np.add.at(counts, (bag.documents.numpy(), bag.buckets.numpy()), bag.counts.numpy())
    return counts


def learned(texts: list[str], outputs: int = 3, dropout: float = 0.0) -> NgramBag:
    """A model that knows some texts, of random numbers."""
    frequencies = (dense(bag_of(texts), len(texts), COUNTED.columns) > 0).sum(0)
    torch.manual_seed(0)
    model = NgramBag(COUNTED.columns, int((frequencies > 0).sum()), outputs, dropout)
    model.learn(torch.from_numpy(frequencies), len(texts))
    torch.nn.init.normal_(model.table)
    torch.nn.init.normal_(model.bias)
    return model.double()


def tfidf(model: NgramBag, bag: Bag, documents: int, fitted: list[str]) -> Any:
    """Scores as NumPy computes them, [documents, outputs]."""
    frequencies = (dense(bag_of(fitted), len(fitted), COUNTED.columns) > 0).sum(0)
    idf = np.where(frequencies > 0, np.log((1 + len(fitted)) / (1 + frequencies)) + 1, 0)
    counts = dense(bag, documents, COUNTED.columns)
    weights = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    norms = np.linalg.norm(weights, axis=1, keepdims=True)
    weights = weights / np.where(norms == 0, 1, norms)
    by_column = np.zeros((COUNTED.columns, model.table.shape[1]))
    by_column[frequencies > 0] = model.table.detach().numpy()[1:]
    return 10 * weights @ by_column + model.bias.detach().numpy()


@settings(max_examples=60)
@given(
    st.lists(st.text("abc ", max_size=40), min_size=1, max_size=6),
    st.lists(st.text("abcd ", max_size=40), min_size=1, max_size=6),
)
def test_scores_are_those_of_tfidf(fitted: list[str], asked: list[str]) -> None:
    model, bag = learned(fitted), bag_of(asked)
    wanted = tfidf(model, bag, len(asked), fitted)
    found = model(bag, len(asked)).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    adds, known = model.added(bag, len(asked))
    sums = model.bias.expand(len(asked), -1).index_add(0, bag.documents, adds)
    np.testing.assert_allclose(sums.detach().numpy(), wanted, atol=1e-6)
    assert not adds[~known].any()


def test_gradients() -> None:
    model, bag = learned(TEXTS[:4]), bag_of(TEXTS)

    def scores(table: Tensor, bias: Tensor) -> Tensor:
        given = {"table": table, "bias": bias}
        made: Tensor = torch.func.functional_call(model, given, (bag, len(TEXTS)))
        return made

    assert torch.autograd.gradcheck(scores, (model.table, model.bias))  # type: ignore[no-untyped-call]
    scores(model.table, model.bias).sum().backward()  # type: ignore[no-untyped-call]
    assert model.table.grad is not None
    assert not model.table.grad[0].any(), "what has no row learns nothing"
    assert model.table.grad[1:].any()


def test_what_is_unknown_counts_nothing() -> None:
    model = learned(["banana"])
    alone = model(bag_of(["banana"]), 1)
    strange = bag_of(["qqqq"])
    unknown = model.places[strange.buckets] == 0
    assert unknown.any()
    only = Bag(*(each[unknown] for each in strange))
    assert torch.equal(model(only, 1), model.bias[None])
    both = Bag(*(torch.cat(pair) for pair in zip(bag_of(["banana"]), only, strict=True)))
    assert torch.allclose(model(both, 1), alone, atol=1e-12)
    nobody = NgramBag(COUNTED.columns, 0, 2)
    assert torch.equal(nobody(bag_of(TEXTS), len(TEXTS)), torch.zeros(len(TEXTS), 2))


def test_empty_bags() -> None:
    model = learned(TEXTS)
    for texts in ([""], ["", ""]):
        found = model(bag_of(texts), len(texts))
        assert torch.equal(found, model.bias.expand(len(texts), -1))
        found.sum().backward()
    assert model.table.grad is not None
    assert not model.table.grad.any()


def test_padding_and_batch_mates_change_nothing() -> None:
    model, bag = learned(TEXTS), bag_of(TEXTS)
    wanted = model(bag, len(TEXTS))
    wanted.square().sum().backward()
    assert model.table.grad is not None
    gradient = model.table.grad.clone()
    # Entries of count 0, of any document and any column, in any order.
    spare = torch.arange(200)
    room = Bag(spare % len(TEXTS), spare * 7 % COUNTED.columns, torch.zeros(200))
    for pair in ((bag, room), (room, bag)):
        model.zero_grad()
        padded = Bag(*(torch.cat(both) for both in zip(*pair, strict=True)))
        found = model(padded, len(TEXTS))
        found.square().sum().backward()
        assert torch.allclose(found, wanted, atol=1e-12)
        assert torch.allclose(model.table.grad, gradient, atol=1e-12)
    alone = torch.cat([model(bag_of([text]), 1) for text in TEXTS])
    assert torch.allclose(alone, wanted, atol=1e-12)


def test_dropout_leaves_some_out_in_training_only() -> None:
    texts = samples.load("kjv").train.documents[:8]
    model, bag = learned(texts, dropout=0.5), bag_of(texts)
    plain = model.eval()(bag, 8)
    assert torch.equal(plain, model(bag, 8))
    torch.manual_seed(3)
    drawn = torch.stack([model.train()(bag, 8) for _ in range(400)]).detach()
    assert drawn.std(0).min() > 0.1
    error = (drawn.mean(0) - plain).abs() / (drawn.std(0) / 20)
    assert error.max() < 5, "the mean is that without dropout"


def test_what_does_not_fit() -> None:
    model = learned(TEXTS)
    with pytest.raises(ValueError, match="1 columns occur, and there are"):
        model.learn(torch.tensor([1]), 1)
    for wrong in (-1, len(model.idf)):
        state = {name: each.clone() for name, each in model.state_dict().items()}
        state["places"][3] = wrong
        with pytest.raises(ModelError, match=r"bag.places is from .* rows"):
            learned(TEXTS).load_state_dict(state)


@pytest.mark.parametrize(
    ("name", "place", "value", "told"),
    [
        ("idf", 0, 1.0, "0 for row 0"),
        ("idf", 1, math.inf, "must be finite"),
        ("places", 0, 2, "two columns the same row"),
    ],
)
def test_a_file_that_would_count_wrongly_is_refused(
    name: str, place: int, value: float, told: str
) -> None:
    model = NgramBag(columns=4, rows=3, outputs=2)
    model.learn(torch.tensor([2, 2, 0, 2]), documents=2)
    state = model.state_dict()
    NgramBag(columns=4, rows=3, outputs=2).load_state_dict(state)  # as it is, it can be read
    state[name] = state[name].clone()
    state[name][place] = value
    with pytest.raises(ModelError, match=told):
        NgramBag(columns=4, rows=3, outputs=2).load_state_dict(state)


def test_shared_symbols_have_a_norm_of_their_own_and_counts_may_be_plain() -> None:
    bag = Bag(torch.tensor([0, 0, 0]), torch.tensor([0, 1, 2]), torch.tensor([3.0, 4.0, 2.0]))
    for logarithmic, wanted in ((False, [0.6, 0.8, 1.0]), (True, None)):
        model = NgramBag(4, 4, 1, first_shared=2, logarithmic=logarithmic)
        model.learn(torch.ones(4, dtype=torch.int64), documents=1)
        weights = model.weights(bag, model.rows(bag), 1)
        if wanted is None:
            logs = 1 + torch.tensor([3.0, 4.0]).log()
            wanted = [*(logs / logs.norm()).tolist(), 1.0]
        np.testing.assert_allclose(weights.numpy(), wanted, rtol=1e-6)
