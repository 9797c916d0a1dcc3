"""The loop, in this process: what comes out, also after interruptions, and what goes wrong."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

import laconic
from laconic import Corpus, compress_many, samples
from laconic.batching import GrammarDataset, LengthSampler, collate
from laconic.batching.grammar_dropout import expand_at_random
from laconic.errors import OutOfMemoryError
from laconic.nn import GrammarModel, pretrained
from laconic.tasks import Classification, LabelError, task_of
from laconic.training import loop
from laconic.training.checkpoint import CheckpointError, Checkpoints
from laconic.training.holdout import split, targets_of
from laconic.training.loop import Trained, train
from laconic.training.new_model import new_model
from laconic.training.progress import Progress, TrainingError
from laconic.training.run import Run, RunError
from laconic.training.schedule import learning_rate
from laconic.training.settings import ConfigError, TrainingConfig
from laconic.training.validation import forward_pass

TINY = TrainingConfig(embedding_size=16, width=16, epochs=3, batch_size=16, dropout=0.2, seed=5)
TIMES = ("seconds", "documents_per_s", "peak_memory_mb")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    split = samples.load("kjv").train
    texts = [text[:120] for text in split.documents[:100]]
    return Corpus.from_documents(texts, split.labels[:100])


def weights(trained: Trained) -> dict[str, torch.Tensor]:
    return trained.model.state_dict()


def same(a: Trained, b: Trained) -> bool:
    equal = all(torch.equal(weights(a)[name], weights(b)[name]) for name in weights(a))
    return equal and timeless(a.history) == timeless(b.history)


def timeless(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in TIMES} for line in lines]


class Stop(Exception):  # noqa: N818
    """Somebody pulled the plug."""


def stop_at(epoch: int, step: int) -> Callable[[Progress], None]:
    def progress(at: Progress) -> None:
        if at.epoch == epoch and at.step == step:
            raise Stop

    return progress


def test_the_same_seed_gives_the_same_weights(corpus: Corpus) -> None:
    before = torch.get_rng_state()
    one, two = train(corpus, TINY), train(corpus, TINY)
    assert same(one, two)
    assert torch.equal(torch.get_rng_state(), before), "others' random numbers are left alone"
    assert not same(one, train(corpus, replace(TINY, seed=6)))
    assert [line["epoch"] for line in one.history[:-1]] == [1, 2, 3]
    assert one.history[-1]["done"] is True
    best = one.history[one.best_epoch - 1]["valid"]
    assert one.history[-1]["valid"]["accuracy"] == best["accuracy"]
    assert one.history[-1]["valid"]["loss"] == pytest.approx(best["loss"])


def test_it_learns() -> None:
    texts = ["abab" * n if n % 2 else "cdcd" * n for n in range(1, 60)]
    corpus = Corpus.from_documents(texts, [n % 2 for n in range(1, 60)])
    trained = train(corpus, replace(TINY, learning_rate=0.02, epochs=5))
    assert trained.history[-1]["valid"]["accuracy"] == 1.0
    assert trained.task.classes == (0, 1)


@pytest.mark.parametrize("minutes", [0.0, 60.0])
@pytest.mark.parametrize("where", [(1, 1), (2, 3), (2, 5), (3, 1)])
def test_resumed_is_as_if_nothing_had_been(
    corpus: Corpus, tmp_path: Path, where: tuple[int, int], minutes: float
) -> None:
    config = replace(TINY, checkpoint_minutes=minutes)
    whole = train(corpus, TINY)
    for at in (where, (3, 4)):
        with pytest.raises(Stop):
            train(corpus, config, tmp_path / "run", resume=True, progress=stop_at(*at))
    seen: list[Progress] = []
    resumed = train(corpus, config, tmp_path / "run", resume=True, progress=seen.append)
    assert same(whole, resumed)
    if minutes == 0:
        # Stop is raised after the checkpoint of step 4.
        assert (seen[0].epoch, seen[0].step) == (3, 5)
    run = Run.open(tmp_path / "run")
    assert timeless(run.metrics()) == timeless(whole.history)
    assert run.finished
    for name, weight in run.model().state_dict().items():
        assert torch.equal(weight, weights(whole)[name])
    assert len(run.checkpoints.whole()) == 2
    again = train(corpus, config, tmp_path / "run", resume=True)
    assert same(again, whole)


def test_the_clock_ends_it_within_an_epoch(corpus: Corpus, tmp_path: Path) -> None:
    """What was learned until then is validated and kept, and the run is whole."""
    found = train(corpus, TINY, tmp_path / "run", until=0.0)
    assert [line["step"] for line in found.history[:-1]] == [1]
    assert found.best_epoch == 1
    assert Run.open(tmp_path / "run").finished
    assert found.history[-1]["valid"]["documents"] > 0
    assert len(train(corpus, TINY, until=math.inf).history) == TINY.epochs + 1


def test_accumulated_and_resumed(corpus: Corpus, tmp_path: Path) -> None:
    config = replace(TINY, accumulate=2, checkpoint_minutes=0.0, optimizer="adamw", workers=1)
    config = replace(config, documents_per_epoch=50, weight_decay=0.1)
    whole = train(corpus, replace(config, workers=0))
    assert whole.history[0]["step"] == 2, "50 documents are 4 batches"
    with pytest.raises(Stop):
        train(corpus, config, tmp_path / "run", progress=stop_at(2, 1))
    assert same(train(corpus, config, tmp_path / "run", resume=True), whole)


def test_a_step_follows_the_mean_over_documents(corpus: Corpus) -> None:
    """Plain steps by hand, with batches of different sizes accumulated and one left over."""
    config = replace(TINY, epochs=1, dropout=0.0, clip=0.5, accumulate=4, holdout=0.0, batch_size=7)
    config = replace(config, class_weights=True, label_smoothing=0.1)
    trained = train(corpus, config, weights=np.linspace(0.5, 2, len(corpus)))
    task = task_of(corpus.labels)
    dataset = GrammarDataset(corpus, task.numbers(corpus.labels))
    groups = list(LengthSampler(dataset.sequence_lengths, 7, seed=config.seed))
    rows = [groups[n : n + 4] for n in range(0, len(groups), 4)]
    assert len(rows[-1]) < 4
    torch.manual_seed(config.seed)
    model = GrammarModel(config.model_config(256, task.outputs, task.name))
    optimizer = torch.optim.Adam(model.parameters())
    numbers = dataset.labels.numpy() if dataset.labels is not None else np.zeros(0)
    counts = np.bincount(numbers)
    by_document = np.linspace(0.5, 2, len(corpus)) * len(corpus) / (len(counts) * counts[numbers])
    for step, group in enumerate(rows):
        optimizer.param_groups[0]["lr"] = learning_rate(config, step, len(rows))
        chosen = [row for part in group for row in part]
        batch = collate(corpus.grammars.take(np.array(chosen)))
        loss = torch.nn.functional.cross_entropy(
            model(batch), torch.tensor(numbers[chosen]), label_smoothing=0.1, reduction="none"
        )
        loss = (loss * torch.tensor(by_document[chosen], dtype=torch.float32)).mean()
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weights(trained)[name], weight, atol=1e-5, rtol=0)


def test_outputs_are_in_the_order_of_documents(corpus: Corpus) -> None:
    task = task_of(corpus.labels)
    dataset = GrammarDataset(corpus, task.numbers(corpus.labels))
    model = GrammarModel(TINY.model_config(256, task.outputs, task.name)).train()
    rows = np.array([5, 90, 17, 3])
    found = forward_pass(model, replace(TINY, batch_size=3)).outputs(dataset.select(rows))
    assert model.training
    wanted = model.eval()(collate(corpus.grammars.take(rows))).detach().numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_regression_from_end_to_end(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    shares = rng.random(150)
    texts = ["".join(rng.choice(["a", "b"], 60, p=[p, 1 - p])) for p in shares]
    corpus = Corpus.from_documents(texts, 100 + 50 * shares)
    config = replace(TINY, learning_rate=0.01, epochs=8, dropout=0.0, pooling="mean")
    trained = train(corpus, config, tmp_path / "run")
    figures = trained.history[-1]["valid"]
    assert figures["r2"] > 0.5
    assert figures["spearman"] > 0.7
    assert figures["mae"] < 10, "in the units of the labels"
    assert Run.open(tmp_path / "run").task == trained.task


def test_several_labels_from_end_to_end(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = [[name for name in ("xy", "qr") if rng.random() < 0.5] for _ in range(150)]
    texts = ["ab" * 5 + "".join(each * 4 for each in names) + "ab" * 3 for names in labels]
    corpus = Corpus.from_documents(texts, labels)
    trained = train(corpus, replace(TINY, learning_rate=0.02, epochs=8), tmp_path / "run")
    assert trained.task.name == "multilabel"
    assert trained.history[-1]["valid"]["micro_f1"] > 0.9
    assert trained.history[-1]["valid"]["exact"] > 0.8


def test_a_tree_that_is_not_installed_trains(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nowhere(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", nowhere)
    train(corpus, replace(TINY, epochs=1), tmp_path / "run")
    versions = Run.open(tmp_path / "run").about["versions"]
    assert versions["laconic"] == laconic.__version__
    assert versions.keys() == {"laconic", "torch", "accelerate"}


def test_patience(corpus: Corpus, tmp_path: Path) -> None:
    config = replace(TINY, epochs=50, patience=2, learning_rate=0.2, schedule="constant")
    trained = train(corpus, config, tmp_path / "run")
    done = len(trained.history) - 1
    assert done < 50
    assert done - trained.best_epoch == 2
    shutil.copytree(tmp_path / "run", tmp_path / "cut")
    lines = (tmp_path / "cut/metrics.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "cut/metrics.jsonl").write_text("".join(lines[:-1]) + '{"done"')
    again = train(corpus, config, tmp_path / "cut", resume=True)
    assert same(again, trained), "nothing is trained after the end"


@pytest.fixture
def wrong(corpus: Corpus) -> Corpus:
    """Documents whose labels are others': the more is learned, the worse it is on these."""
    labels = sorted(set(corpus.labels))
    others = dict(zip(labels, labels[::-1], strict=True))
    documents = [grammar.text() for grammar in corpus.grammars]
    return Corpus.from_documents(documents, [others[label] for label in corpus.labels])


