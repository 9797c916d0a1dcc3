"""A short run of tools/s3_faults.py, and that it would find something if there were anything."""

from __future__ import annotations

from contextlib import chdir
from pathlib import Path
from typing import Any

import forked
import pytest
import s3_faults
from disturb import Report
from faulty_proxy import Fault
from s3_faults import End, Job, Trial


@pytest.mark.slow
def test_what_s3_does_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python tools/s3_faults.py --times 2 --seed 2`."""

    def start(words: list[str], folder: Path) -> forked.Forked:
        with chdir(folder):
            return forked.Forked(words)

    monkeypatch.setattr(s3_faults, "start", start)
    report = s3_faults.campaign(2, seed=2, megabytes=5)
    assert not report.findings, str(report)


class Careless:
    """Runs commands that always end the same; the first one, which nobody disturbs, well."""

    def __init__(self, *ends: End) -> None:
        self._ends = [End(0, "", 5), *ends]

    def laconic(self, *_: Any) -> End:
        return self._ends.pop(0)

    def clear(self) -> None:
        pass

    def left(self, _: str) -> list[str]:
        return ["litter"]


@pytest.mark.parametrize(
    ("end", "found", "told"),
    [
        (End(0, "", 5), "x", "it ended well, with another output"),
        (End(1, "Traceback\nOSError", 5), "", "it says 'Traceback"),
        (End(1, "laconic: it is gone", 5), "", "it says 'laconic: it is gone'"),
        (End(1, "laconic: no; check the connection", 5), "x", "part of an output is taken for all"),
        (End(-9, "", 5), "x", "part of an output is taken for all"),
        (End(-9, "", 5), "", "going on failed: exit status 1: no"),
    ],
)
def test_findings_are_reported(end: End, found: str, told: str) -> None:
    """A tool that never finds anything would look just like one that works."""
    outputs = ["right", "", found, "right"]
    job = Job([], "out", [], lambda: outputs.pop(0), lambda: False)
    place: Any = Careless(end, End(1, "no", 5))
    random = s3_faults.Random(3)  # of which only one fault comes in a row
    assert told in Trial(place, job, Report()).disturb(random)


def test_what_is_left_over_is_reported() -> None:
    outputs = ["right", "", "right", "right"]
    job = Job([], "out", [], lambda: outputs.pop(0), lambda: False)
    place: Any = Careless(End(0, "", 5), End(0, "", 5))
    assert "litter is left over" in Trial(place, job, Report()).disturb(s3_faults.Random(3))


def test_a_fault_says_when() -> None:
    assert str(Fault("503, slow down", 3, 6)) == "503, slow down, six times, from request 3 on"
