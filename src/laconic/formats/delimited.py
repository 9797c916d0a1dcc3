"""CSV and TSV: every field as it is written, columns other than the text checked to be UTF-8."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from laconic.errors import InputError
from laconic.formats.columns import (
    as_bytes,
    check_same_columns,
    choose_columns,
    join_records,
    not_utf8,
    without,
)
from laconic.formats.format import (
    SOME_COLUMNS,
    FileRows,
    Format,
    Layout,
    ReadError,
    ReadOptions,
    Reject,
    RowNumbers,
    shown,
    too_long,
)
from laconic.formats.records import Records, scan, split, unquoted
from laconic.formats.sources import Source, Stream

DELIMITERS = [*",;|\t :~^!#$%&()*+-./<=>?@[]_`{}'\\"]
BLOCK = 4 << 20
_MOST_RECORDS = 1 << 15  # at a time: what is told of a short one that is bad is longer than it
_SAMPLE = 256 << 10
_BOM = b"\xef\xbb\xbf"
_UNCLOSED = "a quote is opened here and never closed; the rest of the file cannot be read"


class DelimitedReader:
    """CSV or TSV; the text column is binary, the others are strings, nothing is converted."""

    def __init__(self, sources: list[Source], options: ReadOptions, delimiter: str) -> None:
        source, usual = sources[0], options.usual_delimiter
        if options.delimiter is not None:
            delimiter = options.delimiter
        elif usual in DELIMITERS and delimiter == "," and _is_in_first_row(source, str(usual)):
            delimiter = str(usual)
        if delimiter not in DELIMITERS:
            reason = f"the delimiter must be one character such as ; or | or a tab: {delimiter!r}"
            raise InputError(reason)
        self._delimiter, self._options = delimiter, options
        self._longest = options.max_document + BLOCK  # of a record, with what is beside the text
        block, records = self._sample(source)
        if options.header:
            columns = _names(source.name, block, records, delimiter)
        else:
            columns = [str(index) for index in range(int(records.fields[0]))]
        self.text, self.label = choose_columns(source.name, columns, options)
        self.schema = pa.schema(
            (name, pa.binary() if name == self.text else pa.string()) for name in columns
        )
        self.style: Layout = {
            "delimiter": delimiter,
            "header": options.header,
            **_style(block, records, delimiter, columns, header=options.header),
            "final_newline": True,
            "bom": self._bom,
            "escapes": options.escapes,
        }

    def _sample(self, source: Source) -> tuple[bytes, Records]:
        """Return the beginning of the first file, with one record at least."""
        with Stream(source) as stream:
            block = stream.read(len(_BOM))
            self._bom = block == _BOM
            block = block.removeprefix(_BOM)
            while True:
                block, records, final = self._more(stream, block, _SAMPLE)
                if len(records.ends):
                    return block, records
                if len(block) > self._longest:
                    raise self._too_long(source.name, 1)
                if final:
                    reason = stream.failure or (_UNCLOSED if block else "is empty: no columns")
                    raise ReadError(reason, file=source.name, row=1 if block else None)

    def _more(self, stream: Stream, rest: bytes, least: int) -> tuple[bytes, Records, bool]:
        """Return an incomplete record with what follows it, and whether that is all there is."""
        wanted = min(max(least, len(rest)), max(least, self._longest + 1 - len(rest)))
        data = stream.read(wanted)
        block, final = rest + data, len(data) < wanted
        if final and not stream.failure and block and block[-1:] not in (b"\n", b"\r"):
            block += b"\n"  # the last record ends where the file does
        return block, scan(block, self._delimiter, final=final), final

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file, a block of whole records at a time."""
        file = stream.name
        rest = stream.read(len(_BOM)).removeprefix(_BOM)
        row, begun, done = 0, False, False
        while not done:
            block, records, final = self._more(stream, rest, BLOCK)
            skipped = 0
            if not begun and (len(records.ends) or final):
                begun = True
                skipped = self._check_header(stream, block, records)
            for first in range(0, len(records.ends), _MOST_RECORDS):
                some = records.some(first, first + _MOST_RECORDS)
                start = int(records.ends[first - 1]) if first else 0
                yield self._rows(file, block, some, start, skipped, row)
                row += len(some.ends) - skipped
                skipped = 0
            rest = block[int(records.ends[-1]) :] if len(records.ends) else block
            done = final
            if len(rest) > self._longest:
                raise self._too_long(file, row + 1)
            if done and (rest or stream.failure):
                reject = Reject(file, row + 1, stream.failure or _UNCLOSED, shown(rest))
                yield FileRows(rejects=[reject])

    def _too_long(self, file: str, row: int) -> ReadError:
        reason = f"the row is {too_long(self._options.max_document)}, or close its quote"
        return ReadError(reason, file=file, row=row)

    def _check_header(self, stream: Stream, block: bytes, records: Records) -> int:
        """Return how many records are header: 1 or 0."""
        if not self._options.header:
            return 0
        if not len(records.ends):
            reason = stream.failure or (_UNCLOSED if block else "is empty: no header")
            raise ReadError(reason, file=stream.name)
        names = _names(stream.name, block, records, self._delimiter)
        check_same_columns(stream.name, names, self.schema.names)
        return 1

    def _rows(
        self, file: str, block: bytes, records: Records, start: int, skipped: int, row: int
    ) -> FileRows:
        """Parse the good records of a block from `start` on and reject the others."""
        width = len(self.schema)
        bad = records.fields != width
        bad[list(records.malformed)] = True
        # Blank lines between records are no documents; they are counted, so rows stay lines.
        passed = records.blank & (width > 1)
        passed[:skipped] = True
        bad, good = bad & ~passed, ~(bad | passed)
        rows = np.arange(len(good), dtype=np.int64) + (row + 1 - skipped)
        starts = np.concatenate((np.array([start], np.int64), records.ends))
        rejects = []
        for index in np.flatnonzero(bad).tolist():
            reason = records.malformed.get(index) or (
                f"{records.fields[index]} columns instead of {width}; quote a field that holds "
                f"{self._delimiter!r} or a newline"
            )
            content = shown(block[starts[index] : starts[index + 1]].rstrip(b"\r\n"))
            rejects.append(Reject(file, int(rows[index]), reason, content))
        table = self._parse(file, _joined(block, starts, good), int(good.sum()))
        table, rows, more = self._checked(file, table, rows[good])
        return FileRows(table, rows, sorted(rejects + more, key=lambda reject: reject.row))

    def _parse(self, file: str, clean: bytes | memoryview, count: int) -> pa.Table:
        """Parse well-formed records, all columns binary."""
        binary = pa.schema((name, pa.binary()) for name in self.schema.names)
        if not count:
            return binary.empty_table()
        if clean[:3] == _BOM:
            clean = _BOM + bytes(clean)  # pyarrow drops a mark from the beginning of every block.
        table = pa.csv.read_csv(
            pa.BufferReader(pa.py_buffer(clean)),
            read_options=pa.csv.ReadOptions(
                use_threads=False, block_size=len(clean) + 1, column_names=self.schema.names
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, ignore_empty_lines=False
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=binary, strings_can_be_null=False, null_values=[]
            ),
        )
        if table.num_rows != count:
            reason = f"pyarrow reads {table.num_rows} rows where {count} are; report this"
            raise ReadError(reason, file=file)
        return table

    def _checked(
        self, file: str, table: pa.Table, rows: RowNumbers
    ) -> tuple[pa.Table, RowNumbers, list[Reject]]:
        """Undo the text's escapes and make strings of the other columns, rejecting bad UTF-8."""
        try:
            table = table.cast(self.schema)
            rejects: list[Reject] = []
        except pa.ArrowInvalid:
            names = [name for name in table.column_names if name != self.text]
            bad = not_utf8(table, names)
            table, rows, rejects = without(bad, file, table, rows)
            table = table.cast(self.schema)
        if self._options.escapes:
            index = self.schema.get_field_index(self.text)
            text = pc.replace_substring(table.column(index), rb"\n", b"\n")
            table = table.set_column(index, self.schema.field(index), text)
        return table, rows, rejects


