"""A step: gradients of the mean loss over the documents of some batches, clipped and applied."""

from __future__ import annotations

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
    """A step of a training: gradients of the mean loss over all documents of some batches, applied.

    `weights` (float32 [N]) are those of the documents by row. `find` may be called again, with
    smaller pieces, where memory was too short: it leaves weights and optimizer as they are; `apply`
    is called once, by all processes. On one GPU, graphs find gradients, which first `reserve` what
    the largest piece needs, and kernels of our own apply them, where they can; elsewhere torch
    does. Graphs let go of their memory when `size` is lowered, and share `memory` with others.
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
        memory: GraphMemory | None = None,
    ) -> None:
        self._optimizer = optimizer
        cuda, alone = accelerator.device.type == "cuda", accelerator.num_processes == 1
        simple = weights is None and not config.compile
        self._way: _Plain | _Captured
        if config.graphs and cuda and alone and simple:
            self._way = _Captured(model, optimizer, losses, config, memory)
            size.before_retry.append(self._way.step.clear)
        else:
            self._way = _Plain(model, optimizer, losses, config, accelerator, weights)

    @property
    def reserved(self) -> bool:
        """Whether memory for the largest piece is held, or need not be."""
        return isinstance(self._way, _Plain) or len(self._way.step) > 0

    def reserve(self, pieces: list[Batch]) -> None:
        """Hold memory for the largest of some pieces."""
        if isinstance(self._way, _Captured):
            largest = max(pieces, key=lambda piece: piece.symbols.numel())
            self._way.step.reserve(largest.to("cuda"))

    def find(self, group: list[Batch]) -> Found:
        """Find the gradients of this process; nothing waits for a GPU."""
        return self._way.find(group)

    def apply(self, found: Found, rate: float) -> Found:
        """Apply what was found last, in all processes together; nothing waits for a GPU."""
        for settings in self._optimizer.param_groups:
            settings["lr"] = rate
        return self._way.apply(found)


class _Plain:
    """As torch does it, on any device."""

    def __init__(
        self,
        model: GrammarModel,
        optimizer: torch.optim.Optimizer,
        losses: Losses,
        config: TrainingConfig,
        accelerator: Accelerator,
        weights: npt.NDArray[np.float32] | None,
    ) -> None:
        self._model, self._optimizer, self._losses = model, optimizer, losses
        self._config, self._accelerator = config, accelerator
        device = accelerator.device
        self._by_row = None if weights is None else torch.from_numpy(weights).to(device)
        self._parameters = [each for each in model.parameters() if each.requires_grad]

    def find(self, group: list[Batch]) -> Found:
        self._model.zero_grad()
        tally = torch.zeros(2, device=self._accelerator.device)
        for batch in group:
            batch = batch.to(self._accelerator.device, non_blocking=True)
            assert batch.labels is not None
            with self._accelerator.autocast():
                views = self._model.views(batch)
            each = losses_of_views(self._losses, views, batch.labels, self._config.view_loss)
            if self._by_row is not None and batch.rows is not None:
                each = each * self._by_row[batch.rows]
            loss = each.sum()
            self._accelerator.backward(loss)
            # Made on the device: a number that is copied there would make us wait for it.
            tally += torch.stack([loss.detach(), torch.full_like(loss, len(batch))])
        return tally[0], tally[1]

    def apply(self, found: Found) -> Found:
        tally = torch.stack([torch.as_tensor(each) for each in found])
        if self._accelerator.num_processes > 1:
            tally = _add_over_processes(self._accelerator, tally, self._parameters)
        grads = [p.grad for p in self._parameters if p.grad is not None]
        torch._foreach_mul_(grads, 1 / tally[1])
        if self._config.clip:
            self._accelerator.clip_grad_norm_(self._model.parameters(), self._config.clip)
        self._optimizer.step()
        return tally[0], tally[1]


class _Captured:
    """By graphs and kernels, on one GPU."""

    def __init__(
        self,
        model: GrammarModel,
        optimizer: torch.optim.Optimizer,
        losses: Losses,
        config: TrainingConfig,
        memory: GraphMemory | None,
    ) -> None:
        def of_documents(batch: Batch) -> Tensor:
            assert batch.labels is not None
            return losses_of_views(losses, model.views(batch), batch.labels, config.view_loss)

        how = config.clip, autocast_type(config), memory
        self.step = CapturedStep(model, optimizer, of_documents, *how)

    def find(self, group: list[Batch]) -> Found:
        count = sum(map(len, group))
        return self.step.find(
            [batch.to("cuda", non_blocking=True) for batch in group]
        ) * count, count

    def apply(self, found: Found) -> Found:
        self.step.apply()
        return found


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
