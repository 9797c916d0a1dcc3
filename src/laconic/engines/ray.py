"""The engine of a Ray cluster: one remote call for each of some tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from laconic.errors import needs

Item = TypeVar("Item")
Done = TypeVar("Done")


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

    def each(self, work: Callable[[Item], Done], items: Sequence[Item]) -> Iterator[Done]:
        """Yield what `work` gives for each item, as calls end; they begin in order."""
        remote, waiting = self._ray.remote(work), []
        for item in items:
            waiting.append(remote.remote(item))
            if len(waiting) >= self.workers:
                yield self._next(waiting)
        while waiting:
            yield self._next(waiting)

    def _next(self, waiting: list[Any]) -> Any:
        ready, waiting[:] = self._ray.wait(waiting)
        return self._ray.get(ready[0])
