"""Automatic training: two views, a blend that is one model, and a run like any other."""

from __future__ import annotations

import json
import re
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from laconic import Corpus, Rulebook
from laconic.errors import InputError
from laconic.inference.predictor import Predictor
from laconic.report import facts_of
from laconic.tasks import Classification, LabelError, Regression
from laconic.training import auto, holdout, sizing
from laconic.training.auto import learn, together
from laconic.training.blend import Blend
from laconic.training.holdout import divide, split_groups
from laconic.training.loop import train
from laconic.training.progress import Progress
from laconic.training.run import Run, RunError
from laconic.training.settings import ConfigError, TrainingConfig, resolve
from laconic.training.sizing import sized_reading
from laconic.training.validation import forward_pass

READER: dict[str, Any] = {
    "embedding_size": 8,
    "width": 8,
    "epochs": 2,
    "device": "cpu",
    "learning_rate": 0.02,
}


def documents(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    """Reviews of many words, of which few decide, and not always."""
    rng = np.random.default_rng(seed)
    plain, labels, texts = [f"w{k}" for k in range(60)], [], []
    for _ in range(count):
        label = "good" if rng.random() < 0.5 else "bad"
        decides = {"good": ["lovely", "fine"], "bad": ["rude", "stale"]}[label]
        words = [*rng.choice(plain, 20), rng.choice(decides if rng.random() < 0.9 else plain)]
        texts.append(" ".join(rng.permutation(words)))
        labels.append(label)
    return texts, labels


def corpus(count: int, seed: int = 0) -> Corpus:
    texts, labels = documents(count, seed)
    return Corpus.from_documents(texts, labels, rulebook=Rulebook.learn(texts, 200))


def test_a_run_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, said, lines = corpus(400), list[str](), []
    config = resolve("auto", READER)
    monkeypatch.setattr(holdout, "_MOST_HELD_OUT", 70)  # as if these were very many documents
    run = tmp_path / "run"
    trained = learn(data, config, run, say=said.append, progress=lambda at: lines.append(at.line))
    assert [line.split()[0] for line in said[:2]] == ["counting", "reading"]
    assert said[-1].startswith("blend")
    done = trained.history[-1]
    assert len([line for line in lines if line]) == len(trained.history) - 1 == 2
    assert done["auto"]["counting"]["valid"]["accuracy"] > 0.85
    assert done["valid"]["loss"] <= done["auto"]["losses"]["counting"] + 1e-6
    assert 0 <= done["auto"]["reading"]["share"] <= 1
    texts, labels = documents(200, seed=1)
    predictor = Predictor.from_run(run, "cpu")
    right = np.mean([a == b for a, b in zip(predictor.predict(texts), labels, strict=True)])
    assert right > 0.85
    assert Run.open(run).finished
    assert Run.open(run / "reading").finished
    facts = facts_of(Run.open(run))
    assert facts.config["holdout"] == 70 / 400
    changed = {name for name, value in facts.config.items() if value != facts.defaults[name]}
    assert changed - {"stream"} == {*READER, "preset"}, "what was said, and nothing else"
    with monkeypatch.context() as nobody:
        nobody.setattr(auto, "fit_linear", None)  # There is nothing left to do, and it takes long.
        again = learn(data, config, run, resume=True, say=said.append)
        assert again.history == trained.history
        assert again.seconds == done["seconds"]
        assert said[-1] == f"finished   before: {run} is as it was"
        with pytest.raises(RunError, match="width was 8, now 9"):
            learn(data, replace(config, width=9), run, resume=True)
    with pytest.raises(RunError, match="holds a run"):
        learn(data, config, run)


def test_a_run_of_before_goes_on_and_keeps_its_best_epoch(tmp_path: Path) -> None:
    texts, labels = documents(100, seed=1)
    swapped = ["bad" if label == "good" else "good" for label in labels]
    data = corpus(300)
    wrong = Corpus.from_documents(texts, swapped, rulebook=data.rulebook)
    config = resolve("auto", READER | {"epochs": 6, "patience": 6})

    def stop(at: Progress) -> None:
        if at.epoch == 5:
            raise KeyboardInterrupt

    def best_of(run: Path) -> tuple[int, int]:
        lines = Run.open(run / "reading").metrics()
        return lines[-1]["best_epoch"], len(lines) - 1

    learn(data, config, tmp_path / "now", valid=wrong)
    assert best_of(tmp_path / "now") == (6, 6)
    run = tmp_path / "before"
    with pytest.raises(KeyboardInterrupt):
        learn(data, replace(config, keep="best"), run, valid=wrong, progress=stop)
    for folder in (run, run / "reading"):
        kept = json.loads((folder / "config.json").read_text())
        assert kept.pop("keep") == "best"
        (folder / "config.json").write_text(json.dumps(kept))
    with pytest.raises(RunError, match="keep was best, now last"):
        learn(data, config, run, valid=wrong, resume=True)
    learn(data, Run.open(run).config, run, valid=wrong, resume=True)
    best, epochs = best_of(run)
    assert best < epochs == 6
    learn(data, replace(config, keep="best"), tmp_path / "whole", valid=wrong)
    assert best_of(tmp_path / "whole") == (best, epochs)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_reading_validates_on_the_documents_that_the_blend_rests_on(device: str) -> None:
    config = resolve("auto", {"epochs": 1})
    parts = divide(corpus(300), None, None, config)
    where = SimpleNamespace(device=torch.device(device), num_processes=1)
    reading = sized_reading(parts, config, cast(Accelerator, where), 0.0).config
    assert reading is not None
    assert reading.preset == {"cpu": "fast", "cuda": "accurate"}[device]
    assert divide(corpus(300), None, None, reading).rows.tolist() == parts.rows.tolist()


@pytest.mark.parametrize("preset", ["auto", None])
def test_reading_keeps_its_last_epoch_which_no_document_has_chosen(preset: str | None) -> None:
    parts = divide(corpus(300), None, None, resolve("auto", {}))
    gpu = cast(Accelerator, SimpleNamespace(device=torch.device("cuda"), num_processes=1))

    def reading(**chosen: Any) -> TrainingConfig:
        config = resolve(preset, {"model": "auto", **chosen})
        found = sized_reading(parts, config, gpu, 0.0).config
        assert found is not None
        return found

    assert (reading().keep, reading().patience) == ("last", None)
    assert (reading(keep="best").keep, reading(keep="best").patience) == ("best", 7)
    assert (reading(patience=2).keep, reading(patience=2).patience) == ("last", 2)


def test_where_time_is_too_short_to_read_it_is_said_how_much_is_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sizing, "_speed", lambda parts, reading: 1.0)
    where = cast(Accelerator, SimpleNamespace(device=torch.device("cpu"), num_processes=1))
    parts = divide(corpus(300), None, None, resolve("auto", {}))
    left = sized_reading(parts, resolve("auto", {}), where, time.perf_counter())
    assert left.config is None
    [minutes] = re.findall(
        r"too few to learn from in time; --minutes (\d+) in all lets it try", left.why
    )
    config = resolve("auto", {"minutes": float(minutes)})
    assert sized_reading(parts, config, where, time.perf_counter()).config is not None
    config = resolve("auto", {"minutes": float(minutes) - 1})
    assert sized_reading(parts, config, where, time.perf_counter()).config is None


