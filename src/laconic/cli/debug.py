"""What --debug does."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["traced"]


@contextmanager
def traced(debug: bool) -> Iterator[None]:
    """Print where an error came from, before it is told in one line."""
    try:
        yield
    except Exception:
        if debug:
            traceback.print_exc()
        raise
