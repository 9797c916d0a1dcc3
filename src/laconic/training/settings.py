"""The settings of a training: the same fields for flags, TOML files and Python."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from laconic.errors import InputError

if TYPE_CHECKING:
    from laconic.nn.config import ModelConfig, Task

__all__ = ["PRESETS", "ConfigError", "TrainingConfig", "read_toml", "resolve"]


class ConfigError(InputError):
    """A setting that does not exist, or cannot be what it is."""


PRESETS: dict[str, dict[str, Any]] = {
    "paper-text": {
        "composer": "dual_gru",
        "embedding_size": 200,
        "sequence_model": "lstm",
        "width": 200,
        "layers": 1,
        "direction": "both",
        "pooling": "max",
        "dropout": 0.5,
        "optimizer": "adam",
        "learning_rate": 1e-3,
        "warmup_steps": 1000,
        "schedule": "halving",
        "halve_every": 10,
        "clip": None,
        "epochs": 50,
        "batch_size": 126,
        "documents_per_epoch": 100_000,
        "holdout": 0.2,
    },
    # On the kjv sample, 68 % of the test in half a minute on one processor; the defaults' rate
    # and batches gave 52 % in as many epochs.
    "fast": {
        "embedding_size": 64,
        "width": 64,
        "epochs": 5,
        "batch_size": 16,
        "learning_rate": 4e-3,
        "dropout": 0.2,
    },
    # What mattered on imdb, and what did not: docs/accuracy.md.
    "accurate": {
        "composer": "grc",
        "local_ngrams": 7,
        "local_buckets": 1 << 20,
        "local_size": 64,
        "local_dropout": 0.7,
        "epochs": 5,
        "holdout": 0.1,
    },
}
# What also counts is more accurate: docs/results.md, Two views.
PRESETS["both"] = PRESETS["accurate"] | {
    "model": "both",
    "ngrams": 10,
    "ngram_buckets": 1 << 22,
    "phrases": 0,
}
PRESETS["paper-dna"] = PRESETS["paper-text"] | {
    "dropout": 0.0,
    "batch_size": 10,
    "halve_every": 20,
    "documents_per_epoch": None,
}

_MOST = 1 << 24  # as in laconic.nn.config
_RANGES: dict[str, tuple[float, float]] = {
    "embedding_size": (1, _MOST),
    "width": (1, _MOST),
    "layers": (1, 64),
    "dropout": (0, math.nextafter(1, 0)),
    "identity_buckets": (0, _MOST),
    "local_ngrams": (0, 64),
    "local_buckets": (1, _MOST),
    "local_size": (1, _MOST),
    "local_dropout": (0, math.nextafter(1, 0)),
    "ngrams": (1, 64),
    "phrases": (0, 64),
    "ngram_buckets": (1, _MOST),
    "ngram_dropout": (0, math.nextafter(1, 0)),
    "view_loss": (0, 1e3),
    "grammar_dropout": (0, 0.5),
    "epochs": (1, 1 << 31),
    "batch_size": (1, 1 << 31),
    "budget": (1, 1 << 62),
    "documents_per_epoch": (1, 1 << 62),
    "learning_rate": (math.nextafter(0, 1), 1e3),
    "weight_decay": (0, 1e3),
    "halve_every": (1, 1 << 31),
    "warmup_steps": (0, 1 << 62),
    "clip": (0, math.inf),
    "accumulate": (1, 1 << 31),
    "label_smoothing": (0, math.nextafter(1, 0)),
    "holdout": (0, math.nextafter(1, 0)),
    "patience": (1, 1 << 31),
    "seed": (0, (1 << 63) - 1),
    "workers": (0, 1024),
    "checkpoint_minutes": (0, math.inf),
}


def _says(default: Any, text: str) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass(frozen=True)
class TrainingConfig:
    """Every setting of a training, as it is used: a preset's settings are already in it.

    `resolve` makes one from a preset and what somebody chose. Raises ConfigError, which names the
    setting, for what cannot be.

    >>> TrainingConfig(epochs=3).learning_rate
    0.001
    >>> TrainingConfig(epochs=0)
    Traceback (most recent call last):
        ...
    laconic.training.settings.ConfigError: epochs must be from 1 to 2147483648, not 0
    """

    preset: str | None = _says(None, "fast, accurate, both, paper-text or paper-dna; flags win.")
    composer: str = _says("grc", "grc, dual_gru, mlp, tree_lstm or linear_recurrence.")
    embedding_size: int = _says(200, "Size of the composer's vectors.")
    sequence_model: str = _says("lstm", "lstm, gru, rnn, cnn or transformer.")
    width: int = _says(200, "Size of the sequence model, for each direction.")
    layers: int = _says(1, "Layers of the sequence model.")
    direction: str = _says("both", "forward, backward or both.")
    dropout: float = _says(0.5, "On the pooled vector and between layers.")
    pooling: str = _says("max", "max, mean, length_mean, attention or last.")
    length_input: bool | None = _says(None, "Tell symbols' lengths; default: with grc only.")
    identity_buckets: int = _says(0, "Rows of a table of hashed phrases; 0: none.")
    local_ngrams: int = _says(0, "Letters of the longest n-grams read with each symbol; 0: none.")
    local_buckets: int = _says(1 << 18, "Rows of the table of those, which are hashed.")
    local_size: int = _says(64, "Size of their vectors.")
    local_dropout: float = _says(0.5, "Share of them left out while training.")
    model: Literal["sequence", "ngram", "both"] = _says(
        "sequence", "sequence reads symbols, ngram counts n-grams and phrases, both adds the two."
    )
    ngrams: int = _says(5, "Letters of the longest n-grams that are counted.")
    phrases: int = _says(4, "Symbols of the longest phrases that are counted; 0: none.")
    ngram_buckets: int = _says(1 << 20, "Columns that n-grams are hashed to, and as many phrases.")
    ngram_dropout: float = _says(0.0, "Share of a document's n-grams left out while training.")
    view_loss: float = _says(1.0, "both: weight of the loss of each view alone; their sum's is 1.")
    grammar_dropout: float = _says(0.0, "Share of symbols that training expands at random.")
    compile: bool = _says(False, "Compile the composer's cell.")
    task: Literal["auto", "classification", "multilabel", "regression"] = _says(
        "auto", "auto: regression if labels are fractions, multilabel if lists."
    )
    epochs: int = _says(10, "How often to go through the documents.")
    batch_size: int = _says(64, "Documents in a batch, at most, for each process.")
    budget: int | None = _says(None, "Documents times longest sequence of a batch, at most.")
    documents_per_epoch: int | None = _says(None, "So many at random in each epoch; default: all.")
    optimizer: Literal["adam", "adamw"] = _says("adam", "The optimizer.")
    learning_rate: float = _says(1e-3, "The highest, after the warm-up.")
    weight_decay: float = _says(0.0, "Of the optimizer.")
    schedule: Literal["halving", "cosine", "constant"] = _says("cosine", "After the warm-up.")
    halve_every: int = _says(10, "Epochs after which schedule halving halves.")
    warmup_steps: int = _says(100, "Steps of rising rate; at most a tenth of all.")
    clip: float | None = _says(1.0, "Longest gradient; 0: any.")
    accumulate: int = _says(1, "Batches whose gradients make one step.")
    precision: Literal["float32", "bf16"] = _says("float32", "bf16 is faster on recent GPUs.")
    label_smoothing: float = _says(0.0, "Share of each label that is spread over all classes.")
    class_weights: bool = _says(False, "Let every class weigh the same, however frequent.")
    holdout: float = _says(0.2, "Share of the documents that validates, without --valid.")
    patience: int | None = _says(None, "Stop after so many epochs without improvement.")
    seed: int = _says(0, "Of every random choice.")
    device: str = _says("auto", "auto, cpu, cuda, cuda:1, mps, …")
    workers: int = _says(0, "Processes that make batches.")
    graphs: bool = _says(True, "CUDA graphs, where possible.")
    checkpoint_minutes: float = _says(5.0, "Between checkpoints, besides that of every epoch.")
    trackers: tuple[str, ...] = _says((), "tensorboard, wandb, …: see Accelerate's trackers.")

    def __post_init__(self) -> None:
        for name, hint in _hints().items():
            value = getattr(self, name)
            if not _is_a(value, hint):
                raise ConfigError(f"{name} must be {_words(hint)}, not {value!r:.100}")
            if name in _RANGES and value is not None and not _within(value, _RANGES[name]):
                least, most = _RANGES[name]
                raise ConfigError(f"{name} must be from {least:g} to {most:.10g}, not {value!r}")
        if self.preset is not None and self.preset not in PRESETS:
            raise ConfigError(_no_preset(self.preset))

    def model_config(self, alphabet_size: int, outputs: int, task: Task) -> ModelConfig:
        """Return the settings of the model, for such documents and labels."""
        from laconic.nn.config import ModelConfig

        known = {each.name for each in fields(ModelConfig)} - {"alphabet_size", "outputs", "task"}
        chosen = {name: value for name, value in asdict(self).items() if name in known}
        return ModelConfig(alphabet_size=alphabet_size, outputs=outputs, task=task, **chosen)

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self) | {"trackers": list(self.trackers)}

    @classmethod
    def from_json(cls, data: object) -> TrainingConfig:
        """Return the config with these fields; what is missing is the preset's, or the default."""
        if not isinstance(data, dict):
            raise ConfigError("the settings of a training must be a JSON object")
        return resolve(data.get("preset"), data)

    @classmethod
    def from_toml(cls, path: str | Path) -> TrainingConfig:
        """Return the config in a TOML file; ConfigError with the file for what is wrong there."""
        given = read_toml(path)
        return resolve(given.get("preset"), given)