def test_of_few_letters_long_runs_are_counted() -> None:
    rng = np.random.default_rng(3)
    texts, labels = [], []
    for label in rng.integers(0, 2, 500).tolist():
        letters = "".join(rng.choice(list("ACGT"), 120))
        place = int(rng.integers(0, 110))
        # Only the longest tells the classes apart: its halves are in documents of both.
        long, other = ("ACGTTGCAAC", "TTGACCATGA") if label else ("ACGTTCCATGA"[:10], "TTGACGCAAC")
        texts.append(letters[:place] + long + letters[place:] + other)
        labels.append("one" if label else "two")
    # As a CSV is read: it is the letters that occur which are few, not those of the alphabet.
    data = Corpus.from_documents(texts, labels, rulebook=Rulebook.learn(texts))
    told = learn(data, resolve("auto", READER | {"minutes": 0.01})).history[-1]["auto"]["counting"]
    assert "n-grams of 1–10 letters, log counts" in told["tried"]
    assert told["features"] == min(told["tried"], key=told["tried"].__getitem__)
    texts = ["a text of many letters, ever so many", "and others, quite unlike it"] * 100
    text = Corpus.from_documents(texts, ["one", "two"] * 100)
    told = learn(text, resolve("auto", READER | {"minutes": 0.01})).history[-1]["auto"]["counting"]
    assert not any("10 letters" in name for name in told["tried"])


def test_of_many_documents_no_more_are_held_out_than_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(holdout, "_MOST_HELD_OUT", 60)
    data = corpus(400)
    counted = learn(data, resolve("auto", READER)).history[-1]["auto"]["counting"]
    assert counted["valid"]["documents"] == 60
    chosen = learn(data, resolve("auto", READER | {"holdout": 0.25})).history[-1]["auto"]
    assert chosen["counting"]["valid"]["documents"] == 100


def test_it_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    data, config = corpus(300), resolve("auto", READER)
    whole = learn(data, config, tmp_path / "whole")

    class StoppedError(Exception):
        pass

    def stop(at: Any) -> None:
        if at.line is not None:
            raise StoppedError

    with pytest.raises(StoppedError):
        learn(data, config, tmp_path / "run", progress=stop)
    with pytest.raises(RunError, match="no model yet"):
        Run.open(tmp_path / "run").model()
    again = learn(data, config, tmp_path / "run", resume=True)
    ours, theirs = again.model.state_dict(), whole.model.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)


