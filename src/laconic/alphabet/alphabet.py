"""The class Alphabet."""

from __future__ import annotations

import builtins
import functools
import json
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.alphabet.text import (
    CODE_POINTS,
    Document,
    as_bytes,
    as_text,
    code_points,
    joined_ascii,
    lower_case,
    many,
)
from laconic.errors import AlphabetError, InputError

Symbols: TypeAlias = npt.NDArray[np.integer[Any]]

# Zhang et al. 2015 list 70 characters and the hyphen twice, so one position is never used. It is
# kept: sizes and weights then agree with other implementations of the list.
_ZHANG = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+-=<>()[]{}\n"
_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_MISSING = 255  # No symbol: only the four letters of DNA refuse a character, so 255 is free.
_CHUNK = 1 << 16  # Characters looked up at a time: their code points stay in the cache.
_LONGEST_JSON = 12 * CODE_POINTS + 1024  # Every character there is, each written as \uXXXX\uXXXX.
_JSON_FIELDS: dict[str, dict[str, type]] = {
    "bytes": {"name": str},
    "zhang": {"name": str},
    "dna": {"name": str, "other": str, "ignore_case": bool},
    "characters": {"name": str, "characters": str, "lowercase": bool},
}


@dataclass(frozen=True, slots=True, repr=False)
class Alphabet:
    """A map between documents and terminals; make one with bytes, zhang, dna, learn or named.

    `name` is "bytes", "zhang", "dna" or "characters". `characters` holds the character that each
    symbol decodes to (None for bytes); `other` is the symbol of whatever else occurs (None where
    that is an error, or cannot be); with `ignore_case` characters are lower-cased, one by one.
    An alphabet of characters gives exactly one symbol per character.

    >>> dna = Alphabet.dna(other="letter")
    >>> dna.encode("GATTACA-").tolist()
    [2, 0, 3, 3, 0, 1, 0, 4]
    >>> dna.decode([2, 0, 3, 3, 0, 1, 0, 4])
    'GATTACAN'
    >>> flat, offsets = Alphabet.bytes().encode_many(["no", "", "né"])
    >>> flat.tolist(), offsets.tolist()
    ([110, 111, 110, 195, 169], [0, 2, 2, 5])
    """

    name: str
    characters: str | None
    other: int | None = None
    ignore_case: bool = False

    @classmethod
    def bytes(cls) -> Alphabet:
        """Return the 256 bytes, the default everywhere: text is read as UTF-8; lossless."""
        return cls("bytes", None)

    @classmethod
    def zhang(cls) -> Alphabet:
        """Return the 70 characters of Zhang et al. 2015 and the blank, symbol 70; lower-cases.

        Whatever else occurs, the space included, becomes the blank, which decodes to a space.
        """
        return cls("zhang", _ZHANG + " ", other=len(_ZHANG), ignore_case=True)

    @classmethod
    def dna(
        cls, other: Literal["error", "letter"] = "error", ignore_case: bool = False
    ) -> Alphabet:
        """Return ACGT; with other="letter" also N, which stands for whatever else occurs.

        That includes acgt, as soft-masked genomes have it, unless `ignore_case` reads them as ACGT.
        Lossless as it stands. Raises AlphabetError for another value of `other`.
        """
        if other not in ("error", "letter"):
            raise AlphabetError(f'other must be "error" or "letter", not {other!r:.40}')
        letters, fifth = ("ACGTN", 4) if other == "letter" else ("ACGT", None)
        return cls("dna", letters, other=fifth, ignore_case=bool(ignore_case))

    @classmethod
    def learn(
        cls,
        texts: Iterable[Document],
        max_size: int | None = None,
        min_count: int = 1,
        lowercase: bool = False,
    ) -> Alphabet:
        """Return the characters of `texts`, most frequent first, ties by code point, + an unknown.

        The unknown is the last symbol and decodes to U+FFFD; lone surrogates are never learned.
        `max_size` bounds the size, the unknown included. O(characters) time, about 14 MB of memory.
        Raises ValueError for max_size or min_count below 1, and as encode_many does for documents.
        """
        if (max_size is not None and max_size < 1) or min_count < 1:
            raise InputError(f"{max_size=} and {min_count=} must be at least 1")
        counts = np.zeros(CODE_POINTS, np.int64)
        for number, document in enumerate(many(texts, "learn")):
            codes = code_points(as_text(document, number))
            np.add.at(counts, lower_case()[codes] if lowercase else codes, 1)
        counts[0xD800:0xE000] = counts[ord(_UNKNOWN)] = 0
        found = np.flatnonzero(counts >= min_count)
        ranked = found[np.argsort(-counts[found], kind="stable")].tolist()
        kept = ranked if max_size is None else ranked[: max_size - 1]
        return cls._of("".join(map(chr, kept)), bool(lowercase))

    @classmethod
    def named(cls, name: str) -> Alphabet:
        """Return the alphabet "bytes", "zhang", "dna" or "dna_n"; ValueError for another name."""
        names = ("bytes", "zhang", "dna", "dna_n")
        if name not in names:
            raise InputError(f"no alphabet is named {name!r}; the names are {', '.join(names)}")
        if name == "bytes":
            return cls.bytes()
        if name == "zhang":
            return cls.zhang()
        # Genomes are masked in lower case: as a fifth letter, half of one would be lost unseen.
        return cls.dna("letter", ignore_case=True) if name == "dna_n" else cls.dna()

    @property
    def size(self) -> int:
        """The number of symbols."""
        return 256 if self.characters is None else len(self.characters)

    @property
    def lossless(self) -> bool:
        """Whether decoding gives back every document that encodes."""
        return self.other is None and not self.ignore_case

    @property
    def dtype(self) -> np.dtype[Any]:
        """The smallest of uint8, uint16 and int32 that holds every symbol."""
        small = np.uint8 if self.size <= 1 << 8 else np.uint16
        return np.dtype(small if self.size <= 1 << 16 else np.int32)

    def encode(self, document: Document) -> Symbols:
        """Return the symbols of one document, read-only, `dtype` [n].

        Bytes given to an alphabet of characters are read as UTF-8. O(n) time and memory. Raises
        AlphabetError with the position of what the alphabet cannot hold; TypeError for other types.
        """
        if self.characters is None:
            return np.frombuffer(as_bytes(document, None), np.uint8)
        return self._look_up(as_text(document, None), None)

    def holds(self, document: Document) -> bool:
        """Return whether a document encodes."""
        try:
            self.encode(document)
        except AlphabetError:
            return False
        return True

    def encode_many(self, documents: Iterable[Document]) -> tuple[Symbols, npt.NDArray[np.int64]]:
        """Return the symbols of all documents in one array, `dtype` [n], and offsets int64 [N + 1].

        Document k is symbols[offsets[k]:offsets[k + 1]]. Read-only; costs and errors as encode's,
        the errors with the number of the document, from 0.
        """
        documents = list(many(documents, "encode_many"))
        if self.characters is None and (joined := joined_ascii(documents)) is not None:
            return np.frombuffer(joined.encode(), np.uint8), _offsets(documents)
        numbered = enumerate(documents)
        if self.characters is None:
            parts = [as_bytes(document, number) for number, document in numbered]
            return np.frombuffer(b"".join(parts), np.uint8), _offsets(parts)
        texts = [as_text(document, number) for number, document in numbered]
        offsets = _offsets(texts)
        return self._look_up("".join(texts), offsets), offsets

    def encode_utf8(
        self, data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64]
    ) -> tuple[Symbols, npt.NDArray[np.int64]]:
        """Return what encode_many does for the documents data[offsets[k]:offsets[k + 1]].

        They are bytes for Alphabet.bytes(), which takes them as they are, and UTF-8 for others.
        """
        if self.characters is None:
            return data, offsets
        if data.size == 0 or int(data.max()) < 0x80:
            symbols = _symbol_table(self)[:0x80].take(data)
            symbols.flags.writeable = False
            self._refuse_missing(symbols, lambda index: chr(data[index]), offsets)
            return symbols, offsets
        ends = offsets.tolist()
        return self.encode_many([data[i:j].tobytes() for i, j in pairwise(ends)])

    def decode(self, symbols: npt.ArrayLike) -> str:
        """Return the text of `symbols`, integers [n], in O(n).

        Raises AlphabetError with the position for what is not a symbol, and for bytes that are not
        UTF-8.
        """
        if self.characters is not None:
            codes = code_points(self.characters)[self._checked(symbols)]
            return codes.tobytes().decode("utf-32-le")
        data = self.decode_bytes(symbols)
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            reason = (
                f"the bytes are not UTF-8 ({error.reason}); use decode_bytes, or Grammar.to_bytes"
            )
            raise AlphabetError(reason, position=error.start) from None

    def decode_bytes(self, symbols: npt.ArrayLike) -> builtins.bytes:
        """Return the bytes of `symbols`, integers [n], or the UTF-8 of their characters, in O(n).

        Raises AlphabetError with the position for what is not a symbol.
        """
        if self.characters is not None:
            return self.decode(symbols).encode()
        return self._checked(symbols).astype(np.uint8, copy=False).tobytes()

    def to_json(self) -> str:
        """Return the alphabet as one small JSON object, in ASCII; from_json reads it back."""
        fields: dict[str, object] = {"name": self.name}
        if self.name == "dna":
            fields["other"] = "error" if self.other is None else "letter"
            fields["ignore_case"] = self.ignore_case
        elif self.name == "characters" and self.characters is not None:
            fields["characters"] = self.characters[:-1]
            fields["lowercase"] = self.ignore_case
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: str) -> Alphabet:
        """Return the alphabet that to_json wrote; AlphabetError for any other text."""
        fields = _json_fields(text)
        match fields.pop("name"):
            case "characters":
                return cls._of(**fields)
            case "dna":
                return cls.dna(**fields)
            case name:
                return cls.named(name)

    def __repr__(self) -> str:
        """Return the call that makes the alphabet, or a summary of one that was learned."""
        if self.name == "characters" and self.characters is not None:
            shown = self.characters[:-1] if self.size <= 33 else self.characters[:32] + "…"
            lowercase = ", lowercase" if self.ignore_case else ""
            return f"<Alphabet of {self.size} characters, {shown!r} and the unknown{lowercase}>"
        options = {"other='letter'": self.other is not None, "ignore_case=True": self.ignore_case}
        shown = ", ".join(text for text, on in options.items() if on and self.name == "dna")
        return f"Alphabet.{self.name}({shown})"

    @classmethod
    def _of(cls, characters: str, lowercase: bool) -> Alphabet:
        if len(characters) > CODE_POINTS:
            raise AlphabetError(f"characters: {len(characters)} are more than Unicode has")
        seen: set[str] = set()
        for position, character in enumerate(characters):
            if character == _UNKNOWN or "\ud800" <= character <= "\udfff":
                # Two surrogates side by side would come back from JSON as one character.
                reason = "U+FFFD stands for the unknown, and surrogates are no characters"
                raise AlphabetError(f"characters: {character!r}: {reason}", position=position)
            if character in seen:
                raise AlphabetError(f"characters: {character!r} occurs twice", position=position)
            seen.add(character)
        return cls("characters", characters + _UNKNOWN, len(characters), lowercase)

    def _look_up(self, text: str, offsets: npt.NDArray[np.int64] | None) -> Symbols:
        table = _symbol_table(self)
        symbols = np.empty(len(text), self.dtype)
        for start in range(0, len(text), _CHUNK):
            chunk = slice(start, start + _CHUNK)
            symbols[chunk] = table.take(code_points(text[chunk]))
        symbols.flags.writeable = False
        self._refuse_missing(symbols, lambda index: text[index], offsets)
        return symbols

    def _refuse_missing(
        self,
        symbols: Symbols,
        character_at: Callable[[int], str],
        offsets: npt.NDArray[np.int64] | None,
    ) -> None:
        # argmax gives the first of equals, and no symbol is greater than _MISSING.
        index = int(symbols.argmax()) if self.other is None and symbols.size else -1
        if index < 0 or symbols[index] != _MISSING:
            return
        character = character_at(index)
        reason = f"{character!r} is not in the alphabet {self.name!r} ({self.characters}); "
        if character in "acgt":
            reason += f"Alphabet.dna(ignore_case=True) reads it as {character.upper()!r}"
        else:
            reason += "the alphabet 'dna_n' reads it as a fifth letter"
        if offsets is None:
            raise AlphabetError(reason, position=index)
        number = int(np.searchsorted(offsets, index, side="right")) - 1
        raise AlphabetError(reason, document=number, position=index - int(offsets[number]))

    def _checked(self, symbols: npt.ArrayLike) -> Symbols:
        try:
            array = np.asarray(symbols)
        except ValueError:
            raise AlphabetError("symbols must be one row of integers, not ragged") from None
        if array.ndim != 1:
            raise AlphabetError(f"symbols must be one row of integers, not of shape {array.shape}")
        if array.dtype.kind not in "iu":
            # The elements as given: NumPy turns [1, "a"] and [-1, 2**63] into other types.
            array = np.asarray(symbols, dtype=object)
            for position, symbol in enumerate(array):
                whole = isinstance(symbol, (int, np.integer)) and not isinstance(symbol, bool)
                if not whole or int(symbol).bit_length() > 64:
                    reason = f"a symbol is a 64-bit integer, not this {type(symbol).__name__}"
                    raise AlphabetError(reason, position=position)
        outside = (array < 0) | (array >= self.size)
        if outside.any():
            position = int(outside.argmax())
            reason = f"symbol {array[position]} is not one of {self!r}: 0..{self.size - 1}"
            raise AlphabetError(reason, position=position)
        return array.astype(self.dtype, copy=False)


