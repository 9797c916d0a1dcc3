"""Documents as grammars whose letters are known, all at once or some at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from laconic.alphabet import Alphabet, AlphabetError, Document, as_bytes, as_text
from laconic.codecs import Codec, compress_many
from laconic.corpus import Corpus
from laconic.corpus.documents import DocumentSource, documents_of
from laconic.errors import InputError
from laconic.grammar import Grammar, Grammars
from laconic.ngrams import Letters, letters_of

# Grammars, how they are read, and over which alphabet: None for texts that are read exactly.
Block: TypeAlias = tuple[Grammars, Letters, Alphabet | None]
_BLOCK = 1 << 20  # letters of texts, or symbols of grammars, that are a block,
_BLOCK_DOCUMENTS = 1 << 14  # or this many documents
_ASCII = "".join(map(chr, range(128)))


@dataclass(frozen=True, slots=True)
class Preprocessing:
    """How documents become grammars and letters, whose n-grams laconic.ngrams counts.

    Without an alphabet for `texts` they are read exactly, bytes as UTF-8: lower-cased as str.lower
    does it, then compressed over the characters they have. With one they are compressed over it,
    and the other steps are taken on the grammars, as they are for Grammars, which are over
    `alphabet`, by default bytes, and corpora, which bring their own.
    """

    codec: Codec
    alphabet: Alphabet | None
    texts: Alphabet | None
    lowercase: bool
    collapse: bool
    reverse_complement: bool
    threads: int | None

    def whole(
        self, source: DocumentSource
    ) -> tuple[int, Iterable[Grammars], Letters, Alphabet | None]:
        """Return how many documents there are, their grammars, and what a Block has beside them.

        A corpus is read row group by row group. Raises as documents_of, compress_many and letters.
        """
        documents = documents_of(source)
        if isinstance(documents, Corpus):
            parts = (grammars for _, _, grammars in documents.parts())
            return len(documents), parts, self._letters(documents.alphabet), documents.alphabet
        if isinstance(documents, Grammars):
            alphabet = self._alphabet_of(documents)
            return len(documents), [documents], self._letters(alphabet), alphabet
        grammars, read, over = self._compressed(documents, 0)
        return len(documents), [grammars], read, over

    def blocks(self, source: DocumentSource) -> Iterator[Block]:
        """Yield some documents at a time, in order; an iterator or a corpus is held in part.

        Raises as whole does; errors number documents through all blocks.
        """
        documents = source if isinstance(source, Iterator) else documents_of(source)
        if isinstance(documents, Corpus):
            read = self._letters(documents.alphabet)
            for _, table, grammars in documents.parts():
                del table
                for block in _cut(grammars):
                    yield block, read, documents.alphabet
                    del block
                del grammars  # before the next are read
        elif isinstance(documents, Grammars):
            alphabet = self._alphabet_of(documents)
            read = self._letters(alphabet)
            yield from ((block, read, alphabet) for block in _cut(documents))
        else:
            first = 0
            for part in _parts(documents):
                some = documents_of(part, first)
                if isinstance(some, Grammars):
                    alphabet = self._alphabet_of(some)
                    yield some, self._letters(alphabet), alphabet
                elif isinstance(some, list):
                    yield self._compressed(some, first)
                first += len(part)

    def _compressed(self, documents: list[Document], first: int) -> Block:
        if self.texts is None:
            texts = [as_text(each, number) for number, each in enumerate(documents, first)]
            if self.lowercase:
                texts = [text.lower() for text in texts]
            alphabet = _characters(texts, first)
            read = self._letters(alphabet, lowered=True)
            grammars = compress_many(texts, self.codec, alphabet=alphabet, threads=self.threads)
            return grammars, read, None
        read = self._letters(self.texts)
        try:
            grammars = compress_many(
                documents, self.codec, alphabet=self.texts, threads=self.threads
            )
        except AlphabetError as error:
            raise error.at(document=first + (error.document or 0)) from None
        return grammars, read, self.texts

    def _letters(self, alphabet: Alphabet, lowered: bool = False) -> Letters:
        return letters_of(
            alphabet,
            lowercase=self.lowercase and not lowered,
            collapse=self.collapse,
            reverse_complement=self.reverse_complement,
        )

    def _alphabet_of(self, grammars: Grammars) -> Alphabet:
        alphabet = Alphabet.bytes() if self.alphabet is None else self.alphabet
        if grammars.alphabet_size != alphabet.size:
            raise InputError(
                f"the grammars are over {grammars.alphabet_size} terminals, {alphabet!r} has "
                f"{alphabet.size}; pass the alphabet they were compressed with"
            )
        return alphabet


def _characters(texts: list[str], first: int) -> Alphabet:
    """Return an alphabet that holds the texts exactly; AlphabetError for a lone surrogate."""
    foreign = []
    for number, text in enumerate(texts, first):
        if not text.isascii():
            as_bytes(text, number)  # refuses lone surrogates, which no alphabet has
            foreign.append(text)
    return Alphabet.learn([_ASCII, *foreign]) if foreign else Alphabet.bytes()


def _parts(documents: Iterable[Any]) -> Iterator[list[Any]]:
    part: list[Any] = []
    size = 0
    for document in documents:
        part.append(document)
        if isinstance(document, Grammar):
            size += len(document.sequence) + len(document.rules)
        elif hasattr(document, "__len__"):
            size += len(document)
        if size >= _BLOCK or len(part) >= _BLOCK_DOCUMENTS:
            yield part
            part, size = [], 0
    if part:
        yield part


def _cut(grammars: Grammars) -> Iterator[Grammars]:
    ends = grammars.rule_offsets + grammars.sequence_offsets
    first = 0
    while first < len(grammars):
        last = int(np.searchsorted(ends, ends[first] + _BLOCK, side="right")) - 1
        last = min(max(last, first + 1), first + _BLOCK_DOCUMENTS)
        yield grammars[first:last]
        first = last
