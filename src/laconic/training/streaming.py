"""Whether documents and what they count fit into memory while a model is trained."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil  # Accelerate needs it, too
import torch
from accelerate import Accelerator

from laconic.batching import GrammarDataset
from laconic.batching.kept_bags import KeptBags
from laconic.corpus import Corpus
from laconic.grammar import Grammars
from laconic.ngrams.hashed import HashedCounter
from laconic.training.run import Run
from laconic.training.settings import TrainingConfig

_SHARE = 3  # of free memory, one in so many is for grammars
_BAGS = 4  # and of what is free then, one in so many is for bags: they only save time
_CONTROL_GROUP = Path("/sys/fs/cgroup")


def with_stream(
    config: TrainingConfig,
    corpora: Sequence[Corpus],
    accelerator: Accelerator | None = None,
    before: Path | None = None,
) -> TrainingConfig:
    """Return settings that say whether to stream, the same in all processes.

    Unless that was said, corpora are streamed whose grammars take more than a third of free memory,
    which the processes of this machine share. A run in the folder `before`, if there is one, goes
    on as it began, however much is free now.
    """
    if config.stream is not None:
        return config
    if before is not None and (before / "config.json").exists():
        return replace(config, stream=Run.open(before).config.stream)
    if not corpora:
        return config
    needed = sum(corpus.estimated_bytes() for corpus in corpora)
    stream = needed * _processes() > free_memory() // _SHARE
    if accelerator is not None and accelerator.num_processes > 1:
        vote = torch.tensor([float(stream)], device=accelerator.device)
        stream = bool(accelerator.reduce(vote, "sum").item())
    return replace(config, stream=stream)


def with_kept_bags(dataset: GrammarDataset, counted: HashedCounter | None) -> GrammarDataset:
    """Return a dataset that counts each document once, if all bags fit into a quarter of memory.

    That is of free memory, which the processes of this machine share. Documents that are streamed
    are counted each time: there are more of them than memory is for.
    """
    if counted is None or not isinstance(dataset.grammars, Grammars):
        return dataset
    limit = free_memory() // (_BAGS * _processes())
    return dataset.changed(kept=KeptBags(counted, dataset.grammars, dataset.rows, limit))


def _processes() -> int:
    """Return how many processes of this training share the machine."""
    return int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


def free_memory() -> int:
    """Return the bytes that are free on this machine, and in this process's container."""
    free = int(psutil.virtual_memory().available)
    with suppress(OSError, ValueError, KeyError):  # without a limit it says "max"
        limit, used = (
            int((_CONTROL_GROUP / f"memory.{n}").read_text()) for n in ("max", "current")
        )
        lines = (_CONTROL_GROUP / "memory.stat").read_text().splitlines()
        cached = int(dict(line.split() for line in lines)["inactive_file"])
        free = min(free, max(0, limit - used + cached))
    return free
