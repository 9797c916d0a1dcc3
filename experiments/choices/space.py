"""The search space (space.toml): values of settings, and the trials that compare them."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from experiments.paper.grid import Group, Method, Row
from laconic.training.settings import ConfigError, TrainingConfig, resolve

__all__ = ["SPACE", "Searched", "Trial", "read_space", "trials", "value_name"]

SPACE = Path(__file__).parent / "space.toml"
_NOT_SETTINGS = ("why", "trial", "like", "codec")
_TRIAL = ("sets", "documents", "longest", "holdout", "epochs")


@dataclass(frozen=True)
class Searched:
    """What is tried for one preset: the values of each setting, the one to begin with first.

    It has the settings of the preset that it is `like`, of which `base` are the first values;
    `why` tells of settings with one value why no other is tried; `trial` is what all trials have.
    """

    preset: str
    codecs: tuple[str, ...]
    values: dict[str, list[Any]]
    trial: dict[str, Any]
    like: str | None = None
    base: dict[str, Any] = field(default_factory=dict)
    why: dict[str, str] = field(default_factory=dict)

    @property
    def sets(self) -> tuple[str, ...]:
        """The data sets of whose training parts some documents are held out."""
        return tuple(self.trial["sets"])

    @property
    def alternatives(self) -> dict[str, list[Any]]:
        """The settings that have more than one value; "codec" among them, where it has."""
        codecs = {"codec": list(self.codecs)}
        return {name: some for name, some in {**codecs, **self.values}.items() if len(some) > 1}


@dataclass(frozen=True)
class Trial(Row):
    """A training of which only held-out documents are looked at; `group.settings` are all of it."""

    def config(self, device: str) -> TrainingConfig:
        """Return the settings of its training."""
        more = {"seed": self.seed, "device": device, "task": "classification"}
        return resolve(None, {**self.group.settings, **more}).settled()


def read_space(path: Path = SPACE) -> dict[str, Searched]:
    """Return what is searched, by preset; ConfigError, with the file, for what cannot be."""
    with path.open("rb") as file:
        given = tomllib.load(file)
    shared, found = given.pop("trial"), dict[str, Searched]()
    for preset, table in given.items():
        codecs = table.get("codec", ["repair+auto"])
        values = {name: some for name, some in table.items() if name not in _NOT_SETTINGS}
        like = table.get("like")
        one = Searched(
            preset,
            codecs=(codecs,) if isinstance(codecs, str) else tuple(codecs),
            values=values,
            trial={**shared, **table.get("trial", {})},
            like=like,
            base={**found[like].base, **_firsts(found[like])} if like else {},
            why=cast(dict[str, str], table.get("why", {})),
        )
        try:
            _check(one)
        except ConfigError as error:
            raise ConfigError(f"{path}, [{preset}]: {error}") from None
        found[preset] = one
    return found


def trials(space: Iterable[Searched], seeds: Iterable[int]) -> list[Trial]:
    """Return all trials, seed by seed; all settings share those of the first values."""
    return [
        _trial(one, dataset, seed, stage, changed)
        for stage, seed in enumerate(seeds, 1)
        for one in space
        if one.alternatives
        for dataset in one.sets
        for changed in _changes(one)
    ]


def value_name(preset: str, setting: str | None = None, value: Any = None) -> str:
    """Return the name of trials, which is their method's: the preset, and what is not its first.

    >>> value_name("fast", "dropout", 0.5), value_name("fast")
    ('fast dropout=0.5', 'fast')
    """
    return preset if setting is None else f"{preset} {setting}={json.dumps(value)}"


def _changes(one: Searched) -> Iterator[tuple[str, Any] | None]:
    yield None
    for name, values in one.alternatives.items():
        for value in values[1:]:
            yield name, value


def _trial(
    one: Searched, dataset: str, seed: int, stage: int, changed: tuple[str, Any] | None
) -> Trial:
    codec = one.codecs[0]
    settings = {**one.base, **_firsts(one)}
    if changed and changed[0] == "codec":
        codec = changed[1]
    elif changed:
        settings[changed[0]] = changed[1]
    if settings.get("model") != "auto":  # which holds out and reads as it likes: see trial
        settings |= {name: one.trial[name] for name in ("holdout", "epochs")}
    config = resolve(None, settings)
    name = value_name(one.preset, *(changed or ()))
    method = Method(name, codec, config.composer, config.sequence_model, config.model)
    some = {"longest": one.trial["longest"], "few": one.trial["documents"]}
    group = Group("choose", one.preset, one.sets, "", settings, (), **some)
    return Trial(stage, dataset, method, seed, group)


def _firsts(one: Searched) -> Mapping[str, Any]:
    return {name: values[0] for name, values in one.values.items()}


def _check(one: Searched) -> None:
    if unknown := set(one.trial) - set(_TRIAL):
        raise ConfigError(f"no {min(unknown)!r} in [trial]; there are {', '.join(_TRIAL)}")
    for name, values in one.values.items():
        for value in values:
            resolve(None, {name: value})  # ConfigError names the setting
        if len(values) == 1 and name not in one.why:
            raise ConfigError(f"{name} has but one value: say under [{one.preset}.why] why")
    for codec in one.codecs:
        Method.named(f"grc-{codec}")
