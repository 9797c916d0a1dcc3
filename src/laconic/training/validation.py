"""How good a model is on documents: the forward pass that settings want, and its figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from accelerate import Accelerator

from laconic.batching import GrammarDataset
from laconic.nn import GrammarModel
from laconic.nn.forward import ForwardPass
from laconic.nn.graphs import GraphMemory
from laconic.nn.piece_size import PieceSize
from laconic.tasks import Task
from laconic.training.accelerator import autocast_type
from laconic.training.holdout import targets_of
from laconic.training.progress import TrainingError
from laconic.training.settings import TrainingConfig


def forward_pass(
    model: GrammarModel,
    config: TrainingConfig,
    processes: int = 1,
    memory: GraphMemory | None = None,
    size: PieceSize | None = None,
) -> ForwardPass:
    """Return the pass through a model in batches as settings want them, and pieces of that size.

    Graphs share `memory`.
    """
    how: dict[str, Any] = {"autocast": autocast_type(config), "memory": memory, "size": size}
    graphs = config.graphs and processes == 1
    return ForwardPass(model, config.batch_size, config.budget, graphs=graphs, **how)


def validate(
    forward: ForwardPass,
    dataset: GrammarDataset,
    task: Task,
    epoch: int,
    accelerator: Accelerator | None = None,
) -> dict[str, Any]:
    """Return the figures of documents after an epoch; TrainingError if outputs are no numbers."""
    outputs = forward.outputs(dataset, accelerator)
    if not np.isfinite(outputs).all():
        raise TrainingError.of_loss(float("nan"), epoch)
    return task.evaluate(outputs, targets_of(dataset))
