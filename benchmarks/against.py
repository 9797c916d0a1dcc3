"""Measure this checkout beside another one, in turns in one run, to see what became slower.

    python -m benchmarks.against --base ../before            # all of it; some ten minutes
    python -m benchmarks.against --base ../before --quick    # a smoke run
    python -m benchmarks.against --base ../before --only compress fit

Both run with this Python, from copies of their src/laconic; the other one needs a compiled core
there, or in its folder build. Each has a process of its own on one thread; the two do the same
work, with the same seeds, one after the other, and who is first changes from round to round. Then
both begin again, in new processes, because where one's memory lies is luck. Ratios are this
checkout's seconds over the base's: those of the processor are what counts on a machine that others
use, too. `same` is whether both came to the same results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from benchmarks.command import ROOT, Figures, keep, options, output
from benchmarks.data import load_or_sample
from benchmarks.machine import describe
from benchmarks.texts import english_documents
from laconic import _core

# What against_child does, and commands, each in a process of its own.
WORK = (
    *("compress-repair", "compress-lzd", "compress-lz78", "corpus-write", "corpus-write-compact"),
    *("corpus-read", "corpus-read-compact", "features", "features-hashed", "collate", "step"),
    *("outputs", "fit", "fit-both", "predict"),
)
COMMANDS = {
    "import": "-c 'import laconic'",
    "help": "-m laconic --help",
    "cli-compress": "-m laconic compress texts.csv -o c.parquet --text text --workers 1 --force",
}
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class Taken(NamedTuple):
    """What some work took, and what it came to."""

    seconds: float
    cpu_seconds: float
    result: object


@dataclass
class Checkout:
    """A copy of one source tree, in the folder that its process works in; its rounds so far."""

    folder: Path
    tree: Path
    taken: dict[str, list[Taken]] = field(default_factory=dict)

    def copy(self, core: Path) -> None:
        """Copy the tree, so that nobody edits it meanwhile, and its core."""
        package, ignored = self.folder / "src" / "laconic", shutil.ignore_patterns("_core.*.so")
        shutil.copytree(self.tree / "src" / "laconic", package, ignore=ignored)
        shutil.copy(core, package)

    def begin(self) -> None:
        """Start a new process of this tree."""
        child = ROOT / "benchmarks" / "against_child.py"
        self._child = subprocess.Popen(
            [sys.executable, "-P", child],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def end(self) -> None:
        """End it."""
        self._child.communicate()

    def do(self, work: str) -> Taken:
        """Do some work once."""
        if work in COMMANDS:
            return self._command(shlex.split(COMMANDS[work]))
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        with suppress(BrokenPipeError):  # it has died, which the empty line tells
            print(work, file=self._child.stdin, flush=True)
        line = self._child.stdout.readline()
        if not line:
            sys.exit(f"{self.tree} could not do {work}; what it said is above")
        return Taken(*json.loads(line))

    @property
    def _environment(self) -> dict[str, str]:
        more = {"PYTHONPATH": str(self.folder / "src"), "PYTHONHASHSEED": "0", "NO_COLOR": "1"}
        return os.environ | ONE_THREAD | more

    def _command(self, words: list[str]) -> Taken:
        before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(
            [sys.executable, "-P", *words],
            cwd=self.folder,
            env=self._environment,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        busy = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        written = [self.folder / word for word in words if word == "c.parquet"]
        made = [hashlib.sha256(path.read_bytes()).hexdigest() for path in written]
        return Taken(seconds, busy, made)


def measure(base: Checkout, here: Checkout, names: list[str], given: argparse.Namespace) -> None:
    """Let both do all of the work in turns, `processes` times `rounds` rounds."""
    for _ in range(given.processes):
        base.begin()
        here.begin()
        for name in names:
            for checkout in (base, here):
                checkout.do(name)  # what is loaded and kept is not measured
            for number in range(given.rounds):
                for checkout in (base, here) if number % 2 else (here, base):
                    checkout.taken.setdefault(name, []).append(checkout.do(name))
            print(line_of(name, ratios(base, here, name)), file=sys.stderr, flush=True)
        base.end()
        here.end()


def ratios(base: Checkout, here: Checkout, name: str) -> Figures:
    """Return medians of both, ratios, and whether results were the same in all rounds."""
    before, after = base.taken[name], here.taken[name]
    row: Figures = {}
    for unit in ("seconds", "cpu_seconds"):
        old, new = ([getattr(each, unit) for each in taken] for taken in (before, after))
        row |= {f"base_{unit}": old, f"here_{unit}": new}
        row[f"ratio_{unit}"] = statistics.median(new) / statistics.median(old)
    row["same"] = len({json.dumps(each.result) for each in before + after}) == 1
    return row


def line_of(name: str, row: Figures) -> str:
    """Return one line of the table."""
    medians = (1e3 * statistics.median(row[f"{who}_cpu_seconds"]) for who in ("base", "here"))
    cells = [f"{value:>12,.1f}" for value in medians]
    cells += [f"{row[f'ratio_{unit}']:>12.3f}" for unit in ("cpu_seconds", "seconds")]
    return f"{name:22}" + "".join(cells) + f"{'yes' if row['same'] else 'NO':>8}"


def main() -> None:
    """Run all parts, print the table and write the figures."""
    parser = options(__doc__)
    parser.add_argument("--base", type=Path, required=True, help="the other checkout")
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of names of work")
    parser.add_argument("--rounds", type=int, default=7, help="of each process")
    parser.add_argument("--processes", type=int, default=3, help="one after the other")
    given = parser.parse_args()
    if given.quick:
        given.rounds, given.processes = 2, 1
    names = [name for name in (*WORK, *COMMANDS) if name.startswith(tuple(given.only))]
    if not names:
        parser.error(f"no work has such a name; there is {', '.join((*WORK, *COMMANDS))}")
    if not (core := core_of(given.base)):
        parser.error(f"{given.base}/src/laconic has no compiled _core; copy one of the same C++")
    with tempfile.TemporaryDirectory(prefix="laconic-bench-") as scratch:
        base = Checkout(Path(scratch) / "base", given.base.resolve())
        here = Checkout(Path(scratch) / "here", ROOT)
        base.copy(core)
        here.copy(Path(_core.__file__))
        data = documents(given.quick)
        for checkout in (base, here):
            (checkout.folder / "documents.json").write_text(json.dumps(data))
        measure(base, here, names, given)
    rows = {name: ratios(base, here, name) for name in names}
    heads = ("base ms", "here ms", "ratio", "wall ratio")
    print(f"{'processor time':22}" + "".join(f"{head:>12}" for head in heads) + f"{'same':>8}")
    for name, row in rows.items():
        print(line_of(name, row))
    about = describe()
    out = output(given, about, "against-{machine_name}-{date}.json")
    keep(out, {"about": about, "against": rows})
    print(f"\nFigures in {out}")


def core_of(tree: Path) -> Path | None:
    """Return the compiled core of a tree, if there is one: beside its package, or built last."""
    built = sorted(tree.glob("build/*/_core.*.so"), key=lambda path: path.stat().st_mtime)
    return next(iter([*(tree / "src" / "laconic").glob("_core.*.so"), *reversed(built)]), None)


def documents(quick: bool) -> Figures:
    """Return what both read: many short texts to compress, and some with labels to learn from."""
    _, texts = english_documents(200 if quick else 2_000, 728)
    _, (train, _) = load_or_sample("adfa_ld")
    most = 64 if quick else 200
    return {"texts": texts, "traces": train.documents[:most], "labels": train.labels[:most]}


if __name__ == "__main__":
    main()
