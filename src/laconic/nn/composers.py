"""Composers: small networks that make a symbol's state from the states of its two operands.

A composer is a module built from one number, the size of the embeddings, with three functions:

- `leaf(embeddings)`: float [A, size] to the states of the terminals, float [A, state_size];
- `compose(left, right)`: float [n, state_size] each, to the states of n symbols; a pure function
  of its arguments (it is run again on the way back, so dropout has no place in it);
- `read(states)`: float [n, state_size] to what the sequence model sees, float [n, output_size].

One that also has `scan(inputs, mask)` reads symbols in their context. To add your own:

>>> class Average(nn.Module):
...     def __init__(self, size):
...         super().__init__()
...         self.state_size = self.output_size = size
...         self.mix = nn.Linear(size, size)
...     def leaf(self, embeddings): return embeddings
...     def compose(self, left, right): return torch.tanh(self.mix((left + right) / 2))
...     def read(self, states): return states
>>> COMPOSERS["average"] = Average             # then: ModelConfig(composer="average", ...)
>>> del COMPOSERS["average"]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.errors import InputError
from laconic.nn.scan import linear_scan


class Composer(Protocol):
    """What a composer has; see the module's description."""

    state_size: int
    output_size: int

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Return the states of terminals."""

    def compose(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the states of symbols from those of their operands."""

    def read(self, states: Tensor) -> Tensor:
        """Return what the sequence model sees of symbols."""


