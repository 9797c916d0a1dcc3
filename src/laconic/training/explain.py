"""Explanation: which phrases of a document decided, and which speak most for each class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.alphabet import Alphabet, Document
from laconic.arrays import Int64s
from laconic.batching import Batch, GrammarDataset, LengthSampler, collate
from laconic.grammar import Grammar, Grammars
from laconic.training.predict import Documents, Predictor

__all__ = ["Explanation", "Method", "Phrase", "Piece", "explain", "top_phrases"]

Method: TypeAlias = Literal["gradient", "integrated"]
Floats: TypeAlias = npt.NDArray[np.float64]
_MOST_PHRASES = 1 << 20  # that are counted at a time; the rarest are dropped beyond
_LONGEST = 200  # letters of a phrase in lists


@dataclass(frozen=True, slots=True)
class Piece:
    """One symbol of a document's sequence: what it stands for, where, and how much it did."""

    text: str
    """Its expansion; a character that symbols share belongs to the first of them."""
    offset: int
    """Where it begins, in terminals."""
    length: int
    """The terminals it stands for."""
    score: float
    """What it adds to the value; below 0 it speaks against the target."""
    symbol: int
    rule: tuple[str, str] | None
    """What the two operands of its rule stand for; None for a terminal."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """An expansion, its mean or total score, and how often it occurred."""

    text: str
    score: float
    count: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """A document in pieces with scores; integrated ones add up to value - base.

    `value` is what the scores explain: of classes, the target's output less the mean of the others;
    of labels, the target's output; of a regression, the number itself. `base` is the same for
    the document with a zero vector for every symbol.
    """

    pieces: tuple[Piece, ...]
    target: Any
    """A class or a label; None for a regression."""
    prediction: Any
    probabilities: dict[Any, float] | None
    value: float
    base: float
    method: Method

    @property
    def text(self) -> str:
        """The document."""
        return "".join(piece.text for piece in self.pieces)

    def phrases(self) -> list[Phrase]:
        """Return the different expansions with their total scores, the strongest first."""
        totals: dict[str, list[float]] = {}
        for piece in self.pieces:
            totals.setdefault(piece.text, []).append(piece.score)
        found = [Phrase(text, sum(scores), len(scores)) for text, scores in totals.items()]
        return sorted(found, key=lambda phrase: -abs(phrase.score))

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it; classes are spelled as texts."""
        data = asdict(self)
        if self.probabilities is not None:
            data["probabilities"] = {str(key): p for key, p in self.probabilities.items()}
        return data


