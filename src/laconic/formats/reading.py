"""`read` and `read_table`: any input to RawDocuments, which are read part by part."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from laconic.errors import NO_LABEL, InputError, OutOfMemoryError, StoreError
from laconic.formats.columns import without
from laconic.formats.format import (
    FileRows,
    Layout,
    RawPart,
    Reader,
    ReadError,
    ReadOptions,
    has_no_label,
    too_long,
)
from laconic.formats.parquet import TableReader
from laconic.formats.parts import CUTS, cut_into_parts, text_bytes
from laconic.formats.paths import label_of
from laconic.formats.registry import format_named, formats_by_suffix
from laconic.formats.sources import PathOrURL, Source, Stream, find

_DEFAULTS = ReadOptions()
_STANDARD_INPUT = "/dev/stdin"  # what the command line calls it
_OF_BYTES = ("parquet", "files")  # where documents may be bytes that gzip or zlib left


class RawDocuments:
    """Documents of some files: their columns and layout now, the documents as `parts` asks."""

    def __init__(
        self, sources: list[Source], format: str, reader: Reader, options: ReadOptions
    ) -> None:
        self.text: str = reader.text
        self._of_paths = _of_paths(sources, reader, options)
        self.label: str | None = "label" if "label" in self._of_paths else reader.label
        self.schema = reader.schema
        for name in self._of_paths:
            self.schema = self.schema.append(pa.field(name, pa.string()))
        self.files: list[str] = [source.name for source in sources]
        self.sizes: list[int] = [source.size for source in sources]
        self.states = [source.state() for source in sources]
        self.bytes_read: int = 0
        self._sources, self._format, self._reader = sources, format, reader
        self._options = options
        self.compressed: bool = bool(options.compressed)
        self._note_end(sources[-1].last_byte())

    @property
    def layout(self) -> Layout:
        """What `laconic.formats.writing` needs to write the same files again.

        Whether a compressed file ends in a newline is known when `parts` has come to its end.
        """
        style, columns = self._reader.style, list(self._reader.schema.names)
        return {"format": self._format, **style, "columns": columns, "text": self.text}

    @property
    def cuts(self) -> list[Any]:
        """What decides, beside the files, which documents are in which of the `parts`."""
        options = self._options
        cuts: list[Any] = [CUTS, options.part_bytes, options.max_document]
        # What came later is told only where it is asked for: work may go on that was begun before.
        cuts += [options.label_from_path] * (options.label_from_path is not None)
        return cuts + ["labelled"] * options.labelled

    def parts(self) -> Iterator[RawPart]:
        """Read lazily, in order; two calls give the same parts.

        Raises ReadError at the first row that cannot be read, unless `on_error` is "skip". Memory
        stays at a few parts.
        """
        return cut_into_parts(self._rows(), self.schema, self.text, self._options.part_bytes)

    def portions(self, least: int) -> list[RawDocuments]:
        """Return the same documents, as those of some neighbouring files each.

        Each has files of at least so many bytes as stored, but the last. Another process may read
        it, wherever that is started, if it has the same files.
        """
        portions: list[RawDocuments] = []
        first = size = 0
        for stop, each in enumerate(self.sizes, 1):
            size += each
            if size >= least or stop == len(self.sizes):
                portion = copy(self)
                some = slice(first, stop)
                portion.files, portion.sizes = self.files[some], self.sizes[some]
                portion.states = self.states[some]
                portion._sources = [source.anywhere() for source in self._sources[some]]
                portions.append(portion)
                first, size = stop, 0
        return portions

    def _rows(self) -> Iterator[tuple[str, FileRows]]:
        self.bytes_read = done = 0
        for source, state in zip(self._sources, self.states, strict=True):
            with _errors_of(source), Stream(source) as stream:
                for read in map(partial(self._without_bad, source.name), self._reader.read(stream)):
                    if read.rejects and self._options.on_error == "stop":
                        first = min(read.rejects, key=lambda reject: reject.row)
                        raise ReadError(first.reason, file=first.file, row=first.row)
                    consumed = stream.consumed() if read.consumed is None else read.consumed
                    self.bytes_read = done + min(consumed, source.size)
                    yield source.name, self._with_paths(source.name, read)
                if source.state() != state:
                    reason = "it was changed while it was read: run this again, when it is whole"
                    raise ReadError(reason, file=source.name)
            if not stream.failure:
                self._note_end(stream.last)
            done += source.size
            self.bytes_read = done

    def _without_bad(self, file: str, read: FileRows) -> FileRows:
        """Reject documents of more bytes than are allowed, and those without a label they need."""
        table, most = read.table, self._options.max_document
        if table is None:
            return read
        bad: dict[int, str] = {}
        if self._options.labelled and self.label in table.column_names:
            labels = table.column(self.label).to_pylist()
            bad = {row: NO_LABEL for row, label in enumerate(labels) if has_no_label(label)}
        if table.nbytes > most:
            long = np.flatnonzero(text_bytes(table.column(self.text)) > most).tolist()
            bad |= dict.fromkeys(long, f"the document is {too_long(most)}")
        if not bad:
            return read
        table, rows, rejects = without(bad, file, table, read.rows)
        rejects = sorted(read.rejects + rejects, key=lambda reject: reject.row)
        return FileRows(table, rows, rejects, read.consumed)

    def _with_paths(self, file: str, read: FileRows) -> FileRows:
        """Add the columns that the file's path gives."""
        table = read.table
        if table is None:
            return read
        for name, value in self._of_paths.items():
            table = table.append_column(
                pa.field(name, pa.string()), pa.repeat(pa.scalar(value(file)), table.num_rows)
            )
        return replace(read, table=table)

    def _note_end(self, last: bytes | None) -> None:
        """Note whether files end in a newline, by the last byte of one, if it is known."""
        style = self._reader.style
        if last and "final_newline" in style:
            style["final_newline"] = last == style["newline"][-1].encode()


