"""Top words: what speaks most for and against each class, over many documents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from itertools import chain
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from laconic.batching import Bag, collate
from laconic.corpus.documents import DocumentSource
from laconic.errors import InputError
from laconic.grammar import Grammars
from laconic.inference.attribution import check_letters, scores_of_many
from laconic.inference.counted_explanation import CountedTable, counted_values, spread
from laconic.inference.phrase_table import Phrase, PhraseTable, strongest
from laconic.inference.predictor import Predictor
from laconic.inference.words import spans_of
from laconic.ngrams.occurrences import lengths_of

Floats: TypeAlias = npt.NDArray[np.float64]
_STEPS = 4  # of integrated gradients; more change the order of words little
_LETTERS = 1 << 18  # of documents whose letters have scores at the same time
_MOST_WORDS = 1 << 20  # that are counted at a time; the rarest are dropped beyond
_SHARE = 0.5  # of the letters that must be in words, or phrases are listed instead


@dataclass(frozen=True, slots=True)
class Sides:
    """What speaks for something and what against it, the strongest first."""

    speaking_for: list[Phrase]
    against: list[Phrase]


@dataclass(frozen=True, slots=True)
class TopWords:
    """The strongest words of documents, or where these have none, as in DNA, phrases."""

    kind: Literal["word", "phrase"]
    of: dict[Any, Sides]
    """By class or label; of a regression there is one, None: what speaks for a higher value."""
    shares: dict[str, float]
    """How much of what is said of words, for or against, each view says."""
    documents: int

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it; classes are spelled as texts."""
        of = {
            "value" if name is None else str(name): {
                "for": [asdict(each) for each in sides.speaking_for],
                "against": [asdict(each) for each in sides.against],
            }
            for name, sides in self.of.items()
        }
        return {"kind": self.kind, "documents": self.documents, "shares": self.shares, "of": of}


def top_words(
    predictor: Predictor,
    documents: DocumentSource,
    per_class: int = 20,
    min_count: int = 5,
    steps: int | None = _STEPS,
) -> TopWords:
    """Return the words that speak most for and against each class in some documents.

    The score of an occurrence is that of explain: what its letters add, of counting exactly, of
    reading by gradients, integrated in `steps` steps, None for those at the document. A word's is
    the mean over its occurrences, at least `min_count`. The strongest is the one whose mean,
    times the square root of their number, is largest: rare words are not first by chance.
    Documents without words, as DNA, are told by phrases, as top_phrases does. Streams: memory for
    some documents and a million words. `steps` passes back for each class and batch.
    """
    if per_class < 1 or min_count < 1:
        raise InputError(f"{per_class=} and {min_count=} must be at least 1")
    if steps is not None and steps < 1:
        raise InputError(f"steps must be at least 1, not {steps}")
    tables = _Tables(predictor, per_class, min_count, steps)
    for grammars in predictor.grammars(documents):
        for some in _portions(grammars):
            tables.add(some)
    return tables.best()


