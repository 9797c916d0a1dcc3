"""The learning rate of every step."""

from __future__ import annotations

import math

from laconic.training.settings import TrainingConfig


def learning_rate(config: TrainingConfig, step: int, steps_per_epoch: int) -> float:
    """Return the rate of a step, counted from 0: a pure function, so that nothing must be saved.

    It rises evenly over `warmup_steps`, but at most a tenth of all steps. From there on it is
    constant, falls along half a cosine to 0, or is halved after every `halve_every` epochs.

    >>> config = TrainingConfig(epochs=4, schedule="halving", halve_every=2, warmup_steps=2)
    >>> [learning_rate(config, step, 5) * 1000 for step in (0, 1, 9, 10, 19)]
    [0.5, 1.0, 1.0, 0.5, 0.5]
    """
    total = config.epochs * steps_per_epoch
    warm = min(config.warmup_steps, total // 10)
    if step < warm:
        return config.learning_rate * (step + 1) / warm
    if config.schedule == "constant":
        return config.learning_rate
    if config.schedule == "halving":
        return config.learning_rate * 0.5 ** (step // steps_per_epoch // config.halve_every)
    done = (step - warm) / max(1, total - warm)
    return config.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
