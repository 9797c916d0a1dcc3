"""How large pieces of a batch may be: what fits into a device's memory, measured, or found out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
import torch

from laconic.batching import Batch, GrammarDataset, cut
from laconic.nn.memory import (
    available_memory,
    give_back_memory,
    is_out_of_memory,
    peak_of,
    use_expandable_segments,
)

_Result = TypeVar("_Result")
_SHARE = 0.6  # of what is free: graphs are padded by up to a quarter, and batches copied
_PROBE = 0.25  # of what is free may be taken to measure
_PROBES = 3


class PieceSize:
    """The most symbols of a piece, documents times longest: `limit`, None while it is any.

    Which documents make a batch never depends on memory, only into how many pieces it is cut. On a
    GPU `measure` says what fits; `run` lowers the limit where it did not.
    """

    def __init__(self) -> None:
        self.limit: int | None = None
        self.lowered = 0
        self.measured = False
        self.before_retry: list[Callable[[], None]] = []
        """Called before what failed is tried again: to let go of memory that can be made anew."""

    def measure(
        self,
        take: Callable[[list[int]], object],
        rows: Sequence[int],
        dataset: GrammarDataset,
        device: torch.device,
        kept: int = 0,
    ) -> None:
        """Set the limit by what parts of a batch, the largest there will be, take on a GPU.

        `take` lets some documents of the dataset go through the model. Bytes that will be needed
        beside them are `kept`. First the longest document is taken alone, and if it is not sure by
        that that all fit, some of the longest together, which tells what every batch takes from
        what every document of that length does.
        """
        self.measured = True
        use_expandable_segments()
        by_length = np.array(rows)[np.argsort(-dataset.lengths_of(rows), kind="stable")].tolist()
        if not by_length:
            return
        longest = max(1, int(dataset.lengths_of(by_length[:1])[0]))
        free = max(0, available_memory(device) - kept)
        try:
            take(by_length[:1])  # libraries take memory of their own when they are first used
            alone = each = float(max(1, peak_of(lambda: take(by_length[:1]), device)))
            fixed, taken = 0.0, 1
            for _ in range(_PROBES):
                self.limit = max(1, int((_SHARE * free - fixed) / each * longest))
                few = min(2, self.limit // longest)
                some = min(len(by_length), max(few, int((_PROBE * free - fixed) / each)))
                if self.limit >= len(by_length) * longest or some <= taken:
                    break
                together, taken = peak_of(partial(take, by_length[:some]), device), some
                each = max(1.0, (together - alone) / (some - 1))
                fixed = max(0.0, alone - each)
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            self.limit = longest if self.limit is None else max(1, self.limit // 2)
        give_back_memory()

    def run(
        self,
        function: Callable[[list[Batch]], _Result],
        pieces: list[Batch],
        dataset: GrammarDataset,
        seed: tuple[int, ...] | None = None,
    ) -> _Result:
        """Return what a function of pieces returns, with smaller ones as often as memory is short.

        They are made again from the dataset and its seed. Torch's error is raised if even single
        documents do not fit.
        """
        alone = False
        if self.lowered:  # they may have been made before that
            pieces = self._again(pieces, dataset, seed)
        while True:
            try:
                return function(pieces)
            except RuntimeError as error:
                if alone or not is_out_of_memory(error):
                    raise
            # Not above: there the traceback holds what was computed.
            alone = all(len(piece) == 1 for piece in pieces)
            for let_go in self.before_retry:
                let_go()
            give_back_memory()
            if not alone:
                self._lower(max(piece.symbols.numel() for piece in pieces))
                pieces = self._again(pieces, dataset, seed)

    def _lower(self, symbols: int) -> None:
        self.limit = max(1, (symbols if self.limit is None else min(symbols, self.limit)) // 2)
        if not self.lowered:
            warnings.warn(
                "out of memory: batches go through the model in smaller pieces from now on, which "
                "changes their speed and not what is learned",
                UserWarning,
                stacklevel=3,
            )
        self.lowered += 1

    def _again(
        self, pieces: list[Batch], dataset: GrammarDataset, seed: tuple[int, ...] | None
    ) -> list[Batch]:
        """Return pieces that are within the limit: those that are not are cut and made again."""
        found: list[Batch] = []
        for piece in pieces:
            assert piece.rows is not None
            rows = piece.rows.numpy()
            parts = cut(dataset.lengths_of(rows), self.limit)
            small = len(parts) == 1
            found += [piece] if small else [dataset.batch(rows[each], seed) for each in parts]
        return found
