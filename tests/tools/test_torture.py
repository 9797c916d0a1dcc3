"""Turns of tools/torture.py, the page of its results, and short runs of what has no other test."""

from __future__ import annotations

import json
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
    """Three parts: one takes three times as long as it should, one finds something, one fails."""
    clock = iter(range(10_000))
    monkeypatch.setattr(torture.time, "monotonic", lambda: float(next(clock)))

    def slow(seed: int) -> torture.Turn:
        for _ in range(2):
            next(clock)
        return torture.Turn(10, Counter({"fine": seed}))

    def finding(seed: int) -> torture.Turn:
        return torture.Turn(1, findings=[f"something with seed {seed}"])

    def failing(seed: int) -> torture.Turn:
        raise RuntimeError(f"no {seed}")

    made = {"slow": slow, "finding": finding, "failing": failing}
    known = {name: torture.Part(f"what {name} does", 5, 1, run) for name, run in made.items()}
    monkeypatch.setattr(torture, "PARTS", known)
    return known


def test_parts_take_turns_by_time(parts: dict[str, torture.Part]) -> None:
    kept: list[Any] = []
    tallies = torture.torture(0.5, 7, list(parts), kept.append)
    slow, finding, failing = (tallies[name] for name in parts)
    assert len(slow.seeds) < len(finding.seeds)
    assert abs(slow.seconds - finding.seconds) <= 3
    assert sorted([*slow.seeds, *finding.seeds, *failing.seeds]) == list(range(7, 7 + len(kept)))
    assert slow.cases == 10 * len(slow.seeds)
    assert slow.counts["fine"] == sum(slow.seeds)
    assert finding.findings[0] == f"something with seed {finding.seeds[0]}"
    assert "RuntimeError: no" in failing.findings[0]
    assert kept[-1]["slow"]["what"] == "what slow does"
    json.dumps(kept[-1])


def test_the_page_adds_up_what_was_kept(parts: dict[str, torture.Part]) -> None:
    kept: list[Any] = []
    torture.torture(0.5, 7, list(parts), kept.append)
    about = {"command": "python tools/torture.py", "commit": "0123abc", "date": "2026-11-16"}
    about |= {"machine": "a machine", "versions": {"python": "3.11"}}
    result = {"about": about, "parts": kept[-1]}
    page = reliability_page.page([result, result])
    assert f"| `slow` | what slow does | {2 * kept[-1]['slow']['cases']:,} | 5 |" in page
    assert "- `finding`: something with seed 8" in page
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
