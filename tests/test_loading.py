"""`laconic.load`: a run as an estimator; explanations in words; and a web service of it."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor

import laconic
from laconic.training.auto import learn
from laconic.training.run import RunError
from laconic.training.settings import resolve

GOOD, BAD = "lovely place, friendly people, will come again", "terrible, rude, never again"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of reviews, of which a few words decide."""
    rng = np.random.default_rng(0)
    plain = [f"{a}{b}" for a in "bdfgk" for b in ("ana", "elo", "iri")]
    words = {"good": ["lovely", "friendly", "great"], "bad": ["terrible", "rude", "stale"]}
    labels = ["good", "bad"] * 100
    texts = [
        " ".join(rng.permutation([*rng.choice(plain, 12), *rng.choice(words[label], 2)]))
        for label in labels
    ]
    folder = tmp_path_factory.mktemp("loaded") / "run"
    book = laconic.Rulebook.learn(texts, 100)
    corpus = laconic.Corpus.from_documents(texts, labels, rulebook=book)
    learn(corpus, resolve("auto", {"device": "cpu"}), folder)
    return folder


def test_a_run_is_an_estimator(run: Path, tmp_path: Path) -> None:
    model = laconic.load(run, device="cpu")
    assert is_classifier(model)
    assert model.classes_.tolist() == ["bad", "good"]
    assert model.predict([GOOD, BAD]).tolist() == ["good", "bad"]
    assert model.predict_proba([GOOD]).shape == (1, 2)
    assert model.score([GOOD, BAD], ["good", "bad"]) == 1
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba([GOOD]), model.predict_proba([GOOD]))
    with pytest.raises(RunError, match="does not exist"):
        laconic.load(tmp_path / "none")


def test_a_regression_is_one_too(tmp_path: Path) -> None:
    texts = [("a" * (k % 9) + " b") for k in range(60)]
    corpus = laconic.Corpus.from_documents(texts, [k % 9 + 0.5 for k in range(60)])
    learn(corpus, resolve("auto", {"device": "cpu"}), tmp_path / "run")
    model = laconic.load(tmp_path / "run", device="cpu")
    assert is_regressor(model)
    assert model.predict(["aaaaaaaa b"])[0] > model.predict(["a b"])[0]


def test_words_explain(run: Path) -> None:
    told = laconic.load(run, device="cpu").explain(BAD)
    assert told.prediction == "bad"
    assert {word.text for word in told.words()[:2]} == {"terrible", "rude"}
    assert "".join(word.text for word in told.spans) == BAD
    # What is counted adds exactly so much: n-grams and runs of shared symbols.
    assert sum(word.score for word in told.spans) == pytest.approx(told.value - told.base, abs=1e-4)
    assert told.shares == {"counting": 1.0}
    letters = laconic.load(run, device="cpu").explain("ACGT" * 30)
    assert [word.name for word in letters.spans][:2] == ["0: ACGTACGTAC", "10: GTACGTACGT"]


def ask(port: int, path: str, text: str) -> dict[str, Any]:
    data = json.dumps({"text": text}).encode()
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{path}", data, headers)
    with urllib.request.urlopen(request, timeout=20) as answer:
        found: dict[str, Any] = json.load(answer)
        return found


@pytest.mark.slow
def test_the_service(run: Path) -> None:
    pytest.importorskip("fastapi")
    pytest.importorskip("uvicorn")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = Path(__file__).parent.parent / "examples" / "service.py"
    process = subprocess.Popen([sys.executable, script, run, "--port", str(port)])
    try:
        for _ in range(300):
            try:
                said = ask(port, "predict", GOOD)
                break
            except urllib.error.URLError:
                assert process.poll() is None
                time.sleep(0.2)
        assert said["prediction"] == "good"
        assert said["probabilities"]["good"] > 0.5
        assert ask(port, "explain", BAD)["words"][0]["text"] in ("terrible", "rude")
    finally:
        process.terminate()
        process.wait(30)
