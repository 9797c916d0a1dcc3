"""The experiment of the presets accurate and both: rows of a bundled sample, and the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.accurate import REPORT, RESULTS, report, rows_of, run
from experiments.paper.results import add_rows, find_row
from laconic.training.presets import PRESETS
from laconic.training.settings import resolve

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
    results, paper = tmp_path / "results", tmp_path / "paper"
    rows = rows_of("bacteria", ["both", "sequence", "ngram"], ["repair", "none"], [3])
    run(rows, "cpu", results)
    page = report(results, "bacteria", paper)
    for row in rows:
        figures = find_row(results, *row.key)
        assert figures is not None
        assert figures["config"]["model"] == row.method.model
        assert figures["config"]["local_ngrams"] == 7
        assert figures["config"]["seed"] == 3
        assert figures["test"]["accuracy"] > (0.3 if row.method.model == "sequence" else 0.7)
        if row.method.name != "ngram-none":  # which is ngram-repair
            assert f"| {100 * figures['test']['accuracy']:.2f} | 1 | " in page
    [path] = results.iterdir()
    before = path.stat().st_mtime_ns
    run(rows, "cpu", results)
    assert path.stat().st_mtime_ns == before, "they were there already"


def test_rows_of_the_papers_grid_count_if_they_are_of_the_preset(tmp_path: Path) -> None:
    results, paper = tmp_path / "results", tmp_path / "paper"
    for seed, more in enumerate(({}, {}, {"view_loss": 0.0})):
        of_preset = resolve("both", {"device": "cuda", "seed": seed, **more}).to_json()
        row = {"dataset": "imdb", "method": "both-repair", "model": "both", "seed": seed}
        row |= {"test": {"accuracy": 0.9 + seed / 100}, "config": of_preset, "processes": 5}
        add_rows(paper, row)
    assert "| `both`, Re-Pair | 90.50 ± 0.71 | 2 | – | – |" in report(results, "imdb", paper)
    row |= {"seed": 0, "processes": 1, "epochs": {"seconds": [2.0, 3.0]}, "peak_memory_mb": 77}
    add_rows(results, row)  # alone, and 92 %
    assert "| `both`, Re-Pair | 91.50 ± 0.71 | 2 | 5 | 77 |" in report(results, "imdb", paper)
