"""Run a laconic command in this process, and print its time and memory: for corpus.py, readers.py.

    python -m benchmarks.alone_command compress FILE -o OUT

Of `compress` it also tells how long it worked (start-up aside), how long its threads were inside
the codec, added up, and for how long at least one of them was. An error that the command ends with
is told in the same way, with exit status 1.
"""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Print the seconds, CPU seconds (start-up included) and peak memory in bytes."""
    started = time.perf_counter()
    from laconic.cli import app

    figures = watch() if sys.argv[1] == "compress" and "--help" not in sys.argv else {}
    from laconic.errors import LaconicError

    try:
        app(sys.argv[1:], exit_on_error=False, result_action="return_value")
    except (LaconicError, OSError) as error:
        figures["error"] = str(error)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures |= {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_memory": peak_memory(),
    }
    if "spans" in figures:
        spans = sorted(figures.pop("spans"))
        running, until = 0.0, 0.0
        for begin, end in spans:
            running += max(0.0, end - max(begin, until))
            until = max(until, end)
        figures |= {"codec_running": running, "codec_threads": sum(e - b for b, e in spans)}
    print(json.dumps(figures))
    sys.exit("error" in figures)


def peak_memory() -> int:
    """Return the most bytes that this process had in memory."""
    status = Path("/proc/self/status")
    # Elsewhere what is told may be of the process that began this one, if that was larger.
    told = re.search(r"VmHWM:\s+(\d+) kB", status.read_text()) if status.exists() else None
    return 1024 * (int(told[1]) if told else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def watch() -> dict[str, Any]:
    """Note from now on when the codec runs, and when the corpus is built."""
    from laconic.codecs import compress_symbols
    from laconic.corpus import worker
    from laconic.engines import build

    figures: dict[str, Any] = {"spans": []}
    build_corpus = build.build_corpus

    def timed_codec(*arguments: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        result = compress_symbols(*arguments, **options)
        figures["spans"].append((begin, time.perf_counter()))
        return result

    def timed_build(*arguments: Any, **options: Any) -> Any:
        begin = time.perf_counter()
        result = build_corpus(*arguments, **options)
        figures["work"] = time.perf_counter() - begin
        return result

    vars(worker)["compress_symbols"] = timed_codec
    vars(build)["build_corpus"] = timed_build
    return figures


if __name__ == "__main__":
    main()
