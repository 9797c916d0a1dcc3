"""Automatic training: counting, in seconds; reading, as time allows; and a blend of the two.

Both views are parts of one GrammarModel, which adds up what they say: the blend's factors go into
their last layers, so that whatever takes a model takes this one.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from accelerate import Accelerator

from laconic.arrays import Int64s
from laconic.batching import GrammarDataset
from laconic.corpus import Corpus
from laconic.nn import GrammarModel
from laconic.nn.memory import (
    give_back_memory,
    is_out_of_memory,
    memory_figures,
    use_expandable_segments,
)
from laconic.show import how_many
from laconic.tasks import Task, summary
from laconic.training.accelerator import accelerator_for
from laconic.training.blend import Blend, mixtures
from laconic.training.holdout import Divided, automatic_share, divide, targets_of
from laconic.training.linear import LinearView, fit_linear
from laconic.training.loop import Trained, train
from laconic.training.losses import class_weights, document_losses
from laconic.training.new_model import new_optimizer
from laconic.training.progress import Progress
from laconic.training.recorder import Recorder
from laconic.training.run import READING, Run
from laconic.training.settings import TrainingConfig
from laconic.training.sizing import (
    FEWEST_HELD_OUT,
    Sized,
    chosen_settings,
    deadline,
    sized_reading,
    use_fastest_threads,
)
from laconic.training.streaming import with_stream
from laconic.training.threads import threads_as_before, use_few_threads
from laconic.training.validation import forward_pass

Say = Callable[[str], None]
_LONG = 15  # seconds of the first step of counting, which are told
_MANY = 10  # classes, which take longer
_COUNTING = ("ngrams", "phrases", "shared_ngrams", "ngram_buckets", "ngram_counts")
_UNUSED = (*_COUNTING, "ngram_dropout", "view_loss")


def learn(
    source: Corpus | GrammarDataset,
    config: TrainingConfig,
    folder: Path | None = None,
    *,
    task: Task | None = None,
    valid: Corpus | GrammarDataset | None = None,
    weights: npt.ArrayLike | None = None,
    groups: npt.ArrayLike | None = None,
    resume: bool = False,
    progress: Callable[[Progress], None] | None = None,
    notes: Mapping[str, Any] | None = None,
    say: Say | None = None,
    chosen: Collection[str] | None = None,
) -> Trained:
    """Train as `train` does or, where the settings' model is "auto", the best that time allows.

    A linear model of n-grams is fitted at once; then a model that reads is trained in the time that
    there is, in the run's folder `reading`; documents that are held out tell how much each may say,
    and whether reading is worth it. `say` is told in a few lines what was done, and why. `groups`
    [N] are documents' groups, of which none both trains and validates. Settings that are `chosen`,
    by default those that are not as usual, are those of reading, too, and no others.
    """
    given: dict[str, Any] = {"valid": valid, "weights": weights, "groups": groups}
    if config.model != "auto":
        given |= {"task": task, "resume": resume, "progress": progress, "notes": notes}
        with threads_as_before():
            use_few_threads(config)
            return train(source, config, folder, **given)
    began, accelerator = time.perf_counter(), accelerator_for(config, folder)
    corpora = [each for each in (source, valid) if isinstance(each, Corpus)]
    config = with_stream(config.settled(), corpora, accelerator, folder if resume else None)
    before = Run.about_of(folder) if resume and folder is not None else {}
    names = chosen_settings(config, before.get("chosen", chosen))
    if "holdout" not in names:
        config = replace(config, holdout=automatic_share(len(source)))
    parts = divide(source, valid, task, config, groups=groups, weights=weights)
    _check_settings(config, parts)
    with threads_as_before(), Recorder(folder, config, accelerator) as recorder:
        _tell_unused(config, say)
        tell = say or (lambda line: None)
        work = _Work(parts, config, names, accelerator, tell, refit=valid is None)
        if recorder.ended(parts.training, parts.validation, resume) and folder is not None:
            work.say(f"finished   before: {folder} is as it was")
            model, line = Run.open(folder).model(), recorder.history[-1]
        else:
            counting = work.count(began, progress)
            counted = memory_figures(accelerator.device)  # train forgets the peaks
            optimizer = new_optimizer(config, counting.model)
            known = (parts.training, parts.validation, parts.task, counting.model, optimizer)
            told = {"chosen": sorted(names), **(notes or {})}
            recorder.open(source, *known, resume, told)
            inner = folder and folder / READING
            size, read = work.size(began, inner if resume else None), None
            given |= {"task": parts.task, "resume": resume, "progress": progress}
            if size.config is not None:
                read = train(source, size.config, inner, until=size.until, **given)
                if read.history[-1].get("late"):
                    epochs = f"{read.history[-2]['epoch']} of {size.config.epochs}"
                    work.say(f"reading    time was up in epoch {epochs}")
            model, line = work.blend(counting, read, size)
            for epoch in read.history[:-1] if read is not None else ():
                recorder.add(epoch)
            recorder.keep(model)
            line["seconds"] = time.perf_counter() - began
            read_in = memory_figures(accelerator.device)
            line |= {name: max(counted[name], most) for name, most in read_in.items()}
            line["auto"]["counting"] |= counted
            recorder.finish(line)
        device, seconds = accelerator.device, line.get("seconds", time.perf_counter() - began)
        memory = memory_figures(device) | line
        return Trained(
            model.to(device).eval(),
            parts.task,
            recorder.history,
            line["best_epoch"],
            seconds,
            memory["peak_memory_mb"],
            memory.get("reserved_memory_mb"),
        )


def _check_settings(config: TrainingConfig, parts: Divided) -> None:
    """Raise ModelError or ConfigError for what no model can read with, also if none will read."""
    size, task = parts.training.grammars.alphabet_size, parts.task
    document_losses(config, task, None)
    with torch.device("meta"):
        GrammarModel(replace(config, model="sequence").model_config(size, task.outputs, task.name))


def _tell_unused(config: TrainingConfig, say: Say | None) -> None:
    """Tell which settings that were chosen do nothing here."""
    chosen = [name for name in _UNUSED if getattr(config, name) != getattr(TrainingConfig, name)]
    if not chosen:
        return
    told = (
        f"{', '.join(chosen)}: without effect, since held-out documents choose what is counted; "
        'use model "ngram" or "both"'
    )
    if say is None:
        warnings.warn(told, UserWarning, stacklevel=2)
    else:
        say(f"settings   {told}")


@dataclass(frozen=True)
class _Work:
    """The documents, and what is done with them, in this order; `say` is told each step."""

    parts: Divided
    config: TrainingConfig
    chosen: frozenset[str]
    accelerator: Accelerator
    say: Say
    refit: bool

    def count(self, began: float, progress: Callable[[Progress], None] | None) -> LinearView:
        """Fit the linear view; where time is up, of what was tried until then."""
        parts, config = self.parts, self.config
        fitted = partial(
            fit_linear,
            parts.training,
            parts.validation,
            parts.task,
            weights=self.weights,
            groups=parts.groups,
            refit=self.refit,
            seed=config.seed,
            until=self._end_of_counting(began),
            progress=partial(self._counted, time.perf_counter(), progress),
        )
        found, device = None, self.accelerator.device
        if device.type == "cuda":
            use_expandable_segments()
        try:
            found = fitted(device=device)
        except RuntimeError as error:
            if device.type == "cpu" or not is_out_of_memory(error):
                raise
        if found is None:  # not while the error is handled, which holds what was made until then
            give_back_memory()
            self.say(f"counting   on the CPU: {device} has too little memory")
            found = fitted()
        if found.late:
            self.say(f"counting   time was up: {how_many(len(found.tried), 'way')} tried, no more")
        score = self._score(found.held_out, found.rows)
        self.say(f"counting   {score}{found.features}")
        return found

    def _end_of_counting(self, began: float) -> float:
        """Return when no further features are tried; processes, who count alike, try all."""
        if self.accelerator.num_processes > 1:
            return math.inf
        return deadline(self.config, self.accelerator, began, self.chosen) or math.inf

    def _counted(
        self, began: float, progress: Callable[[Progress], None] | None, done: int, steps: int
    ) -> None:
        """Tell how far counting is, and after the first step whether it takes long."""
        if progress is not None:
            progress(Progress(0, self.config.epochs, done, steps, None, 0.0))
        spent = time.perf_counter() - began
        if done == 1 and spent > _LONG:
            classes, things = self.parts.task.outputs, self.parts.task.things
            many = f"{classes} {things[1]}" if things and classes > _MANY else "long documents"
            self.say(f"counting   takes long ({spent:.0f} s so far): {many}, or a busy machine")

    @cached_property
    def weights(self) -> npt.NDArray[np.float32] | None:
        """Of documents that train, then of those that validate; times those of their classes."""
        parts, config = self.parts, self.config
        if not config.class_weights:
            return parts.weights
        targets = targets_of(parts.training)
        by_class = class_weights(targets, parts.task.outputs).numpy()
        if parts.validation is not None:
            targets = np.concatenate([targets, targets_of(parts.validation)])
        each: npt.NDArray[np.float32] = by_class[targets]
        return each if parts.weights is None else each * parts.weights

    def size(self, began: float, before: Path | None) -> Sized:
        """Decide what to read with, and for how long; as before, if there is such a run."""
        if before is not None and (before / "config.json").exists():
            reading = Run.open(before).config
            use_fastest_threads(self.parts, reading, self.accelerator)
            return Sized(reading, "", deadline(self.config, self.accelerator, began, self.chosen))
        size = sized_reading(self.parts, self.config, self.accelerator, began, self.chosen)
        self.say(f"reading    {size.why}")
        return size

    def blend(
        self, counting: LinearView, read: Trained | None, size: Sized
    ) -> tuple[GrammarModel, dict[str, Any]]:
        """Return the model that says what the views together say, and the last line of the run."""
        task, validation = self.parts.task, self.parts.validation
        told: dict[str, Any] = {
            "counting": {
                "features": str(counting.features),
                "strength": counting.strength,
                "documents": counting.documents,
                "tried": counting.tried,
                "valid": self._figures(counting.held_out, counting.rows),
            },
            "reading": {"why": size.why},
        }
        line: dict[str, Any] = {"done": True, "best_epoch": 0, "valid": None, "auto": told}
        model, outputs = counting.model, counting.held_out
        if read is not None and validation is not None:
            give_back_memory()  # it held graphs of steps, which those of outputs cannot use
            said = forward_pass(read.model, self.config, self.accelerator.num_processes).outputs(
                validation.select(counting.rows), self.accelerator
            )
            targets = targets_of(validation)[counting.rows]
            rows = len(self.parts.training) + counting.rows
            weights = None if self.weights is None else self.weights[rows]
            groups = None if self.parts.groups is None else self.parts.groups[rows]
            blend = mixtures(task, counting.held_out, said, targets, weights, groups).blend()
            outputs = blend.counting * counting.held_out + blend.reading * said
            line["best_epoch"] = read.best_epoch if blend.share else 0
            told["reading"] |= {
                "epochs": len(read.history) - 1,
                "share": blend.share,
                "valid": self._figures(said, counting.rows),
            }
            told["losses"] = blend.losses
            self._say_of(said, blend)
            model = together(counting.model, read.model, blend)
        line["valid"] = self._figures(outputs, counting.rows, whole=True)
        return model, line

    def _say_of(self, read: npt.NDArray[Any], blend: Blend) -> None:
        task = self.parts.task
        rows = np.arange(len(read))
        decided = task.decide(read)
        one = task.single and len(np.unique(decided)) == 1
        if one:
            only = task.classes[int(decided[0])]
            self.say(
                f"reading    gives every held-out document the class {only}: it learned nothing"
            )
        elif blend.losses["reading"] > blend.losses["counting"]:
            self.say(f"reading    {self._score(read, rows)}by itself below counting")
        if blend.share == 0:
            self.say("blend      counting alone: reading adds nothing that held-out documents show")
        elif blend.share == 1:
            told = f"{blend.losses['reading']:.3g}, counting's {blend.losses['counting']:.3g}"
            self.say(f"blend      reading alone: its loss of held-out documents is {told}")
        else:
            self.say(f"blend      {blend.share:.0%} reading, {1 - blend.share:.0%} counting")

    def _figures(
        self, outputs: npt.NDArray[Any], rows: Int64s, whole: bool = False
    ) -> dict[str, Any] | None:
        if self.parts.validation is None or not len(outputs):
            return None
        figures = self.parts.task.evaluate(outputs, targets_of(self.parts.validation)[rows])
        return figures if whole else summary(figures)

    def _score(self, outputs: npt.NDArray[Any], rows: Int64s) -> str:
        """Return the headline of a view's figures, to be put before what it is."""
        figures = self._figures(outputs, rows)
        if figures is None:
            return ""
        leading = self.parts.task.leading()[0]
        value = figures[leading.name]
        few = f", only {how_many(len(rows), 'document')}" if len(rows) < FEWEST_HELD_OUT else ""
        return "" if value is None else f"{leading.spelled(value)} held out{few}: "


def together(counting: GrammarModel, reading: GrammarModel, blend: Blend) -> GrammarModel:
    """Return the model that says what two others say, times their factors, added up.

    A view whose factor is 0 is left out. The models given are not changed.
    """
    counts, reads = counting.config, reading.config
    counted = {name: getattr(counts, name) for name in (*_COUNTING, "ngram_rows")}
    if not blend.reading:
        config = counts
    elif not blend.counting:
        config = reads
    else:
        config = replace(reads, model="both", **counted)
    model = GrammarModel(config)
    weights = dict(model.state_dict())
    for each, factor in ((reading, blend.reading), (counting, blend.counting)):
        if factor:
            weights |= {name: value.detach().cpu() for name, value in each.state_dict().items()}
    for name, factor in (("head", blend.reading), ("bag", blend.counting)):
        for part in ("weight", "table", "bias"):
            if f"{name}.{part}" in weights and factor:
                weights[f"{name}.{part}"] = weights[f"{name}.{part}"] * factor
    model.load_state_dict(weights)
    return model.eval()