class MLP(nn.Module):
    """The paper's baseline: sigmoid(W2 ReLU(W1 [l; r] + b1) + b2), one hidden layer of `size`.

    Weights begin as in the paper's code, Kaiming's normal distribution: with PyTorch's own, symbols
    of the third level are all alike, and what is deep does not learn.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.state_size = self.output_size = size
        self.hidden = nn.Linear(2 * size, size)
        self.output = nn.Linear(size, size)
        for layer in (self.hidden, self.output):
            nn.init.kaiming_normal_(layer.weight)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Terminals are their embeddings."""
        return embeddings

    def compose(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the states of symbols from those of their operands."""
        hidden = F.relu(self.hidden(torch.cat([left, right], -1)))
        return torch.sigmoid(self.output(hidden))

    def read(self, states: Tensor) -> Tensor:
        """States are read as they are."""
        return states


class DualGRU(nn.Module):
    """The paper's composer: z1 l + z2 r + zi i, the three gates a softmax for every feature.

    r = s(Wr [l; r] + br), i = s(Wi (r * [l; r]) + bi), s the sigmoid. The rows of Wz and Wr lie in
    one matrix, since both read [l; r].
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.state_size = self.output_size = size
        self.gates = nn.Linear(2 * size, 5 * size)
        self.candidate = nn.Linear(2 * size, size)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Terminals are their embeddings."""
        return embeddings

    def compose(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the states of symbols from those of their operands."""
        size = self.state_size
        both = torch.cat([left, right], -1)
        update, reset = self.gates(both).split([3 * size, 2 * size], -1)
        z = torch.softmax(update.unflatten(-1, (3, size)), -2)
        i = torch.sigmoid(self.candidate(torch.sigmoid(reset) * both))
        return z[..., 0, :] * left + z[..., 1, :] * right + z[..., 2, :] * i

    def read(self, states: Tensor) -> Tensor:
        """States are read as they are."""
        return states


class TreeLSTM(nn.Module):
    """The binary Tree-LSTM (Tai, Socher and Manning 2015); a state is [h; c], read as h."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.state_size, self.output_size = 2 * size, size
        self.leaf_gates = nn.Linear(size, 3 * size)
        self.gates = nn.Linear(2 * size, 5 * size)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Return the states of terminals: a cell without operands."""
        i, o, u = self.leaf_gates(embeddings).chunk(3, -1)
        c = torch.sigmoid(i) * torch.tanh(u)
        return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], -1)

    def compose(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the states of symbols from those of their operands."""
        size = self.output_size
        gates = self.gates(torch.cat([left[..., :size], right[..., :size]], -1))
        i, f_left, f_right, o, u = gates.chunk(5, -1)
        kept = torch.sigmoid(f_left) * left[..., size:] + torch.sigmoid(f_right) * right[..., size:]
        c = torch.sigmoid(i) * torch.tanh(u) + kept
        return torch.cat([torch.sigmoid(o) * torch.tanh(c), c], -1)

    def read(self, states: Tensor) -> Tensor:
        """Return h."""
        return states[..., : self.output_size]


class GRC(nn.Module):
    """A gated cell with LayerNorm: the default, since every level keeps the scale of the others.

    h = GELU(W1 [l; r] + b1); [f1, f2, i, c] = W2 h + b2; LayerNorm(s(f1) l + s(f2) r + s(i) c).
    Terminals pass the same LayerNorm, and a shared symbol's own vector is added before it.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.state_size = self.output_size = size
        self.hidden = nn.Linear(2 * size, 2 * size)
        self.gates = nn.Linear(2 * size, 4 * size)
        self.norm = nn.LayerNorm(size)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Return the normalised embeddings."""
        return cast(Tensor, self.norm(embeddings))

    def compose(self, left: Tensor, right: Tensor, own: Tensor | None = None) -> Tensor:
        """Return the states of symbols from those of their operands, and what is their own."""
        size = self.state_size
        hidden = F.gelu(self.hidden(torch.cat([left, right], -1)))
        open_, c = self.gates(hidden).split([3 * size, size], -1)
        f_left, f_right, i = torch.sigmoid(open_).chunk(3, -1)
        joined = f_left * left + f_right * right + i * c
        return cast(Tensor, self.norm(joined if own is None else joined + own))

    def read(self, states: Tensor) -> Tensor:
        """States are read as they are."""
        return states


class LinearRecurrence(nn.Module):
    """A character-level layer h[t] = a(x[t]) h[t-1] + b(x[t]), in both directions, run exactly.

    A symbol's state is the map (a, b) that its expansion makes; a rule composes two of them:
    (a_l a_r, a_r b_l + b_r). `scan` then gives the recurrence's value where each symbol of the
    sequence ends (forward half) or begins (backward half): what the uncompressed layer has there.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        if size % 2:
            raise InputError(f"linear_recurrence needs an even size for two directions, not {size}")
        self.state_size, self.output_size = 2 * size, size
        self.maps = nn.Linear(size, 2 * size)
        with torch.no_grad():
            # Features forget at different speeds from the start: half-lives of 1 to 100 letters.
            self.maps.bias[:size] = torch.linspace(0, 5, size // 2).repeat(2)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Return [a, a'; b, b'], forward and backward maps of single letters."""
        decay, value = self.maps(embeddings).chunk(2, -1)
        a = torch.sigmoid(decay)
        return torch.cat([a, (1 - a) * value], -1)

    def compose(self, left: Tensor, right: Tensor) -> Tensor:
        """Return the maps of symbols from those of their operands."""
        a_left, b_left = left.reshape(*left.shape[:-1], 4, -1).chunk(2, -2)
        a_right, b_right = right.reshape(*right.shape[:-1], 4, -1).chunk(2, -2)
        forward = a_right[..., :1, :] * b_left[..., :1, :] + b_right[..., :1, :]
        backward = a_left[..., 1:, :] * b_right[..., 1:, :] + b_left[..., 1:, :]
        return torch.cat([a_left * a_right, forward, backward], -2).flatten(-2)

    def read(self, states: Tensor) -> Tensor:
        """Maps are read as they are; scan makes vectors of them."""
        return states

    def scan(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the recurrence's values along sequences: [B, T, state] to [B, T, output_size]."""
        outside = ~mask.unsqueeze(-1)
        a, b = inputs.chunk(2, -1)
        # Padding maps every value to itself.
        a, b = a.masked_fill(outside, 1), b.masked_fill(outside, 0)
        (a, a_back), (b, b_back) = a.transpose(0, 1).chunk(2, -1), b.transpose(0, 1).chunk(2, -1)
        forward = linear_scan(a, b)
        backward = linear_scan(a_back.flip(0), b_back.flip(0)).flip(0)
        return torch.cat([forward, backward], -1).transpose(0, 1)


COMPOSERS: dict[str, Callable[[int], nn.Module]] = {
    "grc": GRC,
    "dual_gru": DualGRU,
    "mlp": MLP,
    "tree_lstm": TreeLSTM,
    "linear_recurrence": LinearRecurrence,
}


def compose_with_own(composer: Composer) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Return a cell that is also given what is the symbols' own: added, unless it knows better."""
    if isinstance(composer, GRC):
        return composer.compose
    return lambda left, right, own: composer.compose(left, right) + own


def make_composer(name: str, size: int) -> nn.Module:
    """Return a new composer by its name in COMPOSERS; ValueError if there is none."""
    if name not in COMPOSERS:
        raise InputError(f"no composer {name!r}; there are {', '.join(sorted(COMPOSERS))}")
    return COMPOSERS[name](size)
