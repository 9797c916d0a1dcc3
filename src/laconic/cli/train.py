"""laconic train: a corpus to a trained model."""

from __future__ import annotations

import json
import shlex
import sys
import time
from contextlib import nullcontext
from dataclasses import field, fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

from cyclopts import Group, Parameter

from laconic.cli.flags import Json, Label, MaybeInputPaths, OnError, Out, Reading, Switch
from laconic.cli.inputs import USUAL_DELIMITERS, labelled_corpus, trained_on
from laconic.cli.interrupt import resumable
from laconic.cli.progress import Bar, main_process, tell
from laconic.errors import InputError
from laconic.files import local_path
from laconic.show import how_many
from laconic.training.settings import TrainingConfig, read_toml, resolve

if TYPE_CHECKING:
    from laconic.corpus import Corpus
    from laconic.tasks import Metric, Task
    from laconic.training.loop import Trained
    from laconic.training.progress import Progress


# The settings that somebody who begins may want; all others describe models.
_FIRST = ("preset", "minutes", "model", "task", "class_weights", "holdout", "seed", "device")
_NOT_REMEMBERED = (  # by a run, of how its documents were read
    *("--valid", "--group", "--format", "--lines", "--label-from-path"),
    *("--with-path", "--max-document"),
)
_MANY = 20  # documents, of which some should have the same label
_SOON = 5  # seconds, after which the time can be told
_LONG = 10  # minutes, for which people had better not wait
_DEFAULTS = (
    "Defaults are those of --model sequence. Automatic training reads with the preset fast, or on "
    "a GPU accurate."
)
_CURE = ": there is no GPU here; --preset fast or fewer --epochs take less"


def _place(name: str) -> int:
    return _FIRST.index(name) if name in _FIRST else len(_FIRST)


def _flags() -> type[Any]:
    """Return a class with the fields of TrainingConfig, None for those that are not given."""
    hints, flags = get_type_hints(TrainingConfig), []
    first, others = (
        Group("Settings", sort_key=1),
        Group("Settings of models and training", help=_DEFAULTS, sort_key=2),
    )
    for each in sorted(fields(TrainingConfig), key=lambda each: _place(each.name)):
        default = "auto" if each.name in ("preset", "model") else each.default
        usual = "" if default in (None, ()) else f" [default: {default}]"
        text, opposite = each.metadata["help"] + usual, each.metadata["opposite"]
        group = first if each.name in _FIRST else others
        told = Parameter(help=text, show_default=False, negative=opposite, group=group)
        flags.append((each.name, Annotated[hints[each.name] | None, told], field(default=None)))
    return make_dataclass("Flags", flags, frozen=True, namespace={"__module__": __name__})


if TYPE_CHECKING:
    Flags: TypeAlias = TrainingConfig
else:
    Flags = _flags()