def test_the_last_epoch_is_kept_where_it_is_reached(corpus: Corpus, wrong: Corpus) -> None:
    config = replace(TINY, epochs=12)
    best, last = (train(corpus, replace(config, keep=k), valid=wrong) for k in ("best", "last"))
    assert best.best_epoch < last.best_epoch == 12
    assert last.history[-1]["valid"]["loss"] == pytest.approx(last.history[-2]["valid_loss"])
    assert best.history[-1]["valid"]["accuracy"] > last.history[-1]["valid"]["accuracy"]
    stopped = train(corpus, replace(config, keep="last", patience=2), valid=wrong)
    assert stopped.best_epoch == len(stopped.history) - 3 < 10


def test_a_run_of_before_goes_on_with_settings_that_came_later(
    corpus: Corpus, tmp_path: Path
) -> None:
    train(corpus, TINY, tmp_path)
    kept = json.loads((tmp_path / "config.json").read_text())
    assert kept.pop("keep") == "best", "as it was used"
    (tmp_path / "config.json").write_text(json.dumps(kept))
    train(corpus, TINY, tmp_path, resume=True)
    with pytest.raises(RunError, match="keep was best, now last"):
        train(corpus, replace(TINY, keep="last"), tmp_path, resume=True)


def test_the_clock_may_cut_the_last_epoch_short(
    corpus: Corpus, wrong: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(TINY, epochs=12, keep="last")
    steps = -(-len(corpus) // config.batch_size)

    def stopped_after(steps: int) -> Trained:
        monkeypatch.setattr(loop, "_time_is_up", lambda until, step, accelerator: step == steps)
        return train(corpus, config, valid=wrong, until=0.0)

    assert stopped_after(12 * steps).best_epoch == 12
    for epochs, late in (11, 2), (11, steps), (12, 2):
        trained = stopped_after((epochs - 1) * steps + late)
        assert len(trained.history) - 1 == epochs
        assert trained.best_epoch < epochs, "the last was not read, or not to its end"


def test_validation_by_another_corpus(corpus: Corpus) -> None:
    valid = corpus[:30]
    trained = train(corpus, replace(TINY, epochs=1), valid=valid)
    assert trained.history[-1]["valid"]["documents"] == 30
    strange = Corpus.from_documents(["abc"], ["apocrypha"])
    with pytest.raises(LabelError, match="'apocrypha', unseen in training; known are 'gospels'"):
        train(corpus, TINY, valid=strange)


def test_without_validation_the_last_epoch_is_best(corpus: Corpus) -> None:
    trained = train(corpus, replace(TINY, holdout=0.0, epochs=2))
    assert trained.best_epoch == 2
    assert trained.history[-1]["valid"] is None


def test_bf16(corpus: Corpus) -> None:
    trained = train(corpus, replace(TINY, precision="bf16", epochs=1))
    assert math.isfinite(trained.history[0]["train_loss"])
    # Accelerate remembers the precision of a process: the next training must have its own.
    assert same(train(corpus, replace(TINY, epochs=1)), train(corpus, replace(TINY, epochs=1)))


# Models that count, and grammar dropout

COUNTING = replace(TINY, ngrams=3, phrases=3, ngram_buckets=5000, ngram_dropout=0.2)


@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_models_that_count(kind: Any, corpus: Corpus, tmp_path: Path) -> None:
    config = replace(COUNTING, model=kind, grammar_dropout=0.3, learning_rate=0.01)
    one = train(corpus, config, tmp_path / "run")
    assert same(one, train(corpus, config))
    assert not same(one, train(corpus, replace(config, seed=6)))
    losses = [line["train_loss"] for line in one.history[:-1]]
    assert losses == sorted(losses, reverse=True)
    assert one.model.bag is not None
    assert one.model.config.ngram_rows == len(one.model.bag.idf) - 1 > 300
    learned = one.model.bag.table.detach().any(1)
    assert learned[1:].float().mean() > 0.9, "but for what dropout left out"
    assert not learned[0]
    run = Run.open(tmp_path / "run")
    for name, weight in run.model().state_dict().items():
        assert torch.equal(weight, weights(one)[name])


def test_views_are_trained_together_and_each_alone(corpus: Corpus) -> None:
    """One step by hand, of a model that reads and counts."""
    config = replace(COUNTING, model="both", epochs=1, dropout=0.0, ngram_dropout=0.0)
    config = replace(config, holdout=0.0, batch_size=200, view_loss=0.5, clip=None)
    trained = train(corpus, config)
    task = task_of(corpus.labels)
    dataset = GrammarDataset(corpus, task.numbers(corpus.labels))
    torch.manual_seed(config.seed)
    model = new_model(config.model_config(256, task.outputs, task.name), dataset)
    optimizer = torch.optim.Adam(model.parameters(), learning_rate(config, 0, 1))
    batch = collate(corpus.grammars, targets_of(dataset), counted=model.config.counted)
    assert batch.labels is not None
    read, counted = model.views(batch)
    torch.testing.assert_close(model(batch), read + counted)
    losses = [model.loss(each, batch.labels) for each in (read + counted, 2 * read, 2 * counted)]
    loss = (losses[0] + 0.5 * losses[1] + 0.5 * losses[2]) / 2
    assert trained.history[0]["train_loss"] == pytest.approx(loss.item(), abs=1e-6)
    loss.backward()
    optimizer.step()
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weights(trained)[name], weight, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_a_loss_of_its_own_makes_the_sequence_model_learn(corpus: Corpus) -> None:
    config = replace(COUNTING, model="both", learning_rate=0.02, epochs=15, holdout=0.0)
    numbers = torch.from_numpy(task_of(corpus.labels).numbers(corpus.labels))
    losses = []
    for weight in (0.0, 1.0):
        model = train(corpus, replace(config, view_loss=weight)).model.eval()
        read, _ = model.views(collate(corpus.grammars, counted=model.config.counted))
        losses.append(model.loss(2 * read, numbers).item())
    assert losses[1] < 0.5 * losses[0]


def test_rows_are_what_two_training_documents_have(corpus: Corpus) -> None:
    trained = train(corpus, replace(COUNTING, model="ngram", epochs=1))
    bag, counted = trained.model.bag, trained.model.config.counted
    assert bag is not None
    assert counted is not None
    rows, _ = split(trained.task, trained.task.numbers(corpus.labels), 0.2, TINY.seed)
    counts = counted.count(corpus.grammars.take(rows))
    frequencies = np.bincount(counts.indices, minlength=counted.columns)
    assert ((bag.places.numpy() > 0) == (frequencies >= 2)).all()
    known = frequencies[frequencies >= 2]
    wanted = np.log((1 + len(rows)) / (1 + known)) + 1
    np.testing.assert_allclose(bag.idf.numpy(), [0, *wanted], rtol=1e-6)


@pytest.mark.parametrize("workers", [0, 2])
def test_counting_and_dropping_resumed(corpus: Corpus, tmp_path: Path, workers: int) -> None:
    config = replace(COUNTING, model="both", grammar_dropout=0.4, checkpoint_minutes=0.0)
    whole = train(corpus, config)
    config = replace(config, workers=workers)
    for at in ((1, 2), (2, 3)):
        with pytest.raises(Stop):
            train(corpus, config, tmp_path / "run", resume=True, progress=stop_at(*at))
    assert same(train(corpus, config, tmp_path / "run", resume=True), whole)


def test_a_checkpoint_cannot_name_rows_that_there_are_not(corpus: Corpus, tmp_path: Path) -> None:
    config = replace(COUNTING, model="ngram", checkpoint_minutes=0.0)
    with pytest.raises(Stop):
        train(corpus, config, tmp_path / "run", progress=stop_at(2, 1))
    file = Run.open(tmp_path / "run").checkpoints.whole()[-1] / "model.safetensors"
    tensors = load_file(file)
    tensors["bag.places"][0] = -5
    save_file(tensors, file)
    with pytest.raises(CheckpointError, match=r"model\.safetensors is damaged: bag\.places"):
        train(corpus, config, tmp_path / "run", resume=True)


def test_dropped_grammars_are_what_a_step_reads(corpus: Corpus) -> None:
    """One step by hand, on the sequences that the seed, the epoch and the rows give."""
    config = replace(TINY, epochs=1, dropout=0.0, holdout=0.0, batch_size=200, grammar_dropout=0.5)
    trained = train(corpus, config)
    task = task_of(corpus.labels)
    rows = np.arange(len(corpus))
    read = expand_at_random(corpus.grammars, 0.5, [config.seed, 0], rows)
    assert len(read.sequence) > 1.2 * len(corpus.grammars.sequence)
    torch.manual_seed(config.seed)
    model = GrammarModel(config.model_config(256, task.outputs, task.name))
    optimizer = torch.optim.Adam(model.parameters(), learning_rate(config, 0, 1))
    loss = model.loss(model(collate(read)), torch.from_numpy(task.numbers(corpus.labels)))
    assert trained.history[0]["train_loss"] == pytest.approx(loss.item(), abs=1e-6)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(weights(trained)[name], weight, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_counting_in_bf16_and_with_other_tasks() -> None:
    rng = np.random.default_rng(0)
    shares = rng.random(150)
    texts = ["".join(rng.choice(["a", "b"], 60, p=[p, 1 - p])) for p in shares]
    config = replace(COUNTING, model="ngram", learning_rate=0.01, epochs=8, ngram_dropout=0.0)
    numbers = Corpus.from_documents(texts, 100 + 50 * shares)
    assert train(numbers, config).history[-1]["valid"]["r2"] > 0.5
    several = [["many a"] * (p > 0.5) + ["some b"] * (p < 0.6) for p in shares.tolist()]
    lists = train(Corpus.from_documents(texts, several), config)
    assert lists.history[-1]["valid"]["micro_f1"] > 0.85
    rounded = train(numbers, replace(config, precision="bf16", model="both"))
    assert rounded.history[-1]["valid"]["r2"] > 0.5
    views = train(Corpus.from_documents(texts, several), replace(config, model="both"))
    assert views.history[-1]["valid"]["micro_f1"] > 0.85
    half = np.repeat([0.0, 2.0], 75)
    weighed = train(
        Corpus.from_documents(texts, shares > 0.5), replace(config, model="both"), weights=half
    )
    assert weighed.history[-1]["valid"]["accuracy"] > 0.7
    nothing = Corpus.from_documents(["a", "b", "", "c"], [0, 1, 0, 1])
    empty = train(nothing, replace(config, holdout=0.0))
    assert empty.model.config.ngram_rows == 0, "no n-gram is in two documents"


# What goes wrong


def test_a_loss_that_is_no_number(corpus: Corpus, tmp_path: Path) -> None:
    config = replace(TINY, checkpoint_minutes=0.0)

    def spoil(outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        spoil.calls += 1  # type: ignore[attr-defined]
        return (outputs**2).sum(1) * (float("inf") if spoil.calls > 7 else 1)  # type: ignore[attr-defined]

    spoil.calls = 0  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("laconic.training.loop.document_losses", lambda *_: spoil)
        with pytest.raises(
            TrainingError, match=r"the loss is inf in epoch 2, step 8.*learning_rate"
        ):
            train(corpus, config, tmp_path / "run")
    last = Run.open(tmp_path / "run").checkpoints.whole()[-1]
    assert last.name == "step-00000007"


def test_weights_that_are_no_numbers_are_not_saved(corpus: Corpus, tmp_path: Path) -> None:
    config = replace(TINY, learning_rate=1e3, clip=None, checkpoint_minutes=0.0, warmup_steps=0)

    def spoil(at: Progress) -> None:
        if at.step == 2:
            for each in spoil.model.parameters():  # type: ignore[attr-defined]
                each.data.fill_(float("nan"))

    real = GrammarModel.__init__

    def remember(self: GrammarModel, *arguments: Any) -> None:
        real(self, *arguments)
        spoil.model = self  # type: ignore[attr-defined]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GrammarModel, "__init__", remember)
        with pytest.raises(TrainingError, match="the loss is nan in epoch 1"):
            train(corpus, config, tmp_path / "run", progress=spoil)
    model = GrammarModel(config.model_config(256, 6, "classification"))
    at, _ = Checkpoints(tmp_path / "run/checkpoints").load(  # type: ignore[misc]
        model, torch.optim.Adam(model.parameters())
    )
    assert at.step == 2
    assert all(torch.isfinite(each).all() for each in model.parameters())


@pytest.mark.parametrize("fits", [2, 6, 11], ids="{} files fit".format)
def test_a_full_disk(
    fits: int, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = replace(TINY, checkpoint_minutes=0.0)
    real, calls = pretrained.save_file, []

    def full(*arguments: Any, **settings: Any) -> None:
        calls.append(arguments)
        if len(calls) > fits:
            raise SafetensorError("I/O error: No space left on device (os error 28)")
        real(*arguments, **settings)

    monkeypatch.setattr(pretrained, "save_file", full)
    with pytest.raises(TrainingError, match=r"No space left on device.*--resume"):
        train(corpus, config, tmp_path / "run")
    assert not list((tmp_path / "run").rglob("*.partial"))
    monkeypatch.undo()
    assert same(train(corpus, config, tmp_path / "run", resume=True), train(corpus, config))


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: out of memory\nSearch for"),  # the driver's, of a captured graph
    ],
)
def test_too_little_memory(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, error: RuntimeError
) -> None:
    def full(*_: Any) -> None:
        raise error

    monkeypatch.setattr(GrammarModel, "forward", full)
    told = pytest.warns(UserWarning, match="in smaller pieces from now on")
    with (
        told,
        pytest.raises(OutOfMemoryError, match="one document at a time, too; use"),
    ):
        train(corpus, TINY)


def test_what_is_in_the_way(corpus: Corpus, tmp_path: Path) -> None:
    config = replace(TINY, epochs=1)
    train(corpus, config, tmp_path / "run")
    with pytest.raises(RunError, match="holds a run; go on with --resume if it was interrupted"):
        train(corpus, config, tmp_path / "run")
    with pytest.raises(RunError, match=r"other settings: width was 16, now 8, seed was 5, now 6"):
        train(corpus, replace(config, width=8, seed=6), tmp_path / "run", resume=True)
    with pytest.raises(RunError, match="other documents or labels"):
        train(corpus[:50], config, tmp_path / "run", resume=True)
    train(corpus, replace(config, checkpoint_minutes=1.0), tmp_path / "run", resume=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other/diary.txt").touch()
    with pytest.raises(RunError, match=r"holds diary.txt, and no run"):
        train(corpus, config, tmp_path / "other")
    with pytest.raises(LabelError, match="every document is of class 1"):
        train(Corpus.from_documents(["a", "b"], [1, 1]), config)
    with pytest.raises(ConfigError, match="no device 'cuda' here"):
        train(corpus, replace(config, device="cuda"))
    with pytest.raises(ConfigError, match="trackers: clipboard is not installed"):
        train(corpus, replace(config, trackers=("clipboard",)))
    numbers = Corpus.from_documents(["a", "b"], [1.5, 2.5])
    with pytest.raises(ConfigError, match="class_weights are for classification"):
        train(numbers, replace(config, class_weights=True), tmp_path / "numbers")
    assert not (tmp_path / "numbers").exists()
    dataset = GrammarDataset(compress_many(["a", "b"]), [0, 1])
    task = Classification((0, 1))
    with pytest.raises(TypeError, match="a run needs a corpus"):
        train(dataset, config, tmp_path / "dataset", task=task)


def test_another_number_of_processes(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        train(corpus, TINY, tmp_path / "run", progress=stop_at(2, 1))
    file = Run.open(tmp_path / "run").checkpoints.whole()[-1] / "state.json"
    state = json.loads(file.read_text())
    assert state["processes"] == 1
    file.write_text(json.dumps(state | {"processes": 2}))
    with pytest.raises(ValueError, match="for 2 processes"):
        train(corpus, TINY, tmp_path / "run", resume=True)
