"""What a model is made of, checked; the same fields as in its config.json."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

from laconic.errors import InputError
from laconic.ngrams.hashed import HashedCounter
from laconic.ngrams.in_place import NgramPlacer

__all__ = ["ModelConfig", "ModelError"]

Task = Literal["classification", "multilabel", "regression"]
_TASKS = ("classification", "multilabel", "regression")
_MODELS = ("sequence", "ngram", "both")
_MOST = 1 << 24  # of any size: far more than any model has, and few enough to multiply


class ModelError(InputError):
    """A model's configuration or files are not what they should be."""


@dataclass(frozen=True)
class ModelConfig:
    """The parts of a GrammarModel and their sizes; ModelError for what cannot be.

    `outputs` are classes, labels or values to predict. `embedding_size` is the composer's, `width`
    the sequence model's (of recurrent ones for each direction). `dropout` acts on the pooled vector
    and between layers, in transformers within them. `length_input` adds an embedding of each
    symbol's expanded length to the sequence model's input (None: with grc only);
    `identity_buckets` adds one of its hashed expansion. `local_ngrams` (letters, 0: none) adds what
    the n-grams that end in a symbol say: vectors of `local_size` in a table of `local_buckets`
    hashed rows, of which a share `local_dropout` is left out in training; `local_rows` of them
    are learned: as many as two of the training's documents have (None: all).

    `model` "sequence" is all that; "ngram" is a linear model of n-grams of up to `ngrams` letters
    and of phrases (runs of up to `phrases` symbols, 0: none) instead, in `ngram_buckets` hashed
    columns each, of which a share `ngram_dropout` is left out in training; "both" adds the two.
    `ngram_rows` of the columns are learned: as many as there are in the training's documents.

    >>> ModelConfig(alphabet_size=4, outputs=2, composer="dual_gru").width
    200
    """

    alphabet_size: int
    outputs: int
    task: Task = "classification"
    composer: str = "grc"
    embedding_size: int = 200
    sequence_model: str = "lstm"
    width: int = 200
    layers: int = 1
    direction: str = "both"
    dropout: float = 0.0
    pooling: str = "max"
    length_input: bool | None = None
    identity_buckets: int = 0
    local_ngrams: int = 0
    local_buckets: int = 1 << 18
    local_size: int = 64
    local_dropout: float = 0.5
    local_rows: int | None = None
    model: str = "sequence"
    ngrams: int = 5
    phrases: int = 4
    ngram_buckets: int = 1 << 20
    ngram_rows: int = 0
    ngram_dropout: float = 0.0

    def __post_init__(self) -> None:
        for name in ("alphabet_size", "outputs", "embedding_size", "width"):
            self._check_integer(name, 1, _MOST)
        self._check_integer("layers", 1, 64)
        self._check_integer("identity_buckets", 0, _MOST)
        self._check_integer("local_ngrams", 0, 64)
        self._check_integer("local_buckets", 1, _MOST)
        self._check_integer("local_size", 1, _MOST)
        if self.local_rows is not None:
            self._check_integer("local_rows", 0, self.local_buckets)
        self._check_integer("ngrams", 1, 64)
        self._check_integer("phrases", 0, 64)
        self._check_integer("ngram_buckets", 1, _MOST)
        self._check_integer("ngram_rows", 0, 2 * self.ngram_buckets)
        if self.model not in _MODELS:
            raise ModelError(f"model must be one of {', '.join(_MODELS)}, not {self.model!r}")
        if self.task not in _TASKS:
            raise ModelError(f"task must be one of {', '.join(_TASKS)}, not {self.task!r}")
        for name in ("composer", "sequence_model", "direction", "pooling"):
            if not isinstance(getattr(self, name), str):
                raise ModelError(f"{name} must be a name, not {getattr(self, name)!r}")
        if self.pooling == "last" and self.direction == "backward":
            raise ModelError('pooling "last" of direction "backward" sees one symbol; use "max"')
        for name in ("dropout", "local_dropout", "ngram_dropout"):
            share = getattr(self, name)
            if isinstance(share, bool) or not isinstance(share, int | float):
                raise ModelError(f"{name} must be a number, not {share!r}")
            if not 0 <= share < 1:
                raise ModelError(f"{name} must be at least 0 and less than 1, not {share}")
        if not isinstance(self.length_input, bool | None):
            raise ModelError(f"length_input must be true, false or null, not {self.length_input!r}")

    @property
    def reads_lengths(self) -> bool:
        """Whether the sequence model is told the expanded lengths of symbols."""
        return self.composer == "grc" if self.length_input is None else self.length_input

    @property
    def reads_sequences(self) -> bool:
        """Whether there are a composer and a sequence model."""
        return self.model != "ngram"

    @property
    def counted(self) -> HashedCounter | None:
        """What batches must count for the model, if anything."""
        if self.model == "sequence":
            return None
        return HashedCounter(self.ngrams, self.phrases, self.ngram_buckets)

    @property
    def in_place(self) -> NgramPlacer | None:
        """Which n-grams batches must tell the places of, if any."""
        if not self.local_ngrams or not self.reads_sequences:
            return None
        return NgramPlacer(self.local_ngrams, self.local_buckets)

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: object) -> ModelConfig:
        """Return the config with these fields; ModelError for one that is unknown or missing."""
        if not isinstance(data, dict):
            raise ModelError("a model's config must be a JSON object")
        names = [field.name for field in fields(cls)]
        for key in data:
            if key not in names:
                near = get_close_matches(str(key), names, 1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; there are {', '.join(names)}"
                raise ModelError(f"no setting {str(key)[:100]!r}{hint}")
        for name in ("alphabet_size", "outputs"):
            if name not in data:
                raise ModelError(f"{name} is missing")
        return cls(**data)

    def _check_integer(self, name: str, least: int, most: int) -> None:
        value = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ModelError(f"{name} must be an integer from {least} to {most}, not {value!r}")
