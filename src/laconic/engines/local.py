"""The engine of one machine: threads, since the core compresses without the GIL."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pyarrow as pa

from laconic.corpus.worker import CompressionJob, Result, compress_table
from laconic.threads import processors


class LocalEngine:
    """Threads of this process, one per processor by default."""

    def __init__(self, workers: int | None = None) -> None:
        self.workers = workers or processors()

    def run(self, tables: Iterable[pa.Table], job: CompressionJob) -> Iterator[Result]:
        """Yield the result of each table, in order; two tables per thread are under way at most."""
        pool = ThreadPoolExecutor(self.workers, thread_name_prefix="laconic")
        waiting: deque[Future[Result]] = deque()
        try:
            for table in tables:
                waiting.append(pool.submit(compress_table, table, job))
                if len(waiting) >= 2 * self.workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
