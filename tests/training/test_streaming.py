"""Training on documents that stay on disk: the same as in memory, in another order at most."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import forked
import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from laconic import Corpus, samples
from laconic.batching import GrammarDataset
from laconic.cli import app
from laconic.corpus.stored import StoredGrammars
from laconic.grammar import Grammars
from laconic.training import holdout, streaming
from laconic.training.holdout import divide, labelled_dataset, targets_of
from laconic.training.loop import Trained, train
from laconic.training.new_model import new_model
from laconic.training.progress import Progress
from laconic.training.run import Run, RunError
from laconic.training.settings import resolve

TINY = resolve("fast", {"embedding_size": 8, "width": 8, "epochs": 2, "seed": 5})
STREAM = replace(TINY, stream=True)
SMALL_BUFFER = 0.01  # MB: four of the corpus's ten shards


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streamed") / "corpus"
    folder.mkdir()
    split = samples.load("kjv").train
    texts = [text[: 60 + n] for n, text in enumerate(split.documents[:100])]
    corpus = Corpus.from_documents(texts, split.labels[:100])
    for number, some in enumerate(corpus.batches(10)):
        some.write(folder / f"{number}.parquet")
    return folder


@pytest.fixture
def corpus(folder: Path) -> Corpus:
    return Corpus.open(folder)


def same(one: Trained, other: Trained) -> bool:
    a, b = one.model.state_dict(), other.model.state_dict()
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


class Stop(Exception):  # noqa: N818
    """Somebody pulled the plug."""


def stop_at(epoch: int, step: int) -> Callable[[Progress], None]:
    def progress(at: Progress) -> None:
        if at.epoch == epoch and at.step == step:
            raise Stop

    return progress


KINDS: list[dict[str, Any]] = [
    {},
    {"model": "both", "ngrams": 3, "ngram_buckets": 5000, "grammar_dropout": 0.3},
    {"local_ngrams": 3, "local_buckets": 5000, "documents_per_epoch": 50, "workers": 1},
]


@pytest.mark.parametrize("settings", KINDS, ids=["plain", "counting", "in place"])
def test_a_buffer_that_holds_all_gives_the_same_weights(
    corpus: Corpus, folder: Path, settings: dict[str, Any]
) -> None:
    in_memory = train(corpus, replace(TINY, stream=False, **settings))
    streamed = train(Corpus.open(folder), replace(STREAM, **settings))
    assert same(in_memory, streamed)
    assert streamed.history[0]["valid"] == in_memory.history[0]["valid"]


def test_a_small_buffer_gives_others_that_learn_as_well(corpus: Corpus) -> None:
    in_memory = train(corpus, TINY)
    streamed = train(corpus, replace(STREAM, buffer=SMALL_BUFFER))
    assert not same(in_memory, streamed)
    assert streamed.history[1]["train_loss"] < streamed.history[0]["train_loss"]


@pytest.mark.parametrize("task", ["classification", "regression", "multilabel"])
def test_labels_and_the_held_out_part_are_those_of_memory(tmp_path: Path, task: str) -> None:
    rng, texts = np.random.default_rng(1), [f"{n}, {n * n}" for n in range(60)]
    labels: list[Any] = [f"class {n}" for n in rng.integers(0, 5, 60)]
    if task == "regression":
        labels = rng.normal(size=60).tolist()
    if task == "multilabel":
        labels = [[str(each) for each in rng.integers(0, 9, n % 3)] for n in range(60)]
    for number, some in enumerate(Corpus.from_documents(texts, labels).batches(9)):
        some.write(tmp_path / f"{number}.parquet")
    there = Corpus.open(tmp_path)
    found = [divide(there, None, None, replace(TINY, stream=each)) for each in (False, True)]
    for one, other in zip(*found, strict=True):
        if isinstance(one, GrammarDataset):
            assert isinstance(one.grammars, Grammars)
            assert isinstance(other.grammars, StoredGrammars)
            np.testing.assert_array_equal(one.rows, other.rows)
            np.testing.assert_array_equal(targets_of(one), targets_of(other))
            np.testing.assert_array_equal(one.sequence_lengths, other.sequence_lengths)
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other)
        elif one is None:
            assert other is None
        else:
            assert one == other
            assert one.name == task


@pytest.mark.parametrize("where", [(1, 2), (1, 4), (2, 3)])
def test_resumed_in_the_middle_of_an_epoch(
    corpus: Corpus, tmp_path: Path, where: tuple[int, int]
) -> None:
    config = replace(STREAM, buffer=SMALL_BUFFER, checkpoint_minutes=0.0, grammar_dropout=0.2)
    whole = train(corpus, config)
    with pytest.raises(Stop):
        train(corpus, config, tmp_path / "run", progress=stop_at(*where))
    seen: list[Progress] = []
    resumed = train(corpus, config, tmp_path / "run", resume=True, progress=seen.append)
    first = next(at for at in seen if at.epoch)
    assert (first.epoch, first.step) == (where[0], where[1] + 1)
    assert same(whole, resumed)
    about = Run.open(tmp_path / "run").about["corpus"]
    assert about["documents"] == 100
    assert about["letters"] == int(corpus.lengths.sum())
    assert about["symbols"] == len(corpus.grammars.sequence)


def test_reading_and_counting_can_be_watched(corpus: Corpus) -> None:
    seen: list[Progress] = []
    config = replace(STREAM, model="ngram", ngrams=2, phrases=0, ngram_buckets=5000, epochs=1)
    train(corpus, config, progress=seen.append)
    before = [(at.step, at.steps) for at in seen if at.epoch == 0]
    assert before == [*((done, 100) for done in range(10, 101, 10)), (80, 80)]
    assert [at.epoch for at in seen] == sorted(at.epoch for at in seen)


def test_no_more_is_read_than_is_needed(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to know the documents, once in the epoch, once to validate it and once in the end."""
    read: list[int] = []
    group = Corpus.group

    def watched(self: Corpus, number: int) -> Grammars:
        read.append(number)
        return group(self, number)

    monkeypatch.setattr(Corpus, "group", watched)
    train(corpus, replace(STREAM, buffer=SMALL_BUFFER, epochs=1))
    assert read[:10] == list(range(10))
    assert max(read.count(number) for number in range(10)) <= 4