def explain(
    predictor: Predictor,
    document: Document | Grammar,
    target: Any = None,
    method: Method = "gradient",
    steps: int = 32,
) -> Explanation:
    """Return what each symbol of a document did for a target, by default for the prediction.

    "gradient" multiplies what the sequence model reads of a symbol by the gradient there, and adds
    up: one pass back. "integrated" takes the mean of the gradients at `steps` places on the way
    from zero vectors: `steps` passes, but then the scores add up, to about 1 % with 32. Raises
    ValueError for a target, method or steps that cannot be.

    >>> from laconic import Codec
    >>> from laconic.nn import GrammarModel, ModelConfig
    >>> from laconic.training.data import Labels
    >>> model = GrammarModel(ModelConfig(alphabet_size=256, outputs=2, embedding_size=8, width=8))
    >>> predictor = Predictor(model, Labels.of(["no", "yes"]), Codec(), Alphabet.bytes(), "cpu")
    >>> found = explain(predictor, "so so and so", target="yes")
    >>> [piece.text for piece in found.pieces], found.pieces[0].rule
    (['so ', 'so ', 'a', 'n', 'd', ' ', 'so'], ('so', ' '))
    """
    if method not in get_args(Method):
        raise ValueError(f"no method {method!r}; there are {', '.join(get_args(Method))}")
    if steps < 1:
        raise ValueError(f"steps must be at least 1, not {steps}")
    grammar = predictor.compress(document)
    batch = collate(Grammars.concatenate([grammar]), counted=predictor.model.config.counted).to(
        predictor.device
    )
    with predictor.evaluating():
        with torch.no_grad():
            inputs = predictor.model.inputs(batch).detach()
            outputs = predictor.model.predict_from(inputs, batch)
            nothing = predictor.model.predict_from(torch.zeros_like(inputs), batch)
        place = _place(predictor, target, outputs)
        value_of = _values(predictor, place)
        if method == "gradient":
            slopes = _slopes(predictor, batch, inputs, value_of)
        else:
            slopes = _mean_slopes(predictor, batch, inputs, value_of, steps)
    scores = (slopes * inputs).sum(-1)[0].double().cpu().numpy()[: len(grammar.sequence)]
    raw = outputs.float().cpu().numpy()
    probabilities = None
    if predictor.task != "regression":
        numbers = predictor.probabilities_of(raw)[0].tolist()
        probabilities = dict(zip(predictor.labels.classes, numbers, strict=True))
    shift = predictor.labels.mean if predictor.task == "regression" else 0.0
    return Explanation(
        pieces=tuple(_pieces(grammar, predictor.alphabet, scores)),
        target=None if predictor.task == "regression" else predictor.labels.classes[place],
        prediction=predictor.predictions_of(raw)[0],
        probabilities=probabilities,
        value=float(value_of(outputs)[0]) + shift,
        base=float(value_of(nothing)[0]) + shift,
        method=method,
    )


def top_phrases(
    predictor: Predictor, documents: Documents, per_class: int = 20, min_count: int = 5
) -> dict[Any, list[Phrase]]:
    """Return the phrases that speak most for each class, by their mean score, best first.

    A phrase is what a symbol of a sequence stands for; scores are gradients times inputs, as of
    explain, over all its occurrences, at least `min_count`. For a regression there are two lists,
    "higher" and "lower". Streams: memory for a chunk of documents and a million phrases, the
    rarest of which go when there are more. One pass back for each class and batch.
    """
    if per_class < 1 or min_count < 1:
        raise ValueError(f"{per_class=} and {min_count=} must be at least 1")
    table = _Table(max(1, predictor.model.config.outputs))
    for grammars in predictor.grammars(documents):
        table.add(*_scored(predictor, grammars), grammars, predictor.alphabet)
    lists = table.best(per_class, min_count)
    if predictor.task == "regression":
        worst = table.best(per_class, min_count, sign=-1)
        return {"higher": lists[0], "lower": worst[0]}
    return dict(zip(predictor.labels.classes, lists, strict=True))


def _place(predictor: Predictor, target: Any, outputs: Tensor) -> int:
    if predictor.task == "regression":
        if target is not None:
            raise ValueError("a regression has no classes to explain; leave the target out")
        return 0
    if target is None:
        return int(outputs[0].argmax())
    classes = predictor.labels.classes
    if target not in classes:
        known = ", ".join(map(repr, classes[:20])) + (", …" if len(classes) > 20 else "")
        raise ValueError(f"no class {target!r}; there are {known}")
    return classes.index(target)


def _values(predictor: Predictor, place: int) -> Callable[[Tensor], Tensor]:
    """Return the function of outputs [B, outputs] that is explained, [B]."""
    count = predictor.model.config.outputs
    if predictor.task == "regression":
        return lambda outputs: outputs[:, place] * predictor.labels.std
    if predictor.task == "multilabel" or count == 1:
        return lambda outputs: outputs[:, place]
    # What speaks for every class alike changes no probability.
    return lambda outputs: (count * outputs[:, place] - outputs.sum(1)) / (count - 1)


def _backward(predictor: Predictor) -> AbstractContextManager[Any]:
    # cuDNN keeps nothing for a way back when it is not training.
    if predictor.device.type != "cuda":
        return nullcontext()
    return cast(AbstractContextManager[Any], torch.backends.cudnn.flags(enabled=False))


