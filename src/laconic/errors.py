"""Errors that somebody can mend: what is wrong, where, and the cure; all others are bugs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

# What is no character of a page or would command a terminal, as a picture of itself.
_CONTROLS = {code: 0x2400 + code for code in range(32) if chr(code) not in "\n\t"}
_CONTROLS |= dict.fromkeys([*range(0x7F, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)
# What turns the direction of the text around it: a line could say something else than it holds.
_CONTROLS |= dict.fromkeys([*range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)


def visible(text: object) -> str:
    r"""Return text without characters that a page or a terminal would act on.

    >>> visible("a\x1b[31m\n")
    'a␛[31m\n'
    >>> visible("gpj.\u202egood")
    'gpj.\ufffdgood'
    """
    return str(text).translate(_CONTROLS)


class LaconicError(Exception):
    """What Laconic raises on purpose; `reason` is the message without the place.

    The place is data, each part None where it does not apply: `file`; `row`, of a file, from 1, as
    editors count; `document`, from 0, as Python counts; `position` in it, in terminals.

    >>> print(InputError("it is empty", file="a.csv", row=3))
    a.csv, row 3: it is empty
    """

    def __init__(
        self,
        reason: str = "",
        *,
        file: str | None = None,
        row: int | None = None,
        document: int | None = None,
        position: int | None = None,
    ) -> None:
        self.reason, self.file, self.row = reason, file, row
        self.document, self.position = document, position
        numbers = {"row": row, "document": document, "position": position}
        places = [f"{word} {number}" for word, number in numbers.items() if number is not None]
        where = ", ".join([*([file] if file is not None else []), *places])
        super().__init__(f"{where}: {reason}" if where else reason)

    @property
    def place(self) -> dict[str, Any]:
        """The parts of the place that are known, as this class takes them."""
        parts = {name: getattr(self, name) for name in ("file", "row", "document", "position")}
        return {name: value for name, value in parts.items() if value is not None}

    def at(self, **place: Any) -> Self:
        """Return the same error with parts of its place replaced, or added."""
        return type(self)(self.reason, **self.place | place)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), self.reason, **self.place), ()


NO_LABEL = "there is no label; give it one, or leave it out"
"""What is wrong with a row of a file, a document of a corpus or a value of an array without one."""


class InputError(LaconicError, ValueError):
    """A value, a document or a file that cannot be what it is."""


class AlphabetError(InputError):
    """A document, symbols or JSON that an alphabet cannot read.

    `document` and `position` count from 0, the latter in characters (in bytes for bad UTF-8).
    """


class GrammarError(InputError):
    """Arrays that are no grammar, or documents that cannot become one; the core raises it, too."""


class VersionError(InputError):
    """A file that another version of Laconic can read, but not this one; says which."""


class NoDocumentError(LaconicError, IndexError):
    """A document that there is not."""


class MissingPackageError(LaconicError, ModuleNotFoundError):
    """A package that is needed for this, and not installed; names the extra that brings it."""


class StoreError(LaconicError, OSError):
    """A store of objects, or a disk, that refuses or breaks off what was asked of it."""


class OutOfMemoryError(LaconicError, MemoryError):
    """Too little memory, with what would need less."""


_PACKAGES = {"sklearn": "scikit-learn"}  # installed under another name than imported


@contextmanager
def needs(what: str, extras: str) -> Iterator[None]:
    """Let imports within fail with the cure: the package, or the extras of laconic that bring it.

    >>> with needs("the moon", "space"):
    ...     import a_rocket
    Traceback (most recent call last):
        ...
    laconic.errors.MissingPackageError: the moon needs the package a_rocket: pip install a_rocket, or 'laconic[space]'
    """  # noqa: E501
    try:
        yield
    except MissingPackageError:  # has a cure already
        raise
    except ModuleNotFoundError as error:
        module = str(error.name).partition(".")[0]
        if module == "laconic":  # a part of it is missing, which no extra brings
            raise
        name = _PACKAGES.get(module, module)
        missing = MissingPackageError(
            f"{what} needs the package {name}: pip install {name}, or 'laconic[{extras}]'"
        )
        missing.name = error.name
        raise missing from None
