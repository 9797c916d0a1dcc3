"""The engine of a Ray cluster: one remote call per table."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from laconic.corpus.worker import CompressionJob, Result, compress_table
from laconic.errors import needs


class RayEngine:
    """The cluster that RAY_ADDRESS names, or Ray on this machine; `workers` calls at a time."""

    def __init__(self, workers: int | None = None) -> None:
        with needs("the engine ray", "ray"):
            import ray
        self._ray: Any = ray
        if not self._ray.is_initialized():
            here = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": workers}
            self._ray.init(include_dashboard=False, log_to_driver=False, **here)
        processors = int(self._ray.cluster_resources().get("CPU", 1))
        self.workers = workers or max(1, processors)

    def run(self, tables: Iterable[pa.Table], job: CompressionJob) -> Iterator[Result]:
        """Yield the result of each table, in order; two tables per worker are under way at most."""
        compress = self._ray.remote(compress_table)
        shared = self._ray.put(job)
        waiting: deque[Any] = deque()
        for table in tables:
            waiting.append(compress.remote(table, shared))
            if len(waiting) >= 2 * self.workers:
                yield self._result(waiting.popleft())
        while waiting:
            yield self._result(waiting.popleft())

    def _result(self, reference: Any) -> Result:
        try:
            result: Result = self._ray.get(reference)
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause from None
        return result
