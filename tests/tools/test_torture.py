"""Turns of tools/torture.py, the page of its results, and short runs of what has no other test."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import change
import full_disk
import pytest
import reliability_page
import torture
from disturb import Report

from laconic import Corpus


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> dict[str, torture.Part]:
    """Three parts: one needs twice as many turns as others, one finds something, one fails."""
    clock = iter(range(10_000))
    monkeypatch.setattr(torture.time, "monotonic", lambda: float(next(clock)))

    def long(seed: int) -> torture.Turn:
        return torture.Turn(10, Counter({"fine": seed}))

    def finding(seed: int) -> torture.Turn:
        return torture.Turn(1, findings=[f"something with seed {seed}"])

    def failing(seed: int) -> torture.Turn:
        raise RuntimeError(f"no {seed}")

    known = {
        "long": torture.Part("what long does", 40, 4, long),
        "finding": torture.Part("what finding does", 2, 2, finding),
        "failing": torture.Part("what failing does", 2, 2, failing),
    }
    monkeypatch.setattr(torture, "PARTS", known)
    return known


def turn(name: str, seed: int) -> torture.Turn:
    """Run a turn in this process."""
    return torture.PARTS[name].run(seed)


@pytest.mark.parametrize("processes", [1, 3])
def test_parts_get_on_alike(parts: dict[str, torture.Part], processes: int) -> None:
    kept: list[Any] = []
    tallies = torture.torture(0.5, 7, list(parts), kept.append, processes, run=turn)
    long, finding, failing = (tallies[name] for name in parts)
    assert abs(len(long.seeds) - 2 * len(finding.seeds)) <= 2
    assert abs(len(failing.seeds) - len(finding.seeds)) <= 1
    seeds = [*long.seeds, *finding.seeds, *failing.seeds]
    assert sorted(seeds) == list(range(7, 7 + len(seeds)))
    assert long.cases == 10 * len(long.seeds)
    assert long.counts["fine"] == sum(long.seeds)
    assert finding.findings[0] == f"something with seed {finding.seeds[0]}"
    assert "RuntimeError('no" in failing.findings[0]
    assert kept[-1]["long"]["what"] == "what long does"
    json.dumps(kept[-1])


def test_parts_end_with_enough_cases(parts: dict[str, torture.Part]) -> None:
    names = ["long", "finding"]
    tallies = torture.torture(1e9, 7, names, lambda _: None, enough=True, run=turn)
    assert [tallies[name].cases for name in names] == [40, 2]


def test_turns_run_in_processes_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And one that fails says why."""
    script = tmp_path / "small.py"
    script.write_text(
        f"""
import sys
sys.path.insert(0, {str(torture.SCRIPT.parent)!r})
import torture
turn = lambda seed: torture.Turn(7 // seed, torture.Counter(fine=seed), ["something"])
torture.PARTS = {{"small": torture.Part("", 1, 1, turn)}}
sys.exit(torture.main())
"""
    )
    monkeypatch.setattr(torture, "SCRIPT", script)
    assert torture.alone("small", 3) == torture.Turn(2, Counter(fine=3), ["something"])
    with pytest.raises(RuntimeError, match=r"(?s)exit status 1: .*ZeroDivisionError"):
        torture.alone("small", 0)


def test_tools_are_loaded_when_they_run() -> None:
    """Processes that corrupt starts load this file, too: with torch they would lack memory."""
    say = "import sys, torture; print(*sys.modules)"
    command = [sys.executable, "-c", say]
    done = subprocess.run(command, cwd=torture.SCRIPT.parent, stdout=subprocess.PIPE, text=True)
    loaded = done.stdout.split()
    assert "disturb" in loaded
    assert not {"torch", "corrupt", "moto"} & set(loaded)


def test_the_page_adds_up_what_was_kept(parts: dict[str, torture.Part]) -> None:
    kept: list[Any] = []
    torture.torture(0.5, 7, list(parts), kept.append, run=turn)
    about = {"command": "python tools/torture.py", "commit": "0123abc", "date": "2026-11-16"}
    about |= {"machine": "a machine", "versions": {"python": "3.11"}}
    result = {"about": about, "parts": kept[-1]}
    page = reliability_page.page([result, result | {"about": about | {"note": "at night"}}])
    assert page.count("python 3.11 (at night)") == 1
    assert "Not yet run as often as wanted: `failing`." in page
    assert f"| `long` | what long does | {2 * kept[-1]['long']['cases']:,} | 40 |" in page
    assert f"- `finding`: {kept[-1]['finding']['findings'][0]}" in page
    assert page.count("commit 0123abc, 2026-11-16, a machine; python 3.11") == 2
    assert "Nothing was kept yet" in reliability_page.page([])


@pytest.mark.slow
def test_full_disks_and_changing_inputs() -> None:
    """As `python tools/full_disk.py --times 2`, and `tools/change.py --times 1`."""
    for report in (full_disk.campaign(2, seed=2, megabytes=1), change.campaign(1, seed=1)):
        assert not report.findings, str(report)


def test_findings_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A tool that never finds anything would look just like one that works."""
    assert full_disk.untold("Traceback\nAssertionError", full_disk.TOLD)
    assert not full_disk.untold(full_disk.TOLD[0] + "x" + full_disk.TOLD[1], full_disk.TOLD)

    def mix(words: list[str], **_: Any) -> Any:
        out = Path(words[words.index("-o") + 1])
        some = [*change.labels("a", 5), *change.labels("b", 5)]
        Corpus.from_documents(some, some).write(out)
        return type("Done", (), {"poll": lambda _: 0, "returncode": 0, "communicate": quiet})()

    def quiet(_: object, **__: Any) -> tuple[str, str]:
        return "", ""

    monkeypatch.setattr(change, "ROWS", 10)
    monkeypatch.setattr(change.subprocess, "Popen", mix)
    report = Report()
    wrong = change.change(tmp_path, change.Random(1), report)
    assert "which neither file has" in wrong
