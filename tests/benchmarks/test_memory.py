"""benchmarks.memory: the documents it makes, and the table that shows its figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks import memory
from benchmarks.memory_report import section
from laconic import Corpus
from laconic.samples import Split


def test_long_documents_are_of_all_lengths_and_one_label_each() -> None:
    source = Split([letter * 700 for letter in "abab"], [0, 1, 0, 1])
    made = memory.long_documents(source, 2_000, seed=1)
    lengths = np.array([len(text) for text in made.documents])
    assert lengths.max() == 20_000
    assert 1_300 < lengths.mean() < 1_900
    pairs = zip(made.documents, made.labels, strict=True)
    assert all(set(text) <= {"ab"[label], " "} for text, label in pairs)
    assert made.documents == memory.long_documents(source, 2_000, seed=1).documents


def row_of(limited: bool, reserved: float, seed: int) -> dict[str, Any]:
    figures = {"peak_memory_mb": 1000.0, "reserved_memory_mb": reserved, "documents_per_s": 500.0}
    shown = {"pieces_per_batch": 2.5 if limited else 1.0, "accuracy": 0.8 + seed / 100}
    return {"set": "long", "settings": "both", "limited": limited, "seed": seed} | figures | shown


def test_the_table_shows_reserved_beside_allocated() -> None:
    about = {"command": "c", "machine": "m", "commit": "1", "date": "d", "versions": {"torch": "2"}}
    rows = [
        row_of(limited, 1100.0 + 50 * seed, seed) for limited in (False, True) for seed in (0, 1)
    ]
    sets = {"long": {"documents": 9, "letters": 5.0, "longest": 7}}
    text = section(Path("x.json"), {"about": about, "memory": {"sets": sets, "rows": rows}})
    assert "| long | both | all | 1,000 | 1,150 | 1.15 × | 1.00 | 500 | 80.0, 81.0 |" in text
    assert "| long | both | 8 GB | 1,000 | 1,150 | 1.15 × | 2.50 | 500 | 80.0, 81.0 |" in text
    assert "at most 1.15 ×" in text


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_row_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "HELD_OUT", 60)
    texts = [("good " if n % 2 else "bad ") * (5 + n % 90) for n in range(200)]
    corpus = Corpus.from_documents(texts, [n % 2 for n in range(200)])
    once = {"epochs": 1}
    rows = [memory.measure(corpus, "accurate", limited, 120, 0, once) for limited in (False, True)]
    rows.append(memory.measure(corpus, "auto", True, 120, 0, once))
    for row in rows:
        assert row["accuracy"] > 0.4
        assert row["reserved_memory_mb"] >= row["peak_memory_mb"] > 0
        assert row["pieces_per_batch"] == 1
    for figures in rows[-1]["parts"].values():
        assert figures["reserved_memory_mb"] >= figures["peak_memory_mb"] > 0
    assert rows[0]["train_loss"] == pytest.approx(rows[1]["train_loss"], rel=1e-2)
