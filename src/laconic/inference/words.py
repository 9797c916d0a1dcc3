"""Words of a document, and what their letters add; stretches of letters where there are none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.alphabet import Alphabet
from laconic.grammar import Grammar

Floats: TypeAlias = npt.NDArray[np.float64]
# As rulebooks see words: letters, digits and bytes above 0x7F, or a run of other signs.
_BYTES = re.compile(rb"[\w\x80-\xff]+|\s+|[^\w\s\x80-\xff]+")
_TEXT = re.compile(r"\w+|\s+|[^\w\s]+")
_LONGEST_WORD, _STRETCH = 60, 10


@dataclass(frozen=True, slots=True)
class Word:
    """A word, or what is between two: its text, its place in terminals, what it adds."""

    text: str
    offset: int
    length: int
    score: float
    name: str
    """The text, with the place where that tells more: in DNA."""


@dataclass(frozen=True, slots=True)
class Span:
    """Where a word is in its document, in terminals."""

    begin: int
    end: int
    text: str
    cut: bool
    """Whether it is a stretch of something that is too long for a word."""


def spans_of(alphabet: Alphabet, grammar: Grammar) -> Iterator[Span]:
    """Yield the words of a document, and what is between them, one after the other."""
    terminals = grammar.expand()
    text: Any = alphabet.decode_bytes(terminals)
    pattern: Any = _BYTES
    if alphabet.characters is not None:
        text, pattern = alphabet.decode(terminals), _TEXT
    for found in pattern.finditer(text):
        begin, end = found.span()
        cut = end - begin > _LONGEST_WORD
        while begin < end:
            last = _end_of_stretch(text, begin, end) if cut else end
            part = text[begin:last]
            spelled = part if isinstance(part, str) else part.decode(errors="replace")
            yield Span(begin, last, spelled, cut)
            begin = last


def _end_of_stretch(text: str | bytes, begin: int, end: int) -> int:
    """Return where a stretch ends: before a character, of which UTF-8 has up to four bytes."""
    last = min(begin + _STRETCH, end)
    if isinstance(text, bytes):
        while last < min(begin + _STRETCH + 3, end) and text[last] & 0xC0 == 0x80:
            last += 1
    return last


def words_of(alphabet: Alphabet, grammar: Grammar, scores: Floats) -> Iterator[Word]:
    """Yield a document in words, given the score of each terminal, float64 [n]."""
    sums = np.r_[0, np.cumsum(scores)]
    for each in spans_of(alphabet, grammar):
        name = f"{each.begin}: {each.text}" if each.cut else each.text
        score = float(sums[each.end] - sums[each.begin])
        yield Word(each.text, each.begin, each.end - each.begin, score, name)
