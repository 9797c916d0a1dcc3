"""Runs and predictors under a rulebook: it goes along, and another one is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from laconic import Corpus, Rulebook, compress_many
from laconic.cli import app
from laconic.errors import InputError
from laconic.estimator import GrammarClassifier
from laconic.inference.predictor import Predictor
from laconic.samples import load
from laconic.training.loop import train
from laconic.training.run import Run, RunError
from laconic.training.settings import TrainingConfig

SAMPLE = load("kjv").train
TEXTS, LABELS = SAMPLE.documents[:60], SAMPLE.labels[:60]
BOOK = Rulebook.learn(TEXTS, 100)
CONFIG = TrainingConfig(embedding_size=8, width=8, epochs=1, device="cpu")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(Corpus.from_documents(TEXTS, LABELS, rulebook=BOOK), CONFIG, folder)
    return folder


def test_texts_and_grammars_under_it_are_predicted_alike(run: Path) -> None:
    predictor = Predictor.from_run(run, "cpu")
    assert predictor.rulebook == BOOK
    new = SAMPLE.documents[60:70]
    wanted = predictor.outputs(new)
    for same in (
        compress_many(new, rulebook=BOOK),
        list(compress_many(new, rulebook=BOOK)),
        Corpus.from_documents(new, rulebook=BOOK),
    ):
        np.testing.assert_allclose(predictor.outputs(same), wanted, rtol=1e-4, atol=1e-5)
    cached = Predictor.from_run(run, "cpu", cache=100_000)
    np.testing.assert_allclose(cached.outputs(new), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("other", [None, Rulebook.learn(TEXTS, 99)])
def test_another_rulebook_is_refused_with_the_cure(run: Path, other: Rulebook | None) -> None:
    predictor = Predictor.from_run(run, "cpu")
    corpus = Corpus.from_documents(TEXTS, LABELS, rulebook=other)
    with pytest.raises(InputError, match=r"rulebook .* give the documents as text, or"):
        predictor.outputs(corpus)
    with pytest.raises(InputError, match="give the texts"):
        predictor.outputs(corpus.grammars)
    if other is not None:
        with pytest.raises(InputError, match="for 100 shared rules, not 99"):
            Predictor(
                predictor.model, predictor.task, predictor.codec, predictor.alphabet, "cpu",
                rulebook=other,
            )  # fmt: skip


def test_evaluate_refuses_it_too(run: Path, tmp_path: Path) -> None:
    Corpus.from_documents(TEXTS, LABELS).write(tmp_path / "other.parquet")
    with pytest.raises(InputError, match="rulebook"):
        app(["evaluate", str(run), str(tmp_path / "other.parquet"), "--device", "cpu"])


@pytest.mark.parametrize("damage", ["missing", "other", "torn"])
def test_a_run_without_its_rulebook_is_damaged(run: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("config.json", "about.json"):
        (folder / name).write_bytes((run / name).read_bytes())
    book = folder / "rulebook.json"
    if damage == "other":
        Rulebook.learn(TEXTS, 99).save(book)
    elif damage == "torn":
        book.write_text((run / "rulebook.json").read_text()[:50])
    with pytest.raises(RunError, match=r"rulebook\.json"):
        Run.open(folder)


def test_a_run_under_none_has_no_file(tmp_path: Path) -> None:
    train(Corpus.from_documents(TEXTS, LABELS), CONFIG, tmp_path / "run")
    assert Run.open(tmp_path / "run").rulebook is None
    assert "rulebook" not in json.loads((tmp_path / "run" / "about.json").read_text())
    assert not (tmp_path / "run" / "rulebook.json").exists()


def test_estimators_learn_one_from_what_they_fit_or_take_one() -> None:
    tiny = {"embedding_size": 8, "width": 8, "max_epochs": 1, "device": "cpu", "random_state": 0}
    tiny |= {"model": "sequence"}
    learned = GrammarClassifier(rulebook=50, **tiny).fit(TEXTS, LABELS)
    assert learned.rulebook_ == Rulebook.learn(TEXTS, 50)
    given = GrammarClassifier(rulebook=BOOK, **tiny).fit(TEXTS, LABELS)
    assert given.rulebook_ is BOOK
    assert given.predict(TEXTS[:3]).shape == (3,)
    for none in (None, 0):
        assert GrammarClassifier(rulebook=none, **tiny).fit(TEXTS, LABELS).rulebook_ is None
    with pytest.raises(ValueError, match=r"rulebook must be .* a number of rules"):
        GrammarClassifier(rulebook=-1, **tiny).fit(TEXTS, LABELS)


def test_the_command_line_from_texts_to_predictions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = "".join(
        json.dumps({"text": t, "label": y}) + "\n" for t, y in zip(TEXTS, LABELS, strict=True)
    )
    (tmp_path / "train.jsonl").write_text(lines)
    for words in (
        "compress train.jsonl -o train.parquet --text text --label label --rulebook 100",
        "compress train.jsonl -o test.parquet --text text --label label --rulebook train.parquet",
        "train train.parquet -o run --embedding-size 8 --width 8 --epochs 1 --device cpu",
        "evaluate run test.parquet --device cpu",
        "predict run train.jsonl -o told.csv --device cpu",
    ):
        app(words.split(), exit_on_error=False, result_action="return_value")
    assert len((tmp_path / "told.csv").read_text().splitlines()) == len(TEXTS) + 1
