"""Alphabets: documents (text, bytes or DNA) to terminals, the integers 0..size-1, and back."""

from laconic.alphabet.alphabet import Alphabet, Symbols, as_alphabet
from laconic.alphabet.spelling import speller
from laconic.alphabet.text import BYTES_LIKE, Document, as_bytes, as_text
from laconic.errors import AlphabetError

__all__ = [
    "BYTES_LIKE",
    "Alphabet",
    "AlphabetError",
    "Document",
    "Symbols",
    "as_alphabet",
    "as_bytes",
    "as_text",
    "speller",
]