class _Tables:
    """Words, and phrases in case there are none, of all documents so far."""

    def __init__(
        self, predictor: Predictor, per_class: int, min_count: int, steps: int | None
    ) -> None:
        config = predictor.model.config
        self._predictor, self._most, self._min_count = predictor, per_class, min_count
        self._steps = steps
        self._words = WordTable(config.outputs)
        self._symbols = PhraseTable(config.outputs) if config.reads_sequences else None
        self._counted = CountedTable(predictor) if config.counted is not None else None
        self._said: dict[str, float] = {}
        self._documents = 0

    def add(self, grammars: Grammars) -> None:
        """Count the words of some documents."""
        predictor, outputs = self._predictor, self._predictor.model.config.outputs
        for row, length in enumerate(grammars.expanded_lengths.tolist()):
            check_letters(length, self._documents + row)
        letters = np.zeros((int(grammars.expanded_lengths.sum()), outputs))
        if self._symbols is not None:
            scores, hashes = scores_of_many(predictor, grammars, self._steps)
            self._symbols.add(scores, hashes, grammars, predictor.alphabet)
            lengths = np.concatenate([lengths_of(grammar) for grammar in grammars])
            read = np.repeat(scores / np.maximum(lengths, 1)[:, None], lengths, axis=0)
            self._say("reading", read)
            letters += read
        if self._counted is not None:
            self._counted.add(grammars, self._most, self._min_count)
            counted = self._by_counting(grammars)
            self._say("counting", counted)
            letters += counted
        self._words.add(letters, grammars, predictor)
        self._documents += len(grammars)

    def _by_counting(self, grammars: Grammars) -> Floats:
        predictor, counted = self._predictor, self._predictor.model.config.counted
        assert counted is not None
        batch = collate(grammars, counted=counted).to(predictor.device)
        bag, places = cast(Bag, batch.bag), range(predictor.model.config.outputs)
        values_of = [partial(predictor.task.value, place=place) for place in places]
        return spread(
            counted, grammars, bag, counted_values(predictor, bag, len(grammars), values_of)
        )

    def _say(self, view: str, letters: Floats) -> None:
        self._said[view] = self._said.get(view, 0.0) + float(np.abs(letters).sum())

    def best(self) -> TopWords:
        """Return what was found."""
        are_words = self._words.share >= _SHARE
        if are_words:
            lists = [self._words.best(self._most, self._min_count, sign) for sign in (1, -1)]
        else:
            lists = [self._phrases(sign) for sign in (1, -1)]
        names = self._predictor.task.classes or (None,)
        of = {name: Sides(*both) for name, *both in zip(names, *lists, strict=True)}
        total = sum(self._said.values()) or 1.0
        shares = {view: size / total for view, size in self._said.items() if size}
        return TopWords("word" if are_words else "phrase", of, shares, self._documents)

    def _phrases(self, sign: int) -> list[list[Phrase]]:
        tables = [each for each in (self._symbols, self._counted) if each is not None]
        best = (table.best(self._most, self._min_count, sign) for table in tables)
        return [
            sorted(chain(*lists), key=lambda phrase: -sign * phrase.score)[: self._most]
            for lists in zip(*best, strict=True)
        ]


class WordTable:
    """Sums of scores and counts of words."""

    def __init__(self, outputs: int) -> None:
        self._sums: dict[str, Floats] = {}
        self._counts: dict[str, int] = {}
        self._outputs = outputs
        self._letters = self._in_words = 0

    @property
    def share(self) -> float:
        """Of all letters but white space, those that are in words."""
        return self._in_words / max(1, self._letters)

    def add(self, letters: Floats, grammars: Grammars, predictor: Predictor) -> None:
        """Count the words of documents, of whose letters the scores are given, [n, outputs]."""
        sums = np.concatenate([np.zeros((1, self._outputs)), np.cumsum(letters, axis=0)])
        begin = 0
        for grammar in grammars:
            for span in spans_of(predictor.alphabet, grammar):
                if not span.text.strip():
                    continue
                size = span.end - span.begin
                self._letters += size
                if span.cut:
                    continue
                self._in_words += size
                score = sums[begin + span.end] - sums[begin + span.begin]
                if span.text in self._sums:
                    self._sums[span.text] += score
                    self._counts[span.text] += 1
                else:
                    self._sums[span.text], self._counts[span.text] = score, 1
            begin += grammar.expanded_length
        if len(self._counts) > _MOST_WORDS:
            # Not down to the limit only: that would drop what each new document brings.
            kept = sorted(self._counts, key=lambda word: -self._counts[word])[: _MOST_WORDS // 2]
            self._counts = {word: self._counts[word] for word in kept}
            self._sums = {word: self._sums[word] for word in kept}

    def best(self, most: int, min_count: int, sign: int) -> list[list[Phrase]]:
        """Return for each output the strongest words above 0, or with sign -1 below."""
        words = [word for word, count in self._counts.items() if count >= min_count]
        counts = np.array([self._counts[word] for word in words], np.int64)
        sums = np.array([self._sums[word] for word in words]).reshape(-1, self._outputs)
        means = sums / counts[:, None]
        ranks = means * np.sqrt(counts)[:, None]
        return [
            [
                Phrase(words[k], float(means[k, place]), int(counts[k]), "word")
                for k in strongest(ranks[:, place], most, sign).tolist()
            ]
            for place in range(self._outputs)
        ]


def _portions(grammars: Grammars) -> Iterator[Grammars]:
    """Yield the documents, some at a time, so that scores of their letters take little memory."""
    ends = np.cumsum(grammars.expanded_lengths)
    cuts = np.flatnonzero(np.diff((ends - 1) // _LETTERS)) + 1
    for begin, end in zip([0, *cuts.tolist()], [*cuts.tolist(), len(grammars)], strict=True):
        if begin < end:
            yield grammars[begin:end]
