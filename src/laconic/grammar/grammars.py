"""The class Grammars."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from laconic import _core
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
from laconic.grammar.grammar import (
    Grammar,
    check_rulebook,
    fields_of,
    same_fields,
    trusted_grammar,
    under,
)
from laconic.rulebook import Rulebook
from laconic.show import how_many


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Grammars:
    """The grammars of many documents over one alphabet, laid end to end; immutable and checked.

    Document i has rules[rule_offsets[i]:rule_offsets[i + 1]] (int32 [ΣR, 2]), numbered from
    alphabet_size again, and sequence[sequence_offsets[i]:sequence_offsets[i + 1]] (int32 [Σn']).
    Offsets are int64 [N + 1]. With a `rulebook` of S rules, its symbols come after the terminals,
    and documents number their own rules from alphabet_size + S. Raises GrammarError for anything
    else, with the document where one is to blame. A document taken out, grammars[i], is a view: it
    keeps the whole batch in memory.

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
    rulebook: Rulebook | None = None

    def __init__(
        self,
        alphabet_size: int,
        rules: npt.ArrayLike,
        rule_offsets: npt.ArrayLike,
        sequence: npt.ArrayLike,
        sequence_offsets: npt.ArrayLike,
        rulebook: Rulebook | None = None,
    ) -> None:
        all_rules, all_symbols = pairs(rules), row(sequence, "sequence", np.int32)
        self.__dict__.update(
            alphabet_size=alphabet_size_of(alphabet_size),
            rules=all_rules,
            rule_offsets=offsets(rule_offsets, "rule_offsets", len(all_rules)),
            sequence=all_symbols,
            sequence_offsets=offsets(sequence_offsets, "sequence_offsets", len(all_symbols)),
            rulebook=rulebook,
        )
        check_rulebook(rulebook, self.alphabet_size)
        if len(self.rule_offsets) != len(self.sequence_offsets):
            raise GrammarError(
                f"rule_offsets are for {len(self.rule_offsets) - 1} documents, "
                f"sequence_offsets for {len(self.sequence_offsets) - 1}"
            )
        self.core.check()
        _ = self.expanded_lengths  # As in Grammar: a document too long to count is refused here.

    @classmethod
    def concatenate(cls, grammars: Iterable[Grammar | Grammars]) -> Grammars:
        """Return grammars over one alphabet and rulebook as one; GrammarError if they differ."""
        parts = list(grammars)
        if not all(isinstance(part, (Grammar, Grammars)) for part in parts):
            raise TypeError("concatenate takes Grammar and Grammars only")
        sizes = sorted({part.alphabet_size for part in parts})
        if len(sizes) != 1:
            raise GrammarError(f"grammars over one alphabet are wanted, these are over {sizes}")
        rulebook = parts[0].rulebook
        if any(part.rulebook != rulebook for part in parts):
            raise GrammarError("grammars under one rulebook are wanted, these are under several")

        def joined(name: str, array: str) -> Int64s:
            sizes = [np.diff(getattr(part, name, [0, len(getattr(part, array))])) for part in parts]
            return np.cumsum(np.concatenate([[0], *sizes]), dtype=np.int64)

        return trusted_grammars(
            sizes[0],
            np.concatenate([part.rules for part in parts]),
            joined("rule_offsets", "rules"),
            np.concatenate([part.sequence for part in parts]),
            joined("sequence_offsets", "sequence"),
            rulebook=rulebook,
        )

    @cached_property
    def core(self) -> _core.Grammars:
        """The grammars as the core takes them."""
        return _core_of(self.alphabet_size, self._arrays, self.rulebook)

    @cached_property
    def expanded_lengths(self) -> Int64s:
        """The number of terminals of each document, int64 [N]."""
        return self.core.expanded_lengths()

    @property
    def nbytes(self) -> int:
        """The bytes that its arrays take."""
        return sum(each.nbytes for each in self._arrays)

    @property
    def _arrays(self) -> tuple[npt.NDArray[Any], ...]:
        return self.rules, self.rule_offsets, self.sequence, self.sequence_offsets

    @property
    def packed_bits(self) -> Int64s:
        """The bits each document takes at ⌈log2(alphabet_size + S + R)⌉ per symbol, int64 [N].

        This is what a plain array of fixed-width integers needs, without any entropy coding.
        """
        rules, symbols = np.diff(self.rule_offsets), np.diff(self.sequence_offsets)
        first = self.alphabet_size if self.rulebook is None else self.rulebook.size
        width = np.ceil(np.log2(np.maximum(2, first + rules))).astype(np.int64)
        bits: Int64s = (2 * rules + symbols) * width
        return bits

    @property
    def over_shared(self) -> Grammars:
        """The same documents, in which symbols of the rulebook are taken for terminals."""
        if self.rulebook is None:
            return self
        return trusted_grammars(self.rulebook.size, *self._arrays)

    def take(self, rows: npt.ArrayLike) -> Grammars:
        """Return a copy of some documents, integers [K], in that order; -1 is the last.

        Raises IndexError outside the documents. O(K + rules and symbols taken).
        """
        wanted = row_numbers(rows, len(self))
        rules, rule_offsets = gathered(self.rules, self.rule_offsets, wanted)
        symbols, symbol_offsets = gathered(self.sequence, self.sequence_offsets, wanted)
        return trusted_grammars(
            self.alphabet_size, rules, rule_offsets, symbols, symbol_offsets, rulebook=self.rulebook
        )

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
        return trusted_grammar(self.alphabet_size, rules, sequence, self.rulebook)

    def __iter__(self) -> Iterator[Grammar]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return (
            f"<Grammars: {how_many(len(self), 'document')}, "
            f"{how_many(sum(self.expanded_lengths.tolist()), 'terminal')} as sequences of "
            f"{how_many(len(self.sequence), 'symbol')} and {how_many(len(self.rules), 'rule')}"
            f"{under(self.rulebook)}>"
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grammars):
            return NotImplemented
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash((self.alphabet_size, self.rules.tobytes(), self.sequence.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return Grammars, tuple(fields_of(self).values())

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
            rulebook=self.rulebook,
        )


def trusted_grammars(
    alphabet_size: int, *arrays: npt.NDArray[Any], rulebook: Rulebook | None = None
) -> Grammars:
    """As trusted_grammar, of new arrays in the order of the fields of Grammars."""
    return grammars_of(_core_of(alphabet_size, map(frozen, arrays), rulebook), rulebook)


def _core_of(
    alphabet_size: int, arrays: Iterable[npt.NDArray[Any]], rulebook: Rulebook | None
) -> _core.Grammars:
    rules, rule_offsets, sequence, sequence_offsets = arrays
    shared = None if rulebook is None else rulebook.core
    return _core.Grammars(alphabet_size, rules, rule_offsets, sequence, sequence_offsets, shared)


def grammars_of(core: _core.Grammars, rulebook: Rulebook | None) -> Grammars:
    """Return what the core wrote, under that rulebook, which needs no check."""
    grammars = object.__new__(Grammars)
    grammars.__dict__.update(
        core=core,
        alphabet_size=core.alphabet_size,
        rules=core.rules,
        rule_offsets=core.rule_offsets,
        sequence=core.sequence,
        sequence_offsets=core.sequence_offsets,
        rulebook=rulebook,
    )
    return grammars
