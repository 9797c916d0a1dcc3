"""Sequence models: what they may see, and that neither padding nor batch-mates change anything."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from laconic.nn.sequence_models import (
    DIRECTIONS,
    SEQUENCE_MODELS,
    Positions,
    SequenceModel,
    _reversal,
    _reverse,
    sequence_model,
)

NAMES = st.sampled_from(list(SEQUENCE_MODELS))
RECURRENT = ["lstm", "gru", "rnn"]
SIZE, WIDTH = 3, 8
CLOSE: dict[str, Any] = {"rtol": 0, "atol": 1e-6}
Document = tuple[Tensor, Tensor]

torch.set_num_threads(1)  # the sizes are tiny, and threads that wait for each other are slow


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def document(count: int) -> Document:
    """A document's inputs, [count, SIZE], and its offsets, [count]."""
    lengths = torch.randint(1, 9, (count,))
    return torch.randn(count, SIZE), lengths.cumsum(0) - lengths


def padded(documents: list[Document], extra: int = 0, garbage: float = 0.0) -> list[Tensor]:
    """What a model is called with, documents one after the other, `garbage` in the padding."""
    counts = torch.tensor([len(x) for x, _ in documents])
    steps = max(1, int(counts.max())) + extra
    inputs = torch.full((len(documents), steps, SIZE), garbage, dtype=documents[0][0].dtype)
    offsets = torch.full((len(documents), steps), 2**60 if garbage else 0)
    for d, (x, o) in enumerate(documents):
        inputs[d, : len(x)] = x
        offsets[d, : len(x)] = o
    return [inputs, torch.arange(steps) < counts[:, None], counts, offsets]


def made(name: str, direction: str = "both", layers: int = 1, **options: Any) -> SequenceModel:
    return sequence_model(name, SIZE, WIDTH, layers, direction, **options)


def assert_same(got: Tensor, want: Tensor, tolerance: float = 1e-6) -> None:
    """Equal but for rounding, which may be greater only where numbers are greater than 1."""
    largest = max(1.0, float(want.detach().abs().max())) if want.numel() else 1.0
    torch.testing.assert_close(got, want, rtol=0, atol=tolerance * largest)


def assert_independent(
    model: nn.Module, documents: list[Document], call: list[Tensor], tolerance: float
) -> None:
    """Outputs and gradients of the batch are those of its documents, each of them alone."""
    for one, outputs in zip(documents, model(*call), strict=True):
        assert_same(outputs[: len(one[0])], alone(model, one), tolerance)
    to_symbols, to_parameters = gradients(model, [call])
    expected, of_parameters = gradients(model, [padded([one]) for one in documents])
    for got, want in zip(to_symbols + to_parameters, expected + of_parameters, strict=True):
        assert_same(got, want, tolerance)


def alone(model: nn.Module, one: Document) -> Tensor:
    """The model's outputs for one document without any padding, [count, output_size]."""
    outputs: Tensor = model(*padded([one]))[0, : len(one[0])]
    return outputs