def test_the_blend_is_one_model() -> None:
    data = corpus(60)
    config = TrainingConfig(**READER | {"epochs": 1})
    read = train(data, config).model
    counted = learn(data, resolve("auto", {"device": "cpu"})).model
    assert counted.config.model == "ngram"
    parts = divide(data, None, None, config)

    def outputs(model: Any) -> Any:
        return forward_pass(model, config).outputs(parts.training)

    both = together(counted, read, Blend(0.5, 2.0, 0.5, {}))
    wanted = 0.5 * outputs(counted) + 2.0 * outputs(read)
    np.testing.assert_allclose(outputs(both), wanted, atol=1e-5)
    for blend, model, factor in ((Blend(0, 3, 1, {}), read, 3), (Blend(2, 0, 0, {}), counted, 2)):
        alone = together(counted, read, blend)
        assert alone.config == model.config
        np.testing.assert_allclose(outputs(alone), factor * outputs(model), atol=1e-5)


def test_groups_stay_together() -> None:
    data = corpus(100)
    groups = [f"user {k % 7}" for k in range(100)]
    parts = divide(data, None, None, TrainingConfig(), groups=groups)
    assert parts.validation is not None
    train_rows, held = set(parts.rows.tolist()), set(parts.validation.rows.tolist())
    assert {groups[k] for k in train_rows}.isdisjoint(groups[k] for k in held)
    assert train_rows | held == set(range(100))
    assert 10 <= len(held) <= 35
    assert parts.groups is not None
    of = [groups[k] for k in [*parts.rows, *parts.validation.rows]]
    assert [of.index(each) for each in of] == [
        parts.groups.tolist().index(each) for each in parts.groups
    ]
    with pytest.raises(LabelError, match="of one group"):
        split_groups(np.zeros(5, np.int64), np.arange(5), Classification(tuple("abcde")), 0.2, 0)
    with pytest.raises(LabelError, match=r"groups of shape \[3\] for 100 documents"):
        divide(data, None, None, TrainingConfig(), groups=["a", "b", "c"])


@pytest.mark.parametrize("seed", range(20))
def test_a_large_group_is_not_held_out_where_small_ones_are_enough(seed: int) -> None:
    groups = np.concatenate([np.zeros(900, np.int64), np.arange(1, 101)])
    train_rows, held = split_groups(groups, np.zeros(1000), Regression((), 0.0, 1.0), 0.2, seed)
    assert len(held) == 100
    assert len(train_rows) == 900


