"""Sequence models: they read the symbols of each document, in the context of the others.

Every model is called with the same four tensors and gives one vector per symbol:

- inputs, float [B, T, input_size]: one vector per symbol, documents padded at their end;
- mask, bool [B, T]: True on symbols; lengths, int64 [B]: the symbols of each document, may be 0;
- offsets, int64 [B, T]: where each symbol's expansion begins in the expanded document;
- the result, float [B, T, output_size]. At padding it is finite and means nothing.

What stands in the padding, as long as it is finite, and what else is in the batch change nothing.
Direction "forward" lets a symbol see itself and those before it, "backward" itself and those after
it, "both" all of them.

>>> model = sequence_model("lstm", 3, width=5)
>>> mask = torch.tensor([[True, True], [True, False]])
>>> model(torch.zeros(2, 2, 3), mask, mask.sum(1), torch.zeros(2, 2, dtype=torch.int64)).shape
torch.Size([2, 2, 10])
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from inspect import Parameter, signature
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.errors import InputError
from laconic.nn.kernels import layer as kernels
from laconic.nn.long_sequences import read

DIRECTIONS = ("forward", "backward", "both")

RecurrentCell: TypeAlias = type[nn.LSTM] | type[nn.GRU] | type[nn.RNN]

# Float32 holds every offset up to here.
FARTHEST = 2**24


class Recurrent(nn.Module):
    """Layers of LSTM, GRU or tanh RNN; "both" concatenates two of them, `width` numbers each.

    O(T) steps, one after the other. Works on [T, B, size], as cuDNN does: inputs that are a
    transposed view of such a tensor are not copied, and the result is such a view.
    """

    kernels = True
    """Whether kernels of our own read, where they can; set it on a model at will."""
    read_by = ""
    """What read last, in words."""

    def __init__(
        self,
        cell: RecurrentCell,
        input_size: int,
        width: int,
        layers: int,
        direction: str,
        dropout: float,
    ) -> None:
        super().__init__()
        self.direction = direction
        self.bidirectional = direction == "both"
        self.output_size = width * (1 + self.bidirectional)
        self.dropout = nn.Dropout(dropout)
        kind = (EachWay if cell is nn.RNN else BothWays) if self.bidirectional else OneWay
        self.readers = nn.ModuleList(
            kind(cell, size, width) for size in [input_size] + [self.output_size] * (layers - 1)
        )

    def forward(self, inputs: Tensor, mask: Tensor, lengths: Tensor, offsets: Tensor) -> Tensor:
        """Read documents; see the module's docstring for the shapes."""
        x, padding = inputs.transpose(0, 1).contiguous(), ~mask.t()
        if self.direction == "backward":
            x = _reverse(x, _reversal(lengths, len(x)))
        for layer, reader in enumerate(self.readers):
            x = self._read(reader, self.dropout(x) if layer else x, padding, lengths)
        if self.direction == "backward":
            x = _reverse(x, _reversal(lengths, len(x)))
        return x.transpose(0, 1)

    def _read(self, reader: nn.Module, x: Tensor, padding: Tensor, lengths: Tensor) -> Tensor:
        if self.training and isinstance(reader, BothWays):
            reader.close_gates()  # Weight decay would open them, little by little.
        layer = getattr(reader, "reader", None)
        why_not = kernels.obstacle(layer, x) if self.kernels else "they are switched off"
        if layer is None or why_not:
            self.read_by = f"{'cuDNN' if x.is_cuda else 'torch'}, not our kernels: {why_not}"
            made: Tensor = reader(x, padding, lengths)
            return made
        self.read_by = "our kernels"
        return kernels.read(layer, x, lengths)


class OneWay(nn.Module):
    """One layer that reads forward, and meets padding only after the document."""

    def __init__(self, cell: RecurrentCell, input_size: int, width: int) -> None:
        super().__init__()
        self.reader = _ready_to_remember(cell(input_size, width))

    def forward(self, x: Tensor, padding: Tensor, lengths: Tensor) -> Tensor:
        """Return float [T, B, width] of float [T, B, input_size]."""
        return read(self.reader, x)


