"""A corpus that is being written: shards in a folder of their own until the last one is whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from laconic.corpus.compact import learn_model
from laconic.corpus.parquet import CorpusFile, CorpusWriter
from laconic.corpus.schema import About
from laconic.errors import InputError
from laconic.files import (
    PARTIAL,
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

_MOST_REJECTS = 20_000  # that a shard may hold: they are in memory until it is finished
_MOST_NOTE = 1 << 32  # bytes that a note may have, with their reasons and contents


@dataclass(slots=True)
class Tally:
    """What a part, a shard or a whole corpus holds."""

    parts: int = 0
    documents: int = 0
    letters: int = 0
    rules: int = 0
    symbols: int = 0
    rejected: int = 0

    def add(self, other: Tally) -> None:
        """Count the other, too."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


class NothingToDoError(InputError):
    """There is nothing to go on with: the work is done."""


class UnfinishedCorpus:
    """The folder `<out>.partial`: a plan, finished shards, each with a note, and one in the making.

    Everything gets its name when it is whole, a shard after its note: whatever interrupts the work,
    what has a name can be trusted, and the rest is made again.
    """

    def __init__(
        self, out: Path, *, sharded: bool, level: int, shard_letters: int, compact: bool = False
    ) -> None:
        self.out = out = local_path(out)
        self.folder = out.with_name(out.name + PARTIAL)
        self._shards, self._unfinished = self.folder / "shards", self.folder / "unfinished.parquet"
        self._merger, self._moved = self.folder / "merged.parquet", self.folder / "moved"
        self._sharded, self._level, self._most = sharded, level, shard_letters
        self._compact = compact
        self._model: str | None = None
        self._writer: CorpusWriter | None = None
        self._tally = Tally()
        self._rejects: list[dict[str, Any]] = []
        self._number = self._with_documents = 0
        self._in_use = ExitStack()

    def begin(self, plan: dict[str, Any], *, resume: bool, force: bool) -> Tally:
        """Make or enter the folder; return what finished shards hold.

        Raises FileExistsError, with the cure, if something is in the way, BlockingIOError while
        another process is at work, and NothingToDoError if only the folder was left to remove.
        """
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            held.enter_context(locked(self.out))
            done = self._begin(plan, resume, force)
            self._in_use = held.pop_all()
        return done

    def _begin(self, plan: dict[str, Any], resume: bool, force: bool) -> Tally:
        self.sweep()
        put_back(self._shards, self.out)
        plan = plan | {"sharded": self._sharded, "level": self._level, "shard": self._most}
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
            if not note.exists() or read_json(note, _MOST_NOTE) != json.loads(json.dumps(plan)):
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
        done = Tally()
        while self._note().exists() and self._shard().exists():
            tally = Tally(**read_json(self._note(), _MOST_NOTE)["tally"])
            if (self._shard().stat().st_size == 0) != (tally.documents == 0):
                break  # the system crashed before the shard was on disk
            done.add(tally)
            self._with_documents += tally.documents > 0
            if self._compact and self._model is None and self._shard().stat().st_size:
                self._model = CorpusFile(self._shard()).stored.model
            self._number += 1
        return done

    def add(self, table: pa.Table, tally: Tally, rejects: list[dict[str, Any]]) -> None:
        """Append a part of the corpus as one row group of the shard that is being made."""
        if self._tally.letters >= self._most or len(self._rejects) >= _MOST_REJECTS:
            self._end_shard()
        if table.num_rows:
            if self._compact and self._model is None:
                self._model = learn_model(table, About.of(table.schema))
            if self._writer is None:
                self._writer = CorpusWriter(
                    self._unfinished, table.schema, self._level, self._model
                )
            self._writer.write(table)
        self._tally.add(tally)
        self._rejects += rejects

    def finish(self, layout: Mapping[str, Any] | None = None) -> Path | None:
        """Give the corpus its name, and the rejected rows theirs, which is returned if any are.

        `layout` is how the documents were laid out, if that was known at their end only. Where all
        were rejected, there is no corpus.
        """
        self._end_shard(layout, last=True)
        rejected = self._write_rejects()
        if self._sharded:
            for shard in self._shards.iterdir():
                if shard.stat().st_size == 0:  # all its documents were rejected
                    shard.unlink()
        if self._with_documents:
            if self._sharded:
                self._moved.write_text(str(self._shards.stat().st_ino))
            move(self._shards if self._sharded else self._merged(), self.out)
        self.discard()
        return rejected

    def _write_rejects(self) -> Path | None:
        path = self.out.with_name(self.out.name + ".rejects.jsonl")
        unfinished, count = self.folder / "rejects.jsonl", 0
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for number in range(self._number):
                for reject in read_json(self._note(number), _MOST_NOTE)["rejects"]:
                    file.write(json.dumps(reject, ensure_ascii=False) + "\n")
                    count += 1
        if count == 0:
            path.unlink(missing_ok=True)
            return None
        move(unfinished, path)
        return path

    def discard(self) -> None:
        """Remove the folder and all that was done."""
        remove(self.folder)
        self._in_use.close()

    def sweep(self) -> None:
        """Remove what is left if the folder was being made or removed when that was killed."""
        for path in (self.folder, self.out):
            sweep(path.parent, path.name)

    def abandon(self) -> None:
        """Leave the unfinished shard; what there is no finished shard to go on from is removed."""
        with self._in_use:
            if self._writer is not None:
                self._writer.abandon()
                self._writer = None
            for each in (self._unfinished, self._merger):
                each.unlink(missing_ok=True)
            if not self._shard(0).exists():
                remove(self.folder)

    def _is_moved(self) -> bool:
        """Return whether the shards have their name: then those of a replaced corpus have ours."""
        moved = self._moved.read_text() if self._moved.exists() else ""
        return moved == str(self.out.stat().st_ino)

    def _is_replaceable(self) -> bool:
        if not self._sharded:
            return self.out.is_file()
        return self.out.is_dir() and all(each.suffix == ".parquet" for each in self.out.iterdir())

    def _shard(self, number: int | None = None) -> Path:
        return self._shards / f"shard-{self._number if number is None else number:05}.parquet"

    def _note(self, number: int | None = None) -> Path:
        return self.folder / f"shard-{self._number if number is None else number:05}.json"

    def _end_shard(self, layout: Mapping[str, Any] | None = None, last: bool = False) -> None:
        if self._tally.parts == 0:
            return
        note = {"tally": asdict(self._tally), "rejects": self._rejects}
        write_text(self._note(), json.dumps(note))
        writer, self._writer = self._writer, None
        if writer is not None:
            self._with_documents += 1
            writer.close(layout, self._with_documents if last and self._sharded else None)
            move(self._unfinished, self._shard())
        else:  # all its documents were rejected
            self._shard().touch()
        self._tally, self._rejects = Tally(), []
        self._number += 1

    def _merged(self) -> Path:
        shards = [self._shard(number) for number in range(self._number)]
        if len(shards) == 1:
            return shards[0]
        files = [CorpusFile(shard) for shard in shards if shard.stat().st_size]
        self._writer = CorpusWriter(self._merger, files[0].schema, self._level, self._model)
        for file in files:
            for piece in file.pieces():
                self._writer.write(piece.load(None))
        writer, self._writer = self._writer, None
        writer.close(files[-1].final_layout)
        return self._merger
