"""The benchmark of the first minute, on few documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import forked
import pytest

from experiments import first_minute
from experiments.when_page import on_a_laptop
from laconic import samples
from laconic.samples import Split


def small(*_: Any) -> tuple[Split, Split]:
    sample = samples.load("kjv")
    return (
        Split([text[:200] for text in sample.train.documents[::24]], sample.train.labels[::24]),
        Split([text[:200] for text in sample.test.documents[::12]], sample.test.labels[::12]),
    )


@pytest.mark.slow
def test_rows_and_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_minute, "parts_of", small)
    monkeypatch.setattr(first_minute, "STRENGTHS", (1.0,))
    monkeypatch.setattr(
        first_minute, "_laconic", lambda *words: json.loads(forked.laconic(*map(str, words))[0])
    )
    results = tmp_path / "rows.jsonl"
    first_minute.main(["run", "kjv", "--results", str(results)])
    first_minute.main(["run", "kjv", "--results", str(results)])
    [line] = results.read_text().splitlines()
    row = json.loads(line)
    assert row["documents"] == {"train": 80, "test": 40}
    assert 0 < row["ours"]["accuracy"] <= 1
    assert row["rival"]["features"] in first_minute.FEATURES
    assert row["about"]["commit"]
    page = first_minute.report([row])
    assert "| kjv | 0 | 80 | " in page
    assert "On average" in page


def test_documents_are_cut() -> None:
    train, test = first_minute.parts_of("kjv", 0)
    assert (len(train), len(test)) == (1920, 480)
    assert max(map(len, train.documents)) <= first_minute.MOST_LETTERS


def test_the_page_is_what_is_written() -> None:
    rows = first_minute.rows_in(first_minute.RESULTS)
    assert first_minute.REPORT.read_text("utf-8") == first_minute.report(rows)


def test_seeds_of_a_set_are_one_set() -> None:
    def row(name: str, seed: int, ours: float) -> dict[str, Any]:
        figures = {"macro_f1": ours / 2, "seconds": 10.0 + seed}
        rival = {"accuracy": 0.5, "macro_f1": 0.25, "seconds": 4.0}
        said = {"ours": {"accuracy": ours} | figures, "rival": rival}
        return {"name": name, "seed": seed, "documents": {"train": 9}, "load": 1, **said}

    rows = [row("kjv", 0, 0.6), row("kjv", 1, 0.8), row("yelp", 0, 0.9)]
    assert first_minute.by_set(rows)["kjv"]["ours"] == pytest.approx(
        {"accuracy": 0.7, "macro_f1": 0.35, "seconds": 10.5}
    )
    page = first_minute.report(rows)
    assert "kjv, mean of 2 seeds: accuracy 70.00 %, the rival's 50.00 %; macro-F1 0.350, " in page
    assert "On average +30.00 points" in page
    assert on_a_laptop(rows)[0].startswith(
        "On 2 small sets, `laconic train` with nothing said is +30.0"
    )
