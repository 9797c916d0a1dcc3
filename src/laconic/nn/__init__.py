"""Models that read grammars: composers, the level loop, sequence models, pooling, GrammarModel."""

try:
    import huggingface_hub  # noqa: F401
    import safetensors  # noqa: F401
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    reason = f"models need the package {error.name}: pip install {error.name}, or 'laconic[train]'"
    raise ModuleNotFoundError(reason) from error

from laconic.nn.composers import COMPOSERS, Composer
from laconic.nn.config import ModelConfig, ModelError
from laconic.nn.levels import compose_levels
from laconic.nn.model import GrammarModel

__all__ = ["COMPOSERS", "Composer", "GrammarModel", "ModelConfig", "ModelError", "compose_levels"]