def _is_in_first_row(source: Source, delimiter: str) -> bool:
    with Stream(source) as stream:
        return delimiter.encode() in stream.read(_SAMPLE).partition(b"\n")[0]


def _names(file: str, block: bytes, records: Records, delimiter: str) -> list[str]:
    try:
        header = split(block[: int(records.ends[0])], delimiter)
        return [unquoted(name).decode() for name in header]
    except UnicodeDecodeError as error:
        reason = f"the header is not UTF-8 ({error}); convert the file"
        raise ReadError(reason, file=file) from error


def _joined(
    block: bytes, starts: npt.NDArray[np.int64], good: npt.NDArray[np.bool_]
) -> bytes | memoryview:
    """Return the good records of a block; a copy only where there are gaps between them."""
    edges = np.flatnonzero(np.diff(good.astype(np.int8), prepend=0, append=0)).tolist()
    view = memoryview(block)
    runs = [view[starts[a] : starts[b]] for a, b in zip(edges[::2], edges[1::2], strict=True)]
    if len(runs) == 1:
        return runs[0]
    # A carriage return must not become one line end with the line feed of a later record.
    return b"".join(bytes(run) + b"\n" * (run[-1] == ord("\r")) for run in runs)


def _style(
    block: bytes, records: Records, delimiter: str, columns: list[str], *, header: bool
) -> dict[str, Any]:
    """Return how the sample is quoted and how its lines end."""
    special = delimiter.encode() + b'"\r\n'
    starts = [0, *records.ends.tolist()]
    quoted, plain = set[int](), set[int]()
    needless = top_quoted = bare = False
    for number, (start, end) in enumerate(itertools.pairwise(starts)):
        if number in records.malformed or records.fields[number] != len(columns):
            continue
        fields = split(block[start:end], delimiter)
        if header and number == 0:
            needless = top_quoted = all(name.startswith(b'"') for name in fields)
            continue
        for index, written in enumerate(fields):
            if not written.startswith(b'"'):
                plain.add(index)
                bare |= b'"' in written
                continue
            quoted.add(index)
            # A lone empty field is written "" in every style: an empty line would be no record.
            lone = len(fields) == 1 and written == b'""'
            if not lone and not any(byte in special for byte in written[1:-1]):
                needless = True
    # A text that always holds a comma is always quoted: only a needless quote shows the habit.
    always = quoted - plain if needless else set[int]()
    if always == set(range(len(columns))) or (needless and not quoted | plain):
        quoting = "all"
    else:
        quoting = "columns" if always else "none" if bare else "minimal"
    first = block[: starts[1]]
    newline = "\r\n" if first.endswith(b"\r\n") else "\r" if first.endswith(b"\r") else "\n"
    return {
        "quoting": quoting,
        "quoted": [columns[index] for index in sorted(always)] if quoting == "columns" else [],
        "header_quoting": "all" if top_quoted else "minimal",
        "newline": newline,
    }


