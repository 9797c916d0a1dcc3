"""Predictor and laconic predict: the same answers, whatever the batches, inputs and caches."""

from __future__ import annotations

import csv
import json
import re
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import Alphabet, AlphabetError, Codec, Corpus, Grammars, compress_many, samples
from laconic.batching import collate
from laconic.cli import app
from laconic.formats import ReadError
from laconic.inference.predictor import Predictor
from laconic.inference.state_cache import StateCache
from laconic.nn import GrammarModel
from laconic.nn.config import ModelConfig
from laconic.tasks import Classification, Multilabel, Regression, Task
from laconic.training.run import Run, RunError, about_corpus
from laconic.training.settings import TrainingConfig

KJV = samples.load("kjv")
TEXTS = [text[: 20 + 37 * k % 300] for k, text in enumerate(KJV.test.documents[:40])]
TEXTS[7] = ""
CLASSES = ("gospels", "law", "poetry")


def make_model(task: str = "classification", outputs: int = 3, **settings: Any) -> GrammarModel:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"alphabet_size": 256, "embedding_size": 16, "width": 16}
    return GrammarModel(ModelConfig(outputs=outputs, task=task, **sizes | settings)).eval()  # type: ignore[arg-type]


def decided(model: GrammarModel) -> GrammarModel:
    """Let documents differ in their classes."""
    with torch.no_grad():
        model.head.weight.mul_(8)
        model.head.bias -= model(collate(compress_many(TEXTS))).mean(0)
    return model


def make_predictor(model: GrammarModel | None = None, **options: Any) -> Predictor:
    task = options.pop("task", Classification(CLASSES))
    codec = options.pop("codec", Codec())
    return Predictor(model or make_model(), task, codec, Alphabet.bytes(), "cpu", **options)


def one_by_one(model: GrammarModel, grammars: Grammars) -> Any:
    with torch.no_grad():
        found = [model(collate(grammars[k : k + 1])) for k in range(len(grammars))]
    return torch.cat(found).numpy()


