"""The engine of one machine: threads, since the core compresses without the GIL."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from laconic.corpus.worker import CompressionJob, Result, compress_table
from laconic.threads import processors

_MOST = 64 << 20  # bytes of tables that are under way at a time, if they are several


class LocalEngine:
    """Threads of this process, one per processor by default."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or processors()

    def run(self, tables: Iterable[pa.Table], job: CompressionJob) -> Iterator[Result]:
        """Yield the result of each table, in order; two tables per thread are under way at most.

        Fewer, where they are large: what a codec takes is many times as much.
        """
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="laconic")
        waiting: deque[tuple[int, Future[Result]]] = deque()
        try:
            for table in tables:
                size = table.nbytes
                under_way = sum(each for each, _ in waiting)
                while waiting and (len(waiting) >= 2 * self.workers or under_way + size > _MOST):
                    done, result = waiting.popleft()
                    under_way -= done
                    yield result.result()
                waiting.append((size, pool.submit(compress_table, table, job)))
                del table
            while waiting:
                yield waiting.popleft()[1].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
