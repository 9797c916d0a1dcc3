"""What Ctrl-C does to work that can go on later."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType


@contextmanager
def resumable(kept: Path) -> Iterator[None]:
    """Say how to go on when Ctrl-C stops the work, if `kept` holds any of it.

    Libraries that were called at that moment may make another error of it.
    """
    pressed = False

    def press(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, press)
    try:
        yield
    except BaseException as error:
        if not pressed and not isinstance(error, KeyboardInterrupt):
            raise
        if kept.exists():
            print(f"laconic: {kept} keeps what is done: go on with --resume", file=sys.stderr)
        raise KeyboardInterrupt from error
    finally:
        signal.signal(signal.SIGINT, before)
