"""A Ray cluster and a Spark session, which the tests of a process share."""

from collections.abc import Iterator

import pytest

from laconic.engines import Cluster, Engine, engine_named


@pytest.fixture(scope="session")
def ray_engine() -> Iterator[Engine | Cluster]:
    import ray

    yield engine_named("ray", 2)
    ray.shutdown()


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[Engine | Cluster]:
    from pyspark.sql import SparkSession

    yield engine_named("spark", 2)
    active = SparkSession.getActiveSession()
    assert active is not None
    active.stop()
