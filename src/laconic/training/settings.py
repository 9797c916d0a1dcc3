"""The settings of a training: the same fields for flags, TOML files, estimators and Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal

from laconic.errors import InputError
from laconic.nn.config import (
    ModelConfig,
    ModelSettings,
    check_names,
    check_settings,
    setting,
)
from laconic.tasks import TASKS
from laconic.training.presets import PRESETS

_MANY = 1 << 31
_MOST = 1 << 62
_BEFORE = {"keep": "best"}  # what was done before there was a choice, where that is no default


class ConfigError(InputError):
    """A setting that does not exist, or cannot be what it is."""


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class TrainingSettings(ModelSettings):
    """The settings of a model and its training that estimators have as parameters, too."""

    preset: str | None = setting(None, f"{', '.join(PRESETS)}; flags win.")
    minutes: float | None = setting(
        None, "auto: time to train; default: about one on a CPU.", above=0, most=1e6
    )
    view_loss: float = setting(
        1.0, "both: weight of the loss of each view alone; their sum's is 1.", 0, 1e3
    )
    grammar_dropout: float = setting(
        0.0, "Share of symbols that training expands at random.", 0, 0.5
    )
    compile: bool = setting(False, "Compile the composer's cell.")
    batch_size: int = setting(64, "Documents in a batch, at most, for each process.", 1, _MANY)
    budget: int | None = setting(
        None, "Documents times longest sequence of a batch, at most.", 1, _MOST
    )
    documents_per_epoch: int | None = setting(
        None, "So many at random in each epoch; default: all.", 1, _MOST
    )
    optimizer: Literal["adam", "adamw"] = setting("adam", "The optimizer.")
    learning_rate: float = setting(1e-3, "The highest, after the warm-up.", above=0, most=1e3)
    weight_decay: float = setting(0.0, "Of the optimizer.", 0, 1e3)
    schedule: Literal["halving", "cosine", "constant"] = setting("cosine", "After the warm-up.")
    halve_every: int = setting(10, "Epochs after which schedule halving halves.", 1, _MANY)
    warmup_steps: int = setting(100, "Steps of rising rate; at most a tenth of all.", 0, _MOST)
    clip: float | None = setting(1.0, "Longest gradient; 0: any.", 0)
    accumulate: int = setting(1, "Batches whose gradients make one step.", 1, _MANY)
    precision: Literal["float32", "bf16"] = setting("float32", "bf16 is faster on recent GPUs.")
    label_smoothing: float = setting(
        0.0, "Share of each label that is spread over all classes.", 0, below=1
    )
    class_weights: bool = setting(False, "Let every class weigh the same, however frequent.")
    holdout: float = setting(
        0.2, "Share of the documents that validates, without --valid.", 0, below=1
    )
    patience: int | None = setting(None, "Stop after so many epochs without improvement.", 1, _MANY)
    keep: Literal["best", "last"] | None = setting(
        None,
        "The epoch to keep: the best on held-out documents, by accuracy or else by loss, or the "
        "last, if it is read to its end; default: the best; in automatic training, the last.",
    )
    device: str = setting("auto", "auto, cpu, cuda, cuda:1, mps, …")
    workers: int = setting(0, "Processes that make batches.", 0, 1024)
    graphs: bool = setting(True, "CUDA graphs, where possible.")
    kernels: bool = setting(
        True, "LSTM, GRU, levels and Adam by our own kernels, on GPUs that can."
    )


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(TrainingSettings):
    """Every setting of a training, as it is used: a preset's settings are already in it.

    `resolve` makes one from a preset and what somebody chose. Raises ConfigError, which names the
    setting, for what cannot be.

    >>> TrainingConfig(epochs=3).learning_rate
    0.001
    >>> TrainingConfig(epochs=0)
    Traceback (most recent call last):
        ...
    laconic.training.settings.ConfigError: epochs must be an integer from 1 to 2147483648, not 0
    """

    task: str = setting(
        "auto",
        f"{', '.join(TASKS)}; auto: regression if labels are fractions, multilabel if lists.",
    )
    epochs: int = setting(10, "How often to go through the documents.", 1, _MANY)
    seed: int = setting(0, "Of every random choice.", 0, (1 << 63) - 1)
    checkpoint_minutes: float = setting(5.0, "Between checkpoints, besides that of every epoch.", 0)
    stream: bool | None = setting(
        None,
        "Read documents from disk when needed; default: if they take a third of free memory.",
        opposite="--in-memory",
    )
    buffer: float = setting(
        256.0, "MB of streamed documents that are shuffled at a time.", above=0, most=_MANY
    )
    trackers: tuple[str, ...] = setting((), "tensorboard, wandb, …: see Accelerate's trackers.")

    def __post_init__(self) -> None:
        check_settings(self, ConfigError)
        if self.task not in (names := ("auto", *TASKS)):
            raise ConfigError(f"task must be one of {', '.join(names)}, not {self.task!r}")

    @property
    def buffer_bytes(self) -> int | None:
        """How many bytes of grammars are held at a time; None: all."""
        return round(self.buffer * 2**20) if self.stream else None

    def model_config(self, alphabet_size: int, outputs: int, task: str) -> ModelConfig:
        """Return the settings of the model, for such documents and labels."""
        chosen = {each.name: getattr(self, each.name) for each in fields(ModelSettings)}
        return ModelConfig(alphabet_size=alphabet_size, outputs=outputs, task=task, **chosen)

    def settled(self) -> TrainingConfig:
        """Return the settings as they are used: which epoch is kept depends on the model.

        >>> TrainingConfig(model="auto").settled().keep, TrainingConfig().settled().keep
        ('last', 'best')
        """
        # Documents that chose an epoch would overrate it in the blend.
        return replace(self, keep=self.keep or ("last" if self.model == "auto" else "best"))

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self) | {"trackers": list(self.trackers)}

    @classmethod
    def from_json(cls, data: object) -> TrainingConfig:
        """Return the config with these fields; a missing one does what was done before it came.

        The preset is but a name here: what it says today changes nothing of what was kept.
        """
        if not isinstance(data, dict):
            raise ConfigError("the settings of a training must be a JSON object")
        return _config_of({**_BEFORE, **data})

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
    if preset is not None and (not isinstance(preset, str) or preset not in PRESETS):
        near = get_close_matches(str(preset), PRESETS, 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"no preset {preset!r:.100}; there are {', '.join(PRESETS)}{hint}")
    return _config_of({**(PRESETS[preset] if preset else {}), **given, "preset": preset})


def _config_of(given: dict[str, Any]) -> TrainingConfig:
    """Return the config with these fields, and defaults; ConfigError for one that there is not."""
    check_names(given, (each.name for each in fields(TrainingConfig)), ConfigError)
    if isinstance(given.get("trackers"), list):
        given = given | {"trackers": tuple(given["trackers"])}
    return TrainingConfig(**given)


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the settings in a TOML file; ConfigError, with the file, for what cannot be."""
    import tomllib

    try:
        with Path(path).open("rb") as file:
            given = tomllib.load(file)
        resolve(given.get("preset"), given)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except (ConfigError, tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return given
