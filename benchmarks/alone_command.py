"""Run a laconic command in this process, and print its time and memory: for corpus.py.

python benchmarks/alone_command.py compress FILE -o OUT
"""

from __future__ import annotations

import json
import resource
import sys
import time


def main() -> None:
    """Print the seconds, CPU seconds (start-up included) and peak memory in bytes."""
    started = time.perf_counter()
    from laconic.cli import app

    app(sys.argv[1:], exit_on_error=False, result_action="return_value")
    usage = resource.getrusage(resource.RUSAGE_SELF)
    figures = {
        "seconds": time.perf_counter() - started,
        "cpu_seconds": usage.ru_utime + usage.ru_stime,
        "peak_memory": 1024 * usage.ru_maxrss,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
