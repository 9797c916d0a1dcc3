"""Rulebook: rules that the documents of a data set share, learned once from those that train."""

from __future__ import annotations

import base64
import functools
import hashlib
import heapq
import json
import unicodedata
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any, Literal, TextIO, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from laconic import _core
from laconic.alphabet import Alphabet, Document, as_alphabet
from laconic.arrays import Int32s, Int64s, frozen, is_integer, pairs
from laconic.errors import GrammarError, InputError, VersionError
from laconic.files import AnyPath, check_version, read_json, write_text
from laconic.show import how_many, print_shared
from laconic.threads import threads_of

Boundary: TypeAlias = Literal["phrases", "words", "none"]

RULES = 4096
"""How many are learned, if there are as many texts of four letters."""

SAMPLE = 1 << 28
"""Letters from which a rulebook is learned, at most; of more, random documents are taken."""
_VERSION = 2  # 1 if all rules keep within words, or none
_MOST = 0xFFFFFFFF
_MOST_UNPACKED = 1 << 27  # bytes of rules in metadata
_LONGEST = 1 << 20  # letters of a symbol that are spelled
_SPACE, _BLANK, _LETTER, _MARK = range(4)  # as WordKind in core/words.hpp


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Rulebook:
    """Rules that documents share: rule k defines symbol alphabet.size + k by two smaller symbols.

    A document is parsed rule by rule: each replaces its pair wherever it is found from left to
    right, as when it was learned, so that like words are cut alike in all documents. The first
    `within` rules (by default all) cross no words, and come before the others, which may. A word is
    a run of letters, digits and bytes above 0x7F, or a run of other signs, each with the blank
    before it if there is one; white space that is left over is a word, too. `rules` is int32
    [S, 2], read-only. Immutable. Raises GrammarError for arrays that are no such rules, two that
    are alike included.

    >>> book = Rulebook.learn(["the hen", "then the hens"], rules=8)
    >>> [book.text(symbol) for symbol in range(256, 256 + len(book))]
    ['he', 'the', ' he', ' hen', 'the hen']
    >>> symbols, offsets = book.parse(["the other hen"])
    >>> [book.text(symbol) for symbol in symbols.tolist()]
    ['the', ' ', 'o', 'the', 'r', ' hen']
    """

    alphabet: Alphabet
    rules: Int32s
    within: int
    documents: int = field(default=0)
    """From how many documents it was learned; 0 if that is not known."""

    def __init__(
        self,
        alphabet: str | Alphabet,
        rules: npt.ArrayLike,
        within: int | None = None,
        documents: int = 0,
    ) -> None:
        made = pairs(rules)
        within = len(made) if within is None else within
        if not is_integer(within) or not 0 <= within <= len(made):
            raise InputError(f"within must be from 0 to {len(made)} rules, not {within!r:.40}")
        if not is_integer(documents) or documents < 0:
            raise InputError(f"documents must be an integer of at least 0, not {documents!r:.40}")
        self.__dict__.update(
            alphabet=as_alphabet(alphabet),
            rules=made,
            within=int(within),
            documents=int(documents),
        )
        _ = self.core  # which checks the rules

    @classmethod
    def learn(
        cls,
        documents: Iterable[Document],
        rules: int | None = None,
        *,
        alphabet: str | Alphabet = "bytes",
        min_documents: int = 2,
        boundary: Boundary = "phrases",
        max_expansion: int | None = None,
        sample: int = SAMPLE,
        seed: int = 0,
        threads: int | None = None,
    ) -> Rulebook:
        """Return up to `rules` rules of Re-Pair over all documents at once, never across two.

        With the boundary "phrases" half of the rules are learned within words, and then the others
        over what these leave, so that they may join words; with "words" no rule crosses words, with
        "none" any may. By default there are 4096 rules, or as many as there are texts of four
        letters if these are fewer: 256 for DNA, where longer rules would be chance.

        The most frequent pair is replaced everywhere, again and again, while there is one that
        occurs twice, in at least `min_documents` documents, and stands for at most
        `max_expansion` terminals. Occurrences do not overlap; ties go to the pair that came to be
        first, of those to the leftmost, as if the documents were one after the other.

        Documents are read once, and of more than `sample` letters random ones are kept, chosen by
        `seed`. The result does not depend on `threads`. O(letters) time on real text; memory is
        the distinct words', without a boundary about 20 bytes a letter.
        Raises as Alphabet.encode_many does for documents, ValueError for other arguments.
        """
        alphabet = as_alphabet(alphabet)
        if boundary not in get_args(Boundary):
            raise InputError(f'boundary must be "phrases", "words" or "none", not {boundary!r:.40}')
        for name, value, least in (
            ("rules", RULES if rules is None else rules, 0),
            ("min_documents", min_documents, 1),
            ("max_expansion", _MOST if max_expansion is None else max_expansion, 1),
            ("sample", sample, 1),
        ):
            if not is_integer(value) or value < least:
                raise InputError(f"{name} must be an integer of at least {least}, not {value!r}")
        kept = _sample(documents, sample, seed)
        symbols, offsets = alphabet.encode_many(kept)
        letters = int(np.count_nonzero(np.bincount(symbols)))
        most = min(RULES, letters**4) if rules is None else rules
        most = min(most, (1 << 31) - 1 - alphabet.size)

        def learned(text: npt.NDArray[Any], offsets: Int64s, known: Int32s, within: bool) -> Int32s:
            wanted = most // 2 if within and boundary == "phrases" else most - len(known)
            return _core.learn_rules(
                text,
                offsets,
                alphabet.size + len(known),
                known,
                _kinds(alphabet) if within else np.zeros(0, np.uint8),
                wanted,
                min(min_documents, _MOST),
                _MOST if max_expansion is None else min(max_expansion, _MOST),
                threads_of(threads),
            )

        made = np.zeros((0, 2), np.int32)
        if boundary != "none":
            made = learned(symbols, offsets, made, within=True)
        within = len(made)
        if boundary != "words":
            if within:  # else the text is as it was, and bytes take a quarter of symbols' memory
                symbols, offsets = cls(alphabet, made)._parse(symbols, offsets, threads)
            made = np.concatenate([made, learned(symbols, offsets, made, within=False)])
        return cls(alphabet, made, within, len(kept))

    def __len__(self) -> int:
        """The number of rules."""
        return len(self.rules)

    @property
    def alphabet_size(self) -> int:
        """The number of terminals."""
        return self.alphabet.size

    @property
    def size(self) -> int:
        """The number of symbols, terminals included: the first that documents may define."""
        return self.alphabet.size + len(self.rules)

    @cached_property
    def core(self) -> _core.Rulebook:
        """The rulebook as the core takes it."""
        return _core.Rulebook(self.alphabet.size, self.rules, self.within, _kinds(self.alphabet))

    @property
    def boundary(self) -> str | int:
        """What files say: "words" or "none", or how many of the first rules keep within words."""
        return {len(self.rules): "words", 0: "none"}.get(self.within, self.within)

    @property
    def crossing(self) -> str:
        """How its rules stand to words, in words."""
        if self.within == len(self.rules):
            return "within words"
        return f"{self.within:,} of them within words" if self.within else "across words"

    @cached_property
    def expanded_lengths(self) -> Int64s:
        """The number of terminals that each rule stands for, int64 [S]; 2^63 - 1 means more."""
        return _core.Grammar(
            self.alphabet.size, self.rules, np.zeros(0, np.int32)
        ).expanded_lengths()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the alphabet, the boundary and the rules, in hexadecimal."""
        head = json.dumps([json.loads(self.alphabet.to_json()), self.boundary], sort_keys=True)
        return hashlib.sha256(head.encode() + self.rules.astype("<i4").tobytes()).hexdigest()

    def parse(
        self, documents: Iterable[Document], threads: int | None = None
    ) -> tuple[Int32s, Int64s]:
        """Return the symbols of documents, end to end, int32 [Σn'], and offsets, int64 [N + 1].

        Document k is symbols[offsets[k]:offsets[k + 1]]. O(n log n) at worst for each.
        """
        return self._parse(*self.alphabet.encode_many(documents), threads)

    def _parse(
        self, text: npt.NDArray[Any], offsets: Int64s, threads: int | None
    ) -> tuple[Int32s, Int64s]:
        made = _core.compress_many(
            text,
            offsets,
            self.alphabet.size,
            "none",
            min_count=2,
            max_rules=0,
            max_expansion=1,
            letters_known=True,
            rulebook=self.core,
            threads=threads_of(threads),
        )
        return made.sequence, made.sequence_offsets

    def text(self, symbol: int) -> str:
        r"""Return what a symbol stands for; bytes that are no text by themselves as \x escapes.

        Raises IndexError for what is no symbol, GrammarError for more than a million letters.
        """
        if not 0 <= symbol < self.size:
            raise IndexError(f"symbol {symbol} is not one of 0..{self.size - 1}")
        rule = symbol - self.alphabet.size
        length = 1 if rule < 0 else int(self.expanded_lengths[rule])
        if length > _LONGEST:
            raise GrammarError(f"symbol {symbol} stands for {length} letters: too many to spell")
        alone = _core.Grammar(self.alphabet.size, self.rules, frozen(np.array([symbol], np.int32)))
        ends = frozen(np.array([0, length], np.int64))
        terminals = alone.expand(self.expanded_lengths, ends, 0, length)
        return self.alphabet.decode_bytes(terminals).decode(errors="backslashreplace")

    def show(self, rows: int = 20, file: TextIO | None = None) -> None:
        """Print the first rules with what they stand for.

        >>> Rulebook.learn(["the hen", "then the hens"], 4, boundary="words").show(rows=2)
        <Rulebook: 4 rules over Alphabet.bytes(), within words>
        symbol  length  rule   expansion
           256       2  h e    'he'
           257       3  t 256  'the'
        and 2 more rules
        """
        print_shared(self, rows, file)

    def save(self, path: AnyPath) -> None:
        """Write the rulebook as JSON (FORMAT.md); the file appears when it is whole."""
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: AnyPath) -> Rulebook:
        """Return the rulebook that `save` wrote; InputError with the file if it is none."""
        try:
            return cls._of(read_json(path))
        except VersionError as error:
            raise error.at(file=str(path)) from None
        except InputError as error:
            raise InputError(f"it is no rulebook: {error}", file=str(path)) from None

    def to_json(self) -> str:
        """Return the rulebook as a JSON object, in ASCII; from_json reads it back."""
        fields = {
            "laconic": "rulebook",
            "version": 2 if isinstance(self.boundary, int) else 1,
            "alphabet": json.loads(self.alphabet.to_json()),
            "boundary": self.boundary,
            "documents": self.documents,
            "rules": self.rules.ravel().tolist(),
        }
        return json.dumps(fields, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Rulebook:
        """Return the rulebook that to_json wrote; InputError for any other text."""
        try:
            return cls._of(json.loads(text))
        except RecursionError:
            raise InputError("it is nested too deeply") from None
        except json.JSONDecodeError as error:
            raise InputError(str(error)) from None

    @cached_property
    def packed(self) -> str:
        """The rules in few bytes, as text for metadata: the lowest bytes of all symbols first."""
        columns = self.rules.T.astype("<i4").copy().view(np.uint8).reshape(-1, 4)
        return base64.b64encode(zlib.compress(columns.T.tobytes(), 9)).decode()

    @classmethod
    @functools.lru_cache(maxsize=8)  # all shards of a corpus, and all its tables, have the same
    def unpacked(
        cls, alphabet: Alphabet, packed: str, boundary: str | int, documents: int
    ) -> Rulebook:
        """Return the rulebook whose rules are `packed`; InputError for what no rulebook gives."""
        try:
            unpacker = zlib.decompressobj()
            data = unpacker.decompress(base64.b64decode(packed, validate=True), _MOST_UNPACKED)
        except (ValueError, zlib.error) as error:
            raise InputError(f"its rules cannot be read: {error}") from None
        if len(data) % 8 or not unpacker.eof:
            raise InputError("its rules cannot be read: they are cut short, or too many")
        symbols = np.frombuffer(data, np.uint8).reshape(4, -1).T.copy().view("<i4")
        rules = symbols.reshape(2, -1).T
        return cls(alphabet, rules, _within(boundary, len(rules)), documents)

    @classmethod
    def _of(cls, fields: Any) -> Rulebook:
        if not isinstance(fields, dict) or fields.get("laconic") != "rulebook":
            raise InputError('it is no object with "laconic": "rulebook"')
        check_version(fields.get("version"), _VERSION)
        names = {"laconic", "version", "alphabet", "boundary", "documents", "rules"}
        if set(fields) != names:
            raise InputError(f"its keys must be {', '.join(sorted(names))}")
        rules = fields["rules"]
        if not isinstance(rules, list) or not all(type(symbol) is int for symbol in rules):
            raise InputError("rules must be a list of integers")
        if len(rules) % 2:
            raise InputError("a rule has two symbols, the last has one")
        alphabet = Alphabet.from_json(json.dumps(fields["alphabet"]))
        pairs = [rules[k : k + 2] for k in range(0, len(rules), 2)]
        within = _within(fields["boundary"], len(pairs))
        return cls(alphabet, pairs, within, fields["documents"])

    def __repr__(self) -> str:
        count = how_many(len(self), "rule")
        return f"<Rulebook: {count} over {self.alphabet!r}, {self.crossing}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Rulebook):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[Any, ...]:
        return Rulebook, (self.alphabet, self.rules, self.within, self.documents)


def _within(boundary: Any, rules: int) -> int:
    """Return how many rules keep within words, of so many, as files say it."""
    if type(boundary) is int and 0 < boundary < rules:
        return boundary
    if boundary not in ("words", "none"):
        raise InputError(
            f'boundary must be "words", "none" or a number of the rules, not {boundary!r:.40}'
        )
    return rules if boundary == "words" else 0


def _sample(documents: Iterable[Document], letters: int, seed: int) -> list[Document]:
    """Return all documents or, of more than so many letters, random ones, in their order.

    Each draws a number, and those with the smallest stay: one pass, and never much more than what
    stays in memory. One document at least stays.
    """
    random = Random(seed)
    kept: list[tuple[float, int, Document]] = []  # a heap with the largest number on top
    total = 0
    for number, document in enumerate(documents):
        heapq.heappush(kept, (-random.random(), number, document))
        total += len(document)
        while total > letters and len(kept) > 1:
            total -= len(heapq.heappop(kept)[2])
    return [document for _, _, document in sorted(kept, key=lambda entry: entry[1])]


def _kinds(alphabet: Alphabet) -> npt.NDArray[np.uint8]:
    """Return what each terminal is to words, uint8 [alphabet.size]."""
    if alphabet.characters is None:
        kinds = [_kind(chr(byte)) if byte < 0x80 else _LETTER for byte in range(256)]
    else:
        kinds = [_kind(character) for character in alphabet.characters]
    return frozen(np.array(kinds, np.uint8))


def _kind(character: str) -> int:
    if character.isspace():
        return _BLANK if character == " " else _SPACE
    # Accents that are written by themselves belong to letters.
    is_letter = character.isalnum() or unicodedata.category(character).startswith("M")
    return _LETTER if is_letter else _MARK
