"""Parts of a document as text, though symbols may cut the bytes of a character apart."""

from __future__ import annotations

from collections.abc import Callable

from laconic.alphabet.alphabet import Alphabet, Symbols


def speller(alphabet: Alphabet, terminals: Symbols, inside: bool = False) -> Callable[..., str]:
    """Return a function of i and j: the text of terminals[i:j].

    Where terminals are bytes, a character belongs to the part with its first byte: parts side by
    side are then the document, whatever its symbols do to the bytes of a character. `inside`: there
    is text before the first terminal, which may be within a character of that.

    >>> spell = speller(Alphabet.bytes(), Alphabet.bytes().encode("né"))
    >>> spell(0, 2), spell(2, 3)
    ('né', '')
    """
    if alphabet.characters is not None:
        text = alphabet.decode(terminals)
        return lambda i, j: text[i:j]
    data = alphabet.decode_bytes(terminals)

    def forward(place: int) -> int:
        end = min(place + 3, len(data)) if place or inside else 0
        while place < end and data[place] & 0xC0 == 0x80:
            place += 1
        return place

    return lambda i, j: data[forward(i) : forward(j)].decode(errors="replace")
