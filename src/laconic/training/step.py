"""A step: gradients of the mean loss over the documents of some batches, clipped and applied."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from laconic.batching import Batch
from laconic.nn import GrammarModel
from laconic.nn.graphs import GraphMemory
from laconic.nn.piece_size import PieceSize
from laconic.nn.steps import CapturedStep
from laconic.training.accelerator import autocast_type
from laconic.training.losses import Losses, losses_of_views
from laconic.training.settings import TrainingConfig

Found: TypeAlias = tuple[Tensor, Tensor | int]
"""The sum of the losses of some batches and the number of their documents, over processes."""


class Step:
    """A step of a training: a function of some batches, which together are one, and of the rate.

    Gradients are those of the mean loss over all their documents, in all processes. `weights`
    (float32 [N]) are those of the documents by row. `largest` makes the piece of an epoch that
    needs most memory, which CUDA graphs reserve; they let go of it when `size` is lowered. A step
    for which memory is too short leaves weights and optimizer as they were. On one GPU, graphs find
    gradients and kernels of our own apply them, where they can; elsewhere torch does. Graphs share
    `memory` with others.
    """

    def __init__(
        self,
        model: GrammarModel,
        optimizer: torch.optim.Optimizer,
        losses: Losses,
        config: TrainingConfig,
        accelerator: Accelerator,
        weights: npt.NDArray[np.float32] | None,
        size: PieceSize,
        largest: Callable[[], Batch],
        memory: GraphMemory | None = None,
    ) -> None:
        self._optimizer = optimizer
        cuda, alone = accelerator.device.type == "cuda", accelerator.num_processes == 1
        simple = weights is None and not config.compile
        if config.graphs and cuda and alone and simple:
            self._step = _captured(model, optimizer, losses, config, size, largest, memory)
        else:
            self._step = _plain(model, optimizer, losses, config, accelerator, weights)

    def __call__(self, group: list[Batch], rate: float) -> Found:
        """Make a step; nothing waits for a GPU."""
        for settings in self._optimizer.param_groups:
            settings["lr"] = rate
        return self._step(group)


def _plain(
    model: GrammarModel,
    optimizer: torch.optim.Optimizer,
    losses: Losses,
    config: TrainingConfig,
    accelerator: Accelerator,
    weights: npt.NDArray[np.float32] | None,
) -> Callable[[list[Batch]], Found]:
    device = accelerator.device
    by_row = None if weights is None else torch.from_numpy(weights).to(device)
    parameters = [each for each in model.parameters() if each.requires_grad]

    def step(group: list[Batch]) -> Found:
        model.zero_grad()
        tally = torch.zeros(2, device=device)
        for batch in group:
            batch = batch.to(device, non_blocking=True)
            assert batch.labels is not None
            with accelerator.autocast():
                views = model.views(batch)
            each = losses_of_views(losses, views, batch.labels, config.view_loss)
            if by_row is not None and batch.rows is not None:
                each = each * by_row[batch.rows]
            loss = each.sum()
            accelerator.backward(loss)
            # Made on the device: a number that is copied there would make us wait for it.
            tally += torch.stack([loss.detach(), torch.full_like(loss, len(batch))])
        if accelerator.num_processes > 1:
            tally = _add_over_processes(accelerator, tally, parameters)
        torch._foreach_mul_([p.grad for p in parameters if p.grad is not None], 1 / tally[1])
        if config.clip:
            accelerator.clip_grad_norm_(model.parameters(), config.clip)
        optimizer.step()
        return tally[0], tally[1]

    return step


def _add_over_processes(
    accelerator: Accelerator, tally: Tensor, parameters: list[nn.Parameter]
) -> Tensor:
    """Replace gradients by their sums over processes, and return the sum of tallies.

    One message for all: most models are small, and a sum, unlike DistributedDataParallel's mean, is
    right also if processes have different numbers of documents.
    """
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    flat = accelerator.reduce(torch.cat([tally, *(each.reshape(-1) for each in grads)]), "sum")
    total, *sums = flat.split([len(tally), *(each.numel() for each in grads)])
    for parameter, of_all in zip(parameters, sums, strict=True):
        parameter.grad = of_all.view(parameter.shape).clone()
    added: Tensor = total.clone()
    return added


def _captured(
    model: GrammarModel,
    optimizer: torch.optim.Optimizer,
    losses: Losses,
    config: TrainingConfig,
    size: PieceSize,
    largest: Callable[[], Batch],
    memory: GraphMemory | None,
) -> Callable[[list[Batch]], Found]:
    def of_documents(batch: Batch) -> Tensor:
        assert batch.labels is not None
        return losses_of_views(losses, model.views(batch), batch.labels, config.view_loss)

    how = config.clip, autocast_type(config), memory
    made = CapturedStep(model, optimizer, of_documents, *how)
    size.before_retry.append(made.clear)

    def step(group: list[Batch]) -> Found:
        if not len(made):
            made.reserve(largest().to("cuda"))
        count = sum(map(len, group))
        return made([batch.to("cuda", non_blocking=True) for batch in group]) * count, count

    return step
