"""The experiment of the presets accurate and both: rows of a bundled sample, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.accurate import REPORT, RESULTS, report, rows_of, run
from experiments.paper.results import add_rows, find_row
from laconic.training.presets import PRESETS

SMALL = {
    "width": 8,
    "embedding_size": 8,
    "epochs": 4,
    "batch_size": 16,
    "local_size": 8,
    "learning_rate": 0.01,
    "ngram_buckets": 1 << 14,
}


def test_page_shows_the_newest_results() -> None:
    assert REPORT.read_text("utf-8") == report(RESULTS)


@pytest.mark.slow
@pytest.mark.usefixtures("few_documents")
def test_rows_of_both_codecs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "both", PRESETS["both"] | SMALL)
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results"
    rows = rows_of("bacteria", ["both", "ngram"], ["repair", "none"], [3])
    run(rows, "cpu", results)
    page = report(results, "bacteria", tmp_path / "both")
    for row in rows:
        figures = find_row(results, *row.key)
        assert figures is not None
        assert figures["config"]["model"] == row.method.model
        assert figures["config"]["local_ngrams"] == 7
        assert figures["config"]["seed"] == 3
        assert figures["test"]["accuracy"] > 0.7
        if row.method.model != "ngram":  # which is but a part
            assert f"| {100 * figures['test']['accuracy']:.2f} | 1 | " in page
    [path] = results.iterdir()
    before = path.stat().st_mtime_ns
    run(rows, "cpu", results)
    assert path.stat().st_mtime_ns == before, "they were there already"


def test_rows_of_the_preset_come_first_and_their_views_beside_them(tmp_path: Path) -> None:
    results, both = tmp_path / "results", tmp_path / "both"
    assert "## Before" not in report(results, "imdb", both)
    for seed, method in ((0, "both-repair+auto"), (1, "both-repair+auto"), (0, "both-none")):
        row = {"dataset": "imdb", "method": method, "seed": seed, "config": {"device": "cuda"}}
        row |= {"test": {"accuracy": 0.9 + seed / 100}, "views": {"ngram": {"accuracy": 0.8}}}
        row |= {"processes": 1 + 14 * seed, "epochs": {"seconds": [2.0, 3.0]}, "peak_memory_mb": 77}
        row |= {"reserved_memory_mb": 95} if method == "both-repair+auto" else {}
        add_rows(both, row)
    page = report(results, "imdb", both)
    assert "| `both`, Re-Pair over a rulebook | 90.50 ± 0.71 | 2 | 5 | 77 | 95 |" in page
    assert "| … its counting alone | 80.00 ± 0.00 | 2 | – | – | – |" in page
    assert '| `both`, `codec="none"` (characters) | 90.00 | 1 | 5 | 77 | – |' in page
    assert "## Before" in page
