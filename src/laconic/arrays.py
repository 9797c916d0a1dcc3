"""Arrays that come from outside: checked, copied and made read-only, with one error per cause."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from laconic.errors import GrammarError, NoDocumentError

Int32s: TypeAlias = npt.NDArray[np.int32]
Int64s: TypeAlias = npt.NDArray[np.int64]
_MISSING = ("nan", "<NA>", "NaT")  # how NumPy's and pandas' missing values spell themselves
_Array = TypeVar("_Array", bound=npt.NDArray[Any])


def frozen(array: _Array) -> _Array:
    """Return the array, no longer writeable: of a view NumPy does not let the flag be set again."""
    array.flags.writeable = False
    return array.view()


def arrow_integers(array: Any) -> npt.NDArray[Any]:
    """Return the integers of an Arrow array without nulls, read-only, not copied.

    Its own to_numpy would import pandas wherever that is installed, which takes longer than most
    of what is done with the integers.
    """
    width = array.type.bit_width // 8
    if len(array) == 0:
        return np.zeros(0, f"i{width}")
    values = np.frombuffer(array.buffers()[1], f"=i{width}")
    return frozen(values[array.offset : array.offset + len(array)])


def row_numbers(rows: npt.ArrayLike, count: int) -> Int64s:
    """Return which of `count` documents are meant, int64 [K], from 0; -1 is the last.

    Raises TypeError for what is no integers in one dimension, IndexError beyond the documents.
    """
    wanted = np.asarray(rows)
    if wanted.ndim != 1 or (wanted.size and wanted.dtype.kind not in "iu"):
        raise TypeError("rows must be integers in one dimension")
    out = (wanted < -count) | (wanted >= count)
    if out.any():
        raise NoDocumentError(f"document {wanted[out.argmax()]} of {count}")
    return wanted.astype(np.int64) % max(1, count)


def by_group(starts: Int64s, rows: Int64s) -> Iterator[tuple[int, Int64s, Int64s]]:
    """Yield the row groups that rows (int64 [K]) are in: number, places in `rows`, rows within.

    >>> found = by_group(np.array([0, 3, 5]), np.array([4, 1, 3]))
    >>> [(number, places.tolist(), within.tolist()) for number, places, within in found]
    [(0, [1], [1]), (1, [0, 2], [1, 0])]
    """
    groups = np.searchsorted(starts, rows, side="right") - 1
    for number in np.unique(groups).tolist():
        here = np.flatnonzero(groups == number)
        yield number, here, rows[here] - starts[number]


def is_integer(value: object) -> bool:
    """Return whether a value is an integer, Python's or NumPy's; True and False are none."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, or what pandas has for them."""
    return value is None or (not isinstance(value, str | bytes | int) and str(value) in _MISSING)


def alphabet_size_of(alphabet_size: object) -> int:
    """Return the size as int; GrammarError unless it is an integer from 1 to 2^31 - 1."""
    if isinstance(alphabet_size, (int, np.integer)) and not isinstance(alphabet_size, bool):
        if 1 <= alphabet_size < 1 << 31:
            return int(alphabet_size)
        raise GrammarError(f"alphabet_size must be from 1 to 2^31 - 1, not {alphabet_size}")
    raise GrammarError(f"alphabet_size must be an integer, not {type(alphabet_size).__name__}")


def _integers(values: npt.ArrayLike, name: str, dtype: type[np.integer[Any]]) -> npt.NDArray[Any]:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, OverflowError):
        raise GrammarError(f"{name} must be an array of integers") from None
    if array.size == 0 and array.dtype == np.float64 and not isinstance(values, np.ndarray):
        array = array.astype(dtype)  # an empty list
    if array.dtype.kind not in "iu":
        raise GrammarError(f"{name} must hold integers, not {array.dtype}")
    info = np.iinfo(dtype)
    if array.dtype != dtype and array.size:
        low, high = int(array.min()), int(array.max())
        if low < info.min or high > info.max:
            raise GrammarError(
                f"{name} holds {low if low < info.min else high}, beyond {dtype.__name__}"
            )
    return np.array(array, dtype=dtype, order="C")


def pairs(values: npt.ArrayLike) -> Int32s:
    """Return rules as int32 [R, 2]."""
    array = _integers(values, "rules", np.int32)
    if array.shape == (0,):
        array = array.reshape(0, 2)
    if array.ndim != 2 or array.shape[1] != 2:
        raise GrammarError(f"rules must be of shape [R, 2], not {list(array.shape)}")
    return frozen(array)


def row(values: npt.ArrayLike, name: str, dtype: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Return one row of integers as `dtype` [n]."""
    array = _integers(values, name, dtype)
    if array.ndim != 1:
        raise GrammarError(f"{name} must have one dimension, not {array.ndim}")
    return frozen(array)


def offsets(values: npt.ArrayLike, name: str, total: int) -> Int64s:
    """Return offsets as int64 [N + 1]; GrammarError unless they rise from 0 to `total`."""
    array = row(values, name, np.int64)
    if len(array) == 0 or array[0] != 0 or array[-1] != total:
        raise GrammarError(f"{name} must go from 0 to {total}")
    falling = array[1:] < array[:-1]
    if falling.any():
        raise GrammarError(f"{name}[{int(falling.argmax()) + 1}] is smaller than the one before it")
    return array


def gathered(values: _Array, offsets: Int64s, rows: Int64s) -> tuple[_Array, Int64s]:
    """Return values[offsets[k]:offsets[k + 1]] for k of `rows`, end to end, and their offsets."""
    begins, sizes = offsets[rows], offsets[rows + 1] - offsets[rows]
    ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    places = np.arange(ends[-1]) + np.repeat(begins - ends[:-1], sizes)
    return values.take(places, axis=0), ends
