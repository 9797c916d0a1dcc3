"""The paper's statistical tests and marks."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.paper.significance import holm, marks, rank_sum


def test_rank_sums_of_four_seeds() -> None:
    assert rank_sum([5, 6, 7, 8], [1, 2, 3, 4]) == pytest.approx(1 / 70)
    assert rank_sum([1, 2, 3, 4], [5, 6, 7, 8]) == 1.0
    assert rank_sum([3, 4], [1, 2]) == pytest.approx(1 / 6)
    assert rank_sum([1.0], []) == 1.0


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
