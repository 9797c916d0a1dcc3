"""A whole training step on a GPU: graphs for forward and backward, kernels for the optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from laconic.batching import Batch
from laconic.errors import InputError
from laconic.nn.gradients import Gradients
from laconic.nn.graphs import GraphMemory, captured_training
from laconic.nn.kernels.optimizer import FusedAdam, obstacle_to_adam
from laconic.nn.model import GrammarModel
from laconic.tasks import TASKS


class CapturedStep:
    """A function of some batches, which together are one: it makes a step, and returns its loss.

    That is the mean loss of all their documents. `losses` is a function of a batch that returns
    those of its documents, float [B]; by default the losses of the model's task. With `clip`,
    gradients that are longer together are made so long. `autocast` computes in that type where
    PyTorch thinks it safe. The optimizer's rate may change from step to step; unless it is Adam or
    AdamW, or `model.kernels` is False, torch applies gradients. Graphs may share their `memory`
    with others.

    >>> step = CapturedStep(model, optimizer)                   # doctest: +SKIP
    >>> for batch in loader:                                    # doctest: +SKIP
    ...     loss = step([batch.to("cuda", non_blocking=True)])
    """

    def __init__(
        self,
        model: GrammarModel,
        optimizer: Optimizer,
        losses: Callable[[Batch], Tensor] | None = None,
        clip: float | None = None,
        autocast: torch.dtype | None = None,
        memory: GraphMemory | None = None,
    ) -> None:
        self._model, self._losses = model, losses
        self._optimizer, self._clip = optimizer, clip
        self._gradients = kept = Gradients(model.parameters(), model.kernels)
        # Of each document in the mean: graphs read it when they run.
        self._share = torch.ones((), device=next(model.parameters()).device)
        self._run = captured_training(model, autocast, self._part_of_mean, kept, memory)
        self._apply: FusedAdam | None = None
        if kept.chunks is not None and not obstacle_to_adam(optimizer, kept.parameters):
            self._apply = FusedAdam(optimizer, kept.parameters, kept.chunks, kept.array, clip)

    def __call__(self, group: Sequence[Batch]) -> Tensor:
        """Make a step; nothing waits for the device."""
        loss = self.find(group)
        self.apply()
        return loss

    def find(self, group: Sequence[Batch]) -> Tensor:
        """Find the gradients of a step, and return its loss; weights stay as they are."""
        self._share.fill_(1 / sum(map(len, group)))
        self._gradients.clear()
        first, *others = [self._run(batch) for batch in group]
        return sum(others, first)

    def apply(self) -> None:
        """Apply what was found last."""
        if self._apply is not None:
            self._apply()
            self._gradients.clean = True
        else:
            self._gradients.attach()
            if self._clip:
                nn.utils.clip_grad_norm_(self._gradients.parameters, self._clip)
            self._optimizer.step()
            self._gradients.detach()  # Else what others find would be added to them.

    def reserve(self, batch: Batch) -> None:
        """Capture about the largest batch there will be, whose memory then serves all others.

        The optimizer's own comes first, so that what there is beside it is known.
        """
        if self._apply is not None:
            self._apply.prepare()
        self._run.reserve(batch)

    def clear(self) -> None:
        """Let go of the graphs, and of their memory, with all who share it."""
        self._run.clear()

    def __len__(self) -> int:
        """The number of graphs captured so far."""
        return len(self._run)

    def _part_of_mean(self, batch: Batch) -> Tensor:
        if self._losses is not None:
            return self._losses(batch).sum() * self._share
        if batch.labels is None:
            raise InputError("training needs batches with labels")
        task = TASKS[self._model.config.task]
        return task.losses(self._model(batch), batch.labels).sum() * self._share
