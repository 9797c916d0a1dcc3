"""Poolings: compared with slow ones, document by document, without any padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from laconic.nn.pooling import POOLINGS, pooling

SIZE = 4
FEATURES = range(SIZE)

torch.set_num_threads(1)  # the sizes are tiny, and threads that wait for each other are slow


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def slow_attention(x: list[list[float]], query: list[float]) -> list[float]:
    scores = [sum(a * b for a, b in zip(row, query, strict=True)) for row in x]
    weights = [float(torch.tensor(score - max(scores)).double().exp()) for score in scores]
    return [
        sum(w * row[i] for w, row in zip(weights, x, strict=True)) / sum(weights) for i in FEATURES
    ]


Slow = Callable[[list[list[float]], list[int], list[float]], list[float]]
SLOW: dict[str, Slow] = {
    "max": lambda x, lengths, query: [max(row[i] for row in x) for i in FEATURES],
    "mean": lambda x, lengths, query: [sum(row[i] for row in x) / len(x) for i in FEATURES],
    "length_mean": lambda x, lengths, query: [
        sum(n * row[i] for n, row in zip(lengths, x, strict=True)) / sum(lengths) for i in FEATURES
    ],
    "attention": lambda x, lengths, query: slow_attention(x, query),
    "last": lambda x, lengths, query: x[-1],
    "last of both": lambda x, lengths, query: x[-1][: SIZE // 2] + x[0][SIZE // 2 :],
}


def made(name: str) -> nn.Module:
    return pooling(name.split()[0], SIZE, bidirectional=name.endswith("both")).double()


def query(model: nn.Module) -> list[float]:
    return [number for parameter in model.parameters() for number in parameter.flatten().tolist()]


def batch(counts: list[int], extra: int = 0, time_major: bool = False) -> list[Tensor]:
    """Outputs with garbage in their padding, mask and lengths."""
    steps = max(1, *counts, 0) + extra
    mask = torch.arange(steps) < torch.tensor(counts)[:, None]
    outputs = torch.randn(len(counts), steps, SIZE, dtype=torch.float64)
    outputs[~mask] = outputs[~mask].sign() * 1e9
    lengths = torch.randint(1, 50, (len(counts), steps))
    lengths[~mask] = torch.tensor(2**60)
    if time_major:
        outputs = outputs.transpose(0, 1).contiguous().transpose(0, 1)
    return [outputs, mask, lengths]


@given(
    st.integers(0, 2**32),
    st.sampled_from(list(SLOW)),
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.integers(0, 5),
    st.booleans(),
)
def test_poolings_are_the_slow_ones(
    seed: int, name: str, counts: list[int], extra: int, time_major: bool
) -> None:
    torch.manual_seed(seed)
    model = made(name)
    outputs, mask, lengths = batch(counts, extra, time_major)
    if seed % 2:  # many equal numbers
        outputs = outputs.round()
    outputs.requires_grad_()
    pooled = model(outputs, mask, lengths)
    assert pooled.shape == (len(counts), SIZE)
    for d, count in enumerate(counts):
        symbols, expanded = outputs[d, :count].tolist(), lengths[d, :count].tolist()
        want = SLOW[name](symbols, expanded, query(model)) if count else [0.0] * SIZE
        torch.testing.assert_close(pooled[d], torch.tensor(want, dtype=torch.float64))
    pooled.square().sum().backward()
    assert outputs.grad is not None
    assert outputs.grad.isfinite().all()
    assert (outputs.grad[~mask] == 0).all()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("name", SLOW)
@pytest.mark.parametrize("time_major", [False, True])
def test_gradients(name: str, time_major: bool) -> None:
    model = made(name)
    outputs, mask, lengths = batch([3, 0, 5, 1], time_major=time_major)
    outputs = outputs.masked_fill(~mask[..., None], 7).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: model(x, mask, lengths), outputs)


@pytest.mark.parametrize("name", SLOW)
def test_batch_mates_change_nothing(name: str) -> None:
    model = made(name).float()
    outputs, mask, lengths = batch([3, 0, 9, 1], extra=4)
    outputs = outputs.float()
    pooled = model(outputs, mask, lengths)
    for d, count in enumerate([3, 0, 9, 1]):
        steps = max(count, 1)
        alone = model(
            outputs[d : d + 1, :steps], mask[d : d + 1, :steps], lengths[d : d + 1, :steps]
        )
        torch.testing.assert_close(pooled[d], alone[0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", SLOW)
def test_only_empty_documents(name: str) -> None:
    outputs, mask, lengths = batch([0, 0])
    outputs.requires_grad_()
    with torch.autograd.set_detect_anomaly(True):  # no NaN on the way, either
        pooled = made(name)(outputs, mask, lengths)
        assert (pooled == 0).all()
        pooled.sum().backward()
    assert outputs.grad is not None
    assert (outputs.grad == 0).all()


def test_max_keeps_gradients_in_the_order_of_outputs() -> None:
    outputs, mask, lengths = batch([3, 5], time_major=True)
    leaf = outputs.transpose(0, 1).requires_grad_()
    seen: list[Tensor] = []
    view = leaf.transpose(0, 1)
    view.register_hook(seen.append)  # type: ignore[no-untyped-call]
    made("max")(view, mask, lengths).sum().backward()
    assert seen[0].transpose(0, 1).is_contiguous()


@pytest.mark.parametrize("name", SLOW)
def test_sums_in_bfloat16_are_not_of_bfloat16(name: str) -> None:
    model = made(name).float()
    outputs, mask, lengths = batch([3000, 0])
    outputs = outputs.bfloat16().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        pooled = model(outputs + 1, mask, lengths.clamp(max=1))
    assert pooled.dtype == torch.bfloat16
    assert (pooled[1] == 0).all()
    pooled.float().sum().backward()
    assert outputs.grad is not None
    assert outputs.grad.isfinite().all()
    exact = model(outputs.float() + 1, mask, lengths.clamp(max=1))
    torch.testing.assert_close(pooled.float(), exact, rtol=2**-7, atol=2**-7)


def test_float32_lengths_of_long_documents() -> None:
    outputs = torch.tensor([[[1.0], [3.0]]])
    lengths = torch.tensor([[2**60, 2**60]])
    pooled = pooling("length_mean", 1)(outputs, torch.ones(1, 2, dtype=torch.bool), lengths)
    assert pooled.tolist() == [[2.0]]


def test_saved_and_restored() -> None:
    model, other = made("attention"), made("attention")
    call = batch([3, 5])
    assert not torch.equal(model(*call), other(*call))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(*call), other(*call))
    assert all(not list(made(name).parameters()) for name in SLOW if name != "attention")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sum", 3), "no pooling 'sum': choose from max, mean, length_mean, attention, last"),
        (("max", 0), "size must be at least 1, not 0"),
        (("last", 3, True), "size 3 has no halves"),
    ],
)
def test_what_cannot_be(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pooling(*arguments)


def test_all_poolings_are_tested() -> None:
    assert {name.split()[0] for name in SLOW} == set(POOLINGS)
