"""benchmarks.cluster: what it says of a command's processes, on an input made in a second."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.cluster import FLAGS, digest, kinds, repeated, watched


def test_an_input_is_repeated_and_a_command_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    told = repeated(tmp_path, gigabytes=0.004)
    many = b"".join(each.read_bytes() for each in sorted((tmp_path / "many").iterdir()))
    assert many == (tmp_path / "one.csv").read_bytes()
    assert len(many) == told["bytes"]
    assert told["copies"] > 1
    found = {}
    for name in ("many", "one.csv"):
        row = watched(["compress", str(tmp_path / name), "-o", str(tmp_path / "c"), *FLAGS])
        assert 50e6 < row["peak_memory"]["driver"] < 1.5e9
        found[name] = digest(tmp_path / "c")
        (tmp_path / "c").rename(tmp_path / f"c {name}")
    some = min((tmp_path / "c many").iterdir())
    some.write_bytes(some.read_bytes() + b"x")
    assert digest(tmp_path / "c many") != found["many"]


def test_processes_are_told_apart() -> None:
    worker = subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.read()", "ray::work"], stdin=subprocess.PIPE
    )
    try:
        found = kinds(os.getpid())
        assert found[os.getpid()] == "driver"
        assert found[worker.pid] == "worker"
        assert kinds(worker.pid) == {worker.pid: "driver"}
    finally:
        worker.communicate(b"")