def resolve(preset: str | None, given: Mapping[str, Any]) -> TrainingConfig:
    """Return the settings that were given, else the preset's, else the defaults.

    >>> config = resolve("fast", {"width": 128})
    >>> config.width, config.embedding_size, config.batch_size
    (128, 64, 16)
    """
    check_names(given)
    if preset is not None and (not isinstance(preset, str) or preset not in PRESETS):
        raise ConfigError(_no_preset(preset))
    chosen = {**(PRESETS[preset] if preset else {}), **given, "preset": preset}
    if isinstance(chosen.get("trackers"), list):
        chosen["trackers"] = tuple(chosen["trackers"])
    return TrainingConfig(**chosen)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the settings in a TOML file; ConfigError, with the file, for what cannot be."""
    try:
        with Path(path).open("rb") as file:
            given = tomllib.load(file)
        resolve(given.get("preset"), given)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except (ConfigError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return given


def check_names(given: Mapping[str, Any]) -> None:
    """Raise ConfigError, with the name that was probably meant, for a setting there is not."""
    names = list(_hints())
    for key in given:
        if key not in names:
            near = get_close_matches(str(key).replace("-", "_"), names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise ConfigError(f"no setting {str(key)[:100]!r}; {hint}")


def _no_preset(name: object) -> str:
    near = get_close_matches(str(name), PRESETS, 1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"no preset {name!r:.100}; there are {', '.join(PRESETS)}{hint}"


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(TrainingConfig)


def _within(value: float, ends: tuple[float, float]) -> bool:
    return ends[0] <= value <= ends[1]  # not for NaN


def _is_a(value: object, hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Literal:
        return value in get_args(hint)
    if origin in (Union, UnionType):
        return any(_is_a(value, each) for each in get_args(hint))
    if origin is tuple:
        return isinstance(value, tuple) and all(isinstance(each, str) for each in value)
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if hint is float else hint)


def _words(hint: Any) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        return " or ".join(_words(each) for each in get_args(hint) if each is not type(None))
    if get_origin(hint) is tuple:
        return "a list of names"
    return {int: "an integer", float: "a number", bool: "true or false", str: "a text"}[hint]