class EachWay(nn.Module):
    """One layer that reads documents, and one that reads them reversed."""

    def __init__(self, cell: RecurrentCell, input_size: int, width: int) -> None:
        super().__init__()
        self.ahead, self.back = cell(input_size, width), cell(input_size, width)

    def forward(self, x: Tensor, padding: Tensor, lengths: Tensor) -> Tensor:
        """Return float [T, B, 2 * width] of float [T, B, input_size]."""
        reversal = _reversal(lengths, len(x))
        back = _reverse(read(self.back, _reverse(x, reversal)), reversal)
        return torch.cat([read(self.ahead, x), back], -1)


class BothWays(nn.Module):
    """One layer of LSTM or GRU in both directions, in one call: cuDNN overlaps the two.

    The half that reads backward meets padding first. An additional input, 1 at padding, closes the
    gate by which anything gets into the state, so that it is exactly zero when the document begins.
    The weights of that input never get a gradient, and are put back before each training step, also
    when our kernels read, which need none of this, so that a model is one for any device; but
    what looks at all weights alike (their norm, say, or their range) should leave them out.
    """

    flags = 4  # one is used; cuDNN's matrix products like inputs of a multiple of 16 bytes
    closed = 30_000.0  # far beyond where a sigmoid is 0 or 1, in float16, too

    def __init__(self, cell: RecurrentCell, input_size: int, width: int) -> None:
        super().__init__()
        self.input_size = input_size
        # LSTM: the input gate lets nothing in. GRU: the update gate, second of three, holds all.
        self.gate = slice(0, width) if cell is nn.LSTM else slice(width, 2 * width)
        self.weight = -self.closed if cell is nn.LSTM else self.closed
        self.reader = _ready_to_remember(cell(input_size + self.flags, width, bidirectional=True))
        self.close_gates()

    def forward(self, x: Tensor, padding: Tensor, lengths: Tensor) -> Tensor:
        """Return float [T, B, 2 * width] of float [T, B, input_size]."""
        padding = padding.unsqueeze(-1)
        flags = F.pad(padding.to(x.dtype), (0, self.flags - 1))
        return read(self.reader, torch.cat([x.masked_fill(padding, 0), flags], -1))

    def close_gates(self) -> None:
        """Put the weights of the additional input back to what they have to be."""
        for name in ("weight_ih_l0", "weight_ih_l0_reverse"):
            # By .data, since autograd need not know: they are what they were at its last look.
            weights = self.reader.get_parameter(name).data[:, self.input_size :]
            weights.zero_()
            weights[self.gate, 0] = self.weight


class Convolutional(nn.Module):
    """Layers of convolutions with GELU, added to their input where the sizes agree. O(T).

    With "both", a layer sees `kernel_size` symbols, the one in question in the middle; otherwise
    the `kernel_size` symbols that end, or begin, with it.
    """

    bidirectional = False  # its outputs have no halves

    def __init__(
        self,
        input_size: int,
        width: int,
        layers: int,
        direction: str,
        dropout: float,
        *,
        kernel_size: int = 5,
    ) -> None:
        super().__init__()
        _at_least_one(kernel_size=kernel_size)
        if direction == "both" and kernel_size % 2 == 0:
            raise InputError(
                f'kernel_size must be odd with direction="both", not {kernel_size}: '
                "only then is there a symbol in the middle"
            )
        self.direction = direction
        self.output_size = width
        self.dropout = nn.Dropout(dropout)
        padding = kernel_size // 2 if direction == "both" else kernel_size - 1
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, width, kernel_size, padding=padding)
            for size in [input_size] + [width] * (layers - 1)
        )

    def forward(self, inputs: Tensor, mask: Tensor, lengths: Tensor, offsets: Tensor) -> Tensor:
        """Read documents; see the module's docstring for the shapes."""
        x = _reverse_batch(inputs, lengths) if self.direction == "backward" else inputs
        x = x.transpose(1, 2)
        padding = ~mask[:, None, :]
        for layer, convolution in enumerate(self.convolutions):
            if layer:
                x = self.dropout(x)
            x = x.masked_fill(padding, 0)
            # Padded by kernel_size - 1 on both sides, the first T results see only what is before.
            y = F.gelu(convolution(x)[..., : x.shape[-1]])
            x = x + y if x.shape == y.shape else y
        x = x.transpose(1, 2)
        return _reverse_batch(x, lengths) if self.direction == "backward" else x


