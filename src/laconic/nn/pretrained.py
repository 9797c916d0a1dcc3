"""Models on disk: config.json, model.safetensors and a README.md; nothing is ever unpickled."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from huggingface_hub import ModelCard, hf_hub_download
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from laconic.errors import VersionError
from laconic.files import check_version, read_json, together
from laconic.nn.config import ModelConfig, ModelError, ModelSettings

VERSION = 1
"""Of the format of models and runs: FORMAT.md."""

_CONFIG, WEIGHTS, _CARD = "config.json", "model.safetensors", "README.md"
_LARGEST_CONFIG = 1 << 20
# What files rest on that do not say it: they are of before there were others.
_FIRST_HASHES = {
    "ngrams": "murmur3-32.1",
    "phrases": "polynomial-64-modulo.1",
    "in_place": "polynomial-64-scale.1",
    "identity": "polynomial-64.1",
}
Config = TypeVar("Config", bound=ModelSettings)


class Files(NamedTuple):
    """Where a model's files are."""

    config: Path
    weights: Path


def find(folder: str | os.PathLike[str], **download: Any) -> Files:
    """Return a saved model's files, downloaded if `folder` is not one but a name on the Hub."""
    path = Path(folder)
    if path.is_dir():
        files = Files(path / _CONFIG, path / WEIGHTS)
        for file in files:
            if not file.is_file():
                raise FileNotFoundError(f"{path} holds no model: {file.name} is missing")
        return files
    name = os.fspath(folder)
    if path.is_absolute() or name.startswith(".") or name.count("/") > 1:
        raise FileNotFoundError(f"{name} does not exist")
    return Files(*(Path(hf_hub_download(name, each, **download)) for each in (_CONFIG, WEIGHTS)))


def to_file(config: ModelSettings) -> dict[str, Any]:
    """Return a config as files have it: with the format's version, and the hashes it rests on."""
    return {"version": VERSION, "hashes": config.hashes, **config.to_json()}


def from_file(data: object, read: Callable[[object], Config]) -> Config:
    """Return the config that `read` makes of what to_file gave.

    VersionError, with the cure, for what is of a later version, or rests on other hashes.
    """
    if not isinstance(data, dict):
        return read(data)
    fields: dict[str, Any] = {"version": 1, "hashes": {}} | data
    check_version(fields.pop("version"), VERSION)
    hashes = fields.pop("hashes")
    if not isinstance(hashes, dict):
        raise ModelError(f"hashes must be an object, not {hashes!r:.100}")
    config = read(fields)
    for of, name in config.hashes.items():
        made_with = hashes.get(of, _FIRST_HASHES[of])
        if made_with != name:
            raise VersionError(
                f"its tables of {of} rest on the hash {made_with!r:.100}, and this Laconic has "
                f"{name!r}: use the Laconic that wrote it, or train again"
            )
    return config


def read_config(path: Path) -> ModelConfig:
    """Return the config in a file; ModelError with the file if it is none."""
    try:
        return from_file(read_json(path, _LARGEST_CONFIG), ModelConfig.from_json)
    except VersionError as error:
        raise ModelError(error.reason, file=str(path)) from None
    except ValueError as error:
        raise ModelError(f"{path} is no model's config: {error}") from None


def read_weights(path: Path, model: nn.Module, device: str = "cpu") -> None:
    """Give a model on the meta device the weights in a file; ModelError if they do not fit."""
    wanted = model.state_dict()
    try:
        with safe_open(path, framework="pt", device=device) as file:
            names = set(file.keys())
            for name in sorted(names ^ set(wanted)):
                what = "misses" if name in wanted else "has a needless"
                raise ModelError(f"{path} {what} tensor {name[:100]!r}: it is of another model")
            for name, tensor in wanted.items():
                shape = file.get_slice(name).get_shape()
                if list(shape) != list(tensor.shape):
                    raise ModelError(
                        f"{path}: {name} has shape {shape}, but by the config {list(tensor.shape)}"
                    )
            weights = {name: file.get_tensor(name) for name in wanted}
    except SafetensorError as error:
        raise ModelError(f"{path} is damaged: {error}") from None
    for name, weight in weights.items():
        if weight.dtype != wanted[name].dtype:
            raise ModelError(f"{path}: {name} is {weight.dtype}, not {wanted[name].dtype}")
    try:
        model.load_state_dict(weights, assign=True)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_meta:
            raise ModelError(f"{name} is not saved with the model; make it a persistent buffer")
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.flatten_parameters()  # cuDNN wants them in one piece


def parameters_of(model: nn.Module) -> int:
    """Return how many numbers a model learns."""
    return sum(each.numel() for each in model.parameters())


def write(model: nn.Module, config: ModelConfig, folder: Path) -> None:
    """Write a model's files to a folder; until all are whole, those that were there stay."""
    # By their names the weights come last: the others are the same for all models of a run.
    with together(folder) as new:
        (new / _CARD).write_text(str(card(config, parameters_of(model))), "utf-8")
        (new / _CONFIG).write_text(json.dumps(to_file(config), indent=2) + "\n", "utf-8")
        save_tensors(model.state_dict(), new / WEIGHTS)


def save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    """Write tensors to a safetensors file; OSError if that fails, as on a full disk."""
    plain = {name: tensor.detach().contiguous() for name, tensor in tensors.items()}
    path.touch()
    usual = path.stat().st_mode
    try:
        save_file(plain, path, metadata={"format": "pt"})
    except SafetensorError as error:
        raise OSError(f"{path}: {error}") from None
    path.chmod(usual)  # safetensors leaves a file that only its owner can read


def card(config: ModelConfig, parameters: int) -> ModelCard:
    """Return a model card that says what the model is made of and how to use it."""
    rows = "\n".join(f"| `{key}` | {value} |" for key, value in config.to_json().items())
    return ModelCard(
        f"""---
library_name: laconic
tags:
- grammar-compression
- text-classification
---
# A grammar model

It reads documents compressed into grammars, without expanding them: {_told(config)}.
{parameters:,} parameters.

```python
import laconic

model = laconic.load("path/to/the/run")  # the folder that this one is in
model.predict(["some text", "another"])
```

Without its run, `laconic.nn.GrammarModel.from_pretrained` gives the network alone.

| setting | value |
|---|---|
{rows}

Method: *Learning Directly from Grammar Compressed Text* (Sasaki, Akimoto, Maehara, ICML 2020).
"""
    )


def _told(config: ModelConfig) -> str:
    read = (
        f"a composer\n(`{config.composer}`) computes a vector for every rule, a sequence model\n"
        f"(`{config.sequence_model}`) reads the compressed sequence"
    )
    if config.in_place is not None:
        read += f"\nand the n-grams of up to {config.local_ngrams} letters that end in each symbol"
    phrases = f" and of\nphrases of up to {config.phrases} symbols" if config.phrases else ""
    counted = f"a linear\nmodel scores the n-grams of up to {config.ngrams} letters{phrases}"
    return {
        "sequence": read,
        "ngram": counted,
        "both": f"{read};\n{counted}, and the two are added",
    }[config.model]
