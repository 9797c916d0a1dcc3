"""A corpus that is being written: shards in a folder of their own until the last one is whole."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from laconic.corpus.compact import learn_model
from laconic.corpus.parquet import CorpusFile, CorpusWriter
from laconic.corpus.schema import About
from laconic.errors import InputError
from laconic.files import (
    PARTIAL,
    caches,
    local_path,
    locked,
    move,
    put_back,
    read_json,
    remove,
    sweep,
    whole,
    write_text,
)
from laconic.formats.stores import Place

_MOST_PLAN = 1 << 32  # bytes that a plan may have, with all its inputs


@dataclass(slots=True)
class Tally:
    """What a part, a shard or a whole corpus holds."""

    parts: int = 0
    documents: int = 0
    letters: int = 0
    rules: int = 0
    symbols: int = 0
    rejected: int = 0

    @classmethod
    def of(cls, some: Iterable[Tally]) -> Tally:
        """Return what some hold together."""
        total = cls()
        for each in some:
            total.add(each)
        return total

    def add(self, other: Tally) -> None:
        """Count the other, too."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class NothingToDoError(InputError):
    """There is nothing to go on with: the work is done."""


class Key(NamedTuple):
    """A shard: the portion of the inputs that it is from, and its number there; they sort so."""

    portion: int
    number: int


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where shards are made, and how: what a worker has to know of `<out>.partial`.

    A shard gets its name after its note. Both have names that tell the portion, if there are many.
    """

    folder: Path
    level: int
    many: bool
    model: str | None = None

    def name(self, key: Key) -> str:
        """Return a shard's name, without a suffix."""
        return f"shard-{key.portion:05}-{key.number:05}" if self.many else f"shard-{key.number:05}"

    def shard(self, key: Key) -> Path:
        """Return where a shard is, if any of its documents is sound."""
        return self.folder / "shards" / f"{self.name(key)}.parquet"

    def note(self, key: Key) -> Path:
        """Return where it is said what a shard holds."""
        return self.folder / f"{self.name(key)}.json"

    def rejects(self, key: Key) -> Path:
        """Return where the rejected rows of a shard are, if there are any."""
        return self.folder / f"{self.name(key)}.rejects.jsonl"

    def done(self, key: Key) -> Tally | None:
        """Return what a finished shard holds; None if it is to be made."""
        if not self.note(key).exists():
            return None
        tally, shard = Tally(**read_json(self.note(key))["tally"]), self.shard(key)
        # An empty one: the system crashed before its bytes were on disk.
        there = shard.exists() and shard.stat().st_size > 0
        return tally if there or tally.documents == 0 else None

    def all_done(self) -> dict[Key, Tally]:
        """Return what is finished, in order."""
        found = {}
        for note in self.folder.glob("shard-*.json"):
            numbers = [int(each) for each in re.findall(r"\d+", note.name)]
            key = Key(*numbers) if self.many else Key(0, *numbers)
            if (tally := self.done(key)) is not None:
                found[key] = tally
        return dict(sorted(found.items()))


