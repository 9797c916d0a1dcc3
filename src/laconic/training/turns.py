"""Documents that train and documents that validate, and the turns that parts of them take."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset
from laconic.grammar import Grammars
from laconic.ngrams.hashed import portions

Split: TypeAlias = tuple[Int64s, Int64s]  # rows that train, and rows that are left out
_FOLDS, _FEWEST = 5, 10
_TURNS = 3  # in which documents that validate are left out of the last fit
_ENOUGH = 600  # held-out documents that tell strengths and features apart


@dataclass(frozen=True)
class Documents:
    """Documents that train, and those that validate, perhaps none."""

    training: GrammarDataset
    validation: GrammarDataset
    weights: npt.NDArray[np.float32]
    """Of those that train, then of those that validate; groups likewise."""
    groups: Int64s
    valid_rows: Int64s
    refit: bool

    def __len__(self) -> int:
        return len(self.training) + len(self.validation)

    @property
    def symbols(self) -> int:
        """Rules and symbols of all."""
        total = 0
        for part in (self.training, self.validation):
            grammars = part.grammars
            sizes = np.diff(grammars.rule_offsets) + np.diff(grammars.sequence_offsets)
            total += int(sizes[part.rows].sum())
        return total

    @property
    def letters(self) -> int:
        """How many different ones occur, or might by the rules that are shared."""
        found: set[int] = set()
        for part in (self.training, self.validation):
            for grammars in grammars_of(part):
                book = grammars.rulebook
                shared = () if book is None else [book.rules]
                for symbols in (grammars.rules, grammars.sequence, *shared):
                    found.update(np.unique(symbols[symbols < grammars.alphabet_size]).tolist())
        return len(found)

    def some(self, share: float, other: float, rng: np.random.Generator) -> Documents:
        """Return the smaller share of the documents, at random."""
        share = min(share, other)
        if share >= 1:
            return self
        sizes = (len(self.training), len(self.validation))
        train, valid = (np.sort(rng.permutation(n)[: -int(-n * share // 1)]) for n in sizes)
        rows = np.concatenate([train, len(self.training) + valid])
        return Documents(
            self.training.select(train),
            self.validation.select(valid),
            self.weights[rows],
            self.groups[rows],
            self.valid_rows[valid],
            self.refit,
        )

    def splits(self, rng: np.random.Generator) -> list[Split]:
        """Return rows that train and that are held out; the first are those that validate."""
        count, held = len(self.training), len(self.validation)
        every = np.arange(count + held)
        splits = [(every[:count], every[count:])] if held else []
        if held >= _ENOUGH or count < _FEWEST or (held and not self.refit):
            return splits
        folds = _FOLDS - len(splits)
        wanted = -(-(_ENOUGH - held) * folds // count)
        for out in _folds(self.groups[:count], folds, rng)[:wanted]:
            if len(out) < count:
                splits.append((np.setdiff1d(every, out), out))
        return splits

    def turns(self, rng: np.random.Generator) -> list[Split]:
        """Return rows that train and that do not, where those that validate are left in turns."""
        count, every = len(self.training), np.arange(len(self))
        parts = (count + out for out in _folds(self.groups[count:], _TURNS, rng))
        return [(np.setdiff1d(every, out), out) for out in parts]


def _folds(groups: Int64s, folds: int, rng: np.random.Generator) -> list[Int64s]:
    """Return documents as so many parts, at random, groups whole; fewer where groups are fewer."""
    _, numbers = np.unique(groups, return_inverse=True)
    fold = rng.permutation(np.arange(numbers.max() + 1) % folds)[numbers.reshape(-1)]
    parts = (np.flatnonzero(fold == k) for k in range(folds))
    return [part for part in parts if len(part)]


def grammars_of(part: GrammarDataset) -> Iterator[Grammars]:
    """Yield the grammars of documents, so many at a time that what is counted of them fits."""
    return (part.grammars.take(rows) for rows in portions(part.grammars, part.rows))
