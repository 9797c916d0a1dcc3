"""`read` and `read_table`: any input to RawDocuments, which are read part by part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, get_args

from laconic.errors import InputError
from laconic.formats.delimited import DelimitedReader
from laconic.formats.fasta import FastaReader
from laconic.formats.jsonl import JsonlReader
from laconic.formats.layouts import FORMATS
from laconic.formats.model import Format, RawPart, Reader, ReadError, ReadOptions
from laconic.formats.parts import Cutter
from laconic.formats.plain import FilesReader, LinesReader
from laconic.formats.sources import PathOrURL, Source, find
from laconic.formats.tables import ParquetReader, TableReader

_DEFAULTS = ReadOptions()


class RawDocuments:
    """Documents of some files: their columns and layout now, the documents as `parts` asks.

    `layout` is what `laconic.formats.writing` needs to write the same files again; whether a
    compressed file ends in a newline is known, and corrected there, when `parts` has come to its
    end.
    """

    def __init__(self, sources: list[Source], reader: Reader, options: ReadOptions) -> None:
        self.text: str = reader.text
        self.label: str | None = reader.label
        self.schema = reader.schema
        self.layout: dict[str, Any] = reader.layout
        self.files: list[str] = [source.name for source in sources]
        self.sizes: list[int] = [source.size for source in sources]
        self.bytes_read: int = 0
        self._sources, self._reader, self._options = sources, reader, options

    def parts(self) -> Iterator[RawPart]:
        """Read lazily, in order; two calls give the same parts.

        Raises ReadError at the first row that cannot be read, unless `on_error` is "skip". Memory
        stays at a few parts.
        """
        self.bytes_read = done = 0
        cutter = Cutter(self.schema, self.text, self._options.part_bytes)
        for source in self._sources:
            try:
                for read in self._reader.read(source):
                    if read.rejects and self._options.on_error == "stop":
                        first = min(read.rejects, key=lambda reject: reject.row)
                        raise ReadError(first.reason, file=first.file, row=first.row)
                    self.bytes_read = done + min(read.consumed, source.size)
                    yield from cutter.add(source.name, read)
            except OSError as error:
                raise ReadError(f"cannot be read: {error}", file=source.name) from error
            done += source.size
            self.bytes_read = done
        yield from cutter.rest()


def read(inputs: PathOrURL | Sequence[PathOrURL], options: ReadOptions = _DEFAULTS) -> RawDocuments:
    """Find the files of `inputs` and look at the first; the rest is read by `RawDocuments.parts`.

    Paths, globs, folders and URLs, one or many. Raises FileNotFoundError for one that matches
    nothing and ReadError where the columns are not clear.
    """
    sources = find(inputs)
    kind = options.format or _format_of(sources)
    try:
        reader = _reader(kind, sources, options)
    except OSError as error:
        raise ReadError(f"cannot be read: {error}", file=sources[0].name) from error
    return RawDocuments(sources, reader, options)


def read_table(source: object, options: ReadOptions = _DEFAULTS) -> RawDocuments:
    """Read what is in memory or streams by: Arrow tables, readers and batches, HF datasets.

    What can be iterated only once can be read only once: a second `parts` raises ReadError.
    """
    return RawDocuments([Source("<table>", None, "", 0, "")], TableReader(source, options), options)


def _reader(kind: Format, sources: list[Source], options: ReadOptions) -> Reader:
    match kind:
        case "csv" | "tsv":
            return DelimitedReader(sources, options, "," if kind == "csv" else "\t")
        case "jsonl":
            return JsonlReader(sources, options)
        case "parquet":
            return ParquetReader(sources, options)
        case "lines":
            return LinesReader(sources, options)
        case "files":
            return FilesReader(sources, options)
        case "fasta" | "fastq":
            return FastaReader(sources, options, kind)
    known = ", ".join(get_args(Format))
    raise InputError(f"no format {kind!r}; choose --format from: {known}")


def _format_of(sources: list[Source]) -> Format:
    """Return the one format that the files' names say."""
    kinds: Counter[Format] = Counter()
    for source in sources:
        kind = FORMATS.get(source.suffix)
        # A folder of .txt files is one document each: the usual layout of a folder per class.
        if source.from_folder and kind in (None, "lines"):
            kind = "files"
        if kind is None:
            known = " ".join(FORMATS)
            reason = f"which format is {source.suffix!r}? Choose with --format, or name it: {known}"
            raise ReadError(reason, file=source.name)
        kinds[kind] += 1
    if len(kinds) > 1:
        listed = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        reason = f"the inputs mix formats ({listed}); choose one with --format or a glob"
        raise ReadError(reason, file=sources[0].name)
    return next(iter(kinds))
