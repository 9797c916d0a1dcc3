"""Weights of counted n-grams: logarithms, inverse document frequencies, rows of one length."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from laconic.ngrams import Counts
from laconic.threads import processors

_PIECE = 1 << 16  # entries weighed at a time: they stay in the cache


def weights(
    counts: Counts,
    dtype: np.dtype[Any],
    *,
    binary: bool = False,
    sublinear: bool = False,
    idf: npt.NDArray[Any] | None = None,
    norm: Literal["l1", "l2"] | None = None,
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Return the weights of counts, `dtype` [nnz], as scikit-learn's TfidfTransformer makes them.

    Counts are 1 with `binary`, 1 + log(count) with `sublinear`; times `idf` [columns]; rows are
    divided by their `norm`, unless that is 0. The result takes the place of counts.data if it can,
    for there may be hundreds of millions. O(nnz) time, on several threads.
    """
    given = counts.data
    fits = given.flags.writeable and given.dtype.itemsize == dtype.itemsize
    data: npt.NDArray[Any] = given.view(dtype) if fits else np.empty(len(given), dtype)

    def weigh(rows: tuple[int, int]) -> None:
        ends = counts.indptr[rows[0] : rows[1] + 1]
        some = slice(int(ends[0]), int(ends[-1]))
        values = np.ones(some.stop - some.start, dtype) if binary else given[some].astype(dtype)
        if sublinear:
            np.log(values, values)
            values += 1.0
        if idf is not None:
            values *= idf[counts.indices[some]]
        if norm is not None:
            _normalize(values, ends, norm)
        data[some] = values

    pieces = _pieces(counts.indptr)
    if len(pieces) <= 1 or threads == 1:
        for piece in pieces:
            weigh(piece)
    else:
        with ThreadPoolExecutor(threads or processors()) as pool:
            list(pool.map(weigh, pieces))
    return data


def _pieces(indptr: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return the first and last row of pieces of about as many entries."""
    wanted = np.arange(0, int(indptr[-1]) + _PIECE, _PIECE)
    rows = np.unique([0, *np.searchsorted(indptr, wanted, side="left"), len(indptr) - 1])
    return [(int(a), int(b)) for a, b in pairwise(rows)]


def _normalize(
    values: npt.NDArray[Any], ends: npt.NDArray[np.int64], norm: Literal["l1", "l2"]
) -> None:
    lengths = np.diff(ends)
    lengths = lengths[lengths > 0]  # reduceat would give an empty row the entry after it
    if not len(lengths):
        return
    starts = np.cumsum(lengths) - lengths
    size = np.abs(values) if norm == "l1" else np.square(values, dtype=np.float64)
    norms = np.add.reduceat(size, starts, dtype=np.float64)
    norms = norms if norm == "l1" else np.sqrt(norms)
    norms[norms == 0] = 1
    values /= np.repeat(norms, lengths).astype(values.dtype, copy=False)
