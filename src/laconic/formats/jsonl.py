"""JSONL: an object per line; the first block of lines tells the columns and their types."""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from laconic.errors import InputError
from laconic.formats.columns import choose_columns
from laconic.formats.format import (
    NEWLINES,
    FileRows,
    Format,
    Layout,
    ReadError,
    ReadOptions,
    Reject,
    shown,
    too_long,
)
from laconic.formats.lines import BLOCK, line_blocks, newlines, read_lines
from laconic.formats.sources import Source, Stream

Object: TypeAlias = dict[str, Any]
_BOM = b"\xef\xbb\xbf"
# What Arrow says of a value that it cannot take; that memory is out is none of these.
_MISFITS = (TypeError, ValueError, OverflowError, NotImplementedError)
_PYTHON: dict[pa.DataType, tuple[type, ...]] = {
    pa.string(): (str,),
    pa.int64(): (int,),
    pa.float64(): (int, float),
    pa.bool_(): (bool,),
}
_STYLES = ((", ", ": "), (",", ":"))
_STYLE_LINES = 100
_DEEPEST = 32  # lists and objects in each other; Parquet's readers go down by recursion
_MOST_LINES = 1 << 15  # at a time: what Python makes of a short one is a hundred times as long
_MOST_VALUES = 1 << 22  # of a line, likewise
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class JsonlReader:
    """JSONL; missing keys are null, a missing text is rejected, keys the first rows lack too."""

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        file, self._longest = sources[0].name, options.max_document
        with Stream(sources[0]) as stream:
            block = stream.read(BLOCK)
            if len(block) == BLOCK:
                begun = line_blocks(stream, self._longest, block)
                block = block[: block.rfind(b"\n") + 1] or next(filter(None, begun), b"")
        lines = _lines(block)
        parsed = [_parsed(line) for line in lines]
        rows = [row for row in parsed if isinstance(row, dict)]
        rows = [row for row in rows if not any(map(_too_deep, row.values()))]
        columns = list(dict.fromkeys(key for row in rows for key in row))
        if not columns:
            why = next((f" ({each})" for each in parsed if isinstance(each, str)), "")
            if not block and stream.consumed():
                why = f" (the line is {too_long(self._longest)})"
            raise ReadError(f"no JSON object in it, so no columns{why}; is this JSONL?", file=file)
        self.text, self.label = choose_columns(file, columns, options)
        self.schema = pa.schema(
            (name, pa.string() if name == self.text else _type([row.get(name) for row in rows]))
            for name in columns
        )
        self._types = {each.name: (each.type, _PYTHON.get(each.type)) for each in self.schema}
        self.style: Layout = {**_style(lines, rows, columns), **newlines(block)}

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file; blank lines are no documents but count as rows."""
        return read_lines(stream, self._longest, partial(self._rows, stream.name))

    def _rows(self, file: str, block: bytes, row: int) -> Iterator[tuple[int, FileRows]]:
        lines = _lines(block)
        for first in range(0, len(lines), _MOST_LINES):
            some = lines[first : first + _MOST_LINES]
            yield len(some), self._some_rows(file, some, row + first)

    def _some_rows(self, file: str, lines: list[bytes], row: int) -> FileRows:
        objects: list[Object] = []
        rows: list[int] = []
        rejects: list[Reject] = []
        for number, line in enumerate(lines, row + 1):
            if not line.strip():
                continue
            parsed = _parsed(line)
            reason = parsed if isinstance(parsed, str) else self._misfit(parsed)
            if reason:
                rejects.append(Reject(file, number, reason, shown(line)))
            else:
                assert isinstance(parsed, dict)
                objects.append(parsed)
                rows.append(number)
        try:
            table = pa.Table.from_pylist(objects, schema=self.schema)
        except _MISFITS:
            table, rows, more = self._one_by_one(file, objects, rows)
            rejects = sorted(rejects + more, key=lambda reject: reject.row)
        return FileRows(table, np.array(rows, np.int64), rejects)

    def _misfit(self, row: Object) -> str | None:
        """Return why a row cannot be a document of this schema, None if it can."""
        text = row.get(self.text)
        if text is None:
            return f"no text: the key {self.text!r} is missing or null"
        if not isinstance(text, str):
            return f"the text {self.text!r} is {type(text).__name__}, not a string"
        for key, value in row.items():
            kind, python = self._types.get(key, (None, None))
            if kind is None:
                return f"unexpected key {key!r}: the first rows do not have it"
            if value is None or (python is not None and type(value) in python):
                continue
            if _too_deep(value):
                return f"{key!r} has lists or objects in each other, more than {_DEEPEST} deep"
            if misfit := _misfit(value, kind):
                return f"{key!r} does not fit the first rows: {misfit}; write it as they have it"
        return None

    def _one_by_one(
        self, file: str, objects: list[Object], rows: list[int]
    ) -> tuple[pa.Table, list[int], list[Reject]]:
        """Find the rows whose values do not fit the schema."""
        rejects, good = [], []
        for index, row in enumerate(objects):
            for field in self.schema:
                try:
                    pa.array([row.get(field.name)], field.type)
                except _MISFITS as error:
                    reason = f"{field.name!r} does not fit the first rows: not {field.type}"
                    rejects.append(Reject(file, rows[index], f"{reason} ({error})", shown(row)))
                    break
            else:
                good.append(index)
        table = pa.Table.from_pylist([objects[index] for index in good], schema=self.schema)
        return table, [rows[index] for index in good], rejects


def _lines(block: bytes) -> list[bytes]:
    r"""Split at line feeds only: other separators may stand within a string.

    >>> _lines(b'{}\r\n\n{"a": 1}')
    [b'{}', b'', b'{"a": 1}']
    """
    lines = block.removeprefix(_BOM).split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix(b"\r") for line in lines]


def _unique(pairs: list[tuple[str, Any]]) -> Object:
    row = dict(pairs)
    if len(row) < len(pairs):
        keys = [key for key, _ in pairs]
        raise KeyError(next(key for key in row if keys.count(key) > 1))
    return row


_decode = json.JSONDecoder(object_pairs_hook=_unique).raw_decode


def _parsed(line: bytes) -> Object | str:
    """Return the object of a line, or why there is none."""
    if len(line) > BLOCK:
        rest = _STRING.sub(b"", line)
        if sum(map(rest.count, (b",", b"[", b"{"))) > _MOST_VALUES:
            return f"more than {_MOST_VALUES:,} values in a line; write them to a file of their own"
    try:
        text = line.decode().strip(" \t\r\n")
        value, end = _decode(text)
        if end < len(text):
            raise json.JSONDecodeError("Extra data", text, end)
    except UnicodeDecodeError as error:
        return f"not UTF-8: byte {line[error.start]:#04x} at position {error.start}"
    except RecursionError:
        return f"not JSON that can be read: lists or objects in each other, over {_DEEPEST} deep"
    except KeyError as error:
        return f"the key {error.args[0]!r} occurs twice; rename or remove one"
    except ValueError as error:
        return f"not JSON ({error})"
    if not isinstance(value, dict):
        return f'{type(value).__name__} instead of an object such as {{"text": …}}'
    return value


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST + 1):
        inner = (each for each in level if isinstance(each, list | dict))
        level = [one for each in inner for one in (each.values() if type(each) is dict else each)]
        if not level:
            return False
    return True


def _type(values: list[Any]) -> pa.DataType:
    """Return the type of values; where they have none in common, that of those like the first."""
    kind = _common(values)
    if kind is None:
        like = [value for value in values if value is not None and _common([value]) is not None]
        like = [value for value in like if _sort(value) is _sort(like[0])]
        # The longest beginning that has a type: lists and objects may differ within.
        counts = range(1, len(like) + 1)
        most = bisect_left(counts, True, key=lambda count: _common(like[:count]) is None)
        kind = _common(like[:most])
    return pa.string() if kind is None or pa.types.is_null(kind) else kind


def _common(values: list[Any]) -> pa.DataType | None:
    try:
        return pa.array(values).type
    except _MISFITS:
        return None


def _sort(value: object) -> type:
    return float if type(value) is int else type(value)


def _misfit(value: object, kind: pa.DataType) -> str | None:
    """Return why a value does not fit a type; pyarrow would drop keys and cut 2.5 to 2."""
    if value is None:
        return None
    python = _PYTHON.get(kind)
    if python is not None:
        return None if type(value) in python else f"{type(value).__name__} instead of {kind}"
    if isinstance(value, list) and pa.types.is_list(kind):
        found = (_misfit(item, kind.value_type) for item in value)
        return next((reason for reason in found if reason), None)
    if isinstance(value, dict) and pa.types.is_struct(kind):
        for key, item in value.items():
            index = kind.get_field_index(key)
            if index < 0:
                return f"unexpected key {key!r}"
            if reason := _misfit(item, kind.field(index).type):
                return f"{key!r}: {reason}"
        return None
    return f"{type(value).__name__} instead of {kind}"


def _style(lines: list[bytes], rows: list[Object], columns: list[str]) -> Object:
    """Return how the first lines are written: separators, escapes, missing keys."""
    sample = [line for line in lines[:_STYLE_LINES] if line.strip()]
    escaped = all(line.isascii() for line in lines)

    def matches(separators: tuple[str, str]) -> int:
        count = 0
        for line in sample:
            if len(line) > BLOCK:  # its strings would take ten times as much to write again
                count += (b": " in _STRING.sub(b"", line)) == (separators[1] == ": ")
                continue
            row = _parsed(line)
            written = json.dumps(row, separators=separators, ensure_ascii=escaped)
            count += written.encode(errors="surrogatepass") == line
        return count

    separators = max(_STYLES, key=matches)
    absent = any(len(row) < len(columns) for row in rows)
    null = any(value is None for row in rows for value in row.values())
    return {
        "separators": list(separators),
        "ensure_ascii": escaped,
        "nulls": "omit" if absent and not null else "write",
    }


def _blocks(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    encode = json.JSONEncoder(
        ensure_ascii=layout["ensure_ascii"], separators=tuple(layout["separators"])
    ).encode
    newline, omit = layout["newline"], layout["nulls"] == "omit"
    for table in tables:
        lines = []
        for row in _with_strings(table).to_pylist():
            kept = {key: value for key, value in row.items() if value is not None or not omit}
            lines.append(encode(kept) + newline)
        yield "".join(lines).encode()


def _with_strings(table: pa.Table) -> pa.Table:
    """Return the table with binary columns as strings, which is all that JSON has."""
    for index, field in enumerate(table.schema):
        if field.type in (pa.binary(), pa.large_binary()):
            try:
                strings = pc.cast(table.column(index), pa.large_string())
            except pa.ArrowInvalid as error:
                reason = f"column {field.name!r} is not UTF-8: it cannot be JSON; write .parquet"
                raise InputError(reason) from error
            table = table.set_column(index, field.name, strings)
    return table


FORMATS = [
    Format(
        "jsonl",
        (".jsonl", ".ndjson"),
        JsonlReader,
        blocks=_blocks,
        choices={
            "separators": [list(style) for style in _STYLES],
            "ensure_ascii": [False, True],
            "nulls": ["write", "omit"],
            **NEWLINES,
        },
        tabular=True,
        typed=True,
    )
]