@pytest.mark.parametrize("seed", range(20))
def test_no_class_is_held_out_with_its_groups(seed: int) -> None:
    """Each class is of two or three groups, as the functions of a module are of its files."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(25), rng.integers(2, 60, 25))
    targets = groups % 10
    task = Classification(tuple(map(str, range(10))))
    train_rows, held = split_groups(groups, targets, task, 0.2, seed)
    assert len(held) > 0
    assert set(targets[train_rows]) == set(range(10))
    for label in set(targets[held]):
        assert (targets[held] == label).sum() <= (targets == label).sum() / 2


def test_held_out_documents_weigh_as_they_are_told_to() -> None:
    """The last fit learns from them, too: documents of no weight taught it the wrong thing."""
    texts, labels = documents(400)
    wrong = np.arange(400) % 4 > 1
    turned = {"good": "bad", "bad": "good"}
    said = [turned[label] if not_so else label for label, not_so in zip(labels, wrong, strict=True)]
    data = Corpus.from_documents(texts, said)
    found = learn(data, resolve("auto", {"minutes": 0.001}), weights=np.where(wrong, 1e-6, 1.0))
    predictor = Predictor(found.model, found.task, data.codec, data.alphabet, "cpu")
    others, right = documents(200, seed=1)
    assert np.mean([a == b for a, b in zip(predictor.predict(others), right, strict=True)]) > 0.85


@pytest.mark.parametrize("weights", [[1.0], [0.0] * 40, [np.nan] * 40, [-1.0] + [1.0] * 39])
def test_weights_that_are_none(weights: list[float]) -> None:
    with pytest.raises(InputError, match="weights of"):
        learn(corpus(40), resolve("auto", {}), weights=weights)


def test_rare_classes_are_found_if_all_shall_weigh_the_same() -> None:
    rng, texts, labels = np.random.default_rng(0), list[str](), list[str]()
    for _ in range(1500):
        rare = rng.random() < 0.06
        of = rng.choice(["odd", "strange", "plain"], p=[0.4, 0.3, 0.3] if rare else [0.1, 0.1, 0.8])
        texts.append(" ".join([*rng.choice([f"w{k}" for k in range(40)], 8), of]))
        labels.append("rare" if rare else "usual")
    found = {}
    for chosen in (True, False):
        config = resolve("auto", {"minutes": 0.001, "class_weights": chosen})
        data = Corpus.from_documents(texts[:1000], labels[:1000])
        trained = learn(data, config)
        predictor = Predictor(trained.model, trained.task, data.codec, data.alphabet, "cpu")
        said = np.array(predictor.predict(texts[1000:]))
        right = np.array(labels[1000:])
        found[chosen] = np.mean(
            [(said == name)[right == name].mean() for name in ("rare", "usual")]
        )
    assert found[True] > max(0.63, found[False] + 0.1)


def test_what_does_not_fit_the_task_is_told_before_there_is_a_run(tmp_path: Path) -> None:
    data = Corpus.from_documents(["a b", "b c", "c d"] * 20, [0.5, 1.5, 2.5] * 20)
    with pytest.raises(ConfigError, match="class_weights are for classification"):
        learn(data, resolve("auto", {"class_weights": True}), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_validation_has_to_be_compressed_alike() -> None:
    texts, labels = documents(60, seed=1)
    other = Corpus.from_documents(texts, labels, rulebook=Rulebook.learn(texts, 20))
    with pytest.raises(InputError, match="the corpus has the rulebook"):
        learn(corpus(100), resolve("auto", READER), valid=other)


def test_what_was_chosen_wins_though_it_is_the_usual_value(tmp_path: Path) -> None:
    parts = divide(corpus(300), None, None, resolve("auto", {}))
    where = cast(Accelerator, SimpleNamespace(device=torch.device("cpu"), num_processes=1))
    given = {"epochs": 10, "learning_rate": 1e-3, "batch_size": 64}
    found = sized_reading(parts, resolve("auto", given), where, 0.0, given).config
    assert found is not None
    assert {name: getattr(found, name) for name in given} == given
    assert found.width == resolve("fast", {}).width
    learn(corpus(100), resolve("auto", READER), tmp_path / "run", chosen=["width", "epochs"])
    assert Run.open(tmp_path / "run").about["chosen"] == ["epochs", "width"]


def test_a_run_tells_the_size_of_the_model_it_keeps(tmp_path: Path) -> None:
    trained = learn(corpus(400), resolve("auto", READER), tmp_path / "run")
    told = Run.open(tmp_path / "run").about["parameters"]
    assert told == sum(each.numel() for each in trained.model.parameters())


def test_threads_are_chosen_and_left_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where epochs are given, and no speed is needed for their number."""
    tried: list[float] = []

    def fastest(speed: Any) -> float:
        tried.append(speed())
        torch.set_num_threads(3)
        return tried[-1]

    monkeypatch.setattr("laconic.training.sizing.fastest_threads", fastest)
    monkeypatch.setattr("laconic.training.sizing.threads_are_free", lambda: True)
    before = torch.get_num_threads()
    learn(corpus(300), resolve("auto", READER | {"epochs": 1}))
    assert len(tried) == 1
    assert tried[0] > 0
    assert torch.get_num_threads() == before


def test_minutes_end_reading(tmp_path: Path) -> None:
    """Also epochs that were asked for, in the middle of one; what was read until then counts."""
    config = resolve("auto", READER | {"epochs": 10_000, "minutes": 0.01})
    said = list[str]()
    found = learn(corpus(300), config, tmp_path / "run", say=said.append)
    assert 1 <= len(found.history) - 1 < 10_000
    assert any(re.fullmatch(r"reading    time was up in epoch \d+ of 10000", each) for each in said)
    assert Run.open(tmp_path / "run" / "reading").finished


def test_streamed_documents_give_the_same(tmp_path: Path) -> None:
    corpus(200).write(tmp_path / "c.parquet")
    data, models = Corpus.open(tmp_path / "c.parquet"), []
    for stream in (True, False):
        config = resolve("auto", READER | {"stream": stream, "epochs": 1})
        models.append(learn(data, config).model.state_dict())
    assert all(torch.equal(models[0][name], models[1][name]) for name in models[1])


def test_settings_without_effect_are_told() -> None:
    config, said = resolve("auto", {"ngrams": 3, "view_loss": 0.5, "device": "cpu"}), list[str]()
    learn(corpus(40), config, say=said.append)
    assert said[0].startswith("settings   ngrams, view_loss: without effect")
    with pytest.warns(UserWarning, match="ngrams, view_loss: without effect"):
        learn(corpus(40), config)


def test_documents_that_validate_apart_do_not_train() -> None:
    data = corpus(200)
    found = learn(data, resolve("auto", READER | {"epochs": 1}), valid=data)
    assert found.history[-1]["auto"]["counting"]["documents"] == 200
    assert found.history[-1]["valid"]["documents"] == 200
