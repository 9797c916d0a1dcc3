"""A short run of tools/corrupt.py, and that it would find something if there were anything."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from random import Random

import corrupt
import damage
import pytest
import thrift_integers as thrift

linux = pytest.mark.skipif(sys.platform != "linux", reason="needs limits on memory")


@pytest.mark.slow
@linux
def test_damage_is_noticed() -> None:
    """As `python tools/corrupt.py --copies 60 --seed 1`; `--copy NUMBER` runs a finding again."""
    report = corrupt.campaign(seed=1, copies=60)
    assert report.copies == 60
    assert not report.findings, str(report)
    assert sum(counts["error"] for counts in report.outcomes.values()) > 30


@pytest.mark.parametrize(
    ("kind", "compact"),
    [(kind, compact) for compact, kinds in damage.KINDS.items() for kind in dict.fromkeys(kinds)],
)
def test_every_kind_does_damage(kind: damage.Kind, compact: bool) -> None:
    whole = damage.original(compact)
    copies = [kind(Random(k), whole) for k in range(3)]
    assert any(copy != whole.data for copy in copies)
    assert copies == [kind(Random(k), whole) for k in range(3)]


@pytest.mark.parametrize("compact", [False, True])
def test_the_original_is_sound(tmp_path: Path, compact: bool) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(damage.original(compact).data)
    assert corrupt.outcome(path) == ("sound", "")
    path.write_bytes(damage.parquet(damage.original(compact), damage.original(compact).stored))
    assert corrupt.outcome(path) == ("sound", "")


def test_all_integers_of_the_footer_are_found() -> None:
    whole = damage.original(compact=False)
    footer = whole.data[whole.footer : -8]
    spans, end = thrift.integers_of(footer, 0)
    assert end == len(footer)
    assert spans[0].value == 2  # the version of Parquet's footer
    assert [span.value for span in spans].count(damage.DOCUMENTS) >= 1
    for span in spans:
        value = span.value if span.is_size else thrift.zigzag(span.value)
        assert thrift.varint(value) == footer[span.start : span.end]


MISBEHAVING = """
import os, time, corrupt
def abort(path): os.abort()
def hang(path): time.sleep(99)
def grow(path): len(b"x" * (5 << 27))
def wrong(path): raise corrupt.WrongDataError("other data")
def leak(path): raise KeyError("x")
def child(pipe, folder):
    corrupt.examine, corrupt.MEMORY = {how}, 1 << 29
    corrupt._be_child(pipe, folder)
"""


@pytest.mark.slow
@linux
@pytest.mark.parametrize(
    ("how", "found"),
    [
        ("abort", "crash in .*: died of SIGABRT"),
        ("hang", "hang in .*: more than 0.5 s"),
        ("grow", "memory in .*: [0-9]+ MB at its peak"),
        ("wrong", "WRONG in .*: other data"),
        ("leak", "exception in .*: KeyError"),
    ],
)
def test_findings_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, found: str
) -> None:
    """A tool that never finds anything would look just like one that works."""
    (tmp_path / f"misbehaving_{how}.py").write_text(MISBEHAVING.format(how=how))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(corrupt, "CHILD", importlib.import_module(f"misbehaving_{how}").child)
    monkeypatch.setattr(corrupt, "PATIENCE", 0.5 if how == "hang" else 30)
    report = corrupt.campaign(seed=1, copies=2, workers=1)
    assert report.copies == 2
    assert len(report.findings) == 2
    assert all(re.match(found, finding) for finding in report.findings), str(report)