def train(
    inputs: MaybeInputPaths = None,
    /,
    *,
    out: Out,
    reading: Reading = None,
    label: Label = None,
    valid: str | None = None,
    group: str | None = None,
    config: Path | None = None,
    on_error: OnError = None,
    resume: Switch = False,
    settings: Annotated[Flags | None, Parameter(name="*")] = None,
    as_json: Json = False,
) -> None:
    """Train a model on a corpus, or on raw files; it reads the grammars, nothing is expanded.

    laconic train reviews.csv -o runs/reviews --text text --label stars

    laconic train reviews.parquet -o runs/reviews --minutes 10

    laconic train reviews.parquet -o runs/counted --model ngram --ngrams 6

    laconic train reviews.parquet -o runs/big --config big.toml --composer dual_gru

    laconic train -o runs/big --resume

    torchrun --nproc-per-node 8 -m laconic train corpus/ -o runs/many

    By default, n-grams are counted, which takes seconds, and what they say is blended with what a
    model reads, as time allows; held-out documents decide all of it. With --preset or --model, what
    they say is trained: a part of the documents, or --valid, tells which epoch is best. The folder
    gets the settings, the model, a line of figures for each epoch in metrics.jsonl,
    checkpoints and report.html.

    Parameters
    ----------
    out
        A new folder for the run.
    valid
        Documents that validate, instead of a part of the others.
    group
        A column: documents of the same value either all train or all validate.
    config
        A TOML file of settings, named as the flags below with _ for -; flags win.
    resume
        Go on with what was interrupted, also in the middle of an epoch.

    """
    if (local_path(out) / "config.json").exists() and not resume:
        # Told again when the run is made, which is after much that takes long.
        raise InputError(
            f"{out} holds a run; go on with --resume if it was interrupted, or choose another "
            "folder"
        )
    with resumable(out, "config.json"):
        given = read_toml(config) if config else {}
        chosen = vars(settings) if settings is not None else {}
        given |= {name: value for name, value in chosen.items() if value is not None}
        if not given.keys() & {"preset", "model"}:
            given["preset"] = "auto"
        settled = resolve(given.get("preset"), given)  # what is wrong there is told at once
        from laconic.training.auto import learn
        from laconic.training.run import Run

        before = Run.open(out) if resume and (out / "config.json").exists() else None
        if resume and before is None and inputs:
            tell(f"{out} holds no run to go on with: a new one begins")
        if not inputs:
            if before is None:
                none = f"{out} holds no run to go on with; " if resume else ""
                raise InputError(f"{none}name what to train on: files, folders or a corpus")
            command = str(before.about.get("command") or "laconic train …")
            cure = f"go on by what it began with, and --resume: {command}"
            if told := [flag for flag in _NOT_REMEMBERED if flag in command]:
                raise InputError(f"{out} does not remember {told[0]}; {cure}")
            inputs, label = trained_on(out, label, cure)
        if before is not None:
            # What is not said again is as it was.
            given = {name: value for name, value in given.items() if value != "auto"}
            settled = TrainingConfig.from_json(before.config.to_json() | given)
        data = labelled_corpus(inputs, reading, label, before, on_error)
        like = before or data
        validation = labelled_corpus([valid], reading, label, like, on_error) if valid else None
        groups = None if group is None else _groups(data, group)
        command = shlex.join(["laconic", *sys.argv[1:]])
        quiet = as_json or not main_process()
        task = _task(inputs, data, settled.task)
        if not quiet:
            print(f"{_learned(task)}, {how_many(len(data), 'document')}", flush=True)
        with nullcontext() if quiet else Bar("MofNCompleteColumn") as bar:
            trained = learn(
                data,
                settled,
                out,
                task=task,
                valid=validation,
                groups=groups,
                resume=resume,
                progress=None if bar is None else _Shown(bar, task.leading()[0]),
                notes={"command": command, "corpus": _told(inputs, data, on_error)},
                chosen=None if before is not None else given,
                say=None if bar is None else bar.print,
            )
        _leave_processes()
        if main_process():
            _say(out, trained, _write_report(out), as_json, _suffix(inputs[0]))


def _suffix(name: str) -> str:
    """Return how other files like these may end: a folder's are in folders.

    >>> _suffix("reviews.train.csv"), _suffix("reviews.csv.gz"), _suffix("my.data.v2")
    ('.csv', '.csv.gz', '.csv')
    """
    from laconic.formats.compression import split_suffix
    from laconic.formats.registry import format_of

    if Path(name).is_dir():
        return "/"
    suffixes = Path(name).suffixes[-2 if split_suffix(name)[1] else -1 :]
    return ".csv" if format_of(name) is None else "".join(suffixes)


def _task(inputs: list[str], data: Corpus, name: str) -> Task:
    """Return what the labels set; InputError where they cannot be what somebody meant."""
    from laconic.tasks import task_of

    file, labels = ", ".join(inputs), data.labels
    try:
        task = task_of(labels, name)
    except InputError as error:
        raise error.at(file=file) from None
    classes, column = len(task.classes), data.about.label
    if task.single and classes == len(data) >= _MANY:
        raise InputError(
            f"{classes:,} documents have {classes:,} different labels, so nothing can be learned "
            f"from them; choose another column than {column!r} with --label, or --task regression "
            "for numbers",
            file=file,
        )
    if task.single and 2 * classes > len(data) >= _MANY:
        told = f"{classes:,} classes of {how_many(len(data), 'document')}"
        tell(f"{told}: is {column!r} the column of the labels?")
    elif task.single and classes > _MANY and all(_is_whole(each) for each in task.classes):
        tell(f"{classes:,} classes, all whole numbers: --task regression would learn amounts")
    return task


def _is_whole(label: object) -> bool:
    return str(label).lstrip("-").isdecimal()


def _groups(data: Corpus, name: str) -> list[Any]:
    from laconic.formats.columns import names_listed

    if name not in data.columns:
        listed = names_listed(data.columns, name)
        raise InputError(f"no column {name!r}; choose --group from: {listed}")
    return list(data.column(name).to_pylist())


def _told(inputs: list[str], data: Corpus, on_error: OnError) -> dict[str, Any]:
    """Return what a run keeps of where its documents came from, and how they were read."""
    told: dict[str, Any] = {
        "path": " ".join(inputs),
        "text": data.about.text,
        "label": data.about.label,
    }
    read = {**(data.about.layout or {}), "on_error": on_error}
    unusual = {"header": False, "escapes": True, "on_error": "skip"}
    told |= {name: each for name, each in unusual.items() if read.get(name) == each}
    between = read.get("delimiter")
    return told if between in USUAL_DELIMITERS else told | {"delimiter": between}


