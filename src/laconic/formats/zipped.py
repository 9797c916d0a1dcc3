"""Documents that lie compressed by deflate: handed on as gzip, which no codec has to inflate."""

from __future__ import annotations

import gzip
import struct
import zlib

from laconic.errors import InputError

RAW, ZLIB_OR_GZIP = -zlib.MAX_WBITS, zlib.MAX_WBITS | 32
_HEADER = b"\x1f\x8b\x08" + bytes(6) + b"\xff"  # neither name nor time
_SLICE = b"LS"  # core/zipped.hpp: a part of a document


def as_gzip(deflated: bytes, crc: int, length: int) -> bytes:
    """Return a raw deflate stream as a gzip file, which knows its checksum and length."""
    return b"".join((_HEADER, deflated, struct.pack("<II", crc, length & 0xFFFFFFFF)))


def as_slice(member: bytes, begin: int, end: int) -> bytes:
    """Return bytes [begin, end) of what a gzip file is inflated to, as the core takes them."""
    return b"".join((_SLICE, struct.pack("<QQ", begin, end), member))


def packed(text: bytes) -> bytes:
    """Return a text as gzip, the same bytes whenever it is made."""
    return gzip.compress(text, 6, mtime=0)


def inflated(data: bytes, most: int, bits: int = ZLIB_OR_GZIP) -> bytes:
    """Return what a stream is inflated to; InputError if it is damaged, or has more than `most`."""
    stream = zlib.decompressobj(bits)
    try:
        text = stream.decompress(data, most + 1)
    except zlib.error as error:
        raise InputError(f"the compressed bytes are damaged ({error}); fetch them again") from None
    if len(text) > most:
        raise InputError(
            f"it is inflated to more than {most:,} bytes; allow more megabytes with --max-document,"
            " or use --codec deflate, which does not inflate it"
        )
    if not stream.eof:
        raise InputError("the compressed bytes break off before their end; fetch them again")
    return text
