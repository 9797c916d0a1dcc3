"""benchmarks.peer is a fair peer only if it computes what the paper says."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.peer import LONGEST, PeerModel, peer_batch
from laconic import Grammar, Grammars, compress_many

SIZE = 6
DOCUMENTS = [
    "abracadabra abracadabra",
    "a",
    "banana banana ba",
    "xyz",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
]
COMPOSERS = ["dual_gru", "grc"]
CODECS = ["repair", "lzd", "lz78", "none"]
Vector = list[float]


def model_of(composer: str, alphabet_size: int = 256) -> PeerModel:
    torch.manual_seed(1)
    model = PeerModel(alphabet_size, outputs=3, composer=composer, size=SIZE).double()
    with torch.no_grad():
        for parameter in model.parameters():  # Biases of 0 or norms of 1 would hide mistakes.
            parameter += torch.randn_like(parameter) / 4
    return model.eval()


def affine(layer: torch.nn.Linear, x: Vector) -> Vector:
    rows, biases = layer.weight.tolist(), layer.bias.tolist()
    return [
        sum(w * v for w, v in zip(row, x, strict=True)) + b
        for row, b in zip(rows, biases, strict=True)
    ]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def norm(layer: torch.nn.LayerNorm, x: Vector) -> Vector:
    mean = sum(x) / len(x)
    scale = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + layer.eps)
    pairs = zip(layer.weight.tolist(), layer.bias.tolist(), x, strict=True)
    return [w * (v - mean) / scale + b for w, b, v in pairs]


def dual_gru(model: PeerModel, left: Vector, right: Vector) -> Vector:
    """The paper's equations, a number at a time."""
    cell, both = model.composer, left + right
    z = affine(cell.update, both)
    r = [sigmoid(v) for v in affine(cell.reset, both)]
    i = [sigmoid(v) for v in affine(cell.candidate, [a * b for a, b in zip(r, both, strict=True)])]
    made = []
    for k in range(SIZE):
        gates = [math.exp(z[k]), math.exp(z[SIZE + k]), math.exp(z[2 * SIZE + k])]
        parts = (left[k], right[k], i[k])
        made.append(sum(g * p for g, p in zip(gates, parts, strict=True)) / sum(gates))
    return made


def grc(model: PeerModel, left: Vector, right: Vector) -> Vector:
    cell = model.composer
    hidden = [v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in affine(cell.hidden, left + right)]
    gates = affine(cell.gates, hidden)
    f1, f2, i, c = (gates[k * SIZE : (k + 1) * SIZE] for k in range(4))
    mixed = [
        sigmoid(f1[k]) * left[k] + sigmoid(f2[k]) * right[k] + sigmoid(i[k]) * c[k]
        for k in range(SIZE)
    ]
    return norm(cell.norm, mixed)


def node_by_node(model: PeerModel, composer: str, grammar: Grammar) -> list[Vector]:
    """Return the vector of each symbol of one document, rule after rule."""
    vectors = model.embedding.tolist()
    if composer == "grc":
        vectors = [norm(model.composer.norm, v) for v in vectors]
    for left, right in grammar.rules.tolist():
        vectors.append(
            {"dual_gru": dual_gru, "grc": grc}[composer](model, vectors[left], vectors[right])
        )
    return vectors


@pytest.mark.parametrize("codec", ["repair", "lzd"])
@pytest.mark.parametrize("composer", COMPOSERS)
def test_levels_give_what_rule_after_rule_gives(composer: str, codec: str) -> None:
    model = model_of(composer)
    grammars = compress_many(DOCUMENTS, codec)  # type: ignore[arg-type]
    batch = peer_batch(grammars, [0] * len(DOCUMENTS))
    nodes = model.encode(batch)
    assert len(nodes) == 256 + len(grammars.rules)
    for row, grammar in zip(batch.symbols, grammars, strict=True):
        wanted = node_by_node(model, composer, grammar)
        for symbol, node in zip(grammar.sequence.tolist(), row.tolist(), strict=False):
            assert nodes[node].tolist() == pytest.approx(wanted[symbol], abs=1e-9)
            length = 1 if symbol < 256 else int(grammar.expanded_lengths[symbol - 256])
            assert batch.node_lengths[node] == min(LONGEST, length)


@pytest.mark.parametrize("composer", COMPOSERS)
def test_logits_are_those_of_an_lstm_over_one_document(composer: str) -> None:
    model = model_of(composer)
    grammars = compress_many(DOCUMENTS)
    scores = model(peer_batch(grammars, [0] * len(DOCUMENTS)))
    for grammar, found in zip(grammars, scores, strict=True):
        vectors = torch.tensor(node_by_node(model, composer, grammar), dtype=torch.float64)
        inputs = vectors[grammar.sequence.tolist()]
        if model.lengths is not None:
            lengths = [1] * 256 + grammar.expanded_lengths.tolist()
            inputs = (
                inputs
                + model.lengths.weight[
                    [min(LONGEST, lengths[s]) for s in grammar.sequence.tolist()]
                ]
            )
        wanted = model.head(model.lstm(inputs[None])[0].amax(1))
        torch.testing.assert_close(found[None], wanted)


@pytest.mark.slow
@given(
    st.lists(st.text("abc", max_size=30), min_size=1, max_size=6),
    st.sampled_from(CODECS),
    st.sampled_from(COMPOSERS),
    st.randoms(use_true_random=False),
)
def test_logits_do_not_depend_on_batch_mates(
    documents: list[str], codec: str, composer: str, random: Random
) -> None:
    model = model_of(composer).float()
    grammars = compress_many(documents, codec)  # type: ignore[arg-type]
    order = random.sample(range(len(documents)), len(documents))
    mixed = Grammars.concatenate([grammars[i] for i in order])
    with torch.no_grad():
        together = model(peer_batch(mixed, [0] * len(order)))
        alone = torch.cat([model(peer_batch(grammars[i : i + 1], [0])) for i in order])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("composer", COMPOSERS)
def test_padded_sequences_come_to_the_same_as_packed_ones(composer: str, codec: str) -> None:
    packed = model_of(composer)
    padded = PeerModel(256, outputs=3, composer=composer, size=SIZE, packed=False).double()
    renamed = {
        name.replace("lstm.", "reverse_lstm.").removesuffix("_reverse")
        if name.endswith("_reverse")
        else name: value
        for name, value in packed.state_dict().items()
    }
    padded.load_state_dict(renamed)
    grammars = compress_many([*DOCUMENTS, ""], codec)  # type: ignore[arg-type]
    batch = peer_batch(grammars, [0] * len(grammars))
    torch.testing.assert_close(padded(batch), packed(batch))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("composer", COMPOSERS)
def test_it_learns(composer: str, codec: str) -> None:
    torch.manual_seed(0)
    model = PeerModel(256, outputs=2, composer=composer, size=16)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    batch = peer_batch(
        compress_many(["abababab", "babababa", "ccddccddcc", "ddccddcc"], codec),  # type: ignore[arg-type]
        np.array([0, 0, 1, 1]),
    )
    for _ in range(30):
        optimizer.zero_grad()
        loss = model.loss(model(batch), batch.labels)
        loss.backward()
        optimizer.step()
    assert loss < 0.1
    assert all(p.grad is not None for p in model.lstm.parameters())


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="dual_gru, grc"):
        PeerModel(4, 2, "mlp")
    with pytest.raises(ValueError, match="a label for each"):
        peer_batch(compress_many(["a"]), [1, 2])
