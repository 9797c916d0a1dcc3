"""benchmarks.against measures what it says: here a checkout beside itself."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.command import ROOT
from laconic import _core

COMMAND = [sys.executable, "-m", "benchmarks.against", "--quick", "--base"]


@pytest.mark.slow
def test_a_checkout_beside_itself_comes_to_the_same(tmp_path: Path) -> None:
    base = tmp_path / "base"
    shutil.copytree(ROOT / "src", base / "src", ignore=shutil.ignore_patterns("_core.*.so"))
    (base / "build" / "wheel").mkdir(parents=True)
    shutil.copy(_core.__file__, base / "build" / "wheel")
    out, names = tmp_path / "figures.json", ["compress-lz78", "corpus-write", "import"]
    words = [*COMMAND, base, "--json", out, "--only", *names]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    rows = json.loads(out.read_text())["against"]
    assert set(rows) == {*names, "corpus-write-compact"}
    assert all(row["same"] and len(row["base_seconds"]) == 2 for row in rows.values())
    assert all(name in done.stdout for name in rows)


def test_a_checkout_without_a_core_is_refused(tmp_path: Path) -> None:
    done = subprocess.run([*COMMAND, tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert "has no compiled _core" in done.stderr
