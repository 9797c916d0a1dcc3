"""MurmurHash3, slowly: what hashed columns are held to."""

from __future__ import annotations


def murmur3(data: bytes) -> int:
    """MurmurHash3_x86_32 with seed 0, as a signed number, as its author describes it."""
    mask, value = 0xFFFFFFFF, 0

    def turned(word: int, by: int) -> int:
        return (word << by | word >> (32 - by)) & mask

    whole = len(data) // 4 * 4
    for i in range(0, whole, 4):
        block = int.from_bytes(data[i : i + 4], "little") * 0xCC9E2D51 & mask
        value = turned(value ^ turned(block, 15) * 0x1B873593 & mask, 13) * 5 + 0xE6546B64 & mask
    rest = int.from_bytes(data[whole:], "little") * 0xCC9E2D51 & mask
    value ^= turned(rest, 15) * 0x1B873593 & mask ^ len(data)
    value = (value ^ value >> 16) * 0x85EBCA6B & mask
    value = (value ^ value >> 13) * 0xC2B2AE35 & mask
    value ^= value >> 16
    return value - (1 << 32) if value >> 31 else value
