"""laconic predict: a trained model's answers for new documents."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from itertools import chain
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from laconic.cli.flags import OUT, Device, Force, InputPaths, Reading, RunFolder
from laconic.cli.inputs import open_inputs
from laconic.cli.progress import InputProgress
from laconic.errors import InputError, visible
from laconic.files import check_output, spare_inputs
from laconic.show import how_many

if TYPE_CHECKING:
    import pyarrow as pa

    from laconic.corpus.inputs import InputPart, Inputs
    from laconic.formats.stores import Place
    from laconic.inference.predictor import Predictor
    from laconic.tasks import Task

_CACHE = 1 << 16  # states: 50 MB of 200 numbers each
_DIGITS = 6  # of probabilities: more would tell nothing, and differ from machine to machine


def predict(
    run: RunFolder,
    inputs: InputPaths,
    /,
    *,
    out: Annotated[str, OUT] = "-",
    reading: Reading = None,
    workers: int = 0,
    batch_size: int = 64,
    cache: int | None = None,
    device: Device = "auto",
    force: Force = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Predict the labels of new documents: raw files of any format, or a corpus.

    laconic predict runs/reviews new.csv -o predictions.csv --text text

    laconic predict runs/reviews test.parquet -o predictions.parquet

    For each document, in order: its row from 0, the prediction, the probability of each class, and
    the other columns of the input. A class's probability is in the column p(class).

    Parameters
    ----------
    out
        A .csv, .tsv, .jsonl or .parquet file, which appears when it is whole, here or in S3
        (s3://bucket/name.csv); -: CSV to stdout.
    workers
        Threads that read and compress ahead.
    batch_size
        Documents at a time; fewer of long ones. Answers do not depend on it.
    cache
        How many symbols' vectors to keep from batch to batch; by default 65536, on a GPU none.
    as_json
        Print what was done as JSON; with -o -, a line of JSON for each document.

    """
    for name, value, least in (("workers", workers, 0), ("batch-size", batch_size, 1)):
        if value < least:
            raise InputError(f"--{name} must be at least {least}, not {value}")
    path = None if out == "-" else _checked_out(out, force)
    from laconic.inference.predictor import Predictor

    if cache is None:
        cache = 0 if _on_gpu(device) else _CACHE
    options = {"batch_size": batch_size, "workers": workers, "cache": cache}
    predictor = Predictor.from_run(run, device, **options)
    _predict_all(
        predictor, open_inputs(inputs, reading, predictor.learned_from), path, force, as_json
    )


def _predict_all(
    predictor: Predictor, opened: Inputs, path: Place | None, force: bool, as_json: bool
) -> None:
    from laconic.formats.registry import format_of
    from laconic.formats.writing import write

    if opened.corpus is not None:
        predictor.check_corpus(opened.corpus)
    if path is not None:
        spare_inputs(path, opened.files)
    started = time.perf_counter()
    tally: Counter[str] = Counter()
    format = None if path is None else format_of(path.name)
    nested = as_json if format is None else format.typed
    empty: dict[str, int] = {}
    with InputProgress(opened) as progress:
        tables = progress.watch(_predicted(predictor, opened, nested, tally, empty))
        columns = list(_names(predictor, opened))
        if path is None:
            _print(tables, columns, as_json)
            _tell_empty(empty)
            return
        count = write(tables, {"format": "csv", "columns": columns, "text": "row"}, path, force)
    _report(path, count, time.perf_counter() - started, tally, predictor, as_json)
    _tell_empty(empty)


def _tell_empty(empty: dict[str, int]) -> None:
    if empty:
        count = how_many(empty["count"], "document")
        what = f"{count} without a letter, the first in row {empty['first']} (from 0)"
        print(f"laconic: {what}: what is predicted there is a guess", file=sys.stderr)


def _on_gpu(device: str) -> bool:
    import torch

    return torch.cuda.is_available() if device == "auto" else not device.startswith("cpu")


def _checked_out(out: str, force: bool) -> Place:
    from laconic.formats.registry import format_of, formats_by_suffix
    from laconic.formats.stores import place

    path = place(out)
    format = format_of(path.name)
    if format is None or not format.tabular:
        known = ", ".join(suffix for suffix, one in formats_by_suffix().items() if one.tabular)
        raise InputError(f"-o {path}: predictions are a file of one of these: {known}")
    check_output(path, force=force)
    return path


def _names(predictor: Predictor, opened: Inputs) -> dict[str, str | None]:
    """Return the output's columns, and the input's that each is: None for our own.

    A column of the user's that has a name of ours comes along under another.
    """
    own = ["row", "prediction", *(f"p({each})" for each in predictor.task.classes)]
    names: dict[str, str | None] = dict.fromkeys(own)
    for column in opened.columns:
        name = column
        while name in names or (name != column and name in opened.columns):
            name += "_input"
        names[name] = column
    return names


