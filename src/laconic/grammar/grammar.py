"""The class Grammar."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from operator import index
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic.alphabet import Alphabet, Symbols, as_alphabet
from laconic.arrays import Int32s, Int64s, alphabet_size_of, frozen, pairs, row
from laconic.errors import GrammarError
from laconic.rulebook import Rulebook
from laconic.show import how_many, print_rules

_EXPANSION_LIMIT = 1 << 30


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Grammar:
    """One document as rules and a sequence; immutable, and checked when it comes from outside.

    Terminals are 0..alphabet_size-1. Rule k defines the symbol alphabet_size + k by two smaller
    symbols, rules[k]. `rules` is int32 [R, 2] and `sequence` int32 [n'], both read-only.
    With a `rulebook` of S rules its symbols come after the terminals: the document's own rule k,
    rules[k], defines alphabet_size + S + k, and `all_rules` are the rulebook's and its own.
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
    rulebook: Rulebook | None = None

    def __init__(
        self,
        alphabet_size: int,
        rules: npt.ArrayLike,
        sequence: npt.ArrayLike,
        rulebook: Rulebook | None = None,
    ) -> None:
        self.__dict__.update(
            alphabet_size=alphabet_size_of(alphabet_size),
            rules=pairs(rules),
            sequence=row(sequence, "sequence", np.int32),
            rulebook=rulebook,
        )
        check_rulebook(rulebook, self.alphabet_size)
        # To what the document itself says, the symbols of a rulebook are terminals.
        _core.Grammar(self._first, self.rules, self.sequence).check()
        _ = self.starts  # A document too long to count is refused here, not at first use.

    @cached_property
    def core(self) -> _core.Grammar:
        """The grammar as the core takes it: with all rules."""
        return _core.Grammar(self.alphabet_size, self.all_rules, self.sequence)

    @cached_property
    def all_rules(self) -> Int32s:
        """The rules of the rulebook, then the document's own, int32 [S + R, 2].

        Row k defines the symbol alphabet_size + k, whether there is a rulebook or not.
        """
        if self.rulebook is None:
            return self.rules
        return frozen(np.concatenate([self.rulebook.rules, self.rules]))

    @property
    def _first(self) -> int:
        return self.alphabet_size if self.rulebook is None else self.rulebook.size

    @property
    def expanded_length(self) -> int:
        """The number of terminals of the document, found without expanding it."""
        return int(self.starts[-1])

    @cached_property
    def depths(self) -> Int32s:
        """The height of each rule's derivation tree, int32 [S + R]: 1 over two terminals."""
        return self.core.depths()

    @cached_property
    def expanded_lengths(self) -> Int64s:
        """The terminals that each of all rules stands for, int64 [S + R]; 2^63 - 1 means more."""
        return self.core.expanded_lengths()

    @cached_property
    def starts(self) -> Int64s:
        """Where each symbol of the sequence begins, and the end, in terminals, int64 [n' + 1]."""
        return self.core.starts(self.expanded_lengths)

    @cached_property
    def occurrences(self) -> Int64s:
        """How often each of all rules occurs in the derivation of the document, int64 [S + R]."""
        return self.core.occurrences()

    def levels(self) -> list[Int32s]:
        """Return the rules that can be computed together, level by level (the paper's Algorithm 1).

        Level 0 holds the rules over terminals alone; each rule of a later level needs one of the
        level before. All rules are given by number, ascending. O((S + R) log(S + R)).

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
        return self.core.expand(self.expanded_lengths, self.starts, i, j)

    def text(self, alphabet: str | Alphabet = "bytes", limit: int | None = _EXPANSION_LIMIT) -> str:
        """Return the document as str; AlphabetError if it is no text, GrammarError past `limit`."""
        return self._alphabet(alphabet).decode(self.expand(limit))

    def to_bytes(
        self, alphabet: str | Alphabet = "bytes", limit: int | None = _EXPANSION_LIMIT
    ) -> bytes:
        """Return the document as bytes; GrammarError past `limit`."""
        return self._alphabet(alphabet).decode_bytes(self.expand(limit))

    def reachable(self) -> npt.NDArray[np.bool_]:
        """Return which of all rules the sequence needs, if only through others, bool [S + R]."""
        return self.occurrences > 0

    def prune(self) -> Grammar:
        """Return the grammar without its own rules that the sequence does not need. O(R + n')."""
        first = self._first
        kept = self.reachable()[first - self.alphabet_size :]
        if kept.all():
            return self
        rule_names = first - 1 + np.cumsum(kept, dtype=np.int32)

        def renamed(symbols: Int32s) -> Int32s:
            rule = np.maximum(symbols - first, 0)
            return np.where(symbols < first, symbols, rule_names[rule])

        rules, sequence = frozen(renamed(self.rules[kept])), frozen(renamed(self.sequence))
        return trusted_grammar(self.alphabet_size, rules, sequence, self.rulebook)

    def show(
        self,
        alphabet: str | Alphabet | None = None,
        rows: int = 20,
        file: TextIO | None = None,
    ) -> None:
        """Print the rules with what they stand for, those used most first.

        `alphabet` spells the terminals; without one they are spelled as bytes if there are 256 of
        them, and as numbers otherwise. Of shared rules, those that are used are printed.

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
            f"{how_many(len(self.sequence), 'symbol')} and {how_many(len(self.rules), 'rule')}"
            f"{under(self.rulebook)}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammar):
            return NotImplemented
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.alphabet_size, self.rules.tobytes(), self.sequence.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Grammar, tuple(fields_of(self).values())

    def _alphabet(self, alphabet: str | Alphabet) -> Alphabet:
        alphabet = as_alphabet(alphabet)
        if alphabet.size != self.alphabet_size:
            raise GrammarError(
                f"the grammar is over {self.alphabet_size} terminals, {alphabet!r} has "
                f"{alphabet.size}; pass the alphabet it was compressed with"
            )
        return alphabet


def trusted_grammar(
    alphabet_size: int, rules: Int32s, sequence: Int32s, rulebook: Rulebook | None = None
) -> Grammar:
    """Return part of what was checked, read-only already, without checking it again.

    For a short document the check would take longer than its compression.
    """
    grammar = object.__new__(Grammar)
    grammar.__dict__.update(
        alphabet_size=alphabet_size, rules=rules, sequence=sequence, rulebook=rulebook
    )
    return grammar


def fields_of(grammar: Any) -> dict[str, Any]:
    """Return the fields of a grammar, or of many, by name."""
    return {field.name: grammar.__dict__[field.name] for field in fields(grammar)}


def same_fields(one: Any, other: Any) -> bool:
    """Return whether all fields of two grammars are equal."""
    return one.rulebook == other.rulebook and all(
        np.array_equal(value, fields_of(other)[name])
        for name, value in fields_of(one).items()
        if name != "rulebook"
    )


def check_rulebook(rulebook: Rulebook | None, alphabet_size: int) -> None:
    """Raise GrammarError unless a rulebook, if there is one, has as many terminals."""
    if rulebook is not None and rulebook.alphabet_size != alphabet_size:
        raise GrammarError(
            f"the rulebook is over {rulebook.alphabet_size} terminals, the grammar over "
            f"{alphabet_size}: pass the one it was compressed with"
        )


def under(rulebook: Rulebook | None) -> str:
    """Return the words that name a rulebook after rules, if there is one."""
    return "" if rulebook is None else f", under a rulebook of {how_many(len(rulebook), 'rule')}"
