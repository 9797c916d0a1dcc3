"""Models that read grammars: composers, the level loop, sequence models, pooling, GrammarModel."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laconic.errors import needs
from laconic.nn.config import ModelConfig, ModelError

if TYPE_CHECKING:
    from laconic.nn.composers import COMPOSERS, Composer
    from laconic.nn.levels import compose_levels
    from laconic.nn.model import GrammarModel

__all__ = ["COMPOSERS", "Composer", "GrammarModel", "ModelConfig", "ModelError", "compose_levels"]

_MODULES = {
    "COMPOSERS": "composers",
    "Composer": "composers",
    "GrammarModel": "model",
    "compose_levels": "levels",
}


def __getattr__(name: str) -> Any:
    # Settings need no torch, which takes longer to import than `laconic train --help` may take.
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with needs("a model", "train"):
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
