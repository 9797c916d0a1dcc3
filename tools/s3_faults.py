"""Lets S3 fail at random moments while Laconic reads and writes there, and looks at what comes out.

    python tools/s3_faults.py --times 50 --seed 1

The store is moto's, on 127.0.0.1, behind a proxy that drops connections, answers that it is busy,
late or not at all, or breaks off in the middle; or the process is killed while it asks. A command
must end well, with the bytes of one that nobody disturbed, or with one line that says what to do,
and nobody may take what is there meanwhile for all of it. When the store is well again, going on
must succeed, with nothing left on this machine.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import kill_training
import pyarrow as pa
import pyarrow.csv
import pyarrow.fs
import pyarrow.parquet as pq
from disturb import PATIENCE, Report, from_command_line
from faulty_proxy import Fault, Proxy, proxy
from kill import Digests, digests, write_input

from laconic import Corpus
from laconic.corpus import CorpusError
from laconic.training.run import Run

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from s3_server import BUCKET, environment, server

CURES = ("check the connection", "go on with --resume")
THERE = f"s3://{BUCKET}"
COLUMNS = ["--text", "text", "--label", "label", "--codec", "lzd"]
LARGE = 14_000_000  # letters of chance: their corpus is uploaded in several parts


class End(NamedTuple):
    """How a command ended, what it said, and how often it asked the store."""

    status: int
    said: str
    requests: int


def start(words: list[str], folder: Path) -> subprocess.Popen[str]:
    """Start a command in a folder."""
    return subprocess.Popen(
        [sys.executable, "-m", "laconic", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
    )


class Place:
    """A folder here, and a bucket behind a proxy; outputs are in `out` of either."""

    def __init__(self, folder: Path, files: Any, between: Proxy) -> None:
        self.folder, self._files, self._between = folder, files, between

    def laconic(self, words: list[str], fault: Fault | None = None) -> End:
        """Run a command while the fault is what S3 does."""
        process = start(words, self.folder)
        with self._between.failing(fault, process.kill) as requests:
            said = process.communicate(timeout=PATIENCE)[1].strip()
            return End(process.returncode, said, requests())

    def upload(self, name: str) -> None:
        """Put a file of the folder, or all files of one below it, into the bucket."""
        here = self.folder / name
        for each in [here] if here.is_file() else here.rglob("*"):
            if each.is_file():
                path = f"{BUCKET}/{each.relative_to(self.folder)}"
                with self._files.open_output_stream(path, compression=None) as file:
                    file.write(each.read_bytes())

    def uploaded(self) -> Digests:
        """Return the digest of each output in the bucket."""
        inside = pa.fs.FileSelector(f"{BUCKET}/out", allow_not_found=True, recursive=True)
        found = {}
        for info in self._files.get_file_info(inside):
            if info.is_file:
                with self._files.open_input_file(info.path) as file:
                    found[info.path] = hashlib.sha256(file.read()).hexdigest()
        return found

    def put_something_else(self, out: str) -> None:
        """Put another corpus under the name of one."""
        suffix = "" if Path(out).suffix else "/another.parquet"
        self._files.create_dir(f"{BUCKET}/out")
        with self._files.open_output_stream(f"{out.removeprefix('s3://')}{suffix}") as file:
            file.write((self.folder / "small.parquet").read_bytes())

    def clear(self) -> None:
        """Remove all outputs, and what is left of work."""
        for name in ("out", "cache"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
            (self.folder / name).mkdir()
        self._files.delete_dir_contents(f"{BUCKET}/out", missing_dir_ok=True)

    def left(self, out: str) -> list[str]:
        """Return what is still here beside the output."""
        cache = [each for each in (self.folder / "cache").rglob("*") if each.is_file()]
        beside = {*(self.folder / "out").iterdir()} - {self.folder / out}
        return sorted(str(each.relative_to(self.folder)) for each in [*cache, *beside])


class Job(NamedTuple):
    """A command, and what can be asked of its output."""

    words: list[str]
    out: str
    flags: list[str]
    """To begin, and to go on."""
    found: Callable[[], Any]
    """What is under the output's name, to be compared."""
    refused: Callable[[], bool]
    """Whether nobody takes what is there for an output that is whole."""


