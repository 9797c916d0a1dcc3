"""Where compression runs: threads of this process, or the workers of a cluster, Ray or Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal, Protocol, TypeVar, get_args, runtime_checkable

import pyarrow as pa

from laconic.corpus.worker import CompressionJob, Result
from laconic.errors import InputError

__all__ = ["Cluster", "Engine", "EngineName", "engine_named"]

EngineName = Literal["local", "ray", "spark"]
Item = TypeVar("Item")
Done = TypeVar("Done")


class Engine(Protocol):
    """Compresses tables, many at a time; the results come in the order of the tables."""

    def run(self, tables: Iterable[pa.Table], job: CompressionJob) -> Iterator[Result]:
        """Yield the result of each table; few tables are held at a time."""
        ...


@runtime_checkable
class Cluster(Protocol):
    """Other processes, which read inputs and write shards themselves, `workers` at a time."""

    workers: int

    def each(self, work: Callable[[Item], Done], items: Sequence[Item]) -> Iterator[Done]:
        """Yield what `work` gives for each item, in any order; they begin in order."""
        ...


def engine_named(name: EngineName, workers: int | None = None) -> Engine | Cluster:
    """Return an engine with so many workers, by default one per processor it finds.

    Raises ValueError for an unknown name, ModuleNotFoundError with the extra to install.
    """
    if name not in get_args(EngineName):
        raise InputError(
            f"no engine is named {name!r}; there are {', '.join(get_args(EngineName))}"
        )
    if workers is not None and workers < 1:
        raise InputError(f"workers must be at least 1, not {workers}")
    if name == "ray":
        from laconic.engines.ray import RayEngine

        return RayEngine(workers)
    if name == "spark":
        from laconic.engines.spark import SparkEngine

        return SparkEngine(workers)
    from laconic.engines.local import LocalEngine

    return LocalEngine(workers)
