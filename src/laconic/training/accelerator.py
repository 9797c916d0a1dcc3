"""Where a training runs: device and processes, random states, memory."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from accelerate.tracking import get_available_trackers
from torch import Tensor

from laconic.errors import InputError
from laconic.training.settings import ConfigError, TrainingConfig

__all__ = [
    "TrainingError",
    "accelerator_for",
    "is_want_of_memory",
    "peak_memory_mb",
    "random_states",
    "set_random_states",
    "told_of_memory",
]


class TrainingError(InputError):
    """A training that cannot go on; says why, and what to do."""

    @classmethod
    def of_loss(cls, loss: float, epoch: int, step: int | None) -> TrainingError:
        """Return the error of a loss that is infinite or no number."""
        where = f"epoch {epoch}" + ("" if step is None else f", step {step}")
        return cls(
            f"the loss is {loss} in {where}; use a lower learning_rate, or clip gradients "
            "(clip = 1); the last checkpoint is from before"
        )


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
        torch.cuda.reset_peak_memory_stats(accelerator.device)
    return accelerator


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
        own = {name: each[accelerator.process_index] for name, each in states.items()}
        torch.set_rng_state(own["cpu"])
        if accelerator.device.type == "cuda":
            torch.cuda.set_rng_state(own["cuda"], accelerator.device)
    except (RuntimeError, KeyError, IndexError, TypeError) as error:
        raise InputError(f"its random states are damaged: {error}") from None


def peak_memory_mb(device: torch.device) -> float:
    """Return the most memory used so far: of a GPU by tensors, else of this process."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def is_want_of_memory(error: RuntimeError) -> bool:
    """Whether an error of torch's says that there was too little memory.

    It has three: its own, the CPU allocator's, and the driver's, when a CUDA graph does not fit.
    """
    said = str(error)
    own = isinstance(error, torch.OutOfMemoryError)
    return own or "can't allocate" in said or "CUDA error: out of memory" in said


@contextmanager
def told_of_memory(config: TrainingConfig) -> Iterator[None]:
    """Turn torch's errors for want of memory into a TrainingError with the cure."""
    try:
        yield
    except RuntimeError as error:
        if not is_want_of_memory(error):
            raise
        now = f"batch_size is {config.batch_size}, budget {config.budget or 'unlimited'}"
        raise TrainingError(
            f"out of memory: {now}; lower one of them (accumulate = 2 keeps the size of steps), "
            'or use precision = "bf16"; the last checkpoint is whole'
        ) from error
