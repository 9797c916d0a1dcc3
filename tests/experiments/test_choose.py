"""experiments.choose: trials that see no test, what they decide, and presets that follow it."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from experiments.choices.outcome import HELD_OUT, outcome
from experiments.choices.space import Trial, read_space, trials
from experiments.choices.training import forget_stale, run_trial, trial
from experiments.choose import RESULTS, main
from experiments.paper.corpora import corpora, training_corpus
from experiments.paper.protocol import config_of
from experiments.paper.results import (
    CHOICES,
    NOT_RUN,
    Figures,
    add_rows,
    choices_digest,
    read,
    rows_in,
)
from laconic.corpus import Corpus
from laconic.estimator import GrammarClassifier
from laconic.rulebook import Rulebook
from laconic.training.auto import learn
from laconic.training.loop import Trained
from laconic.training.presets import PRESETS
from laconic.training.settings import ConfigError, TrainingConfig, resolve

SPACE = """
[trial]
sets = ["kjv", "bacteria"]
documents = 80
longest = 50
holdout = 0.3
epochs = 2

[small]
embedding_size = [4]
width = [4]
dropout = [0.2, 0.0]
codec = ["none", "none+50"]

[small.why]
embedding_size = "tests are short"
width = "tests are short"

[more]
like = "small"
pooling = ["max", "mean", "attention"]
"""
CURE = (
    "declare it in experiments/choices/space.toml, run its trials, then experiments.choose decide"
)


@pytest.fixture
def space(tmp_path: Path) -> Path:
    path = tmp_path / "space.toml"
    path.write_text(SPACE)
    return path


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_are_what_was_chosen(preset: str) -> None:
    chosen = {name: of["value"] for name, of in read(CHOICES)[preset].items()}
    config = resolve(preset, {}).settled().to_json()
    assert {name: config[name] for name in chosen} == chosen, CURE
    assert PRESETS[preset].keys() <= chosen.keys(), CURE


def test_defaults_are_what_was_chosen() -> None:
    chosen = read(CHOICES)
    defaults = {each.name: each.default for each in fields(TrainingConfig)}
    assert chosen["defaults"]
    for name, of in chosen["defaults"].items():
        assert defaults[name] == of["value"], f"{name}: {CURE}"
    assert chosen["rulebook"]["codec"]["value"] == "repair+auto", "then change what follows, too"
    estimator = GrammarClassifier()
    assert (estimator.codec, estimator.rulebook) == ("repair", "auto")
    assert inspect.signature(Rulebook.learn).parameters["boundary"].default == "phrases"


def test_committed_trials_had_the_settings_of_the_space() -> None:
    every = trials(read_space().values(), {row["seed"] for row in rows_in(RESULTS)})
    known = {(each.dataset, each.method.name, each.seed): each for each in every}
    for row in rows_in(RESULTS):
        wanted = known[row["dataset"], row["method"], row["seed"]]
        assert config_of(row) == wanted.config("cpu")
        assert row["codec"] == wanted.method.codec
        assert "test" not in row


def test_the_digest_is_that_of_values_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "choices.json"
    monkeypatch.setattr("experiments.paper.results.CHOICES", path)
    digests = []
    for value, by in ((1, "x"), (1, "y"), (2, "y")):
        path.write_text(f'{{"fast": {{"layers": {{"value": {value}, "by": "{by}"}}}}}}')
        digests.append(choices_digest())
    assert digests[0] == digests[1] != digests[2]


def test_a_trial_sees_no_test(space: Path, tmp_path: Path) -> None:
    cache = tmp_path / "corpora"
    [one] = [t for t in trials(read_space(space).values(), [0]) if str(t) == "kjv/small-0"]
    corpora(*one.source(cache))
    [test] = cache.rglob("test.parquet")
    test.write_bytes(b"nobody may read this")
    found = run_trial(one, "cpu", tmp_path / "results", cache)
    assert "test" not in found
    assert found["documents"] == 80
    assert found["config"]["holdout"] == 0.3
    assert found["held_out"]["accuracy"] == max(found["epochs"]["valid_accuracy"])
    assert found["held_out"]["loss"] == min(found["epochs"]["valid_loss"])
    assert found["about"]["choices"] == choices_digest()
    assert len(list(rows_in(tmp_path / "results"))) == 1


def test_a_trial_with_and_without_a_rulebook(tmp_path: Path) -> None:
    config = TrainingConfig(epochs=2, embedding_size=4, width=4, device="cpu")
    private, shared = (
        trial(training_corpus("kjv", codec, 60, tmp_path), config) for codec in ("none", "none+50")
    )
    assert private["vectors"] == 0 < shared["vectors"] <= 50
    assert shared["symbols"] < private["symbols"] <= 60
    for each in (private, shared):
        assert len(each["epochs"]["valid_accuracy"]) == 2
        assert all(0 <= accuracy <= 1 for accuracy in each["epochs"]["valid_accuracy"])
        assert each["config"]["seed"] == 0
        assert each["about"]["commit"]


def test_of_automatic_training_documents_tell_that_it_never_saw(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[int]()

    def watched(source: Corpus, *given: Any, **more: Any) -> Trained:
        seen.append(len(source))
        return learn(source, *given, **more)

    monkeypatch.setattr("experiments.choices.training.learn", watched)
    source = training_corpus("kjv", "none+50", 60, tmp_path, few=400)
    config = TrainingConfig(model="auto", epochs=1, embedding_size=4, width=4, device="cpu")
    found = trial(source, config)
    assert 0.6 * len(source) < seen[0] < 0.8 * len(source) == 0.8 * found["documents"]
    assert 0 < found["held_out"]["accuracy"] <= 1
    assert found["held_out"]["loss"] > 0


def test_one_setting_at_a_time_is_changed(space: Path) -> None:
    made = [t for t in trials(read_space(space).values(), [0, 1]) if t.dataset == "kjv"]
    names = [(t.method.name, t.seed, t.method.codec) for t in made]
    assert names[:5] == [
        ("small", 0, "none"),
        ('small codec="none+50"', 0, "none+50"),
        ("small dropout=0.0", 0, "none"),
        ("more", 0, "repair+auto"),
        ('more pooling="mean"', 0, "repair+auto"),
    ]
    assert len(made) == 2 * 6
    base, mean = made[3].config("cpu"), made[4].config("cpu")
    assert (base.dropout, base.width, base.pooling, mean.pooling) == (0.2, 4, "max", "mean")


@pytest.mark.usefixtures("quick_children")
def test_trials_run_in_processes_and_are_skipped_when_done(
    space: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = {"--space": "space.toml", "--results": "results", "--cache": "corpora"}
    given = [each for name, to in names.items() for each in (name, str(tmp_path / to))]
    only = ["--device", "cpu", "--presets", "small", "--rows", "kjv/small*"]
    main(["run", *given, *only, "--processes", "2"])
    out, err = capfd.readouterr()
    assert "all trials are done" in out
    assert "kjv/small dropout=0.0-0: " in err
    rows = {row["method"]: row for row in rows_in(tmp_path / "results")}
    assert rows.keys() == {"small", "small dropout=0.0", 'small codec="none+50"'}
    assert all(row["about"]["command"].startswith("python -m ") for row in rows.values())
    main(["run", *given, *only])
    assert "kjv" not in capfd.readouterr().err

    every = trials([read_space(space)["small"]], [0])
    assert forget_stale(tmp_path / "results", every) == 0
    space.write_text(SPACE.replace("[0.2, 0.0]", "[0.3, 0.0]"))
    changed = trials([read_space(space)["small"]], [0])
    assert forget_stale(tmp_path / "results", changed) == 2  # of which 0.2 was a part
    assert [row["method"] for row in rows_in(tmp_path / "results")] == ["small dropout=0.0"]


def scored(one: Trial, accuracy: float, loss: float) -> Figures:
    named = {"dataset": one.dataset, "method": one.method.name, "seed": one.seed}
    return {**named, "held_out": {"accuracy": accuracy, "loss": loss}}


@pytest.mark.parametrize(("wins", "value"), [(4, "mean"), (3, "mean"), (2, "max")])
def test_another_value_has_to_win_three_quarters(
    space: Path, tmp_path: Path, wins: int, value: str
) -> None:
    searched = read_space(space)
    every = trials([searched["more"]], [0, 1])
    assert outcome(searched, tmp_path)["more"]["pooling"]["by"] == NOT_RUN
    better = iter([True] * wins + [False] * (4 - wins))
    for one in every:
        if one.method.name == "more":
            add_rows(tmp_path, scored(one, 0.8, 0.5))
        elif "mean" in one.method.name:
            good = next(better)
            add_rows(tmp_path, scored(one, 0.9 if good else 0.79, 0.4 if good else 0.51))
        else:
            add_rows(tmp_path, scored(one, 0.1, 2.0))
    found = outcome(searched, tmp_path)["more"]["pooling"]
    assert (found["value"], found["by"], found["trials"]) == (value, HELD_OUT, 4)
    assert found["ranks"][2] == 3
    # What it is like is not its own choice.
    assert outcome(searched, tmp_path)["more"]["dropout"]["by"] == "as in small"


def test_a_seed_counts_when_all_its_trials_are_there(space: Path, tmp_path: Path) -> None:
    searched = read_space(space)
    for one in trials([searched["more"]], [0, 1])[:-1]:
        add_rows(tmp_path, scored(one, 0.8, 0.5))
    assert outcome(searched, tmp_path)["more"]["pooling"]["trials"] == 2


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('width = "tests are short"', "", "width has but one value"),
        ("dropout = [0.2", "dropuot = [0.2", "no setting 'dropuot'"),
        ("documents = 80", "documents = 80\ndocument = 1", "no 'document' in"),
        ('"none+50"', '"zip"', "no method 'grc-zip'"),
    ],
)
def test_a_space_that_cannot_be_is_refused(space: Path, old: str, new: str, told: str) -> None:
    space.write_text(SPACE.replace(old, new))
    with pytest.raises(ConfigError, match=told):
        read_space(space)
