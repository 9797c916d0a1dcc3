"""Models that read grammars: composers, the level loop, sequence models, pooling, GrammarModel."""

from laconic.errors import needs

with needs("a model", "train"):
    import huggingface_hub  # noqa: F401
    import safetensors  # noqa: F401
    import torch  # noqa: F401

from laconic.nn.composers import COMPOSERS, Composer
from laconic.nn.config import ModelConfig, ModelError
from laconic.nn.levels import compose_levels
from laconic.nn.model import GrammarModel

__all__ = ["COMPOSERS", "Composer", "GrammarModel", "ModelConfig", "ModelError", "compose_levels"]
