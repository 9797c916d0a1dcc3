"""The method as the paper describes it, in plain PyTorch, to measure Laconic's models beside.

The rules of a batch stay apart, document by document; levels are those of Algorithm 1; autograd
does the way back; an LSTM reads packed sequences in batches of random documents. Everything that
can be prepared is prepared before the step, and nothing in the step loops over documents.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from laconic import Grammars

__all__ = ["PeerBatch", "PeerModel", "peer_batch"]

LONGEST = 23  # lengths of expansions from here on share one embedding


@dataclass(frozen=True, eq=False)
class PeerBatch:
    """A batch of documents as tensors; its nodes are the terminals and then all rules, by level.

    - children: int64 [R, 2], the operands of node alphabet_size + i
    - level_ends: level k is children[level_ends[k]:level_ends[k + 1]]
    - symbols: int64 [B, T], the documents' sequences in nodes, padded with 0
    - sequence_lengths: int64 [B], on the CPU, where PyTorch wants those of packed sequences;
      an empty document has 1, as packed sequences cannot be empty
    - node_lengths: int64 [alphabet_size + R], terminals that nodes stand for, at most LONGEST
    """

    children: Tensor
    level_ends: tuple[int, ...]
    symbols: Tensor
    sequence_lengths: Tensor
    node_lengths: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.sequence_lengths)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> PeerBatch:
        """Return the batch on a device; lengths stay where they are."""
        return replace(
            self,
            children=self.children.to(device, non_blocking=non_blocking),
            symbols=self.symbols.to(device, non_blocking=non_blocking),
            node_lengths=self.node_lengths.to(device, non_blocking=non_blocking),
            labels=self.labels.to(device, non_blocking=non_blocking),
        )

    def pin_memory(self) -> PeerBatch:
        """Return the batch in memory from which devices copy without waiting."""
        return replace(
            self,
            children=self.children.pin_memory(),
            symbols=self.symbols.pin_memory(),
            node_lengths=self.node_lengths.pin_memory(),
            labels=self.labels.pin_memory(),
        )


def peer_batch(grammars: Grammars, labels: ArrayLike) -> PeerBatch:
    """Return the batch of these documents, labels int [B]. O(B T + R log R).

    Raises ValueError if there are no documents, or not one label each.
    """
    size, documents = grammars.alphabet_size, list(grammars)
    targets = np.asarray(labels, np.int64)
    if not documents or targets.shape != (len(documents),):
        raise ValueError(
            f"{len(documents)} documents and labels {list(targets.shape)}; "
            "pass at least one document and a label for each"
        )
    depths = np.concatenate([document.depths for document in documents])
    order = np.argsort(depths, kind="stable")
    node = np.empty(len(order), np.int64)
    node[order] = size + np.arange(len(order))

    def renamed(symbols: NDArray[np.int32], first: int) -> NDArray[np.int64]:
        wide = symbols.astype(np.int64)
        rules = wide >= size
        wide[rules] = node[first + wide[rules] - size]
        return wide

    firsts = grammars.rule_offsets[:-1].tolist()
    children = np.concatenate(
        [renamed(d.rules, first) for d, first in zip(documents, firsts, strict=True)]
    )
    sequence_lengths = np.diff(grammars.sequence_offsets)
    symbols = np.zeros((len(documents), max(1, int(sequence_lengths.max()))), np.int64)
    for row, document, first in zip(symbols, documents, firsts, strict=True):
        row[: len(document.sequence)] = renamed(document.sequence, first)
    lengths = np.concatenate([document.expanded_lengths for document in documents])
    return PeerBatch(
        children=torch.from_numpy(children[order]),
        level_ends=tuple(np.cumsum(np.bincount(depths, minlength=1)).tolist()),
        symbols=torch.from_numpy(symbols),
        sequence_lengths=torch.from_numpy(np.maximum(1, sequence_lengths)),
        node_lengths=torch.from_numpy(
            np.minimum(LONGEST, np.concatenate([np.ones(size, np.int64), lengths[order]]))
        ),
        labels=torch.from_numpy(targets),
    )


class DualGRU(nn.Module):
    """The paper's composer, one matrix per equation; the softmax is over the three gates."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.update = nn.Linear(2 * size, 3 * size)
        self.reset = nn.Linear(2 * size, 2 * size)
        self.candidate = nn.Linear(2 * size, size)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Terminals are their embeddings."""
        return embeddings

    def forward(self, operands: Tensor) -> Tensor:
        """Return the vectors of n symbols, float [n, d], from both operands', float [n, 2, d]."""
        left, right = operands.unbind(1)
        both = operands.flatten(1)
        z1, z2, zi = self.update(both).view(len(both), 3, -1).softmax(1).unbind(1)
        r = torch.sigmoid(self.reset(both))
        i = torch.sigmoid(self.candidate(r * both))
        mixed: Tensor = z1 * left + z2 * right + zi * i
        return mixed