class Transformer(nn.Module):
    """Pre-norm transformer encoder that knows a symbol's index and its offset. O(T²) time.

    Dropout is on what attention and feed-forward add, as usual in transformers.
    """

    bidirectional = False  # its outputs have no halves

    def __init__(
        self,
        input_size: int,
        width: int,
        layers: int,
        direction: str,
        dropout: float,
        *,
        heads: int = 4,
    ) -> None:
        super().__init__()
        _at_least_one(heads=heads)
        if width % heads:
            raise InputError(f"width {width} must be divisible by heads, which is {heads}")
        self.direction = direction
        self.output_size = width
        self.project = nn.Linear(input_size, width) if input_size != width else nn.Identity()
        self.positions = Positions(width)
        self.layers = nn.ModuleList(EncoderLayer(width, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, inputs: Tensor, mask: Tensor, lengths: Tensor, offsets: Tensor) -> Tensor:
        """Read documents; see the module's docstring for the shapes."""
        x = self.project(inputs) + self.positions(offsets)
        keys: Tensor | None = None
        if self.direction == "both":
            # Not every kernel can attend to nothing: even empty documents see position 0.
            keys = F.pad(mask[:, 1:], (1, 0), value=True)[:, None, None, :]
        elif self.direction == "backward":
            x = _reverse_batch(x, lengths)
        for layer in self.layers:
            x = layer(x, keys)
        x = self.norm(x)
        return _reverse_batch(x, lengths) if self.direction == "backward" else x


class EncoderLayer(nn.Module):
    """Attention, then a feed-forward network of 4 × width, each normalised first and added."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        # CUDA kernels that never hold T × T scores want multiples of 8 numbers per head.
        size = -(-width // heads // 8) * 8
        self.attention_norm = nn.LayerNorm(width)
        self.queries_keys_values = nn.Linear(width, 3 * heads * size)
        self.attention_out = nn.Linear(heads * size, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, keys: Tensor | None) -> Tensor:
        """Return float [B, T, width] of the same; `keys`, bool [B, 1, 1, T], are seen by all.

        Without `keys` each position sees itself and those before it: no padding, which is behind.
        """
        made = self.queries_keys_values(self.attention_norm(x))
        q, k, v = made.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, attn_mask=keys, is_causal=keys is None)
        x = x + self.dropout(self.attention_out(seen.transpose(1, 2).flatten(2)))
        added: Tensor = self.dropout(self.feed_forward(x))
        return x + added


class Positions(nn.Module):
    """Vectors of positions: sinusoids of offset and index, half the features each, then mixed."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.count = -(-width // 4)
        self.mix = nn.Linear(4 * self.count, width)

    def forward(self, offsets: Tensor) -> Tensor:
        """Return float [B, T, width] of int64 offsets [B, T]; those over 2²⁴ count as 2²⁴."""
        indices = torch.arange(offsets.shape[1], device=offsets.device).expand_as(offsets)
        places = torch.stack([offsets.clamp(0, FARTHEST), indices], -1).float()
        # Bfloat16 cannot tell 256 from 257, so that only the sinusoids may become that.
        exponents = torch.arange(self.count, device=offsets.device) / self.count
        angles = (places[..., None] * FARTHEST**-exponents).flatten(-2)
        features = torch.cat([angles.sin(), angles.cos()], -1).to(self.mix.weight.dtype)
        mixed: Tensor = self.mix(features)
        return mixed


SequenceModel: TypeAlias = Recurrent | Convolutional | Transformer

SEQUENCE_MODELS: dict[str, Callable[..., SequenceModel]] = {
    "lstm": partial(Recurrent, nn.LSTM),
    "gru": partial(Recurrent, nn.GRU),
    "rnn": partial(Recurrent, nn.RNN),
    "cnn": Convolutional,
    "transformer": Transformer,
}


def sequence_model(
    name: str,
    input_size: int,
    width: int = 200,
    layers: int = 1,
    direction: str = "both",
    dropout: float = 0.0,
    **options: int,
) -> SequenceModel:
    """Return a new model by its name; its `output_size` is the size of the vectors it gives.

    `width` is the size per direction of "lstm", "gru" and "rnn", and the output size of "cnn" and
    "transformer". Options: kernel_size=5 of "cnn", heads=4 of "transformer". Its `bidirectional`
    says whether outputs are a forward half and a backward half. Raises ValueError for a name, a
    direction, an option or a size that cannot be.
    """
    if name not in SEQUENCE_MODELS:
        raise InputError(f"no sequence model {name!r}: choose from {', '.join(SEQUENCE_MODELS)}")
    if direction not in DIRECTIONS:
        raise InputError(f"no direction {direction!r}: choose from {', '.join(DIRECTIONS)}")
    _at_least_one(input_size=input_size, width=width, layers=layers)
    if not 0 <= dropout < 1:
        raise InputError(f"dropout must be at least 0 and less than 1, not {dropout}")
    make = SEQUENCE_MODELS[name]
    parameters = signature(make).parameters.values()
    known = [p.name for p in parameters if p.kind is Parameter.KEYWORD_ONLY]
    for option in options:
        if option not in known:
            cure = f"choose from {', '.join(known)}" if known else "it has none"
            raise InputError(f"no option {option!r} of sequence model {name!r}: {cure}")
    return make(input_size, width, layers, direction, dropout, **options)


def _at_least_one(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} must be at least 1, not {size}")


def _ready_to_remember(reader: nn.RNNBase) -> nn.RNNBase:
    """Return an LSTM whose forget gates are open at first (Jozefowicz et al., 2015)."""
    if isinstance(reader, nn.LSTM):
        width = reader.hidden_size
        with torch.no_grad():  # gates: input, forget, cell, output
            for name, parameter in reader.named_parameters():
                if name.startswith("bias"):
                    parameter[width : 2 * width] = float(name.startswith("bias_ih"))
    return reader


def _reversal(lengths: Tensor, steps: int) -> Tensor:
    """Return, int64 [T * B], which row of a flattened [T, B, d] comes where in reversed documents.

    Padding stays. Done twice, it changes nothing.
    """
    step = torch.arange(steps, device=lengths.device)[:, None]
    source = torch.where(step < lengths, lengths - 1 - step, step)
    return (source * len(lengths) + torch.arange(len(lengths), device=lengths.device)).flatten()


def _reverse(x: Tensor, reversal: Tensor) -> Tensor:
    """Reverse each document of float [T, B, d]."""
    reversed_: Tensor = _Reverse.apply(x, reversal)  # type: ignore[no-untyped-call]
    return reversed_


def _reverse_batch(x: Tensor, lengths: Tensor) -> Tensor:
    """Reverse each document of float [B, T, d]."""
    return _reverse(x.transpose(0, 1), _reversal(lengths, x.shape[1])).transpose(0, 1)


class _Reverse(torch.autograd.Function):
    """A permutation that is its own inverse, so that gradients are gathered too, never added up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, reversal: Tensor) -> Tensor:
        ctx.save_for_backward(reversal)
        return x.flatten(0, 1).index_select(0, reversal).view(x.shape)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (reversal,) = ctx.saved_tensors
        return _reverse(grad, reversal), None
