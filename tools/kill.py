"""Kills `laconic compress` at random moments, lets it go on, and compares what comes out.

    python tools/kill.py --times 50 --seed 1                      # small shards: some minutes
    python tools/kill.py --times 20 --megabytes 200 --shard 64    # as users run it

Under the final name there must never be anything but the whole corpus, or what was there before;
in the end its bytes must be those of a run that nobody disturbed, with nothing left beside it.
tests/tools/test_kill.py runs a few times on something small.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TypeAlias

from disturb import Report, finish, kill, largest

from laconic import samples

OLD, OLD_FILES = "old-{number:05}.parquet", 2000  # so many that removing them takes a while
DOUBLE_KILL = 0.4  # how often what goes on is killed, too

Digests: TypeAlias = dict[str, str]  # of all files below a name; of none if there is nothing


def write_input(path: Path, megabytes: float) -> None:
    """Write a CSV of at least so many MB of text: samples again and again, no two texts alike."""
    split = samples.load("kjv").train
    left, number = megabytes * 1e6, 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["label", "number", "text"])
        while left > 0:
            k = number % len(split)
            text = f"{number} {split.documents[k]}"
            writer.writerow([split.labels[k], number, text])
            left -= len(text)
            number += 1


def digests(path: Path) -> Digests:
    """Return the digest of each file at or below the path."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {
        str(each.relative_to(path)): hashlib.sha256(each.read_bytes()).hexdigest() for each in files
    }


def words(source: Path, out: Path, shard: int, *flags: str) -> list[str]:
    """Return the command that compresses `source` to `out`, shards of so many million letters."""
    options = [str(source), "-o", str(out), "--text", "text", "--label", "label"]
    if "compact" in out.name:
        options.append("--compact")
    return ["compress", *options, "--shard", str(shard), *flags]


def start(source: Path, out: Path, shard: int, *flags: str) -> subprocess.Popen[str]:
    """Start that command."""
    return subprocess.Popen(
        [sys.executable, "-m", "laconic", *words(source, out, shard, *flags)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def some_moment(random: Random, out: Path, seconds: float, shards: int) -> Callable[[float], bool]:
    """Return what says, given the seconds since the start, whether to kill now.

    Time alone would seldom hit the moments between two files: half the time, a file decides.
    """
    folder, old = out.with_name(out.name + ".partial"), out / OLD.format(number=OLD_FILES // 2)
    if old.exists() and random.random() < 0.5:
        return lambda _: not old.exists()
    if random.random() < 0.5:
        end = random.uniform(0, 1.05 * seconds)
        return lambda passed: passed >= end
    shard = f"shard-{random.randrange(shards):05}"
    names = ["plan.json", "unfinished.parquet", f"{shard}.json", f"shards/{shard}.parquet"]
    if out.suffix == ".parquet" and shards > 1:
        names.append("merged.parquet")
    awaited = random.choice([folder, out, *(folder / name for name in names)])
    return lambda _: awaited.exists()


@dataclass(frozen=True)
class Undisturbed:
    """What comes out if nobody disturbs."""

    digests: Digests
    seconds: float
    shards: int
    largest: int


class Trial:
    """One output, made again and again, and disturbed."""

    def __init__(self, source: Path, out: Path, shard: int, report: Report) -> None:
        self.source, self.out, self.shard, self.report = source, out, shard, report
        self.folder = out.with_name(out.name + ".partial")
        begun = time.monotonic()
        finish(start(source, out, shard))
        seconds = time.monotonic() - begun
        # A shard ends with the part of 4 MB that fills it.
        shards = max(1, int(source.stat().st_size / (1 << 20) / max(4, shard)))
        self.right = Undisturbed(digests(out), seconds, shards, largest(out))

    def disturb(self, seed: int, number: int) -> None:
        """Compress and kill, go on and kill, go on to the end; findings go to the report."""
        random = Random(f"{seed} {number}")
        where = f"{self.out.name}, --seed {seed}, time {number}"
        self.clear()
        before: Digests = {}
        if random.random() < 0.3:
            self.put_something_else()
            before = digests(self.out)
            self.report.counts["times with another corpus in the way"] += 1
        flags = ["--force"]
        for _ in range(random.choice((1, 1, 2, 3)) if random.random() < DOUBLE_KILL else 1):
            moment = some_moment(random, self.out, self.right.seconds, self.right.shards)
            killed = kill(start(self.source, self.out, self.shard, *flags), moment)
            self.report.counts["killed" if killed else "ended before it could be killed"] += 1
            found = digests(self.out)
            if found not in (self.right.digests, before):
                missing = sorted(self.right.digests.keys() - found.keys())[:3]
                self.report.findings.append(
                    f"{where}: something is under the final name that is not whole "
                    f"({len(found)} files, without {missing})"
                )
                return
            self.report.counts["found " + self._words(found, before)] += 1
            going_on = self.folder.exists() or not before or found != before
            flags = ["--resume"] if going_on else ["--force"]
        try:
            finish(start(self.source, self.out, self.shard, *flags))
        except RuntimeError as error:
            self.report.findings.append(f"{where}: going on failed: {error}")
            return
        if digests(self.out) != self.right.digests:
            self.report.findings.append(f"{where}: other bytes came out after {flags}")
        left = sorted({each.name for each in self.out.parent.iterdir()} - {self.out.name})
        if left:
            self.report.findings.append(f"{where}: {', '.join(left)} is left over")

    def _words(self, found: Digests, before: Digests) -> str:
        if found == self.right.digests:
            return "the whole corpus" + (" and its folder" if self.folder.exists() else "")
        return "what was there before" if before else "nothing"

    def clear(self) -> None:
        """Remove all that is beside the output, and itself."""
        for path in self.out.parent.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def put_something_else(self) -> None:
        """Put another corpus under the output's name."""
        if self.out.suffix == ".parquet":
            self.out.write_bytes(b"another corpus")
            return
        self.out.mkdir()
        for number in range(OLD_FILES):
            (self.out / OLD.format(number=number)).write_bytes(b"a shard of another corpus")


def campaign(times: int, seed: int, megabytes: float, shard: int, progress: bool = False) -> Report:
    """Disturb so many times, files, folders and compact files in turn."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "input.csv")
        write_input(source, megabytes)
        trials = []
        for name in ("corpus.parquet", "corpus", "compact.parquet"):
            Path(folder, f"of {name}").mkdir()
            trials.append(Trial(source, Path(folder, f"of {name}", name), shard, report))
        for number in range(times):
            trials[number % len(trials)].disturb(seed, number)
            if progress:
                print(f"\r{number + 1} of {times}", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)
    return report


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--megabytes", type=float, default=24, help="of text in the input")
    parser.add_argument("--shard", type=int, default=1, help="million letters in a shard")
    arguments = parser.parse_args()
    report = campaign(
        arguments.times,
        arguments.seed,
        arguments.megabytes,
        arguments.shard,
        progress=sys.stderr.isatty(),
    )
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
