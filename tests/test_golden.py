"""Whatever Laconic once wrote stays readable: files of each version, with what came out then.

tools/make_golden.py wrote the folders of tests/golden, run by the version whose name they have: v0
before files named their version, which is version 1 without saying so.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import make_golden
import numpy as np
import pytest
import torch
from scipy.sparse import load_npz

from laconic import Corpus, Rulebook, compress_many, ngrams
from laconic.batching import collate
from laconic.features.vectorizer_file import load_vectorizer
from laconic.inference.predictor import Predictor
from laconic.nn import GrammarModel, config
from laconic.training.checkpoint import Position
from laconic.training.presets import PRESETS
from laconic.training.run import Run

GOLDEN = make_golden.GOLDEN
VERSIONS = sorted(path.name for path in GOLDEN.iterdir() if path.is_dir())
# Settings that came after a version, and what files of before have: what was done without them. A
# line that is here never changes, whatever the default for new runs will be.
ADDED: dict[str, Any] = {
    "stream": None,  # in memory; a run that goes on does not ask how much is free
    "buffer": 256.0,
    # Documents of before share no rules, so that none of these says anything.
    "residual_documents": 4,
    "residual_dropout": 0.1,
    "symbol_dropout": 0.0,
    "shared_rules": 0,
    "residual_rows": 0,
    # What is counted, and how much it weighs, as if there had never been anything else.
    "shared_ngrams": 0,
    "ngram_counts": "log",
    "minutes": None,
    "kernels": True,  # how a layer is computed, not what
    "keep": "best",  # in automatic training, too, which reads to the last epoch since
}


@pytest.fixture(params=VERSIONS)
def golden(request: pytest.FixtureRequest) -> Path:
    return GOLDEN / str(request.param)


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def texts(golden: Path) -> list[str]:
    return [each["text"] for each in lines(golden / "documents.jsonl")]


def probabilities(golden: Path) -> np.ndarray[Any, Any]:
    found = [[each["p(gospels)"], each["p(law)"]] for each in lines(golden / "predictions.jsonl")]
    return np.array(found)


def kept(path: Path, like: config.ModelSettings) -> dict[str, Any]:
    """Return the settings in a file, and those that came later and `like` has."""
    settings = {k: v for k, v in read(path).items() if k not in ("version", "hashes")}
    return settings | {k: v for k, v in ADDED.items() if k in vars(like) and k not in settings}


@pytest.mark.parametrize("name", ["plain", "compact"])
def test_corpora(golden: Path, name: str) -> None:
    corpus = Corpus.open(golden / f"{name}.parquet")
    assert [each.text() for each in corpus] == texts(golden)
    assert corpus.labels == [each["label"] for each in lines(golden / "documents.jsonl")]
    found = [[each.rules.tolist(), each.sequence.tolist()] for each in corpus.grammars]
    assert found == read(golden / "grammars.json")
    assert not list(corpus.problems())


def test_rulebooks(golden: Path) -> None:
    if not (golden / "book.json").exists():
        pytest.skip("before there were rulebooks")
    book = Rulebook.load(golden / "book.json")
    shared = Corpus.open(golden / "shared.parquet")
    assert shared.rulebook == book
    assert [each.text() for each in shared] == texts(golden)
    again = Corpus.from_documents(texts(golden), codec=shared.codec, rulebook=book)
    assert shared.grammars == again.grammars
    # What is learned may get better: what is kept must stay.
    assert book.fingerprint == FINGERPRINTS[golden.name]


FINGERPRINTS = {
    "v2": "8a0aa0af9dc945f03bb1274a4af9c8daa1952d6cb8a922ce5e87d4b532db1f04",
    "v3": "fbb320057ea01371c75592a06cecd254b9b5ca1fabbbd94489bbff4a0272cc4e",
}


def test_models(golden: Path) -> None:
    model = GrammarModel.from_pretrained(golden / "run/model")
    assert model.config.to_json() == kept(golden / "run/model/config.json", model.config)
    grammars = compress_many(texts(golden), rulebook=Run.open(golden / "run").rulebook)
    asked = {"counted": model.config.counted, "in_place": model.config.in_place}
    with torch.no_grad():
        scores = model(collate(grammars, **asked))
    found = scores.softmax(1).numpy()
    np.testing.assert_allclose(found, probabilities(golden), atol=1e-5)


def test_runs(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PRESETS, "fast", {"epochs": 99, "dropout": 0.0})
    run = Run.open(golden / "run")
    assert run.config.preset == "fast"
    assert run.config.to_json() == kept(golden / "run/config.json", run.config)
    assert run.finished
    [state] = (golden / "run/checkpoints").glob("*/state.json")
    assert Position.from_json(read(state)).step == run.metrics()[-2]["step"]
    predictor = Predictor.from_run(run.folder)
    found = predictor.predict(texts(golden))
    assert found == [each["prediction"] for each in lines(golden / "predictions.jsonl")]
    corpus = "compact.parquet" if run.rulebook is None else "shared.parquet"
    again = predictor.probabilities(Corpus.open(golden / corpus))
    np.testing.assert_allclose(again, probabilities(golden), atol=1e-5)


def test_vectorizers(golden: Path) -> None:
    vectorizer = load_vectorizer(golden / "matrix.features.json")
    found, wanted = vectorizer.transform(texts(golden)), load_npz(golden / "matrix.npz")
    assert found.dtype == wanted.dtype
    assert (found != wanted).nnz == 0


# What this version cannot read is refused, with the cure.

LATER = r": a later Laconic wrote it, in format version 2; .* upgrade Laconic"
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "model": ("run/model/config.json", lambda path: GrammarModel.from_pretrained(path.parent)),
    "run": ("run/config.json", lambda path: Run.open(path.parent)),
    "about": ("run/about.json", lambda path: Run.open(path.parent)),
    "vectorizer": ("matrix.features.json", load_vectorizer),
}


@pytest.fixture
def copied(golden: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden, tmp_path / "golden"))


def change(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps(read(path) | fields))


@pytest.mark.parametrize("kind", READERS)
def test_later_versions_are_refused(copied: Path, kind: str) -> None:
    name, load = READERS[kind]
    change(copied / name, version=2, later="what nobody knows yet")
    with pytest.raises(ValueError, match=name + LATER):
        load(copied / name)
    for version in (0, "1", True, None):
        change(copied / name, version=version)
        with pytest.raises(ValueError, match=rf"{name} is .*there is no format version"):
            load(copied / name)


@pytest.mark.parametrize("kind", ["model", "run"])
@pytest.mark.parametrize("of", sorted(ngrams.HASHES))
def test_other_hashes_are_refused(
    copied: Path, kind: str, of: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, load = READERS[kind]
    known = ngrams.HASHES[of]
    cure = r"use the Laconic that wrote it, or train again"
    told = (
        rf"{name}: its tables of {of} rest on the hash '{{}}', and this Laconic has '{{}}': {cure}"
    )
    for other in (known[:-1] + "2", "sha1.1"):
        change(copied / name, hashes={**ngrams.HASHES, of: other})
        with pytest.raises(ValueError, match=told.format(other, known)):
            load(copied / name)
    change(copied / name, hashes={**ngrams.HASHES, "pages": "sha1.1"})
    load(copied / name)  # it uses no such hash
    for hashes in ([], None, "murmur3-32.1"):
        change(copied / name, hashes=hashes)
        with pytest.raises(ValueError, match="hashes must be an object"):
            load(copied / name)
    # The other way round: what was made with today's hash, and a Laconic that has another.
    shutil.copytree(GOLDEN / "v0", copied, dirs_exist_ok=True)
    later = known[:-1] + "2"
    monkeypatch.setattr(ngrams, "HASHES", ngrams.HASHES | {of: later})
    with pytest.raises(ValueError, match=told.format(known, later)):
        load(copied / name)


def test_only_hashes_that_are_used_matter() -> None:
    assert config.ModelConfig(256, 2).hashes == {}
    assert config.ModelConfig(256, 2, model="ngram", phrases=0, local_ngrams=3).hashes.keys() == {
        "ngrams"
    }
    assert config.ModelConfig(256, 2, local_ngrams=3, identity_buckets=3).hashes.keys() == {
        "in_place",
        "identity",
    }


def test_files_name_their_version_and_hashes(golden: Path, tmp_path: Path) -> None:
    GrammarModel.from_pretrained(golden / "run/model").save_pretrained(tmp_path)
    saved = read(tmp_path / "config.json")
    assert (saved["version"], saved["hashes"]) == (1, dict(ngrams.HASHES))


def test_golden_files_are_never_written_again() -> None:
    command = [sys.executable, make_golden.__file__, VERSIONS[0]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "exists: what was written once is read as it is" in done.stderr
