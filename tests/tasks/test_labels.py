"""Labels of every kind: which task they set, and what becomes of them."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from laconic.tasks import (
    Classification,
    LabelError,
    Multilabel,
    Regression,
    task_from_json,
    task_of,
)


def test_what_labels_mean() -> None:
    assert task_of(["b", "a", "ä"]).classes == ("a", "b", "ä")
    assert task_of([10, "b", 9]).classes == (9, 10, "b")
    assert task_of(np.array([True, False])).classes == (False, True)
    assert task_of([3.0, 1.0], "classification").classes == (1, 3)
    task = task_of([["x"], (), ["y", "x"]])
    assert task.numbers([["y"], []]).tolist() == [[0, 1], [0, 0]]
    task = Regression.of(["1.5", "2.5"])
    assert task.numbers([1.5, 3]).tolist() == [-1, 2]
    assert task.restore([-1, 2]).tolist() == [1.5, 3]
    assert task_of([2.0, 2.0]).numbers([2.0]).tolist() == [0]
    for each in (task, task_of([1, 2]), task_of([["ü"]])):
        assert task_from_json(json.loads(json.dumps(each.to_json()))) == each


def test_numbers_too_large_to_be_learned() -> None:
    with pytest.raises(LabelError, match="divide them by a constant"):
        Regression.of([1e200, -1e200])


@pytest.mark.parametrize(
    ("values", "task", "document", "told"),
    [
        (["a", None], "auto", 1, "there is no label"),
        ([1.0, float("nan")], "auto", 1, "there is no label"),
        (["a", np.float32("nan")], "auto", 1, "there is no label"),
        (["a", pd.NA], "auto", 1, "there is no label"),
        ([1.0, float("inf")], "auto", 1, "the label is inf"),
        (["a", "b"], "regression", 0, "the label is 'a', but should be a number"),
        ([b"a"], "auto", 0, "a label is of type bytes"),
        ([["a"], "b"], "auto", 1, "the label is a str"),
        ([1.5], "classification", 0, "type float"),
        ([[], []], "auto", None, "is empty"),
        ([], "auto", None, "no documents"),
        (["a", "a"], "auto", None, "every document is of class 'a'; two are needed"),
        (["a"], "poetry", None, "no task 'poetry': classification, multilabel, regression or auto"),
    ],
)
def test_labels_that_cannot_be_learned(
    values: list[object], task: str, document: int | None, told: str
) -> None:
    with pytest.raises(LabelError, match=told) as caught:
        task_of(values, task)
    assert caught.value.document == document


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["1", "2", "1"], "classification"),
        (["1.5", "2", "-3e-1"], "regression"),
        (["1.5", "two"], "classification"),
        (["1.0", "2.0"], "classification"),
        ([1, 2], "classification"),
        ([0.5, 2.0], "regression"),
        ([["a"], []], "multilabel"),
    ],
)
def test_labels_tell_the_task(values: list[object], task: str) -> None:
    assert task_of(values).name == task


def test_numbers_of_a_csv_are_numbers() -> None:
    task = task_of(["1.5", "2.5"])
    assert (task.mean, task.std) == (2.0, 0.5)
    assert task.numbers(["2.5", "1.5"]).tolist() == [1.0, -1.0]


def test_numbers_and_their_texts_are_the_same_class() -> None:
    """A CSV has texts only: what was trained with numbers is evaluated with those, too."""
    assert Classification.of([1, 5, 3]).numbers(["5", 3, "1"]).tolist() == [2, 1, 0]
    assert Classification.of(["1", "5"]).numbers([5, "1"]).tolist() == [1, 0]
    assert Classification.of([5, "5"]).numbers(["5", 5]).tolist() == [1, 0]
    assert Classification.of(["1.0", "5.0"]).numbers([5, "1", "5.00"]).tolist() == [1, 0, 1]
    assert Classification.of([1, 5]).numbers(["5.0", "1.0"]).tolist() == [1, 0]
    assert Classification.of(["5", "5.0"]).numbers(["5.0", "5"]).tolist() == [1, 0]
    # What is spelled as it is wins, and a spelling that two classes share says neither.
    assert Classification.of(["4", "5", "5.0"]).numbers([5, "5.0", 4, "4.0"]).tolist() == [
        1,
        2,
        0,
        0,
    ]
    with pytest.raises(LabelError, match=r"it is of class '5\.0', unseen"):
        Classification.of([5, "5"]).numbers(["5.0"])
    with pytest.raises(LabelError, match=r"it is of class '5\.05'"):
        Classification.of([5, 7]).numbers(["5.05"])
    assert Multilabel.of([[1, 5], [5]]).numbers([["5"], [1]]).tolist() == [[0, 1], [1, 0]]
    with pytest.raises(LabelError, match="class '05', unseen in training"):
        Classification.of([1, 5]).numbers(["05"])