def _predicted(
    predictor: Predictor, opened: Inputs, nested: bool, tally: Counter[str], empty: dict[str, int]
) -> Iterator[pa.Table]:
    """Yield the output, a table for each part of documents; how many are empty is noted."""
    from laconic.alphabet import AlphabetError

    waiting: deque[InputPart] = deque()
    names = _names(predictor, opened)

    def documents() -> Iterator[Any]:
        for part in opened.parts():
            waiting.append(part)
            yield part.documents

    results = predictor.stream(documents())
    first = 0
    while True:
        try:
            outputs = next(results, None)
        except AlphabetError as error:
            raise waiting[0].located(error, first) from None
        if outputs is None:
            return
        part = waiting.popleft()
        some = part.documents
        lengths = map(len, some) if opened.corpus is None else some.expanded_lengths
        if rows := [first + row for row, length in enumerate(lengths) if not length]:
            empty["count"] = empty.get("count", 0) + len(rows)
            empty.setdefault("first", rows[0])
        yield _table(predictor, outputs, part, names, first, nested, tally)
        first += len(outputs)


def _table(
    predictor: Predictor,
    outputs: Any,
    part: InputPart,
    names: dict[str, str | None],
    first: int,
    nested: bool,
    tally: Counter[str],
) -> pa.Table:
    import pyarrow as pa

    task = predictor.task
    predictions = task.predictions(outputs)
    columns: list[Any] = [pa.array(range(first, first + len(outputs)), pa.int64())]
    columns.append(_column(task, predictions, nested))
    if task.classes:
        tally.update(map(str, predictions if task.single else chain(*predictions)))
        columns += map(pa.array, task.probabilities(outputs).round(_DIGITS).T)
    columns += [part.columns.column(name) for name in names.values() if name is not None]
    return pa.table(columns, names=list(names))


def _column(task: Task, predictions: list[Any], nested: bool) -> pa.Array:
    """Return the column; its type is that of the classes, also where a part has no label."""
    import pyarrow as pa

    if not task.classes:
        # Seven digits are all that float32 has.
        return pa.array([float(f"{each:.7g}") for each in predictions], pa.float64())
    if not task.single and not nested:
        return pa.array([json.dumps(each, ensure_ascii=False) for each in predictions], pa.string())
    if any(isinstance(each, str) for each in task.classes):
        kind = pa.string()
        predictions = [str(each) if task.single else list(map(str, each)) for each in predictions]
    else:
        kind = pa.array(task.classes).type
    return pa.array(predictions, kind if task.single else pa.list_(kind))


def _print(tables: Iterator[pa.Table], columns: list[str], as_json: bool) -> None:
    import csv

    def say(text: str) -> int:  # a program reads what is piped as it is
        return sys.stdout.write(visible(text) if sys.stdout.isatty() else text)

    writer = csv.writer(SimpleNamespace(write=say), lineterminator="\n")
    header = [] if as_json else [columns]
    for table in tables:
        rows = table.to_pylist()
        if as_json:
            for row in rows:
                say(json.dumps(row, ensure_ascii=False, default=_shown) + "\n")
        else:
            writer.writerows(header)
            writer.writerows([_shown(value) for value in row.values()] for row in rows)
            header = []
    writer.writerows(header)  # of no documents, too


def _shown(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode(errors="backslashreplace")
    if value is None or isinstance(value, str | int | float):
        return value
    return json.dumps(value, default=str) if isinstance(value, list | dict) else str(value)


def _report(
    path: Place,
    count: int,
    seconds: float,
    tally: Counter[str],
    predictor: Predictor,
    as_json: bool,
) -> None:
    info = predictor.cache_info()
    if as_json:
        fields = {
            "out": str(path),
            "documents": count,
            "seconds": seconds,
            "predictions": dict(tally.most_common()),
            "cache": {**info._asdict(), "hit_rate": info.hit_rate},
        }
        print(json.dumps(fields))
        return
    shown = ", ".join(f"{visible(name)}: {number:,}" for name, number in tally.most_common(10))
    more = f", and {len(tally) - 10} more" if len(tally) > 10 else ""
    classes = f"; {shown}{more}" if tally else ""
    print(f"{path}: {how_many(count, 'document')}, {seconds:.1f} s{classes}")
    if info.hits + info.misses:
        print(f"  {info.hit_rate:.0%} of {info.hits + info.misses:,} symbols were in the cache")
