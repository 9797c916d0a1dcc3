"""Lets two processes write the same at the same moment, and looks at what comes out.

    python tools/race.py --times 50 --seed 1

One of them must do its work, the other say which process is there, or find the work done; what is
written must be all of one of them, with nothing left beside it.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, TypeAlias

from disturb import Report, from_command_line

from laconic import Corpus

ROWS = 3000
FINE = {"done", "NothingToDoError"}
IN_USE = re.compile(r" is in use: process \d+ on .+ writes it; wait until that ends, or choose")
TINY = ["--model", "sequence", "--embedding-size", "4", "--width", "4"]
SMALL = [*TINY, "--epochs", "2", "--resume"]
Command: TypeAlias = list[str]

# Loads what is heavy once; then two processes at a time run a command each, after a delay of each.
CHILD = """
import contextlib, importlib, json, os, sys, time
from laconic.cli import app

rounds, modules = json.loads(sys.argv[1]), json.loads(sys.argv[2])
for module in modules:
    with contextlib.suppress(ImportError):  # reports need what is not everywhere
        importlib.import_module(module)

def run(words, delay, barrier):
    os.read(barrier, 1)
    time.sleep(delay)
    sys.stdout = sys.stderr = open(os.devnull, "w")
    try:
        app(words, exit_on_error=False, result_action="return_value")
    except Exception as error:
        return [type(error).__name__, str(error)]
    return ["done", ""]

for commands, delays in rounds:
    barrier, start = os.pipe()
    ends = []
    for words, delay in zip(commands, delays):
        end, answer = os.pipe()
        if not os.fork():
            os.write(answer, json.dumps(run(words, delay, barrier)).encode())
            os._exit(0)
        os.close(answer)
        ends.append(end)
    os.write(start, b"x" * len(commands))
    print(json.dumps([json.loads(open(end).read()) for end in ends]), flush=True)