def test_free_memory_decides_unless_somebody_does(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needed = corpus.estimated_bytes()
    assert needed == pytest.approx(corpus.grammars.nbytes, rel=0.3)

    def chosen(free: int, stream: bool | None = None, corpora: int = 1) -> bool | None:
        monkeypatch.setattr(streaming, "free_memory", lambda: free)
        return streaming.with_stream(replace(TINY, stream=stream), [corpus] * corpora).stream

    assert not chosen(3 * needed)
    assert chosen(3 * needed - 1)
    assert chosen(3 * needed, corpora=2), "what validates must be held, too"
    assert not chosen(1, stream=False)
    assert chosen(1 << 60, stream=True)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    assert chosen(4 * needed), "each process holds all"
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    # What was chosen is kept, whatever is free later.
    chosen(1)
    with pytest.raises(Stop):
        train(corpus, TINY, tmp_path / "run", progress=stop_at(2, 1))
    assert Run.open(tmp_path / "run").config.stream is True
    chosen(1 << 60)
    assert same(train(corpus, TINY, tmp_path / "run", resume=True), train(corpus, STREAM))
    with pytest.raises(RunError, match="stream was True, now False"):
        train(corpus, replace(TINY, stream=False), tmp_path / "run", resume=True)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_kept_bags_change_nothing(
    corpus: Corpus, kind: Any, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = {"model": kind, "ngrams": 5, "phrases": 2, "ngram_buckets": 5000}
    config = replace(TINY, stream=False, grammar_dropout=0.3, workers=workers, **counting)
    kept = train(corpus, config)
    monkeypatch.setattr(streaming, "free_memory", lambda: 0)
    assert same(train(corpus, config), kept)


def test_bags_are_kept_if_they_fit(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset, task = labelled_dataset(corpus, None, TINY.task)
    training = dataset.select(np.arange(0, 100, 2))
    counting = replace(TINY, model="ngram", ngrams=5, ngram_buckets=5000)
    config = counting.model_config(256, task.outputs, task.name)
    counted = config.counted
    assert counted is not None
    entries = len(counted.count(corpus.grammars.take(training.rows)).data)

    def how_many(free: int) -> int:
        monkeypatch.setattr(streaming, "free_memory", lambda: free)
        with_bags = streaming.with_kept_bags(training, counted)
        assert with_bags.kept is not None
        new_model(config, with_bags)
        return len(with_bags.kept)

    plenty = 4 * 2 * (5 * entries + 400 * len(training))
    assert how_many(plenty) == len(training), "counting for the model has kept them all"
    assert how_many(plenty // 4) == 0, "a quarter is for bags"
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    assert how_many(plenty) == 0, "each process has its own"
    assert streaming.with_kept_bags(training, None).kept is None
    stored, _ = labelled_dataset(corpus, None, TINY.task, buffer=1 << 20)
    assert streaming.with_kept_bags(stored, counted).kept is None


def test_free_memory_knows_containers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = streaming.free_memory()
    assert 1 << 20 < whole < 1 << 50
    monkeypatch.setattr(streaming, "_CONTROL_GROUP", tmp_path)
    for name, text in {
        "max": "1000",
        "current": "700",
        "stat": "anon 5\ninactive_file 200",
    }.items():
        (tmp_path / f"memory.{name}").write_text(text + "\n")
    assert streaming.free_memory() == 500
    (tmp_path / "memory.max").write_text("max\n")
    assert streaming.free_memory() > 1 << 20


def test_commands(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def laconic(*words: object) -> str:
        capsys.readouterr()
        app([str(word) for word in words], exit_on_error=False, result_action="return_value")
        return capsys.readouterr().out

    flags = ["--embedding-size", "8", "--width", "8", "--epochs", "1", "--valid", folder]
    laconic("train", folder, "-o", tmp_path / "a", *flags, "--stream", "--buffer", SMALL_BUFFER)
    laconic("train", folder, "-o", tmp_path / "b", *flags, "--in-memory")
    assert Run.open(tmp_path / "a").config.stream is True
    assert Run.open(tmp_path / "b").config.stream is False
    laconic("train", folder, "-o", tmp_path / "a", "--valid", folder, "--resume")
    in_memory = json.loads(laconic("evaluate", tmp_path / "a", folder, "--json"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streaming, "free_memory", lambda: 0)
        patch.setattr(holdout, "StoredGrammars", lambda corpus, *_: StoredGrammars(corpus, 9000))
        streamed = json.loads(laconic("evaluate", tmp_path / "a", folder, "--json"))
    assert streamed["confusion"] == in_memory["confusion"]
    assert streamed["loss"] == pytest.approx(in_memory["loss"], rel=1e-5)


@pytest.mark.slow
def test_two_processes_take_the_same_documents(folder: Path, tmp_path: Path) -> None:
    config = replace(STREAM, buffer=SMALL_BUFFER, dropout=0.0)
    alone = train(Corpus.open(folder), config)
    words = ["train", str(folder), "-o", str(tmp_path / "run"), "--preset", "fast", "--stream"]
    given = {"embedding-size": 8, "width": 8, "epochs": 2, "seed": 5, "dropout": 0, "batch-size": 8}
    for name, value in (given | {"buffer": SMALL_BUFFER}).items():
        words += [f"--{name}", str(value)]
    two = forked.Ranks(words)
    _, said = two.communicate(timeout=120)
    assert two.returncode == 0, said
    for name, weight in load_file(tmp_path / "run/model/model.safetensors").items():
        torch.testing.assert_close(weight, alone.model.state_dict()[name], atol=1e-6, rtol=0)