class Shard:
    """A shard in the making: all that is added is in files, which get their names in the end."""

    def __init__(self, place: Workplace, key: Key, at: Path) -> None:
        self.key = key
        self._place, self._at, self._told = place, at, at.with_suffix(".jsonl")
        self._tally = Tally()
        self._writer: CorpusWriter | None = None
        self._told.unlink(missing_ok=True)  # from when we were killed

    def add(self, table: pa.Table, tally: Tally, rejects: list[dict[str, Any]]) -> None:
        """Append a part of the corpus as one row group, and note the rejected rows."""
        if table.num_rows:
            if self._writer is None:
                place = self._place
                self._writer = CorpusWriter(self._at, table.schema, place.level, place.model)
            self._writer.write(table)
        if rejects:
            with self._told.open("a", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(json.dumps(each, ensure_ascii=False) + "\n" for each in rejects)
        self._tally.add(tally)

    def close(self) -> Tally:
        """Give the files their names; return what the shard holds."""
        if self._tally.rejected:
            move(self._told, self._place.rejects(self.key))
        write_text(self._place.note(self.key), json.dumps({"tally": asdict(self._tally)}))
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            move(self._at, self._place.shard(self.key))
        return self._tally

    def abandon(self) -> None:
        """Remove what was begun; the disk may be full."""
        if self._writer is not None:
            self._writer.abandon()
            self._writer = None
        for each in (self._at, self._told):
            each.unlink(missing_ok=True)


def work_folder(out: Place) -> Path:
    """Return `<out>.partial`; for a corpus in a store it is here, where caches are."""
    here = _made_here(out)
    return here.with_name(here.name + PARTIAL)


def _made_here(out: Place) -> Path:
    if isinstance(out, Path):
        return local_path(out)
    return caches().joinpath(*str(out).replace("://", "/").split("/"))


class UnfinishedCorpus:
    """The folder `<out>.partial`: a plan, finished shards, each with a note, and one in the making.

    Everything gets its name when it is whole, a shard after its note: whatever interrupts the work,
    what has a name can be trusted, and the rest is made again.
    """

    def __init__(
        self, out: Place, *, sharded: bool, level: int, portions: int = 1, compact: bool = False
    ) -> None:
        self._here = _made_here(out)
        self.out: Place = self._here if isinstance(out, Path) else out
        self.folder = work_folder(out)
        self.place = Workplace(self.folder.absolute(), level, portions > 1)
        self.done: dict[Key, Tally] = {}
        """What finished shards hold."""
        self._shards, self._unfinished = self.folder / "shards", self.folder / "unfinished.parquet"
        self._merger, self._moved = self.folder / "merged.parquet", self.folder / "moved"
        self._making = self.folder / "making"
        self._sharded, self._compact = sharded, compact
        self._shard: Shard | None = None
        self._in_use = ExitStack()

    def begin(self, plan: dict[str, Any], *, resume: bool, force: bool) -> None:
        """Make or enter the folder, and see what is done.

        Raises FileExistsError, with the cure, if something is in the way, BlockingIOError while
        another process is at work, and NothingToDoError if only the folder was left to remove.
        """
        if not isinstance(self.out, Path):
            self.out.check_bucket()
        self._here.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            held.enter_context(locked(self._here))
            self._begin(plan, resume, force)
            self._in_use = held.pop_all()

    def _begin(self, plan: dict[str, Any], resume: bool, force: bool) -> None:
        self.sweep()
        if isinstance(self.out, Path):
            put_back(self._shards, self.out)
        plan = plan | {"sharded": self._sharded, "level": self.place.level}
        plan["compact"] = self._compact
        note = self.folder / "plan.json"
        if force and not resume:
            remove(self.folder)
        if self.folder.exists():
            if not resume:
                raise FileExistsError(
                    f"{self.folder} holds interrupted work: go on with --resume, or start anew "
                    "with --force"
                )
            if not note.exists() or read_json(note, _MOST_PLAN) != json.loads(json.dumps(plan)):
                raise FileExistsError(
                    f"{self.folder} was begun with other inputs or options: repeat those with "
                    "--resume, or start anew with --force"
                )
        elif self.out.exists() and not force:
            raise FileExistsError(f"{self.out} exists: choose another name, or use --force")
        if self.out.exists() and not self._is_replaceable():
            raise FileExistsError(f"{self.out} is no corpus: remove it yourself to replace it")
        if not self.folder.exists():
            with whole(self.folder) as new:
                (new / "shards").mkdir(parents=True)
                (new / "plan.json").write_text(json.dumps(plan, indent=1))
        if self.out.exists() and (not self._shards.exists() or self._is_moved()):
            remove(self.folder)
            raise NothingToDoError(f"{self.out} is there already, and whole")
        self.done = self.place.all_done()
        self.stop()
        if self._compact and (full := self._full()):
            self._learn(CorpusFile(full[0]).stored.model)

    def stop(self) -> None:
        """Remove what is in the making: workers that should have stopped do not find it again."""
        remove(self._making)

    def _learn(self, model: str | None) -> None:
        self.place = replace(self.place, model=model)

    def add(self, key: Key, table: pa.Table, tally: Tally, rejects: list[dict[str, Any]]) -> None:
        """Append a part of the corpus to a shard; the one before it is whole when it is another."""
        if self._shard is not None and self._shard.key != key:
            self._end_shard()
        if table.num_rows and self._compact and self.place.model is None:
            self._learn(learn_model(table, About.of(table.schema)))
        if self._shard is None:
            self._shard = Shard(self.place, key, self._unfinished)
        self._shard.add(table, tally, rejects)

    def lend(self, model: Callable[[], str | None]) -> tuple[Workplace, Path]:
        """Return what other processes need to add shards, and a folder for what they make.

        `model` is called for the model of a compact corpus, if there is none yet.
        """
        if self._compact and self.place.model is None:
            self._learn(model())
        making = self._making.absolute() / f"{time.time_ns():x}"
        making.mkdir(parents=True)
        return self.place, making

    def finish(self, layout: Mapping[str, Any] | None = None) -> Place | None:
        """Give the corpus its name, and the rejected rows theirs, which is returned if any are.

        `layout` is how the documents were laid out, if that was known at their end only. Where all
        were rejected, there is no corpus.
        """
        self._end_shard()
        rejected, full = self._write_rejects(), self._full()
        if full:
            if self._sharded:
                move(self._merged(full[-1:], layout, len(full)), full[-1])
                self._moved.write_text(str(self._shards.stat().st_ino))
                move(self._shards, self.out)
            elif len(full) == 1 and layout is None:
                move(full[0], self.out)
            else:
                move(self._merged(full, layout), self.out)
        self.discard()
        return rejected

    def _write_rejects(self) -> Place | None:
        path = self.out.with_name(self.out.name + ".rejects.jsonl")
        unfinished = self.folder / "rejects.jsonl"
        told = [self.place.rejects(key) for key, tally in self.done.items() if tally.rejected]
        if not told:
            path.unlink(missing_ok=True)
            return None
        with unfinished.open("wb") as file:
            for each in told:
                with each.open("rb") as some:
                    shutil.copyfileobj(some, file)
        move(unfinished, path)
        return path

    def discard(self) -> None:
        """Remove the folder and all that was done."""
        remove(self.folder)
        self._in_use.close()

    def sweep(self) -> None:
        """Remove what is left if the folder was being made or removed when that was killed."""
        for path in (self.folder, self._here):
            sweep(path.parent, path.name)

    def abandon(self) -> None:
        """Leave the unfinished shard; what there is no finished shard to go on from is removed."""
        with self._in_use:
            self.stop()
            if self._shard is not None:
                self._shard.abandon()
            self._merger.unlink(missing_ok=True)
            if not self.place.all_done():
                remove(self.folder)

    def _is_moved(self) -> bool:
        """Return whether the shards have their name: then those of a replaced corpus have ours."""
        if not isinstance(self.out, Path):
            return False  # what is uploaded stays here until the end
        moved = self._moved.read_text() if self._moved.exists() else ""
        return moved == str(self.out.stat().st_ino)

    def _is_replaceable(self) -> bool:
        if not self._sharded:
            return self.out.is_file()
        return self.out.is_dir() and all(each.suffix == ".parquet" for each in self.out.iterdir())

    def _full(self) -> list[Path]:
        """Return the shards that hold documents, in order."""
        return [self.place.shard(key) for key, tally in self.done.items() if tally.documents]

    def _end_shard(self) -> None:
        shard, self._shard = self._shard, None
        if shard is not None:
            self.done[shard.key] = shard.close()
            self.done = dict(sorted(self.done.items()))

    def _merged(
        self, shards: Sequence[Path], layout: Mapping[str, Any] | None, count: int | None = None
    ) -> Path:
        """Return a file of the documents of some shards, which says what is known at the end."""
        files = [CorpusFile(shard) for shard in shards]
        writer = CorpusWriter(self._merger, files[0].schema, self.place.level, self.place.model)
        try:
            for file in files:
                for piece in file.pieces():
                    writer.write(piece.load(None))
            writer.close(layout, count)
        except BaseException:
            writer.abandon()
            raise
        return self._merger
