"""Labels as they come from files and arrays: checked, and in Python's own types."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.arrays import is_missing
from laconic.errors import NO_LABEL, InputError

Class: TypeAlias = str | int | bool
_SHOWN = 10
_WHOLE = re.compile(r"^([+-]?\d+)\.0+$")


class LabelError(InputError):
    """Labels that cannot be learned, or that the model does not know."""


def plain(values: Iterable[object]) -> Iterator[object]:
    """Yield labels, NumPy's as Python's; LabelError for one that is missing."""
    for row, value in enumerate(values):
        if isinstance(value, np.ndarray | np.generic):
            value = value.tolist()
        if is_missing(value):
            raise LabelError(NO_LABEL, document=row)
        yield value


def single(values: Iterable[object]) -> list[Class]:
    """Return labels that are one class each."""
    return [_class(value, row) for row, value in enumerate(plain(values))]


def lists(values: Iterable[object]) -> list[list[Class]]:
    """Return labels that are lists of classes."""
    found = []
    for row, value in enumerate(plain(values)):
        if not isinstance(value, list | tuple | set | frozenset):
            kind = type(value).__name__
            raise LabelError(f"the label is a {kind}; several labels are a list", document=row)
        found.append([_class(each, row) for each in value])
    return found


def numbers(values: Iterable[object]) -> npt.NDArray[np.float64]:
    """Return labels that are numbers, or texts of numbers, float64 [N]."""
    return np.array([_number(value, row) for row, value in enumerate(plain(values))], np.float64)


def ordered(found: Iterable[Class]) -> tuple[Class, ...]:
    """Return the different classes: numbers, then texts."""
    return tuple(sorted(set(found), key=lambda each: (isinstance(each, str), each)))


def finder(classes: Sequence[Class]) -> Callable[[Class, int], int]:
    """Return a function of a class and its document: its place; LabelError if it is unknown.

    A CSV has only texts, other files have numbers, and pandas writes 5.0 where a label is missing:
    5, "5" and "5.0" are the same, unless they are different classes.

    >>> find = finder(["4", "5", "5.0"])
    >>> find("5", 0), find(5, 0), find("5.0", 0), find(4, 0), find("4.0", 0)
    (1, 1, 2, 0, 0)
    """
    spellings = [(spell, _places(classes, spell)) for spell in (_itself, str, _whole)]

    def find(value: Class, document: int) -> int:
        for spell, places in spellings:
            if (name := spell(value)) in places:
                return places[name]
        more = f" and {len(classes) - _SHOWN} more" if len(classes) > _SHOWN else ""
        known = ", ".join(repr(each) for each in classes[:_SHOWN]) + more
        reason = f"it is of class {value!r:.100}, unseen in training; known are {known}"
        raise LabelError(reason, document=document)

    return find


def _places(classes: Sequence[Class], spell: Callable[[Class], Class]) -> dict[Class, int]:
    """Return the places of classes by a spelling, but for those that others share."""
    times = Counter(map(spell, classes))
    return {spell(each): place for place, each in enumerate(classes) if times[spell(each)] == 1}


def _itself(value: Class) -> Class:
    return value


def _whole(value: Class) -> str:
    return _WHOLE.sub(r"\1", str(value))


def _class(value: object, row: int) -> Class:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return str(value)  # of the type itself, not of NumPy's
    if isinstance(value, int):
        return value
    kind = type(value).__name__
    raise LabelError(f"a label is of type {kind}; classes are texts or integers", document=row)


def _number(value: object, row: int) -> float:
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        cure = "; a classifier takes texts" if isinstance(value, str) else ""
        reason = f"the label is {value!r:.100}, but should be a number{cure}"
        raise LabelError(reason, document=row)
    return number
