"""Which documents go together into one batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.utils.data import Sampler

from laconic.arrays import Int64s
from laconic.errors import InputError
from laconic.show import how_many

Numbers: TypeAlias = npt.ArrayLike | Tensor


class RowGroups(NamedTuple):
    """How documents lie on disk, and how much of that is held in memory at a time."""

    starts: Int64s
    """int64 [G + 1]: documents starts[g]..starts[g + 1]-1 are in row group g."""
    sizes: Int64s
    """int64 [G]: the bytes of each."""
    buffer: int
    """Bytes that are held at a time."""

    def rows(self, numbers: list[int]) -> Int64s:
        """Return the documents of some row groups, ascending."""
        ranges = [np.arange(self.starts[n], self.starts[n + 1]) for n in sorted(numbers)]
        return np.concatenate(ranges)


class LengthSampler(Sampler[list[int]]):
    """Yields the rows of one batch after another, documents of similar length together.

    `lengths` (int [N]) are the symbols of each document. The documents are sorted by length and cut
    into batches: evenly into the fewest of at most `batch_size`, so that sizes differ by one at
    most; or, with `budget`, each as large as it can be with documents times the longest (what
    padding leaves to compute) at most `budget` and at most `batch_size` documents. A document
    longer than the budget is a batch alone.

    With `shuffle`, keys lengths * u, u uniform in [1, 1 + jitter], are sorted instead, ties at
    random, and the batches come in random order. Cuts are made as if the p-th shortest document
    had (1 + jitter) times its length, so that every epoch has as many batches and the budget holds.
    Proof: each key is at most (1 + jitter) times its length, so the p-th smallest key is at most
    (1 + jitter) times the p-th smallest length; and a document's length is at most its key.

    An epoch is made from `seed` and its number alone, on any machine. `documents` takes that many
    at random, without repeats, for each epoch, and cuts anew.

    Of `processes`, each with a sampler of its own `rank` and `batch_size` and `budget` for itself,
    all have the same number of batches, none is empty, and together they take each document once.
    If N is no multiple of `processes`, one of them must take two documents at once, even if
    batch_size is 1, or if no two are within the budget; then they are of the shortest.

    With `row_groups`, which are more than their buffer holds, these come in random order, too: as
    many as it holds make the first batches, as if there were no others, then the next ones, and so
    on. `documents` are then those of the first row groups, and epochs differ by a few batches.
    In which order documents come does not depend on `processes`, if batches are as large in sum.

    Iterating again gives the same batches until set_epoch is called. O(N log N) per epoch. Raises
    ValueError for arguments outside their range.

    >>> sampler = LengthSampler([5, 1, 9, 1, 5, 8], batch_size=2, shuffle=False)
    >>> list(sampler), len(sampler)
    ([[1, 3], [0, 4], [5, 2]], 3)
    >>> list(LengthSampler([5, 1, 9, 1, 5, 8], budget=15, shuffle=False))
    [[1, 3, 0], [4], [5], [2]]
    """

    def __init__(
        self,
        lengths: Numbers,
        batch_size: int = 126,
        *,
        budget: int | None = None,
        shuffle: bool = True,
        jitter: float = 0.1,
        seed: int = 0,
        rank: int = 0,
        processes: int = 1,
        documents: int | None = None,
        row_groups: RowGroups | None = None,
    ) -> None:
        self.lengths = _checked(lengths)
        total = len(self.lengths)
        if batch_size < 1:
            raise InputError(f"batch_size must be at least 1, not {batch_size}")
        if budget is not None and budget < 1:
            raise InputError(f"budget must be at least 1 symbol, not {budget}")
        if not 0 <= jitter <= 1:
            raise InputError(f"jitter must be from 0 to 1, not {jitter}")
        if processes < 1:
            raise InputError(f"processes must be at least 1, not {processes}")
        if not 0 <= rank < processes:
            raise InputError(f"rank must be from 0 to {processes - 1}, not {rank}")
        if documents is not None and not 1 <= documents <= total:
            raise InputError(f"documents must be from 1 to the {total} there are, not {documents}")
        taken = total if documents is None else documents
        if 0 < taken < processes:
            raise InputError(f"{how_many(taken, 'document')} for {processes} processes; use fewer")
        self.batch_size, self.budget = batch_size, budget
        self.shuffle, self.jitter, self.seed = shuffle, jitter, seed
        self.rank, self.processes, self.documents = rank, processes, documents
        self.row_groups = row_groups
        self.set_epoch(0)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Make the next iterations epoch `epoch`, without its first `start` batches.

        The training loop tells where it resumes, because only it knows what it has trained on:
        workers ask the sampler for batches ahead of that. ValueError for more than there are.
        """
        rng = np.random.default_rng([self.seed, epoch])
        orders: list[Int64s] = []
        batches: list[Int64s] = []
        taken = 0
        for rows in self._buffers(rng):
            left = None if self.documents is None else self.documents - taken
            if left is not None and left < self.processes:
                break  # some process would have none
            order, ranges = self._batched(rows, left, rng)
            orders.append(order)
            batches.append(ranges + taken)
            taken += len(order)
        ranges = np.concatenate(batches)
        if not 0 <= start <= len(ranges):
            raise InputError(f"start must be from 0 to the {len(ranges)} batches, not {start}")
        self._order, self._ranges = np.concatenate(orders), ranges
        self.epoch, self.start = epoch, start

    def _buffers(self, rng: np.random.Generator) -> Iterator[Int64s]:
        """Yield the rows of documents that are in memory together, ascending."""
        groups = self.row_groups
        if groups is None or groups.sizes.sum() <= groups.buffer:
            yield np.arange(len(self.lengths))
            return
        sizes, counts = groups.sizes.tolist(), np.diff(groups.starts).tolist()
        order = rng.permutation(len(sizes)) if self.shuffle else np.arange(len(sizes))
        held: list[int] = []
        size, here, rest = 0, 0, len(self.lengths)
        for number in order.tolist():
            full = size + sizes[number] > groups.buffer
            # No process may be without a document, here or in what remains.
            if full and here >= self.processes and rest - here >= self.processes:
                yield groups.rows(held)
                held, size, here, rest = [], 0, 0, rest - here
            held.append(number)
            size, here = size + sizes[number], here + counts[number]
        yield groups.rows(held)

    def _batched(
        self, rows: Int64s, documents: int | None, rng: np.random.Generator
    ) -> tuple[Int64s, Int64s]:
        """Return rows in the order of batches of similar length, and where each begins and ends."""
        order = rows[rng.permutation(len(rows))[:documents]]
        if not self.shuffle:
            order.sort()
        lengths, jitter = self.lengths[order], self.jitter if self.shuffle else 0.0
        # Not uniform(1, 1 + jitter): like this, rounding makes no key larger than its cap.
        keys = lengths * (1 + jitter * rng.random(len(order)))
        caps = np.sort(lengths * (1 + jitter))
        if self.budget is None:
            cuts = self._even_cuts(len(order))
        else:
            cuts = self._greedy_cuts(caps, self.budget)
        ranges = np.stack([cuts[:-1], cuts[1:]], axis=1)
        ordered = order[np.argsort(keys, kind="stable")]
        return ordered, rng.permutation(ranges) if self.shuffle else ranges

    def __len__(self) -> int:
        """The number of batches of the whole epoch, for this process."""
        return len(self._ranges)

    def __iter__(self) -> Iterator[list[int]]:
        order = self._order  # set_epoch does not change an iteration that goes on
        for begin, end in self._ranges[self.start :].tolist():
            yield order[begin:end][self.rank :: self.processes].tolist()

    def largest(self) -> list[int]:
        """Return the batch that has most symbols, padding included."""
        return max(self, key=lambda rows: len(rows) * int(self.lengths[rows].max()))

    def _even_cuts(self, total: int) -> Int64s:
        number = -(-total // (self.batch_size * self.processes))
        # Matters for batch_size=1 only: ⌊total / number⌋ documents must go round all processes.
        number = min(number, total // self.processes)
        return np.arange(number + 1) * total // max(1, number)

    def _greedy_cuts(self, caps: npt.NDArray[np.float64], budget: int) -> Int64s:
        """Cuts by budget: every batch is rows of one document per process, as many as fit.

        What is too few for a row is added to the first one, where documents are shortest.
        """
        rest = len(caps) % self.processes
        ends = np.arange(rest + self.processes, len(caps) + 1, self.processes)
        # An empty document is padded to one symbol.
        longest = np.maximum(1, caps[ends - 1].astype(np.int64)).tolist()
        cuts, documents = [0], 0
        for row, length in enumerate(longest):
            documents += 1 if row or not rest else 2
            if row and (documents > self.batch_size or documents * length > budget):
                cuts.append(int(ends[row - 1]))
                documents = 1
        return np.array([*cuts, len(caps)] if len(caps) else cuts, np.int64)


def _checked(lengths: Numbers) -> Int64s:
    array = np.asarray(lengths)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TypeError("lengths must be integers in one dimension")
    if array.size and array.min() < 0:
        raise InputError("its length is negative", document=int(array.argmin()))
    return array.astype(np.int64)