def read(inputs: PathOrURL | Sequence[PathOrURL], options: ReadOptions = _DEFAULTS) -> RawDocuments:
    """Find the files of `inputs` and look at the first; the rest is read by `RawDocuments.parts`.

    Paths, globs, folders and URLs, one or many. Raises FileNotFoundError for one that matches
    nothing and ReadError where the columns are not clear.
    """
    sources = find(inputs)
    format = format_named(options.format or _format_of(sources, options.delimiter))
    compressed = format.packed if options.compressed is None else options.compressed
    if compressed and not (format.packed or format.name in _OF_BYTES):
        names = ", ".join(_OF_BYTES)
        raise ReadError(
            f"documents of {format.name} are text; compressed ones are of {names}, zip or warc",
            file=sources[0].name,
        )
    options = replace(options, compressed=compressed)
    if format.packed or (compressed and format.folder):
        sources = [replace(source, stored=True) for source in sources]
    with _errors_of(sources[0]):
        return RawDocuments(sources, format.name, format.open(sources, options), options)


def _of_paths(
    sources: list[Source], reader: Reader, options: ReadOptions
) -> dict[str, Callable[[str], str]]:
    """Return the columns that paths give, which no file may have; ReadError for a path without."""
    wanted: dict[str, Callable[[str], str]] = {}
    part = options.label_from_path
    if (options.with_path or part is not None) and "path" not in reader.schema.names:
        wanted["path"] = str
    if part is not None:
        wanted["label"] = label_of(part)
        if options.label is not None or "label" in reader.schema.names:
            reason = "there is a label already: leave out --label-from-path, or rename the column"
            raise ReadError(reason, file=sources[0].name)
        for source in sources:
            wanted["label"](source.name)
    return wanted


def read_table(source: object, options: ReadOptions = _DEFAULTS) -> RawDocuments:
    """Read what is in memory or streams by: Arrow tables, readers and batches, HF datasets.

    What can be iterated only once can be read only once: a second `parts` raises ReadError.
    """
    sources = [Source("<table>", None, "", 0, "")]
    options = replace(options, max_document=sys.maxsize)  # they are in memory already
    return RawDocuments(sources, "parquet", TableReader(source, options), options)


@contextmanager
def _errors_of(source: Source) -> Iterator[None]:
    """Let what the system says of a file come with its name."""
    try:
        yield
    except InputError as error:
        raise error if error.file is not None else error.at(file=source.name) from None
    except StoreError:
        raise
    except OSError as error:
        raise ReadError(f"cannot be read: {error}", file=source.name) from error
    except MemoryError as error:
        reason = (
            "out of memory; allow less with --max-document or --workers, or split its documents"
        )
        raise OutOfMemoryError(reason, file=source.name) from error


def _format_of(sources: list[Source], delimiter: str | None) -> str:
    """Return the one format that the files' names say; if they do not, a delimiter says CSV."""
    by_suffix = formats_by_suffix()
    names: Counter[str] = Counter()
    for source in sources:
        format = by_suffix.get(source.suffix)
        # A folder of .txt files is one document each: the usual layout of a folder per class.
        if source.from_folder and (format is None or format.name == "lines"):
            names["files"] += 1
        elif format is None and delimiter is not None:
            names["csv"] += 1
        elif format is None:
            known = " ".join(by_suffix)
            reason = f"which format is {source.suffix!r}? Choose with --format, or name it: {known}"
            if source.name == _STANDARD_INPUT:
                known = ", ".join(dict.fromkeys(each.name for each in by_suffix.values()))
                reason = f"which format is it? Choose with --format: {known}"
                raise ReadError(reason, file="standard input")
            raise ReadError(reason, file=source.name)
        else:
            names[format.name] += 1
    if len(names) > 1:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(names.items()))
        reason = f"the inputs mix formats ({listed}); choose one with --format or a glob"
        raise ReadError(reason, file=sources[0].name)
    return next(iter(names))
