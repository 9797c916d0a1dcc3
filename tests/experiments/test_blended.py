"""How views are blended: trials see no test, and what they prefer is what is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments import blended
from experiments.paper.results import add_rows, rows_in
from laconic import Corpus, samples
from laconic.tasks import Classification
from laconic.training.blend import SURE


def test_a_trial_is_of_documents_that_no_view_has_seen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    part = samples.load("kjv").train
    corpus = Corpus.from_documents(part.documents[::24], part.labels[::24])
    monkeypatch.setattr(blended, "training_corpus", lambda *_, **more: corpus)
    monkeypatch.setattr(blended, "MOST_EPOCHS", 1)
    monkeypatch.setattr(blended, "TOLD_BY", (10, 20))
    monkeypatch.setattr(blended, "DRAWS", 2)
    rows = list(blended.trial("kjv", 0, tmp_path))
    assert [row["method"] for row in rows] == list(map(blended.name_of, blended.SURES))
    assert {row["documents"] for row in rows} == {round(0.4 * len(corpus))}
    assert all(set(row["held_out"]) == {"10", "20"} for row in rows)
    monkeypatch.setattr(blended, "fit_linear", None)  # Views are kept.
    again = list(blended.trial("kjv", 0, tmp_path))
    assert [row["held_out"] for row in again] == [row["held_out"] for row in rows]


def test_what_a_blend_is_worth(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, task = np.random.default_rng(0), Classification((0, 1))
    right = rng.integers(0, 2, 600)
    truth = np.stack([1 - right, right], 1) * 1.5
    good, other = truth + rng.normal(size=truth.shape), truth + 1.2 * rng.normal(size=truth.shape)
    monkeypatch.setattr(blended, "DRAWS", 5)
    found = blended.worth(task, blended.Views(good, other, right), 300, 0)
    assert found[0.0]["above"] > 0.01
    assert found[3.0]["loss"] > found[0.0]["loss"]  # It asks for more than there is to be seen.
    noise = blended.Views(good, rng.normal(size=truth.shape), right)
    found = blended.worth(task, noise, 300, 0)
    assert found[3.0]["above"] == 0
    assert found[3.0]["exchanged"] == pytest.approx(0, abs=0.01)  # It is worse for sure.


def test_the_page(tmp_path: Path) -> None:
    assert "Not run yet." in blended.page(tmp_path)
    for place, sure in enumerate(blended.SURES):
        figures: dict[str, Any] = dict.fromkeys(("loss", "above", "exchanged"), 0.1)
        figures |= {"accuracy": 0.8 + place / 100, "worse": 0.3 - place / 20}
        told = {f"{size}": figures for size in blended.TOLD_BY}
        key = {"dataset": "imdb", "method": blended.name_of(sure), "seed": 0}
        add_rows(tmp_path, key | {"held_out": told})
    assert blended.chosen(blended.means(rows_in(tmp_path))) == blended.SURES[3]
    lines = blended.page(tmp_path).splitlines()
    first = f"| {blended.name_of(blended.SURES[0])} |  | **0.1000** | 80.00 |"
    assert sum(line.startswith(first) for line in lines) == len(blended.TOLD_BY)
    assert sum("| chosen |" in line for line in lines) == len(blended.TOLD_BY)


def test_views_are_blended_as_held_out_documents_prefer() -> None:
    found = blended.means(rows_in(blended.RESULTS))
    sets = {name for of in found.values() for by_set in of.values() for name in by_set}
    assert sets == set(blended.SETS)
    assert blended.chosen(found) == SURE
    accuracies = [
        np.mean([each["accuracy"] for of in found[name].values() for each in of.values()])
        for name in (blended.name_of(SURE), *map(blended.name_of, blended.SURES))
    ]
    assert accuracies[0] > max(accuracies) - 0.0005
