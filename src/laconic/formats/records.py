"""The structure of CSV: where records end, how many fields each has, which are malformed.

pyarrow's parser takes an unclosed quote for one giant field, drops the quotes of `"a"b` and reads a
blank line as a row of empty fields, all silently; so the structure is checked before it parses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

_QUOTE, _LF, _CR = ord('"'), ord("\n"), ord("\r")
_PIECE = 4 << 20  # bytes looked at together: where each special one is takes eight times as much
AFTER_QUOTE = 'text after a closing quote; write a quote within quotes as ""'


@dataclass(frozen=True, slots=True)
class Records:
    """The whole records of a block: record i is block[ends[i - 1] : ends[i]], newline included."""

    ends: npt.NDArray[np.int64]
    fields: npt.NDArray[np.int64]
    blank: npt.NDArray[np.bool_]
    malformed: dict[int, str] = field(default_factory=dict)

    def some(self, start: int, stop: int) -> Records:
        """Return a run of these records; their ends stay those in the block."""
        malformed = {
            at - start: reason for at, reason in self.malformed.items() if start <= at < stop
        }
        run = slice(start, stop)
        return Records(self.ends[run], self.fields[run], self.blank[run], malformed)


def scan(block: bytes, delimiter: str, *, final: bool) -> Records:
    """Find the records of a block that begins with one; what follows the last is incomplete.

    Without `final`, a last carriage return may be half a line end and ends nothing. O(n), without
    a Python loop unless quotes stand in odd places; memory for each piece of the block on its own.
    """
    data = np.frombuffer(block, np.uint8)
    returns, opened = b"\r" in block, False
    found: list[npt.NDArray[np.int64]] = []
    fields: list[npt.NDArray[np.int64]] = []
    begun = 1  # fields of the record that is not at its end
    for start in range(0, len(block), _PIECE):
        piece = data[start : start + _PIECE]
        special = (piece == _QUOTE) | (piece == ord(delimiter)) | (piece == _LF)
        if returns:
            special |= piece == _CR
        at = np.flatnonzero(special)
        kinds = piece[at]
        at += start
        is_quote = kinds == _QUOTE
        quotes = at[is_quote]
        if opened or len(quotes):
            if not _proper(data, quotes, ord(delimiter), opened):
                return _scan_slowly(block, delimiter, final=final)
            outside = ((np.cumsum(is_quote) + opened) & 1 == 0) & ~is_quote
            opened ^= bool(len(quotes) & 1)
            at, kinds = at[outside], kinds[outside]
        is_end = kinds != ord(delimiter)
        if returns:
            last = at[-1:] == len(data) - 1
            following = data[np.minimum(at + 1, len(data) - 1)]
            following[-1:][last] = 0 if final else _LF
            # The line feed of a pair ends the record; a half pair at the end of a block waits.
            is_end &= ~((kinds == _CR) & (following == _LF))
        ends = at[is_end].astype(np.int64) + 1
        delimiters = at[kinds == ord(delimiter)]
        before = np.searchsorted(delimiters, ends)
        counts = np.diff(before, prepend=0).astype(np.int64) + 1
        if len(ends):
            counts[0] += begun - 1
            begun = 1 + len(delimiters) - int(before[-1])
        else:
            begun += len(delimiters)
        found.append(ends)
        fields.append(counts)
    ends = np.concatenate([np.zeros(0, np.int64), *found])
    return Records(ends, np.concatenate([np.zeros(0, np.int64), *fields]), _blank(data, ends))


def _proper(
    data: npt.NDArray[np.uint8], quotes: npt.NDArray[np.intp], delimiter: int, opened: bool
) -> bool:
    """Tell whether every other quote opens a field and the rest close one, or are doubled.

    Then, and only then, what has an odd number of quotes before it is within quotes; `opened`:
    there was one more before these.
    """
    edges = np.array([_QUOTE, delimiter, _LF, _CR], np.uint8)
    opening, closing = quotes[int(opened) :: 2], quotes[1 - int(opened) :: 2]
    before = data[np.maximum(opening - 1, 0)]
    after = data[np.minimum(closing + 1, len(data) - 1)]
    return bool(np.isin(before, edges).all() and np.isin(after, edges).all())


def _blank(data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    lengths = np.diff(ends, prepend=0)
    pairs = (data[ends - 1] == _LF) & (lengths > 1) & (data[ends - 2] == _CR)
    blank: npt.NDArray[np.bool_] = lengths - pairs == 1
    return blank


def _scan_slowly(block: bytes, delimiter: str, *, final: bool) -> Records:
    """Do what `scan` does, field by field: a quote within an unquoted field is a character."""
    take = _field(delimiter)
    line_end = re.compile(rb"\r\n|\n|\r")
    ends: list[int] = []
    counts: list[int] = []
    malformed: dict[int, str] = {}
    at, fields = 0, 1
    while at < len(block):
        match = take.match(block, at)
        if match is None:
            break
        at = match.end()
        if block[at : at + 1] == delimiter.encode():
            at, fields = at + 1, fields + 1
            continue
        end = line_end.match(block, at)
        if end is None and at < len(block):
            malformed[len(ends)] = AFTER_QUOTE
            end = line_end.search(block, at)
        if end is None or (end.end() == len(block) and end[0] == b"\r" and not final):
            break
        at = end.end()
        ends.append(at)
        counts.append(fields)
        fields = 1
    malformed.pop(len(ends), None)
    found = np.array(ends, np.int64)
    blank = _blank(np.frombuffer(block, np.uint8), found)
    return Records(found, np.array(counts, np.int64), blank, malformed)


def split(record: bytes, delimiter: str) -> list[bytes]:
    r"""Return the fields of a well-formed record, as written.

    >>> split(b'1,"a, b",2\r\n', ",")
    [b'1', b'"a, b"', b'2']
    """
    take = _field(delimiter)
    fields, at = [], 0
    while match := take.match(record, at):
        fields.append(match[0])
        at = match.end() + 1
        if record[at - 1 : at] != delimiter.encode():
            break
    return fields


def unquoted(field: bytes) -> bytes:
    """Return the value of a field as written."""
    return field[1:-1].replace(b'""', b'"') if field.startswith(b'"') else field


def _field(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern of one field; it matches nothing only at a quote that is never closed."""
    edge = re.escape(delimiter.encode()) + rb"\r\n"
    return re.compile(rb'"(?:[^"]++|"")*+"|(?!")[^' + edge + rb"]*+")
