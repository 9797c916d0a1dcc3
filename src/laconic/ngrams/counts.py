"""Counts of all n-grams of documents, from their grammars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from itertools import pairwise
from operator import index

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic._core import Counts
from laconic.arrays import Int32s, Int64s, frozen
from laconic.errors import GrammarError, InputError
from laconic.grammar import Grammars
from laconic.ngrams.spelling import Letters, UInt32s
from laconic.show import how_many
from laconic.threads import threads_of

LONGEST = 64  # letters of an n-gram


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """N-grams and their columns: those learned stand in the order in which Python sorts str.

    N-gram k is spelled by the code points points[offsets[k]:offsets[k + 1]]: str by str they would
    take longer to make than to count. `document_frequency` and `total` (int64 [V]) say in how many
    documents of those learned from each occurs, and how often; 0 for n-grams that were given.
    """

    points: UInt32s
    offsets: Int64s
    document_frequency: Int64s
    total: Int64s

    @classmethod
    def from_names(cls, names: Iterable[str]) -> Vocabulary:
        """Return a vocabulary in which names[k] has column k; ValueError for one given twice."""
        given = list(names)
        for name, times in Counter(given).items():
            if not isinstance(name, str):
                raise TypeError(f"n-grams are str, not {type(name).__name__}")
            if times > 1:
                raise InputError(f"the n-gram {name!r} is given twice; give each one column")
        data = "".join(given).encode("utf-32-le", "surrogatepass")
        offsets = np.cumsum([0, *map(len, given)], dtype=np.int64)
        none = frozen(np.zeros(len(given), np.int64))
        return cls(np.frombuffer(data, "<u4").astype(np.uint32), offsets, none, none)

    def names(self) -> list[str]:
        """Return the n-grams, by column."""
        text = self.points.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
        return [text[i:j] for i, j in pairwise(self.offsets.tolist())]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<Vocabulary: {how_many(len(self), 'n-gram')}>"


def as_vocabulary(vocabulary: Mapping[str, int] | Iterable[str] | None) -> Vocabulary:
    """Return the vocabulary that was given; ValueError or TypeError where it is none."""
    if isinstance(vocabulary, Mapping):
        names = sorted(vocabulary, key=vocabulary.__getitem__)
        if [vocabulary[name] for name in names] != list(range(len(names))):
            raise InputError("the columns of the vocabulary must be 0, 1, 2, … without gaps")
    elif isinstance(vocabulary, str) or not isinstance(vocabulary, Iterable):
        raise TypeError(f"vocabulary must be n-grams, not {type(vocabulary).__name__}")
    else:
        names = sorted(vocabulary) if isinstance(vocabulary, Set) else list(vocabulary)
    if not names:
        raise InputError("the vocabulary is empty: it must have at least one n-gram")
    if odd := [name for name in names if not isinstance(name, str)]:
        raise TypeError(f"the vocabulary holds {odd[0]!r}, which is no str")
    return Vocabulary.from_names(names)


def count_hashed(
    grammars: Grammars,
    letters: Letters,
    low: int,
    high: int,
    n_features: int,
    alternate_sign: bool = True,
    threads: int | None = None,
) -> Counts:
    """Return the counts of n-grams of `low` to `high` letters, in hashed columns.

    Columns and signs are those of scikit-learn's HashingVectorizer(analyzer="char"): the
    MurmurHash3 of an n-gram's UTF-8, with seed 0. Entries that share a column are summed, and stay
    if that gives 0. Raises as count_all does.
    """
    if not 1 <= index(n_features) < 1 << 31:
        raise InputError(f"n_features must be from 1 to 2^31 - 1, not {n_features}")
    _check(grammars, letters, low, high)
    return _core.count_hashed(
        grammars.core, letters.table, low, high, n_features, alternate_sign, threads_of(threads)
    )


@dataclass(frozen=True, slots=True)
class Choice:
    """Which n-grams are learned, as scikit-learn's CountVectorizer chooses them.

    Those in at least `min_df` and at most `max_df` documents, and of these the `max_features` most
    frequent. Its choice among equals depends on `dtype`, in which it counts, and `binary`, with
    which it counts documents.
    """

    min_df: float = 1
    max_df: float | None = None
    max_features: int | None = None
    binary: bool = False
    dtype: npt.DTypeLike = np.int64

    def among(self, frequency: Int64s, total: Int64s) -> Int64s:
        """Return the numbers of those chosen, int64 [K], ascending."""
        mask = frequency >= self.min_df
        if self.max_df is not None:
            mask &= frequency <= self.max_df
        kept = np.flatnonzero(mask).astype(np.int64)
        if self.max_features is None or len(kept) <= self.max_features:
            return kept
        # The very call that scikit-learn makes: how NumPy orders equals is no promise of NumPy's.
        weights = (frequency if self.binary else total).astype(self.dtype)[mask]
        return np.sort(kept[(-weights).argsort()[: self.max_features]])


_ALL = Choice()


def count_all(
    grammars: Grammars | Iterable[Grammars],
    letters: Letters,
    low: int,
    high: int,
    choice: Choice = _ALL,
    threads: int | None = None,
) -> tuple[Vocabulary, Counts]:
    """Learn the n-grams of `low` to `high` letters and return them with their counts.

    O(high · (rules + symbols)) time but for sorting, whatever the length of the documents. Raises
    GrammarError for grammars over another alphabet or of too many letters to count, and ValueError
    for lengths other than 1 <= low <= high <= 64.

    >>> from laconic import Alphabet, compress_many
    >>> from laconic.ngrams import letters_of
    >>> read = letters_of(Alphabet.bytes(), lowercase=True, collapse=True, reverse_complement=False)
    >>> vocabulary, counts = count_all(compress_many(["Banana", "ban"]), read, 2, 3)
    >>> vocabulary.names()
    ['an', 'ana', 'ba', 'ban', 'na', 'nan']
    >>> counts.indptr.tolist(), counts.indices.tolist(), counts.data.tolist()
    ([0, 6, 9], [0, 1, 2, 3, 4, 5, 0, 2, 3], [2, 2, 1, 1, 2, 1, 1, 1, 1])
    """
    vocabulary, counter, columns = _learned(grammars, letters, low, high, choice, threads, True)
    return vocabulary, counter.matrix(columns, threads_of(threads))


def learn(
    grammars: Grammars | Iterable[Grammars],
    letters: Letters,
    low: int,
    high: int,
    choice: Choice = _ALL,
    threads: int | None = None,
) -> Vocabulary:
    """Return the n-grams that count_all does, in less memory: documents are not remembered."""
    return _learned(grammars, letters, low, high, choice, threads, False)[0]


def count_known(
    grammars: Grammars,
    letters: Letters,
    low: int,
    high: int,
    vocabulary: Vocabulary,
    threads: int | None = None,
) -> Counts:
    """Return the counts of the n-grams of a vocabulary that have `low` to `high` letters.

    Raises as count_all does.
    """
    _check(grammars, letters, low, high)
    points, places = letters.points, np.searchsorted(letters.points, vocabulary.points)
    known = points[np.minimum(places, len(points) - 1)] == vocabulary.points
    spelled = np.where(known, places + 1, 0).astype(np.uint32)
    return _core.count_known(
        grammars.core, letters.table, low, high, spelled, vocabulary.offsets, threads_of(threads)
    )


def count_phrases(
    grammars: Grammars,
    most: int,
    n_features: int,
    shortest: int = 1,
    longest: int = LONGEST,
    threads: int | None = None,
) -> Counts:
    """Return the counts of phrases, in hashed columns: runs of 1 to `most` neighbouring symbols.

    Kept are those that stand for `shortest` to `longest` terminals. A column is that of those
    terminals, however rules and symbols split them. Unlike n-grams, phrases depend on the codec:
    Re-Pair's are what a document repeats, with its neighbours. O(most * symbols + rules). Raises
    ValueError for numbers out of range.

    >>> from laconic import compress_many
    >>> counts = count_phrases(compress_many(["abcabc", "ab"]), most=2, n_features=1000, shortest=3)
    >>> counts.data.tolist(), counts.indptr.tolist()            # abc twice, abcabc once
    ([2, 1], [0, 2, 2])
    """
    if not 1 <= n_features < 1 << 31:
        raise InputError(f"n_features must be from 1 to 2^31 - 1, not {n_features}")
    if not 1 <= index(most) < 1 << 31:
        raise InputError(f"phrases of 1 to {most} symbols: there must be one at least")
    if not 1 <= index(shortest) <= index(longest) < 1 << 30:
        raise InputError(f"phrases of {shortest} to {longest} terminals: 1 <= shortest <= longest")
    return _core.count_phrases(
        grammars.core, most, shortest, longest, n_features, threads_of(threads)
    )


def _learned(
    grammars: Grammars | Iterable[Grammars],
    letters: Letters,
    low: int,
    high: int,
    choice: Choice,
    threads: int | None,
    remember: bool,
) -> tuple[Vocabulary, _core.NgramCounter, Int32s]:
    """Return the n-grams chosen, what counted all of them, and the column of each, or -1."""
    _check_lengths(low, high)
    counter = _core.NgramCounter(letters.table, low, high, remember)
    for block in [grammars] if isinstance(grammars, Grammars) else grammars:
        _check(block, letters, low, high)
        counter.add(block.core, threads_of(threads))
    frequency, total = counter.finish(threads_of(threads))
    kept = choice.among(frequency, total)
    columns = np.full(len(frequency), -1, np.int32)
    columns[kept] = np.arange(len(kept), dtype=np.int32)
    spelled = counter.spelled(kept)
    return Vocabulary(*spelled, frozen(frequency[kept]), frozen(total[kept])), counter, columns


def _check_lengths(low: int, high: int) -> None:
    if not 1 <= index(low) <= index(high) <= LONGEST:
        raise InputError(f"n-grams of {low} to {high} letters: 1 <= low <= high <= {LONGEST}")


def _check(grammars: Grammars, letters: Letters, low: int, high: int) -> None:
    _check_lengths(low, high)
    if grammars.alphabet_size != len(letters.codes):
        raise GrammarError(
            f"the grammars are over {grammars.alphabet_size} terminals, the letters are for "
            f"{len(letters.codes)}; make them from the alphabet of the grammars"
        )