def _blocks(tables: Iterable[pa.Table], layout: Layout) -> Iterator[Any]:
    delimiter, newline = layout["delimiter"].encode(), layout["newline"].encode()
    columns, quoted = layout["columns"], set(layout["quoted"])
    if layout["quoting"] != "columns":
        quoted = set(columns) if layout["quoting"] == "all" else set()
    if layout["header"]:
        always = layout["header_quoting"] == "all"
        names = [pa.array([name.encode()], pa.large_binary()) for name in columns]
        yield join_records([_field(name, layout, always) for name in names], delimiter, newline)
    for table in tables:
        fields = []
        for name in columns:
            values = as_bytes(table.column(name), name)
            if layout["escapes"] and name == layout["text"]:
                values = pc.replace_substring(values, b"\n", rb"\n")
            fields.append(_field(values, layout, name in quoted))
        yield join_records(fields, delimiter, newline)


def _field(values: pa.Array, layout: Layout, always: bool) -> list[Any]:
    """Return the pieces of one column's fields, quoted always or where they must be."""
    if always:
        return [b'"', pc.replace_substring(values, b'"', b'""'), b'"']
    # A quote within a field is a plain character to most readers, but never where a field begins.
    quote = r'\A"' if layout["quoting"] == "none" else '"'
    needy = pc.match_substring_regex(values, f"{quote}|[\r\n{re.escape(layout['delimiter'])}]")
    if len(layout["columns"]) == 1:
        # An empty line is no record to most readers.
        needy = pc.or_(needy, pc.equal(pc.binary_length(values), 0))
    if not pc.any(needy).as_py():
        return [values]
    mark = pc.if_else(needy, pa.scalar(b'"', pa.large_binary()), pa.scalar(b"", pa.large_binary()))
    return [mark, pc.if_else(needy, pc.replace_substring(values, b'"', b'""'), values), mark]


_CHOICES: dict[str, Sequence[Any]] = {
    "header": [True, False],
    "header_quoting": ["minimal", "all"],
    "quoting": ["minimal", "all", "columns", "none"],
    "quoted": SOME_COLUMNS,
    "newline": ["\n", "\r\n", "\r"],
    "final_newline": [True, False],
    "bom": [False, True],
    "escapes": [False, True],
}
FORMATS = [
    Format(
        name,
        (f".{name}",),
        partial(DelimitedReader, delimiter=delimiter),
        blocks=_blocks,
        choices={"delimiter": [delimiter, *DELIMITERS], **_CHOICES},
        tabular=True,
    )
    for name, delimiter in (("csv", ","), ("tsv", "\t"))
]