@pytest.mark.parametrize(
    ("composer", "sequence_model"),
    [
        ("grc", "lstm"),
        ("tree_lstm", "gru"),
        ("linear_recurrence", "transformer"),
        ("dual_gru", "cnn"),
        ("mlp", "rnn"),
    ],
)
def test_answers_do_not_depend_on_batches(composer: str, sequence_model: str) -> None:
    model = make_model(composer=composer, sequence_model=sequence_model)
    grammars = compress_many(TEXTS)
    alone = one_by_one(model, grammars)
    for options in (
        {},
        {"batch_size": 1},
        {"batch_size": 7, "workers": 2},
        {"budget": 100, "cache": 500},
        {"budget": 1, "cache": 100_000, "workers": 1},
    ):
        found = make_predictor(model, **options).outputs(grammars)
        np.testing.assert_allclose(found, alone, rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_answers_of_models_that_count_do_not_depend_on_batches(kind: str) -> None:
    chosen: dict[str, Any] = {"model": kind, "ngrams": 3, "phrases": 2, "ngram_buckets": 99}
    grammars = compress_many(TEXTS)
    model = make_model(**chosen, ngram_rows=198)
    assert model.bag is not None
    model.bag.learn(torch.arange(1, 199), 200)
    torch.nn.init.normal_(model.bag.table)
    counted = model.config.counted
    with torch.no_grad():
        found = [model(collate(grammars[k : k + 1], counted=counted)) for k in range(len(grammars))]
    alone = torch.cat(found).numpy()
    assert np.ptp(alone, axis=0).min() > 0.1
    for options in (
        {},
        {"batch_size": 1},
        {"batch_size": 7, "workers": 2},
        {"budget": 100, "cache": 500},
    ):
        predictor = make_predictor(model, **options)
        np.testing.assert_allclose(predictor.outputs(TEXTS), alone, rtol=0, atol=1e-5)


def test_order_does_not_matter() -> None:
    order = np.random.default_rng(3).permutation(len(TEXTS))
    predictor = make_predictor(batch_size=5, cache=1000)
    shuffled = predictor.outputs([TEXTS[k] for k in order])
    np.testing.assert_allclose(shuffled, predictor.outputs(TEXTS)[order], rtol=0, atol=1e-6)


def test_every_kind_of_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.inference.predictor._CHUNK", 16)
    grammars = compress_many(TEXTS)
    table = Corpus.from_documents(TEXTS).to_arrow()
    split = pa.concat_tables([table.slice(0, 11), table.slice(11)])
    predictor = make_predictor()
    expected = one_by_one(predictor.model, grammars)
    kinds: list[Any] = [
        TEXTS,
        tuple(text.encode() for text in TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object),
        pd.Series(TEXTS, index=range(5, 45)),
        pa.array(TEXTS),
        pa.chunked_array([TEXTS[:3], TEXTS[3:]], pa.large_string()),
        (text for text in TEXTS),
        grammars,
        list(grammars),
        Corpus.from_arrow(split),
    ]
    for documents in kinds:
        np.testing.assert_allclose(predictor.outputs(documents), expected, rtol=0, atol=1e-6)
    for nothing in ([], pa.array([], pa.string()), Corpus.from_documents([])):
        assert predictor.outputs(nothing).shape == (0, 3)
        assert predictor.predict(nothing) == []
        assert predictor.probabilities(nothing).shape == (0, 3)


def test_a_model_in_training_keeps_its_mode() -> None:
    model = make_model(dropout=0.5)
    expected = make_predictor(model).outputs(TEXTS)
    model.train()
    np.testing.assert_array_equal(make_predictor(model).outputs(TEXTS), expected)
    assert model.training
    assert model.dropout.training


def test_classes_labels_and_values() -> None:
    predictor = make_predictor(decided(make_model()))
    outputs = torch.from_numpy(predictor.outputs(TEXTS))
    probabilities = predictor.probabilities(TEXTS)
    np.testing.assert_allclose(probabilities, torch.softmax(outputs.double(), 1), atol=1e-12)
    assert predictor.predict(TEXTS) == [CLASSES[k] for k in outputs.argmax(1)]

    several = make_predictor(decided(make_model("multilabel")), task=Multilabel(CLASSES))
    probabilities = several.probabilities(TEXTS)
    np.testing.assert_allclose(
        probabilities, torch.sigmoid(torch.from_numpy(several.outputs(TEXTS)).double()), atol=1e-12
    )
    chosen = [[c for c, p in zip(CLASSES, row, strict=True) if p > 0.5] for row in probabilities]
    assert several.predict(TEXTS) == chosen
    assert several.task.probabilities([[1000.0, -1000.0, 0.0]]).tolist() == [[1.0, 0.0, 0.5]]

    number = make_predictor(make_model("regression", 1), task=Regression(mean=10.0, std=4.0))
    values = number.predict(TEXTS)
    assert values == pytest.approx((number.outputs(TEXTS)[:, 0] * 4.0 + 10.0).tolist())
    with pytest.raises(ValueError, match="a regression has no probabilities; use predict"):
        number.probabilities(TEXTS)


def test_what_cannot_be_predicted() -> None:
    predictor = make_predictor()
    with pytest.raises(TypeError, match=r"not one; pass \[document\]"):
        predictor.predict("a text")
    with pytest.raises(TypeError, match=r"not one; pass \[grammar\]"):
        predictor.predict(compress_many(["a"])[0])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="document 2 is missing; pass str or bytes"):
        predictor.predict(["a", "b", None])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="document 1 is float nan"):
        predictor.predict(pd.Series(["a", float("nan")]))
    with pytest.raises(TypeError, match="must be a list of texts or a Corpus, not int"):
        predictor.predict(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"has the codec Codec\(name='lz78'"):
        predictor.predict(Corpus.from_documents(["abab"], codec="lz78"))
    with pytest.raises(ValueError, match=r"has the alphabet Alphabet.dna\(\)"):
        predictor.predict(Corpus.from_documents(["ACGT"], alphabet="dna"))
    with pytest.raises(ValueError, match="the model is for 256 terminals"):
        Predictor(make_model(), Classification(CLASSES), Codec(), Alphabet.dna())
    with pytest.raises(ValueError, match="batch_size=0"):
        make_predictor(batch_size=0)
    for device in ("gpu9", "cuda:99"):
        with pytest.raises(ValueError, match=f"there is no device '{device}' here"):
            Predictor(make_model(), predictor.task, Codec(), Alphabet.bytes(), device)


