"""The compiled core. Arrays are C-contiguous; nothing here is public.

Written by `make stubs` from bindings/: change it there.
"""

from typing import Any

import numpy
from numpy.typing import NDArray

class Rulebook:
    """Shared rules, ready to parse with; laconic.Rulebook has more to say of them."""

    def __init__(
        self,
        alphabet_size: int,
        rules: NDArray[numpy.int32],
        within: int,
        kinds: NDArray[numpy.uint8],
    ) -> None: ...

def learn_rules(
    text: NDArray[numpy.integer[Any]],
    offsets: NDArray[numpy.int64],
    alphabet_size: int,
    known: NDArray[numpy.int32],
    kinds: NDArray[numpy.uint8],
    max_rules: int,
    min_documents: int,
    max_expansion: int,
    threads: int,
) -> NDArray[numpy.int32]: ...

class Grammar:
    """One grammar. Its arrays are trusted once check() has passed."""

    def __init__(
        self, alphabet_size: int, rules: NDArray[numpy.int32], sequence: NDArray[numpy.int32]
    ) -> None: ...
    def check(self) -> None: ...
    def depths(self) -> NDArray[numpy.int32]: ...
    def expanded_lengths(self) -> NDArray[numpy.int64]: ...
    def occurrences(self) -> NDArray[numpy.int64]: ...
    def starts(self, lengths: NDArray[numpy.int64]) -> NDArray[numpy.int64]: ...
    def expand(
        self, lengths: NDArray[numpy.int64], starts: NDArray[numpy.int64], begin: int, end: int
    ) -> NDArray[numpy.integer[Any]]: ...

class Grammars:
    """Grammars of many documents, end to end. Their arrays are trusted once check() has passed."""

    def __init__(
        self,
        alphabet_size: int,
        rules: NDArray[numpy.int32],
        rule_offsets: NDArray[numpy.int64],
        sequence: NDArray[numpy.int32],
        sequence_offsets: NDArray[numpy.int64],
        rulebook: Rulebook | None = None,
    ) -> None: ...
    @property
    def alphabet_size(self) -> int: ...
    @property
    def rules(self) -> NDArray[numpy.int32]: ...
    @property
    def rule_offsets(self) -> NDArray[numpy.int64]: ...
    @property
    def sequence(self) -> NDArray[numpy.int32]: ...
    @property
    def sequence_offsets(self) -> NDArray[numpy.int64]: ...
    def check(self) -> None: ...
    def expanded_lengths(self) -> NDArray[numpy.int64]: ...

CODECS: dict[str, tuple[str, ...]]

def compress_many(
    text: NDArray[numpy.integer[Any]],
    offsets: NDArray[numpy.int64],
    alphabet_size: int,
    codec: str,
    min_count: int,
    max_rules: int,
    max_expansion: int,
    letters_known: bool,
    rulebook: Rulebook | None,
    threads: int,
) -> Grammars: ...
def from_zipped(
    data: NDArray[numpy.uint8],
    offsets: NDArray[numpy.int64],
    alphabet_size: int,
    raw: bool,
    threads: int,
) -> Grammars:
    """Grammars of documents that lie compressed by deflate: data[offsets[i]:offsets[i + 1]]."""

def scan_gzip(data: NDArray[numpy.uint8]) -> tuple[int, int]:
    """How many bytes the first gzip member of some takes, and how many it is inflated to."""

class PackedGrammars:
    """Grammars of many documents as they lie in files, laid end to end. Offsets are trusted."""

    def __init__(
        self,
        letters: NDArray[numpy.int32],
        letter_offsets: NDArray[numpy.int64],
        left: NDArray[numpy.int32],
        right: NDArray[numpy.int32],
        rule_offsets: NDArray[numpy.int64],
        sequence: NDArray[numpy.int32],
        sequence_offsets: NDArray[numpy.int64],
    ) -> None: ...
    @property
    def letters(self) -> NDArray[numpy.int32]: ...
    @property
    def letter_offsets(self) -> NDArray[numpy.int64]: ...
    @property
    def left(self) -> NDArray[numpy.int32]: ...
    @property
    def right(self) -> NDArray[numpy.int32]: ...
    @property
    def rule_offsets(self) -> NDArray[numpy.int64]: ...
    @property
    def sequence(self) -> NDArray[numpy.int32]: ...
    @property
    def sequence_offsets(self) -> NDArray[numpy.int64]: ...

def pack(grammars: Grammars, sort: bool) -> PackedGrammars: ...
def unpack(packed: PackedGrammars, alphabet_size: int, rulebook: Rulebook | None) -> Grammars: ...
def learn_compact(
    packed: PackedGrammars, alphabet_size: int, rulebook: Rulebook | None = None
) -> NDArray[numpy.uint16]: ...
def encode_compact(
    packed: PackedGrammars,
    alphabet_size: int,
    model: NDArray[numpy.uint16],
    rulebook: Rulebook | None = None,
) -> tuple[NDArray[numpy.uint8], NDArray[numpy.int64]]: ...
def decode_compact(
    codes: NDArray[numpy.uint8],
    offsets: NDArray[numpy.int64],
    alphabet_size: int,
    model: NDArray[numpy.uint16],
    rulebook: Rulebook | None = None,
) -> PackedGrammars: ...