class Trial:
    """One job, done again and again, while S3 fails in ever other ways."""

    def __init__(self, place: Place, job: Job, report: Report) -> None:
        self.place, self.job, self.report = place, job, report
        place.clear()
        self.requests = self._run().requests
        self.right = job.found()

    def _run(self, fault: Fault | None = None) -> End:
        end = self.place.laconic([*self.job.words, "-o", self.job.out, *self.job.flags], fault)
        if fault is None and end.status:
            raise RuntimeError(f"exit status {end.status}: {end.said[-300:]}")
        return end

    def disturb(self, random: Random) -> str:
        """Run while S3 fails, then when it is well; return what was wrong, or an empty text."""
        self.place.clear()
        if self.job.out.startswith(THERE) and random.random() < 0.3:
            self.place.put_something_else(self.job.out)
        before = self.job.found()
        for _ in range(random.choice((1, 1, 2))):
            fault = Fault.some(random, self.requests)
            end = self._run(fault)
            self.report.counts[fault.kind] += 1
            if wrong := self._wrong(end, before):
                return f"{fault}: {wrong}"
            if end.status == 0:
                break
        try:
            self._run()
        except RuntimeError as error:
            return f"{fault}: going on failed: {error}"
        if self.job.found() != self.right:
            return f"{fault}: in the end there is another output"
        left = self.place.left(self.job.out)
        return f"{fault}: {', '.join(left)} is left over" if left else ""

    def _wrong(self, end: End, before: Any) -> str:
        """Return what is wrong after a command while S3 failed; an empty text if nothing is."""
        found = self.job.found()
        if end.status == 0:
            self.report.counts["ended well"] += 1
            return "" if found == self.right else "it ended well, with another output"
        if end.status > 0:
            self.report.counts["told what to do"] += 1
            if wrong := untold(end.said):
                return wrong
        whole = found in (before, self.right) or self.job.refused()
        return "" if whole else "part of an output is taken for all of it"


def untold(said: str) -> str:
    """Return what is wrong with the words of a command that failed; an empty text if nothing is."""
    lines = [line for line in said.splitlines() if line.strip()]
    fine = lines and lines[-1].startswith("laconic: ") and "Traceback" not in said
    return "" if fine and any(cure in lines[-1] for cure in CURES) else f"it says {said[-400:]!r}"


def write_inputs(place: Place, megabytes: float) -> None:
    """Write documents in some formats, and a run that can predict; all are in the bucket, too."""
    path = place.folder / "in.csv"
    write_input(path, megabytes)
    (place.folder / "in.csv.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    pq.write_table(pa.csv.read_csv(path), place.folder / "in.parquet", row_group_size=2000)
    random = Random(0)
    texts = [random.randbytes(35_000).hex() for _ in range(LARGE // 70_000)]
    (place.folder / "large.txt").write_text("\n".join(texts))
    kill_training.write_corpus(place.folder / "small.parquet", 60)
    end = place.laconic([*kill_training.words(Path("small.parquet"), Path("run"), 1)])
    if end.status:
        raise RuntimeError(end.said)
    for name in ("in.csv", "in.csv.gz", "in.parquet", "small.parquet", "run"):
        place.upload(name)


def jobs(place: Place) -> Iterator[Job]:
    """Yield corpora to S3, and from there; predictions to S3, and a training from there."""

    def compress(source: str, out: str, *options: str) -> Job:
        words = ["compress", source, "--shard", "1", *options]
        there = out.startswith(THERE)
        found = place.uploaded if there else partial(digests, place.folder / out)
        return Job(words, out, ["--resume", "--force"], found, partial(_refused, out))

    def _refused(out: str) -> bool:
        try:
            Corpus.open(out if out.startswith(THERE) else place.folder / out)
        except (FileNotFoundError, CorpusError):
            return True
        return False

    def trained() -> Any:
        out = place.folder / "out/run"
        finished = (out / "config.json").exists() and Run.open(out).finished
        return kill_training.outcome(out) if finished else None

    yield compress("in.csv", f"{THERE}/out/corpus.parquet", *COLUMNS)
    yield compress(f"{THERE}/in.csv", "out/corpus.parquet", *COLUMNS, "--on-error", "skip")
    yield compress("in.csv", f"{THERE}/out/corpus", *COLUMNS)
    yield compress(f"{THERE}/in.csv.gz", "out/corpus", *COLUMNS)
    yield compress("large.txt", f"{THERE}/out/large.parquet", "--codec", "none")
    yield compress(f"{THERE}/in.parquet", f"{THERE}/out/corpus", *COLUMNS, "--on-error", "skip")
    words = ["predict", f"{THERE}/run", f"{THERE}/small.parquet"]
    yield Job(words, f"{THERE}/out/p.csv", ["--force"], place.uploaded, lambda: False)
    words = ["train", f"{THERE}/small.parquet", *kill_training.SETTINGS, "--epochs", "2"]
    yield Job(words, "out/run", ["--resume"], trained, lambda: True)


def campaign(times: int, seed: int, megabytes: float = 9) -> Report:
    """Let S3 fail so many times, for all jobs in turn."""
    report = Report()
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto's server tells every request
    with (
        tempfile.TemporaryDirectory() as folder,
        server() as store,
        proxy(store.host, store.port) as between,
        mock.patch.dict(os.environ, environment(between.endpoint)),
        mock.patch.dict(os.environ, {"XDG_CACHE_HOME": f"{folder}/cache", "MPLCONFIGDIR": folder}),
    ):
        place = Place(Path(folder), store.files, between)
        write_inputs(place, megabytes)
        trials: dict[int, Trial] = {}
        every = list(jobs(place))
        for number in range(times):
            which = number % len(every)
            if which not in trials:
                trials[which] = Trial(place, every[which], report)
            if wrong := trials[which].disturb(Random(f"{seed} {number}")):
                what = " ".join([*every[which].words[:2], "-o", every[which].out])
                report.findings.append(f"{what}, --seed {seed}, time {number}: {wrong}")
    return report


if __name__ == "__main__":
    sys.exit(from_command_line(campaign, __doc__))
