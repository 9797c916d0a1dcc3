"""From documents to a corpus on disk, on any engine, going on where it was interrupted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa

from laconic.arrays import arrow_integers
from laconic.corpus import Corpus
from laconic.corpus.compact import check_compact, compact_fields
from laconic.corpus.schema import check_columns
from laconic.corpus.worker import CompressionJob, DocumentError, Result
from laconic.engines import Engine
from laconic.engines.shards import NothingToDoError, Tally, UnfinishedCorpus
from laconic.errors import InputError
from laconic.files import spare_inputs
from laconic.formats import RawDocuments, ReadError, at_its_row
from laconic.formats.format import RawPart, Reject, shown

SHARD_LETTERS = 64_000_000  # what is lost at most when the work is interrupted


class NoDocumentsError(InputError):
    """The inputs hold no document, or none that could be compressed."""


def build_corpus(
    documents: RawDocuments,
    out: Path,
    job: CompressionJob,
    engine: Engine,
    *,
    sharded: bool = False,
    level: int = 3,
    compact: bool = False,
    resume: bool = False,
    force: bool = False,
    shard_letters: int = SHARD_LETTERS,
    progress: Callable[[Tally], None] | None = None,
) -> tuple[Tally, Path | None]:
    """Compress documents into the Parquet file `out`, or with `sharded` into a folder of them.

    `compact` makes it smaller, and readable by Laconic only (laconic.corpus.compact).
    Returns what the corpus holds, and the file of rejected rows, if there are any. Work is kept in
    `<out>.partial` until all of it is done; `resume` goes on with what is there. The bytes written
    depend on the documents and the options alone, not on engine, workers or interruptions. Raises
    FileExistsError with the cure, NoDocumentsError, NothingToDoError if there is nothing to resume,
    and ReadError with the row of a bad document.
    """
    others = [field for field in documents.schema if field.name != documents.text]
    if compact:
        check_compact(job.about)
        compact_fields(others)
    unfinished = UnfinishedCorpus(
        out, sharded=sharded, level=level, shard_letters=shard_letters, compact=compact
    )
    spare_inputs(out, documents.files)
    if resume and not force and out.exists() and not unfinished.folder.exists():
        unfinished.sweep()
        made = Corpus.open(out).about
        if any(
            getattr(made, name) != getattr(job.about, name)
            for name in ("codec", "alphabet", "rulebook")
        ):
            raise FileExistsError(f"{out} was made with other options: use --force to replace it")
        raise NothingToDoError(f"{out} is there already, and whole")
    check_columns(others)
    known = zip(documents.files, documents.states, strict=True)
    inputs = [[file, *(state or (0, 0))] for file, state in known]
    plan = {"inputs": inputs, "about": job.about.schema([]).metadata[b"laconic"].decode()}
    plan["parts"] = documents.cuts  # finished parts are counted: others must not be cut elsewhere
    done = unfinished.begin(plan, resume=resume, force=force)
    try:
        for part, result in _compressed(documents, done.parts, job, engine):
            rejects = _rejects(part, result)
            tally = _tally(result.table, len(rejects))
            unfinished.add(result.table, tally, rejects)
            done.add(tally)
            if progress is not None:
                progress(done)
        # Only its end tells whether a compressed file ends with a newline.
        changed = documents.layout != job.about.layout
        rejected = unfinished.finish(documents.layout if changed else None)
    except BaseException:
        unfinished.abandon()
        raise
    if done.documents == 0:
        see = f"; see {rejected}" if rejected else ""
        raise NoDocumentsError(f"{', '.join(documents.files[:3])}: no document to compress{see}")
    return done, rejected


def _compressed(
    documents: RawDocuments, skip: int, job: CompressionJob, engine: Engine
) -> Iterator[tuple[RawPart, Result]]:
    waiting: deque[RawPart] = deque()

    # Raised when all before it is done: which bad row is told must not depend on the engine.
    failed: list[ReadError] = []

    def tables() -> Iterator[pa.Table]:
        try:
            for number, part in enumerate(documents.parts()):
                if number >= skip:
                    waiting.append(part)
                    yield part.table
        except ReadError as error:
            failed.append(error)

    results = engine.run(tables(), job)
    while True:
        try:
            result = next(results)
        except StopIteration:
            if failed:
                raise failed[0] from None
            return
        except DocumentError as error:
            raise at_its_row(error, waiting[0].files, waiting[0].rows) from None
        yield waiting.popleft(), result


def _rejects(part: RawPart, result: Result) -> list[dict[str, Any]]:
    rejects = list(part.rejects)
    for error in result.errors:
        row = error.document or 0
        at = "" if error.position is None else f"position {error.position}: "
        columns = shown(part.table.slice(row, 1).to_pylist()[0])
        rejects.append(Reject(part.files[row], int(part.rows[row]), at + error.reason, columns))
    files = dict.fromkeys([*part.files, *(reject.file for reject in rejects)])
    order = {file: number for number, file in enumerate(files)}
    rejects.sort(key=lambda reject: (order[reject.file], reject.row))
    return [asdict(reject) for reject in rejects]


def _tally(table: pa.Table, rejected: int) -> Tally:
    letters = sum(int(arrow_integers(chunk).sum()) for chunk in table.column("length").chunks)
    rules, symbols = (
        sum(len(chunk.flatten()) for chunk in table.column(name).chunks)
        for name in ("rules", "sequence")
    )
    return Tally(1, table.num_rows, letters, rules, symbols, rejected)
