"""Cutting a batch into pieces: which documents go through a model together, if not all can."""

from __future__ import annotations

import numpy as np

from laconic.arrays import Int64s


def cut(lengths: Int64s, limit: int | None) -> list[Int64s]:
    """Return a batch's documents in the fewest pieces of similar length, int64 each, in places.

    `lengths` (int [B]) are the symbols of each document. In every piece, documents times longest is
    at most `limit`, but for a document that is longer, which is a piece alone. Pieces are equally
    large where that is possible. A batch within the limit, or without one, stays as it is.

    The longest document needs a piece, in which no more than limit / longest others can be; the
    next longest lose nothing by being these. So taking as many as fit, again and again, makes the
    fewest pieces. O(B log B).

    >>> [piece.tolist() for piece in cut(np.array([5, 1, 9, 1, 5, 8]), 18)]
    [[2, 5], [0, 4], [1, 3]]
    >>> [piece.tolist() for piece in cut(np.array([1, 1, 20, 1, 1]), 18)]
    [[2], [0, 1, 3, 4]]
    """
    every = np.arange(len(lengths))
    counted = np.maximum(1, lengths)  # an empty document is padded to one symbol
    if limit is None or len(lengths) * counted.max(initial=0) <= limit:
        return [every]
    order = np.argsort(-counted, kind="stable")
    starts = [0]
    while (begin := starts[-1]) < len(order):
        starts.append(begin + max(1, limit // int(counted[order[begin]])))
    pieces = np.split(order, starts[1:-1])
    # Of one size, pieces of many batches have the same shape, and none is too small for a device.
    even = np.array_split(order, len(pieces))
    within = all(len(each) * counted[each[0]] <= limit for each in even)
    return even if within else pieces
