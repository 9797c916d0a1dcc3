"""Compresses and trains with too little room for files, then with enough, and compares.

    python tools/full_disk.py --times 50 --seed 1

A limit on the size of files stands for the disk: the system refuses at a random moment. One line
must say that there is no room, and the cure; under the final name there must be what was there
before; and with room, the same bytes must come out as if nothing had happened.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

import kill_training
from disturb import Report, from_command_line
from kill import Trial, digests, words, write_input

LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv.pop(1)),) * 2)
from laconic.__main__ import main
main()
"""
NAMES = ("corpus.parquet", "corpus", "compact.parquet", "run")
TOLD = ("laconic: the disk is full: ", "; make room, or choose another place")
TRAINING = ("cannot be written to: ", "make room and go on with --resume")


def laconic(command: Sequence[str], most: int = 1 << 62) -> tuple[int, str]:
    """Run a command whose files may have so many bytes; return its status, and what it says."""
    limited = [sys.executable, "-c", LIMITED, str(most), *command]
    done = subprocess.run(limited, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr.strip()


def untold(said: str, wanted: tuple[str, str]) -> str:
    """Return what is wrong with a message; an empty text if nothing is."""
    last = said.splitlines()[-1] if said else ""
    fine = wanted[0] in last and last.endswith(wanted[1]) and "Traceback" not in said
    return "" if fine else f"it says {said[-300:]!r}"


def fill(trial: Trial, random: Random) -> str:
    """Compress with too little room; return what was wrong, an empty text if nothing was."""
    trial.clear()
    if random.random() < 0.5:
        trial.put_something_else()
    before = digests(trial.out)
    most = int(trial.right.largest * random.uniform(0, 1.1) ** 2)
    status, said = laconic(words(trial.source, trial.out, trial.shard, "--force"), most)
    trial.report.counts["there was room enough" if status == 0 else "there was no room"] += 1
    if status == 0:
        return "" if digests(trial.out) == trial.right.digests else "other bytes came out"
    if wrong := untold(said, TOLD):
        return wrong
    if digests(trial.out) != before:
        return "what was there before is another"
    flags = ["--resume"] if trial.folder.exists() else ["--force"]
    status, said = laconic(words(trial.source, trial.out, trial.shard, *flags))
    if status or digests(trial.out) != trial.right.digests:
        return f"with room, {flags[0]} gave other bytes, or {said[-300:]!r}"
    left = {each.name for each in trial.out.parent.iterdir()} - {trial.out.name}
    return f"{', '.join(sorted(left))} is left over" if left else ""


def fill_training(trial: kill_training.Trial, random: Random, report: Report) -> str:
    """Train with too little room; return what was wrong, an empty text if nothing was."""
    shutil.rmtree(trial.out)
    command = kill_training.words(trial.corpus, trial.out, trial.epochs, *trial.flags)
    status, said = laconic(command, int(trial.largest * random.uniform(0, 1.1)))
    report.counts["there was room enough" if status == 0 else "there was no room"] += 1
    full = untold(said, TRAINING) and untold(said, TOLD)  # the latter before there is a run
    if status and full:
        return full
    status, said = laconic(command)
    same = status == 0 and kill_training.outcome(trial.out) == trial.right
    return "" if same else f"with room, another outcome, or {said[-300:]!r}"


def campaign(times: int, seed: int, megabytes: float = 3) -> Report:
    """Let the disk be full so many times: for files, folders and compact files, and trainings."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "input.csv")
        write_input(source, megabytes)

        @cache
        def corpus(name: str) -> Trial:
            Path(folder, f"of {name}").mkdir()
            return Trial(source, Path(folder, f"of {name}", name), 1, report)

        @cache
        def training() -> kill_training.Trial:
            return kill_training.Trial(Path(folder), 60, 2, "0")

        for number in range(times):
            random, name = Random(f"{seed} {number}"), NAMES[number % len(NAMES)]
            if name == "run":
                wrong = fill_training(training(), random, report)
            else:
                wrong = fill(corpus(name), random)
            if wrong:
                report.findings.append(f"{name}, --seed {seed}, time {number}: {wrong}")
    return report


if __name__ == "__main__":
    sys.exit(from_command_line(campaign, __doc__))
