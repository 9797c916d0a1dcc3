"""A short run of tools/kill.py, and that it would find something if there were anything."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import kill
import pytest


@pytest.mark.slow
def test_what_is_killed_can_go_on() -> None:
    """As `python tools/kill.py --times 3 --megabytes 4 --shard 1`."""
    report = kill.campaign(times=3, seed=1, megabytes=4, shard=1)
    assert not report.findings, str(report)
    assert report.counts["killed"] + report.counts["ended before it could be killed"] >= 3


@pytest.mark.slow
def test_findings_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that never finds anything would look just like one that works."""
    run = kill.start

    def careless(source: Path, out: Path, *arguments: Any) -> subprocess.Popen[str]:
        if "--resume" in arguments:
            out.parent.joinpath("litter").touch()
        return run(source, out, *arguments)

    monkeypatch.setattr(kill, "start", careless)
    report = kill.campaign(times=2, seed=1, megabytes=0.1, shard=1)
    assert any(finding.endswith("litter is left over") for finding in report.findings)
