"""Explanation: which phrases of a document decided, and which speak most for each class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import chain
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.alphabet import Alphabet, Document, speller
from laconic.batching import collate
from laconic.corpus.documents import DocumentSource
from laconic.errors import InputError, visible
from laconic.grammar import Grammar, Grammars
from laconic.inference.attribution import check_letters, scores_of_document, scores_of_many
from laconic.inference.counted_explanation import (
    CountedTable,
    counted_values,
    scored_columns,
    spread,
)
from laconic.inference.phrase_table import Phrase, PhraseTable, symbol_lengths
from laconic.inference.predictor import Predictor
from laconic.inference.words import Word, words_of

Method: TypeAlias = Literal["gradient", "integrated"]
Floats: TypeAlias = npt.NDArray[np.float64]
_SHOWN = 5  # words of an explanation at a prompt
_TELLING = 3  # letters of an n-gram that a reader can make something of


@dataclass(frozen=True, slots=True)
class ScoredSymbol:
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


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """A document in pieces with scores; integrated ones add up to value - base.

    `value` is what the scores explain: of classes, the target's output less the mean of the others;
    of labels, the target's output; of a regression, the number itself. `base` is the same for
    the document with a zero vector for every symbol and without n-grams. Of models that count,
    the scores of n-grams are exact, and are also in those of the pieces: each is spread evenly over
    the terminals of its occurrences.
    """

    pieces: tuple[ScoredSymbol, ...]
    target: Any
    """A class or a label; None for a regression."""
    prediction: Any
    probabilities: dict[Any, float] | None
    value: float
    base: float
    method: Method
    ngrams: tuple[Phrase, ...] = ()
    """What a model that counts has counted, and learned something of; the strongest first."""
    spans: tuple[Word, ...] = ()
    """The document in words and what is between them, each with what its letters add."""
    shares: dict[str, float] = field(default_factory=dict)
    """How much of what is said, for or against, each view says."""

    def __repr__(self) -> str:
        """Return the prediction and the strongest words: all of it would fill many screens."""
        single = not isinstance(self.prediction, list)
        sure = (self.probabilities or {}).get(self.prediction) if single else None
        told = repr(self.prediction) if sure is None else f"{self.prediction!r}, {sure:.1%}"
        words = [f"{word.text:.40} {word.score:+.2f}" for word in self.words()[:_SHOWN]]
        return visible(f"<Explanation of {told}: {', '.join(words)}>")

    @property
    def text(self) -> str:
        """The document."""
        return "".join(piece.text for piece in self.pieces)

    def phrases(self) -> list[Phrase]:
        """Return the different expansions with their total scores, the strongest first."""
        return _totals((piece.text, piece.score) for piece in self.pieces)

    def words(self) -> list[Phrase]:
        """Return the different words with their total scores, the strongest first.

        Where there are no words, as in DNA, they are stretches of ten letters in their places.
        """
        scored = ((word.name, word.score) for word in self.spans if word.text.strip())
        return _totals(scored, "word")

    def longer_ngrams(self) -> tuple[Phrase, ...]:
        """Return the n-grams of at least three letters, or all if there is none.

        Shorter ones are in most words, and say little: what they add is in the words' scores.
        """
        return tuple(e for e in self.ngrams if len(e.text.strip()) >= _TELLING) or self.ngrams

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it; classes are spelled as texts."""
        data = asdict(self)
        if self.probabilities is not None:
            data["probabilities"] = {str(key): p for key, p in self.probabilities.items()}
        return data


def _totals(
    scored: Iterable[tuple[str, float]], kind: Literal["symbol", "word"] = "symbol"
) -> list[Phrase]:
    totals: dict[str, list[float]] = {}
    for text, score in scored:
        totals.setdefault(text, []).append(score)
    found = [Phrase(text, sum(scores), len(scores), kind) for text, scores in totals.items()]
    return sorted(found, key=lambda phrase: -abs(phrase.score))


