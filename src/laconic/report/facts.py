"""What a report says of one run; whatever is missing or no number is left out of the page."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from laconic.tasks import TASKS, Metric, Task


def real(value: object) -> float | None:
    """Return a finite number as a float, anything else as None."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer larger than any float
        return None
    return number if math.isfinite(number) else None


def mapping(value: object) -> Mapping[str, Any]:
    """Return a mapping as it is, anything else as an empty one."""
    return value if isinstance(value, Mapping) else {}


@dataclass(frozen=True)
class RunFacts:
    """One run, as plain JSON values; any of them may be missing.

    - `config`: the settings; `defaults`: what they would be.
    - `about`: `task`, `codec`, `alphabet`, `classes`, `command` (a text or its words), `versions`
      by package, `machine`, `date`, `parameters`, and `corpus`: its `path`, `documents`,
      `validation` (documents held out), `letters`, `symbols`, `rules` (sums over all documents),
      `classes` (documents of each).
    - `metrics`: the lines of metrics.jsonl.
    - `evaluation`: what laconic.tasks.Task.evaluate returned.
    """

    title: str
    config: Mapping[str, Any] = field(default_factory=dict)
    about: Mapping[str, Any] = field(default_factory=dict)
    metrics: Sequence[Mapping[str, Any]] = ()
    evaluation: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def epochs(self) -> list[Mapping[str, Any]]:
        """The lines of metrics that are about an epoch."""
        return [line for line in self.metrics if real(line.get("epoch")) is not None]

    def curve(self, *names: str) -> list[tuple[float, float]]:
        """Return (epoch, value) where the value at this path in an epoch's line is a number."""
        points = []
        for line in self.epochs:
            value: object = line
            for name in names:
                value = mapping(value).get(name)
            if (number := real(value)) is not None:
                points.append((float(line["epoch"]), number))
        return points

    @property
    def best_epoch(self) -> float | None:
        """The epoch whose model was kept."""
        known = [real(line.get("best_epoch")) for line in self.metrics]
        return next((epoch for epoch in reversed(known) if epoch is not None), None)

    def score(self, name: str) -> float | None:
        """Return a number of the evaluation."""
        return real(self.evaluation.get(name))

    @property
    def task(self) -> str:
        """What was learned, or an empty text."""
        task = self.about.get("task") or self.config.get("task") or ""
        return "" if task == "auto" else str(task)

    @property
    def codec(self) -> str:
        """The codec's name, or an empty text."""
        codec = self.about.get("codec", "")
        return str(mapping(codec).get("name", "") if isinstance(codec, Mapping) else codec or "")

    @property
    def auto(self) -> Mapping[str, Any]:
        """What automatic training found out; empty where settings said what to train."""
        return mapping(self.metrics[-1].get("auto")) if self.metrics else {}

    @property
    def counts_only(self) -> bool:
        """Whether n-grams are counted, and no sequence is read."""
        if self.auto:  # the settings are of what would have read
            return not real(mapping(self.auto.get("reading")).get("share"))
        return self.config.get("model") == "ngram"

    @property
    def composer(self) -> str:
        """The composer's name; an empty text where there is nothing to compose."""
        unread = self.codec == "none" or self.counts_only
        return "" if unread else str(self.config.get("composer") or "")

    @property
    def sequence_model(self) -> str:
        """The sequence model's name; an empty text where no sequence is read."""
        return "" if self.counts_only else str(self.config.get("sequence_model") or "")

    @property
    def read_by(self) -> str:
        """What read sequences on a GPU, and why; an empty text where there is no choice."""
        said = [line.get("read_by") for line in self.metrics]
        known = [each for each in said if isinstance(each, str) and not each.startswith("torch")]
        return known[-1] if known else ""

    @property
    def counted(self) -> str:
        """What is counted; an empty text where nothing is."""
        if features := mapping(self.auto.get("counting")).get("features"):
            return str(features)
        longest = real(self.config.get("ngrams"))
        if self.config.get("model") not in ("ngram", "both") or longest is None:
            return ""
        return f"n-grams of 1–{longest:g} letters"

    @property
    def classes(self) -> list[str]:
        """Names of classes or labels, in the order of the model's outputs."""
        classes = self.about.get("classes")
        return [str(each) for each in classes] if isinstance(classes, list | tuple) else []

    @property
    def seconds(self) -> float | None:
        """Training time: of all epochs, or of all that automatic training did, if that is more."""
        times = [real(line.get("seconds")) for line in self.epochs]
        known = [each for each in times if each is not None]
        whole = [each for line in self.metrics[-1:] if (each := real(line.get("seconds")))]
        return max([*whole, *([sum(known)] if known else [])], default=None)

    @property
    def documents_per_second(self) -> float | None:
        """Speed of the middle epoch: the first one pays for the warm-up."""
        speeds = sorted(value for _, value in self.curve("documents_per_s"))
        return speeds[len(speeds) // 2] if speeds else None

    @property
    def peak_memory_mb(self) -> float | None:
        """The most memory that was in use at a time."""
        return self._most("peak_memory_mb")

    @property
    def reserved_memory_mb(self) -> float | None:
        """The most memory of a GPU that PyTorch held; None where there is none."""
        return self._most("reserved_memory_mb")

    def _most(self, name: str) -> float | None:
        known = [real(line.get(name)) for line in self.metrics]
        return max((each for each in known if each is not None), default=None)

    def per_document(self, name: str) -> float | None:
        """Return the mean of one of the corpus's sums: letters, symbols or rules."""
        corpus = mapping(self.about.get("corpus"))
        total, documents = real(corpus.get(name)), real(corpus.get("documents"))
        return total / documents if total is not None and documents else None

    @property
    def command(self) -> str:
        """The command that made the run, or an empty text."""
        command = self.about.get("command", "")
        if isinstance(command, list | tuple):
            return shlex.join(map(str, command))
        return str(command or "")


def tasks_of(runs: Sequence[RunFacts]) -> list[type[Task]]:
    """Return the different tasks of some runs, without unknown ones."""
    names = {run.task for run in runs}
    return [task for name, task in TASKS.items() if name in names]


def metrics_of(runs: Sequence[RunFacts]) -> dict[str, Metric]:
    """Return the metrics of the tasks of some runs, by name."""
    return {metric.name: metric for task in tasks_of(runs) for metric in task.metrics}
