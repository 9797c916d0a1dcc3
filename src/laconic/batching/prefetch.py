"""Work that threads do a little ahead of who needs it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


def ahead(
    function: Callable[[_Item], _Made], items: Iterable[_Item], workers: int
) -> Iterator[_Made]:
    """Yield the function of each item, in order, made by so many threads a little ahead.

    >>> list(ahead(str.upper, "abc", workers=2))
    ['A', 'B', 'C']
    """
    if workers == 0:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(workers, thread_name_prefix="laconic")
    waiting: deque[Future[_Made]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(function, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
