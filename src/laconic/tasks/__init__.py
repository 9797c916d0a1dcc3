"""Tasks: one object for each knows its labels, loss, answers, figures and words.

Nobody else asks which task it is. A new one is a file here and its entry in TASKS; a new metric is
an entry in its task's file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from laconic.tasks.classification import Classification
from laconic.tasks.labels import Class, LabelError, plain
from laconic.tasks.multilabel import Multilabel
from laconic.tasks.regression import Regression
from laconic.tasks.task import Answers, Metric, Task, summary

__all__ = [
    "TASKS",
    "Answers",
    "Class",
    "Classification",
    "LabelError",
    "Metric",
    "Multilabel",
    "Regression",
    "Task",
    "summary",
    "task_from_json",
    "task_of",
]

TASKS: dict[str, type[Task]] = {
    Classification.name: Classification,
    Multilabel.name: Multilabel,
    Regression.name: Regression,
}
_MOST_CLASSES = 1 << 20


def task_of(values: Iterable[object], name: str = "auto") -> Task:
    """Return the task that the labels of training set; LabelError for missing or unfit ones.

    "auto" is the first that recognises its labels: regression has fractions, several labels are
    lists; all else are classes.

    >>> task_of(["no", "yes", "no"])
    Classification(classes=('no', 'yes'), mean=0.0, std=1.0)
    >>> task_of([["a"], [], ["b", "a"]]).name, task_of([0.5, 1.5]).name
    ('multilabel', 'regression')
    """
    known = list(plain(values))
    if not known:
        raise LabelError("there are no documents to learn from")
    if name == "auto":
        return next((t for t in TASKS.values() if t.recognises(known)), Classification).of(known)
    if name not in TASKS:
        raise LabelError(f"no task {name!r}: {', '.join(TASKS)} or auto")
    return TASKS[name].of(known)


def task_from_json(data: object) -> Task:
    """Return the task that to_json wrote; LabelError for anything else."""
    if not isinstance(data, dict) or data.keys() != {"task", "classes", "mean", "std"}:
        raise LabelError("labels must have task, classes, mean and std")
    name, classes, mean, std = data["task"], data["classes"], data["mean"], data["std"]
    if name not in tuple(TASKS):
        raise LabelError(f"no task {name!r:.100}")
    if not isinstance(classes, list) or len(classes) > _MOST_CLASSES:
        raise LabelError("classes must be a list")
    if not all(isinstance(each, str | int) for each in classes):
        raise LabelError("classes must be texts and whole numbers")
    if any("\ud800" <= letter <= "\udfff" for each in classes for letter in str(each)):
        raise LabelError("classes must be texts that can be written")
    if bool(classes) != bool(TASKS[name].things) or len(set(classes)) < len(classes):
        raise LabelError(f"these are no classes of {name}")
    for value in (mean, std):
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise LabelError("mean and std must be numbers")
    return TASKS[name](tuple(classes), float(mean), float(std))
