"""The convex fit is where scikit-learn's is, of every task; blends are never worse than a view."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression, Ridge
from sparse_rows import matrix

from laconic.tasks import Classification, Multilabel, Regression, Task
from laconic.training import convex
from laconic.training.blend import Blend, mixtures, scaled
from laconic.training.convex import Fit, SparseRows, minimised


def fitted(rows: SparseRows, task: Task, targets: Any, strength: float, chosen: Any) -> Fit:
    weights = torch.zeros(len(rows), dtype=torch.float64)
    weights[chosen] = 1 / len(chosen)
    wanted = torch.from_numpy(targets)
    nothing = Fit.nothing(len(rows), task.outputs)
    decay = 1 / (strength * len(chosen))
    return minimised(rows, lambda o: task.losses(o, wanted), weights, decay, nothing, 1e-6)


def test_a_matrix_is_what_it_was() -> None:
    rows, sparse = matrix()
    weights, added = torch.randn(40, 3), torch.randn(60, 3)
    np.testing.assert_allclose(rows.times(weights), sparse @ weights.numpy(), atol=1e-5)
    found = rows.transposed_times(added)
    np.testing.assert_allclose(found, sparse.T @ added.numpy(), atol=1e-5)
    some = np.random.default_rng(0).random((60, 3)) < 0.5
    found = rows.with_column(torch.from_numpy(some))
    np.testing.assert_array_equal(found, (sparse != 0).T @ some.astype(int))


@pytest.mark.parametrize("few", [59, 60])
def test_products_of_few_rows_are_found_once(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convex, "_FEW_ROWS", few)
    rows, sparse = matrix()
    added = torch.randn(60, 3)
    found = rows.both_times(added)
    np.testing.assert_allclose(found, sparse @ (sparse.T @ added.numpy()), atol=1e-4)
    assert ("_products" in vars(rows)) == (few == 60)


@pytest.mark.parametrize("strength", [0.1, 10.0, 1000.0])
def test_classes_as_scikit_learn_finds_them(strength: float) -> None:
    rows, sparse = matrix()
    targets = np.random.default_rng(1).integers(0, 3, 60)
    chosen = np.arange(50)
    fit = fitted(rows, Classification((0, 1, 2)), targets, strength, chosen)
    peer = LogisticRegression(C=strength, tol=1e-8, max_iter=5000)
    peer.fit(sparse[:50], targets[:50])
    ours = torch.softmax(fit.outputs, 1).numpy()
    np.testing.assert_allclose(ours, peer.predict_proba(sparse), atol=1e-2)
    # What does not train is scored all the same, and adds nothing.
    assert not fit.added[50:].any()
    np.testing.assert_allclose(
        rows.times(rows.transposed_times(fit.added.float())), fit.scores, atol=1e-4
    )


def test_where_one_class_is_large_rough_fits_move_on_from_others() -> None:
    """Of what the gradient is at 0, most said how large the classes are: rough fits never moved."""
    rows, _ = matrix(400)
    targets = np.random.default_rng(4).choice(3, 400, p=[0.96, 0.02, 0.02])
    task, wanted = Classification((0, 1, 2)), torch.from_numpy(targets)
    weights = torch.full((400,), 1 / 400, dtype=torch.float64)

    def fit(strength: float, start: Fit, tolerance: float) -> Fit:
        decay = 1 / (strength * 400)
        return minimised(rows, lambda o: task.losses(o, wanted), weights, decay, start, tolerance)

    nothing = Fit.nothing(400, 3)
    weak, strong = (fit(strength, nothing, 1e-6) for strength in (0.1, 100.0))
    rough = fit(100.0, fit(0.1, nothing, 1e-2), 1e-2)
    between = (strong.scores - weak.scores).norm()
    assert (rough.scores - strong.scores).norm() < 0.2 * between


def test_numbers_as_scikit_learn_finds_them() -> None:
    rows, sparse = matrix()
    values = np.random.default_rng(2).normal(size=60).astype(np.float32)
    task = Regression((), 0.0, 1.0)
    fit = fitted(rows, task, values, 5.0, np.arange(60))
    # The mean of squares, and half the squared weights.
    peer = Ridge(alpha=0.5 * 60 / (5.0 * 60)).fit(sparse, values)
    np.testing.assert_allclose(fit.outputs[:, 0], peer.predict(sparse), atol=2e-3)


def test_several_labels() -> None:
    rows, _ = matrix()
    targets = (np.random.default_rng(3).random((60, 2)) < 0.4).astype(np.float32)
    both = fitted(rows, Multilabel((0, 1)), targets, 10.0, np.arange(60))
    one = fitted(rows, Multilabel((0,)), targets[:, :1], 5.0, np.arange(60))  # the loss is a mean
    np.testing.assert_allclose(both.outputs[:, 0], one.outputs[:, 0], atol=2e-2)


def test_factors_calibrate() -> None:
    rng, task = np.random.default_rng(0), Classification((0, 1))
    targets = rng.integers(0, 2, 4000)
    sure = np.stack([-targets, targets], 1) + rng.normal(size=(4000, 2)) * 1.5
    best = scaled(task, sure, targets)
    again = scaled(task, sure * best.factor, targets)
    assert again.factor == pytest.approx(1, abs=1e-3)
    assert again.loss == pytest.approx(best.loss)
    assert best.loss <= task.evaluate(sure, targets)["loss"]


def blended(task: Task, counting: Any, reading: Any, targets: Any, **how: float) -> Blend:
    return mixtures(task, counting, reading, targets).blend(**how)


def test_blends() -> None:
    rng, task = np.random.default_rng(0), Classification((0, 1))
    targets = rng.integers(0, 2, 500)
    truth = np.stack([1 - targets, targets], 1) * 2.0

    def view(noise: float) -> Any:
        return truth + rng.normal(size=truth.shape) * noise

    good, other, noise = view(2.0), view(2.5), rng.normal(size=truth.shape)
    found = blended(task, good, other, targets)
    assert 0.2 < found.share < 0.6
    assert found.losses["both"] < min(found.losses["counting"], found.losses["reading"])
    outputs = found.counting * good + found.reading * other
    assert task.evaluate(outputs, targets)["loss"] == pytest.approx(found.losses["both"], abs=1e-6)
    alone = blended(task, good, noise, targets)
    assert (alone.share, alone.reading) == (0, 0)
    assert alone.counting == pytest.approx(scaled(task, good, targets).factor)
    turned = blended(task, noise, good, targets)
    assert (turned.share, turned.counting) == (1, 0)
    # Few documents make no case for a second view that is hardly different.
    few = blended(task, good[:20], good[:20] + 0.1 * noise[:20], targets[:20])
    assert few.share in (0, 1)


def test_what_a_few_documents_see_by_chance_is_no_gain_for_sure() -> None:
    rng, task = np.random.default_rng(0), Classification((0, 1))
    shares: dict[float, list[float]] = {0.0: [], 1.5: []}
    for _ in range(40):
        targets = rng.integers(0, 2, 60)
        truth = np.stack([1 - targets, targets], 1) * 1.5
        good, noise = truth + rng.normal(size=truth.shape), rng.normal(size=truth.shape)
        for sure, found in shares.items():
            found.append(blended(task, good, noise, targets, sure=sure).share)
    listened = {sure: np.mean(np.array(found) > 0) for sure, found in shares.items()}
    assert listened[1.5] < 0.2 < 0.4 < listened[0.0]


def test_weights_are_as_good_as_repeats() -> None:
    rng, task = np.random.default_rng(0), Classification((0, 1))
    targets, times = rng.integers(0, 2, 60), rng.integers(0, 4, 60)
    views = [np.stack([1 - targets, targets], 1) + rng.normal(size=(60, 2)) for _ in range(2)]
    repeats = *(np.repeat(view, times, 0) for view in views), np.repeat(targets, times)
    weighed = mixtures(task, *views, targets, times.astype(np.float32)).blend(sure=0.0)
    expected = blended(task, *repeats, sure=0.0)
    assert weighed.share == expected.share
    assert weighed.losses == pytest.approx(expected.losses, rel=1e-6)
    assert weighed.counting == pytest.approx(expected.counting, rel=1e-3)


def test_copies_of_a_document_are_one_chance() -> None:
    rng, task = np.random.default_rng(0), Classification((0, 1))
    targets = rng.integers(0, 2, 60)
    views = [np.stack([1 - targets, targets], 1) + rng.normal(size=(60, 2)) for _ in range(2)]
    copies = *(np.tile(view, (9, 1)) for view in views), np.tile(targets, 9)
    groups = np.tile(np.arange(60), 9)
    once = mixtures(task, *views, targets).blend(sure=1.0)
    assert mixtures(task, *copies, groups=groups).blend(sure=1.0).share == once.share
    gains = [mixtures(task, *copies, groups=of)._gains(0, 1.0)[10] for of in (groups, None)]
    assert gains[0] < gains[1]


def test_counting_is_the_ground_until_reading_is_better_for_sure() -> None:
    rng, task = np.random.default_rng(1), Classification((0, 1))

    def share(documents: int, noise: float) -> float:
        targets = rng.integers(0, 2, documents)
        truth = np.stack([1 - targets, targets], 1) * 1.5
        counting = truth + 3 * rng.normal(size=truth.shape)
        reading = counting + noise * rng.normal(size=truth.shape)  # which adds nothing of its own
        return blended(task, counting, reading, targets).share

    assert np.mean([share(60, 0.3) for _ in range(20)]) < 0.2
    assert np.mean([share(3_000, 1.0) for _ in range(5)]) == 0
    targets = rng.integers(0, 2, 3_000)
    better = np.stack([1 - targets, targets], 1) + 0.5 * rng.normal(size=(3_000, 2))
    worse = better + 2 * rng.normal(size=better.shape)
    assert blended(task, worse, better, targets).share == 1


def test_nobody_is_surer_than_held_out_documents_can_tell() -> None:
    task, targets = Classification((0, 1)), np.arange(100) % 2
    right = np.stack([1 - targets, targets], 1).astype(float)
    for sure in (0.0, 1.5):
        blend = blended(task, right, 0.9 * right, targets, sure=sure)
        assert 0 < blend.counting + blend.reading <= 2**5 + 1e-6
