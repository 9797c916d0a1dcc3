"""A model's settings, each declared once; what a model is made of, checked. Needs no torch.

Flags are made of them, so what counts n-grams is imported only by whoever asks for it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from difflib import get_close_matches
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, get_args, get_origin, get_type_hints

from laconic.errors import InputError
from laconic.tasks import TASKS

if TYPE_CHECKING:
    from laconic.ngrams.hashed import HashedCounter
    from laconic.ngrams.in_place import NgramPlacer

_MOST = 1 << 24  # of any size: far more than any model has, and few enough to multiply
_WORDS = {int: "an integer", float: "a number", bool: "true or false", str: "a name"}
_ENDS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "least": ("from", operator.ge),
    "above": ("above", operator.gt),
    "most": ("to", operator.le),
    "below": ("to less than", operator.lt),
}


class ModelError(InputError):
    """A model's configuration or files are not what they should be."""


def setting(
    default: Any,
    text: str,
    least: float | None = None,
    most: float | None = None,
    *,
    opposite: str | None = None,
    **open_ends: int,
) -> Any:
    """Declare a setting, as a field of a dataclass: its default, help and range.

    `open_ends` are `above` and `below`, which are not in the range. `opposite` is the flag of what
    is not so, by default --no- and the name. Flags, TOML files, estimators'
    parameters and what files keep follow from the declaration.
    """
    ends = {"least": least, **open_ends, "most": most}
    given = {name: end for name, end in ends.items() if end is not None}
    return field(default=default, metadata={"help": text, "ends": given, "opposite": opposite})


# Only those that inherit the fields are made: three methods fewer take a third of the time.
@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ModelSettings:
    """The settings of a model that somebody chooses; ModelConfig and TrainingConfig have them."""

    composer: str = setting("grc", "grc, dual_gru, mlp, tree_lstm or linear_recurrence.")
    embedding_size: int = setting(200, "Size of the composer's vectors.", 1, _MOST)
    sequence_model: str = setting("lstm", "lstm, gru, rnn, cnn or transformer.")
    width: int = setting(200, "Size of the sequence model, for each direction.", 1, _MOST)
    layers: int = setting(1, "Layers of the sequence model.", 1, 64)
    direction: Literal["forward", "backward", "both"] = setting(
        "both", "Which way the sequence model reads."
    )
    dropout: float = setting(0.2, "On the pooled vector and between layers.", 0, below=1)
    symbol_dropout: float = setting(
        0.0, "Share of the symbols that are read as nothing while training.", 0, below=1
    )
    pooling: str = setting("max", "max, mean, length_mean, attention or last.")
    length_input: bool | None = setting(None, "Tell symbols' lengths; default: with grc only.")
    identity_buckets: int = setting(0, "Rows of a table of hashed phrases; 0: none.", 0, _MOST)
    residual_documents: int = setting(
        4, "Training documents that have a shared symbol with a vector of its own; 0: none.", 0
    )
    residual_dropout: float = setting(0.1, "Share of those left out while training.", 0, below=1)
    local_ngrams: int = setting(
        0, "Letters of the longest n-grams read with each symbol; 0: none.", 0, 64
    )
    local_buckets: int = setting(1 << 18, "Rows of the table of those, which are hashed.", 1, _MOST)
    local_size: int = setting(64, "Size of their vectors.", 1, _MOST)
    local_dropout: float = setting(0.5, "Share of them left out while training.", 0, below=1)
    model: Literal["auto", "sequence", "ngram", "both"] = setting(
        "sequence",
        "sequence reads symbols, ngram counts n-grams and phrases, both adds the two; auto: "
        "training finds out.",
    )
    ngrams: int = setting(5, "Letters of the longest n-grams that are counted.", 1, 64)
    phrases: int = setting(4, "Symbols of the longest phrases that are counted; 0: none.", 0, 64)
    shared_ngrams: int = setting(
        0, "Symbols of the rulebook in the longest runs of them that are counted; 0: none.", 0, 64
    )
    ngram_buckets: int = setting(
        1 << 20, "Columns that n-grams are hashed to; as many phrases and runs.", 1, _MOST
    )
    ngram_counts: Literal["log", "plain"] = setting(
        "log", "How much what is counted often weighs: 1 + log of how often, or how often."
    )
    ngram_dropout: float = setting(
        0.0, "Share of a document's n-grams left out while training.", 0, below=1
    )

    @property
    def reads_sequences(self) -> bool:
        """Whether there are a composer and a sequence model."""
        return self.model != "ngram"

    @property
    def hashes(self) -> dict[str, str]:
        """The hashes, of laconic.ngrams.HASHES, that decide which row of a table is whose."""
        from laconic.ngrams import HASHES

        counts = self.model != "sequence"
        used = {
            "ngrams": counts,  # of letters, and of shared symbols
            "phrases": counts and self.phrases > 0,
            "in_place": self.reads_sequences and self.local_ngrams > 0,
            "identity": self.reads_sequences and self.identity_buckets > 0,
        }
        return {name: HASHES[name] for name, is_used in used.items() if is_used}

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


