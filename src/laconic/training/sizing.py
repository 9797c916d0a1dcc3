"""How much reading there is time for: a model and epochs to suit documents, machine and minutes."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import fields, replace
from typing import Any, NamedTuple, cast

import numpy as np
from accelerate import Accelerator

from laconic.show import how_many
from laconic.training.holdout import Divided
from laconic.training.loop import train
from laconic.training.settings import TrainingConfig, resolve
from laconic.training.threads import fastest_threads, threads_are_free

_MINUTES = 0.8  # on a CPU, from the beginning; on a GPU as long as it takes
FEWEST_HELD_OUT = 50  # documents, that can show whether reading helps
_FEWEST_STEPS = 300  # that teach a small model to read anything
_PROBE = 96  # documents that tell how fast reading is
_SPARE = 0.85  # of the time is for steps: the rest validates
_DOCUMENTS = 80_000  # times read, at least: small sets get more epochs than the preset has
_EPOCHS = 30  # and never more than so many


class Sized(NamedTuple):
    """The settings to read with, None for not at all, and why; and when to stop, if ever."""

    config: TrainingConfig | None
    why: str
    until: float | None = None
    """Of time.perf_counter()."""


def sized_reading(
    parts: Divided,
    config: TrainingConfig,
    accelerator: Accelerator,
    began: float,
    chosen: Collection[str] | None = None,
) -> Sized:
    """Return what to read with: settings that were chosen, else what there is time for.

    On a GPU it is the preset `accurate`, on a CPU `fast`, in as many epochs as end in time (of
    time.perf_counter(), from `began`); a few steps tell how many these are, and with how many
    threads they are fastest.
    """
    chosen = chosen_settings(config, chosen)
    documents, held_out = len(parts.training), len(parts.validation or ())
    if held_out < FEWEST_HELD_OUT:
        return Sized(
            None, f"left out: {how_many(held_out, 'held-out document')} cannot show if it helps"
        )
    gpu = accelerator.device.type != "cpu"
    preset = "accurate" if gpu else "fast"
    # What the blend rests on must not train, whatever share the preset would hold out.
    same: dict[str, Any] = {"holdout": config.holdout, "stream": config.stream}
    same |= {"model": "sequence", "keep": config.settled().keep}
    reading = resolve(preset, {name: getattr(config, name) for name in chosen} | same)
    told = f"the preset {preset}"
    epochs = reading.epochs if "epochs" in chosen else enough_epochs(documents, reading.epochs)
    if "patience" not in chosen and reading.keep == "best":
        reading = replace(reading, patience=enough_patience(epochs))
    unhurried = accelerator.num_processes > 1 or (gpu and config.minutes is None)
    if unhurried or "epochs" in chosen:
        use_fastest_threads(parts, reading, accelerator)
        why = f"{told}, {how_many(epochs, 'epoch')}"
        until = deadline(config, accelerator, began, chosen)
        return Sized(replace(reading, epochs=epochs), why, until)
    late = cast(float, deadline(config, accelerator, began, chosen))
    speed = _speed(parts, reading)
    some = int(_SPARE * (late - time.perf_counter()) * speed)
    rate = f"{speed:,.0f} documents a second"
    cure = "" if gpu else "; a GPU reads some hundred times as many"
    if (possible := some // documents) >= 1:
        cure = cure if possible < epochs else ""
        epochs = min(epochs, possible)
        rate += f", about {epochs * documents / speed:,.0f} s{cure}"
        why = f"{told}, {how_many(epochs, 'epoch')}: {rate}"
        return Sized(replace(reading, epochs=epochs), why, late)
    if some < (fewest := _FEWEST_STEPS * reading.batch_size):
        needed = min(documents, fewest) / speed / _SPARE  # to read all once is enough, too
        minutes = (time.perf_counter() - began + needed) / 60
        enough = f"--minutes {math.ceil(minutes)} in all lets it try"
        return Sized(None, f"left out: {rate} are too few to learn from in time; {enough}{cure}")
    part = replace(reading, epochs=1, documents_per_epoch=some)
    return Sized(part, f"{told}, {how_many(some, 'document')} once: {rate}{cure}", late)


def use_fastest_threads(parts: Divided, config: TrainingConfig, accelerator: Accelerator) -> None:
    """Let torch read with as many threads as a few steps are fastest with, if that is a choice."""
    alone = accelerator.device.type == "cpu" and accelerator.num_processes == 1
    if alone and threads_are_free():
        _speed(parts, config)


def enough_epochs(documents: int, least: int) -> int:
    """Return how often to read so many documents: small sets more often than `least`.

    >>> enough_epochs(25_000, 5), enough_epochs(4_000, 5), enough_epochs(100, 5)
    (5, 20, 30)
    """
    return int(np.clip(_DOCUMENTS // documents, least, _EPOCHS))


def enough_patience(epochs: int) -> int:
    """Return how many of so many epochs may go by without improvement."""
    return max(3, epochs // 4)


def chosen_settings(config: TrainingConfig, named: object = None) -> frozenset[str]:
    """Return the names of settings that are `named` or, without a list, not what they usually are.

    Model and preset, which say that this is automatic, are left out.

    >>> sorted(chosen_settings(TrainingConfig(model="auto", width=9)))
    ['width']
    >>> sorted(chosen_settings(TrainingConfig(width=9), ["epochs", "preset"]))
    ['epochs']
    """
    of = {each.name: each.default for each in fields(TrainingConfig)}
    if isinstance(named, Collection):
        names = {name for name in of if name in named}
    else:
        names = {name for name, usual in of.items() if getattr(config, name) != usual}
    return frozenset(names - {"model", "preset"})


def deadline(
    config: TrainingConfig, accelerator: Accelerator, began: float, chosen: Collection[str]
) -> float | None:
    """Return when reading has to stop: the minutes given, or on a CPU ours, if no epochs are."""
    minutes = config.minutes
    free = accelerator.device.type == "cpu" and accelerator.num_processes == 1
    if minutes is None and free and "epochs" not in chosen:
        minutes = _MINUTES
    return None if minutes is None else began + 60 * minutes


def _speed(parts: Divided, config: TrainingConfig) -> float:
    """Return how many documents a second can be read, and let torch use the best threads."""
    training = parts.training
    rows = np.random.default_rng(config.seed).permutation(len(training))[:_PROBE]
    some = training.select(np.sort(rows))
    once = replace(config, epochs=1, holdout=0.0, patience=None, trackers=(), workers=0)

    def read() -> float:
        line: dict[str, Any] = train(some, once, task=parts.task).history[0]
        return float(line["documents_per_s"])

    return fastest_threads(read)