"""


class Round(NamedTuple):
    """Two commands, how long each waits first, and what returns what is wrong in the end."""

    commands: tuple[Command, Command]
    delays: tuple[float, float]
    wrong: Callable[[], str]


def race(rounds: Sequence[Round], modules: Sequence[str]) -> list[list[tuple[str, str]]]:
    """Run one round after the other; return how each command of each ended: an error, its words."""
    arguments = [json.dumps([each[:2] for each in rounds]), json.dumps(modules)]
    command = [sys.executable, "-c", CHILD, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=900, check=True)
    return [[(kind, said) for kind, said in json.loads(line)] for line in done.stdout.splitlines()]


def unfair(ends: Sequence[tuple[str, str]]) -> str:
    """Return what is wrong with how two commands ended; an empty text if nothing is."""
    if not any(kind in FINE for kind, _ in ends):
        return f"neither did its work: {ends}"
    bad = [f"{kind}: {said}" for kind, said in ends if kind not in FINE and not IN_USE.search(said)]
    return "; ".join(bad)


def write_csv(path: Path, word: str, rows: int) -> None:
    """Write so many documents, each with the word as its label."""
    lines = (f"{word} {number} {word} {number * 7919},{word}\n" for number in range(rows))
    path.write_text("text,label\n" + "".join(lines))


class Rounds:
    """Makes rounds of every kind; what they share lies in a folder."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._random, self._made = folder, Random(seed), 0
        for word in ("one", "two"):
            write_csv(folder / f"{word}.csv", word, ROWS)
        texts = [f"{word} {number}" for number in range(30) for word in ("one", "two")]
        Corpus.from_documents(texts, ["one", "two"] * 30).write(folder / "small.parquet")

    def corpora(self, name: str) -> Round:
        """Compress two inputs to one name; half the time, another corpus is in the way."""
        out = self._new() / name
        flags = ["-o", str(out), "--label", "label", "--shard", "1", "--force"]
        inputs = [str(self._folder / f"{word}.csv") for word in ("one", "two")]
        if self._random.random() < 0.5:
            Corpus.from_documents(["old"]).write(out if out.suffix else out / "old.parquet")

        def wrong() -> str:
            labels = Corpus.open(out).labels
            mixed = len(labels) != ROWS or len(set(labels)) != 1
            return "the corpora are mixed" if mixed else self._left(out)

        return self._round([["compress", each, *flags] for each in inputs], wrong)

    def resumed(self, name: str) -> Round:
        """Go on twice with the same interrupted work."""
        begun, rows = self._folder / f"begun {name}", 40_000
        source = self._folder / "long.csv"
        words = [str(source), "--shard", "1", "--resume", "-o"]
        if not source.exists():
            write_csv(source, "word " * 20, rows)
        if not begun.exists():
            begun.mkdir()
            child = subprocess.Popen([*LACONIC, "compress", *words, str(begun / name)])
            while not (begun / f"{name}.partial/shards/shard-00000.parquet").exists():
                if child.poll() is not None:
                    raise RuntimeError("it ended before it could be interrupted")
                time.sleep(0.005)
            child.kill()
            child.wait()
        out = self._new() / name
        shutil.copytree(begun, out.parent, dirs_exist_ok=True)
        command = ["compress", *words, str(out)]

        def wrong() -> str:
            found = len(Corpus.open(out))
            return f"{found} rows of {rows}" if found != rows else self._left(out)

        return self._round([command, command], wrong)

    def trained(self, _: str) -> Round:
        """Train the same run twice."""
        out = self._new() / "run"
        command = ["train", str(self._folder / "small.parquet"), "-o", str(out), *SMALL]

        def wrong() -> str:
            lines = (out / "metrics.jsonl").read_text().splitlines()
            epochs = [json.loads(line).get("epoch") for line in lines]
            return self._left(out) if epochs == [1, 2, None] else f"the epochs are {epochs}"

        return self._round([command, command], wrong)

    def _new(self) -> Path:
        self._made += 1
        folder = self._folder / str(self._made)
        folder.mkdir()
        return folder

    def _round(self, commands: list[Command], wrong: Callable[[], str]) -> Round:
        # Half of them at once, the others up to a tenth of a second apart.
        apart = self._random.choice((0.0, self._random.uniform(0, 0.1)))
        return Round((commands[0], commands[1]), (0.0, apart), wrong)

    def _left(self, out: Path) -> str:
        names = {each.name for each in out.parent.rglob("*")}
        left = [name for name in names if name.endswith((".partial", ".lock", ".part"))]
        return f"{', '.join(sorted(left))} is left over" if left else ""


LACONIC = [sys.executable, "-m", "laconic"]
MODULES = ["laconic.engines.build"]
KINDS: dict[str, tuple[Callable[[Rounds, str], Round], str, list[str]]] = {
    "two compress to a file": (Rounds.corpora, "out.parquet", MODULES),
    "two compress to a folder": (Rounds.corpora, "out", MODULES),
    "two resume a file": (Rounds.resumed, "out.parquet", MODULES),
    "two resume a folder": (Rounds.resumed, "out", MODULES),
    "two train a run": (
        Rounds.trained,
        "run",
        ["laconic.training.loop", "laconic.report.run_page", "torch._dynamo"],
    ),
}


def campaign(times: int, seed: int) -> Report:
    """Let so many pairs race, of all kinds in turn; training, which takes longest, less often."""
    report = Report()
    names = [*list(KINDS)[:-1] * 2, list(KINDS)[-1]]
    for kind in KINDS:
        count = sum(names[number % len(names)] == kind for number in range(times))
        with tempfile.TemporaryDirectory() as folder:
            make, name, modules = KINDS[kind]
            rounds = Rounds(Path(folder), seed)
            some = [make(rounds, name) for _ in range(count)]
            for number, (each, ends) in enumerate(zip(some, race(some, modules), strict=True)):
                report.counts[kind] += 1
                if wrong := unfair(ends) or each.wrong():
                    report.findings.append(f"{kind}, --seed {seed}, round {number}: {wrong}")
                if any(IN_USE.search(said) for _, said in ends):
                    report.counts["one was told who is there"] += 1
    return report


if __name__ == "__main__":
    sys.exit(from_command_line(campaign, __doc__))
