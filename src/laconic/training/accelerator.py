"""Where a training runs: device and processes, precision, random states."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers
from torch import Tensor

from laconic.errors import InputError
from laconic.nn.memory import give_back_memory, reset_peak_memory
from laconic.training.progress import TrainingError
from laconic.training.settings import ConfigError, TrainingConfig


def accelerator_for(config: TrainingConfig, folder: Path | None) -> Accelerator:
    """Return the processes and the device to train on; ConfigError if there is no such device."""
    name = config.device
    if not re.fullmatch(r"auto|cpu|[a-z]+(:\d+)?", name):
        raise ConfigError(f"device must be auto, cpu, cuda, cuda:1, mps, …, not {name!r:.100}")
    there = sorted(str(each) for each in get_available_trackers())
    if missing := set(config.trackers) - set(there):
        known = f"there are {', '.join(there)}" if there else "none is"
        raise ConfigError(f"trackers: {min(missing)} is not installed here; {known}")
    # Accelerate keeps one state for the whole process, whatever the training before wanted.
    alone = not torch.distributed.is_initialized()
    AcceleratorState._reset_state(reset_partial_state=alone)
    if ":" in name and name.startswith("cuda") and torch.cuda.is_available():
        torch.cuda.set_device(torch.device(name))
    # Accelerate joins processes without a GPU only if it is told that there is none.
    several = "LOCAL_RANK" in os.environ and not torch.cuda.is_available()
    accelerator = Accelerator(
        cpu=name == "cpu" or (name == "auto" and several),
        mixed_precision="bf16" if config.precision == "bf16" else "no",
        log_with=list(config.trackers) or None,
        project_dir=folder,
    )
    if name != "auto" and name.split(":")[0] != accelerator.device.type:
        raise ConfigError(f"there is no device {name!r} here; use auto or cpu")
    if accelerator.device.type == "cuda":
        give_back_memory()  # what an earlier training in this process has left
        reset_peak_memory(accelerator.device)
    return accelerator


@contextmanager
def joined(accelerator: Accelerator) -> Iterator[None]:
    """Let the end of another process, which this one waits for, be told as what it is."""
    try:
        yield
    except RuntimeError as error:
        lost = isinstance(error, torch.distributed.DistError) or "gloo" in str(error)
        if accelerator.num_processes == 1 or not lost:
            raise
        raise TrainingError(
            "another process of this training has ended, and says why itself, unless it was "
            "killed; the last checkpoint is whole: go on with --resume"
        ) from error


def autocast_type(config: TrainingConfig) -> torch.dtype | None:
    """Return the type to compute in where PyTorch thinks it safe, if another than the weights'."""
    return torch.bfloat16 if config.precision == "bf16" else None


def random_states(accelerator: Accelerator) -> dict[str, Tensor]:
    """Return the states of torch's generators, uint8 [processes, n] each; all processes call it."""
    states = {"cpu": torch.get_rng_state()}
    if accelerator.device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(accelerator.device)
    if accelerator.num_processes == 1:
        return {name: state.unsqueeze(0) for name, state in states.items()}
    device = accelerator.device
    return {
        name: accelerator.gather(state.unsqueeze(0).to(device)).cpu()
        for name, state in states.items()
    }


def set_random_states(accelerator: Accelerator, states: Mapping[str, Tensor]) -> None:
    """Go on with such states; ValueError if they are none."""
    try:
        # Of a view, torch reads the storage from its beginning, and beyond its end.
        own = {name: each[accelerator.process_index].clone() for name, each in states.items()}
        torch.set_rng_state(own["cpu"])
        if accelerator.device.type == "cuda":
            torch.cuda.set_rng_state(own["cuda"], accelerator.device)
    except (RuntimeError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"its random states are damaged: {error}") from None
