"""The engine of a Spark session, by mapInArrow."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa

from laconic.corpus.worker import CompressionJob, DocumentError, Result, compress_table
from laconic.errors import needs


class SparkEngine:
    """The active Spark session, or one on this machine with `workers` threads.

    Tables travel as Arrow streams, one to a row: so rows, their order and their types are the
    same as without Spark, and a bad document is told apart from a failing executor.
    """

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

    def run(self, tables: Iterable[pa.Table], job: CompressionJob) -> Iterator[Result]:
        """Yield the result of each table, in order, some tables per worker at a time."""
        left = iter(tables)
        while some := list(islice(left, 4 * self.workers)):
            rows = {"number": range(len(some)), "table": [_to_bytes(table) for table in some]}
            frame = self._session.createDataFrame(
                pa.table(rows, pa.schema({"number": pa.int64(), "table": pa.binary()}))
            )
            parts = frame.repartitionByRange(min(len(some), self.workers), "number")
            done = parts.mapInArrow(
                partial(_compress_rows, job=job), "number long, table binary, errors string"
            ).toArrow()
            for row in done.sort_by("number").to_pylist():
                errors = [DocumentError(**each) for each in json.loads(row["errors"])]
                if row["table"] is None:
                    raise errors[0]
                yield Result(_from_bytes(row["table"]), errors)


def _compress_rows(
    batches: Iterator[pa.RecordBatch], job: CompressionJob
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for row in batch.to_pylist():
            try:
                result = compress_table(_from_bytes(row["table"]), job)
                row["table"], errors = _to_bytes(result.table), result.errors
            except DocumentError as error:
                row["table"], errors = None, [error]
            row["errors"] = json.dumps([{"reason": one.reason, **one.place} for one in errors])
            yield pa.RecordBatch.from_pylist([row])


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue())


def _from_bytes(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(data).read_all()
