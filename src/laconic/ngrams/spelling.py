"""How terminals are read as letters of n-grams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic.alphabet import Alphabet
from laconic.arrays import frozen
from laconic.errors import InputError

UInt32s: TypeAlias = npt.NDArray[np.uint32]
_COMPLEMENTS = dict(zip("ACGTRYKMBVDHacgtrykmbvdh", "TGCAYRMKVBHDtgcayrmkvbhd", strict=True))
_ASCII_SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f "


@dataclass(frozen=True, eq=False)
class Letters:
    """How terminals are read: the code point of each, and what is done to the text they spell.

    `codes` is uint32 [alphabet_size]. With `spaces`, bool [alphabet_size], a run of two or more
    of them is one blank. With `complements`, uint32 [alphabet_size], the code point of each one's
    complement, an n-gram and its reverse complement are counted as the smaller of the two; equal
    codes have equal complements, and a complement's complement is the code itself.
    Raises ValueError for arrays that are not such.
    """

    codes: UInt32s
    spaces: npt.NDArray[np.bool_] | None = None
    complements: UInt32s | None = None

    def __post_init__(self) -> None:
        for name in ("codes", "spaces", "complements"):
            array = getattr(self, name)
            dtype = np.bool_ if name == "spaces" else np.uint32
            if array is None and name != "codes":
                continue
            if not isinstance(array, np.ndarray) or array.dtype != dtype:
                raise InputError(f"{name} must be an array of {dtype.__name__}")
            if array.shape != (len(self.codes),) or len(array) == 0:
                raise InputError(f"{name} must have one entry for each terminal, and one at least")
            surrogates = (array >= 0xD800) & (array < 0xE000)
            if name != "spaces" and ((array > 0x10FFFF) | surrogates).any():
                raise InputError(f"{name} must be code points of characters, not surrogates")
            # Nobody may change what the core, without the GIL, trusts.
            object.__setattr__(self, name, frozen(np.array(array, order="C")))
        if self.complements is None:
            return
        pairs = np.stack([self.codes, self.complements], 1)
        both = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
        if len(np.unique(both[:, 0])) != len(both):
            raise InputError("each code needs one complement, whose complement is the code itself")

    def __reduce__(self) -> tuple[Any, ...]:
        return Letters, (self.codes, self.spaces, self.complements)

    @cached_property
    def points(self) -> UInt32s:
        """The code points of all letters that n-grams may have, ascending, uint32 [A]."""
        parts = [self.codes]
        if self.spaces is not None:
            parts.append(np.array([ord(" ")], np.uint32))
        if self.complements is not None:
            parts.append(self.complements)
        return frozen(np.unique(np.concatenate(parts)))

    @cached_property
    def table(self) -> _core.LetterTable:
        """What the core is told of all this."""
        # The core numbers letters from 1 in the order of their code points.
        points, spaces = self.points, self.spaces
        others = np.zeros(0, np.uint32)
        if self.complements is not None:
            others = np.searchsorted(points, points).astype(np.uint32) + np.uint32(1)
            codes, images = np.searchsorted(points, [self.codes, self.complements])
            others[codes], others[images] = images + 1, codes + 1
        blank = 0 if spaces is None else int(np.searchsorted(points, ord(" "))) + 1
        return _core.LetterTable(
            frozen((np.searchsorted(points, self.codes) + 1).astype(np.uint32)),
            np.zeros(0, np.uint8) if spaces is None else spaces.view(np.uint8),
            points,
            others,
            blank,
        )


def letters_of(
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
                raise InputError(
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
