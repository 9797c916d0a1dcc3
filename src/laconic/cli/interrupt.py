"""What Ctrl-C, SIGTERM and a full disk do to work, also to such as can go on later."""

from __future__ import annotations

import errno
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from laconic.errors import StoreError

_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))
_signals: list[int] = []


def watch() -> None:
    """Let SIGTERM do what Ctrl-C does, and remember both: libraries may make other errors of it."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def stopped() -> int | None:
    """Return the signal that stopped us, if one did."""
    return _signals[0] if _signals else None


def full_disk(error: BaseException) -> bool:
    """Return whether an error says that there is no room for a file."""
    return isinstance(error, OSError) and error.errno in _FULL


@contextmanager
def resumable(kept: Path, begun: str = "") -> Iterator[None]:
    """Say how to go on when a signal, a full disk or a store stops the work, if any is `kept`.

    It is if the folder is there, with the file in it that says that the work was `begun`.
    """
    try:
        yield
    except BaseException as error:
        fails = full_disk(error) or isinstance(error, StoreError)
        stops = fails or stopped() or isinstance(error, KeyboardInterrupt)
        if stops and (kept / begun).exists():
            print(f"laconic: {kept} keeps what is done: go on with --resume", file=sys.stderr)
        raise


def _stop(number: int, _: FrameType | None) -> None:
    _signals.append(number)
    raise KeyboardInterrupt