def _leave_processes() -> None:
    from torch import distributed

    if distributed.is_available() and distributed.is_initialized():
        distributed.destroy_process_group()


def _write_report(out: Path) -> Path | None:
    """Write the page, if what draws it is installed: without it, the run is whole."""
    from laconic.training.run import Run

    try:
        from laconic.report import facts_of, write_report

        write_report(out / "report.html", [facts_of(Run.open(out))])
    except ModuleNotFoundError as error:
        print(f"no report.html: {error}", file=sys.stderr)
        return None
    return out / "report.html"


def _say(out: Path, trained: Trained, report: Path | None, as_json: bool, like: str) -> None:
    done = trained.history[-1]
    if as_json:
        figures = {
            "run": str(out),
            "best_epoch": trained.best_epoch,
            "epochs": len(trained.history) - 1,
            "valid": done["valid"],
            "seconds": trained.seconds,
            "peak_memory_mb": trained.peak_memory,
            "reserved_memory_mb": trained.reserved_memory,
            "report": str(report) if report else None,
        }
        print(json.dumps(figures))
        return
    valid = done["valid"] or {}
    scores = [
        each.spelled(valid[each.name])
        for each in trained.task.leading()
        if valid.get(each.name) is not None
    ]
    what = "counting" if not trained.best_epoch else f"epoch {trained.best_epoch} is kept"
    print(
        f"{', '.join([f'{out}: {what}', *scores])}; "
        f"{trained.seconds:.1f} s, {trained.peak_memory:,.0f} MB of memory"
        + (f" ({held:,.0f} reserved)" if (held := trained.reserved_memory) else "")
    )
    print(f"  model      {out / 'model'}")
    if report:
        print(f"  report     {report}")
    run, new = shlex.quote(str(out)), f"new{like if like != '.parquet' else '.csv'}"
    print(f"  evaluate   laconic evaluate {run} test{like}")
    print(f"  predict    laconic predict {run} {new} -o predictions.csv")
    print(f"  explain    laconic explain {run} {new} --row 0 -o why.html")
    print(f"  explore    laconic explore {run}")


def _learned(task: Task) -> str:
    return f"{task.name}: {len(task.classes):,} {task.things[1]}" if task.things else task.name


class _Shown:
    """A line for each epoch and, if stderr is a terminal, a bar there."""

    def __init__(self, bar: Bar, metric: Metric) -> None:
        self._bar, self._metric, self._begun = bar, metric, False
        self._first: tuple[float, int] | None = None
        self._told = False

    def __call__(self, at: Progress) -> None:
        loss = "" if at.loss is None else f"loss {at.loss:.4f}"
        if not at.epoch:
            self._bar.show("preparing", at.step, at.steps, loss)
            return
        # All epochs are one bar, so that it tells when the last one will be done.
        done, total = (at.epoch - 1) * at.steps + at.step, at.epochs * at.steps
        self._bar.show(f"epoch {at.epoch} of {at.epochs}", done, total, loss)
        self._tell_time(done, total)
        if at.line is not None:
            if not self._begun:
                name = self._metric.words
                self._bar.print(f"epoch  train loss  valid loss  {name:>9}  docs/s  seconds")
                self._begun = True
            self._bar.print(_row(at.line, self._metric.name))

    def _tell_time(self, done: int, total: int) -> None:
        """Tell once, after the first seconds, how long it will take, if that is long."""
        now = time.monotonic()
        if self._first is None:
            self._first = now, done
        began, before = self._first
        if self._told or now - began < _SOON or done == before:
            return
        self._told = True
        minutes = (now - began) / (done - before) * (total - done) / 60
        if minutes > 1:
            import torch

            cure = "" if torch.cuda.is_available() or minutes < _LONG else _CURE
            self._bar.print(f"about {minutes:,.0f} min to go, if all epochs are needed{cure}")


def _row(line: dict[str, Any], metric: str) -> str:
    numbers = [line["train_loss"], line["valid_loss"], (line["valid"] or {}).get(metric)]
    words = ["–" if number is None else f"{number:.4f}" for number in numbers]
    speed = f"{line['documents_per_s']:,.0f}"
    return (
        f"{line['epoch']:5}  {words[0]:>10}  {words[1]:>10}  {words[2]:>9}  "
        f"{speed:>6}  {line['seconds']:7.1f}"
    )