def gradients(model: nn.Module, calls: list[list[Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    """Gradients of symbols, per document, and of parameters, for a loss that reads symbols only."""
    model.zero_grad()
    to_inputs = []
    for inputs, mask, counts, offsets in calls:
        inputs = inputs.clone().requires_grad_()
        outputs = model(inputs, mask, counts, offsets)
        assert outputs.isfinite().all()
        outputs.masked_fill(~mask[..., None], 0).sin().mean(-1).sum().backward()
        assert inputs.grad is not None
        assert inputs.grad[~mask].abs().sum() == 0
        to_inputs += [g[:n] for g, n in zip(inputs.grad, counts.tolist(), strict=True)]
    return to_inputs, [p.grad for p in model.parameters() if p.grad is not None]


@given(
    st.integers(0, 2**32),
    NAMES,
    st.sampled_from(DIRECTIONS),
    st.integers(1, 2),
    st.lists(st.integers(0, 9), min_size=1, max_size=5),
    st.integers(0, 7),
    st.sampled_from([0.0, 1.0, -1e3, 1e3, 1e6]),
    st.booleans(),
)
def test_only_its_own_symbols_change_a_document(
    seed: int,
    name: str,
    direction: str,
    layers: int,
    counts: list[int],
    extra: int,
    garbage: float,
    double: bool,
) -> None:
    torch.manual_seed(seed)
    model = made(name, direction, layers)
    documents = [document(count) for count in counts]
    tolerance = 1e-6
    if double:  # the least influence shows
        model = model.double()
        documents = [(x.double(), offsets) for x, offsets in documents]
        tolerance = 1e-13
    elif name == "transformer":
        tolerance = 1e-5  # few features may be almost equal, and norms then magnify rounding
    call = padded(documents, extra, garbage)
    assert model(*call).shape == (len(counts), max(1, *counts, 0) + extra, model.output_size)
    assert_independent(model, documents, call, tolerance)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_documents_are_independent_at_usual_sizes(name: str, direction: str) -> None:
    model = sequence_model(name, SIZE, 200, direction=direction)
    documents = [document(count) for count in (40, 0, 3, 120, 1)]
    assert_independent(model, documents, padded(documents, extra=9, garbage=1e3), 1e-6)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_empty_documents(name: str, direction: str) -> None:
    model = made(name, direction, layers=2)
    call = padded([document(0)] * 3, garbage=5.0)
    assert call[0].shape == (3, 1, SIZE)
    gradients(model, [call])
    for parameter in model.parameters():
        assert parameter.grad is not None
        assert (parameter.grad == 0).all()


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_order_of_the_batch_changes_nothing(name: str, direction: str) -> None:
    model = made(name, direction)
    documents = [document(count) for count in (4, 0, 7, 1)]
    order = [2, 0, 3, 1]
    outputs = model(*padded(documents))
    permuted = model(*padded([documents[d] for d in order]))
    for place, d in enumerate(order):
        count = len(documents[d][0])
        torch.testing.assert_close(permuted[place, :count], outputs[d, :count], **CLOSE)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_what_a_symbol_sees(name: str, direction: str) -> None:
    inputs, mask, counts, offsets = padded([document(7)], extra=2)
    model = made(name, direction).double()
    jacobian = torch.autograd.functional.jacobian(  # type: ignore[no-untyped-call]
        lambda x: model(x, mask, counts, offsets)[0], inputs.double()
    )
    sees = jacobian.abs().sum((1, 2, 4))[:7]  # [output, input]
    distance = torch.arange(9) - torch.arange(7)[:, None]  # how far after it the input is
    ahead = {"forward": distance <= 0, "backward": distance >= 0, "both": distance < 99}[direction]
    reach = (2 if direction == "both" else 4) if name == "cnn" else 99
    assert ((sees > 0) == (ahead & (distance.abs() <= reach) & mask)).all()


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("layers", [1, 3])
def test_backward_is_forward_over_reversed_documents(name: str, layers: int) -> None:
    forward, backward = made(name, "forward", layers), made(name, "backward", layers)
    backward.load_state_dict(forward.state_dict())
    if name == "transformer":  # it knows positions, which do not turn around
        for model in (forward, backward):
            nn.init.zeros_(model.get_parameter("positions.mix.weight"))
    documents = [document(count) for count in (5, 0, 8, 1)]
    turned = [(x.flip(0), o) for x, o in documents]
    expected, outputs = forward(*padded(documents)), backward(*padded(turned))
    for got, want, (x, _) in zip(outputs, expected, documents, strict=True):
        torch.testing.assert_close(got[: len(x)].flip(0), want[: len(x)], **CLOSE)


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_models_are_those_of_torch(name: str) -> None:
    model: Any = made(name, "both", layers=2)
    reference = {"lstm": nn.LSTM, "gru": nn.GRU, "rnn": nn.RNN}[name](
        SIZE, WIDTH, num_layers=2, bidirectional=True
    )
    with torch.no_grad():
        for key, value in reference.named_parameters():
            layer, first = model.readers["_l1" in key], key.replace("_l1", "_l0")
            if name == "rnn":
                reader = layer.back if first.endswith("_reverse") else layer.ahead
                own = reader.get_parameter(first.removesuffix("_reverse"))
            else:
                own = layer.reader.get_parameter(first)
            value.copy_(own if value.ndim == 1 else own[:, : value.shape[1]])
    documents = [document(count) for count in (5, 8, 1)]
    outputs = model(*padded(documents, extra=3, garbage=9.0))
    for got, (x, _) in zip(outputs, documents, strict=True):
        torch.testing.assert_close(got[: len(x)], reference(x)[0], **CLOSE)


def attention(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """The slow one, of one head, [T, size] each; seen, bool [T, T]."""
    rows = []
    for i in range(len(q)):
        keys = seen[i].nonzero().flatten()
        weights = (k[keys] @ q[i] / len(q[i]) ** 0.5).softmax(0)
        rows.append(weights @ v[keys])
    return torch.stack(rows)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("width", [8, 12])
def test_transformer_is_the_textbook_one(direction: str, width: int) -> None:
    model: Any = sequence_model("transformer", SIZE, width, 2, direction, heads=2)
    for norm in (m for m in model.modules() if isinstance(m, nn.LayerNorm)):
        nn.init.normal_(norm.weight)
    inputs, offsets = document(6)
    seen = torch.ones(6, 6, dtype=torch.bool)
    seen = {"forward": seen.tril(), "backward": seen.triu(), "both": seen}[direction]
    x = model.project(inputs) + model.positions(offsets[None])[0]
    for layer in model.layers:
        parts = layer.queries_keys_values(layer.attention_norm(x)).chunk(3, -1)
        heads = [part.chunk(2, -1) for part in parts]
        read = [attention(q, k, v, seen) for q, k, v in zip(*heads, strict=True)]
        x = x + layer.attention_out(torch.cat(read, -1))
        x = x + layer.feed_forward(x)
    torch.testing.assert_close(alone(model, (inputs, offsets)), model.norm(x), rtol=0, atol=1e-5)


def test_transformer_knows_index_and_offset() -> None:
    model = made("transformer")
    inputs, mask, counts, offsets = padded([(torch.ones(5, SIZE), torch.arange(5))])
    outputs = model(inputs, mask, counts, offsets)
    assert not torch.allclose(outputs[0, 0], outputs[0, 1])
    assert not torch.allclose(outputs, model(inputs, mask, counts, offsets * 7))
    assert not torch.allclose(outputs[0, 0], model(inputs, mask, counts, offsets * 0)[0, 1])


def test_attention_is_never_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Tensor] = []
    attend: Any = nn.functional.scaled_dot_product_attention

    def spy(*arguments: Tensor, attn_mask: Tensor, **others: Any) -> Tensor:
        seen.append(attn_mask)
        outputs: Tensor = attend(*arguments, attn_mask=attn_mask, **others)
        return outputs

    monkeypatch.setattr(nn.functional, "scaled_dot_product_attention", spy)
    call = padded([document(0), document(3), document(1)])
    made("transformer")(*call)
    assert seen[0].squeeze().tolist() == [[True, False, False], [True] * 3, [True, False, False]]


def test_positions() -> None:
    positions = Positions(8)
    nn.init.eye_(positions.mix.weight)
    nn.init.zeros_(positions.mix.bias)
    far = positions(torch.tensor([[0, 3, 2**24, 2**60]]))[0]
    assert far.isfinite().all()
    assert (far[2] != far[3]).any()  # by index
    frequencies = torch.tensor([1.0, 2.0**-12])
    for index, offset in enumerate([0, 3, 2**24, 2**24]):
        angles = torch.cat([offset * frequencies, index * frequencies])
        torch.testing.assert_close(far[index], torch.cat([angles.sin(), angles.cos()]))


@given(st.lists(st.integers(0, 6), min_size=1, max_size=5), st.integers(0, 3))
def test_reversal(counts: list[int], extra: int) -> None:
    steps = max(1, *counts, 0) + extra
    x = torch.randn(steps, len(counts), 2, dtype=torch.float64)
    reversal = _reversal(torch.tensor(counts), steps)
    turned = _reverse(x, reversal)
    for d, count in enumerate(counts):
        assert (turned[:count, d] == x[:count, d].flip(0)).all()
        assert (turned[count:, d] == x[count:, d]).all()
    assert (_reverse(turned, reversal) == x).all()


def test_gradients_of_reversal() -> None:
    reversal = _reversal(torch.tensor([3, 0, 2, 4]), 4)
    x = torch.randn(4, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: _reverse(x, reversal), x)
    assert torch.autograd.gradgradcheck(lambda x: _reverse(x, reversal), x)
    assert torch.autograd.gradcheck(lambda x: _reverse(x.transpose(0, 1), reversal)[..., 1:], x)


@pytest.mark.parametrize("name", RECURRENT)
def test_time_major_inputs_are_not_copied(name: str) -> None:
    model: Any = made(name, "forward")
    inputs = torch.randn(6, 2, SIZE).transpose(0, 1)
    seen = []
    model.readers[0].register_forward_pre_hook(lambda module, arguments: seen.append(arguments[0]))
    counts = torch.tensor([6, 4])
    outputs = model(inputs, torch.arange(6) < counts[:, None], counts, torch.zeros(2, 6))
    assert seen[0].data_ptr() == inputs.data_ptr()
    assert outputs.transpose(0, 1).is_contiguous()


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_every_parameter_learns(name: str, direction: str) -> None:
    model = made(name, direction, layers=2)
    _, to_parameters = gradients(model, [padded([document(5), document(2)])])
    assert len(to_parameters) == len(list(model.parameters()))
    assert all((gradient != 0).any() for gradient in to_parameters)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_gradients_in_float64(name: str, direction: str) -> None:
    model = made(name, direction, layers=2).double()
    inputs, mask, counts, offsets = padded([document(3), document(0), document(2)])
    inputs = inputs.double().requires_grad_()
    assert model(inputs, mask, counts, offsets).dtype == torch.float64
    assert torch.autograd.gradcheck(
        lambda x: model(x, mask, counts, offsets).masked_fill(~mask[..., None], 0), inputs
    )


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_bfloat16_autocast(name: str) -> None:
    model = made(name, layers=2)
    call = padded([document(9), document(0), document(4)], garbage=3.0)
    with torch.autocast("cpu", torch.bfloat16):
        outputs = model(*call)
    outputs.float().masked_fill(~call[1][..., None], 0).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    torch.testing.assert_close(
        outputs.float()[call[1]], model(*call)[call[1]], rtol=0.05, atol=0.05
    )


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_saved_and_restored(name: str, direction: str) -> None:
    model, other = made(name, direction, layers=2), made(name, direction, layers=2)
    call = padded([document(5), document(2)])
    assert not torch.equal(model(*call), other(*call))
    other.load_state_dict(model.state_dict())
    assert torch.equal(model(*call), other(*call))
    assert torch.equal(model(*call), copy.deepcopy(model)(*call))


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_dropout_is_for_training_and_between_layers(name: str) -> None:
    call = padded([document(5), document(2)])
    model = made(name, layers=2, dropout=0.5)
    assert not torch.equal(model(*call), model(*call))
    model.eval()
    assert torch.equal(model(*call), model(*call))
    one = made(name, layers=1, dropout=0.5)
    assert torch.equal(one(*call), one(*call)) == (name != "transformer")


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_sizes(direction: str) -> None:
    for name in SEQUENCE_MODELS:
        model = made(name, direction)
        both = direction == "both" and name in RECURRENT
        assert model.bidirectional == both
        assert model.output_size == (2 * WIDTH if both else WIDTH)
        assert sequence_model(name, 200).output_size in (200, 400)


def test_cnn_adds_its_input_where_sizes_agree() -> None:
    call = padded([document(4)])
    for width in (SIZE, WIDTH):
        model = sequence_model("cnn", SIZE, width, kernel_size=3)
        for parameter in model.parameters():
            nn.init.zeros_(parameter)
        expected = call[0] if width == SIZE else torch.zeros(1, 4, WIDTH)
        torch.testing.assert_close(model(*call), expected)


def test_transformer_projects_only_other_sizes() -> None:
    assert isinstance(sequence_model("transformer", 8, 8).get_submodule("project"), nn.Identity)
    assert isinstance(sequence_model("transformer", 8, 4).get_submodule("project"), nn.Linear)


def test_lstm_remembers_at_first() -> None:
    model: Any = made("lstm", layers=2)
    for layer in model.readers:
        of = dict(layer.reader.named_parameters())
        for half in ("", "_reverse"):
            bias = of[f"bias_ih_l0{half}"] + of[f"bias_hh_l0{half}"]
            assert bias[WIDTH : 2 * WIDTH].tolist() == [1] * WIDTH
            assert of[f"bias_ih_l0{half}"][:WIDTH].abs().max() <= WIDTH**-0.5


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_gates_stay_closed_at_padding(name: str) -> None:
    """No gradient reaches the weights that close them, and weight decay does not open them."""
    model: Any = made(name, "both", layers=2).float()
    inputs, mask, counts, offsets = padded([document(count) for count in (5, 2)], extra=3)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1, weight_decay=5.0)
    for _ in range(20):
        optimizer.zero_grad()
        outputs = model(inputs.float(), mask, counts, offsets)
        outputs[mask].sum().backward()
        for layer in model.readers:
            for key in ("weight_ih_l0", "weight_ih_l0_reverse"):
                assert not layer.reader.get_parameter(key).grad[:, layer.input_size :].any()
        optimizer.step()
    layer = model.readers[0].eval()
    closing = layer.reader.weight_ih_l0[layer.gate, layer.input_size].abs()
    assert closing.min() > 0.4 * layer.closed
    state = layer.reader(torch.cat([torch.zeros(1, 1, SIZE), torch.eye(4)[:1, None]], -1))[1]
    for tensor in state if name == "lstm" else [state]:
        assert not tensor.any()


def test_two_calls_before_one_way_back() -> None:
    model: Any = made("lstm", "both")
    batch = padded([document(3)], extra=2)
    (model(*batch) + model(*batch)).sum().backward()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "mamba"}, "no sequence model 'mamba': choose from lstm, gru, rnn, cnn, tran"),
        ({"direction": "up"}, "no direction 'up': choose from forward, backward, both"),
        ({"heads": 2}, "no option 'heads' of sequence model 'lstm': it has none"),
        ({"name": "cnn", "heads": 2}, "no option 'heads' of .* 'cnn': choose from kernel_size"),
        ({"name": "transformer", "width": 6}, "width 6 must be divisible by heads, which is 4"),
        ({"name": "transformer", "heads": 0}, "heads must be at least 1, not 0"),
        ({"name": "cnn", "kernel_size": 0}, "kernel_size must be at least 1, not 0"),
        ({"name": "cnn", "kernel_size": 4}, "kernel_size must be odd"),
        ({"width": 0}, "width must be at least 1, not 0"),
        ({"layers": 0}, "layers must be at least 1, not 0"),
        ({"input_size": 0}, "input_size must be at least 1, not 0"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and less than 1, not 1\.0"),
    ],
)
def test_what_cannot_be(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sequence_model(**{"name": "lstm", "input_size": 3, **arguments})


def test_even_kernels_in_one_direction() -> None:
    model = made("cnn", "forward", kernel_size=4)
    assert alone(model, document(5)).shape == (5, WIDTH)
