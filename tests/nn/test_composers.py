"""Composers against independent transcriptions of their equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from laconic import compress_many
from laconic.batching import collate
from laconic.codecs import CodecName
from laconic.nn import ModelConfig
from laconic.nn.composers import COMPOSERS, LinearRecurrence, make_composer
from laconic.nn.levels import compose_levels
from laconic.nn.model import GrammarModel
from laconic.nn.scan import linear_scan

D = 5


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def arrays(module: Any) -> dict[str, np.ndarray]:
    return {name: value.detach().numpy() for name, value in module.named_parameters()}


def transcribed(name: str, w: dict[str, np.ndarray], x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """The equations as printed, for one rule, in NumPy."""
    both = np.concatenate([x1, x2])
    if name == "mlp":
        hidden = np.maximum(0, w["hidden.weight"] @ both + w["hidden.bias"])
        return sigmoid(w["output.weight"] @ hidden + w["output.bias"])
    if name == "dual_gru":
        w_z, w_r = w["gates.weight"][: 3 * D], w["gates.weight"][3 * D :]
        b_z, b_r = w["gates.bias"][: 3 * D], w["gates.bias"][3 * D :]
        scores = (w_z @ both + b_z).reshape(3, D)
        z = np.exp(scores) / np.exp(scores).sum(0)
        r = sigmoid(w_r @ both + b_r)
        i = sigmoid(w["candidate.weight"] @ (r * both) + w["candidate.bias"])
        return z[0] * x1 + z[1] * x2 + z[2] * i
    if name == "grc":
        hidden = w["hidden.weight"] @ both + w["hidden.bias"]
        hidden = hidden * np.array([(1 + math.erf(v / math.sqrt(2))) / 2 for v in hidden])
        f1, f2, i, c = (w["gates.weight"] @ hidden + w["gates.bias"]).reshape(4, D)
        raw = sigmoid(f1) * x1 + sigmoid(f2) * x2 + sigmoid(i) * c
        normal = (raw - raw.mean()) / np.sqrt(raw.var() + 1e-5)
        return normal * w["norm.weight"] + w["norm.bias"]
    (h1, c1), (h2, c2) = x1.reshape(2, D), x2.reshape(2, D)
    gates = w["gates.weight"] @ np.concatenate([h1, h2]) + w["gates.bias"]
    i, f1, f2, o, u = gates.reshape(5, D)
    c = sigmoid(i) * np.tanh(u) + sigmoid(f1) * c1 + sigmoid(f2) * c2
    return np.concatenate([sigmoid(o) * np.tanh(c), c])


@pytest.mark.parametrize("name", ["mlp", "dual_gru", "grc", "tree_lstm"])
def test_cells_are_their_equations(name: str) -> None:
    torch.manual_seed(1)
    composer: Any = make_composer(name, D).double()
    weights = arrays(composer)
    left, right = torch.randn(2, 30, composer.state_size, dtype=torch.float64)
    made = composer.compose(left, right).detach().numpy()
    for row in range(30):
        wanted = transcribed(name, weights, left[row].numpy(), right[row].numpy())
        np.testing.assert_allclose(made[row], wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", sorted(COMPOSERS))
def test_sizes_are_what_composers_say(name: str) -> None:
    composer: Any = make_composer(name, 8)
    leaves = composer.leaf(torch.randn(3, 8))
    assert leaves.shape == (3, composer.state_size)
    made = composer.compose(leaves[:2], leaves[1:])
    assert made.shape == (2, composer.state_size)
    read = composer.read(made)
    if scan := getattr(composer, "scan", None):
        read = scan(read[None], torch.ones(1, 2, dtype=torch.bool))[0]
    assert read.shape == (2, composer.output_size)


@pytest.mark.parametrize("name", ["mlp", "dual_gru", "grc", "tree_lstm"])
def test_states_stay_finite_on_deep_grammars(name: str) -> None:
    composer: Any = make_composer(name, 16)
    children = torch.tensor([[i, i] for i in range(100)], dtype=torch.int32)
    leaves = composer.leaf(torch.randn(1, 16)).detach().requires_grad_()
    parameters = list(composer.parameters())
    states = compose_levels(composer.compose, parameters, leaves, children, range(101))
    states[-1].sum().backward()
    assert states.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in [leaves, *parameters])


def test_symbols_of_an_mlp_differ_for_some_levels() -> None:
    # With the layers as PyTorch begins them, all symbols are alike to 1e-5 from the third level on:
    # of what is deep, as LZD's symbols are, nothing reaches the sequence model.
    torch.manual_seed(0)
    composer: Any = make_composer("mlp", 200)
    states = torch.randn(4, 200) * 200**-0.5
    with torch.no_grad():
        for _ in range(3):
            left, right = torch.randint(len(states), (2, 64))
            states = composer.compose(states[left], states[right])
    assert states.std(0).mean() > 5e-4
    for layer in (composer.hidden, composer.output):
        assert layer.weight.std().item() == pytest.approx((2 / layer.in_features) ** 0.5, rel=0.02)


def slow_scan(a: Tensor, b: Tensor) -> Tensor:
    h, values = torch.zeros_like(b[0]), []
    for step in range(len(b)):
        h = a[step] * h + b[step]
        values.append(h)
    return torch.stack(values)


@settings(max_examples=40)
@given(st.integers(1, 40), st.integers(0, 1000))
def test_the_scan_equals_the_loop(length: int, seed: int) -> None:
    torch.manual_seed(seed)
    a = torch.rand(length, 2, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(length, 2, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(length, 2, 3, dtype=torch.float64)
    fast, slow = linear_scan(a, b), slow_scan(a, b)
    assert torch.allclose(fast, slow, rtol=1e-10, atol=1e-12)
    found = torch.autograd.grad((fast * weights).sum(), (a, b))
    wanted = torch.autograd.grad((slow * weights).sum(), (a, b))
    for x, y in zip(found, wanted, strict=True):
        assert torch.allclose(x, y, rtol=1e-9, atol=1e-11)


TEXTS = ["how much wood would a woodchuck chuck " * 6, "banana" * 9, "x", "", "abracadabra" * 3]


@pytest.mark.parametrize("codec", ["repair", "lz78", "lzd", "none"])
def test_linear_recurrence_is_that_of_the_expanded_characters(codec: CodecName) -> None:
    torch.manual_seed(0)
    size = 20
    grammars = compress_many(TEXTS, codec)
    batch = collate(grammars)
    model = GrammarModel(
        ModelConfig(
            alphabet_size=256, outputs=1, composer="linear_recurrence", embedding_size=size, width=4
        )
    )
    composer: LinearRecurrence = model.composer  # type: ignore[assignment]
    with torch.no_grad():
        found = model.inputs(batch)
        letters = composer.leaf(model.embedding.weight)
    a, a_back, b, b_back = letters.chunk(4, -1)
    for d, text in enumerate(TEXTS):
        codes = torch.tensor(list(text.encode()), dtype=torch.long)
        ends = np.cumsum([len(s) for s in expansions(grammars[d])]).tolist()
        if not text:
            assert not ends
            continue
        forward = slow_scan(a[codes], b[codes])
        backward = slow_scan(a_back[codes].flip(0), b_back[codes].flip(0)).flip(0)
        begins = [0, *ends[:-1]]
        wanted = torch.cat([forward[[end - 1 for end in ends]], backward[begins]], -1)
        assert (found[d, : len(ends)] - wanted).abs().max() <= 1e-5


def expansions(grammar: Any) -> list[list[int]]:
    texts = [[letter] for letter in range(grammar.alphabet_size)]
    for left, right in grammar.rules.tolist():
        texts.append(texts[left] + texts[right])
    return [texts[symbol] for symbol in grammar.sequence.tolist()]


def test_unknown_names_and_odd_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no composer 'gru'; there are dual_gru, grc"):
        make_composer("gru", 8)
    with pytest.raises(ValueError, match="even size"):
        make_composer("linear_recurrence", 7)
