"""Labels as they come from files and arrays: checked, and in Python's own types."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.errors import InputError

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
        if value is None or (isinstance(value, float) and math.isnan(value)):
            raise LabelError("there is no label; give it one, or leave it out", document=row)
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
    """
    places = {each: place for place, each in enumerate(classes)}
    spelled = {_spelled(each): place for each, place in places.items()}

    def find(value: Class, document: int) -> int:
        if value in places:
            return places[value]
        if _spelled(value) in spelled:
            return spelled[_spelled(value)]
        more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
        known = ", ".join(repr(each) for each in classes[:_SHOWN]) + more
        reason = f"it is of class {value!r:.100}, unseen in training; known are {known}"
        raise LabelError(reason, document=document)

    return find


def _spelled(value: Class) -> str:
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
        raise LabelError(f"the label is {value!r:.100}, but should be a number", document=row)
    return number
