"""A grammar for people to read: its rules, what they stand for and how often they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TextIO

import numpy as np

from laconic import _core

if TYPE_CHECKING:
    from laconic.alphabet import Alphabet
    from laconic.arrays import Int32s, Int64s
    from laconic.grammar import Grammar
    from laconic.rulebook import Rulebook

_PREVIEW = 40  # terminals of an expansion that are shown
_DEEPEST = 40  # level of a tree that is shown


def how_many(count: int, thing: str, things: str | None = None) -> str:
    """Return a number of things in words.

    >>> how_many(1, "rule"), how_many(1200, "rule"), how_many(3, "class", "classes")
    ('1 rule', '1,200 rules', '3 classes')
    """
    return f"{count:,} {thing if count == 1 else things or thing + 's'}"


class Rules(NamedTuple):
    """Rules to be spelled: row k defines alphabet_size + k; without an alphabet, in numbers."""

    alphabet_size: int
    rules: Int32s
    lengths: Int64s
    alphabet: Alphabet | None

    def symbol(self, symbol: int) -> str:
        """Return a terminal's letter, quoted if nobody could see it, or a rule's number."""
        if self.alphabet is None or symbol >= self.alphabet_size:
            return str(symbol)
        letter = self.alphabet.decode_bytes([symbol]).decode(errors="backslashreplace")
        return letter if letter.isprintable() and not letter.isspace() else repr(letter)

    def expansion(self, k: int) -> str:
        """Return what rule k stands for, quoted; a long one is cut."""
        length = self.lengths[k]
        symbol, starts = np.array([self.alphabet_size + k], np.int32), np.array([0, length])
        end = min(int(length), _PREVIEW)
        alone = _core.Grammar(self.alphabet_size, self.rules, symbol)
        terminals = alone.expand(self.lengths, starts, 0, end)
        more = "…" if end < length else ""
        if self.alphabet is None:
            return " ".join(map(str, terminals.tolist())) + more
        return repr(self.alphabet.decode_bytes(terminals).decode(errors="replace")) + more

    def print_table(
        self, order: Int64s, used: Int64s | None, rows: int, file: TextIO | None
    ) -> None:
        """Print the first `rows` of some rules, with how often they are used if that is known."""
        shown = max(0, min(rows, len(order)))
        if shown:
            table = [["symbol", *([] if used is None else ["used"]), "length", "rule", "expansion"]]
            for k in order[:shown].tolist():
                times = [] if used is None else [used[k]]
                figures = map(str, (self.alphabet_size + k, *times, self.lengths[k]))
                rule = " ".join(map(self.symbol, self.rules[k].tolist()))
                table.append([*figures, rule, self.expansion(k)])
            widths = [max(map(len, column)) for column in zip(*table, strict=True)]
            for *numbers, rule, expansion in table:
                line = [word.rjust(width) for word, width in zip(numbers, widths, strict=False)]
                print(*line, rule.ljust(widths[-2]), expansion, sep="  ", file=file)
        if shown < len(order):
            print(f"and {how_many(len(order) - shown, 'more rule')}", file=file)


def print_rules(
    grammar: Grammar, alphabet: Alphabet | None, rows: int, file: TextIO | None
) -> None:
    """Print up to `rows` rules, those used most first; without an alphabet, as numbers."""
    print(repr(grammar), file=file)
    used = grammar.occurrences
    order = np.argsort(-used, kind="stable")
    # Of shared rules, most are other documents'.
    order = order[(used[order] > 0) | (order >= len(used) - len(grammar.rules))]
    rules_of(grammar, alphabet).print_table(order, used, rows, file)


def print_shared(rulebook: Rulebook, rows: int, file: TextIO | None) -> None:
    """Print the first `rows` rules of a rulebook."""
    print(repr(rulebook), file=file)
    lengths, alphabet = rulebook.expanded_lengths, rulebook.alphabet
    shared = Rules(alphabet.size, rulebook.rules, lengths, alphabet)
    shared.print_table(np.arange(len(lengths)), None, rows, file)


def rules_of(grammar: Grammar, alphabet: Alphabet | None) -> Rules:
    """Return all rules of a grammar, to be spelled."""
    return Rules(grammar.alphabet_size, grammar.all_rules, grammar.expanded_lengths, alphabet)


def print_tree(
    grammar: Grammar, alphabet: Alphabet | None, rows: int, file: TextIO | None = None
) -> None:
    """Print the first `rows` symbols of the sequence as trees, each rule in full only once.

    >>> from laconic import Alphabet, compress
    >>> print_tree(compress("aababcababcabcd", min_count=3), Alphabet.bytes(), rows=3)
    a
    256 'ab'
      a
      b
    257 'abc'
      256 'ab' (as above)
      c
    and 4 more symbols
    """
    rules = rules_of(grammar, alphabet)
    seen: set[int] = set()
    shown = grammar.sequence[: max(0, rows)].tolist()
    waiting = [(symbol, 0) for symbol in reversed(shown)]
    while waiting:
        symbol, depth = waiting.pop()
        line = "  " * depth + rules.symbol(symbol)
        k = symbol - grammar.alphabet_size
        if k >= 0:
            line += " " + rules.expansion(k)
            if k in seen or depth == _DEEPEST:
                line += " (as above)" if k in seen else " (deeper)"
            else:
                seen.add(k)
                left, right = grammar.all_rules[k].tolist()
                waiting += [(right, depth + 1), (left, depth + 1)]
        print(line, file=file)
    if len(shown) < len(grammar.sequence):
        print(f"and {how_many(len(grammar.sequence) - len(shown), 'more symbol')}", file=file)
