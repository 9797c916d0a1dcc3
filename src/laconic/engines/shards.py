"""A corpus that is being written: shards in a folder of their own until the last one is whole."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow as pa

from laconic.corpus.compact import learn_model
from laconic.corpus.parquet import CorpusFile, CorpusWriter
from laconic.corpus.schema import About
from laconic.errors import InputError

__all__ = ["NothingToDoError", "Tally", "UnfinishedCorpus"]

_MOST_REJECTS = 100_000  # that a shard may hold: they are in memory until it is finished


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
        self.out, self.folder = out, out.with_name(out.name + ".partial")
        self._shards = self.folder / "shards"
        self._sharded, self._level, self._most = sharded, level, shard_letters
        self._compact = compact
        self._model: str | None = None
        self._writer: CorpusWriter | None = None
        self._tally = Tally()
        self._rejects: list[dict[str, Any]] = []
        self._number = self._with_documents = 0

    def begin(self, plan: dict[str, Any], *, resume: bool, force: bool) -> Tally:
        """Make or enter the folder; return what finished shards hold.

        Raises FileExistsError, with the cure, if something is in the way, and NothingToDoError if
        all was done but for removing the folder.
        """
        self.sweep()
        plan = plan | {"sharded": self._sharded, "level": self._level, "shard": self._most}
        plan["compact"] = self._compact
        note = self.folder / "plan.json"
        if self.folder.exists() and force and not resume:
            shutil.rmtree(self.folder)
        if self.folder.exists() and not resume:
            raise FileExistsError(
                f"{self.folder} holds interrupted work: go on with --resume, or start anew "
                "with --force"
            )
        if self.folder.exists() and (
            not note.exists() or json.loads(note.read_text()) != json.loads(json.dumps(plan))
        ):
            raise FileExistsError(
                f"{self.folder} was begun with other inputs or options: repeat those with "
                "--resume, or start anew with --force"
            )
        if self.out.exists() and not force and not self.folder.exists():
            raise FileExistsError(f"{self.out} exists: choose another name, or use --force")
        if self.out.exists() and not self._is_replaceable():
            raise FileExistsError(f"{self.out} is no corpus: remove it yourself to replace it")
        if not self.folder.exists():
            self._make_folder(plan)
        if not self._shards.exists() and self.out.exists():
            self.discard()
            raise NothingToDoError(f"{self.out} is there already, and whole")
        done = Tally()
        while self._note().exists() and self._shard().exists():
            tally = Tally(**json.loads(self._note().read_text())["tally"])
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
                self._writer = self._new_writer(self._unfinished(), table.schema)
            self._writer.write(table)
        self._tally.add(tally)
        self._rejects += rejects

    def finish(self, layout: Mapping[str, Any] | None = None) -> Path | None:
        """Give the corpus its name, and the rejected rows theirs, which is returned if any are.

        `layout` is how the documents were laid out, if that was known at their end only.
        """
        self._end_shard(layout, last=True)
        rejected = self._write_rejects()
        if self._sharded:
            for shard in self._shards.iterdir():
                if shard.stat().st_size == 0:  # all its documents were rejected
                    shard.unlink()
            if self.out.exists():  # moved, not removed: half of it must not be left under its name
                replaced = self.folder / "replaced"
                if replaced.exists():
                    shutil.rmtree(replaced)
                os.replace(self.out, replaced)
            os.replace(self._shards, self.out)
        else:
            os.replace(self._merged(), self.out)
        self.discard()
        return rejected

    def give_up(self) -> Path | None:
        """Remove the folder, all of whose documents were rejected; return the file of rejects."""
        self._end_shard()
        rejected = self._write_rejects()
        self.discard()
        return rejected

    def _write_rejects(self) -> Path | None:
        path = self.out.with_name(self.out.name + ".rejects.jsonl")
        unfinished, count = self.folder / "rejects.jsonl", 0
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace") as file:
            for number in range(self._number):
                for reject in json.loads(self._note(number).read_text())["rejects"]:
                    file.write(json.dumps(reject, ensure_ascii=False) + "\n")
                    count += 1
        if count == 0:
            path.unlink(missing_ok=True)
            return None
        os.replace(unfinished, path)
        return path

    def discard(self) -> None:
        """Remove the folder and all that was done; all or nothing of it is under its name."""
        self.sweep()
        if not self.folder.exists():
            return
        os.replace(self.folder, self._beside(".old"))
        self.sweep()

    def sweep(self) -> None:
        """Remove what is left of folders that were being made or removed when that was killed."""
        for leftover in (self._beside(".old"), self._beside(".new")):
            if leftover.exists():
                shutil.rmtree(leftover)

    def abandon(self) -> None:
        """Leave the unfinished shard; what there is no finished shard to go on from is removed."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
            self._unfinished().unlink(missing_ok=True)
        if self._number == 0:
            self.discard()

    def _is_replaceable(self) -> bool:
        if not self._sharded:
            return self.out.is_file()
        return self.out.is_dir() and all(each.suffix == ".parquet" for each in self.out.iterdir())

    def _beside(self, suffix: str) -> Path:
        return self.folder.with_name(self.folder.name + suffix)

    def _make_folder(self, plan: dict[str, Any]) -> None:
        new = self._beside(".new")
        (new / "shards").mkdir(parents=True)
        (new / "plan.json").write_text(json.dumps(plan, indent=1))
        os.replace(new, self.folder)

    def _shard(self, number: int | None = None) -> Path:
        return self._shards / f"shard-{self._number if number is None else number:05}.parquet"

    def _note(self, number: int | None = None) -> Path:
        return self.folder / f"shard-{self._number if number is None else number:05}.json"

    def _unfinished(self) -> Path:
        return self.folder / "unfinished.parquet"

    def _new_writer(self, path: Path, schema: pa.Schema) -> CorpusWriter:
        return CorpusWriter(path, schema, self._level, self._model)

    def _end_shard(self, layout: Mapping[str, Any] | None = None, last: bool = False) -> None:
        if self._tally.parts == 0:
            return
        note = {"tally": asdict(self._tally), "rejects": self._rejects}
        _write_whole(self._note(), json.dumps(note))
        if self._writer is not None:
            self._with_documents += 1
            self._writer.close(layout, self._with_documents if last and self._sharded else None)
            os.replace(self._unfinished(), self._shard())
        else:  # all its documents were rejected
            self._shard().touch()
        self._writer, self._tally, self._rejects = None, Tally(), []
        self._number += 1

    def _merged(self) -> Path:
        shards = [self._shard(number) for number in range(self._number)]
        if len(shards) == 1:
            return shards[0]
        merged = self.folder / "merged.parquet"
        files = [CorpusFile(shard) for shard in shards if shard.stat().st_size]
        writer = self._new_writer(merged, files[0].schema)
        for file in files:
            for piece in file.pieces():
                writer.write(piece.load(None))
        writer.close(files[-1].final_layout)
        return merged


def _write_whole(path: Path, text: str) -> None:
    partial = path.with_name(path.name + ".tmp")
    partial.write_text(text, encoding="utf-8", errors="backslashreplace")
    os.replace(partial, path)
