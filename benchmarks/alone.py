"""Compress one file and print speed and peak memory as JSON: a process of its own for compress.py.

    python -m benchmarks.alone repair FILE

Peak memory is what the process grew by from before the file was read, the file itself included.
"""

from __future__ import annotations

import json
import sys
import time
import zlib
from pathlib import Path

import zstandard

import laconic


def memory(field: str) -> int:
    """Return VmRSS (now) or VmHWM (the most so far) of this process, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def main() -> None:
    """Measure the contestant on the file."""
    contestant, path = sys.argv[1], Path(sys.argv[2])
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of the imports
    before = memory("VmRSS")
    data = path.read_bytes()
    started = time.perf_counter()
    figures: dict[str, float] = {}
    if contestant.startswith("zlib"):
        figures["bytes"] = len(zlib.compress(data, 6))
    elif contestant.startswith("zstd"):
        figures["bytes"] = len(zstandard.compress(data, level=3))
    else:
        grammar = laconic.compress(data, laconic.Codec(contestant))
        figures["sequence"], figures["rules"] = len(grammar.sequence), len(grammar.rules)
        figures["bytes"] = int(-(-laconic.Grammars.concatenate([grammar]).packed_bits[0] // 8))
        figures["symbols_per_byte"] = (len(grammar.sequence) + 2 * len(grammar.rules)) / len(data)
    figures["mb_per_s"] = len(data) / (time.perf_counter() - started) / 1e6
    figures["peak_memory_per_byte"] = (memory("VmHWM") - before) / len(data)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
