"""A portion of the inputs: its parts by shards, and what a worker of a cluster makes of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from laconic.arrays import arrow_integers
from laconic.corpus.compact import learn_model
from laconic.corpus.worker import CompressionJob, DocumentError, Result, compress_table
from laconic.engines.shards import Key, Shard, Tally, Workplace
from laconic.formats import RawDocuments, at_its_row
from laconic.formats.format import Layout, RawPart
from laconic.formats.parts import text_bytes


def by_shards(number: int, portion: RawDocuments, most: int) -> Iterator[tuple[Key, RawPart]]:
    """Yield the parts of a portion, each with its shard, which ends at `most` bytes of text.

    Reading alone tells where shards end: workers agree about it without a word.
    """
    shard = size = 0
    for part in portion.parts():
        if size >= most:
            shard, size = shard + 1, 0
        size += int(text_bytes(part.table.column(portion.text)).sum())
        yield Key(number, shard), part


def entry(part: RawPart, result: Result) -> tuple[pa.Table, Tally, list[dict[str, Any]]]:
    """Return what is added to a shard for a part: grammars, what they are, and rejected rows."""
    rejects = part.rejected(result.errors)
    return result.table, _tally(result.table, len(rejects)), [asdict(each) for each in rejects]


def _tally(table: pa.Table, rejected: int) -> Tally:
    letters = sum(int(arrow_integers(chunk).sum()) for chunk in table.column("length").chunks)
    rules, symbols = (
        sum(len(chunk.flatten()) for chunk in table.column(name).chunks)
        for name in ("rules", "sequence")
    )
    return Tally(1, table.num_rows, letters, rules, symbols, rejected)


def first_model(portions: Sequence[RawDocuments], job: CompressionJob) -> str | None:
    """Return the model of a compact corpus, which its first documents give."""
    for portion in portions:
        for part in portion.parts():
            table = _compressed(part, job).table
            if table.num_rows:
                return learn_model(table, job.about)
    return None


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does: of a portion, every `lanes`-th shard from number `lane` on.

    A file is not cut, since nobody knows where its rows begin who has not read it. So workers that
    share one read all of it, which takes a small part of the time that its grammars take.
    """

    number: int
    portion: RawDocuments
    lane: int
    lanes: int
    most: int  # bytes of text in a shard
    job: CompressionJob
    place: Workplace
    making: Path  # a folder for what is in the making; who is to stop does not find it any more


@dataclass(slots=True)
class Outcome:
    """What a worker did: the shards that are there now, and how its input ends, or what failed."""

    made: dict[Key, Tally] = field(default_factory=dict)
    at: tuple[int, int] = (0, 0)  # the portion, and how many parts of it were read
    layout: Layout | None = None
    error: Exception | None = None


def make_shards(task: Task) -> Outcome:
    """Read a portion and write the shards of this task, but those that are there already.

    Stops early where others failed at rows before: of all bad rows, the first is told.
    """
    outcome, shard = Outcome(), None
    try:
        for count, (key, part) in enumerate(by_shards(task.number, task.portion, task.most), 1):
            outcome.at = task.number, count
            if shard is not None and shard.key != key:
                outcome.made[shard.key] = shard.close()
                shard = None
            if key.number % task.lanes != task.lane or key in outcome.made:
                continue
            if shard is None:
                if (done := task.place.done(key)) is not None:
                    outcome.made[key] = done
                    continue
                shard = Shard(task.place, key, task.making / f"{task.place.name(key)}.parquet")
            if _stops(task, outcome.at):
                return outcome
            shard.add(*entry(part, _compressed(part, task.job)))
        if shard is not None:
            outcome.made[shard.key] = shard.close()
            shard = None
        outcome.layout = task.portion.layout
    except Exception as error:
        outcome.error = error
        _mark(task, outcome.at)
    finally:
        if shard is not None:
            shard.abandon()
    return outcome


def _compressed(part: RawPart, job: CompressionJob) -> Result:
    try:
        return compress_table(part.table, job)
    except DocumentError as error:
        raise at_its_row(error, part.files, part.rows) from None


def _mark(task: Task, at: tuple[int, int]) -> None:
    """Tell the others that there is an error: a file's name says where."""
    if task.making.is_dir():
        (task.making / "failed-{}-{}".format(*at)).touch()


def _stops(task: Task, at: tuple[int, int]) -> bool:
    if not task.making.is_dir():
        return True
    failed = (each.name.split("-")[1:] for each in task.making.glob("failed-*"))
    return any((int(portion), int(count)) < at for portion, count in failed)
