"""What linear models count: trials see no test, and the page tells what came out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments import counted
from experiments.paper.results import add_rows, rows_in
from laconic import Corpus, samples
from laconic.training import linear
from laconic.training.linear import CANDIDATES, OF_FEW_LETTERS, Features


def test_a_trial_is_of_held_out_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    part = samples.load("kjv").train
    corpus = Corpus.from_documents(part.documents[::24], part.labels[::24])
    asked: list[Any] = []

    def training_corpus(*given: Any, **more: Any) -> Corpus:
        asked.append((given, more))
        return corpus

    kinds = (Features(3, 0, "log"), Features(2, 0, "plain"))
    monkeypatch.setattr(counted, "training_corpus", training_corpus)
    monkeypatch.setattr(counted, "kinds_of", lambda dataset: kinds)
    monkeypatch.setattr(counted, "WEIGHTS", ((1.0, 2.0), (1.0, 50.0)))
    rows = list(counted.trial("kjv", 0))
    assert len(asked) == 1
    found = {row["method"]: row["held_out"] for row in rows}
    assert len(found) == 2 * len(kinds) + 2
    told = [each for each in found if each.endswith("told apart")]
    assert {each.removesuffix(", told apart") for each in told} == set(map(counted.name_of, kinds))
    assert all(0 < each["loss"] < 3 for each in found.values())
    # The weights that are there now give what features that are told apart have.
    best = rows[-1]["features"]
    assert found["told apart by 1 unseen, 2 plain"] == found[f"{best}, told apart"]
    # So much of the mean that nothing else matters: as if nothing was told apart.
    assert found["told apart by 1 unseen, 50 plain"]["loss"] == pytest.approx(
        found[best]["loss"], rel=0.02
    )


def test_fits_end_sooner_or_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    part = samples.load("kjv").train
    corpus = Corpus.from_documents(part.documents[::24], part.labels[::24])
    monkeypatch.setattr(counted, "training_corpus", lambda *_, **more: corpus)
    first, second, *_ = counted.kinds_of("imdb")
    for kind, loss in ((first, 0.5), (second, 0.4)):
        key = {"dataset": "imdb", "method": counted.name_of(kind), "seed": 1}
        add_rows(tmp_path, key | {"held_out": {"loss": loss}})
    assert counted.best_kind(tmp_path, "imdb", 1) == second
    rows = list(counted.closeness_trial("imdb", 1, Features(2, 0, "plain")))
    assert [row["method"] for row in rows] == [
        "until 0.01",
        "until 0.001",
        "until 0.0003",
        "until 0.0001",
    ]
    losses = [row["held_out"]["loss"] for row in rows]
    assert len(set(losses)) > 1
    assert losses[-2] == pytest.approx(losses[-1], rel=0.01)


def test_the_page(tmp_path: Path) -> None:
    assert "Not run yet." in counted.page(tmp_path)
    names = [counted.name_of(way) for k in counted.kinds_of("imdb") for way in both(k)]
    names += [counted.weights_name(*each) for each in counted.WEIGHTS]
    for seed in (0, 1):
        for place, name in enumerate(names):
            key = {"dataset": "imdb", "method": name, "seed": seed}
            add_rows(tmp_path, key | {"held_out": {"loss": 0.25 + place / 100 + seed / 10}})
    for place, closeness in enumerate(counted.CLOSENESS):
        key = {"dataset": "imdb", "method": counted.closeness_name(closeness), "seed": 0}
        figures = {"loss": 0.5 - place / 100, "accuracy": 0.8 + place / 100, "macro_f1": 0.75}
        add_rows(tmp_path, key | {"held_out": figures})
    lines = counted.page(tmp_path).splitlines()
    first = next(line for line in lines if line.startswith(f"| {names[0]} |"))
    assert first == f"| {names[0]} | known | **0.3000** | +0.0000 |"
    other = next(line for line in lines if line.startswith(f"| {names[1]} |"))
    assert other == f"| {names[1]} | known | 0.3100 | +0.0100 |"
    chosen = next(line for line in lines if "chosen |" in line)
    assert counted.weights_name(*counted.telling_now()) in chosen
    assert "| until 0.01 |  | 0.5000 | +0.0300 |" in lines
    assert "| until 0.0001 | 83.00 | 75.00 |" in lines


def both(kind: Features) -> tuple[Features, Features]:
    return kind, kind._replace(told_apart=not kind.told_apart)


def test_n_grams_weigh_as_held_out_documents_prefer() -> None:
    losses: dict[tuple[float, float], float] = dict.fromkeys(counted.WEIGHTS, 0.0)
    names = {counted.weights_name(*each): each for each in counted.WEIGHTS}
    for row in rows_in(counted.RESULTS):
        if row["dataset"] in counted.OTHERS and row["method"] in names:
            losses[names[row["method"]]] += row["held_out"]["loss"]
    assert losses[counted.telling_now()] <= 1.002 * min(losses.values())


def test_fits_end_where_held_out_documents_prefer() -> None:
    losses = dict.fromkeys(counted.CLOSENESS, 0.0)
    names = {counted.closeness_name(each): each for each in counted.CLOSENESS}
    for row in rows_in(counted.RESULTS):
        if row["method"] in names:
            losses[names[row["method"]]] += row["held_out"]["loss"]
    assert 0 < losses[linear._CLOSELY] <= 1.0005 * min(losses.values())


@pytest.mark.parametrize(
    ("known", "sets"), [(CANDIDATES, counted.OTHERS), (OF_FEW_LETTERS, counted.FEW_LETTERS)]
)
def test_what_automatic_training_knows_has_been_tried(
    known: tuple[Features, ...], sets: tuple[str, ...]
) -> None:
    """And on every set one of these is about as good as anything else that was tried."""
    losses: dict[str, dict[str, list[float]]] = {}
    for row in rows_in(counted.RESULTS):
        if row["dataset"] in sets and not row["method"].startswith(("told apart by", "until")):
            of_set = losses.setdefault(row["dataset"], {})
            of_set.setdefault(row["method"], []).append(row["held_out"]["loss"])
    assert set(losses) == set(sets)
    names = {counted.name_of(way) for kind in known for way in both(kind)}
    for of_set in losses.values():
        means = {name: sum(some) / len(some) for name, some in of_set.items()}
        assert names <= set(means)
        assert min(means[name] for name in names) <= 1.01 * min(means.values())
