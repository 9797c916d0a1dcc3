"""Runs every tool that disturbs Laconic, in turns, for as long as you like: `make torture`.

    python tools/torture.py --minutes 60 --seed 1 --keep     # to tools/results, for the docs
    python tools/torture.py --minutes 5 --parts fuzz,race    # some of them

What was found, how often what happened, seeds and commit are written to a file after every turn;
tools/reliability_page.py makes docs/reliability.md from those that are kept. A finding is run again
by its own tool, with the seed that it names.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import change
import corrupt
import full_disk
import fuzz
import kill
import kill_training
import race
from disturb import Report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.machine import describe
from laconic.files import write_json

ROOT = Path(__file__).resolve().parent.parent
SMALL = 60, 2  # documents and epochs of trainings, which are as good to kill


@dataclass
class Turn:
    """What came out of one turn of a part."""

    cases: int
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


@dataclass
class Part:
    """One way to disturb, what must hold, and what a turn of about a minute does with a seed."""

    what: str
    least: int
    """Cases that should have run before anybody calls it reliable."""
    share: float
    """Of the time: about the minutes that so many cases take on a busy laptop."""
    run: Callable[[int], Turn]


def _fuzz(seed: int) -> Turn:
    report = fuzz.campaign(seed, seconds=60)
    found = [f"case {first}, {n} like it: {told}" for told, (first, n) in report.findings.items()]
    return Turn(report.cases, findings=found)


def _corrupt(seed: int) -> Turn:
    report = corrupt.campaign(seed, copies=500)
    counts = sum(report.outcomes.values(), Counter())
    return Turn(report.copies, counts, report.findings)


def _killed(report: Report) -> Turn:
    kills = sum(n for what, n in report.counts.items() if what.startswith("killed"))
    return Turn(kills, report.counts, report.findings)


def _times(times: int, campaign: Callable[[int, int], Report]) -> Callable[[int], Turn]:
    def run(seed: int) -> Turn:
        report = campaign(times, seed)
        return Turn(times, report.counts, report.findings)

    return run


PARTS = {
    "fuzz": Part(
        "hostile arrays and hard documents, fed to grammars and codecs: an error in words or the "
        "right answer, in bounded time and memory",
        1_000_000,
        20,
        _fuzz,
    ),
    "corrupt": Part(
        "corpora damaged in every way, opened and verified: an error in words, or the same data",
        20_000,
        15,
        _corrupt,
    ),
    "kill": Part(
        "`compress` killed, gone on with: the bytes of a run that nobody disturbed",
        500,
        33,
        lambda seed: _killed(kill.campaign(15, seed, megabytes=9, shard=1)),
    ),
    "kill_training": Part(
        "`train` killed, gone on with: the same weights, optimizer and metrics",
        200,
        60,
        lambda seed: _killed(kill_training.campaign(12, seed, *SMALL)),
    ),
    "kill_torchrun": Part(
        "one of two ranks killed under torchrun, gone on with: the same again",
        50,
        33,
        lambda seed: _killed(kill_training.campaign(6, seed, *SMALL, minutes=("0",), processes=2)),
    ),
    "race": Part(
        "two processes that write the same: one does, the other says who is there; never a mixture",
        200,
        7,
        _times(18, race.campaign),
    ),
    "full_disk": Part(
        "no room for files: one line with the cure, what was there stays; then, the same bytes",
        100,
        8,
        _times(12, full_disk.campaign),
    ),
    "change": Part(
        "inputs that change while they are read: all old rows, all new ones, or an error in words",
        100,
        4,
        _times(12, change.campaign),
    ),
}


@dataclass
class Tally:
    """All turns of a part so far."""

    cases: int = 0
    seconds: float = 0.0
    seeds: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)

    def add(self, part: Part, seed: int) -> None:
        """Run one turn; that a tool fails is a finding, too."""
        begun = time.monotonic()
        try:
            turn = part.run(seed)
        except Exception:
            turn = Turn(0, findings=[f"the tool failed with seed {seed}: {traceback.format_exc()}"])
        self.seconds += time.monotonic() - begun
        self.seeds.append(seed)
        self.cases += turn.cases
        self.counts += turn.counts
        self.findings += turn.findings


def torture(
    minutes: float, seed: int, names: Sequence[str], kept: Callable[[dict[str, Any]], None]
) -> dict[str, Tally]:
    """Run parts until the time is over, each for its share of it; `kept` gets results so far."""
    end = time.monotonic() + 60 * minutes
    tallies = {name: Tally() for name in names}
    while time.monotonic() < end:
        name = min(names, key=lambda each: tallies[each].seconds / PARTS[each].share)
        tallies[name].add(PARTS[name], seed)
        seed += 1
        kept(
            {
                name: {"what": PARTS[name].what, "least": PARTS[name].least, **vars(tally)}
                for name, tally in tallies.items()
                if tally.seeds
            }
        )
    return tallies


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="a turn that has begun ends")
    parser.add_argument("--seed", type=int, default=0, help="of the first turn, then 1 more each")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--keep", action="store_true", help="write to tools/results, not to build")
    chosen = parser.parse_args()
    names = chosen.parts.split(",")
    if unknown := set(names) - PARTS.keys():
        parser.error(f"there is no part {min(unknown)}; there are {', '.join(PARTS)}")
    about = describe(gpu=False)
    given = f"--minutes {chosen.minutes:g} --seed {chosen.seed} --parts {chosen.parts}"
    about["command"] = f"python tools/torture.py {given}"
    folder = ROOT / ("tools/results" if chosen.keep else "build/torture")
    path = folder / f"{about['machine_name']}-{about['date']}-seed-{chosen.seed}.json"

    def keep(parts: dict[str, Any]) -> None:
        write_json(path, {"about": about, "parts": parts})
        done = ", ".join(f"{name} {part['cases']:,}" for name, part in parts.items())
        print(f"\r{done}", end="", file=sys.stderr, flush=True)

    tallies = torture(chosen.minutes, chosen.seed, names, keep)
    print(f"\n{path}", file=sys.stderr)
    findings = [f"{name}: {each}" for name, tally in tallies.items() for each in tally.findings]
    print("\n".join(findings or ["nothing found"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
