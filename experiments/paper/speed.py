"""Measures how fast rows train when they are alone on a device: rows that share it cannot tell.

Batches, steps and optimizer are those of laconic.training on the rows' own settings. Some batches
of an epoch are trained on again and again, after their CUDA graphs were captured: what is measured
is what later epochs cost, the making of batches on the CPU included.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.steps import rounded_products
from experiments.paper.corpora import CACHE, corpora
from experiments.paper.grid import IN_PLACE, Group, Method, Row
from experiments.paper.results import RESULTS, Figures, about, read, write
from laconic.batching import Batch, GrammarDataset, LengthSampler
from laconic.batching import batches as loader
from laconic.nn import GrammarModel
from laconic.nn.memory import (
    is_out_of_memory,
    peak_memory_mb,
    reserved_memory_mb,
    reset_peak_memory,
)
from laconic.nn.steps import CapturedStep
from laconic.training.holdout import divide
from laconic.training.losses import document_losses, losses_of_views
from laconic.training.new_model import new_model, new_optimizer
from laconic.training.settings import ConfigError
from laconic.training.streaming import with_kept_bags

__all__ = ["METHODS", "SETS", "measure_speed"]

# H3 stands for the ten DNA sets: they have the same lengths and batches.
SETS = ("yelp_polarity_part", "imdb", "sogou_pinyin", "adfa_ld", "H3")
METHODS = (
    "characters",
    *(
        f"{composer}-{codec}"
        for composer in ("mlp", "dual_gru", "grc")
        for codec in ("repair", "lzd")
    ),
    "grc-repair+auto",
    "grc-lz78",
    "grc-deflate",
    "bpe",
    "char_cnn",
    f"{IN_PLACE}-repair",
    f"{IN_PLACE}-lzd",
)


@rounded_products()
def measure_speed(
    groups: Iterable[Group],
    device: str,
    results: Path = RESULTS,
    cache: Path = CACHE,
    seconds: float = 3.0,
    sets: Iterable[str] = (),
    batches: int = 12,
) -> None:
    """Write speed.json, after every point; points that are in it are not measured again.

    Each takes `seconds`, and one pass over that many batches at least. Groups without [local] have
    no methods with n-grams in place. ConfigError for a set that is in no group.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    of = {name: group for group in groups for name in group.sets}
    wanted = list(sets) or [name for name in SETS if name in of]
    if missing := [name for name in wanted if name not in of]:
        raise ConfigError(f"no group has the set {missing[0]!r}; there are {', '.join(of)}")
    path = results / "speed.json"
    found: Figures = read(path) if path.exists() else {"about": about(), "points": []}
    done = {(point["set"], point["method"]) for point in found["points"]}
    for name in wanted:
        for method in map(Method.named, METHODS):
            if (name, method.name) in done or (method.local and not of[name].local):
                continue
            began = time.perf_counter()
            row = Row(0, name, method, 0, of[name])
            point: Figures = {"set": name, "method": method.name}
            point |= _point(row, torch.device(device), cache, seconds, batches)
            point["took"] = time.perf_counter() - began
            found["points"].append(point)
            write(path, found)
            print(point, file=sys.stderr, flush=True)


def _point(row: Row, device: torch.device, cache: Path, seconds: float, batches: int) -> Figures:
    try:
        return _measure(row, device, cache, seconds, batches)
    except RuntimeError as error:
        if not is_out_of_memory(error):
            raise
        return {"error": "out of memory"}
    finally:
        # What graphs hold would be counted as the next point's.
        gc.collect()
        if device.type == "cuda":
            torch.cuda.empty_cache()
            reset_peak_memory(device)


def _measure(row: Row, device: torch.device, cache: Path, seconds: float, batches: int) -> Figures:
    config = row.config(str(device))
    source, _ = corpora(*row.source(cache))
    training, _, task, *_ = divide(source, None, None, config)
    alphabet, cuda = training.grammars.alphabet_size, device.type == "cuda"
    torch.manual_seed(config.seed)
    wanted = config.model_config(alphabet, task.outputs, task.name)
    training = with_kept_bags(training, wanted.counted)
    model = new_model(wanted, training).to(device)
    training = training.changed(counted=model.config.counted, in_place=model.config.in_place)
    losses = document_losses(config, task, None)

    def of_documents(batch: Batch) -> Tensor:
        assert batch.labels is not None
        return losses_of_views(losses, model.views(batch), batch.labels, config.view_loss)

    optimizer = new_optimizer(config, model)
    kind = CapturedStep if cuda else _EagerStep
    epoch = _Steps(kind(model, optimizer, of_documents, config.clip), training, device)
    lengths = training.sequence_lengths
    sampler = LengthSampler(lengths, config.batch_size, budget=config.budget, seed=config.seed)
    every = sorted(sampler, key=lambda rows: len(rows) * int(lengths[rows].max()))
    # From the middle of each part, so that long batches weigh as much as in an epoch.
    places = ((np.arange(batches) + 0.5) * len(every) / batches).astype(int)
    some = [every[place] for place in np.unique(places).tolist()]
    # The longest batch needs most memory, and all graphs then use what it has got.
    epoch.run([every[-1], *reversed(some)])
    epoch.run(some)  # what a graph had no room for, it has been captured for again
    trained, passes, began = 0, 0, time.perf_counter()
    while passes == 0 or time.perf_counter() - began < seconds:
        trained += epoch.run(some)
        passes += 1
    spent = time.perf_counter() - began
    return {
        "documents_per_s": trained / spent,
        "peak_mb": peak_memory_mb(device) if cuda else None,
        "reserved_mb": reserved_memory_mb(device),
        "letters": float(source.grammars.expanded_lengths.mean()),
        "sequence": float(GrammarDataset(source.grammars).sequence_lengths.mean()),
        "batch_size": config.batch_size,
        "batches": len(some),
        "passes": passes,
    }


@dataclass(frozen=True)
class _Steps:
    """Training steps on batches that are made while others train, as in a training."""

    step: Callable[[list[Batch]], Tensor]
    training: GrammarDataset
    device: torch.device

    def run(self, batches: Sequence[list[int]]) -> int:
        """Train on batches of rows; return their documents, when the device has done them."""
        documents, cuda = 0, self.device.type == "cuda"
        made = loader(self.training, batches, pin_memory=cuda)
        for batch in made:
            self.step([batch.to(self.device, non_blocking=True)])
            documents += len(batch)
        if cuda:
            torch.cuda.synchronize(self.device)
        return documents


@dataclass(frozen=True)
class _EagerStep:
    """What CapturedStep is, without graphs, for one batch at a time."""

    model: GrammarModel
    optimizer: torch.optim.Optimizer
    losses: Callable[[Batch], Tensor]
    clip: float | None

    def __call__(self, group: list[Batch]) -> Tensor:
        (batch,) = group
        self.model.zero_grad()
        mean = self.losses(batch).mean()
        mean.backward()  # type: ignore[no-untyped-call]
        if self.clip:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.optimizer.step()
        return mean.detach()
