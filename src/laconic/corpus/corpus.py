"""A corpus: many grammars with their labels and other columns, in memory or in Parquet files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from operator import index
from typing import Any, Unpack, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laconic.alphabet import Alphabet, Document
from laconic.arrays import Int64s, arrow_integers, by_group, row_numbers
from laconic.codecs import Codec, CodecName, Options, alphabet_of, as_codec, compress_many
from laconic.corpus.compact import check_compact, learn_model
from laconic.corpus.parquet import CorpusFile, CorpusWriter, Filtered, InMemory, Piece
from laconic.corpus.schema import (
    GRAMMAR_COLUMNS,
    About,
    CorpusError,
    array_of,
    grammars_from,
    shared_values,
    table_of,
)
from laconic.corpus.worker import CompressionJob, DocumentError, compress_table
from laconic.errors import InputError, MissingPackageError, NoDocumentError
from laconic.files import whole
from laconic.formats import RawDocuments, ReadError, ReadOptions, at_its_row, read_table
from laconic.formats.stores import S3Path, place
from laconic.grammar import Grammar, Grammars
from laconic.rulebook import Rulebook
from laconic.show import how_many
from laconic.threads import processors

_EXPANDED = 1 << 26  # terminals that are expanded at a time


class Corpus:
    """Many grammars and the columns beside them; what lies in files is read when it is needed.

    >>> corpus = Corpus.from_documents(["abab", "banana"], labels=["a", "b"])
    >>> corpus
    <Corpus: 2 documents, repair over Alphabet.bytes(), columns label>
    >>> corpus[1].text(), corpus.labels
    ('banana', ['a', 'b'])
    """

    def __init__(self, about: About, schema: pa.Schema, pieces: Sequence[Piece]) -> None:
        self.about, self.schema = about, schema
        self._pieces = list(pieces)
        self._starts = np.array([0, *accumulate(piece.rows for piece in self._pieces)], np.int64)
        self._loaded: tuple[int, Grammars] | None = None

    @classmethod
    def open(cls, path: str | os.PathLike[str] | S3Path) -> Corpus:
        """Return the corpus in a Parquet file, or in a folder of them (its shards, by name).

        It may be in S3: `s3://bucket/corpus.parquet`.
        Only footers are read. Raises FileNotFoundError, or CorpusError with the file for what is no
        corpus, is damaged, or is not like the shards before it.
        """
        path = place(path)
        if not path.exists():
            raise FileNotFoundError(f"{path} does not exist")
        paths: list[Any] = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not paths:
            raise FileNotFoundError(f"{path} holds no .parquet files")
        files = [CorpusFile(each) for each in paths]
        for file in files[1:]:
            if file.about != files[0].about or not file.schema.equals(files[0].schema):
                raise CorpusError(
                    f"its codec, alphabet, rulebook or columns are not {paths[0]}'s",
                    file=str(file.path),
                )
        if path.is_dir() and (files[-1].shards or 0) > len(files):
            reason = f"{files[-1].shards} shards were written, but {len(files)} are here"
            raise CorpusError(reason, file=str(path))
        pieces = [piece for file in files for piece in file.pieces()]
        # How the input ends is known to the last shard only.
        about = replace(files[0].about, layout=files[-1].final_layout or files[0].about.layout)
        return cls(about, about.schema(files[0].schema), pieces)

    @classmethod
    def from_documents(
        cls,
        documents: Iterable[Document],
        labels: Iterable[object] | None = None,
        codec: CodecName | Codec = "repair",
        alphabet: str | Alphabet | None = None,
        rulebook: Rulebook | None = None,
        threads: int | None = None,
        **options: Unpack[Options],
    ) -> Corpus:
        """Return the corpus of documents in memory, compressed as by compress_many.

        Raises ValueError unless there is one label for each document.
        """
        codec, alphabet = as_codec(codec, options), alphabet_of(alphabet, rulebook)
        if isinstance(documents, (str, bytes)):
            raise TypeError("from_documents takes many documents, not one; pass [document]")
        documents = list(documents)
        columns = None if labels is None else pa.table({"label": pa.array(list(labels))})
        if columns is not None and columns.num_rows != len(documents):
            raise InputError(f"{len(documents)} documents, but {columns.num_rows} labels")
        grammars = compress_many(
            documents, codec, alphabet=alphabet, rulebook=rulebook, threads=threads
        )
        label = None if labels is None else "label"
        about = About(codec, alphabet, label=label, rulebook=rulebook)
        return cls.from_arrow(table_of(grammars, about, columns))

    @classmethod
    def from_table(
        cls,
        source: Any,
        text: str | None = None,
        label: str | None = None,
        codec: CodecName | Codec = "repair",
        alphabet: str | Alphabet | None = None,
        rulebook: Rulebook | None = None,
        threads: int | None = None,
        compressed: bool = False,
        **options: Unpack[Options],
    ) -> Corpus:
        """Return the corpus of a table of documents in memory, with its other columns.

        `source` is an Arrow table or reader, or a Hugging Face dataset; `text` and `label` name its
        columns. Raises ReadError for a column that is not there, and with the row, from 1, for a
        text that is missing, empty or outside the alphabet. `compressed` is as in compress_many.
        """
        documents = read_table(source, ReadOptions(text=text, label=label, compressed=compressed))
        return cls.from_raw(documents, as_codec(codec, options), alphabet, rulebook, threads)

    @classmethod
    def from_raw(
        cls,
        documents: RawDocuments,
        codec: Codec,
        alphabet: str | Alphabet | None = None,
        rulebook: Rulebook | None = None,
        threads: int | None = None,
        left_out: Callable[[ReadError], None] | None = None,
    ) -> Corpus:
        """Return the corpus, in memory, of what laconic.formats reads; raises as from_table.

        With `left_out`, which is told of each in order, bad documents are left out instead.
        """
        alphabet = alphabet_of(alphabet, rulebook)
        names = documents.text, documents.label, documents.layout
        about = About(codec, alphabet, *names, rulebook=rulebook)
        skip = left_out is not None
        job = CompressionJob(about, "skip" if skip else "stop", documents.compressed)
        tables = []
        for part in documents.parts():
            try:
                result = compress_table(part.table, job, threads or processors())
            except DocumentError as error:
                raise at_its_row(error, part.files, part.rows) from None
            tables.append(result.table)
            if left_out is not None:
                for bad in part.rejected(result.errors):
                    left_out(ReadError(bad.reason, file=bad.file, row=bad.row))
        if not tables:
            tables = [compress_table(documents.schema.empty_table(), job).table]
        return cls.from_arrow(pa.concat_tables(tables))

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Corpus:
        """Return the corpus in a table such as to_arrow gives; grammars are checked when used."""
        return cls(About.of(table.schema), table.schema, [InMemory(table)])

    @property
    def codec(self) -> Codec:
        """The codec the documents were compressed with."""
        return self.about.codec

    @property
    def alphabet(self) -> Alphabet:
        """The alphabet of the documents."""
        return self.about.alphabet

    @property
    def rulebook(self) -> Rulebook | None:
        """The rulebook that the documents are under, if there is one."""
        return self.about.rulebook

    @property
    def columns(self) -> list[str]:
        """The names of the user's columns."""
        return [name for name in self.schema.names if name not in GRAMMAR_COLUMNS.names]

    @property
    def labels(self) -> list[Any]:
        """The label of each document; ValueError if the corpus has no label column."""
        if self.about.label is None or self.about.label not in self.schema.names:
            names = f", one of {', '.join(self.columns)}" if self.columns else ""
            raise InputError(f"this corpus has no labels; name their column with --label{names}")
        labels: list[Any] = []
        for piece in self._pieces:
            for chunk in piece.load([self.about.label]).column(0).chunks:
                labels += shared_values(chunk)
        return labels

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """The number of terminals of each document, int64 [N], as the file gives them."""
        chunks = self.column("length").chunks
        return np.concatenate([np.zeros(0, np.int64), *map(arrow_integers, chunks)])

    @cached_property
    def grammars(self) -> Grammars:
        """All grammars, checked. O(symbols) time and memory; batches() takes them part by part."""
        parts = [self._grammars(number) for number in range(len(self._pieces))]
        none = Grammars(self.alphabet.size, [], [0], [], [0], self.rulebook)
        return Grammars.concatenate(parts or [none])

    @property
    def group_starts(self) -> Int64s:
        """The first document of each row group, and the number of all, int64 [G + 1]."""
        return self._starts

    def group(self, number: int) -> Grammars:
        """Return the grammars of one row group, checked."""
        return self._checked(number, self._pieces[number].load(GRAMMAR_COLUMNS.names))

    def part(self, number: int) -> Corpus:
        """Return one row group as a corpus in memory; its grammars are checked when they are used.

        To look at few of its documents costs no more than to read it.
        """
        return self._like_this(self._pieces[number].load(None))

    def estimated_bytes(self) -> int:
        """Return about how many bytes all grammars take in memory, by those of the largest group.

        Little is read for that: what a file says of its sizes is not how much it unpacks to.
        """
        sizes = [piece.size for piece in self._pieces]
        if not sizes:
            return 0
        largest = int(np.argmax(sizes))
        return self.group(largest).nbytes * sum(sizes) // max(1, sizes[largest])

    def labelled_by(self, column: str) -> Corpus:
        """Return the same corpus with the labels in another of its columns.

        >>> corpus = Corpus.from_documents(["abab", "banana"])
        >>> table = corpus.to_arrow().add_column(0, "kind", pa.array(["a", "b"]))
        >>> Corpus.from_arrow(table).labelled_by("kind").labels
        ['a', 'b']
        """
        if column not in self.columns:
            names = ", ".join(self.columns) or "none"
            raise InputError(f"no column {column!r}; there are: {names}")
        about = replace(self.about, label=column)
        return Corpus(about, about.schema(self.schema), self._pieces)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return one column; KeyError if there is none of that name."""
        if name not in self.schema.names:
            raise KeyError(f"no column {name!r}; there are {', '.join(self.schema.names)}")
        return self.to_arrow([name]).column(name)

    def to_arrow(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the corpus, or some of its columns, as a table with the corpus's metadata."""
        names = self.schema.names if columns is None else columns
        schema = self.about.schema(self.schema.field(name) for name in names)
        tables = [piece.load(list(names)).select(names) for piece in self._pieces]
        if not tables:
            return schema.empty_table()
        return pa.concat_tables(tables).replace_schema_metadata(schema.metadata)

    def to_pandas(self, documents: bool = False) -> Any:
        """Return the user's columns and the lengths as a DataFrame, with the documents if asked.

        These are expanded to text, as much as all of them take. MissingPackageError without pandas.
        """
        table = self.to_arrow([*self.columns, "length"])
        if documents:
            texts = [part.column(self.about.text) for part in self.documents(as_text=True)]
            chunks = [chunk for column in texts for chunk in column.chunks]
            table = table.add_column(
                0, self.about.text, pa.chunked_array(chunks, pa.large_string())
            )
        try:
            return table.to_pandas()
        except ModuleNotFoundError as error:
            reason = "a DataFrame needs the package pandas: pip install pandas"
            raise MissingPackageError(reason) from error

    def select(self, rows: npt.ArrayLike | slice) -> Corpus:
        """Return the corpus of some documents, in memory: integers [K], a mask [N] or a slice."""
        wanted = np.arange(len(self))[rows] if isinstance(rows, slice) else np.asarray(rows)
        if wanted.dtype == bool:
            wanted = np.flatnonzero(self._mask(wanted))
        wanted = row_numbers(wanted, len(self))
        tables, order = [], []
        for number, here, within in by_group(self._starts, wanted):
            tables.append(self._pieces[number].load(None).take(array_of(within)))
            order.append(here)
        if not tables:
            return self._like_this(self.schema.empty_table())
        places = np.argsort(np.concatenate(order), kind="stable")
        return self._like_this(pa.concat_tables(tables).take(array_of(places)))

    def filter(self, mask: npt.ArrayLike) -> Corpus:
        """Return the corpus of the documents where a mask [N] is true; files are read as before.

        >>> corpus = Corpus.from_documents(["abab", "banana", "abba"])
        >>> [each.text() for each in corpus.filter([True, False, True])]
        ['abab', 'abba']
        """
        kept = self._mask(mask)
        parts = zip(self._pieces, self._starts, self._starts[1:], strict=False)
        pieces = [Filtered(piece, kept[begin:end]) for piece, begin, end in parts]
        return Corpus(self.about, self.schema, [piece for piece in pieces if piece.rows])

    def batches(self, size: int) -> Iterator[Corpus]:
        """Yield the documents `size` at a time, as corpora in memory; one row group is held."""
        if size < 1:
            raise InputError(f"size must be at least 1, not {size}")
        held: list[pa.Table] = []
        for piece in self._pieces:
            held.append(piece.load(None))
            while sum(table.num_rows for table in held) >= size:
                table = pa.concat_tables(held)
                yield self._like_this(table.slice(0, size))
                held = [table.slice(size)] if table.num_rows > size else []
        if held:
            yield self._like_this(pa.concat_tables(held))

    def parts(self) -> Iterator[tuple[int, pa.Table, Grammars]]:
        """Yield the pieces as stored: number of the first document, table, checked grammars."""
        for number, piece in enumerate(self._pieces):
            table = piece.load(None)
            yield int(self._starts[number]), table, self._checked(number, table)
            del table  # before the next is loaded: one is held, if the caller holds none

    @property
    def layout(self) -> dict[str, Any]:
        """How laconic.formats writes the documents to files: as they came, or else as JSONL."""
        if self.about.layout is not None:
            return dict(self.about.layout)
        columns = [*self.columns, self.about.text]
        return {"format": "jsonl", "columns": columns, "text": self.about.text}

    def documents(self, as_text: bool = False) -> Iterator[pa.Table]:
        """Yield the documents, expanded, with their columns, a part at a time.

        They are bytes, or with `as_text` strings. Raises CorpusError for a document of more than
        2^30 terminals, or that is no text.
        """
        kind = pa.large_string() if as_text else pa.large_binary()
        for first, table, grammars in self.parts():
            columns = table.select(self.columns).replace_schema_metadata()
            texts: list[bytes | str] = []
            begin = terminals = 0
            for row, grammar in enumerate(grammars):
                spell = grammar.text if as_text else grammar.to_bytes
                try:
                    texts.append(spell(self.alphabet))
                except ValueError as error:
                    raise CorpusError(str(error), document=first + row) from None
                terminals += grammar.expanded_length
                # A small grammar may stand for much: what is expanded is held no longer than this.
                if terminals >= _EXPANDED or row + 1 == len(grammars):
                    some = columns.slice(begin, len(texts))
                    yield some.append_column(self.about.text, pa.array(texts, kind))
                    texts, begin, terminals = [], row + 1, 0

    def problems(self) -> Iterator[str]:
        """Yield what is wrong with the corpus, document by document; nothing if it is sound."""
        for number, piece in enumerate(self._pieces):
            try:
                table = piece.load(None)
            except CorpusError as error:
                rows = f"documents {self._starts[number]} to {self._starts[number + 1] - 1}"
                yield f"{error} ({rows})"
                continue
            try:
                self._checked(number, table)
            except CorpusError as error:
                if error.document is None:
                    yield str(error)
                    continue
                for row in range(table.num_rows):
                    try:
                        grammars_from(table.slice(row, 1), self.about)
                    except CorpusError as problem:
                        yield str(piece.located(problem.at(document=row)))

    def check_like(
        self, codec: Codec, alphabet: Alphabet, rulebook: Rulebook | None = None
    ) -> None:
        """Raise InputError unless documents were compressed in the same way as a model's were."""
        flag = " (--rulebook with the run's rulebook.json)"
        for what, ours, theirs in (
            ("alphabet", self.alphabet, alphabet),
            ("codec", self.codec, codec),
            ("rulebook", self.rulebook, rulebook),
        ):
            if ours != theirs:
                told = [f"the {what} {each!r}" if each else f"no {what}" for each in (ours, theirs)]
                how = flag if what == "rulebook" and theirs is not None else ""
                raise InputError(
                    f"the corpus has {told[0]}, the model was trained with {told[1]}; give the "
                    f"documents as text, or compress them in that way{how}"
                )

    def write(self, path: str | os.PathLike[str], level: int = 3, compact: bool = False) -> None:
        """Write the corpus to one Parquet file, which appears when it is whole.

        `level` is zstd's. `compact` files of Re-Pair's grammars are smaller, and read by Laconic
        only; ValueError if the corpus cannot be that.
        """
        model = None
        if compact:
            check_compact(self.about)
            # Grammars are checked when they are used: here is where the file is still known.
            for _, table, _ in self.parts():
                model = model or learn_model(table, self.about)
        with whole(path) as new, CorpusWriter(new, self.schema, level, model) as writer:
            for piece in self._pieces:
                writer.write(piece.load(None))

    def __len__(self) -> int:
        return int(self._starts[-1])

    @overload
    def __getitem__(self, which: int) -> Grammar: ...
    @overload
    def __getitem__(self, which: slice | Sequence[Any] | npt.NDArray[Any]) -> Corpus: ...
    def __getitem__(
        self, which: int | slice | Sequence[Any] | npt.NDArray[Any]
    ) -> Grammar | Corpus:
        """Return one document, or the corpus of some: a slice, numbers, or a mask, as `select`."""
        if isinstance(which, slice) or np.ndim(which):
            return self.select(which)
        i = index(which)  # type: ignore[arg-type]
        if not -len(self) <= i < len(self):
            raise NoDocumentError(f"there is no document {i}: the corpus has {len(self)}, from 0")
        i %= len(self)
        number = int(np.searchsorted(self._starts, i, side="right")) - 1
        return self._grammars(number)[i - int(self._starts[number])]

    def __iter__(self) -> Iterator[Grammar]:
        for number in range(len(self._pieces)):
            yield from self._grammars(number)

    def __repr__(self) -> str:
        columns = ", ".join(self.columns) or "none"
        return (
            f"<Corpus: {how_many(len(self), 'document')}, {self.codec.name} over "
            f"{self.rulebook or self.alphabet!r}, columns {columns}>"
        )

    def _mask(self, mask: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        kept = np.asarray(mask, None if np.size(mask) else bool)
        if kept.dtype != bool or kept.shape != (len(self),):
            found = f"shape {kept.shape} and dtype {kept.dtype}"
            raise IndexError(f"a mask of {found} for {len(self)} documents")
        return kept

    def _like_this(self, table: pa.Table) -> Corpus:
        return Corpus.from_arrow(table.replace_schema_metadata(self.schema.metadata))

    def _grammars(self, number: int) -> Grammars:
        if self._loaded is None or self._loaded[0] != number:
            self._loaded = number, self.group(number)
        return self._loaded[1]

    def _checked(self, number: int, table: pa.Table) -> Grammars:
        try:
            return grammars_from(table, self.about)
        except CorpusError as error:
            raise self._pieces[number].located(error) from None