@dataclass(frozen=True)
class ModelConfig(ModelSettings):
    """The parts of a GrammarModel and their sizes; ModelError for what cannot be.

    `outputs` are classes, labels or values to predict. `embedding_size` is the composer's, `width`
    the sequence model's (of recurrent ones for each direction). `dropout` acts on the pooled vector
    and between layers, in transformers within them; `symbol_dropout` is the share of a sequence's
    symbols that are read as zeros in training. `length_input` adds an embedding of each symbol's
    expanded length to the sequence model's input (None: with grc only); `identity_buckets` adds one
    of its hashed expansion. `residual_rows` of the rulebook's `shared_rules` (those that
    `residual_documents` of the training's documents use) have learned vectors beside what the
    composer makes of them; training leaves out a share `residual_dropout`. `local_ngrams` (letters,
    0: none) adds what the n-grams that end in a symbol say: vectors of `local_size` in a table of
    `local_buckets` hashed rows, of which a share `local_dropout` is left out in training;
    `local_rows` of them are learned: as many as two of the training's documents have (None: all).

    `model` "sequence" is all that; "ngram" is a linear model of n-grams of up to `ngrams` letters
    and of phrases (runs of up to `phrases` symbols, 0: none) instead, in `ngram_buckets` hashed
    columns each, of which a share `ngram_dropout` is left out in training; "both" adds the two.
    With `shared_ngrams`, n-grams of so many symbols of the rulebook are counted, too.
    `ngram_rows` of the columns are learned: as many as there are in the training's documents.

    >>> ModelConfig(alphabet_size=4, outputs=2, composer="dual_gru").width
    200
    >>> ModelConfig(alphabet_size=4, outputs=2, layers=65)
    Traceback (most recent call last):
        ...
    laconic.nn.config.ModelError: layers must be an integer from 1 to 64, not 65
    """

    alphabet_size: int = field(metadata={"ends": {"least": 1, "most": _MOST}})
    outputs: int = field(metadata={"ends": {"least": 1, "most": _MOST}})
    task: str = "classification"
    shared_rules: int = setting(0, "Rules of the rulebook that documents share.", 0, _MOST)
    residual_rows: int = setting(0, "Of those, the ones with a vector of their own.", 0)
    local_rows: int | None = setting(None, "Of local_buckets, those that are learned.", 0)
    ngram_rows: int = setting(0, "Of the columns, those that are learned.", 0)

    def __post_init__(self) -> None:
        check_settings(self, ModelError)
        tables = {
            "residual_rows": self.shared_rules,
            "local_rows": self.local_buckets,
            "ngram_rows": (2 + bool(self.shared_ngrams)) * self.ngram_buckets,
        }
        for name, most in tables.items():
            if (rows := getattr(self, name) or 0) > most:
                raise ModelError(f"{name} must be an integer from 0 to {most}, not {rows}")
        if self.model == "auto":
            raise ModelError('model "auto" is for laconic.training.auto, which makes one of these')
        if self.task not in TASKS:
            raise ModelError(f"task must be one of {', '.join(TASKS)}, not {self.task!r}")
        if self.pooling == "last" and self.direction == "backward":
            raise ModelError('pooling "last" of direction "backward" sees one symbol; use "max"')

    @property
    def reads_lengths(self) -> bool:
        """Whether the sequence model is told the expanded lengths of symbols."""
        return self.composer == "grc" if self.length_input is None else self.length_input

    @property
    def counted(self) -> HashedCounter | None:
        """What batches must count for the model, if anything."""
        if self.model == "sequence":
            return None
        from laconic.ngrams.hashed import HashedCounter

        return HashedCounter(self.ngrams, self.phrases, self.ngram_buckets, self.shared_ngrams)

    @property
    def in_place(self) -> NgramPlacer | None:
        """Which n-grams batches must tell the places of, if any."""
        if not self.local_ngrams or not self.reads_sequences:
            return None
        from laconic.ngrams.in_place import NgramPlacer

        return NgramPlacer(self.local_ngrams, self.local_buckets)

    @classmethod
    def from_json(cls, data: object) -> ModelConfig:
        """Return the config with these fields; ModelError for one that is unknown or missing."""
        if not isinstance(data, dict):
            raise ModelError("a model's config must be a JSON object")
        check_names(data, (each.name for each in fields(cls)), ModelError)
        for name in ("alphabet_size", "outputs"):
            if name not in data:
                raise ModelError(f"{name} is missing")
        return cls(**data)


def check_names(given: Iterable[str], known: Iterable[str], error: type[InputError]) -> None:
    """Raise an error, with the name that was probably meant, for a setting that is unknown."""
    names = list(known)
    for key in given:
        if key not in names:
            near = get_close_matches(str(key).replace("-", "_"), names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names)}"
            raise error(f"no setting {str(key)[:100]!r}; {hint}")


def check_settings(config: ModelSettings, error: type[InputError]) -> None:
    """Raise an error that names the setting for one whose type or range is wrong."""
    hints = get_type_hints(type(config))
    for each in fields(config):
        value, hint = getattr(config, each.name), hints[each.name]
        ends = each.metadata.get("ends", {}).items()
        if not _is_a(value, hint) or not (
            value is None or all(_ENDS[end][1](value, limit) for end, limit in ends)
        ):
            told = [f"{_ENDS[end][0]} {limit:.10g}" for end, limit in ends]
            raise error(f"{each.name} must be {_words(hint, told)}, not {value!r:.100}")


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


def _words(hint: Any, ends: list[str]) -> str:
    if get_origin(hint) is Literal:
        return "one of " + ", ".join(map(str, get_args(hint)))
    if get_origin(hint) in (Union, UnionType):
        [kind] = (each for each in get_args(hint) if each is not NoneType)
        return f"{_words(kind, ends)}, or null"
    if get_origin(hint) is tuple:
        return "a list of names"
    return " ".join([_WORDS[hint], *ends])
