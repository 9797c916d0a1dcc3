"""A corpus to look around in: its documents by number, by label and by what they say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from laconic.alphabet import speller
from laconic.arrays import Int64s, by_group
from laconic.corpus import Corpus
from laconic.errors import NoDocumentError
from laconic.grammar import Grammar

PAGE = 25
"""Documents of a list."""
SEARCHED = 1 << 24
"""Letters of one document that are searched."""
_AT_ONCE = 1 << 23  # letters that are searched before an answer is given
_WINDOW = 1 << 20  # letters that are expanded at a time
_HELD = 4  # row groups in memory, of some megabytes each
_OPENED = 8  # documents whose index is kept: who reads a long one asks for many of its parts
_CONTEXT, _PREVIEW = 80, 240  # letters that are shown before what was found, and without that


class Entry(NamedTuple):
    """A document and its labels: one, several, or none."""

    row: int
    grammar: Grammar
    labels: tuple[str, ...]

    @property
    def length(self) -> int:
        """The number of its letters."""
        return self.grammar.expanded_length


class Hit(NamedTuple):
    """A document of a list: its beginning, or a text with what was found within it, and where."""

    entry: Entry
    before: str
    found: str
    after: str
    place: int


class Found(NamedTuple):
    """A list of documents; `after` is the first that may be in the next one, None at the end.

    `before` is the first of the list before, None if that is not known, or there is none.
    """

    hits: list[Hit]
    before: int | None
    after: int | None


class Library:
    """A corpus with an index of its labels; row groups are read when they are asked for.

    `labels` are all labels there are, the most frequent first, and `numbers` how many documents
    have each.
    """

    def __init__(self, corpus: Corpus, title: str) -> None:
        self.corpus, self.title = corpus, title
        self._spelled = _labels_of(corpus)
        counted = Counter(label for some in self._spelled or () for label in some)
        self.labels = [label for label, _ in counted.most_common()]
        self.numbers = [number for _, number in counted.most_common()]
        self._lock = Lock()
        self._rows = lru_cache(_OPENED)(self._with_label)
        self._part = lru_cache(_HELD)(corpus.part)
        self._opened = lru_cache(_OPENED)(lambda row: next(self._entries(np.array([row]))))

    def __len__(self) -> int:
        return len(self.corpus)

    def entry(self, row: int) -> Entry:
        """Return one document; NoDocumentError if there is none of that number."""
        if not 0 <= row < len(self):
            raise NoDocumentError(f"there is no document {row}: there are {len(self):,}, from 0")
        return self._opened(row)

    def columns(self, row: int) -> dict[str, Any]:
        """Return what stands beside a document, but its label."""
        names = [name for name in self.corpus.columns if name != self.corpus.about.label]
        number = int(np.searchsorted(self.corpus.group_starts, row, side="right")) - 1
        place = row - int(self.corpus.group_starts[number])
        table = self._held(number).to_arrow(names)
        return {name: table.column(name)[place].as_py() for name in names}

    def find(self, text: str, label: int | None, first: int) -> Found:
        """Return documents from `first` on that have a label, by its number, and hold a text.

        Upper and lower case are the same. Of many documents some are looked through: `after` says
        where to go on, also where nothing was found yet. O(letters), at most some millions.
        """
        rows = self._rows(label)
        at = int(np.searchsorted(rows, first))
        if text:
            return self._search(text, rows[at:])
        some = [_shown(each, self.corpus) for each in self._entries(rows[at : at + PAGE])]
        after = int(rows[at + PAGE]) if at + PAGE < len(rows) else None
        return Found(some, int(rows[max(0, at - PAGE)]) if at else None, after)

    def _with_label(self, label: int | None) -> Int64s:
        if label is None:
            return np.arange(len(self))
        if not 0 <= label < len(self.labels):
            return np.zeros(0, np.int64)
        name = self.labels[label]
        return np.flatnonzero([name in some for some in self._spelled or ()])

    def _search(self, text: str, rows: Int64s) -> Found:
        hits: list[Hit] = []
        letters = 0
        wanted = text.lower()
        for entry in self._entries(rows, many=True):
            if len(hits) == PAGE or letters >= _AT_ONCE:
                return Found(hits, None, entry.row)
            letters += min(entry.length, SEARCHED)
            if (hit := _found(entry, self.corpus, wanted)) is not None:
                hits.append(hit)
        return Found(hits, None, None)

    def _entries(self, rows: Int64s, many: bool = False) -> Iterator[Entry]:
        """Yield documents in ascending order; `many` are unpacked a row group at a time."""
        for number, _, within in by_group(self.corpus.group_starts, rows):
            part = self._held(number)
            some = part if many else part.select(within)
            first = int(self.corpus.group_starts[number])
            for place, row in enumerate(within.tolist()):
                labels = self._spelled[first + row] if self._spelled else ()
                yield Entry(first + row, some[row if many else place], labels)

    def _held(self, number: int) -> Corpus:
        with self._lock:  # or two requests would read the same row group
            return self._part(number)


def _labels_of(corpus: Corpus) -> list[tuple[str, ...]] | None:
    if corpus.about.label not in corpus.columns:
        return None
    known: dict[tuple[str, ...], tuple[str, ...]] = {}  # of many documents, each once
    return [
        known.setdefault(spelled, spelled)
        for label in corpus.labels
        for spelled in [tuple(map(str, label)) if isinstance(label, list) else (str(label),)]
    ]


def _shown(entry: Entry, corpus: Corpus) -> Hit:
    spell = speller(corpus.alphabet, entry.grammar.substring(0, min(_PREVIEW + 3, entry.length)))
    more = "…" if entry.length > _PREVIEW else ""
    return Hit(entry, "", "", spell(0, _PREVIEW) + more, 0)


def _found(entry: Entry, corpus: Corpus, wanted: str) -> Hit | None:
    """Return where a text occurs first, without ever holding the whole of a long document."""
    grammar, end = entry.grammar, min(entry.length, SEARCHED)
    overlap = 4 * len(wanted)  # a character has at most four bytes
    for begin in range(0, max(1, end), _WINDOW):
        stop = min(end, begin + _WINDOW + overlap)
        spell = speller(corpus.alphabet, grammar.substring(begin, stop), inside=begin > 0)
        text = spell(0, stop - begin)
        at = text.lower().find(wanted)
        if at >= 0:
            until = at + len(wanted)
            before = "…" * (begin + at > _CONTEXT) + text[max(0, at - _CONTEXT) : at]
            size = len(text[:at].encode()) if corpus.alphabet.characters is None else at
            after = text[until : until + _PREVIEW - _CONTEXT]
            return Hit(entry, before, text[at:until], after, begin + size)
    return None
