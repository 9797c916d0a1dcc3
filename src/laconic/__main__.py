"""`laconic`, or `python -m laconic`: the command line, of which modules take a moment to load."""

from __future__ import annotations

import os
import signal
from types import FrameType


def main() -> None:
    """Load the command line and run it; a signal meanwhile finds nothing that is to be undone."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from laconic.cli import main

    main()


def _leave(number: int, _: FrameType | None) -> None:
    os.write(2, b"laconic: stopped\n")
    os._exit(128 + number)


if __name__ == "__main__":
    main()