def as_alphabet(alphabet: str | Alphabet) -> Alphabet:
    """Return `alphabet` itself, or the one of that name; ValueError for an unknown name."""
    return alphabet if isinstance(alphabet, Alphabet) else Alphabet.named(alphabet)


@functools.lru_cache(maxsize=8)
def _symbol_table(alphabet: Alphabet) -> Symbols:
    # Kept outside the alphabet, so that pickles sent to workers stay small.
    codes = code_points(alphabet.characters or "")
    if alphabet.ignore_case:
        codes = lower_case()[codes]
    other = _MISSING if alphabet.other is None else alphabet.other
    table: Symbols = np.full(CODE_POINTS, other, alphabet.dtype)
    # Backwards, so that the first of two equal characters wins.
    table[codes[::-1]] = np.arange(alphabet.size)[::-1]
    return table[lower_case()] if alphabet.ignore_case else table


def _offsets(parts: Sequence[Sized]) -> npt.NDArray[np.int64]:
    offsets = np.zeros(len(parts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, parts), np.int64, len(parts)), out=offsets[1:])
    offsets.flags.writeable = False
    return offsets


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise AlphabetError("a key occurs twice")
    return dict(pairs)


def _json_fields(text: str) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > _LONGEST_JSON:
        raise AlphabetError(f"alphabet JSON: must be str of at most {_LONGEST_JSON} characters")
    try:
        fields = json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise AlphabetError(f"alphabet JSON: {error}") from None
    if not isinstance(fields, dict):
        raise AlphabetError("alphabet JSON: must be an object")
    name = fields.get("name")
    if not isinstance(name, str) or name not in _JSON_FIELDS:
        raise AlphabetError(f'alphabet JSON: "name" must be one of {", ".join(_JSON_FIELDS)}')
    types = _JSON_FIELDS[name]
    for key in sorted(types.keys() ^ fields.keys()):
        problem = "is missing" if key in types else "is not a key"
        raise AlphabetError(f"alphabet JSON: {key!r:.40} {problem}")
    for key, kind in types.items():
        if not isinstance(fields[key], kind):
            raise AlphabetError(f'alphabet JSON: "{key}" must be {kind.__name__}')
    return fields
