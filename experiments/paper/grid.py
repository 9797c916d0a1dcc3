"""The grid of rows (data set x method x seed), from the TOML files in rows/.

There is one file for each kind of data set and protocol, not for each row: all rows of a file share
their protocol, so that it says once what differs from the paper's, and copies cannot disagree.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, cast

from benchmarks.data import DATASETS
from laconic.codecs import CODECS
from laconic.rulebook import Boundary
from laconic.training.settings import ConfigError, TrainingConfig, resolve

__all__ = [
    "COMPOSERS",
    "IN_PLACE",
    "MODELS",
    "ROWS",
    "SPELLED",
    "Group",
    "Method",
    "Row",
    "chosen",
    "groups",
    "rows",
    "shared_rules",
]

ROWS = Path(__file__).parent / "rows"
COMPOSERS = ("mlp", "dual_gru", "grc", "tree_lstm", "linear_recurrence")
IN_PLACE = "grc_ngrams"  # grc, and with each symbol the n-grams that end in it
SPELLED = "grc_spelled"  # grc, and no symbol of a rulebook has a learned vector of its own
MODELS = ("sequence", "ngram", "both", "auto")  # each with grc, where it composes
_CODEC = re.compile(rf"({'|'.join(CODECS)})(\+([1-9][0-9]*|auto)(_words|_across|_letters)?)?")
_PLAIN = {"characters": "lstm", "char_cnn": "cnn", "bpe": "lstm"}
_KEYS = {
    "title",
    "notes",
    "sets",
    "preset",
    "longest",
    "few",
    "sized",
    "bpe_vocabulary",
    "settings",
    "only",
    "local",
    "methods",
}
_LOCAL = ("local_ngrams", "local_buckets", "local_size", "local_dropout")
# What a reader has to know of a protocol; the rest (device, paths, …) does not change results.
_TOLD = {
    "epochs": "epochs",
    "batch_size": "documents in a batch",
    "budget": "symbols in a batch, at most",
    "learning_rate": "learning rate",
    "halve_every": "epochs until the rate is halved",
    "schedule": "schedule",
    "warmup_steps": "steps of warm-up",
    "documents_per_epoch": "documents per epoch",
    "clip": "longest gradient",
    "dropout": "dropout",
    "symbol_dropout": "share of symbols not read in training",
    "embedding_size": "embedding size",
    "width": "width",
    "precision": "precision",
    "holdout": "share held out",
    "patience": "epochs without improvement, at most",
    "ngrams": "letters of the longest n-grams that are counted",
    "ngram_buckets": "buckets of those",
    "phrases": "symbols of the longest phrases that are counted",
    "ngram_dropout": "dropout of what is counted",
    "view_loss": "weight of each view's own loss",
    "local_ngrams": "letters of the longest n-grams in place",
    "local_buckets": "buckets of n-grams in place",
    "local_size": "size of their vectors",
    "local_dropout": "their dropout",
}


def shared_rules(codec: str) -> tuple[str, int | None, Boundary]:
    """Return what the name of a codec says: codec, rules that documents share, their boundary.

    None are as many rules as Rulebook.learn makes by default.
    """
    name, _, book = codec.partition("+")
    rules, _, where = book.partition("_")
    boundaries: dict[str, Boundary] = {"words": "words", "across": "none"}
    return name, None if rules == "auto" else int(rules or 0), boundaries.get(where, "phrases")


@dataclass(frozen=True)
class Method:
    """What reads the documents: a codec ("bpe" is not one of Laconic's) and settings of the model.

    Methods that are `local` have n-grams in their places, as their group's [local] says. A codec
    with "+4096" has a rulebook of so many rules beneath it, with "+auto" of as many as are learned
    by default; with "+4096_words" they stay within words, with "+4096_across" any may cross them,
    and with "+4096_letters" the codec takes shared symbols for letters, of which nobody knows how
    they are spelled.

    >>> method = Method.named("grc-lzd")
    >>> method.codec, method.composer, method.sequence_model, method.model, method.local
    ('lzd', 'grc', 'lstm', 'sequence', False)
    >>> Method.named("both-lzd").model, Method.named("grc_ngrams-lzd").local
    ('both', True)
    >>> Method.named("grc-repair+4096").shared
    ('repair', 4096, 'phrases')
    """

    name: str
    codec: str
    composer: str
    sequence_model: str
    model: str = "sequence"
    local: bool = False

    @classmethod
    def named(cls, name: str) -> Method:
        """Return the method of that name; ConfigError if there is none."""
        if name in _PLAIN:
            # Without rules a composer only passes letters on; dual_gru does so unchanged.
            return cls(name, "bpe" if name == "bpe" else "none", "dual_gru", _PLAIN[name])
        first, _, codec = name.partition("-")
        if first not in (*COMPOSERS, IN_PLACE, SPELLED, *MODELS) or not _CODEC.fullmatch(codec):
            raise ConfigError(
                f"no method {name!r}; there are {', '.join(_PLAIN)} and composer-codec, such as "
                f"grc-repair, with {', '.join((*COMPOSERS, IN_PLACE, SPELLED))} and "
                f"{', '.join(CODECS)} (repair+auto, lzd+256_across: over a rulebook), "
                f"and model-codec, such as both-repair, with {', '.join(MODELS)}"
            )
        if first in MODELS:
            return cls(name, codec, "grc", "lstm", first)
        if first in (IN_PLACE, SPELLED):
            return cls(name, codec, "grc", "lstm", local=first == IN_PLACE)
        return cls(name, codec, first, "lstm")

    @property
    def shared(self) -> tuple[str, int | None, Boundary]:
        """The codec, the rules that documents share (0: none), and how they stand to words."""
        return shared_rules(self.codec)


@dataclass(frozen=True)
class Group:
    """Data sets with one protocol: a preset, often the paper's, and `settings` that depart from it.

    `few` training documents, at random, are taken instead of all. If it is `sized`, small sets get
    more epochs than the preset has, by the rule of automatic training. `only` are more settings for
    some sets, `local` for methods that are local. `longest` cuts documents there; `bpe_vocabulary`
    is for the method bpe only; `notes` are departures that no setting shows.
    """

    name: str
    title: str
    sets: tuple[str, ...]
    preset: str
    settings: dict[str, Any]
    methods: tuple[tuple[int, tuple[str, ...], tuple[int, ...]], ...]
    longest: int | None = None
    few: int | None = None
    sized: bool = False
    bpe_vocabulary: int = 4_000
    notes: tuple[str, ...] = ()
    only: dict[str, dict[str, Any]] = field(default_factory=dict)
    local: dict[str, Any] = field(default_factory=dict)

    @property
    def of_views(self) -> bool:
        """Whether it compares views of documents: models, not composers."""
        names = (name for _, some, _ in self.methods for name in some)
        return any(name.partition("-")[0] in MODELS for name in names)

    def settings_of(self, dataset: str) -> dict[str, Any]:
        """Return the settings that depart from the preset, for one set."""
        given = {**self.settings, **self.only.get(dataset, {})}
        return given | self._enough(dataset, given) if self.sized else given

    def _enough(self, dataset: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return the epochs, and the patience, that a set of that size needs."""
        from laconic.training.sizing import enough_epochs, enough_patience  # torch is heavy

        every = DATASETS[dataset].train
        if every is None:
            raise ConfigError(f"sized: nobody knows how many documents of {dataset} train")
        config = resolve(self.preset, given)
        documents = round((1 - config.holdout) * min(every, self.few or every))
        epochs = enough_epochs(documents, config.epochs)
        return {"epochs": epochs, "patience": enough_patience(epochs)}

    def local_of(self, method: Method) -> dict[str, Any]:
        """Return settings of n-grams in place; ConfigError if it needs them and there are none."""
        if method.local and not self.local:
            raise ConfigError(
                f"{method.name} reads n-grams in their places: the group {self.name} needs a table "
                f"[local] with {', '.join(_LOCAL)}"
            )
        return self.local if method.local else {}

    def departures(self, dataset: str) -> list[str]:
        """What differs from the preset, in words: for the caption of every table."""
        return self.departures_in(resolve(self.preset, self.settings_of(dataset)).to_json())

    def departures_in(self, config: Mapping[str, Any]) -> list[str]:
        """What differs in the config of a finished row, which may lack settings that came later."""
        preset = resolve(self.preset, {}).to_json()
        told = [
            f"{words} {_word(config[name])} instead of {_word(preset[name])}"
            for name, words in _TOLD.items()
            if config.get(name, preset[name]) != preset[name]
            and not (self.sized and name in ("epochs", "patience"))
        ]
        told += ["more epochs for small sets"] if self.sized else []
        cut = [f"documents cut at {self.longest:,} letters"] if self.longest else []
        cut += [f"{self.few:,} training documents"] if self.few else []
        return told + cut + list(self.notes)


@dataclass(frozen=True)
class Row:
    """One training: the smallest thing that is run, skipped and resumed."""

    stage: int
    dataset: str
    method: Method
    seed: int
    group: Group

    def __str__(self) -> str:
        return f"{self.dataset}/{self.method.name}-{self.seed}"

    @property
    def key(self) -> tuple[str, str, int]:
        """What its result is found by."""
        return self.dataset, self.method.name, self.seed

    def source(self, cache: Path) -> tuple[str, str, int | None, Path, int, int | None]:
        """Return what corpora.corpora takes to make what it reads."""
        group = self.group
        own = group.longest, cache, group.bpe_vocabulary, group.few
        return self.dataset, self.method.codec, *own

    def config(self, device: str) -> TrainingConfig:
        """Return the settings of its training."""
        method = self.method
        own: dict[str, Any] = {"composer": method.composer, "sequence_model": method.sequence_model}
        more = {
            "model": method.model,
            "seed": self.seed,
            "device": device,
            "task": "classification",
        }
        if method.name.startswith(SPELLED):
            own["residual_documents"] = 0
        settings = self.group.settings_of(self.dataset) | self.group.local_of(method)
        return resolve(self.group.preset, {**settings, **own, **more}).settled()


def groups(folder: Path = ROWS) -> list[Group]:
    """Return the groups in a folder of TOML files, by name; ConfigError with file for bad ones."""
    found = []
    for path in sorted(folder.glob("*.toml")):
        try:
            found.append(_group(path))
        except (ConfigError, tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"{path}: {error}") from None
    return found


def rows(of: Iterable[Group]) -> list[Row]:
    """Return all rows, the most important first: by stage, then seed by seed through all sets."""
    made = [
        Row(stage, dataset, Method.named(name), seed, group)
        for group in of
        for stage, names, seeds in group.methods
        for dataset in group.sets
        for name in names
        for seed in seeds
    ]
    # One seed of everything says more than four of one set; sorting is stable.
    return sorted(made, key=lambda row: (row.stage, row.seed))


def chosen(every: list[Row], patterns: Iterable[str]) -> list[Row]:
    """Return the rows that a pattern such as 'H3*/grc-*-0' names; all if there are no patterns."""
    wanted = list(patterns)
    return [row for row in every if not wanted or any(fnmatch(str(row), p) for p in wanted)]


def _group(path: Path) -> Group:
    with path.open("rb") as file:
        given = tomllib.load(file)
    if unknown := set(given) - _KEYS:
        raise ConfigError(f"no key {min(unknown)!r}; there are {', '.join(sorted(_KEYS))}")
    for name in given["sets"]:
        if name not in DATASETS:
            raise ConfigError(f"no data set {name!r}; there are {', '.join(DATASETS)}")
    methods = []
    for entry in given["methods"]:
        names = tuple(Method.named(name).name for name in entry["names"])
        methods.append((int(entry["stage"]), names, tuple(map(int, entry["seeds"]))))
    group = Group(
        name=path.stem,
        title=str(given["title"]),
        sets=tuple(given["sets"]),
        preset=str(given["preset"]),
        settings=cast(dict[str, Any], given.get("settings", {})),
        methods=tuple(methods),
        longest=given.get("longest"),
        few=given.get("few"),
        sized=bool(given.get("sized", False)),
        bpe_vocabulary=int(given.get("bpe_vocabulary", 4_000)),
        notes=tuple(map(str, given.get("notes", ()))),
        only=cast(dict[str, dict[str, Any]], given.get("only", {})),
        local=cast(dict[str, Any], given.get("local", {})),
    )
    for name in (*group.sets, *group.only):
        if name not in group.sets:
            raise ConfigError(f"[only.{name}] is for no set of the file")
        resolve(group.preset, group.settings_of(name))  # ConfigError names the setting
    _check_local(group)
    return group


def _check_local(group: Group) -> None:
    if unknown := set(group.local) - set(_LOCAL):
        raise ConfigError(f"no {min(unknown)!r} in [local]; there are {', '.join(_LOCAL)}")
    if group.local and not resolve(group.preset, group.local).local_ngrams:
        raise ConfigError("[local] needs local_ngrams, 1 or more")
    for name in {name for _, names, _ in group.methods for name in names}:
        group.local_of(Method.named(name))


def _word(value: object) -> str:
    if value is None:
        return "all"
    return f"{value:,}" if isinstance(value, int) else str(value)