def _slopes(
    predictor: Predictor, batch: Batch, inputs: Tensor, value_of: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return the gradients of each document's value, float [B, T, size]."""
    inputs = inputs.detach().requires_grad_()
    with torch.enable_grad(), _backward(predictor):
        values = value_of(predictor.model.predict_from(inputs, batch))
        (slopes,) = torch.autograd.grad(values.sum(), inputs)
    return slopes


def _mean_slopes(
    predictor: Predictor,
    batch: Batch,
    inputs: Tensor,
    value_of: Callable[[Tensor], Tensor],
    steps: int,
) -> Tensor:
    """Return the mean gradient on the straight way from zero to `inputs` of one document.

    At the middles of equal steps: with pooling by maximum the gradient jumps, and finer rules gain
    nothing.
    """
    places = (np.arange(steps) + 0.5) / steps
    together = max(1, predictor.budget // inputs.shape[1])
    total = torch.zeros_like(inputs)
    for begin in range(0, steps, together):
        scale = inputs.new_tensor(places[begin : begin + together]).view(-1, 1, 1)
        copies = replace(
            batch,
            symbols=batch.symbols.repeat(len(scale), 1),
            counts=batch.counts.repeat(len(scale)),
        )
        total += _slopes(predictor, copies, scale * inputs, value_of).sum(0)
    return total / steps


def _pieces(grammar: Grammar, alphabet: Alphabet, scores: Floats) -> Iterator[Piece]:
    size, sequence = grammar.alphabet_size, grammar.sequence.tolist()
    lengths = _lengths(grammar)
    spell = _speller(grammar, alphabet)
    offset = 0
    for symbol, score in zip(sequence, scores.tolist(), strict=True):
        end = offset + int(lengths[symbol])
        rule = None
        if symbol >= size:
            middle = offset + int(lengths[grammar.rules[symbol - size, 0]])
            rule = spell(offset, middle), spell(middle, end)
        yield Piece(spell(offset, end), offset, end - offset, score, symbol, rule)
        offset = end


def _lengths(grammar: Grammar) -> Int64s:
    return np.concatenate([np.ones(grammar.alphabet_size, np.int64), grammar.expanded_lengths])


def _speller(grammar: Grammar, alphabet: Alphabet) -> Callable[[int, int], str]:
    """Return a function of i and j: the text of terminals i..j-1 of a document.

    Where terminals are bytes, a character belongs to the part with its first byte: parts side by
    side are then the document, whatever its symbols do to the bytes of a character.
    """
    terminals = grammar.expand()
    if alphabet.characters is not None:
        text = alphabet.decode(terminals)
        return lambda i, j: text[i:j]
    data = alphabet.decode_bytes(terminals)

    def forward(place: int) -> int:
        end = min(place + 3, len(data))
        moved = place
        while moved < end and data[moved] & 0xC0 == 0x80:
            moved += 1
        return moved

    return lambda i, j: data[forward(i) if i else 0 : forward(j)].decode(errors="replace")


def _scored(predictor: Predictor, grammars: Grammars) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Return scores of all symbols of all sequences for each output, [Σn', K], and their hashes."""
    dataset = GrammarDataset(grammars)
    dataset.counted = predictor.model.config.counted
    outputs = predictor.model.config.outputs
    scores = np.empty((len(grammars.sequence), outputs))
    hashes = np.empty(len(grammars.sequence), np.int64)
    sampler = LengthSampler(
        dataset.counts, predictor.batch_size, budget=predictor.budget, shuffle=False
    )
    for rows in sampler:
        batch = dataset.__getitems__(rows)
        begins = grammars.sequence_offsets[rows]
        mask = batch.mask.numpy()
        places = (begins[:, None] + np.arange(mask.shape[1]))[mask]
        hashes[places] = batch.node_hashes.numpy()[batch.symbols.numpy()[mask]]
        batch = batch.to(predictor.device)
        with predictor.evaluating(), torch.no_grad():
            inputs = predictor.model.inputs(batch).detach()
            for place in range(outputs):
                slopes = _slopes(predictor, batch, inputs, _values(predictor, place))
                scores[places, place] = (slopes * inputs).sum(-1).double().cpu().numpy()[mask]
    return scores, hashes


class _Table:
    """Sums of scores and counts of phrases, by the 64-bit hashes of what they stand for."""

    def __init__(self, outputs: int) -> None:
        self._hashes = np.zeros(0, np.int64)
        self._counts = np.zeros(0, np.int64)
        self._sums: Floats = np.zeros((0, outputs))
        self._texts: dict[int, str] = {}

    def add(
        self,
        scores: Floats,
        hashes: npt.NDArray[np.int64],
        grammars: Grammars,
        alphabet: Alphabet,
    ) -> None:
        """Count the symbols of a chunk of documents."""
        found, first, of = np.unique(hashes, return_index=True, return_inverse=True)
        sums = np.zeros((len(found), scores.shape[1]))
        np.add.at(sums, of, scores)
        counts = np.bincount(of, minlength=len(found))
        fresh = ~np.isin(found, self._hashes, assume_unique=True)
        spelled = _spelled(first[fresh], grammars, alphabet)
        self._texts.update(zip(found[fresh].tolist(), spelled, strict=True))
        self._hashes, of = np.unique(np.concatenate([self._hashes, found]), return_inverse=True)
        before = self._sums, self._counts
        self._sums = np.zeros((len(self._hashes), scores.shape[1]))
        self._counts = np.zeros(len(self._hashes), np.int64)
        np.add.at(self._sums, of, np.concatenate([before[0], sums]))
        np.add.at(self._counts, of, np.concatenate([before[1], counts]))
        if len(self._hashes) > _MOST_PHRASES:
            # Not down to the limit only: that would drop what each new chunk brings.
            kept = np.sort(np.argsort(-self._counts, kind="stable")[: _MOST_PHRASES // 2])
            self._hashes, self._sums = self._hashes[kept], self._sums[kept]
            self._counts = self._counts[kept]
            self._texts = {each: self._texts[each] for each in self._hashes.tolist()}

    def best(self, most: int, min_count: int, sign: int = 1) -> list[list[Phrase]]:
        """Return for each output the phrases of the highest mean score, or of the lowest."""
        often = np.flatnonzero(self._counts >= min_count)
        means = self._sums[often] / self._counts[often, None]
        lists = []
        for column in means.T:
            order = np.argsort(-sign * column, kind="stable")[:most]
            chosen = [(often[place], column[place]) for place in order if sign * column[place] > 0]
            lists.append(
                [
                    Phrase(self._texts[int(self._hashes[i])], float(mean), int(self._counts[i]))
                    for i, mean in chosen
                ]
            )
        return lists


def _spelled(places: Sequence[int] | Int64s, grammars: Grammars, alphabet: Alphabet) -> list[str]:
    """Return what some symbols of the sequences, by their places, stand for; long ones cut."""
    order = np.argsort(places, kind="stable")
    wanted = np.asarray(places)[order]
    bounds = np.searchsorted(wanted, grammars.sequence_offsets)
    texts = [""] * len(wanted)
    for document, (begin, end) in enumerate(pairwise(bounds.tolist())):
        if begin == end:
            continue
        grammar = grammars[document]
        lengths = _lengths(grammar)
        ends = np.cumsum(lengths[grammar.sequence])
        for at in range(begin, end):
            place = int(wanted[at] - grammars.sequence_offsets[document])
            stop = int(ends[place])
            start = stop - int(lengths[grammar.sequence[place]])
            shown = alphabet.decode_bytes(grammar.substring(start, min(stop, start + _LONGEST)))
            more = "…" if stop - start > _LONGEST else ""
            texts[int(order[at])] = shown.decode(errors="replace") + more
    return texts
