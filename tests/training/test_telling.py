"""Columns that tell classes apart weigh more, by the documents that train and no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sparse_rows import matrix

from laconic import Corpus
from laconic.tasks import Classification, Multilabel, Regression, Task
from laconic.training.auto import learn
from laconic.training.holdout import divide
from laconic.training.linear import fit_linear
from laconic.training.settings import TrainingConfig, resolve
from laconic.training.telling import can_tell, telling
from laconic.training.validation import forward_pass

CLASSES = Classification((0, 1, 2))
LABELS = Multilabel(("a", "b"))


def slow(dense: Any, members: Any, rows: Any) -> Any:
    """The factors, one column and class after the other."""
    ratios, seen = [], []
    for column in (dense[rows] != 0).T:
        best = 0.0
        for inside in members[rows].T:
            a = (column[inside].sum() + 1) / (inside.sum() + 2)
            b = (column[~inside].sum() + 1) / ((~inside).sum() + 2)
            best = max(best, abs(np.log(a / b)))
        ratios.append(best)
        seen.append(column.sum())
    return np.array(ratios) + 2 * np.average(ratios, weights=seen)


@pytest.mark.parametrize("task", [CLASSES, LABELS])
def test_factors(task: Task) -> None:
    ours, sparse = matrix()
    rng = np.random.default_rng(2)
    if task.single:
        targets = rng.integers(0, 3, 60)
        members = targets[:, None] == np.arange(3)
    else:
        targets = (rng.random((60, 2)) < 0.3).astype(np.float32)
        members = targets > 0
    rows = rng.permutation(60)[:45]
    found = telling(ours, torch.from_numpy(targets), task, torch.from_numpy(rows))
    np.testing.assert_allclose(found, slow(sparse.toarray(), members, rows), rtol=1e-5)


@pytest.mark.parametrize("second", [0, 25, 40])
def test_reweighed_rows_have_norm_1_again_in_each_part(second: int) -> None:
    ours, sparse = matrix()
    factors = torch.rand(40) + 0.1
    dense = sparse.toarray() * factors.numpy()
    for part in (slice(0, second), slice(second, 40)):
        norms = np.linalg.norm(dense[:, part], axis=1, keepdims=True)
        dense[:, part] /= np.where(norms, norms, 1)
    made = ours.reweighed(factors, second)
    weights, added = torch.randn(40, 3), torch.randn(60, 3)
    np.testing.assert_allclose(made.times(weights), dense @ weights.numpy(), atol=1e-5)
    np.testing.assert_allclose(made.transposed_times(added), dense.T @ added.numpy(), atol=1e-5)
    again = made.reweighed(1 / factors, second).reweighed(factors, second)
    np.testing.assert_allclose(again.times(weights), dense @ weights.numpy(), atol=1e-5)


def test_numbers_tell_nothing_apart() -> None:
    assert can_tell(CLASSES, 1 << 20)
    assert not can_tell(Regression(), 1 << 20)
    assert not can_tell(Classification(tuple(range(1000))), 1 << 20)


def documents(count: int) -> tuple[list[str], list[str]]:
    """Letters at random, and words that few documents have, which decide, but not always."""
    rng = np.random.default_rng(0)
    texts, labels = [], []
    for _ in range(count):
        label = int(rng.integers(2))
        words = ["".join(rng.choice(list("abcdefghij"), 4)) for _ in range(25)]
        said = label if rng.random() < 0.85 else 1 - label
        words += [f"{'xy'[said]}{rng.integers(40)}" for _ in range(2)]
        texts.append(" ".join(rng.permutation(words)))
        labels.append("ab"[label])
    return texts, labels


def test_held_out_documents_choose_it_and_the_model_says_what_the_fit_said() -> None:
    texts, labels = documents(600)
    data = Corpus.from_documents(texts, labels)
    config = resolve("auto", {"device": "cpu", "holdout": 0.3})
    parts = divide(data, None, None, config)
    given = parts.training, parts.validation, parts.task
    found = fit_linear(*given, refit=False)
    assert found.features.told_apart
    assert "tell classes apart" in str(found.features)
    plain = str(found.features._replace(told_apart=False))
    assert found.tried[str(found.features)] < found.tried[plain]
    # The model has never seen these documents, and neither have its weights.
    said = forward_pass(found.model, config).outputs(parts.validation)
    np.testing.assert_allclose(said, found.held_out, atol=0.02 * np.abs(found.held_out).max())
    # With them it learns from more, and columns weigh the same.
    whole = fit_linear(*given, refit=True)
    assert whole.documents == 600
    assert whole.model.bag is not None
    assert found.model.bag is not None
    assert torch.equal(whole.model.bag.idf, found.model.bag.idf)


def test_a_regression_counts_as_before() -> None:
    texts, labels = documents(80)
    data = Corpus.from_documents(texts, [0.5 * (each == "a") for each in labels])
    found = learn(data, TrainingConfig(model="auto", device="cpu"))
    assert not any("apart" in name for name in found.history[-1]["auto"]["counting"]["tried"])
