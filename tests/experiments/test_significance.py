"""The paper's statistical tests and marks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from experiments.paper.differences import about_differences, differences
from experiments.paper.results import Figures, add_rows, pack, right
from experiments.paper.significance import holm, interval, marks, rank_sum, welch
from experiments.paper.table import Results


def test_rank_sums_of_four_seeds() -> None:
    assert rank_sum([5, 6, 7, 8], [1, 2, 3, 4]) == pytest.approx(1 / 70)
    assert rank_sum([1, 2, 3, 4], [5, 6, 7, 8]) == 1.0
    assert rank_sum([3, 4], [1, 2]) == pytest.approx(1 / 6)
    assert rank_sum([1.0], []) == 1.0


def test_rank_sums_of_equal_values_are_exact() -> None:
    assert rank_sum([2, 2], [1, 1]) == pytest.approx(1 / 6)  # not less than there can be
    assert rank_sum([1, 1, 1, 1], [1, 1, 1, 1]) == 1.0
    rng = np.random.default_rng(0)
    for _ in range(20):
        one, other = rng.normal(size=4).tolist(), rng.normal(size=5).tolist()
        wanted = mannwhitneyu(one, other, alternative="greater", method="exact").pvalue
        assert rank_sum(one, other) == pytest.approx(wanted)
    many = rng.normal(size=(2, 30)).tolist()
    assert rank_sum(*many) == pytest.approx(mannwhitneyu(*many, alternative="greater").pvalue)


def test_welch_is_that_of_the_textbook() -> None:
    # By hand: t = 4 / sqrt(5/3 / 4 + 5/3 / 4) = 4.382, 6 degrees of freedom.
    assert welch([4, 5, 6, 7], [0, 1, 2, 3]) == pytest.approx(0.00233, abs=1e-5)
    assert welch([1.0], [0.0, 0.1]) == 1.0
    assert welch([2, 2], [2, 2]) == 1.0
    assert welch([3, 3], [2, 2]) == 0.0


def test_bootstrap_intervals_are_those_of_resampling() -> None:
    rng = np.random.default_rng(1)
    values = rng.choice([-1, 0, 0.5, 1], size=400)
    slow = [rng.choice(values, len(values)).mean() for _ in range(4000)]
    assert interval(values) == pytest.approx(np.quantile(slow, [0.025, 0.975]), abs=0.01)
    assert interval(values) == interval(values[::-1])
    assert interval([1, 1, 1]) == (1.0, 1.0)


def row_with(method: str, seed: int, correct: Any, **more: Any) -> Figures:
    accuracy = float(np.mean(correct))
    test = {"documents": len(correct), "accuracy": accuracy}
    named = {"dataset": "H3", "method": method, "seed": seed}
    return {**named, "test": test, "right": pack(correct), **more}


def test_rows_keep_which_documents_are_right() -> None:
    rng = np.random.default_rng(2)
    for documents in (1, 7, 8, 25_000):
        correct = rng.random(documents) < 0.9
        row = row_with("grc-lzd", 0, correct)
        found = right(row)
        assert found is not None
        assert np.array_equal(found, correct)
        assert len(row["right"]) <= documents / 6 + 4
    assert right({"test": {"documents": 8}}) is None  # as rows were
    with pytest.raises(ValueError, match=r"H3/grc-lzd-0 has 3125 bytes .* for 9 tested ones"):
        right(row | {"test": {"documents": 9}})
    with pytest.raises(ValueError, match=r"of its documents right, not 0\.5"):
        right(row | {"test": {"documents": 25_000, "accuracy": 0.5}})


def test_differences_have_their_tests_and_intervals(tmp_path: Path) -> None:
    correct = np.arange(200)
    for seed in range(4):
        add_rows(tmp_path, row_with("dual_gru-lzd", seed, correct < 150 + seed))
        add_rows(tmp_path, row_with("mlp-lzd", seed, correct < 100 + seed))
        add_rows(tmp_path, row_with("grc-lzd", seed, correct < 150 + seed))
    old = row_with("characters", 0, correct < 140)
    del old["right"]
    add_rows(tmp_path, old)
    results = Results(tmp_path)
    lines = "\n".join(differences(results, ["H3", "H4"])).splitlines()
    assert "| H3 | – | **+25.00 (0.014, 0.000) [+19.12, +31.00]** | – |" in lines
    assert "| H3 | – | +0.00 (0.629, 0.500) [+0.00, +0.00] | – |" in lines
    assert "| H3 | – | +5.75 (0.200, 1.000) | – |" in lines  # one seed, and older than the record
    assert not any("H4" in line for line in lines)
    told = about_differences(results, ["H3", "H4"])
    assert told[0].startswith("- dual_gru and mlp: significantly better on 1 of 1 pairs")
    assert "better on 0 of 1 pairs" in told[1]
    assert told[2] == "- grc and characters: no pair of set and codec has four seeds of both yet."


def test_holm_is_that_of_the_textbook() -> None:
    # Holm 1979: the k-th smallest of m times m - k + 1, never less than one before.
    assert holm([0.01, 0.02, 0.03, 0.005]) == pytest.approx([0.03, 0.04, 0.04, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_marks_are_the_papers() -> None:
    seeds = np.array([0.0, 0.1, 0.2, 0.3])
    values = {
        "characters": (86 + seeds).tolist(),
        "mlp-repair": (79 + seeds).tolist(),
        "mlp-lzd": (78 + seeds).tolist(),
        "dual_gru-repair": (84.5 + seeds).tolist(),
        "dual_gru-lzd": (82.8 + seeds).tolist(),
        "rival_kmers": (99 + seeds).tolist(),
    }
    found = marks(values, "dna")
    assert found.daggers == {"dual_gru-repair", "dual_gru-lzd"}
    assert (found.best, found.clearly, found.close) == ("dual_gru-repair", True, True)
    # With a fifth setting, four seeds are too few: 1/70 times 4 is more than 0.05.
    more = values | {"grc-lzd": (80 + seeds).tolist()}
    assert not marks(more, "dna").clearly
    assert not marks({name: each[:2] for name, each in values.items()}, "dna").daggers
    assert not marks(values | {"characters": (95 + seeds).tolist()}, "dna").close
