"""Rivals that are not scikit-learn's: what they are given, and how one is chosen."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from experiments.paper import rivals
from experiments.paper.grid import groups
from experiments.paper.rivals import fast_text, nearest, run_rivals
from laconic.tasks import Classification


def problem(kind: str, train: list[str], valid: list[str], test: list[str]) -> Any:
    """Documents whose class is whether they have a "b"."""
    parts = [train, valid, test]
    task = Classification.of([0, 1])
    targets = [np.array([int("b" in text) for text in part]) for part in parts]
    return SimpleNamespace(kind=kind, parts=parts, targets=targets, task=task, seed=3)


class Spelled:
    """Stands for fastText: remembers words of classes, and is wrong at all rates but one."""

    def __init__(self, file: str, **settings: Any) -> None:
        self.rate, self.words = settings["lr"], dict[str, Counter[str]]()
        assert settings["seed"] == 3
        assert settings["thread"] == 1
        for line in Path(file).read_text("utf-8").splitlines():
            label, *words = line.split()
            for word in words:
                self.words.setdefault(word, Counter())[label] += 1

    def predict(self, texts: list[str]) -> tuple[list[list[str]], None]:
        said = []
        for text in texts:
            votes = Counter[str]()
            for word in text.split():
                votes.update(self.words.get(word, {}))
            right = max(votes, key=lambda label: votes[label])
            wrong = "__label__1" if right == "__label__0" else "__label__0"
            said.append([right if self.rate == 0.5 else wrong])
        return said, None


@pytest.mark.parametrize("kind", ["text", "traces"])
def test_held_out_documents_choose_fasttexts_rate(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fasttext", SimpleNamespace(train_supervised=Spelled))
    train, valid, test = ["A a\nc", "b c b", "a", "b"], ["a c", "b b"], ["c a", "b", "b c b"]
    given = problem(kind, train, valid, test)
    scores, more = fast_text(given)
    assert scores.argmax(1).tolist() == given.targets[2].tolist()
    assert more == {"rate": 0.5, "epochs": 25, "valid_accuracy": 1.0}


def test_words_of_dna_are_six_letters() -> None:
    assert rivals._words("ACGTACGT", "dna") == "ACGTAC CGTACG GTACGT"
    assert rivals._words("It's\n ONE line", "text") == "it s one line"
    assert rivals._words("6 11\t45", "traces") == "6 11 45"


def test_neighbours_say_one_class() -> None:
    # Three neighbours of three classes: the nearest decides, and nothing else is right.
    letters = np.random.default_rng(0).choice(list("abcdefghijklmnop"), (3, 400))
    train = ["".join(some) for some in letters.tolist()]
    given = problem("text", train, [], [train[1][50:350]])
    given.task = Classification.of([0, 1, 2])
    given.targets[0] = np.array([0, 1, 2])
    scores, more = nearest(given)
    assert scores.argmax(1).tolist() == [1]
    assert more == {"train_documents": 3, "test_documents": 1}


def test_a_rival_whose_package_is_missing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "fasttext", None)
    [group] = [each for each in groups() if each.name == "samples"]
    run_rivals([group], [0], tmp_path, ["rival_fasttext"], ["bacteria"])
    assert "bacteria/rival_fasttext-0 left: " in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
