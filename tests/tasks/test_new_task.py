"""A new task is one file and its entry in TASKS; a new metric is one entry in its task's file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from torch import Tensor

from laconic import Corpus
from laconic.cli.evaluate import evaluate
from laconic.inference.explanation import top_phrases
from laconic.inference.predictor import Predictor
from laconic.report import facts_of
from laconic.report.run_page import page
from laconic.tasks import TASKS, Classification, Metric, Task, labels
from laconic.training.loop import train
from laconic.training.run import Run
from laconic.training.settings import TrainingConfig

# What would be a file of laconic.tasks: docs/extending.md quotes it.


class Counts(Task):
    """How often something happens (Poisson); a model's output is the logarithm of that."""

    name = "counts"
    aim = "Prediction of a count"
    metrics = (
        Metric(
            "mae",
            "mean error",
            lambda a: np.abs(a.predicted - a.targets).mean(),
            lower_is_better=True,
        ),
        Metric(
            "loss",
            "loss",
            lambda a: (a.predicted - a.targets * a.outputs[:, 0]).mean(),
            lower_is_better=True,
            reported=False,
        ),
    )
    headline = ("mae",)

    @classmethod
    def of(cls, values: Iterable[object]) -> Counts:
        """Return the task; nothing needs to be known of the labels beforehand."""
        return cls()

    def numbers(self, values: Iterable[object]) -> npt.NDArray[np.float32]:
        """Return the counts themselves, float32 [N]."""
        return labels.numbers(values).astype(np.float32)

    @staticmethod
    def losses(outputs: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
        """Return negative log-likelihoods, without the part that no model can change."""
        return outputs[:, 0].exp() - targets * outputs[:, 0]

    def decide(self, outputs: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """Return the expected count of each document, float64 [N]."""
        return np.exp(np.asarray(outputs, np.float64)[:, 0])


# What it takes to use it: its entry in TASKS.

TINY = TrainingConfig(embedding_size=8, width=8, epochs=2, batch_size=8, device="cpu")


def test_a_new_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(TASKS, Counts.name, Counts)
    counts = [1, 2, 3, 4, 5] * 4
    corpus = Corpus.from_documents(["tick " * count + "tock" for count in counts], counts)
    corpus.write(tmp_path / "clocks.parquet")
    trained = train(corpus, TrainingConfig(**vars(TINY) | {"task": "counts"}), tmp_path / "run")
    assert trained.task == Run.open(tmp_path / "run").task == Counts()
    for line in trained.history[:-1]:
        assert line["valid_loss"] == line["valid"]["loss"]

    evaluate(tmp_path / "run", [str(tmp_path / "clocks.parquet")], device="cpu", as_json=True)
    figures = json.loads(capsys.readouterr().out)
    assert figures["documents"] == 20
    assert figures["mae"] > 0
    predictor = Predictor.from_run(tmp_path / "run", "cpu")
    errors = np.abs(np.array(predictor.predict(corpus)) - counts)
    assert errors.mean() == pytest.approx(figures["mae"])
    assert list(top_phrases(predictor, corpus, per_class=3)) == ["higher", "lower"]

    shown = page([facts_of(Run.open(tmp_path / "run"))])
    assert "Prediction of a count" in shown
    assert "Mean error on held-out documents" in shown


def test_the_page_quotes_it() -> None:
    page = Path(__file__).parents[2] / "docs" / "extending.md"
    assert inspect.getsource(Counts) in page.read_text("utf-8")


def test_a_new_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In src/laconic/tasks/classification.py this would be an entry of `metrics`.
    top_two = Metric(
        "top_two",
        "among the first two",
        lambda a: (a.outputs.argsort(axis=1)[:, -2:] == a.targets[:, None]).any(1).mean(),
        share=True,
    )
    monkeypatch.setattr(Classification, "metrics", (*Classification.metrics, top_two))
    corpus = Corpus.from_documents(["abab", "xyxy"] * 8, ["letters", "others"] * 8)
    corpus.write(tmp_path / "corpus.parquet")
    train(corpus, TINY, tmp_path / "run")
    evaluate(tmp_path / "run", [str(tmp_path / "corpus.parquet")], device="cpu")
    assert "among the first two  1.0000" in capsys.readouterr().out
    run = Run.open(tmp_path / "run")
    assert run.metrics()[0]["valid"]["top_two"] == 1
    assert "among the first two" in page([facts_of(run)])
