"""Counts of all n-grams of documents, from their grammars."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from laconic import oracle
from laconic.alphabet import Alphabet
from laconic.arrays import Int32s, Int64s, frozen
from laconic.grammar import Grammar, GrammarError, Grammars

__all__ = [
    "Counts",
    "Letters",
    "Vocabulary",
    "count_all",
    "count_hashed",
    "count_known",
    "learn",
    "letters",
]

LONGEST = 64  # letters of an n-gram
_COMPLEMENTS = dict(zip("ACGTRYKMBVDHacgtrykmbvdh", "TGCAYRMKVBHDtgcayrmkvbhd", strict=True))
_ASCII_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f "


@dataclass(frozen=True, eq=False)
class Letters:
    """How terminals are read: the code point of each, and what is done to the text they spell.

    `codes` is uint32 [alphabet_size]. With `spaces`, bool [alphabet_size], a run of two or more
    of them is one blank. With `complements`, uint32 [alphabet_size], the code point of each one's
    complement, an n-gram and its reverse complement are counted as the smaller of the two.
    """

    codes: npt.NDArray[np.uint32]
    spaces: npt.NDArray[np.bool_] | None = None
    complements: npt.NDArray[np.uint32] | None = None


def letters(
    alphabet: Alphabet, *, lowercase: bool, collapse: bool, reverse_complement: bool
) -> Letters:
    """Return how scikit-learn reads the terminals of an alphabet with analyzer="char".

    Bytes are the first 256 code points, of which only ASCII has upper case and white space.
    Raises ValueError with `lowercase` for an alphabet that holds a letter whose lower case is
    not always one and the same letter: İ and Σ.
    """
    ascii_only = alphabet.characters is None
    characters = alphabet.characters or "".join(map(chr, range(256)))
    codes = np.array([ord(c) for c in characters], np.uint32)
    if lowercase:
        for i, character in enumerate(characters):
            if ascii_only and not character.isascii():
                continue
            if len(character.lower()) != 1 or character == "Σ":
                raise ValueError(
                    f"the lower case of {character!r} is not one letter, whatever stands beside "
                    "it; lower-case the text before it is compressed, or pass lowercase=False"
                )
            codes[i] = ord(character.lower())
    spaces = complements = None
    if collapse:
        known = [c in _ASCII_SPACES if ascii_only else c.isspace() for c in characters]
        spaces = frozen(np.array(known, np.bool_))
    if reverse_complement:
        others = [_COMPLEMENTS.get(chr(code), chr(code)) for code in codes.tolist()]
        complements = frozen(np.array([ord(c) for c in others], np.uint32))
    return Letters(frozen(codes), spaces, complements)


@dataclass(frozen=True, eq=False)
class Counts:
    """A sparse matrix, document by column, in CSR form; columns ascend in every row.

    Row i has the counts data[indptr[i]:indptr[i + 1]] in the columns of the same slice of indices:
    `indptr` int64 [B + 1], `indices` int32 [nnz], `data` int64 [nnz].
    """

    indptr: Int64s
    indices: Int32s
    data: Int64s
    columns: int


class Vocabulary:
    """N-grams and their columns: those learned stand in the order in which Python sorts str.

    `document_frequency` and `total` (int64 [V]) say in how many documents of those learned from
    each n-gram occurs, and how often; they are 0 for n-grams that were given.
    """

    document_frequency: Int64s
    total: Int64s

    def __init__(self, names: Sequence[str], document_frequency: Int64s, total: Int64s) -> None:
        self._names = list(names)
        self.document_frequency, self.total = document_frequency, total

    @classmethod
    def from_names(cls, names: Iterable[str]) -> Vocabulary:
        """Return a vocabulary in which names[k] has column k; ValueError for one given twice."""
        given = list(names)
        seen: set[str] = set()
        for name in given:
            if name in seen:
                raise ValueError(f"the n-gram {name!r} is given twice; give each one column")
            seen.add(name)
        return cls(given, *(frozen(np.zeros(len(given), np.int64)) for _ in range(2)))

    def names(self) -> list[str]:
        """Return the n-grams, by column."""
        return list(self._names)

    def __len__(self) -> int:
        return len(self._names)


def count_hashed(
    grammars: Grammars,
    letters: Letters,
    low: int,
    high: int,
    n_features: int,
    *,
    alternate_sign: bool = True,
    threads: int | None = None,
) -> Counts:
    """Return the counts of n-grams of `low` to `high` letters, in hashed columns.

    Columns and signs are those of scikit-learn's HashingVectorizer(analyzer="char"): the
    MurmurHash3 of an n-gram's UTF-8, with seed 0. Entries that share a column are summed, and stay
    if that gives 0. Raises as count_all does.
    """
    from sklearn.utils import murmurhash3_32

    rows: list[dict[int, int]] = []
    for counts in _counters(grammars, letters, low, high):
        row: dict[int, int] = {}
        for name, count in counts.items():
            value = int(murmurhash3_32(name.encode(), 0))
            sign = -1 if alternate_sign and value < 0 else 1
            column = abs(value) % n_features
            row[column] = row.get(column, 0) + sign * count
        rows.append(row)
    return _matrix(rows, n_features)


def count_all(
    grammars: Grammars | Iterable[Grammars],
    letters: Letters,
    low: int,
    high: int,
    *,
    min_df: float = 1,
    max_df: float | None = None,
    max_features: int | None = None,
    binary: bool = False,
    dtype: npt.DTypeLike = np.int64,
    threads: int | None = None,
) -> tuple[Vocabulary, Counts]:
    """Learn the n-grams of `low` to `high` letters and return them with their counts.

    Kept are those in at least `min_df` and at most `max_df` documents, and of these the
    `max_features` most frequent, chosen as scikit-learn's CountVectorizer does; its choice among
    equals depends on `dtype`, in which it counts, and `binary`, with which it counts documents.
    Raises GrammarError for grammars over another alphabet or of too many letters to count, and
    ValueError for lengths other than 1 <= low <= high <= 64.
    """
    blocks = [grammars] if isinstance(grammars, Grammars) else list(grammars)
    counters = [c for block in blocks for c in _counters(block, letters, low, high)]
    totals: Counter[str] = Counter()
    frequencies: Counter[str] = Counter()
    for counts in counters:
        totals.update(counts)
        frequencies.update(counts.keys())
    names = sorted(totals)
    frequency = np.array([frequencies[name] for name in names], np.int64)
    total = np.array([totals[name] for name in names], np.int64)
    kept = _chosen(frequency, total, min_df, max_df, max_features, binary, dtype)
    chosen = [names[k] for k in kept.tolist()]
    vocabulary = Vocabulary(chosen, frozen(frequency[kept]), frozen(total[kept]))
    return vocabulary, _known(counters, vocabulary)


def learn(
    grammars: Grammars | Iterable[Grammars],
    letters: Letters,
    low: int,
    high: int,
    *,
    min_df: float = 1,
    max_df: float | None = None,
    max_features: int | None = None,
    binary: bool = False,
    dtype: npt.DTypeLike = np.int64,
    threads: int | None = None,
) -> Vocabulary:
    """Return the n-grams that count_all returns, in less memory: no counts of documents are kept."""
    return count_all(
        grammars,
        letters,
        low,
        high,
        min_df=min_df,
        max_df=max_df,
        max_features=max_features,
        binary=binary,
        dtype=dtype,
        threads=threads,
    )[0]


def count_known(
    grammars: Grammars,
    letters: Letters,
    low: int,
    high: int,
    vocabulary: Vocabulary,
    *,
    threads: int | None = None,
) -> Counts:
    """Return the counts of the n-grams of a vocabulary that have `low` to `high` letters.

    Raises as count_all does.
    """
    return _known(_counters(grammars, letters, low, high), vocabulary)


def _chosen(
    frequency: Int64s,
    total: Int64s,
    min_df: float,
    max_df: float | None,
    max_features: int | None,
    binary: bool,
    dtype: npt.DTypeLike,
) -> npt.NDArray[np.intp]:
    mask = frequency >= min_df
    if max_df is not None:
        mask &= frequency <= max_df
    kept = np.flatnonzero(mask)
    if max_features is None or len(kept) <= max_features:
        return kept
    # The very call that scikit-learn makes: how NumPy orders equals is no promise of NumPy's.
    weights = (frequency if binary else total).astype(dtype)[mask]
    return np.sort(kept[(-weights).argsort()[:max_features]])


def _counters(grammars: Grammars, letters: Letters, low: int, high: int) -> list[Counter[str]]:
    _check(grammars, letters, low, high)
    complements = None
    if letters.complements is not None:
        pairs = zip(letters.codes.tolist(), letters.complements.tolist(), strict=True)
        complements = {chr(a): chr(b) for a, b in pairs}
    return [
        oracle.ngrams(_text(grammar, letters), low, high, letters.spaces is not None, complements)
        for grammar in grammars
    ]


def _text(grammar: Grammar, letters: Letters) -> str:
    return letters.codes[grammar.expand()].astype("<u4").tobytes().decode("utf-32-le")


def _check(grammars: Grammars, letters: Letters, low: int, high: int) -> None:
    if not 1 <= low <= high <= LONGEST:
        raise ValueError(f"n-grams of {low} to {high} letters: 1 <= low <= high <= {LONGEST}")
    if grammars.alphabet_size != len(letters.codes):
        raise GrammarError(
            f"the grammars are over {grammars.alphabet_size} terminals, the letters are "
            f"{len(letters.codes)}; make them from the alphabet of the grammars"
        )


def _known(counters: list[Counter[str]], vocabulary: Vocabulary) -> Counts:
    columns = {name: k for k, name in enumerate(vocabulary.names())}
    rows = [{columns[n]: c for n, c in counts.items() if n in columns} for counts in counters]
    return _matrix(rows, len(vocabulary))


def _matrix(rows: list[dict[int, int]], columns: int) -> Counts:
    ordered = [sorted(row.items()) for row in rows]
    flat: list[Any] = [entry for row in ordered for entry in row]
    return Counts(
        np.cumsum([0, *map(len, ordered)], dtype=np.int64),
        np.array([column for column, _ in flat], np.int32),
        np.array([count for _, count in flat], np.int64),
        columns,
    )
