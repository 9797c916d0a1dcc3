"""A run's folder: the settings, what the labels mean, the model, checkpoints, metrics."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from laconic.alphabet import Alphabet
from laconic.codecs import Codec
from laconic.errors import InputError, VersionError
from laconic.files import (
    LOCK,
    PARTIAL,
    check_version,
    local_path,
    locked,
    read_json,
    write_json,
)
from laconic.nn import GrammarModel
from laconic.nn.pretrained import VERSION, WEIGHTS, from_file, to_file
from laconic.rulebook import Rulebook
from laconic.tasks import Task, task_from_json
from laconic.training.checkpoint import Checkpoints
from laconic.training.settings import TrainingConfig

_METRICS = "metrics.jsonl"
_RULEBOOK = "rulebook.json"
_NUMBERS = {"seconds", "best_epoch", "peak_memory_mb", "reserved_memory_mb"}  # of metrics
READING = "reading"
"""The folder within a run of model "auto" that is the run of its reading part."""
_OURS = {
    *("config.json", "about.json", _RULEBOOK, "model", "checkpoints", _METRICS, "report.html"),
    READING,
}


class RunError(InputError):
    """A folder that is no run, or whose files are damaged; names what is wrong."""


@dataclass(frozen=True)
class Run:
    """What a training left in its folder.

    - config.json: the settings, all of them
    - about.json: codec, alphabet, labels, figures of the corpus, versions, command
    - rulebook.json: the rules that its documents share, if they do
    - model/: the model of the epoch that is kept, as GrammarModel.from_pretrained reads it
    - metrics.jsonl: a line for each epoch; the last one of a finished run has "done"
    - checkpoints/: where to go on
    - reading/: of the model "auto", the run of the part that reads
    """

    folder: Path
    config: TrainingConfig
    task: Task
    codec: Codec
    alphabet: Alphabet
    rulebook: Rulebook | None
    about: dict[str, Any]

    @classmethod
    def open(cls, folder: str | os.PathLike[str]) -> Run:
        """Return the run in a folder; RunError says what is missing or damaged."""
        folder = Path(folder)
        if not folder.exists():
            raise RunError(f"{folder} does not exist; laconic train makes runs")
        if folder.is_file():
            what = "a corpus" if folder.suffix == ".parquet" else "a file"
            raise RunError(f"{folder} is {what}, not a run; a run is a folder from laconic train")
        if not (folder / "config.json").is_file():
            what = "holds Parquet files, not" if any(folder.glob("*.parquet")) else "is not"
            raise RunError(f"{folder} {what} a run: config.json is missing")
        if (folder / WEIGHTS).is_file():
            raise RunError(f"{folder} is a model, not a run; the run is the folder that it is in")
        path = folder / "config.json"
        try:
            config = from_file(read_json(path), TrainingConfig.from_json)
            path = folder / "about.json"
            about = read_json(path)
            check_version(about.get("version", 1), VERSION)
            _check_told(about.get("corpus", {}))
            task = task_from_json(about["labels"])
            codec = Codec(**about["codec"])
            alphabet = Alphabet.from_json(json.dumps(about["alphabet"]))
            rulebook = None
            if (fingerprint := about.get("rulebook")) is not None:
                path = folder / _RULEBOOK
                rulebook = Rulebook.load(path)
                if rulebook.fingerprint != fingerprint:
                    raise InputError("it is another rulebook than the run's")
        except FileNotFoundError:
            raise RunError(f"{folder} is no whole run: {path.name} is missing") from None
        except VersionError as error:
            raise RunError(error.reason, file=str(path)) from None
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path} is damaged: {error}") from None
        return cls(folder, config, task, codec, alphabet, rulebook, about)

    @classmethod
    def create(
        cls,
        folder: Path,
        config: TrainingConfig,
        about: dict[str, Any],
        rulebook: Rulebook | None = None,
    ) -> Run:
        """Begin a run; RunError if something is in the way."""
        if (local_path(folder) / "config.json").exists():
            raise RunError(
                f"{folder} holds a run; go on with --resume if it was interrupted, or choose "
                "another folder"
            )
        _make_folder(folder)
        for name in sorted(each.name for each in folder.iterdir()):
            if re.sub(rf"^\.(.+)({PARTIAL}|{LOCK})$", r"\1", name) not in _OURS:
                raise RunError(f"{folder} holds {name}, and no run; choose another folder")
        # The config comes last: it makes the folder a run.
        if rulebook is not None:
            rulebook.save(folder / _RULEBOOK)
        write_json(folder / "about.json", {"version": VERSION, **about})
        write_json(folder / "config.json", to_file(config))
        return cls.open(folder)

    def tell(self, **known: Any) -> None:
        """Change what about.json says, where it says something else."""
        if any(self.about.get(name) != value for name, value in known.items()):
            self.about.update(known)
            write_json(self.folder / "about.json", {"version": VERSION, **self.about})

    @classmethod
    def about_of(cls, folder: Path) -> dict[str, Any]:
        """Return what about.json says of the run in a folder; nothing without one."""
        return cls.open(folder).about if (local_path(folder) / "config.json").exists() else {}

    @classmethod
    @contextmanager
    def claimed(cls, folder: Path) -> Iterator[None]:
        """Keep other processes from training in a folder; BlockingIOError names the one there."""
        _make_folder(folder)
        with locked(folder / _METRICS):
            yield

    @property
    def checkpoints(self) -> Checkpoints:
        """Where to go on."""
        return Checkpoints(self.folder / "checkpoints")

    @property
    def metrics_path(self) -> Path:
        """The file with a line for each epoch."""
        return self.folder / _METRICS

    @cached_property
    def fingerprint(self) -> str:
        """Of the documents and labels; empty if unknown."""
        return str(self.about.get("fingerprint", ""))

    def model(self, device: str = "cpu") -> GrammarModel:
        """Return the model of the epoch that is kept, ready to predict."""
        folder = self.folder / "model"
        if not (folder / "model.safetensors").is_file():
            raise RunError(
                f"{self.folder} has no model yet: training is not finished; if it was stopped, "
                "laconic train … --resume goes on"
            )
        model = GrammarModel.from_pretrained(folder, device=device)
        if model.config.outputs != self.task.outputs:
            told = f"labels for {self.task.outputs} outputs, the model has {model.config.outputs}"
            raise RunError(f"{self.folder / 'about.json'} is damaged: it has {told}")
        return model

    def metrics(self) -> list[dict[str, Any]]:
        """Return the lines of metrics.jsonl; one that was cut off is left out."""
        if not self.metrics_path.exists():
            return []
        text, lines = self.metrics_path.read_text("utf-8"), []
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if line.endswith("\n"):
                try:
                    lines.append(json.loads(line))
                    if not isinstance(lines[-1], dict):
                        raise InputError("it is no object")
                    for name in _NUMBERS & lines[-1].keys():
                        if not isinstance(lines[-1][name], int | float | None):
                            raise InputError(f"{name} is no number")
                except (ValueError, RecursionError) as error:
                    raise RunError(str(error), file=f"{self.metrics_path}, line {number}") from None
        return lines

    @property
    def finished(self) -> bool:
        """Whether the training came to its end."""
        lines = self.metrics()
        return bool(lines) and lines[-1].get("done") is True


def _check_told(told: object) -> None:
    """Raise ValueError unless this is what a run says of the files that it learned from."""
    if not isinstance(told, dict):
        raise ValueError("corpus must be an object")
    for name in ("path", "text", "label"):
        if not isinstance(told.get(name), str | None):
            raise ValueError(f"{name} of the corpus must be a text")


def _make_folder(folder: Path) -> None:
    if local_path(folder).is_file():
        raise RunError(f"{folder} is a file; a run needs a folder")
    folder.mkdir(parents=True, exist_ok=True)


def about_corpus(
    codec: Codec, alphabet: Alphabet, rulebook: Rulebook | None = None
) -> dict[str, Any]:
    """Return codec, alphabet and which rulebook as JSON, the way Run.open reads them."""
    known = {"codec": codec.to_dict(), "alphabet": json.loads(alphabet.to_json())}
    return known if rulebook is None else known | {"rulebook": rulebook.fingerprint}
