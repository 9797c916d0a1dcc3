"""docs/when.md: what it says wins is what the lines of JSON say, losses included."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from experiments.paper.results import add_rows, saw_no_test, write
from experiments.when_page import (
    BOTH,
    FAMILIES,
    FOLDER,
    FOLDERS,
    LINEAR,
    PAGE,
    Evidence,
    Kind,
    advice,
    page,
)

IMDB = Kind("reviews", ["imdb"])


def row(method: str, accuracy: float, valid: float, dataset: str = "imdb", **more: Any) -> Any:
    named = {"dataset": dataset, "method": method, "seed": 0, "about": {}}
    held = {"config": {"valid_accuracy": valid}}
    if not method.startswith("rival_"):
        held = {"epochs": {"valid_accuracy": [0.1, valid]}}
    return {**named, **held, "test": {"accuracy": accuracy}, "seconds": 7.0, **more}


def scores(family_of: dict[str, str]) -> dict[tuple[str, str], tuple[float, float]]:
    """Return accuracy held out and of the test, by set and family, of all committed lines."""
    found: dict[tuple[str, str], tuple[float, float]] = {}
    for folder in FOLDERS:
        for path in (FOLDER / folder).glob("*.jsonl"):
            by_method: dict[str, list[Any]] = {}
            for line in path.read_text("utf-8").splitlines():
                by_method.setdefault(json.loads(line)["method"], []).append(json.loads(line))
            for method, rows in by_method.items():
                if method not in family_of:
                    continue
                if "epochs" in rows[0]:
                    held = mean(max(each["epochs"]["valid_accuracy"]) for each in rows)
                else:
                    held = mean(each["config"]["valid_accuracy"] for each in rows)
                score = held, mean(each["test"]["accuracy"] for each in rows)
                key = path.stem, family_of[method]
                found[key] = max(found.get(key, score), score)
    return found


def test_every_winner_is_that_of_the_lines() -> None:
    """Anew, and more simply, from the committed files: who is best on each kind of data."""
    found = scores({method: family.name for family in FAMILIES for method in family.methods})
    found = scores({m: family.name for family in FAMILIES for m in family.before}) | found
    lines = PAGE.read_text("utf-8").splitlines()
    evidence = Evidence()
    assert len(evidence.kinds()) == 5
    for kind in evidence.kinds():
        means = {
            family.name: 100 * mean(found[name, family.name][1] for name in kind.sets)
            for family in FAMILIES
            if all((name, family.name) in found for name in kind.sets)
        }
        best = max(means, key=lambda name: means[name])
        [told] = [each for each in lines if each.startswith(f"| {kind.name} | ")]
        assert told.split(" | ")[2] == f"{best}, {means[best]:.1f} %"
        [line] = [each for each in lines if each.startswith(f"- **{kind.name}**: ")]
        assert best in line


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        (0.95, "use counting and reading (`both`): 5.0 points above linear model"),
        (0.902, "counting and reading (`both`) and linear model of n-grams (scikit-learn) are as"),
        (0.80, "use linear model of n-grams (scikit-learn): counting and reading (`both`), Lac"),
    ],
)
def test_advice_follows_the_rows(tmp_path: Path, ours: float, told: str) -> None:
    add_rows(tmp_path / "paper", row("both-repair", ours, 0.8), row("rival_chars", 0.90, 0.7))
    line = advice(Evidence(tmp_path), IMDB)
    assert line.startswith(f"- **reviews**: {told}")
    assert "times as fast" not in line  # nobody has measured it
    points = [
        {"set": "imdb", "method": m, "documents_per_s": s, "peak_mb": 100.0}
        for m, s in (("characters", 10.0), ("grc-lzd", 25.0), ("bpe", 30.0))
    ]
    write(tmp_path / "paper" / "speed.json", {"points": points})
    assert "up to 2.5 times as fast" in advice(Evidence(tmp_path), IMDB)


def test_held_out_documents_choose_among_a_familys_methods(tmp_path: Path) -> None:
    add_rows(tmp_path / "paper", row("rival_words", 0.95, 0.7), row("rival_chars", 0.90, 0.8))
    add_rows(tmp_path / "converged", row("characters", 0.5, 0.6))
    add_rows(tmp_path / "paper", row("characters", 0.7, 0.5))
    evidence = Evidence(tmp_path)
    assert evidence.accuracy("imdb", LINEAR) == pytest.approx(90.0)
    assert evidence.accuracy("imdb", FAMILIES[4]) == pytest.approx(50.0)
    assert evidence.accuracy("imdb", FAMILIES[0]) is None
    # One set of two is not compared with both.
    assert evidence.of_kind(Kind("text", ["imdb", "yelp_polarity_part"]), LINEAR) is None


def test_rows_of_before_count_until_there_are_others(tmp_path: Path) -> None:
    add_rows(tmp_path / "paper", row("both-repair", 0.9, 0.99))
    assert Evidence(tmp_path).accuracy("imdb", BOTH) == pytest.approx(90.0)
    add_rows(tmp_path / "both", row("both-repair+auto", 0.8, 0.7))
    assert Evidence(tmp_path).accuracy("imdb", BOTH) == pytest.approx(80.0)


def test_a_page_without_results_says_so(tmp_path: Path) -> None:
    sizes = {"none": {"letters": {"mean": 1325.0}}, "repair": {"sequence": {"mean": 509.0}}}
    (tmp_path / "paper").mkdir()
    write(tmp_path / "paper" / "compression.json", {"sets": {"imdb": sizes}})
    made = page(Evidence(tmp_path))
    assert "- **text, 1,000 to 3,000 letters**: not measured yet." in made
    assert "Not measured yet." in made.partition("in a minute")[2]


def test_settings_that_saw_a_test_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "choices.json"
    monkeypatch.setattr("experiments.paper.results.CHOICES", path)
    new, old = row("both-repair", 0.9, 0.9), row("both-repair", 0.9, 0.9)
    new["about"] = {"choices": "0123456789ab"}
    for by, wanted in (("held-out documents", True), ("not run yet", False)):
        path.write_text(json.dumps({"both": {"ngrams": {"value": 7, "by": by}}}))
        assert saw_no_test([new], "both") is wanted
        assert not saw_no_test([new, old], "both")
