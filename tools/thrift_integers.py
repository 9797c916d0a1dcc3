"""Integers in Thrift's compact protocol, which Parquet's footers are in: read, and replaced."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from random import Random

EDGES = (0, 1, -1, 2, 127, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, -(2**63))


@dataclass(frozen=True)
class Span:
    """An integer in the footer or in the header of a page; sizes are those of strings and lists."""

    start: int
    end: int
    value: int
    is_size: bool


def integers_of(data: bytes, start: int) -> tuple[list[Span], int]:
    """Return all integers of the Thrift struct at `start`, and where it ends."""
    spans: list[Span] = []
    at = start

    def number(is_size: bool) -> int:
        nonlocal at
        begin, value = at, 0
        for shift in count(0, 7):
            value |= (data[at] & 0x7F) << shift
            at += 1
            if data[at - 1] < 0x80:
                break
        value = value if is_size else (value >> 1) ^ -(value & 1)
        spans.append(Span(begin, at, value, is_size))
        return value

    def several(kind: int, size: int) -> None:
        for _ in range(size):
            one(kind, in_list=True)

    def one(kind: int, in_list: bool = False) -> None:
        nonlocal at
        match kind:
            case 1 | 2:
                at += in_list
            case 3:
                at += 1
            case 4 | 5 | 6:
                number(is_size=False)
            case 7:
                at += 8
            case 8:
                size = number(is_size=True)  # which moves `at`
                at += size
            case 9 | 10:
                head = data[at]
                at += 1
                several(head & 15, head >> 4 if head >> 4 < 15 else number(is_size=True))
            case 12:
                while head := data[at]:
                    at += 1
                    if head >> 4 == 0:
                        number(is_size=False)
                    one(head & 15)
                at += 1
            case _:
                raise ValueError(f"Parquet does not use Thrift's type {kind}")

    one(12)
    return spans, at


def with_other_integer(random: Random, data: bytes, start: int, keep_size: bool) -> bytes:
    """Return data whose Thrift struct at `start` has another integer somewhere."""
    try:
        spans, _ = integers_of(data, start)
    except (ValueError, IndexError):  # it was damaged before
        return data
    span = random.choice(spans)
    near = (span.value + 1, span.value - 1, 2 * span.value, random.choice(spans).value, len(data))
    value = random.choice((*EDGES, *near, *near))
    written = varint((value if span.is_size else zigzag(value)) % (1 << 64))
    if keep_size:  # the pages behind it stay where they are
        size = span.end - span.start
        written = written[:size].ljust(size, b"\x80")
        written = bytes(byte | 0x80 for byte in written[:-1]) + bytes([written[-1] & 0x7F])
    return data[: span.start] + written + data[span.end :]


def zigzag(value: int) -> int:
    """Return the number that Thrift writes for an integer."""
    return 2 * value if value >= 0 else -2 * value - 1


def varint(value: int) -> bytes:
    """Return a number in groups of seven bits."""
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*written, value])
