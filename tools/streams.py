"""Streams that zlib compressed, damaged, and what it makes of them: for fuzz.py."""

from __future__ import annotations

import sys
import zlib
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import strategies


def damaged(random: Random) -> tuple[bytes, bytes | None]:
    """Return a stream of gzip or zlib, and what it is inflated to; None if zlib refuses it."""
    letters, bits = random.choice((1, 2, 256)), random.choice((15, 31))
    text = bytes(letter % letters for letter in strategies.document(random)) * random.randint(1, 9)
    data = bytearray(zlib.compress(text, random.randrange(10), bits))
    for _ in range(random.choice((0, 1, 1, 3))):
        data[random.randrange(len(data))] ^= 1 << random.randrange(8)
    if random.random() < 0.1:
        del data[random.randrange(1, len(data)) :]
    stream = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        inflated = stream.decompress(bytes(data))
    except zlib.error:
        return bytes(data), None
    return bytes(data), inflated if stream.eof and not stream.unused_data else None
