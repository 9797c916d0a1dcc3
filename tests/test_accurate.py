"""The experiment of the preset accurate: rows of a bundled sample, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.accurate import REPORT, RESULTS, ngrams, report, run
from experiments.paper.results import read
from laconic.training.config import PRESETS


def test_page_shows_the_newest_results() -> None:
    assert REPORT.read_text("utf-8") == report(RESULTS)


def test_rows_of_both_codecs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"width": 8, "embedding_size": 8, "epochs": 3, "local_size": 8, "learning_rate": 0.01}
    monkeypatch.setitem(PRESETS, "accurate", PRESETS["accurate"] | small)
    monkeypatch.chdir(tmp_path)
    run("bacteria", ["repair", "none"], [3], "cpu", tmp_path / "results", processes=1)
    for codec in ("repair", "none"):
        figures = read(tmp_path / "results" / "bacteria" / f"accurate-{codec}-3.json")
        assert figures["config"]["model"] == "sequence"
        assert figures["config"]["local_ngrams"] == 7
        assert figures["config"]["seed"] == 3
        assert figures["test"]["accuracy"] > 0.3
        shown = f"| {100 * figures['test']['accuracy']:.2f} | 1 | "
        assert shown in report(tmp_path / "results", "bacteria")
    run("bacteria", ["repair"], [3], "cpu", tmp_path / "results", processes=1)  # there already


def test_rows_that_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "accurate", PRESETS["accurate"] | {"ngram_buckets": 1 << 14})
    monkeypatch.chdir(tmp_path)
    ngrams("bacteria", [3], "cpu", tmp_path / "results")
    figures = read(tmp_path / "results" / "bacteria" / "ngrams-3.json")
    assert figures["config"]["model"] == "ngram"
    assert figures["test"]["accuracy"] > 0.7
    shown = f"| {100 * figures['test']['accuracy']:.2f} | 1 | "
    assert shown in report(tmp_path / "results", "bacteria")
