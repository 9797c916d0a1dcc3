"""From documents to a corpus on disk, on any engine, going on where it was interrupted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

import pyarrow as pa

from laconic.corpus import Corpus
from laconic.corpus.compact import check_compact, compact_fields
from laconic.corpus.schema import check_columns
from laconic.corpus.worker import CompressionJob, DocumentError, Result
from laconic.engines import Cluster, Engine
from laconic.engines.portions import Outcome, Task, by_shards, entry, first_model, make_shards
from laconic.engines.shards import Key, NothingToDoError, Tally, UnfinishedCorpus
from laconic.errors import InputError
from laconic.files import spare_inputs
from laconic.formats import RawDocuments, ReadError, at_its_row
from laconic.formats.format import Layout, RawPart
from laconic.formats.stores import Place

SHARD_LETTERS = 64_000_000  # what is lost at most when the work is interrupted
_EVERY = 1.0  # seconds, how often it is shown what workers did


class NoDocumentsError(InputError):
    """The inputs hold no document, or none that could be compressed."""


def build_corpus(
    documents: RawDocuments,
    out: Place,
    job: CompressionJob,
    engine: Engine | Cluster,
    *,
    sharded: bool = False,
    level: int = 3,
    compact: bool = False,
    resume: bool = False,
    force: bool = False,
    shard_letters: int = SHARD_LETTERS,
    progress: Callable[[Tally], None] | None = None,
) -> tuple[Tally, Place | None]:
    """Compress documents into the Parquet file `out`, or with `sharded` into a folder of them.

    `compact` makes it smaller, and readable by Laconic only (laconic.corpus.compact).
    Returns what the corpus holds, and the file of rejected rows, if there are any. Work is kept in
    `<out>.partial` (of a corpus in S3, below ~/.cache/laconic) until all of it is done; `resume`
    goes on with what is there. The bytes written depend on the documents and the options alone, not
    on engine, workers or interruptions. Raises FileExistsError with the cure, NoDocumentsError,
    NothingToDoError if there is nothing to resume, and ReadError with the row of a bad document.
    """
    others = [field for field in documents.schema if field.name != documents.text]
    if compact:
        check_compact(job.about)
        compact_fields(others)
    portions = documents.portions(shard_letters)
    unfinished = UnfinishedCorpus(
        out, sharded=sharded, level=level, portions=len(portions), compact=compact
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
    plan |= {"shard": shard_letters, "portions": [len(portion.files) for portion in portions]}
    plan["parts"] = documents.cuts  # finished shards have some: others must not be cut elsewhere
    if isinstance(engine, Cluster):
        _check_shared(documents)
    unfinished.begin(plan, resume=resume, force=force)
    show = progress or (lambda _: None)
    try:
        if isinstance(engine, Cluster):
            layout = _on_cluster(engine, portions, job, unfinished, shard_letters, show)
        else:
            layout = _here(engine, documents, portions, job, unfinished, shard_letters, show)
        # Only its end tells whether a compressed file ends with a newline.
        rejected = unfinished.finish(layout if layout != job.about.layout else None)
    except BaseException:
        unfinished.abandon()
        raise
    done = Tally.of(unfinished.done.values())
    if done.documents == 0:
        see = f"; see {rejected}" if rejected else ""
        raise NoDocumentsError(f"{', '.join(documents.files[:3])}: no document to compress{see}")
    return done, rejected


def _here(
    engine: Engine,
    documents: RawDocuments,
    portions: Sequence[RawDocuments],
    job: CompressionJob,
    unfinished: UnfinishedCorpus,
    most: int,
    show: Callable[[Tally], None],
) -> Layout:
    """Make the shards in this process, which reads and writes; the engine compresses."""
    finished = unfinished.done.copy()

    def parts() -> Iterator[tuple[Key, RawPart]]:
        read = 0
        for number, portion in enumerate(portions):
            for key, part in by_shards(number, portion, most):
                documents.bytes_read = read + portion.bytes_read
                if key not in finished:
                    yield key, part
            read += sum(portion.sizes)

    done = Tally.of(finished.values())
    for key, part, result in _compressed(parts(), job, engine):
        table, tally, rejects = entry(part, result)
        unfinished.add(key, table, tally, rejects)
        done.add(tally)
        show(done)
    return documents.layout


def _compressed(
    parts: Iterator[tuple[Key, RawPart]], job: CompressionJob, engine: Engine
) -> Iterator[tuple[Key, RawPart, Result]]:
    waiting: deque[tuple[Key, RawPart]] = deque()

    # Raised when all before it is done: which bad row is told must not depend on the engine.
    failed: list[ReadError] = []

    def tables() -> Iterator[pa.Table]:
        try:
            for key, part in parts:
                waiting.append((key, part))
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
            part = waiting[0][1]
            raise at_its_row(error, part.files, part.rows) from None
        yield *waiting.popleft(), result


def _check_shared(documents: RawDocuments) -> None:
    for file, state in zip(documents.files, documents.states, strict=True):
        if state is None:
            raise InputError(
                f"{file}: only one process can read it, but the workers of a cluster would: save "
                "it to a file first, or use --engine local"
            )


def _on_cluster(
    cluster: Cluster,
    portions: Sequence[RawDocuments],
    job: CompressionJob,
    unfinished: UnfinishedCorpus,
    most: int,
    show: Callable[[Tally], None],
) -> Layout | None:
    """Let workers make the shards: none of their documents comes to this process."""
    place, making = unfinished.lend(lambda: first_model(portions, job))
    lanes = -(-cluster.workers // len(portions))
    tasks = [
        Task(number, portion, lane, lanes, most, job, place, making)
        for number, portion in enumerate(portions)
        for lane in range(lanes)
    ]
    with ThreadPoolExecutor(1) as pool:
        try:
            working = pool.submit(lambda: list(cluster.each(make_shards, tasks)))
            while not wait([working], _EVERY).done:
                show(Tally.of(place.all_done().values()))
        except BaseException:
            unfinished.stop()
            raise
        outcomes: list[Outcome] = working.result()
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    if failed:
        raise min(failed, key=lambda outcome: outcome.at).error or AssertionError
    for outcome in outcomes:
        unfinished.done |= outcome.made
    unfinished.done = dict(sorted(unfinished.done.items()))
    show(Tally.of(unfinished.done.values()))
    return max(outcomes, key=lambda outcome: outcome.at).layout