def explain(
    predictor: Predictor,
    document: Document | Grammar,
    target: Any = None,
    method: Method = "integrated",
    steps: int = 32,
) -> Explanation:
    """Return what each symbol of a document did for a target, by default for the prediction.

    "gradient" multiplies what the sequence model reads of a symbol by the gradient there, and adds
    up: one pass back. "integrated" takes the mean of the gradients at `steps` places on the way
    from zero vectors: `steps` passes, but then the scores add up, to about 1 % with 32. Raises
    ValueError for a target, method or steps that cannot be.

    >>> from laconic import Codec
    >>> from laconic.nn import GrammarModel, ModelConfig
    >>> from laconic.tasks import Classification
    >>> model = GrammarModel(ModelConfig(alphabet_size=256, outputs=2, embedding_size=8, width=8))
    >>> task = Classification(("no", "yes"))
    >>> predictor = Predictor(model, task, Codec(), Alphabet.bytes(), "cpu")
    >>> found = explain(predictor, "so so and so", target="yes")
    >>> [piece.text for piece in found.pieces], found.pieces[0].rule
    (['so ', 'so ', 'a', 'n', 'd', ' ', 'so'], ('so', ' '))
    """
    if method not in get_args(Method):
        raise InputError(f"no method {method!r}; there are {', '.join(get_args(Method))}")
    if steps < 1:
        raise InputError(f"steps must be at least 1, not {steps}")
    grammar = predictor.compress(document)
    check_letters(grammar.expanded_length)
    counted, in_place = predictor.model.config.counted, predictor.model.config.in_place
    alone = Grammars.concatenate([grammar])
    batch = collate(alone, counted=counted, in_place=in_place).to(predictor.device)
    with predictor.forward.evaluating():
        with torch.no_grad():
            outputs = predictor.model(batch)
        place = _place(predictor, target, outputs)
        value_of = partial(predictor.task.value, place=place)
        scores, nothing = np.zeros(len(grammar.sequence)), torch.zeros_like(outputs)
        if predictor.model.config.reads_sequences:
            way = steps if method == "integrated" else None
            scores, nothing = scores_of_document(predictor, batch, value_of, way)
        lengths = symbol_lengths(grammar)[grammar.sequence]
        letters = np.repeat(scores / np.maximum(lengths, 1), lengths)
        shares = {"reading": float(np.abs(letters).sum())}
        columns = []
        if counted is not None and batch.bag is not None and predictor.model.bag is not None:
            values = counted_values(predictor, batch.bag, 1, [value_of])
            columns = scored_columns(predictor, grammar, batch.bag, values)
            by_letter = spread(counted, alone, batch.bag, values)[:, 0]
            letters = letters + by_letter
            ends = np.cumsum(lengths)
            sums = np.r_[0, np.cumsum(by_letter)]
            scores = scores + sums[ends] - sums[ends - lengths]
            nothing = nothing + predictor.model.bag.bias.detach()
            shares["counting"] = float(np.abs(by_letter).sum())
        total = sum(shares.values()) or 1.0
    raw = outputs.float().cpu().numpy()
    task, probabilities = predictor.task, None
    if task.classes:
        numbers = task.probabilities(raw)[0].tolist()
        probabilities = dict(zip(task.classes, numbers, strict=True))
    return Explanation(
        pieces=tuple(_pieces(grammar, predictor.alphabet, scores)),
        spans=tuple(words_of(predictor.alphabet, grammar, letters)),
        shares={name: size / total for name, size in shares.items() if size},
        target=task.classes[place] if task.classes else None,
        prediction=task.predictions(raw)[0],
        probabilities=probabilities,
        value=float(value_of(outputs)[0]) + task.mean,
        base=float(value_of(nothing)[0]) + task.mean,
        method=method,
        ngrams=tuple(column.phrase(predictor.alphabet) for column in columns),
    )


def top_phrases(
    predictor: Predictor, documents: DocumentSource, per_class: int = 20, min_count: int = 5
) -> dict[Any, list[Phrase]]:
    """Return the phrases that speak most for each class, by their mean score, best first.

    A phrase is what a symbol of a sequence stands for, and its scores are gradients times inputs;
    of models that count it is also an n-gram or a phrase that is counted, and its scores are exact.
    The mean is over all its occurrences, at least `min_count`. For a regression there are two
    lists, "higher" and "lower". Streams: memory for a chunk of documents and a million phrases, the
    rarest of which go when there are more. One pass back for each class and batch.
    """
    if per_class < 1 or min_count < 1:
        raise InputError(f"{per_class=} and {min_count=} must be at least 1")
    config = predictor.model.config
    read = PhraseTable(config.outputs) if config.reads_sequences else None
    counted = CountedTable(predictor) if config.counted is not None else None
    tables = [each for each in (read, counted) if each is not None]
    for grammars in predictor.grammars(documents):
        if read is not None:
            read.add(*scores_of_many(predictor, grammars), grammars, predictor.alphabet)
        if counted is not None:
            counted.add(grammars, per_class, min_count)

    def best(sign: int) -> list[list[Phrase]]:
        found = zip(*(table.best(per_class, min_count, sign) for table in tables), strict=True)
        return [
            sorted(chain(*lists), key=lambda phrase: -sign * phrase.score)[:per_class]
            for lists in found
        ]

    sides = predictor.task.sides()
    lists = {sign: best(sign) for _, sign in sides.values()}
    return {name: lists[sign][place] for name, (place, sign) in sides.items()}


def _place(predictor: Predictor, target: Any, outputs: Tensor) -> int:
    if target is None:
        return int(outputs[0].argmax())
    task, classes = predictor.task, predictor.task.classes
    if not classes:
        raise InputError(f"a {task.name} has no classes to explain; leave the target out")
    if target not in classes:
        known = ", ".join(map(repr, classes[:20])) + (", …" if len(classes) > 20 else "")
        raise InputError(f"no class {target!r}; there are {known}")
    return classes.index(target)


def _pieces(grammar: Grammar, alphabet: Alphabet, scores: Floats) -> Iterator[ScoredSymbol]:
    size, sequence = grammar.alphabet_size, grammar.sequence.tolist()
    lengths = symbol_lengths(grammar)
    spell = speller(alphabet, grammar.expand())
    offset = 0
    for symbol, score in zip(sequence, scores.tolist(), strict=True):
        end = offset + int(lengths[symbol])
        rule = None
        if symbol >= size:
            middle = offset + int(lengths[grammar.all_rules[symbol - size, 0]])
            rule = spell(offset, middle), spell(middle, end)
        yield ScoredSymbol(spell(offset, end), offset, end - offset, score, symbol, rule)
        offset = end