class GRC(nn.Module):
    """A gated recursive cell with LayerNorm, so that both composers can be compared."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(2 * size, 2 * size)
        self.gates = nn.Linear(2 * size, 4 * size)
        self.norm = nn.LayerNorm(size)

    def leaf(self, embeddings: Tensor) -> Tensor:
        """Terminals pass the same LayerNorm."""
        normed: Tensor = self.norm(embeddings)
        return normed

    def forward(self, operands: Tensor) -> Tensor:
        """Return the vectors of n symbols, float [n, d], from both operands', float [n, 2, d]."""
        left, right = operands.unbind(1)
        f1, f2, i, c = self.gates(F.gelu(self.hidden(operands.flatten(1)))).chunk(4, 1)
        mixed = torch.sigmoid(f1) * left + torch.sigmoid(f2) * right + torch.sigmoid(i) * c
        normed: Tensor = self.norm(mixed)
        return normed


class PeerModel(nn.Module):
    """Embedding, composer ("dual_gru" or "grc"), one Bi-LSTM, max-pooling, linear layer.

    With "grc" an embedding of each symbol's length is added to what the LSTM reads. Without
    `packed` two LSTMs read padded sequences and padded reversed ones, which comes to the same: on
    CPUs PyTorch's way back through packed sequences of different lengths is quadratic in their
    length (30 s instead of 1 s for 16 documents of up to 800 letters). That is for CPUs only.
    """

    def __init__(
        self, alphabet_size: int, outputs: int, composer: str, size: int = 200, packed: bool = True
    ) -> None:
        super().__init__()
        composers: dict[str, type[DualGRU | GRC]] = {"dual_gru": DualGRU, "grc": GRC}
        if composer not in composers:
            raise ValueError(f"no composer {composer!r}; there are {', '.join(composers)}")
        self.embedding = nn.Parameter(torch.randn(alphabet_size, size) / size**0.5)
        self.composer: DualGRU | GRC = composers[composer](size)
        self.lengths = nn.Embedding(LONGEST + 1, size) if composer == "grc" else None
        self.lstm = nn.LSTM(size, size, batch_first=True, bidirectional=packed)
        self.reverse_lstm = None if packed else nn.LSTM(size, size, batch_first=True)
        self.head = nn.Linear(2 * size, outputs)

    def encode(self, batch: PeerBatch) -> Tensor:
        """Return the vectors of all nodes, float [alphabet_size + R, d], level by level."""
        nodes = self.composer.leaf(self.embedding)
        for begin, end in pairwise(batch.level_ends):
            # index_select goes back by adding, which is faster than what nodes[...] does.
            operands = nodes.index_select(0, batch.children[begin:end].flatten())
            level = self.composer(operands.view(end - begin, 2, -1))
            nodes = torch.cat([nodes, level])
        return nodes

    def forward(self, batch: PeerBatch) -> Tensor:
        """Return the scores of the classes, float [B, outputs]."""
        nodes = self.encode(batch)
        if self.lengths is not None:
            nodes = nodes + self.lengths(batch.node_lengths)
        pooled = (
            self._packed(nodes, batch) if self.reverse_lstm is None else self._padded(nodes, batch)
        )
        scores: Tensor = self.head(pooled)
        return scores

    def _packed(self, nodes: Tensor, batch: PeerBatch) -> Tensor:
        packed = pack_padded_sequence(
            _look_up(nodes, batch.symbols),
            batch.sequence_lengths,
            batch_first=True,
            enforce_sorted=False,
        )
        states, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, padding_value=float("-inf")
        )
        return states.max(1).values

    def _padded(self, nodes: Tensor, batch: PeerBatch) -> Tensor:
        assert self.reverse_lstm is not None
        places, ends = torch.arange(batch.symbols.shape[1]), batch.sequence_lengths.unsqueeze(1)
        outside = (places >= ends).unsqueeze(2)
        backwards = batch.symbols.gather(1, (ends - 1 - places).clamp(min=0))
        # Pooling forgets the order, so the reversed states need not be turned round again.
        ways = (self.lstm, batch.symbols), (self.reverse_lstm, backwards)
        states = [lstm(_look_up(nodes, symbols))[0] for lstm, symbols in ways]
        return torch.cat([s.masked_fill(outside, float("-inf")).max(1).values for s in states], 1)

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean cross-entropy."""
        return F.cross_entropy(outputs, labels)


def _look_up(nodes: Tensor, symbols: Tensor) -> Tensor:
    """Return the vectors of symbols, float [B, T, d]."""
    return nodes.index_select(0, symbols.flatten()).view(*symbols.shape, -1)
