"""What every engine runs: a table of documents to a table of a corpus, in Arrow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from laconic.alphabet import Alphabet, AlphabetError, Symbols
from laconic.codecs import check_compressed, compress_symbols, from_zipped
from laconic.corpus.schema import About, table_of
from laconic.errors import GrammarError, InputError, OutOfMemoryError
from laconic.grammar import Grammars

_LONGEST = 0xFFFFFF00  # terminals; the core keeps positions in 32 bits
_EMPTY = "the document is empty"
_CURE = "leave it out"


@dataclass(frozen=True, slots=True)
class CompressionJob:
    """How to compress: codec, alphabet, rulebook, text are in `about`; small enough to send."""

    about: About
    on_error: Literal["stop", "skip"] = "stop"
    compressed: bool = False  # the documents are as gzip or zlib left them


@dataclass(frozen=True, slots=True)
class Result:
    """The corpus of the good documents of a table, and why the others are not in it."""

    table: pa.Table
    errors: list[DocumentError]


class DocumentError(InputError):
    """A document that cannot be compressed; `document` counts from 0 in the table it came in."""


def compress_table(table: pa.Table, job: CompressionJob, threads: int = 1) -> Result:
    """Return the corpus of a table of documents, the columns beside the text untouched.

    Raises DocumentError for the first bad document unless the job is to skip it, OutOfMemoryError.
    """
    try:
        return _compressed(table, job, threads)
    except MemoryError as error:
        reason = "out of memory; use fewer --workers, or split long documents"
        raise OutOfMemoryError(reason) from error


def _compressed(table: pa.Table, job: CompressionJob, threads: int) -> Result:
    about = job.about
    documents = _joined(table.column(about.text).cast(pa.large_binary()))
    errors: list[DocumentError] = []
    try:
        grammars, lengths = _grammars(documents, job, threads)
    except DocumentError as error:
        if job.on_error == "stop":
            raise _with_cure(error) from None
        errors = _all_errors(documents, job)
        kept = np.ones(len(documents), bool)
        kept[[error.document or 0 for error in errors]] = False
        table, documents = table.filter(pa.array(kept)), documents.filter(pa.array(kept))
        grammars, lengths = _grammars(documents, job, threads)
    columns = table.drop_columns([about.text])
    return Result(table_of(grammars, about, columns, lengths), errors)


def _grammars(
    documents: pa.Array, job: CompressionJob, threads: int
) -> tuple[Grammars, npt.NDArray[np.int64]]:
    """Return the grammars, and how long the documents are; DocumentError for the first bad one."""
    about = job.about
    if not job.compressed:
        symbols, offsets = _symbols(documents, about.alphabet)
        size = about.alphabet.size
        grammars = compress_symbols(symbols, offsets, size, about.codec, threads, about.rulebook)
        return grammars, np.diff(offsets)
    check_compressed(about.codec, about.rulebook, about.alphabet)
    try:
        grammars = from_zipped(*_flat(documents), threads)
    except GrammarError as error:
        raise DocumentError(error.reason, document=error.document or 0) from None
    lengths = grammars.expanded_lengths
    if not lengths.all():
        raise DocumentError(_EMPTY, document=int((lengths == 0).argmax()))
    return grammars, lengths


def _with_cure(error: DocumentError) -> DocumentError:
    if error.reason != _EMPTY:
        return error
    return DocumentError(f"{_EMPTY}; {_CURE}", document=error.document)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def _flat(documents: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    _, every, data = documents.buffers()
    if every is None or len(documents) == 0:
        return np.zeros(0, np.uint8), np.zeros(1, np.int64)
    ends = slice(documents.offset, documents.offset + len(documents) + 1)
    offsets = np.frombuffer(every, np.int64)[ends]
    raw = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return raw[offsets[0] : offsets[-1]], offsets - offsets[0]


def _symbols(documents: pa.Array, alphabet: Alphabet) -> tuple[Symbols, npt.NDArray[np.int64]]:
    data, offsets = _flat(documents)
    empty = offsets[1:] == offsets[:-1]
    first_empty = int(empty.argmax()) if empty.any() else None
    try:
        symbols, starts = alphabet.encode_utf8(data, offsets)
    except AlphabetError as error:
        row = error.document or 0
        if first_empty is None or row < first_empty:
            raise DocumentError(error.reason, document=row, position=error.position) from None
    if first_empty is not None:
        raise DocumentError(_EMPTY, document=first_empty)
    longest = int(np.diff(starts).argmax()) if len(starts) > 1 else 0
    if len(starts) > 1 and starts[longest + 1] - starts[longest] > _LONGEST:
        raise DocumentError(f"it has more than {_LONGEST} terminals; split it", document=longest)
    return symbols, starts


def _all_errors(documents: pa.Array, job: CompressionJob) -> list[DocumentError]:
    errors = []
    for row in range(len(documents)):
        try:
            if job.compressed:
                _grammars(documents.slice(row, 1), job, 1)
            else:
                _symbols(documents.slice(row, 1), job.about.alphabet)
        except DocumentError as error:
            errors.append(error.at(document=row))
    return errors
