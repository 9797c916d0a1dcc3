"""Checkpoints: where a run goes on, written whole or not at all; nothing is ever unpickled."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from laconic.errors import InputError
from laconic.files import cut, read_json, remove, whole
from laconic.nn.pretrained import save_tensors

_KEPT = 2
_ADAM = ("exp_avg", "exp_avg_sq", "step")
_MOST_RANDOM = 1 << 16  # bytes of a generator's state; torch's has 5,056


class CheckpointError(InputError):
    """A checkpoint that is damaged, or of something else; names the file."""


@dataclass(frozen=True)
class Position:
    """How far a training is: all that is no tensor."""

    epoch: int = 0
    """Epochs that are done."""
    batch: int = 0
    """Batches of this epoch that are done, for each process."""
    step: int = 0
    """Steps of the optimizer that are done."""
    loss_sum: float = 0.0
    """Of the documents of this epoch so far."""
    documents: int = 0
    seconds: float = 0.0
    """That this epoch has taken so far."""
    best_epoch: int | None = None
    best: tuple[float, ...] = ()
    """The score of that epoch; larger is better."""
    lines: int = 0
    """Of metrics.jsonl."""
    processes: int = 1

    @classmethod
    def from_json(cls, data: object) -> Position:
        """Return what asdict gave; ValueError for anything else."""
        if not isinstance(data, dict) or data.keys() != {each.name for each in fields(cls)}:
            raise InputError("it has other fields than a position")
        for name, value in data.items():
            if name == "best_epoch" and value is None:
                continue
            numbers = value if name == "best" else [value]
            real = name in ("loss_sum", "seconds", "best")
            if not isinstance(numbers, list) or not all(_is_number(each, real) for each in numbers):
                raise InputError(f"{name} cannot be {value!r:.100}")
        return cls(**data | {"best": tuple(data["best"])})


def _is_number(value: object, real: bool) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float if real else int):
        return False
    return math.isfinite(value) if real else 0 <= value < 1 << 62


class Checkpoints:
    """The checkpoints of a run: folders step-00001234, of which the last two are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(
        self,
        position: Position,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        random: Mapping[str, Tensor],
    ) -> None:
        """Write a checkpoint; OSError if that fails, and then the last one is still there."""
        with whole(self.folder / f"step-{position.step:08}") as new:
            new.mkdir()
            save_tensors(model.state_dict(), new / "model.safetensors")
            tensors = {f"random.{name}": each for name, each in random.items()}
            for name, parameter in model.named_parameters():
                for key, value in optimizer.state.get(parameter, {}).items():
                    tensors[f"{key}.{name}"] = value
            save_tensors(tensors, new / "optimizer.safetensors")
            text = json.dumps(asdict(position), indent=2) + "\n"
            (new / "state.json").write_text(text, "utf-8")
        for old in self.whole()[:-_KEPT]:
            remove(old)

    def whole(self) -> list[Path]:
        """Return the checkpoints, the last one last; a rename made each of them whole."""
        found = self.folder.glob("step-*") if self.folder.is_dir() else ()
        return sorted(path for path in found if path.name.removeprefix("step-").isdecimal())

    def load(
        self, model: nn.Module, optimizer: torch.optim.Optimizer
    ) -> tuple[Position, dict[str, Tensor]] | None:
        """Read the last checkpoint into model and optimizer; None if there is none.

        Returns how far it is, and the states of random generators, uint8 [processes, n] each.
        Shapes are checked against the model before anything is read. CheckpointError names the
        file that is damaged or of another model.
        """
        paths = self.whole()
        if not paths:
            return None
        folder = paths[-1]
        try:
            position = Position.from_json(read_json(folder / "state.json"))
        except (OSError, ValueError) as error:
            raise _damaged(folder / "state.json", error, paths) from None
        wanted = model.state_dict()
        path = folder / "model.safetensors"
        try:
            weights = _read_tensors(path, wanted)
            if missing := wanted.keys() - weights.keys():
                raise InputError(f"{min(missing)} is missing")
            path = folder / "optimizer.safetensors"
            parameters = dict(model.named_parameters())
            like: dict[str, Tensor] = {"step." + name: torch.zeros(()) for name in parameters}
            for key in ("exp_avg", "exp_avg_sq"):
                like |= {f"{key}.{name}": each.detach() for name, each in parameters.items()}
            tensors = _read_tensors(path, like, random=position.processes)
            random = {name: tensors.pop(name) for name in list(tensors) if name not in like}
            states = _states(tensors, parameters, fused=bool(optimizer.defaults.get("fused")))
            path = folder / "model.safetensors"
            model.load_state_dict(weights)
        except (OSError, ValueError, SafetensorError) as error:
            raise _damaged(path, error, paths) from None
        for name, state in states.items():
            optimizer.state[parameters[name]] = state
        return position, {name.removeprefix("random."): each for name, each in random.items()}


def _states(
    tensors: Mapping[str, Tensor], parameters: Mapping[str, Tensor], fused: bool
) -> dict[str, dict[str, Tensor]]:
    states: dict[str, dict[str, Tensor]] = {}
    for name, parameter in parameters.items():
        found = {key: tensors[f"{key}.{name}"] for key in _ADAM if f"{key}.{name}" in tensors}
        if found and len(found) < len(_ADAM):
            raise InputError(f"the optimizer's state of {name} is not whole")
        if found:
            # Adam counts steps on the CPU, unless one kernel does all.
            device = parameter.device
            states[name] = {
                key: tensor if key == "step" and not fused else tensor.to(device)
                for key, tensor in found.items()
            }
    return states


def _read_tensors(
    path: Path, like: Mapping[str, Tensor], random: int | None = None
) -> dict[str, Tensor]:
    """Return the tensors of a file, each of the shape and type of that name in `like`.

    With `random`, also those named random.…, which must be bytes for so many processes.
    """
    with safe_open(path, framework="pt") as file:
        names = list(file.keys())
        for name in names:
            shape = list(file.get_slice(name).get_shape())
            if name in like:
                if shape != list(like[name].shape):
                    wanted = list(like[name].shape)
                    raise InputError(f"{name} has shape {shape}, the model's is {wanted}")
            elif random is None or not name.startswith("random."):
                raise InputError(f"it has {name[:100]!r}, which the model has not")
            elif len(shape) != 2 or shape[0] != random or shape[1] > _MOST_RANDOM:
                raise InputError(f"{name[:100]} has shape {shape}, for {random} processes")
        tensors = {name: file.get_tensor(name) for name in names}
    for name, tensor in tensors.items():
        wanted_type = like[name].dtype if name in like else torch.uint8
        if tensor.dtype != wanted_type:
            raise InputError(f"{name[:100]} is {tensor.dtype}, not {wanted_type}")
    return tensors


def _damaged(path: Path, error: Exception, paths: list[Path]) -> CheckpointError:
    before = f"to go on from {paths[-2].name}" if len(paths) > 1 else "to begin again"
    return CheckpointError(f"{path} is damaged: {error}; remove {path.parent} {before}")


def cut_lines(path: Path, lines: int) -> None:
    """Leave the first lines of a file; CheckpointError if there are fewer."""
    data = path.read_bytes() if path.exists() else b""
    complete = [line for line in data.splitlines(keepends=True) if line.endswith(b"\n")]
    if len(complete) < lines:
        raise CheckpointError(f"{path} has {len(complete)} lines, but the checkpoint knows {lines}")
    if path.exists():
        cut(path, sum(map(len, complete[:lines])))
