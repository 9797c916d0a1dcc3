"""The engine of a Spark session: a partition for each of some tasks."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from laconic.errors import needs

Item = TypeVar("Item")
Done = TypeVar("Done")


class SparkEngine:
    """The active Spark session, or one on this machine with `workers` threads."""

    def __init__(self, workers: int | None = None) -> None:
        with needs("the engine spark", "spark"):
            from pyspark.sql import SparkSession
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        active: Any = SparkSession.getActiveSession()
        if active is None:
            builder = SparkSession.builder.appName("laconic").config("spark.ui.enabled", "false")
            active = builder.master(f"local[{workers or '*'}]").getOrCreate()
        self._session = active
        self.workers = workers or int(active.sparkContext.defaultParallelism)

    def each(self, work: Callable[[Item], Done], items: Sequence[Item]) -> Iterator[Done]:
        """Yield what `work` gives for each item, when all are done; they begin in order."""
        from pyspark import cloudpickle

        # Spark pickles data more plainly than functions: not all that functions may hold.
        packed = [cloudpickle.dumps(item) for item in items]
        spread = self._session.sparkContext.parallelize(packed, len(packed))
        yield from spread.map(lambda each: work(cloudpickle.loads(each))).collect()
