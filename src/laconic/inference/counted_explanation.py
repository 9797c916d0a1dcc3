"""Explanation of models that count: what each n-gram and phrase adds, which is exact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch

from laconic.alphabet import Alphabet
from laconic.arrays import Int64s
from laconic.batching import Bag, collate
from laconic.grammar import Grammar, Grammars
from laconic.inference.attribution import ValueOf
from laconic.inference.phrase_table import Phrase, strongest
from laconic.inference.predictor import Predictor
from laconic.ngrams.hashed import CountedText, HashedCounter, portions
from laconic.ngrams.occurrences import occurrences
from laconic.nn.bag import NgramBag

Floats: TypeAlias = npt.NDArray[np.float64]
_CANDIDATES = 1000  # of each class that are named, of the documents at hand


@dataclass(frozen=True, slots=True)
class Column:
    """A column that a document counts: what is in it, and what it adds to the value."""

    names: list[CountedText]
    score: float
    kind: Literal["ngram", "phrase"]

    def phrase(self, alphabet: Alphabet) -> Phrase:
        """Return it as a phrase, of its most frequent text."""
        text, *others = (spelled(name, alphabet) for name in self.names)
        count = sum(name.count for name in self.names)
        return Phrase(text, self.score, count, self.kind, tuple(others))


def spelled(name: CountedText, alphabet: Alphabet) -> str:
    """Return the text of an n-gram or phrase; bytes that are no character are shown as �."""
    return alphabet.decode_bytes(np.array(name.terminals, np.int64)).decode(errors="replace")


def counted_values(
    predictor: Predictor, bag: Bag, documents: int, values_of: Sequence[ValueOf]
) -> Floats:
    """Return what every entry of a bag adds to some values, float64 [entries, values]."""
    with torch.no_grad():
        adds, _ = cast(NgramBag, predictor.model.bag).added(bag, documents)
        values = torch.stack([value_of(adds) for value_of in values_of], 1)
    found: Floats = values.double().cpu().numpy()
    return found


def scored_columns(
    predictor: Predictor, grammar: Grammar, bag: Bag, values: Floats
) -> list[Column]:
    """Return the columns of one document that the model knows, the strongest first.

    `values`, float64 [entries, 1], are counted_values'. They and those of the bias add up to what
    the model's n-grams say. Takes a few times as long as counting.
    """
    counted = cast(HashedCounter, predictor.model.config.counted)
    known = cast(NgramBag, predictor.model.bag).rows(bag) > 0
    columns = bag.buckets.cpu().numpy()
    kept = np.flatnonzero(known.cpu().numpy())
    names = counted.named(Grammars.concatenate([grammar]), columns[kept])
    found = [
        Column(names[column], score, kind_of(column, counted))
        for column, score in zip(columns[kept].tolist(), values[kept, 0].tolist(), strict=True)
    ]
    return sorted(found, key=lambda column: -abs(column.score))


def kind_of(column: int, counted: HashedCounter) -> Literal["ngram", "phrase"]:
    """Return what is counted in a column."""
    return "ngram" if column < counted.buckets else "phrase"


def spread(counted: HashedCounter, grammars: Grammars, bag: Bag, values: Floats) -> Floats:
    """Return values of the entries of a bag, float64 [entries, K], as those of letters, [n, K].

    The letters are those of all documents, end to end. Each occurrence of what is counted has the
    same share of its entry's values, and so has each of its letters. O(letters * ngrams).
    """
    documents, buckets = bag.documents.cpu().numpy(), bag.buckets.cpu().numpy()
    keys = documents * counted.columns + buckets
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    shares = (values / np.maximum(bag.counts.cpu().numpy(), 1)[:, None])[order]
    changes = np.zeros((int(grammars.expanded_lengths.sum()) + 1, values.shape[1]))
    for each in occurrences(counted, grammars) if len(keys) else ():
        entries = np.searchsorted(keys, each.documents * counted.columns + each.columns)
        by_letter = shares[entries] / (each.ends - each.begins)[:, None]
        changes[each.begins] += by_letter
        changes[each.ends] -= by_letter
    found: Floats = np.cumsum(changes, axis=0)[:-1]
    return found


class CountedTable:
    """N-grams and phrases of many documents, and their mean scores for each class.

    Memory for a few numbers for each row that the model has, and for the texts of those rows that
    were among the best of some documents.
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor
        self._bag = cast(NgramBag, predictor.model.bag)
        self._counted = cast(HashedCounter, predictor.model.config.counted)
        rows = len(self._bag.idf)
        self._weights: Floats = np.zeros(rows)
        self._counts: Int64s = np.zeros(rows, np.int64)
        self._columns: Int64s = np.zeros(rows, np.int64)
        places = self._bag.places.cpu().numpy()
        self._columns[places] = np.arange(len(places))
        self._named: dict[int, Phrase] = {}

    def add(self, grammars: Grammars, most: int, min_count: int) -> None:
        """Count the n-grams of a chunk of documents, of which the `most` best will be wanted."""
        for rows in portions(grammars, np.arange(len(grammars))):
            self._add(grammars.take(rows), most, min_count)

    def _add(self, grammars: Grammars, most: int, min_count: int) -> None:
        batch = collate(grammars, counted=self._counted).to(self._predictor.device)
        bag = cast(Bag, batch.bag)
        with torch.no_grad():
            rows = self._bag.rows(bag)
            weights = self._bag.weights(bag, rows, len(batch)).double().cpu().numpy()
        numbers, counts = rows.cpu().numpy(), bag.counts.cpu().numpy()
        self._weights += np.bincount(numbers, weights, minlength=len(self._weights))
        times = np.bincount(numbers, counts, minlength=len(self._counts))
        self._counts += np.rint(times).astype(np.int64)
        here = np.unique(numbers[weights != 0])
        here = here[self._counts[here] >= min_count]
        self._name(grammars, here, max(_CANDIDATES, 4 * most))

    def best(self, most: int, min_count: int, sign: int = 1) -> list[list[Phrase]]:
        """Return for each output the phrases of the highest mean score, or of the lowest."""
        rows = np.array(sorted(self._named), np.int64)
        rows = rows[self._counts[rows] >= min_count]
        of_outputs = (self._means(rows, k) for k in range(self._predictor.model.config.outputs))
        return [
            [self._phrase(int(rows[k]), float(means[k])) for k in strongest(means, most, sign)]
            for means in of_outputs
        ]

    def _phrase(self, row: int, score: float) -> Phrase:
        return replace(self._named[row], score=score, count=int(self._counts[row]))

    def _means(self, rows: Int64s, place: int) -> Floats:
        """Return the mean score of an occurrence of each row, float64 [R]."""
        with torch.no_grad():
            table = self._bag.table[torch.from_numpy(rows).to(self._bag.table.device)]
            values = self._predictor.task.value(self._bag.scale * table, place)
        means: Any = values.double().cpu().numpy() * self._weights[rows] / self._counts[rows]
        return cast(Floats, means)

    def _name(self, grammars: Grammars, rows: Int64s, most: int) -> None:
        """Find the texts of those rows that may be among the best in the end.

        A row's mean is what it will be after the last documents that have it, so it is enough to
        name the best at every time, and some more, for others whose mean falls later.
        """
        wanted: set[int] = set()
        for place in range(self._predictor.model.config.outputs):
            order = np.argsort(self._means(rows, place), kind="stable")
            wanted.update(rows[order[:most]].tolist(), rows[order[-most:]].tolist())
        missing = sorted(wanted - self._named.keys())
        if not missing:
            return
        columns = self._columns[missing].tolist()
        names = self._counted.named(grammars, columns)
        for row, column in zip(missing, columns, strict=True):
            found = Column(names[column], 0.0, kind_of(column, self._counted))
            self._named[row] = found.phrase(self._predictor.alphabet)
