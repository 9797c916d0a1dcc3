"""How much of a GPU's memory a row will take: what it took before, or else a careful guess."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

from experiments.paper.corpora import corpora, symbols
from experiments.paper.grid import Row
from experiments.paper.results import Figures, rows_in
from laconic.training.settings import TrainingConfig

__all__ = ["TEST_BATCH", "TEST_SYMBOLS", "Needs", "free_mb"]

TEST_BATCH, TEST_SYMBOLS = 256, 1 << 20  # a test's documents in a batch, and symbols at most
# Measured on an H200 (PyTorch 2.11): of training by kernels of our own, 12 floats for each symbol
# and unit are allocated at the peak, of cuDNN's 33; and some times as much is reserved, since
# graphs keep what they need between steps.
_FLOATS, _RESERVED = {True: 12, False: 33}, {True: 2.2, False: 3.2}
_TEST_FLOATS = 14
_FIXED_MB = 1_500.0  # CUDA itself
_SMALL_MB = 1_000.0  # graphs, weights and the optimizer's
_TABLE_FLOATS = 4  # weights, gradients and two moments
_SHAPES = (
    *("batch_size", "budget", "embedding_size", "width", "layers", "precision", "model"),
    *("sequence_model", "kernels"),
)
_Key: TypeAlias = tuple[object, ...]


class Needs:
    """Megabytes that rows take while they run: `of` a row, and `learn` from one that is done.

    Rows that differ only in their seed take the same. Of results that were written before rows knew
    what they reserve, it is told from what they allocated.
    """

    def __init__(self, results: Path, cache: Path) -> None:
        self._cache = cache
        self._known, self._guessed = dict[_Key, float](), dict[_Key, float]()
        for figures in rows_in(results):
            self.learn(figures)

    def of(self, row: Row) -> float:
        """Return what a row will take, in MB."""
        key = self._key_of(row)
        if key in self._known:
            return self._known[key]
        if key not in self._guessed:
            self._guessed[key] = self._guess(row, row.config("cpu"))
        return self._guessed[key]

    def learn(self, figures: Figures) -> None:
        """Remember what a row took, if it ran on a GPU."""
        if "gpu" not in figures["about"]["versions"] or "peak_memory_mb" not in figures:
            return
        told = _RESERVED[_by_kernels(figures["config"])] * figures["peak_memory_mb"]
        took = _FIXED_MB + figures.get("reserved_memory_mb", told)
        key = _key(figures["dataset"], figures["method"], figures["config"])
        self._known[key] = max(took, self._known.get(key, 0.0))

    def fell_short(self, row: Row) -> None:
        """Remember that a row did not find enough memory beside others."""
        self._known[self._key_of(row)] = 2 * self.of(row)

    def _key_of(self, row: Row) -> _Key:
        return _key(row.dataset, row.method.name, row.config("cpu").to_json())

    def _guess(self, row: Row, config: TrainingConfig) -> float:
        source = row.source(self._cache)
        lengths = corpora(*source)[0].lengths
        # Of long documents less remains than of others: this is rather too many.
        longest = int(lengths.max()) * symbols(*source) / int(lengths.sum())

        def in_a_batch(documents: int, budget: int | None) -> float:
            return max(longest, min(documents * longest, budget or float("inf")))

        ours = _by_kernels(config.to_json())
        training = _FLOATS[ours] * _RESERVED[ours] * in_a_batch(config.batch_size, config.budget)
        test = _TEST_FLOATS * in_a_batch(TEST_BATCH, TEST_SYMBOLS)
        units = config.layers * max(config.width, config.embedding_size)
        tables = config.local_buckets * config.local_size if config.local_ngrams else 0
        if config.model != "sequence":
            tables += config.ngram_buckets
        floats = units * max(training, test) + _TABLE_FLOATS * tables
        return _FIXED_MB + _SMALL_MB + 4 * floats / 2**20


def free_mb() -> float:
    """Return the free memory of the GPU, in MB; asked by a process that is gone afterwards.

    This one would keep a context of its own, outside of what the multi-process service shares.
    """
    ask = "import torch; print(torch.cuda.mem_get_info()[0])"
    told = subprocess.run([sys.executable, "-c", ask], stdout=subprocess.PIPE, check=True)
    return int(told.stdout) / 2**20


def _by_kernels(config: dict[str, Any]) -> bool:
    """Whether our own kernels read sequences; results without the setting are older than these."""
    return bool(config.get("kernels")) and config["sequence_model"] in ("lstm", "gru")


def _key(dataset: str, method: str, config: dict[str, Any]) -> _Key:
    return (dataset, method, *(config.get(name) for name in _SHAPES))
