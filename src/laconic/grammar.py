"""The rules and the remaining sequence of one document (Grammar) or of many (Grammars)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from operator import index
from typing import Any, TextIO, overload

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic.alphabet import Alphabet, Symbols, as_alphabet
from laconic.arrays import (
    Int32s,
    Int64s,
    alphabet_size_of,
    frozen,
    gathered,
    offsets,
    pairs,
    row,
    row_numbers,
)
from laconic.errors import GrammarError, NoDocumentError
from laconic.show import how_many, print_rules

_EXPANSION_LIMIT = 1 << 30


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Grammar:
    """One document as rules and a sequence; immutable, and checked when it comes from outside.

    Terminals are 0..alphabet_size-1. Rule k defines the symbol alphabet_size + k by two smaller
    symbols, rules[k]. `rules` is int32 [R, 2] and `sequence` int32 [n'], both read-only.
    Raises GrammarError, one message per cause, for arrays that are not such a grammar.

    >>> grammar = Grammar(3, rules=[[0, 1], [3, 2]], sequence=[0, 3, 4, 3, 4, 4])
    >>> grammar.expanded_length
    14
    >>> grammar.expand()
    array([0, 0, 1, 0, 1, 2, 0, 1, 0, 1, 2, 0, 1, 2], dtype=uint8)
    >>> grammar.substring(3, 6)
    array([0, 1, 2], dtype=uint8)
    """

    alphabet_size: int
    rules: Int32s
    sequence: Int32s

    def __init__(self, alphabet_size: int, rules: npt.ArrayLike, sequence: npt.ArrayLike) -> None:
        self.__dict__.update(
            alphabet_size=alphabet_size_of(alphabet_size),
            rules=pairs(rules),
            sequence=row(sequence, "sequence", np.int32),
        )
        self.core.check()
        _ = self._starts  # A document too long to count is refused here, not at first use.

    @cached_property
    def core(self) -> _core.Grammar:
        """The grammar as the core takes it."""
        return _core.Grammar(*_fields(self))

    @property
    def expanded_length(self) -> int:
        """The number of terminals of the document, found without expanding it."""
        return int(self._starts[-1])

    @cached_property
    def depths(self) -> Int32s:
        """The height of each rule's derivation tree, int32 [R]: 1 for a rule over two terminals."""
        return self.core.depths()

    @cached_property
    def expanded_lengths(self) -> Int64s:
        """The number of terminals that each rule stands for, int64 [R]; 2^63 - 1 means more."""
        return self.core.expanded_lengths()

    @cached_property
    def occurrences(self) -> Int64s:
        """How often each rule occurs in the derivation of the document, int64 [R]."""
        return self.core.occurrences()

    def levels(self) -> list[Int32s]:
        """Return the rules that can be computed together, level by level (the paper's Algorithm 1).

        Level 0 holds the rules over terminals alone; each rule of a later level needs one of the
        level before. Rules are given by number, ascending. O(R log R).

        >>> Grammar(3, [[0, 1], [1, 2], [3, 4]], [5]).levels()
        [array([0, 1], dtype=int32), array([2], dtype=int32)]
        """
        order = np.argsort(self.depths, kind="stable").astype(np.int32)
        bounds = np.cumsum(np.bincount(self.depths)[1:])
        return np.split(order, bounds[:-1]) if len(order) else []

    def expand(self, limit: int | None = _EXPANSION_LIMIT) -> Symbols:
        """Return the terminals of the document, of the smallest dtype that holds the alphabet.

        A small grammar may stand for more terminals than any memory holds, so GrammarError is
        raised beyond `limit` before anything is allocated; None means no limit. O(n).
        """
        if limit is not None and self.expanded_length > limit:
            raise GrammarError(
                f"the document has {self.expanded_length} terminals, more than limit={limit}; "
                "pass a larger limit if you trust it, or read parts with substring()"
            )
        return self.substring(0, self.expanded_length)

    def substring(self, i: int, j: int) -> Symbols:
        """Return terminals i..j-1 in O(depth + log n' + j - i), without expanding the rest.

        The first call also indexes the grammar, in O(R + n'). Raises IndexError unless
        0 <= i <= j <= expanded_length.
        """
        i, j = index(i), index(j)
        if not 0 <= i <= j <= self.expanded_length:
            raise IndexError(f"[{i}:{j}] is not within the {self.expanded_length} terminals")
        return self.core.expand(self.expanded_lengths, self._starts, i, j)

    def text(self, alphabet: str | Alphabet = "bytes", limit: int | None = _EXPANSION_LIMIT) -> str:
        """Return the document as str; AlphabetError if it is no text, GrammarError past `limit`."""
        return self._alphabet(alphabet).decode(self.expand(limit))

    def to_bytes(
        self, alphabet: str | Alphabet = "bytes", limit: int | None = _EXPANSION_LIMIT
    ) -> bytes:
        """Return the document as bytes; GrammarError past `limit`."""
        return self._alphabet(alphabet).decode_bytes(self.expand(limit))

    def reachable(self) -> npt.NDArray[np.bool_]:
        """Return which rules the sequence needs, directly or through other rules, bool [R]."""
        return self.occurrences > 0

    def prune(self) -> Grammar:
        """Return the grammar without the rules the sequence does not need. O(R + n')."""
        kept = self.reachable()
        if kept.all():
            return self
        rule_names = self.alphabet_size - 1 + np.cumsum(kept, dtype=np.int32)

        def renamed(symbols: Int32s) -> Int32s:
            rule = np.maximum(symbols - self.alphabet_size, 0)
            return np.where(symbols < self.alphabet_size, symbols, rule_names[rule])

        rules, sequence = frozen(renamed(self.rules[kept])), frozen(renamed(self.sequence))
        return trusted_grammar(self.alphabet_size, rules, sequence)

    def show(
        self,
        alphabet: str | Alphabet | None = None,
        rows: int = 20,
        file: TextIO | None = None,
    ) -> None:
        """Print the rules with what they stand for, those used most first.

        `alphabet` spells the terminals; without one they are spelled as bytes if there are 256 of
        them, and as numbers otherwise.

        >>> from laconic import compress
        >>> compress("aababcababcabcd", min_count=3).show()
        <Grammar: 15 terminals as a sequence of 7 symbols and 2 rules>
        symbol  used  length  rule   expansion
           256     5       2  a b    'ab'
           257     3       3  256 c  'abc'
        """
        if alphabet is None and self.alphabet_size == 256:
            alphabet = "bytes"
        spell = None if alphabet is None else self._alphabet(alphabet)
        print_rules(self, spell, rows, file)

    def __repr__(self) -> str:
        return (
            f"<Grammar: {how_many(self.expanded_length, 'terminal')} as a sequence of "
            f"{how_many(len(self.sequence), 'symbol')} and {how_many(len(self.rules), 'rule')}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        return all(map(np.array_equal, _fields(self), _fields(other)))

    def __hash__(self) -> int:
        return hash((self.alphabet_size, self.rules.tobytes(), self.sequence.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Grammar, _fields(self)

    @cached_property
    def _starts(self) -> Int64s:
        return self.core.starts(self.expanded_lengths)

    def _alphabet(self, alphabet: str | Alphabet) -> Alphabet:
        alphabet = as_alphabet(alphabet)
        if alphabet.size != self.alphabet_size:
            raise GrammarError(
                f"the grammar is over {self.alphabet_size} terminals, {alphabet!r} has "
                f"{alphabet.size}; pass the alphabet it was compressed with"
            )
        return alphabet


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Grammars:
    """The grammars of many documents over one alphabet, laid end to end; immutable and checked.

    Document i has rules[rule_offsets[i]:rule_offsets[i + 1]] (int32 [ΣR, 2]), numbered from
    alphabet_size again, and sequence[sequence_offsets[i]:sequence_offsets[i + 1]] (int32 [Σn']).
    Offsets are int64 [N + 1]. Raises GrammarError for anything else, with the document where one is
    to blame. A document taken out, grammars[i], is a view: it keeps the whole batch in memory.

    >>> from laconic import compress_many
    >>> grammars = compress_many(["abab", "", "banana"])
    >>> len(grammars), grammars.rule_offsets.tolist(), grammars.sequence_offsets.tolist()
    (3, [0, 1, 1, 2], [0, 2, 2, 6])
    >>> grammars[2].text()
    'banana'
    """

    alphabet_size: int
    rules: Int32s
    rule_offsets: Int64s
    sequence: Int32s
    sequence_offsets: Int64s

    def __init__(
        self,
        alphabet_size: int,
        rules: npt.ArrayLike,
        rule_offsets: npt.ArrayLike,
        sequence: npt.ArrayLike,
        sequence_offsets: npt.ArrayLike,
    ) -> None:
        all_rules, all_symbols = pairs(rules), row(sequence, "sequence", np.int32)
        self.__dict__.update(
            alphabet_size=alphabet_size_of(alphabet_size),
            rules=all_rules,
            rule_offsets=offsets(rule_offsets, "rule_offsets", len(all_rules)),
            sequence=all_symbols,
            sequence_offsets=offsets(sequence_offsets, "sequence_offsets", len(all_symbols)),
        )
        if len(self.rule_offsets) != len(self.sequence_offsets):
            raise GrammarError(
                f"rule_offsets are for {len(self.rule_offsets) - 1} documents, "
                f"sequence_offsets for {len(self.sequence_offsets) - 1}"
            )
        self.core.check()
        _ = self.expanded_lengths  # As in Grammar: a document too long to count is refused here.

    @classmethod
    def concatenate(cls, grammars: Iterable[Grammar | Grammars]) -> Grammars:
        """Return grammars over one alphabet as one; GrammarError if they differ or are none."""
        parts = list(grammars)
        if not all(isinstance(part, (Grammar, Grammars)) for part in parts):
            raise TypeError("concatenate takes Grammar and Grammars only")
        sizes = sorted({part.alphabet_size for part in parts})
        if len(sizes) != 1:
            raise GrammarError(f"grammars over one alphabet are wanted, these are over {sizes}")

        def joined(name: str, array: str) -> Int64s:
            sizes = [np.diff(getattr(part, name, [0, len(getattr(part, array))])) for part in parts]
            return np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)

        return trusted_grammars(
            sizes[0],
            np.concatenate([part.rules for part in parts]),
            joined("rule_offsets", "rules"),
            np.concatenate([part.sequence for part in parts]),
            joined("sequence_offsets", "sequence"),
        )

    @cached_property
    def core(self) -> _core.Grammars:
        """The grammars as the core takes them."""
        return _core.Grammars(*_fields(self))

    @cached_property
    def expanded_lengths(self) -> Int64s:
        """The number of terminals of each document, int64 [N]."""
        return self.core.expanded_lengths()

    @property
    def nbytes(self) -> int:
        """The bytes that its arrays take."""
        return sum(each.nbytes for each in _fields(self)[1:])

    @property
    def packed_bits(self) -> Int64s:
        """The bits each document takes at ⌈log2(alphabet_size + R)⌉ per symbol, int64 [N].

        This is what a plain array of fixed-width integers needs, without any entropy coding.
        """
        rules, symbols = np.diff(self.rule_offsets), np.diff(self.sequence_offsets)
        width = np.ceil(np.log2(np.maximum(2, self.alphabet_size + rules))).astype(np.int64)
        bits: Int64s = (2 * rules + symbols) * width
        return bits

    def take(self, rows: npt.ArrayLike) -> Grammars:
        """Return a copy of some documents, integers [K], in that order; -1 is the last.

        Raises IndexError outside the documents. O(K + rules and symbols taken).
        """
        wanted = row_numbers(rows, len(self))
        rules, rule_offsets = gathered(self.rules, self.rule_offsets, wanted)
        symbols, symbol_offsets = gathered(self.sequence, self.sequence_offsets, wanted)
        return trusted_grammars(self.alphabet_size, rules, rule_offsets, symbols, symbol_offsets)

    def __len__(self) -> int:
        return len(self.rule_offsets) - 1

    @overload
    def __getitem__(self, which: int) -> Grammar: ...
    @overload
    def __getitem__(self, which: slice) -> Grammars: ...
    def __getitem__(self, which: int | slice) -> Grammar | Grammars:
        if isinstance(which, slice):
            return self._slice(*which.indices(len(self)))
        i = index(which)
        if not -len(self) <= i < len(self):
            raise NoDocumentError(f"document {i} of {len(self)}")
        i %= len(self)
        rules = self.rules[self.rule_offsets[i] : self.rule_offsets[i + 1]]
        sequence = self.sequence[self.sequence_offsets[i] : self.sequence_offsets[i + 1]]
        return trusted_grammar(self.alphabet_size, rules, sequence)

    def __iter__(self) -> Iterator[Grammar]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"<Grammars: {how_many(len(self), 'document')}, "
            f"{how_many(sum(self.expanded_lengths.tolist()), 'terminal')} as sequences of "
            f"{how_many(len(self.sequence), 'symbol')} and {how_many(len(self.rules), 'rule')}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammars):
            return NotImplemented
        return all(map(np.array_equal, _fields(self), _fields(other)))

    def __hash__(self) -> int:
        return hash((self.alphabet_size, self.rules.tobytes(), self.sequence.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Grammars, _fields(self)

    def _slice(self, start: int, stop: int, step: int) -> Grammars:
        if step != 1:
            raise IndexError("grammars are sliced without a step")
        stop = max(start, stop)
        rules = self.rule_offsets[start : stop + 1]
        symbols = self.sequence_offsets[start : stop + 1]
        return trusted_grammars(
            self.alphabet_size,
            self.rules[rules[0] : rules[-1]],
            rules - rules[0],
            self.sequence[symbols[0] : symbols[-1]],
            symbols - symbols[0],
        )


def _fields(grammar: Grammar | Grammars) -> tuple[Any, ...]:
    return tuple(grammar.__dict__[field.name] for field in fields(grammar))


def trusted_grammar(alphabet_size: int, rules: Int32s, sequence: Int32s) -> Grammar:
    """Return part of what was checked, read-only already, without checking it again.

    For a short document the check would take longer than its compression.
    """
    grammar = object.__new__(Grammar)
    grammar.__dict__.update(alphabet_size=alphabet_size, rules=rules, sequence=sequence)
    return grammar


def trusted_grammars(alphabet_size: int, *arrays: npt.NDArray[Any]) -> Grammars:
    """As trusted_grammar, of new arrays in the order of the fields of Grammars."""
    return grammars_of(_core.Grammars(alphabet_size, *map(frozen, arrays)))


def grammars_of(core: _core.Grammars) -> Grammars:
    """Return what the core wrote, which needs no check."""
    grammars = object.__new__(Grammars)
    grammars.__dict__.update(
        core=core,
        alphabet_size=core.alphabet_size,
        rules=core.rules,
        rule_offsets=core.rule_offsets,
        sequence=core.sequence,
        sequence_offsets=core.sequence_offsets,
    )
    return grammars
