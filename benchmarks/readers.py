"""Measure the memory that `laconic compress` takes on the worst inputs of every reader.

python -m benchmarks.readers               # five minutes, 3 GB of disk
python -m benchmarks.readers --keep        # to benchmarks/results, for `make docs`
python -m benchmarks.readers csv parquet   # these only; the figures of others stay
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.command import ROOT, Figures, keep, options, output
from benchmarks.machine import describe
from benchmarks.worst_inputs import Worst, worst_inputs, write

ALLOWED = 1_000_000_000  # bytes beside the largest document


def measured(worst: Worst, folder: Path) -> Figures:
    """Compress one input; return its size, what was said of it, seconds and peak memory."""
    path = write(worst, folder)
    stored = (
        path.stat().st_size
        if path.is_file()
        else sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    )
    words: list[str | Path] = ["compress", path, "-o", folder / "out.parquet", "--json"]
    words += worst.words
    if path.is_dir():
        words += ["--format", "files"]
    command: list[str | Path] = [sys.executable, "-m", "benchmarks.alone_command", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    figures = json.loads(done.stdout.splitlines()[-1])
    said = json.loads(done.stdout.splitlines()[0]) if done.returncode == 0 else {}
    return {
        "reader": worst.reader,
        "kind": worst.kind,
        "what": worst.what,
        "bytes": stored,
        "largest": worst.largest,
        "documents": said.get("documents"),
        "rejected": said.get("rejected"),
        "error": figures.get("error", "").replace(f"{folder}/", "") or None,
        "seconds": round(figures["seconds"], 2),
        "peak_memory": figures["peak_memory"],
    }


def main() -> None:
    """Measure all inputs, or those of some readers, and write the figures."""
    parser = options(__doc__)
    parser.add_argument("readers", nargs="*", help="csv, tsv, jsonl, …; all without any")
    given = parser.parse_args()
    about, rows = describe(), []
    for worst in worst_inputs(given.quick):
        if given.readers and worst.reader not in given.readers:
            continue
        with tempfile.TemporaryDirectory(prefix="laconic-bench-") as scratch:
            row = measured(worst, Path(scratch))
        rows.append(row | {"commit": about["commit"]})
        mark = " TOO MUCH" if row["peak_memory"] > ALLOWED + row["largest"] else ""
        print(f"{row['peak_memory'] / 1e6:6.0f} MB{mark} {json.dumps(row)}", flush=True)
    out = output(given, about, "readers-{machine_name}-{date}.json")
    if given.readers and out.exists():
        known = json.loads(out.read_text())
        about, others = known["about"], known["readers"]["rows"]
        rows += [row for row in others if row["reader"] not in given.readers]
    keep(out, {"about": about, "readers": {"allowed": ALLOWED, "rows": rows}})
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
