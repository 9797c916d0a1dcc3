"""One step's gradients: of the mean loss over the documents of some batches, in all processes."""

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
from laconic.nn.graphs import captured_training
from laconic.training.accelerator import autocast_type
from laconic.training.losses import Losses, losses_of_views
from laconic.training.settings import TrainingConfig

Gradients: TypeAlias = Callable[[list[Batch]], tuple[Tensor, Tensor]]
"""Some batches to the sum of their losses and the number of their documents, over processes."""


def gradients_of(
    model: GrammarModel,
    losses: Losses,
    config: TrainingConfig,
    accelerator: Accelerator,
    weights: npt.NDArray[np.float32] | None,
    largest: Callable[[], Batch],
) -> Gradients:
    """Return a function that sets the model's gradients.

    `weights` (float32 [N]) are those of the documents by row. `largest` makes the batch of an epoch
    that needs most memory, which CUDA graphs reserve.
    """
    cuda, alone = accelerator.device.type == "cuda", accelerator.num_processes == 1
    simple = weights is None and config.accumulate == 1 and not config.compile
    if config.graphs and cuda and alone and simple:
        return _captured(model, losses, config, largest)
    return _plain(model, losses, config, accelerator, weights)


def _plain(
    model: GrammarModel,
    losses: Losses,
    config: TrainingConfig,
    accelerator: Accelerator,
    weights: npt.NDArray[np.float32] | None,
) -> Gradients:
    device = accelerator.device
    by_row = None if weights is None else torch.from_numpy(weights).to(device)
    parameters = [each for each in model.parameters() if each.requires_grad]

    def gradients(group: list[Batch]) -> tuple[Tensor, Tensor]:
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
        return tally[0], tally[1]

    return gradients


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
    model: GrammarModel, losses: Losses, config: TrainingConfig, largest: Callable[[], Batch]
) -> Gradients:
    def mean_loss(batch: Batch) -> Tensor:
        assert batch.labels is not None
        return losses_of_views(losses, model.views(batch), batch.labels, config.view_loss).mean()

    step = captured_training(model, autocast_type(config), mean_loss)

    def gradients(group: list[Batch]) -> tuple[Tensor, Tensor]:
        (batch,) = group
        if not len(step):
            step.reserve(largest().to("cuda"))
        mean = step(batch.to("cuda", non_blocking=True))
        return mean * len(batch), torch.full_like(mean, len(batch))

    return gradients
