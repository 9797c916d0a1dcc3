"""Documents as text or bytes, and texts as code points."""

from __future__ import annotations

import functools
import mmap
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from laconic.errors import AlphabetError

BYTES_LIKE = (bytes, bytearray, memoryview, mmap.mmap)
Document: TypeAlias = str | bytes | bytearray | memoryview | mmap.mmap
CODE_POINTS = 0x110000


def as_bytes(document: Document, number: int | None) -> bytes:
    """Return a document as bytes, text as UTF-8; AlphabetError with its number if not so."""
    if isinstance(document, str):
        try:
            return document.encode()
        except UnicodeEncodeError as error:
            reason = f"{document[error.start]!r} is a lone surrogate, which UTF-8 cannot hold; "
            reason += 'replace it, e.g. with text.encode("utf-8", "replace")'
            raise AlphabetError(reason, document=number, position=error.start) from None
    if isinstance(document, BYTES_LIKE):
        return bytes(document)
    which = "a document" if number is None else f"document {number}"
    raise TypeError(f"{which} must be str or bytes, not {type(document).__name__}")


def as_text(document: Document, number: int | None) -> str:
    """Return a document as text, bytes read as UTF-8; AlphabetError with its number if not so."""
    if isinstance(document, str):
        return document
    try:
        return as_bytes(document, number).decode()
    except UnicodeDecodeError as error:
        reason = f"byte {error.object[error.start]:#04x} is not UTF-8 ({error.reason}); pass text, "
        reason += 'e.g. data.decode("latin-1"), or use Alphabet.bytes()'
        raise AlphabetError(reason, document=number, position=error.start) from None


def many(documents: Iterable[Document], caller: str) -> Iterable[Document]:
    """Return the documents; TypeError if they are one document."""
    if isinstance(documents, (str, *BYTES_LIKE)):
        one = type(documents).__name__
        raise TypeError(f"{caller} takes many documents, not one {one}; pass [document]")
    return documents


def joined_ascii(documents: list[Document]) -> str | None:
    """Return the documents one after the other if all of them are str in ASCII."""
    # Most text is ASCII, which is UTF-8 as it stands: encoding it whole takes half the time.
    try:
        joined = "".join(documents)  # type: ignore[arg-type]
    except TypeError:  # not all are str
        return None
    return joined if joined.isascii() else None


def code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text, uint32 [n]; surrogates stay."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")


@functools.cache
def lower_case() -> npt.NDArray[np.uint32]:
    """Return the lower case of every code point, uint32 [0x110000]."""
    # str.lower would break the offsets: it turns U+0130 into two characters, of which we take the
    # first. Unicode has no case beyond its first two planes.
    lower = np.arange(CODE_POINTS, dtype=np.uint32)
    lower[:0x20000] = [ord(chr(code).lower()[0]) for code in range(0x20000)]
    return lower
