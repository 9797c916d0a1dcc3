"""Changes inputs of `laconic compress` at random moments, and looks at what comes out.

    python tools/change.py --times 50 --seed 1

The corpus must hold the rows that were there before, or those that were there after, never some of
both; or else one line says what is wrong, and what was there before the command still is.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from disturb import PATIENCE, Report, from_command_line

from laconic import Corpus

ROWS = 80_000  # more than are read ahead
Labels: TypeAlias = list[str]


def labels(kind: str, count: int = ROWS) -> Labels:
    """Return labels that no two rows share, and that say where a row is from."""
    return [f"{kind}{number}" for number in range(count)]


def text(label: str) -> str:
    """Return the document with this label: of files with as many rows, all have as many bytes."""
    return f"{label} " * 70


def csv(some: Labels) -> bytes:
    """Return rows as CSV."""
    return "".join(["text,label\n", *(f"{text(each)},{each}\n" for each in some)]).encode()


def jsonl(some: Labels) -> bytes:
    """Return rows as JSONL."""
    return "".join(f"{json.dumps({'text': text(each), 'label': each})}\n" for each in some).encode()


def parquet(some: Labels) -> bytes:
    """Return rows as Parquet, in several row groups."""
    sink = pa.BufferOutputStream()
    table = pa.table({"text": [text(each) for each in some], "label": some})
    pq.write_table(table, sink, row_group_size=2000)
    return bytes(sink.getvalue())


FORMATS: dict[str, Callable[[Labels], bytes]] = {
    "in.csv": csv,
    "in.jsonl": jsonl,
    "in.csv.gz": lambda some: gzip.compress(csv(some), 1),
    "in.parquet": parquet,
}


def replaced(path: Path, data: bytes) -> None:
    """Give another file the name."""
    beside = path.with_name("beside")
    beside.write_bytes(data)
    os.replace(beside, path)


def rewritten(path: Path, data: bytes) -> None:
    """Write into the file that is there."""
    with path.open("r+b") as file:
        file.write(data)
        file.truncate()


WAYS = (replaced, rewritten)


def change(folder: Path, random: Random, report: Report) -> str:
    """Compress, and change the input meanwhile; return what was wrong, or an empty text."""
    name = random.choice(list(FORMATS))
    source, out = folder / name, folder / "out.parquet"
    # As many rows, fewer or more: appended to, cut off, or others of the same size.
    rows = {"old": labels("a")}
    rows["new"] = random.choice([labels("b"), labels("a", ROWS // 2), [*rows["old"], *labels("b")]])
    source.write_bytes(FORMATS[name](rows["old"]))
    data, way = FORMATS[name](rows["new"]), random.choice(WAYS)
    Corpus.from_documents(["another"], ["another"]).write(out)
    command = ["compress", str(source), "-o", str(out), "--label", "label", "--codec", "lzd"]
    command += ["--shard", "1", "--force", "--on-error", random.choice(["stop", "skip"])]
    process = subprocess.Popen(
        [sys.executable, "-m", "laconic", *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    # Most of the time, soon after the work has begun.
    begun = folder / "out.parquet.partial" if random.random() < 0.8 else folder
    while process.poll() is None and not begun.exists():
        time.sleep(0.001)
    time.sleep(random.uniform(0, 1.6 if begun == folder else 0.6))
    way(source, data)
    said = process.communicate(timeout=PATIENCE)[1].strip()
    found = Corpus.open(out).labels
    what = next((kind for kind, some in rows.items() if found == some), "")
    if process.returncode:
        told = "told that it was changed" if "changed while it was read" in said else "told another"
        report.counts[told] += 1
        if found != ["another"]:
            return "it failed, and replaced what was there"
        return (
            "" if said.startswith("laconic: ") and "bug" not in said else f"it says {said[-300:]}"
        )
    report.counts[f"all {what} rows"] += 1
    mixed = f"{len(found)} rows of {name}, {way.__name__}, which neither file has"
    return "" if what else mixed


def campaign(times: int, seed: int) -> Report:
    """Change inputs of all formats so many times."""
    report = Report()
    for number in range(times):
        with tempfile.TemporaryDirectory() as folder:
            if wrong := change(Path(folder), Random(f"{seed} {number}"), report):
                report.findings.append(f"--seed {seed}, time {number}: {wrong}")
    return report


if __name__ == "__main__":
    sys.exit(from_command_line(campaign, __doc__))
