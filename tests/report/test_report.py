"""The report: read as a parser, as a person in a browser and as a hostile class name would."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pages import CELLS, COVERED, HEIGHTS, OUTSIDE, Document, opened

pytest.importorskip("matplotlib", reason="reports need matplotlib: laconic[report]")

import matplotlib

from laconic.report import RunFacts, facts_of, write_report
from laconic.report.run_page import page

_NAMES = ['<b>bold</b> & "so"', "naïve 🚀", "third"]


def facts(title: str = "repair", accuracy: float = 0.9125, **changes: Any) -> RunFacts:
    """Return a complete run with three classes and four epochs."""
    defaults = {"composer": "grc", "width": 200, "layers": 1, "clip": None, "seed": 0}
    lines: list[dict[str, Any]] = [
        {
            "epoch": epoch,
            "step": 10 * epoch,
            "train_loss": 2 / epoch,
            "valid_loss": 2.1 / epoch,
            "valid": {"accuracy": accuracy * epoch / 4},
            "learning_rate": 0.001,
            "seconds": 20.5,
            "documents_per_s": 1234.5,
            "peak_memory_mb": 400 + epoch,
            "read_by": "cuDNN, not our kernels: they are <off>",
        }
        for epoch in range(1, 5)
    ]
    complete = RunFacts(
        title,
        config=defaults | {"width": 64},
        about={
            "task": "classification",
            "codec": title,
            "alphabet": "Alphabet.bytes()",
            "classes": _NAMES,
            "command": ["laconic", "train", "a b.parquet", "-o", f"runs/{title}"],
            "versions": {"laconic": "0.5.0", "torch": "2.13.0"},
            "machine": "2 cores",
            "date": "2026-11-15T17:51:44+01:00",
            "parameters": 1234567,
            "corpus": {
                "path": "a b.parquet",
                "documents": 1000,
                "letters": 2_000_000,
                "symbols": 400_000,
                "rules": 150_000,
                "classes": dict(zip(_NAMES, (500, 300, 200), strict=True)),
            },
        },
        metrics=[*lines, {"done": True, "best_epoch": 4}],
        evaluation={
            "accuracy": accuracy,
            "macro_f1": 0.8767,
            "mcc": 0.7654,
            "majority": 0.5,
            "confusion": [[91, 6, 3], [4, 55, 1], [0, 2, 38]],
            "per_class": [
                {"class": each, "precision": 0.5, "recall": 0.25, "f1": 0.3333, "documents": 100}
                for each in _NAMES
            ],
            "calibration": {
                "ece": 0.0321,
                "bins": [
                    {"confidence": 0.55, "accuracy": 0.5, "count": 20},
                    {"confidence": 0.95, "accuracy": 0.97, "count": 180},
                ],
            },
        },
        defaults=defaults,
    )
    return replace(complete, **changes)


def test_numbers_of_two_runs_stand_side_by_side() -> None:
    document = Document(page([facts(), facts("none", 0.8976)]))
    assert document.headings == [
        "Summary",
        "Training",
        "What it gets right and wrong",
        "Corpus",
        "Settings",
        "Repeat it",
        "Made with",
        "What the figures mean",
    ]
    rows = document.table("run", "codec", "composer", "accuracy", "macro-F1", "MCC", "time")
    speed = ["1 min 22 s", "1,234", "404 MB", "400"]
    assert rows == [
        ["repair", "repair", "grc", "91.2 %", "0.877", "0.765", *speed],
        ["none", "none", "–", "89.8 %", "0.877", "0.765", *speed],
    ]
    rows = [row for table in document.tables for row in table]
    assert ["documents", "1,000", "1,000"] in rows
    assert ["mean letters, n", "2,000", "2,000"] in rows
    assert ["mean sequence, n′", "400", "400"] in rows
    assert ["n / n′", "5.00", "5.00"] in rows
    assert ["width", "64", "64"] in rows
    assert ["seed", "0"] in rows
    assert ["date", "2026-11-15 16:51 UTC"] in rows
    assert document.table("class", "documents", "share") == [
        [_NAMES[0], "500", "50.0 %", ""],
        [_NAMES[1], "300", "30.0 %", ""],
        [_NAMES[2], "200", "20.0 %", ""],
    ]
    assert "laconic train 'a b.parquet' -o runs/none" in document.text
    assert "1,234,567" in document.text


def test_best_values_stand_out() -> None:
    text = page([facts(), facts("none", 0.8976)])
    assert '<td class="best">91.2 %</td>' in text
    assert text.count('class="best"') == 1  # the other columns are ties
    assert "<td>89.8 %</td>" in text
    _, by_setting = page([facts(), facts("none", 0.8976)], by="codec").split('id="by-setting"')
    assert by_setting.count('class="best"') == 1  # by codec, in which the runs differ
    assert '<td class="best">' not in page([facts()])


def test_a_single_run_has_tiles_and_its_confusion() -> None:
    document = Document(page([facts()]))
    assert "read by cuDNN, not our kernels: they are <off>" in document.text
    assert "largest class: 50.0 %" in document.text
    assert "Expected calibration error: 3.2 %" in document.text
    assert "Summary" not in document.headings, "the tiles have said it"
    assert "Scores are of documents held out" in document.text
    assert document.table("true ↓ predicted →", *_NAMES) == [
        [_NAMES[0], "91", "6", "3"],
        [_NAMES[1], "4", "55", "1"],
        [_NAMES[2], "0", "2", "38"],
    ]
    assert document.table("class", "precision", "recall", "F1", "documents")[2] == [
        "third",
        "0.500",
        "0.250",
        "0.333",
        "100",
    ]


def test_settings_that_differ_come_first_and_the_rest_is_folded() -> None:
    text = page([facts()])
    assert text.index(">width<") < text.index("4 settings left at the default")
    assert text.index("4 settings left at the default") < text.index(">layers<")
    unchanged = facts(config={"seed": 0}, defaults={"seed": 0})
    assert "All settings are the defaults." in page([unchanged])
    decided = facts(config={"stream": False}, defaults={"stream": None})
    assert "All settings are the defaults." in page([decided])
    # Each run may have defaults of its own: what differs between runs is told all the same.
    runs = [facts(title=m, config={"model": m}, defaults={"model": m}) for m in ("auto", "ngram")]
    assert "All settings are the defaults." not in page(runs)


def test_every_figure_leads_to_what_it_means() -> None:
    text = page([facts()])
    document = Document(text)
    titled = re.findall(r'<a href="#(means-[\w-]+)" class="means">([^<]+)</a>', text)
    links = {words: target for target, words in titled}
    figures = ("accuracy", "macro-F1", "MCC", "training", "peak memory", "Loss", "Confusion")
    for words in (*figures, "Calibration", "mean sequence, n′", "precision", "1,234 documents/s"):
        assert links[words] in document.ids, words
    # Each is told once, in a sentence; nothing is told that the page does not show.
    told = re.findall(r'<div id="(means-[\w-]+)"><dt>[^<]+</dt><dd>([^<]+)\.</dd>', text)
    assert {key for key, _ in told} == set(links.values())
    assert "nvidia-smi" not in document.text, "no GPU reserved anything"


def test_every_reported_metric_says_what_it_means() -> None:
    from laconic.tasks import TASKS

    reported = [each for task in TASKS.values() for each in task.metrics if each.reported]
    assert len(reported) > 8
    assert all(each.meaning.endswith(".") for each in reported)


def test_memory_that_a_gpu_reserved_stands_beside_what_was_allocated() -> None:
    run = facts()
    lines = [{**line, "reserved_memory_mb": 2048.0} for line in run.metrics]
    run = replace(run, metrics=lines)
    heads = ["run", "accuracy", "macro-F1", "MCC"]
    heads += ["time", "documents/s", "peak memory", "reserved", "sequence"]
    assert Document(page([run, run])).table(*heads)[0][-3:] == ["404 MB", "2.0 GB", "400"]
    document = Document(page([run]))
    assert "2.0 GB reserved" in document.text
    assert "nvidia-smi" in document.text


def test_parts_of_automatic_training() -> None:
    run = facts()
    valid = {"accuracy": 0.75, "macro_f1": 0.7, "mcc": 0.5}
    auto = {
        "counting": {
            "features": "n-grams of <1–5> letters",
            "documents": 600,
            "tried": {"n-grams of <1–5> letters": 0.21, "n-grams of 1–7 letters": 0.25},
            "valid": valid,
        },
        "reading": {"why": "the preset fast, 3 epochs", "epochs": 3, "share": 0.25, "valid": valid},
        "losses": {"counting": 0.21, "reading": 0.4, "both": 0.2},
    }
    last = {"done": True, "best_epoch": 4, "auto": auto, "seconds": 500.0, "peak_memory_mb": 999.0}
    document = Document(page([replace(run, metrics=[*run.metrics[:-1], last])]))
    rows = document.table("view", "share")
    assert [row[:4] for row in rows] == [
        ["counting n-grams of <1–5> letters, from 600 documents", "75.0 %", "", "75.0 %"],
        ["reading the preset fast, 3 epochs", "25.0 %", "", "75.0 %"],
        ["blend", "–", "", "91.2 %"],
    ]
    assert [row[-1] for row in rows] == ["0.210", "0.400", "0.200"]
    assert "codec repair · composer grc · " in document.text
    assert " · counts n-grams of <1–5> letters" in document.text
    assert document.table("features", "loss, held out")[1] == ["n-grams of 1–7 letters", "0.2500"]
    # Time and memory are of all of it, not only of the epochs that read.
    assert "8 min 20 s" in document.text
    assert "999 MB" in document.text


def test_automatic_training_that_only_counts_has_no_composer() -> None:
    run, why = facts(), "left out: 231 documents a second are too few"
    auto = {
        "counting": {"features": "n-grams of 1–5 letters", "valid": {"accuracy": 0.75}},
        "reading": {"why": why},
    }
    last = {"done": True, "best_epoch": 0, "auto": auto}
    counted = replace(
        run, config=run.config | {"model": "auto", "sequence_model": "lstm"}, metrics=[last]
    )
    document = Document(page([counted]))
    assert "grc" not in document.text.split("Settings")[0]
    assert "lstm" not in document.text.split("Settings")[0]
    assert "codec repair · counts n-grams of 1–5 letters" in document.text
    assert document.table("view") == [["counting n-grams of 1–5 letters", "75.0 %", "–", "–"]]
    assert f"Reading was {why}." in document.text
    # Beside a run with epochs, it has no curve, and so no colour.
    text = page([counted, facts("read")])
    assert re.findall(r'<li><i style="[^"]+"></i><span>([^<]+)', text) == ["read"]


def test_the_lead_names_the_column_of_labels() -> None:
    run = facts()
    named = {**run.about, "corpus": {**run.about["corpus"], "label": "stars"}}
    lead = "Classification into 3 classes"
    assert (
        f"{lead} (column stars) · 1,000 documents"
        in Document(page([replace(run, about=named)])).text
    )
    assert f"{lead} · 1,000 documents" in Document(page([run])).text


def test_accuracy_is_drawn_in_percent() -> None:
    text = page([facts()])
    drawn = text[text.index('aria-label="Accuracy on') :].partition("</svg>")[0]
    assert re.findall(r">(\d+ %)</text>", drawn)


def _grid() -> list[RunFacts]:
    """Six runs: three rates, two seeds each."""
    return [
        facts(f"run {k}", 0.6 + k / 20, config={"learning_rate": rate, "seed": k % 2, "width": 64})
        for k, rate in enumerate([0.01, 0.01, 0.002, 0.002, 0.1, 0.1])
    ]


def test_runs_are_compared_by_any_setting() -> None:
    document = Document(page(_grid()))
    summaries = re.findall(r"<summary>([^<]+)</summary>", page(_grid()))
    # Of one codec each: a codec is what documents were made with, and compared, too.
    assert summaries[:3] == ["codec: 6 values", "learning_rate: 3 values", "seed: 2 values"]
    rows = document.table("learning_rate", "runs", "accuracy")
    assert [row[:3] for row in rows] == [  # numbers in their order
        ["0.002", "2", "72.5 % (70.0 % – 75.0 %)"],
        ["0.01", "2", "62.5 % (60.0 % – 65.0 %)"],
        ["0.1", "2", "82.5 % (80.0 % – 85.0 %)"],
    ]
    assert [row[:2] for row in document.table("seed", "runs")] == [["0", "3"], ["1", "3"]]
    assert not [each for each in document.tables if each[0][:1] == ["width"]], "all are alike"
    assert "By setting" not in Document(page(_grid()[:1])).headings


def test_runs_are_compared_first_by_the_setting_that_is_named() -> None:
    text = page(_grid(), by="seed")
    found = re.findall(r"<details([^>]*)><summary>(\w+): ", text)
    assert [(name, "open" in how) for how, name in found][:2] == [("seed", True), ("codec", False)]
    with pytest.raises(ValueError, match=r"'learningrate' \(did you mean learning_rate\?\)"):
        page(_grid(), by="learningrate")
    with pytest.raises(ValueError, match="do not differ in 'width'; they differ in: codec, learn"):
        page(_grid(), by="width")


def test_regression_several_labels_and_one_epoch() -> None:
    line = {"epoch": 1, "train_loss": 0.5, "valid_loss": 0.4, "valid": {"r2": 0.731}, "seconds": 1}
    scores = {"mae": 0.4123, "rmse": 0.61, "r2": 0.731, "spearman": None, "loss": 0.4}
    number = RunFacts("stars", {}, {"task": "regression"}, [line], scores)
    document = Document(page([number, number]))
    assert document.table("run")[0] == ["stars", "0.412", "0.610", "0.731", "1.0 s"]
    assert "R² on held-out documents" in document.text
    assert "Prediction of a number" in document.text
    assert "Spearman" not in document.text

    several = facts(
        about={"task": "multilabel", "classes": ["a", "b"]},
        metrics=[{"epoch": 1, "valid": {"micro_f1": 0.5}, "valid_loss": math.nan}],
        evaluation={
            "micro_f1": 0.6543,
            "macro_f1": 0.5,
            "exact": 0.25,
            "per_class": [{"class": "a", "f1": 0.75}, {"class": "b", "f1": 0.25}],
        },
    )
    document = Document(page([several]))
    assert "Choice among 2 labels" in document.text
    twice = Document(page([several, several])).table("run", "exact matches", "micro-F1")
    assert twice[0][1:3] == ["25.0 %", "0.654"]
    assert document.table("class", "F1") == [["a", "0.750"], ["b", "0.250"]]
    # Different tasks in one report: a dash where a score does not apply.
    both = Document(page([number, several])).table("run")
    assert [row[2] for row in both] == ["–", "25.0 %"]


def test_a_run_of_which_nothing_is_known() -> None:
    document = Document(page([RunFacts("nothing <yet>")]))
    assert "nothing <yet>" in document.text
    assert document.headings == ["Summary"]


def test_many_classes_are_drawn_and_the_file_stays_small(tmp_path: Path) -> None:
    many = [f"class {k}" for k in range(150)]
    confusion = [[90 if i == j else (i * j) % 3 for j in range(150)] for i in range(150)]
    confusion[7][5] = 1000
    large = facts()
    line = large.metrics[0]
    large = replace(
        large,
        about={**large.about, "classes": many, "corpus": {"classes": dict.fromkeys(many, 3)}},
        metrics=[{**line, "epoch": epoch, "train_loss": 1 / epoch} for epoch in range(1, 5001)],
        evaluation={**large.evaluation, "confusion": confusion, "per_class": [{"f1": 0.5}] * 150},
    )
    write_report(tmp_path / "report.html", [large, *(facts(f"run {k}") for k in range(29))])
    assert (tmp_path / "report.html").stat().st_size < 300_000
    document = Document((tmp_path / "report.html").read_text("utf-8"))
    assert document.table("true class", "taken for")[0] == ["class 7", "class 5", "1,000"]
    assert "138 more classes" in document.text
    assert "Of the first 8 runs" in document.text


@pytest.mark.parametrize("runs", [1, 3])
def test_the_page_stands_alone(runs: int) -> None:
    text = page([facts(f"run {k}") for k in range(runs)])
    document = Document(text)
    assert len(document.ids) == len(set(document.ids))
    for tag, name, value in document.attributes:
        assert tag != "script"
        assert not name.startswith("on")
        if name.endswith("href") or name == "src":
            assert value.startswith(("data:", "#")), value
            assert not value.startswith("#") or value[1:] in document.ids
        for target in re.findall(r"url\(([^)]*)\)", value):
            assert target[1:] in document.ids
    outside_namespaces = re.sub(r'xmlns(:\w+)?="[^"]*"', "", text)
    assert "http" not in outside_namespaces.replace("http-equiv", "")
    assert "@import" not in text
    assert "url(" not in text[: text.index("</style>")]


def test_same_input_same_bytes(tmp_path: Path) -> None:
    runs = [facts(), facts("none", 0.8976)]
    write_report(tmp_path / "one.html", runs)
    with matplotlib.rc_context({"font.size": 30, "svg.fonttype": "path", "lines.linewidth": 9}):
        write_report(tmp_path / "two.html", runs)
    one = (tmp_path / "one.html").read_bytes()
    assert one == (tmp_path / "two.html").read_bytes()
    # In another process, too, where sets and hashes have other orders.
    script = (
        "import json, sys; from laconic.report import RunFacts, write_report;"
        "write_report(sys.argv[1], [RunFacts(**each) for each in json.load(sys.stdin)])"
    )
    given = json.dumps([vars(run) for run in runs])
    command = [sys.executable, "-c", script, str(tmp_path / "three.html")]
    subprocess.run(command, input=given, text=True, check=True)
    assert one == (tmp_path / "three.html").read_bytes()


def test_nothing_is_half_written(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_report(tmp_path / "folder", [facts()])
    with pytest.raises(FileNotFoundError):
        write_report(tmp_path / "missing" / "report.html", [facts()])
    with pytest.raises(ValueError, match="at least one run"):
        write_report(tmp_path / "none.html", [])
    assert [each.name for each in tmp_path.iterdir()] == ["folder"]


def test_without_matplotlib_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in [name for name in sys.modules if name.startswith("laconic.report.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    monkeypatch.delattr("laconic.report.figures")
    monkeypatch.delattr("laconic.report.run_page")
    with pytest.raises(ModuleNotFoundError, match=r"laconic\[report\]"):
        write_report(tmp_path / "report.html", [RunFacts("x")])


@given(names=st.lists(st.text(max_size=30), min_size=1, max_size=4), title=st.text(max_size=50))
def test_any_name_is_shown_as_it_is(names: list[str], title: str) -> None:
    size = len(names)
    run = RunFacts(
        title,
        {title: title},
        {
            "classes": names,
            "codec": title,
            "command": title,
            "versions": {title: names[0]},
            "corpus": {"classes": dict.fromkeys(names, 1), "path": title},
        },
        evaluation={"confusion": [[1] * size] * size, "per_class": {names[0]: {"f1": 1.0}}},
    )
    text = page([run, run])
    document = Document(text)
    assert not {"script", "b", "img"} & {tag for tag, _, _ in document.attributes}
    document.text.encode("utf-8")
    written = {cell for rows in document.tables for row in rows for cell in row}
    for name in names:
        if name.isprintable():
            assert name in written


_JUNK: list[Any] = [None, "text", math.nan, math.inf, -1, 10**400, [], {}, [[]], [None], True]


def _spoiled(value: Any, random: Random) -> Any:
    """Return the value with some parts missing and others replaced by something else."""
    if random.random() < 0.08:
        return random.choice(_JUNK)
    if isinstance(value, Mapping):
        kept = [key for key in value if random.random() > 0.08]
        return {key: _spoiled(value[key], random) for key in kept}
    return [_spoiled(each, random) for each in value] if isinstance(value, list) else value


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32))
def test_what_is_missing_or_wrong_is_left_out(seed: int) -> None:
    whole, random = facts(), Random(seed)
    names = ("config", "about", "evaluation", "defaults")
    parts = {name: _spoiled(getattr(whole, name), random) for name in names}
    parts = {name: each for name, each in parts.items() if isinstance(each, Mapping)}
    lines = [_spoiled(line, random) for line in whole.metrics]
    metrics = [line for line in lines if isinstance(line, Mapping)]
    Document(page([replace(whole, **parts, metrics=metrics), whole]))


def test_facts_of_a_real_run(tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="training needs accelerate: laconic[train]")
    from laconic import samples
    from laconic.corpus import Corpus
    from laconic.training.loop import train
    from laconic.training.run import Run
    from laconic.training.settings import TrainingConfig

    part = samples.load("kjv").train
    texts = [text[:200] for text in part.documents[:40]]
    corpus = Corpus.from_documents(texts, part.labels[:40])
    config = TrainingConfig(embedding_size=16, width=16, epochs=2, device="cpu")
    train(corpus, config, tmp_path / "tiny", notes={"command": "laconic train <x>"})
    run = Run.open(tmp_path / "tiny")
    known = facts_of(run)
    write_report(run.folder / "report.html", [known, facts_of(run, "again")])
    document = Document((run.folder / "report.html").read_text("utf-8"))
    accuracy = run.metrics()[-1]["valid"]["accuracy"]
    assert known.score("accuracy") == accuracy
    assert document.table("run", "accuracy")[0][:2] == ["tiny", f"{100 * accuracy:.1f} %"]
    assert "codec repair · composer grc · sequence model lstm" in document.text
    rows = [row for table in document.tables for row in table]
    assert ["documents", "40", "40"] in rows
    assert ["width", "16", "16"] in rows
    assert "laconic train <x>" in document.text
    assert "Confusion" in document.text
    assert facts_of(run) == known


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("count", [1, 2])
def test_in_a_browser(browser: Any, tmp_path: Path, width: int, count: int) -> None:
    runs = [facts(), facts("none", 0.8976)][:count]
    write_report(tmp_path / "report.html", runs)
    opened(browser, (tmp_path / "report.html").as_uri(), width)

    if count == 2:
        accuracies = browser.execute_script(CELLS, ".summary tbody td:nth-child(4)")
        assert accuracies == ["91.2 %", "89.8 %"]
    matrix = ["91", "6", "3", "4", "55", "1", "0", "2", "38"]
    assert browser.execute_script(CELLS, ".confusion tbody td") == matrix * count
    heads = browser.execute_script(CELLS, ".confusion thead th")
    assert [each for each in heads if "predicted" not in each] == _NAMES * count
    if count == 1:
        tiles = browser.execute_script(CELLS, ".tiles dd")
        assert tiles[0].split("\n") == ["91.2 %", "largest class: 50.0 %"]

    assert browser.get_log("browser") == []
    # Not innerWidth: a phone zooms out until it shows what sticks out.
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE, width) == []
    assert browser.execute_script(COVERED) == []
    # Figures can be read: they fill a phone, and letters are not tiny.
    assert min(browser.execute_script(HEIGHTS)) > 9
    # Nothing but the file itself was asked for.
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    asked = [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
    # The browser's own first page may still be asking for parts of itself.
    assert {url for url in asked if not url.startswith(("data:", "chrome"))} <= {
        (tmp_path / "report.html").as_uri()
    }


@pytest.mark.browser
def test_folded_settings_open_on_a_click(browser: Any, tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", [facts()])
    opened(browser, (tmp_path / "report.html").as_uri(), 390)
    shown = "return document.querySelector('#settings details table').checkVisibility()"
    assert browser.execute_script(shown) is False
    browser.find_element("css selector", "#settings summary").click()
    assert browser.execute_script(shown) is True


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_settings_and_meanings_in_a_browser(browser: Any, tmp_path: Path, width: int) -> None:
    write_report(tmp_path / "report.html", _grid(), by="learning_rate")
    opened(browser, (tmp_path / "report.html").as_uri(), width)
    shown = "return [...document.querySelectorAll('#by-setting details')].map(e => e.open)"
    assert browser.execute_script(shown) == [True, False, False]
    browser.find_elements("css selector", "#by-setting summary")[2].click()
    assert browser.execute_script(shown) == [False, False, True], "one at a time"
    assert browser.execute_script(CELLS, "#by-setting details[open] tbody th") == ["0", "1"]
    browser.find_element("css selector", ".summary a[href='#means-metric-mcc']").click()
    told = browser.find_element("css selector", ".meanings div:target")
    assert told.text.startswith("MCC\nMatthews")
    assert browser.execute_script("return arguments[0].getBoundingClientRect().top", told) < 844
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE, width) == []


@pytest.mark.browser
def test_hostile_names_stay_text_in_a_browser(browser: Any, tmp_path: Path) -> None:
    nasty = ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "W" * 300]
    about = {**facts().about, "classes": nasty}
    title = "</title><script>alert(3)</script>" + "x" * 300
    write_report(tmp_path / "report.html", [facts(title, about=about)])
    opened(browser, (tmp_path / "report.html").as_uri(), 390)
    assert browser.execute_script("return document.querySelectorAll('script, img').length") == 0
    assert browser.title == title
    heads = browser.execute_script(CELLS, ".confusion tbody th")
    assert heads == nasty
    assert browser.get_log("browser") == []
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    assert browser.execute_script(OUTSIDE, 390) == []
