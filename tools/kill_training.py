"""Kills `laconic train` at random moments, lets it go on, and compares what comes out.

    python tools/kill_training.py --times 20 --seed 1
    python tools/kill_training.py --times 20 --processes 2    # under torchrun, one of its ranks

The settings, and the best model once there is one, must be whole at every moment; in the end the
weights, the optimizer's state and the metrics, all but times and memory, must be those of a run
that nobody disturbed. tests/cli/test_train.py runs a few times.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from disturb import Report, finish, kill, largest

from laconic import Corpus, samples
from laconic.training.run import Run

DIFFERENT = ("seconds", "documents_per_s", "peak_memory_mb")  # from run to run
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "{processes}")
SETTINGS = ["--model", "sequence", "--embedding-size", "8", "--width", "8", "--batch-size", "16"]
SETTINGS += ["--seed", "3"]


def write_corpus(path: Path, documents: int) -> None:
    """Write a small corpus with labels."""
    split = samples.load("kjv").train
    texts = [text[:200] for text in split.documents[:documents]]
    Corpus.from_documents(texts, split.labels[:documents]).write(path)


def words(corpus: Path, out: Path, epochs: int, *flags: str) -> list[str]:
    """Return the command that trains, or goes on with it."""
    return ["train", str(corpus), "-o", str(out), *SETTINGS, "--epochs", str(epochs), *flags]


def start(
    corpus: Path, out: Path, epochs: int, *flags: str, processes: int = 1
) -> subprocess.Popen[str]:
    """Start that command; on several processes under torchrun."""
    several = TORCHRUN if processes > 1 else ()
    command = [sys.executable, *(each.format(processes=processes) for each in several)]
    return subprocess.Popen(
        [*command, "-m", "laconic", *words(corpus, out, epochs, *flags)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def outcome(out: Path) -> dict[str, Any]:
    """Return what must be the same: digests of tensors, and metrics without times."""
    metrics = [
        {name: value for name, value in line.items() if name not in DIFFERENT}
        for line in Run.open(out).metrics()
    ]
    last = sorted((out / "checkpoints").iterdir())[-1]
    files = [out / "model/model.safetensors", out / "model/config.json", out / "config.json"]
    files += [last / "model.safetensors", last / "optimizer.safetensors"]
    digests = {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    return {"metrics": metrics, **digests}


def some_moment(
    random: Random, out: Path, begins: float, ends: float, steps: Sequence[int]
) -> Callable[[float], bool]:
    """Return what says, given the seconds since the start, whether to kill now.

    Time alone would seldom hit the moments between two files: half the time, a file decides.
    """
    if random.random() < 0.5:
        end = random.uniform(begins, ends)
        return lambda passed: passed >= end
    step = f"step-{random.choice(steps):08}"
    work = f"checkpoints/.{step}.partial"
    names = ["config.json", "metrics.jsonl", ".model.partial", "model/model.safetensors"]
    names += [f"checkpoints/{step}", work, f"{work}/{step}/optimizer.safetensors"] * 2
    awaited = out / random.choice([*names, "model/.files.partial"])
    before = awaited.stat().st_mtime_ns if awaited.exists() else None

    def now(_: float) -> bool:
        try:
            return awaited.stat().st_mtime_ns != before
        except OSError:
            return False

    return now


class Trial:
    """One training, again and again, and disturbed."""

    def __init__(
        self, folder: Path, documents: int, epochs: int, minutes: str, processes: int = 1
    ) -> None:
        self.corpus, self.out = folder / "corpus.parquet", folder / f"run {minutes}"
        self.epochs, self.flags = epochs, ("--checkpoint-minutes", minutes, "--resume")
        self.processes = processes
        if not self.corpus.exists():
            write_corpus(self.corpus, documents)
        begun = time.monotonic()
        process = self._start()
        while process.poll() is None and not (self.out / "config.json").exists():
            time.sleep(0.01)
        self.begins = time.monotonic() - begun
        metrics = self.out / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and "done" in metrics.read_text()):
            time.sleep(0.01)
        self.ends = time.monotonic() - begun
        finish(process)
        self.right, self.largest = outcome(self.out), largest(self.out)
        steps = [line["step"] for line in self.right["metrics"] if "step" in line]
        self.steps = steps if minutes != "0" else range(1, steps[-1] + 1)

    def disturb(self, seed: int, number: int, report: Report) -> None:
        """Train and kill, go on and kill, go on to the end; findings go to the report."""
        random, where = Random(f"{seed} {number}"), f"--seed {seed}, time {number}"
        shutil.rmtree(self.out)
        for _ in range(random.choice((1, 1, 2, 3))):
            # What comes before the first file is the same every time.
            moment = some_moment(random, self.out, 0.9 * self.begins, self.ends, self.steps)
            rank = random.randrange(self.processes) if self.processes > 1 else None
            if kill(self._start(), moment, rank):
                report.counts["killed" if rank is None else f"killed rank {rank}"] += 1
            else:
                report.counts["ended before it could be killed"] += 1
            found = self._found(where, report)
            report.counts[f"found {found}"] += 1
            if found == "a finished run":
                break
        try:
            finish(self._start())
        except RuntimeError as error:
            report.findings.append(f"{where}: going on failed: {error}")
            return
        here = outcome(self.out)
        for name in self.right:
            if here.get(name) != self.right[name]:
                report.findings.append(f"{where}: {name} is another")
        for left in self.out.rglob("*.partial*"):
            report.findings.append(f"{where}: {left} is left over")

    def _start(self) -> subprocess.Popen[str]:
        where = self.corpus, self.out, self.epochs
        return start(*where, *self.flags, processes=self.processes)

    def _found(self, where: str, report: Report) -> str:
        """Return what a kill left; what is not whole is a finding."""
        if not (self.out / "config.json").exists():
            return "nothing begun"
        try:
            run = Run.open(self.out)
            run.metrics()
            if (self.out / "model/model.safetensors").exists():
                run.model()
            whole = len(run.checkpoints.whole())
        except ValueError as error:
            report.findings.append(f"{where}: after a kill, {error}")
            return "something broken"
        return "a finished run" if run.finished else f"a run with {whole} checkpoints"


def campaign(
    times: int,
    seed: int,
    documents: int = 400,
    epochs: int = 4,
    minutes: Sequence[str] = ("0", "60"),
    progress: bool = False,
    processes: int = 1,
) -> Report:
    """Disturb so many times: with a checkpoint after each step and after each epoch, in turn."""
    report = Report()
    with tempfile.TemporaryDirectory() as folder:
        trials = [Trial(Path(folder), documents, epochs, each, processes) for each in minutes]
        if any(each.right["metrics"] != trials[0].right["metrics"] for each in trials):
            report.findings.append("checkpoints change what comes out")
        for number in range(times):
            trials[number % len(trials)].disturb(seed, number, report)
            if progress:
                print(f"\r{number + 1} of {times}", end="", file=sys.stderr, flush=True)
    if progress:
        print(file=sys.stderr)
    return report


def main() -> int:
    """Run from the command line; the exit status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--processes", type=int, default=1, help="more than one: under torchrun")
    chosen = parser.parse_args()
    sizes = chosen.times, chosen.seed, chosen.documents, chosen.epochs
    report = campaign(*sizes, progress=sys.stderr.isatty(), processes=chosen.processes)
    print(report)
    return 1 if report.findings else 0


if __name__ == "__main__":
    sys.exit(main())
