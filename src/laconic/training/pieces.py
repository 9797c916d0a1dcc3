"""Pieces of a training's batches: how large they may be on its device, and what is told of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from laconic.batching import GrammarDataset, LengthSampler, cut
from laconic.nn import GrammarModel
from laconic.nn.piece_size import PieceSize
from laconic.training.losses import Losses, losses_of_views
from laconic.training.settings import TrainingConfig


def measure(
    size: PieceSize,
    model: GrammarModel,
    losses: Losses,
    optimizer: torch.optim.Optimizer,
    config: TrainingConfig,
    accelerator: Accelerator,
    training: GrammarDataset,
    sampler: LengthSampler,
) -> None:
    """Let a size be what forward and backward of the largest batch find room for, on a GPU."""
    device = accelerator.device
    weights = sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)
    # Two moments of each, unless a checkpoint gave them; and what processes send, and get back.
    kept = weights * (2 * (not optimizer.state) + 2 * (accelerator.num_processes > 1))

    def take(rows: list[int]) -> None:
        model.zero_grad()  # nothing is to be added to what a step has for gradients
        try:
            batch = training.batch(rows, (config.seed, sampler.epoch)).to(device)
            assert batch.labels is not None
            with accelerator.autocast():
                views = model.views(batch)
            each = losses_of_views(losses, views, batch.labels, config.view_loss)
            accelerator.backward(each.sum())
        finally:
            model.zero_grad()

    model.train()
    with torch.random.fork_rng(devices=[device]):
        size.measure(take, sampler.largest(), training, device, kept)


def largest_piece(sampler: LengthSampler, limit: int | None) -> list[int]:
    """Return the piece of an epoch that has most symbols, padding included."""
    largest, most = np.zeros(0, np.int64), 0
    for rows in map(np.array, sampler):
        for part in cut(sampler.lengths[rows], limit):
            symbols = len(part) * max(1, int(sampler.lengths[rows[part]].max()))
            if symbols > most:
                largest, most = rows[part], symbols
    return largest.tolist()


def piece_figures(size: PieceSize, pieces: int, batches: int) -> dict[str, Any]:
    """Return what a line of metrics.jsonl says of pieces."""
    return {
        "piece_symbols": size.limit,
        "pieces_per_batch": pieces / batches if batches else None,
        "out_of_memory": size.lowered,
    }