def test_too_little_memory_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = make_predictor(batch_size=3)

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("no")

    monkeypatch.setattr(predictor.model, "read", full)
    told = pytest.warns(UserWarning, match="in smaller pieces from now on")
    with (
        told,
        pytest.raises(
            MemoryError,
            match="out of memory, with one document at a time, too; use device cpu",
        ),
    ):
        predictor.outputs(TEXTS)


@pytest.mark.parametrize("workers", [0, 2])
def test_text_outside_the_alphabet_is_named(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.inference.predictor._CHUNK", 2)
    task = Classification(CLASSES)
    model = make_model(alphabet_size=4)
    predictor = Predictor(model, task, Codec(), Alphabet.dna(), "cpu", workers=workers)
    with pytest.raises(AlphabetError, match="document 4, position 2: 'N' is not in") as caught:
        predictor.predict(["ACGT", "A", "C", "", "ACN", "G"])
    assert caught.value.document == 4


# The cache.


def trees(grammars: Grammars) -> set[Any]:
    """Every node of the documents' derivations as nested pairs: what the cache must tell apart."""
    found: set[Any] = set()
    for grammar in grammars:
        made: list[Any] = list(range(grammar.alphabet_size))
        for left, right in grammar.rules.tolist():
            made.append((made[left], made[right]))
        found |= set(made[grammar.alphabet_size :])
    return found


@settings(max_examples=30)
@given(
    st.lists(st.lists(st.text("ab", max_size=30), min_size=1, max_size=4), max_size=6),
    st.sampled_from([1, 5, 20, 1000]),
)
def test_cached_states_are_those_composed(batches: list[list[str]], capacity: int) -> None:
    """Codecs take turns, so that one text has several grammars, which have several states."""
    model = make_model(composer="mlp", embedding_size=4, width=4)
    cache = StateCache(capacity)
    seen: set[Any] = set()
    for number, texts in enumerate(batches):
        grammars = compress_many(texts, ("repair", "lz78", "lzd")[number % 3])
        batch = collate(grammars)
        before = cache.info()
        with torch.no_grad():
            torch.testing.assert_close(cache.states(model, batch), model.states(batch))
        info = cache.info()
        assert info.size <= capacity
        nodes = len(batch.children)
        assert info.hits + info.misses == before.hits + before.misses + nodes
        if capacity == 1000:
            used = trees(Grammars.concatenate([g.prune() for g in grammars]))
            assert info.hits - before.hits == len(used & seen)
            seen |= used
            assert info.size == len(seen)


def test_cache_info() -> None:
    predictor = make_predictor(cache=10_000)
    assert predictor.cache_info().hit_rate == 0
    predictor.outputs(TEXTS)
    first = predictor.cache_info()
    predictor.outputs(TEXTS)
    second = predictor.cache_info()
    assert second.misses == first.misses == first.size
    assert 0.5 <= second.hit_rate < 1
    assert make_predictor().cache_info() == (0, 0, 0, 0)


def test_threads_share_a_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """As those of a web service do: what one is composing, another must not take as composed."""
    model, batch = make_model(composer="mlp"), collate(compress_many(TEXTS))
    cache, composing = StateCache(10_000), threading.Event()
    compose = model.composer.compose

    def slowly(*states: torch.Tensor) -> torch.Tensor:
        composing.set()
        time.sleep(0.01)
        return compose(*states)

    expected = model.states(batch)
    monkeypatch.setattr(model.composer, "compose", slowly)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(cache.states, model, batch)
        assert composing.wait(10)
        second = pool.submit(cache.states, model, batch)
        for found in (first, second):
            torch.testing.assert_close(found.result(), expected)


def test_a_cache_forgets_what_was_not_composed(monkeypatch: pytest.MonkeyPatch) -> None:
    model, batch, cache = (
        make_model(composer="mlp"),
        collate(compress_many(TEXTS)),
        StateCache(10_000),
    )

    def stopped(*_: torch.Tensor) -> torch.Tensor:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(model.composer, "compose", stopped)
        with pytest.raises(KeyboardInterrupt):
            cache.states(model, batch)
    torch.testing.assert_close(cache.states(model, batch), model.states(batch))


def test_one_document_is_read_without_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes less time than threads take to meet."""
    predictor, threads = make_predictor(), []
    forward = predictor.model.forward

    def noted(*given: Any) -> torch.Tensor:
        threads.append(torch.get_num_threads())
        return forward(*given)

    monkeypatch.setattr(predictor.model, "forward", noted)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        alone, together = predictor.outputs(TEXTS[:1]), predictor.outputs(TEXTS[:2])
        assert (threads, torch.get_num_threads()) == ([1, 2], 2)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_allclose(alone[0], together[0], rtol=0, atol=1e-6)


# The command.


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", decided(make_model()), Classification(CLASSES))


def make_run(
    folder: Path, model: GrammarModel, task: Task, alphabet: Alphabet | None = None
) -> Path:
    about = about_corpus(Codec(), alphabet or Alphabet.bytes())
    Run.create(folder, TrainingConfig(), {"labels": task.to_json(), **about})
    model.save_pretrained(folder / "model")
    return folder


def laconic(*words: str | Path) -> None:
    app(
        ["predict", *map(str, words), "--device", "cpu"],
        exit_on_error=False,
        result_action="return_value",
    )


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few documents are several chunks, as many are."""
    monkeypatch.setattr("laconic.cli.inputs._PART_BYTES", 2000)
    monkeypatch.setattr("laconic.corpus.inputs._ROWS", 9)


@pytest.fixture
def new_csv(tmp_path: Path) -> Path:
    path = tmp_path / "new.csv"
    rows = {"id": [f"n{k}" for k in range(len(TEXTS))], "text": TEXTS, "row": range(len(TEXTS))}
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def records(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        return list(csv.DictReader(path.read_text().splitlines()))
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    return list(pyarrow.parquet.read_table(path).to_pylist())


def test_from_a_csv_to_every_format(run_folder: Path, new_csv: Path, tmp_path: Path) -> None:
    predictor = Predictor.from_run(run_folder, "cpu")
    probabilities = predictor.probabilities(TEXTS)
    for suffix in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"predictions.{suffix}"
        laconic(run_folder, new_csv, "-o", out, "--batch-size", "3")
        found = records(out)
        assert list(found[0]) == [
            "row",
            "prediction",
            "p(gospels)",
            "p(law)",
            "p(poetry)",
            "id",
            "row_input",
        ]
        assert [int(row["row"]) for row in found] == list(range(len(TEXTS)))
        assert [row["id"] for row in found] == [f"n{k}" for k in range(len(TEXTS))]
        assert [row["prediction"] for row in found] == predictor.predict(TEXTS)
        assert len({row["prediction"] for row in found}) > 1
        told = [[float(row[f"p({name})"]) for name in CLASSES] for row in found]
        np.testing.assert_allclose(told, probabilities, rtol=0, atol=2e-6)


def _rounded(printed: str) -> str:
    return re.sub(r"\d\.\d{6}", lambda found: f"{float(found[0]):.4f}", printed)


def test_corpora_and_workers_give_the_same(
    run_folder: Path, new_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    laconic(run_folder, new_csv)
    printed = capsys.readouterr().out
    corpus = tmp_path / "new.parquet"
    ids = pa.table({"id": [f"n{k}" for k in range(len(TEXTS))], "row": range(len(TEXTS))})
    table = Corpus.from_documents(TEXTS).to_arrow()
    for name in ids.column_names:
        table = table.append_column(name, ids.column(name))
    Corpus.from_arrow(table).write(corpus)
    for words in ((run_folder, corpus), (run_folder, new_csv, "--workers", "2", "--cache", "0")):
        laconic(*words)
        again = capsys.readouterr().out
        # Other batches may round the last digit of a probability otherwise.
        assert _rounded(again) == _rounded(printed)
    laconic(run_folder, new_csv, "--json")
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["prediction"] for line in lines] == [
        row["prediction"] for row in csv.DictReader(printed.splitlines())
    ]


def test_what_it_reports(
    run_folder: Path, new_csv: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "p.csv"
    laconic(run_folder, new_csv, "-o", out, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["documents"] == len(TEXTS) == sum(told["predictions"].values())
    assert told["cache"]["misses"] > 0
    with pytest.raises(FileExistsError, match="or use --force"):
        laconic(run_folder, new_csv, "-o", out)
    laconic(run_folder, new_csv, "-o", out, "--force")
    assert "symbols were in the cache" in capsys.readouterr().out


def test_several_labels_and_numbers(tmp_path: Path, new_csv: Path) -> None:
    several = make_run(tmp_path / "m", decided(make_model("multilabel")), Multilabel(CLASSES))
    expected = Predictor.from_run(several, "cpu").predict(TEXTS)
    for suffix in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"m.{suffix}"
        laconic(several, new_csv, "-o", out)
        found = [row["prediction"] for row in records(out)]
        assert (list(map(json.loads, found)) if suffix == "csv" else found) == expected
    number = make_run(tmp_path / "r", make_model("regression", 1), Regression(mean=3.0, std=2.0))
    laconic(number, new_csv, "-o", tmp_path / "r.csv")
    found = records(tmp_path / "r.csv")
    assert list(found[0]) == ["row", "prediction", "id", "row_input"]
    values = Predictor.from_run(number, "cpu").predict(TEXTS)
    assert [float(row["prediction"]) for row in found] == pytest.approx(values, rel=1e-6)


def leftovers(folder: Path) -> Iterator[str]:
    return (path.name for path in folder.iterdir() if "p.csv" in path.name)


def test_bad_input_leaves_nothing(run_folder: Path, new_csv: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.csv"
    with pytest.raises(FileNotFoundError, match=r"gone\.csv: no such file"):
        laconic(run_folder, tmp_path / "gone.csv", "-o", out)
    corpus = tmp_path / "c.parquet"
    Corpus.from_documents(["abab"]).write(corpus)
    with pytest.raises(RunError, match="is a corpus, not a run"):
        laconic(corpus, new_csv, "-o", out)
    with pytest.raises(ReadError, match="choose --text from"):
        laconic(run_folder, new_csv, "-o", out, "--text", "review")
    with pytest.raises(
        ValueError, match=r"predictions are a file of one of these: \.csv, \.tsv, \.jsonl"
    ):
        laconic(run_folder, new_csv, "-o", tmp_path / "p.csv.doc")
    with pytest.raises(FileNotFoundError, match="make the folder first"):
        laconic(run_folder, new_csv, "-o", tmp_path / "no" / "p.csv")
    dna = make_run(
        tmp_path / "dna",
        make_model(alphabet_size=4),
        Classification(CLASSES),
        Alphabet.dna(),
    )
    reads = tmp_path / "reads.csv"
    reads.write_text("text\n" + "ACGTT\n" * 1000 + "ACXT\n")
    for workers in ("0", "2"):
        with pytest.raises(ReadError, match=r"reads\.csv, row 1001, position 2: 'X' is not in"):
            laconic(dna, reads, "-o", out, "--workers", workers)
    assert list(leftovers(tmp_path)) == []
    before = new_csv.read_bytes()
    with pytest.raises(FileExistsError, match="is the input itself"):
        laconic(run_folder, new_csv, "-o", new_csv, "--force")
    assert new_csv.read_bytes() == before


def test_debug_tells_where(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FileNotFoundError):
        laconic(run_folder, tmp_path / "gone.csv")
    assert "Traceback" not in capsys.readouterr().err
    with pytest.raises(FileNotFoundError):
        laconic(run_folder, tmp_path / "gone.csv", "--debug")
    assert "Traceback" in capsys.readouterr().err
