"""A grammar for people to read: its rules, what they stand for and how often they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

import numpy as np

from laconic import _core

if TYPE_CHECKING:
    from laconic.alphabet import Alphabet
    from laconic.arrays import Int64s
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


def print_rules(
    grammar: Grammar, alphabet: Alphabet | None, rows: int, file: TextIO | None
) -> None:
    """Print up to `rows` rules, those used most first; without an alphabet, as numbers."""
    print(repr(grammar), file=file)
    _print_table(grammar, alphabet, grammar.occurrences, rows, file)


def print_shared(rulebook: Rulebook, rows: int, file: TextIO | None) -> None:
    """Print the first `rows` rules of a rulebook."""
    print(repr(rulebook), file=file)
    _print_table(rulebook, rulebook.alphabet, None, rows, file)


def _print_table(
    grammar: Grammar | Rulebook,
    alphabet: Alphabet | None,
    used: Int64s | None,
    rows: int,
    file: TextIO | None,
) -> None:
    """Print up to `rows` rules, those used most first if that is known."""
    count = len(grammar.rules)
    shown = max(0, min(rows, count))
    order = np.arange(count) if used is None else np.argsort(-used, kind="stable")
    if shown:
        table = [["symbol", *([] if used is None else ["used"]), "length", "rule", "expansion"]]
        for k in order[:shown].tolist():
            rule = " ".join(_symbol(s, grammar, alphabet) for s in grammar.rules[k].tolist())
            times = [] if used is None else [used[k]]
            figures = map(str, (grammar.alphabet_size + k, *times, grammar.expanded_lengths[k]))
            table.append([*figures, rule, _expansion(k, grammar, alphabet)])
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for *numbers, rule, expansion in table:
            line = [word.rjust(width) for word, width in zip(numbers, widths, strict=False)]
            print(*line, rule.ljust(widths[-2]), expansion, sep="  ", file=file)
    if shown < count:
        print(f"and {how_many(count - shown, 'more rule')}", file=file)


def _symbol(symbol: int, grammar: Grammar | Rulebook, alphabet: Alphabet | None) -> str:
    if alphabet is None or symbol >= grammar.alphabet_size:
        return str(symbol)
    letter = alphabet.decode_bytes([symbol]).decode(errors="backslashreplace")
    return letter if letter.isprintable() and not letter.isspace() else repr(letter)


def _expansion(k: int, grammar: Grammar | Rulebook, alphabet: Alphabet | None) -> str:
    size, lengths = grammar.alphabet_size, grammar.expanded_lengths
    symbol, starts = np.array([size + k], np.int32), np.array([0, lengths[k]], np.int64)
    end = min(int(lengths[k]), _PREVIEW)
    alone = _core.Grammar(size, grammar.rules, symbol)
    terminals = alone.expand(lengths, starts, 0, end)
    more = "…" if end < lengths[k] else ""
    if alphabet is None:
        return " ".join(map(str, terminals.tolist())) + more
    return repr(alphabet.decode_bytes(terminals).decode(errors="replace")) + more


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
    seen: set[int] = set()
    shown = grammar.sequence[: max(0, rows)].tolist()
    waiting = [(symbol, 0) for symbol in reversed(shown)]
    while waiting:
        symbol, depth = waiting.pop()
        line = "  " * depth + _symbol(symbol, grammar, alphabet)
        k = symbol - grammar.alphabet_size
        if k >= 0:
            line += " " + _expansion(k, grammar, alphabet)
            if k in seen or depth == _DEEPEST:
                line += " (as above)" if k in seen else " (deeper)"
            else:
                seen.add(k)
                left, right = grammar.rules[k].tolist()
                waiting += [(right, depth + 1), (left, depth + 1)]
        print(line, file=file)
    if len(shown) < len(grammar.sequence):
        print(f"and {how_many(len(grammar.sequence) - len(shown), 'more symbol')}", file=file)