class Forest:
    """The arrays of a laconic.forest.Forest, which has more to say of them."""

    def __init__(self, grammars: Grammars, merge: bool) -> None: ...
    @property
    def alphabet_size(self) -> int: ...
    @property
    def children(self) -> NDArray[numpy.int32]: ...
    @property
    def level_offsets(self) -> NDArray[numpy.int64]: ...
    @property
    def sequence(self) -> NDArray[numpy.int32]: ...
    @property
    def sequence_offsets(self) -> NDArray[numpy.int64]: ...
    @property
    def lengths(self) -> NDArray[numpy.int64]: ...
    @property
    def hashes(self) -> NDArray[numpy.uint64]: ...
    @property
    def shared(self) -> NDArray[numpy.int32]: ...

class PlacedNgrams:
    """N-grams of a forest's documents, hashed to buckets: entries of nodes, and of places.

    A node has those that straddle its two operands, a terminal itself: with its operands' they are
    all that it stands for. A place of a sequence has those that begin before it and end in its
    symbol. Place t of document d is numbered t * documents + d.
    """

    @property
    def nodes(self) -> NDArray[numpy.int32]:
        """int32 [K], ascending."""

    @property
    def node_buckets(self) -> NDArray[numpy.int32]:
        """int32 [K]."""

    @property
    def places(self) -> NDArray[numpy.int64]:
        """int64 [L]."""

    @property
    def place_buckets(self) -> NDArray[numpy.int32]:
        """int32 [L]."""

def place_ngrams(forest: Forest, longest: int, buckets: int) -> PlacedNgrams: ...

HASHES: dict[str, str]

class Counts:
    """A sparse matrix, document by column, in CSR form; columns ascend in every row.

    Row i has the counts data[indptr[i]:indptr[i + 1]] in the columns of the same slice of indices.
    """

    def __init__(
        self,
        indptr: NDArray[numpy.int64],
        indices: NDArray[numpy.int32],
        data: NDArray[numpy.int64],
        columns: int,
    ) -> None: ...
    @property
    def indptr(self) -> NDArray[numpy.int64]:
        """int64 [B + 1]."""

    @property
    def indices(self) -> NDArray[numpy.int32]:
        """int32 [nnz]."""

    @property
    def data(self) -> NDArray[numpy.int64]:
        """int64 [nnz]."""

    @property
    def columns(self) -> int:
        """The number of columns."""

class LetterTable:
    """How terminals are read as letters; see core/windows.hpp."""

    def __init__(
        self,
        letters: NDArray[numpy.uint32],
        spaces: NDArray[numpy.uint8],
        points: NDArray[numpy.uint32],
        complements: NDArray[numpy.uint32],
        blank: int,
    ) -> None: ...

class NgramCounter:
    """Learns which n-grams there are; see core/ngrams.hpp."""

    def __init__(self, letters: LetterTable, low: int, high: int, keep: bool) -> None: ...
    def add(self, grammars: Grammars, threads: int) -> None: ...
    def finish(self, threads: int) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64]]:
        """Frequencies and totals of all n-grams."""

    def spelled(
        self, ngrams: NDArray[numpy.int64]
    ) -> tuple[NDArray[numpy.uint32], NDArray[numpy.int64]]:
        """Code points of n-grams, and offsets."""

    def matrix(self, columns: NDArray[numpy.int32], threads: int) -> Counts: ...

def count_hashed(
    grammars: Grammars,
    letters: LetterTable,
    low: int,
    high: int,
    columns: int,
    alternate_sign: bool,
    threads: int,
) -> Counts: ...
def count_known(
    grammars: Grammars,
    letters: LetterTable,
    low: int,
    high: int,
    vocabulary: NDArray[numpy.uint32],
    offsets: NDArray[numpy.int64],
    threads: int,
) -> Counts: ...
def count_phrases(
    grammars: Grammars, most: int, shortest: int, longest: int, columns: int, threads: int
) -> Counts: ...

class NamedPhrases:
    """Phrase k is terminals[offsets[k]:offsets[k + 1]]."""

    @property
    def columns(self) -> NDArray[numpy.int32]: ...
    @property
    def occurrences(self) -> NDArray[numpy.int64]: ...
    @property
    def terminals(self) -> NDArray[numpy.int32]: ...
    @property
    def offsets(self) -> NDArray[numpy.int64]: ...

def name_phrases(
    grammars: Grammars,
    most: int,
    shortest: int,
    longest: int,
    columns: int,
    wanted: NDArray[numpy.int64],
) -> NamedPhrases: ...
