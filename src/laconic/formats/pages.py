"""The pages of a Parquet column: their headers tell what decoding would take, before any is read.

pyarrow decodes whole pages and tells only what a column takes in all; one value may be most of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_HEADERS = (1 << 9, 1 << 16, 1 << 22)  # bytes to look at: few have statistics within
_TYPES = {5: 1, 7: 1, 8: 1}  # the headers of data pages, dictionaries, and data pages' version 2


def pages_of(raw: Any, chunk: Any) -> Iterator[tuple[int, int]]:
    """Give for each page of a column chunk its bytes when decompressed, and how many values it has.

    `raw` is the file. What is damaged ends them: whoever reads the page will say so.
    """
    at = chunk.data_page_offset
    if chunk.has_dictionary_page:
        at = min(at, chunk.dictionary_page_offset)
    end = at + chunk.total_compressed_size
    while at < end:
        for size in _HEADERS:
            raw.seek(at)
            data = raw.read(min(size, end - at))
            try:
                header, length = _struct(data, 0)
                break
            except (IndexError, RecursionError):
                continue
        else:
            return
        kinds = [header[key] for key in _TYPES if isinstance(header.get(key), dict)]
        unpacked, packed = header.get(2), header.get(3)
        if not kinds or type(unpacked) is not int or type(packed) is not int or packed < 0:
            return
        yield unpacked, int(kinds[0].get(1) or 0)
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
