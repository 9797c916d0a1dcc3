"""WARC, the files of web archives (ISO 28500): every record a document, which stays compressed."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from laconic import _core
from laconic.errors import GrammarError, InputError
from laconic.formats.columns import fixed_columns
from laconic.formats.format import FileRows, Format, Layout, ReadOptions, Reject, shown, too_long
from laconic.formats.sources import Source, Stream
from laconic.formats.zipped import as_slice, inflated, packed

_COLUMNS = {"type": pa.string(), "uri": pa.string(), "date": pa.string()}
_MOST_HEADERS = 1 << 16  # bytes, of the record and of HTTP together
_READ = 1 << 18
_GZIP = b"\x1f\x8b"
_SEVERAL = (
    "several records are one gzip member, against the standard; make each its own with "
    "`warcio recompress`"
)


class WarcReader:
    """Columns "type", "uri" and "date" of records, and "text": the payload, without HTTP's headers.

    Records without a payload are left out. A body that HTTP calls gzip counts as what it holds.
    """

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self._longest, self._compressed = options.max_document, bool(options.compressed)
        columns = [*_COLUMNS, "text"]
        self.text, self.label = fixed_columns(sources[0].name, columns, "text", options)
        self.schema = pa.schema([*_COLUMNS.items(), ("text", pa.large_binary())])
        self.style: Layout = {}

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file, record by record: each is a member of gzip's, or the file is plain."""
        data, row = b"", 0
        while data := data or stream.read(_READ):
            row += 1
            if len(data) < len(_GZIP):
                data += stream.read(_READ)
            try:
                data, rows = self._record(data, stream, row)
            except InputError as error:  # where the next record begins is not known
                yield FileRows(rejects=[Reject(stream.name, row, error.reason, shown(data[:200]))])
                return
            yield rows
            if not data.strip(b"\r\n\0"):
                data = b""
        if stream.failure:
            yield FileRows(rejects=[Reject(stream.name, row + 1, stream.failure, "")])

    def _record(self, data: bytes, stream: Stream, row: int) -> tuple[bytes, FileRows]:
        """Take the first record off `data`, reading more; one that is bad alone is rejected."""
        if data[:2] == _GZIP:
            data, size, length = self._member(data, stream)
            head = _first(data[:size])
        else:
            while (
                b"\r\n\r\n" not in data
                and len(data) < _MOST_HEADERS
                and (more := stream.read(_READ))
            ):
                data += more
            head = data[:_MOST_HEADERS]
        fields, begin = _headers(head, b"WARC/")
        if not fields.get("content-length", "").isdecimal():
            raise InputError("a record has no Content-Length; is the file damaged?")
        end = begin + int(fields["content-length"])
        if data[:2] == _GZIP:
            member, rest = data[:size], data[size:]
            if length > end + 4:
                raise InputError(_SEVERAL)
            if length < end:
                raise InputError("a record is shorter than it says; fetch the file again")
        else:
            if end - begin > self._longest:
                raise InputError(f"the record is {too_long(self._longest)}")
            while len(data) < end + 4 and (more := stream.read(max(_READ, end + 4 - len(data)))):
                data += more
            if len(data) < end:
                raise InputError("a record is shorter than it says; fetch the file again")
            member, rest = b"", data[end + 4 :]
            head = data[:end]
        try:
            text = self._payload(fields, head, member, begin, end)
        except InputError as error:
            return rest, FileRows(rejects=[Reject(stream.name, row, error.reason, fields)])
        if text is None:
            return rest, FileRows()
        names = ("warc-type", "warc-target-uri", "warc-date")
        values = [fields.get(name) for name in names]
        table = pa.table([[each] for each in [*values, text]], schema=self.schema)
        return rest, FileRows.after(row - 1, table)

    def _payload(
        self, fields: dict[str, str], head: bytes, member: bytes, begin: int, end: int
    ) -> bytes | None:
        """Return the payload of a record whose block is [begin, end) of `head` or `member`."""
        http: dict[str, str] = {}
        if fields.get("content-type", "").startswith("application/http"):
            http, begin = _headers(head[begin:end], b"", begin)
        if begin >= end:
            return None
        coding = http.get("content-encoding", "identity").lower()
        chunked = "chunked" in http.get("transfer-encoding", "").lower()
        zipped = coding in ("gzip", "x-gzip", "deflate")
        if not zipped and coding not in ("identity", "", "none", "utf-8"):
            raise InputError(f"its body is packed by {coding}; make it plain, or leave it out")
        if self._compressed and member and not (chunked or zipped):
            return as_slice(member, begin, end)
        text = inflated(member, self._longest + _MOST_HEADERS) if member else head
        text = text[begin:end]
        if chunked:
            text = _without_chunks(text)
        if zipped and (
            text[:2] == _GZIP or text[:1] == b"\x78"
        ):  # else somebody unpacked it before
            return text if self._compressed else inflated(text, self._longest)
        return packed(text) if self._compressed else text or None

    def _member(self, data: bytes, stream: Stream) -> tuple[bytes, int, int]:
        """Read until a member is whole; return the data, its size there, and its length."""
        while True:
            try:
                return data, *_core.scan_gzip(np.frombuffer(data, np.uint8))
            except GrammarError as error:
                if len(data) > self._longest:
                    raise InputError(f"the record is {too_long(self._longest)}") from None
                more = stream.read(max(_READ, len(data)))
                if not more or "break off" not in error.reason:
                    raise InputError(error.reason) from None
                data += more


def _first(member: bytes) -> bytes:
    """Return as much of a member as headers may take."""
    try:
        return zlib.decompressobj(31).decompress(member, _MOST_HEADERS)
    except zlib.error as error:
        raise InputError(f"the compressed bytes are damaged ({error}); fetch them again") from None


def _headers(data: bytes, version: bytes, begin: int = 0) -> tuple[dict[str, str], int]:
    """Return the fields of headers, names in lower case, and where they end, from `begin` on."""
    end = data.find(b"\r\n\r\n", 0, _MOST_HEADERS)
    if not data.startswith(version):
        raise InputError("a record does not begin with WARC/: is this a WARC file, and whole?")
    if end < 0:
        raise InputError(f"its headers do not end within {_MOST_HEADERS:,} bytes")
    lines = re.sub(rb"\r\n[ \t]+", b" ", data[:end]).decode("utf-8", "replace").split("\r\n")[1:]
    pairs = (line.partition(":") for line in lines)
    fields = {name.strip().lower(): value.strip().strip("<>") for name, _, value in pairs}
    return fields, begin + end + 4


def _without_chunks(body: bytes) -> bytes:
    """Return a body that HTTP sent in chunks, or as it is, if somebody joined them before."""
    pieces: list[bytes] = []
    at = 0
    while match := re.compile(rb"([0-9A-Fa-f]{1,8})[^\r\n]{0,200}\r\n").match(body, at):
        size, at = int(match[1], 16), match.end()
        if size == 0:
            return b"".join(pieces)
        if body[at + size : at + size + 2] != b"\r\n":
            break
        pieces.append(body[at : at + size])
        at += size + 2
    return body


FORMATS = [Format("warc", (".warc",), WarcReader, packed=True)]
