"""The worst inputs of readers: what is committed holds what the docs promise of memory."""

from __future__ import annotations

from pathlib import Path

from benchmarks.readers import measured
from benchmarks.readers_report import section
from benchmarks.report import newest
from benchmarks.worst_inputs import Worst, worst_inputs
from laconic.formats.registry import MODULES


def test_every_reader_stays_below_a_gigabyte_beside_the_largest_document() -> None:
    path, figures = newest("readers")
    rows = figures["readers"]["rows"]
    assert {row["reader"] for row in rows} == set(MODULES)
    assert {row["kind"] for row in rows} == {"wide", "tiny", "huge", "bomb"}
    for row in rows:
        assert row["peak_memory"] <= 1_000_000_000 + row["largest"], row
        # Either it was read, or what cannot be is told, and never as a lack of memory.
        assert row["documents"] or row["rejected"] or row["error"]
        assert "out of memory" not in (row["error"] or "")
    assert "none took more than 1 GB beside the largest document" in section(path, figures)


def test_an_input_is_measured_in_a_process_of_its_own(tmp_path: Path) -> None:
    good = Worst("lines", "tiny", "two documents", "a.txt.gz", [b"one\n", b"two\n"])
    row = measured(good, tmp_path)
    assert (row["documents"], row["error"]) == (2, None)
    assert 10_000_000 < row["peak_memory"] < 500_000_000
    bad = Worst("csv", "bomb", "no text", "a.csv", [b"a,b\n1,2\n"])
    row = measured(bad, tmp_path)
    assert row["documents"] is None
    assert row["error"].startswith("a.csv: which column is the text?")


def test_inputs_are_made_as_they_are_asked_for(tmp_path: Path) -> None:
    kinds = [(each.reader, each.kind) for each in worst_inputs(quick=True)]
    assert len(kinds) > 30
