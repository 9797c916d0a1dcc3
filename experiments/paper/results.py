"""Results as files: of rows a line each, in one JSONL for each data set; of the rest a JSON each.

Whatever is written appears whole, and several processes may add rows to one folder.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.command import Figures
from benchmarks.machine import describe
from laconic.files import locked, write_text

__all__ = [
    "CHOICES",
    "NOT_RUN",
    "RESULTS",
    "Figures",
    "about",
    "add_rows",
    "choices_digest",
    "find_row",
    "formatted",
    "not_chosen",
    "pack",
    "read",
    "remove_rows",
    "right",
    "rows_in",
    "saw_no_test",
    "write",
]

RESULTS = Path(__file__).parent.parent / "results" / "paper"
NOT_RUN = "not run yet"  # of trials, in CHOICES
CHOICES = Path(__file__).parent.parent / "choices" / "choices.json"


def about() -> Figures:
    """Return command, commit, date, versions and machine, a GPU named if torch has one.

    `choices` tells which settings of presets it rests on: the beginning of a digest of them.
    """
    found = describe()
    del found["machine_name"]
    return {**found, "choices": choices_digest()}


def choices_digest() -> str:
    """Return twelve digits for the values in CHOICES, whatever else is told of them there."""
    presets = read(CHOICES).items()
    values = {preset: {n: of["value"] for n, of in some.items()} for preset, some in presets}
    return hashlib.sha256(_dumps(values).encode()).hexdigest()[:12]


def not_chosen() -> list[str]:
    """Return the presets of CHOICES that have settings whose trials have not been run."""
    left = list[str]()
    for name, of in read(CHOICES).items():  # what others are like comes before them
        waits = {NOT_RUN, *(f"as in {other}" for other in left)}
        left += [name] if any(each["by"] in waits for each in of.values()) else []
    return left


def saw_no_test(rows: Iterable[Figures], preset: str) -> bool:
    """Whether such rows' settings were chosen by held-out documents before they were trained."""
    return preset not in not_chosen() and all("choices" in row["about"] for row in rows)


def rows_in(folder: Path) -> Iterator[Figures]:
    """Yield the results of rows, by data set, method and seed."""
    for path in sorted(folder.glob("*.jsonl")):
        yield from _rows(path)


def find_row(folder: Path, dataset: str, method: str, seed: int) -> Figures | None:
    """Return the result of a row; None if it has none yet."""
    found = _rows(_path(folder, dataset))
    return next((row for row in found if _key(row) == (method, seed)), None)


def add_rows(folder: Path, *rows: Figures) -> None:
    """Add results of rows, in the place of those that the same rows had before."""
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "rows", wait=True):
        for dataset in {row["dataset"] for row in rows}:
            path = _path(folder, dataset)
            some = [*_rows(path), *(rounded(row) for row in rows if row["dataset"] == dataset)]
            known = {_key(row): row for row in some}
            write_text(path, "".join(f"{_dumps(known[key])}\n" for key in sorted(known)))


def remove_rows(folder: Path, keys: Iterable[tuple[str, str, int]]) -> None:
    """Remove the results of rows, each by data set, method and seed."""
    gone = set(keys)
    with locked(folder / "rows", wait=True) if gone else nullcontext():
        for dataset in {dataset for dataset, _, _ in gone}:
            path = _path(folder, dataset)
            kept = [row for row in _rows(path) if (dataset, *_key(row)) not in gone]
            write_text(path, "".join(f"{_dumps(row)}\n" for row in kept))


def write(path: Path, figures: Figures) -> None:
    """Write a result that is no row."""
    write_text(path, formatted(rounded(figures)))


def formatted(figures: Figures) -> str:
    """Return JSON with a line for each entry, which is good to read in diffs."""
    lines = [f" {json.dumps(key)}: {_entry(value)}" for key, value in figures.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def read(path: Path) -> Figures:
    """Return a result that is no row; ValueError with the file if it is none."""
    return _parsed(path.read_text("utf-8"), str(path))


def pack(correct: npt.ArrayLike) -> str:
    """Return which documents were right, bool [N], as text: eight documents a byte, in base64.

    >>> row = {"test": {"documents": 3}, "right": pack([True, False, True])}
    >>> row["right"], right(row).tolist()
    ('oA==', [True, False, True])
    """
    return base64.b64encode(np.packbits(np.asarray(correct, np.bool_)).tobytes()).decode()


def right(row: Figures) -> npt.NDArray[np.bool_] | None:
    """Return which test documents a row gets right, bool [N]; None if it is older than that.

    ValueError if they are not as many as were tested, or not as many right.
    """
    if "right" not in row:
        return None
    total = row["test"]["documents"]
    data = np.frombuffer(base64.b64decode(row["right"], validate=True), np.uint8)
    what = f"{row.get('dataset')}/{row.get('method')}-{row.get('seed')}"
    if len(data) != -(-total // 8):
        raise ValueError(f"{what} has {len(data)} bytes of right documents for {total} tested ones")
    found = np.unpackbits(data, count=total).view(np.bool_)
    accuracy = row["test"].get("accuracy", found.mean())
    if abs(found.mean() - accuracy) > 1e-5:
        raise ValueError(f"{what} has {found.mean():.6f} of its documents right, not {accuracy}")
    return found


def rounded(value: Any) -> Any:
    """Return figures with six digits each: more are noise, and files are read in diffs."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {str(key): rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list | tuple) else value


def _path(folder: Path, dataset: str) -> Path:
    return folder / f"{dataset}.jsonl"


def _key(row: Figures) -> tuple[str, int]:
    return row["method"], row["seed"]


def _rows(path: Path) -> Iterator[Figures]:
    if path.exists():
        with path.open(encoding="utf-8", newline="\n") as file:  # no other character ends a line
            for number, line in enumerate(file, 1):
                yield _parsed(line, f"{path}, line {number}")


def _parsed(text: str, where: str) -> Figures:
    try:
        found: Figures = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{where} is damaged: {error}; delete it and run it again") from None
    return found


def _entry(value: Any) -> str:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n  " + ",\n  ".join(map(_dumps, value)) + "\n ]"
    if isinstance(value, dict) and value and all(isinstance(v, dict) for v in value.values()):
        pairs = (f"{_dumps(key)}: {_dumps(each)}" for key, each in value.items())
        return "{\n  " + ",\n  ".join(pairs) + "\n }"
    return _dumps(value)


def _dumps(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
