"""Runs every tool that disturbs Laconic, in turns, for as long as you like: `make torture`.

    python tools/torture.py --minutes 60 --seed 1 --keep     # to tools/results, for the docs
    python tools/torture.py --minutes 5 --parts fuzz,race    # some of them
    python tools/torture.py --processes 8 --enough           # eight turns at once, to the end

What was found, how often what happened, seeds and commit are written to a file after every turn;
tools/reliability_page.py makes docs/reliability.md from those that are kept. A finding is run again
by its own tool, with the seed that it names. A copy without git's own files, on another machine,
takes the commit from the environment, LACONIC_COMMIT.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from disturb import Report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from benchmarks.machine import describe
from laconic.files import write_json

SCRIPT = Path(__file__).resolve()
ROOT = SCRIPT.parent.parent
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
    turns: int
    """About as many as run that many cases."""
    run: Callable[[int], Turn]


# Tools are loaded by who runs them: processes of limited memory start from this file, and where
# torch knows CUDA, it takes more than they may.


def _fuzz(seed: int) -> Turn:
    import fuzz

    report = fuzz.campaign(seed, cases=50_000)
    found = [f"case {first}, {n} like it: {told}" for told, (first, n) in report.findings.items()]
    return Turn(report.cases, findings=found)


def _corrupt(seed: int) -> Turn:
    import corrupt

    report = corrupt.campaign(seed, copies=500)
    counts = sum(report.outcomes.values(), Counter())
    return Turn(report.copies, counts, report.findings)


def _killed(report: Report) -> Turn:
    kills = sum(n for what, n in report.counts.items() if what.startswith("killed"))
    return Turn(kills, report.counts, report.findings)


def _kill(seed: int) -> Turn:
    import kill

    return _killed(kill.campaign(15, seed, megabytes=9, shard=1))


def _kill_training(seed: int) -> Turn:
    import kill_training

    return _killed(kill_training.campaign(6, seed, *SMALL))


def _kill_torchrun(seed: int) -> Turn:
    import kill_training

    return _killed(kill_training.campaign(4, seed, *SMALL, minutes=("0",), processes=2))


def _times(tool: str, times: int) -> Callable[[int], Turn]:
    def run(seed: int) -> Turn:
        report = import_module(tool).campaign(times, seed)
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
        40,
        _corrupt,
    ),
    "kill": Part(
        "`compress` killed, gone on with: the bytes of a run that nobody disturbed",
        500,
        26,
        _kill,
    ),
    "kill_training": Part(
        "`train` killed, gone on with: the same weights, optimizer and metrics",
        200,
        33,
        _kill_training,
    ),
    "kill_torchrun": Part(
        "one of two ranks killed under torchrun, gone on with: the same again",
        50,
        9,
        _kill_torchrun,
    ),
    "race": Part(
        "two processes that write the same: one does, the other says who is there; never a mixture",
        200,
        12,
        _times("race", 18),
    ),
    "full_disk": Part(
        "no room for files: one line with the cure, what was there stays; then, the same bytes",
        100,
        9,
        _times("full_disk", 12),
    ),
    "change": Part(
        "inputs that change while they are read: all old rows, all new ones, or an error in words",
        100,
        9,
        _times("change", 12),
    ),
    "s3_faults": Part(
        "S3 that drops connections, is busy, late or silent, and commands killed while they ask: "
        "the same bytes, or one line with the cure and nothing half there; then, the same bytes",
        100,
        7,
        _times("s3_faults", 16),
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

    def add(self, seed: int, seconds: float, turn: Turn) -> None:
        """Count one turn."""
        self.seconds += seconds
        self.seeds.append(seed)
        self.cases += turn.cases
        self.counts += turn.counts
        self.findings += turn.findings


def alone(name: str, seed: int) -> Turn:
    """Run one turn in a process of its own, so that turns run at once, and a crash ends only it."""
    command = [sys.executable, str(SCRIPT), "--turn", name, "--seed", str(seed)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit status {done.returncode}: {done.stderr.strip()[-2000:]}")
    told = json.loads(done.stdout.splitlines()[-1])
    return Turn(told["cases"], Counter(told["counts"]), told["findings"])


def torture(
    minutes: float,
    seed: int,
    names: Sequence[str],
    kept: Callable[[dict[str, Any]], None],
    processes: int = 1,
    enough: bool = False,
    run: Callable[[str, int], Turn] = alone,
) -> dict[str, Tally]:
    """Run turns until the time is over, all parts getting on alike; `kept` gets results so far.

    So many processes run turns at once. With `enough`, a part ends when its least cases have run.
    """
    end = time.monotonic() + 60 * minutes
    tallies, begun = {name: Tally() for name in names}, Counter[str]()
    running: dict[Future[Turn], tuple[str, int, float]] = {}

    def following() -> str | None:
        left = [each for each in names if not enough or tallies[each].cases < PARTS[each].least]
        if time.monotonic() >= end or not left:
            return None
        return min(left, key=lambda each: begun[each] / PARTS[each].turns)

    with ThreadPoolExecutor(processes) as pool:
        while True:
            while len(running) < processes and (name := following()):
                running[pool.submit(run, name, seed)] = name, seed, time.monotonic()
                begun[name] += 1
                seed += 1
            if not running:
                return tallies
            for each in wait(running, return_when=FIRST_COMPLETED).done:
                name, its_seed, since = running.pop(each)
                try:
                    turn = each.result()
                except Exception as error:  # that a tool fails is a finding, too
                    turn = Turn(0, findings=[f"the tool failed with seed {its_seed}: {error!r}"])
                tallies[name].add(its_seed, time.monotonic() - since, turn)
            kept(
                {
                    name: {"what": PARTS[name].what, "least": PARTS[name].least, **vars(tally)}
                    for name, tally in tallies.items()
                    if tally.seeds
                }
            )


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60, help="a turn that has begun ends")
    parser.add_argument("--seed", type=int, default=0, help="of the first turn, then 1 more each")
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--processes", type=int, default=1, help="turns at once, on as many cores")
    parser.add_argument("--enough", action="store_true", help="end when the least cases have run")
    parser.add_argument("--keep", action="store_true", help="write to tools/results, not to build")
    parser.add_argument("--json", type=Path, help="write to this file instead")
    parser.add_argument("--turn", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.turn:
        print(json.dumps(vars(PARTS[chosen.turn].run(chosen.seed))))
        return 0
    names = chosen.parts.split(",")
    if unknown := set(names) - PARTS.keys():
        parser.error(f"there is no part {min(unknown)}; there are {', '.join(PARTS)}")
    about = describe(gpu=False)
    given = f"--minutes {chosen.minutes:g} --seed {chosen.seed} --parts {chosen.parts}"
    if chosen.processes > 1:
        given += f" --processes {chosen.processes}"
    about["command"] = f"python tools/torture.py {given}"
    folder = ROOT / ("tools/results" if chosen.keep else "build/torture")
    name = f"{about['machine_name']}-{about['date']}-seed-{chosen.seed}.json"
    path = chosen.json or folder / name

    def keep(parts: dict[str, Any]) -> None:
        write_json(path, {"about": about, "parts": parts})
        done = ", ".join(f"{name} {part['cases']:,}" for name, part in parts.items())
        print(f"\r{done}", end="", file=sys.stderr, flush=True)

    tallies = torture(chosen.minutes, chosen.seed, names, keep, chosen.processes, chosen.enough)
    print(f"\n{path}", file=sys.stderr)
    findings = [f"{name}: {each}" for name, tally in tallies.items() for each in tally.findings]
    print("\n".join(findings or ["nothing found"]))
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
