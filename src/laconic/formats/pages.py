"""The pages of a Parquet column: their headers tell what decoding would take, before any is read.

pyarrow decodes whole pages and tells only what a column takes in all; one value may be most of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_HEADERS = (1 << 9, 1 << 16, 1 << 22)  # bytes to look at: few have statistics within
_DATA, _DICTIONARY, _DATA_2 = 5, 7, 8  # fields of a page's header, one of which is there
_ENCODING = {_DATA: 2, _DATA_2: 4}
_OF_DICTIONARY = (2, 8)  # encodings


class Page(NamedTuple):
    """A page: its bytes when decompressed, how many values it has, and how these are kept."""

    size: int
    values: int
    is_dictionary: bool
    uses_dictionary: bool


def pages_of(raw: Any, chunk: Any) -> Iterator[Page]:
    """Give the pages of a column chunk, from their headers alone; `raw` is the file.

    What is damaged ends them: whoever reads that page will say so.
    """
    at = chunk.data_page_offset
    if chunk.has_dictionary_page:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        for size in _HEADERS:
            raw.seek(at)
            try:
                header, length = _struct(raw.read(min(size, end - at)), 0)
                break
            except (IndexError, RecursionError):
                continue
        else:
            return
        kind = next((key for key in (_DATA, _DATA_2, _DICTIONARY) if key in header), None)
        unpacked, packed = header.get(2), header.get(3)
        if kind is None or not isinstance(unpacked, int) or not isinstance(packed, int):
            return
        inner = header[kind]
        if not isinstance(inner, dict) or not isinstance(inner.get(1), int) or packed < 0:
            return
        encoding = inner.get(_ENCODING.get(kind, 0))
        yield Page(unpacked, inner[1], kind == _DICTIONARY, encoding in _OF_DICTIONARY)
        at += length + packed


def _struct(data: bytes, at: int) -> tuple[dict[int, Any], int]:
    """Return the numbers and structs of a struct in Thrift's compact protocol, and where it ends.

    Raises IndexError where it is cut short.
    """
    fields: dict[int, Any] = {}
    number = 0
    while kind := data[at] & 15:
        step, at = data[at] >> 4, at + 1
        if step:
            number += step
        else:
            number, at = _integer(data, at)
        fields[number], at = _value(data, at, kind)
    return fields, at + 1


def _value(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (1, 2):
        return None, at
    if kind == 3:
        return None, at + 1
    if kind in (4, 5, 6):
        return _integer(data, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        size, at = _varint(data, at)
        return None, at + size
    if kind == 12:
        return _struct(data, at)
    raise IndexError  # Headers of pages have no lists, sets or maps.


def _integer(data: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(data, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
