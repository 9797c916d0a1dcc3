"""`laconic train` and `laconic evaluate`, as a user would type them; kills and two processes."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import forked
import kill_training
import pyarrow as pa
import pytest
import torch
from safetensors.torch import load_file

from laconic import Corpus, samples
from laconic.cli import app
from laconic.errors import InputError
from laconic.rulebook import Rulebook
from laconic.tasks import Classification
from laconic.training.progress import Progress
from laconic.training.run import Run

train_command: Any = import_module("laconic.cli.train")
SMALL = ["--embedding-size", "8", "--width", "8", "--epochs", "2", "--batch-size", "16"]
READS = ["--model", "sequence", *SMALL]


def laconic(*words: str | Path) -> None:
    """Run in this process, which is faster; errors are raised."""
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus to learn from, one to test with, and a run."""
    folder = tmp_path_factory.mktemp("commands")
    sample = samples.load("kjv")
    for name, part in {"train": sample.train, "test": sample.test}.items():
        texts = [text[:100] for text in part.documents[:80]]
        Corpus.from_documents(texts, part.labels[:80]).write(folder / f"{name}.parquet")
    laconic("train", folder / "train.parquet", "-o", folder / "run", *READS)
    return folder


def test_train(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "runs/x"
    laconic("train", folder / "train.parquet", "-o", out, *READS)
    said, progress = capsys.readouterr()
    lines = said.splitlines()
    assert re.fullmatch(r"classification: \d classes, 80 documents", lines[0])
    assert lines[1].split() == [
        "epoch",
        "train",
        "loss",
        "valid",
        "loss",
        "accuracy",
        "docs/s",
        "seconds",
    ]
    assert [line.split()[0] for line in lines[2:4]] == ["1", "2"]
    assert lines[4].startswith(f"{out}: epoch ")
    assert f"laconic evaluate {out} test.parquet" in said
    assert progress == ""
    found = {path.name for path in out.iterdir()}
    assert found == {
        "config.json",
        "about.json",
        "model",
        "checkpoints",
        "metrics.jsonl",
        "report.html",
    }
    about = json.loads((out / "about.json").read_text())
    assert about["corpus"]["path"] == str(folder / "train.parquet")
    assert about["corpus"]["documents"] == 80
    assert about["corpus"]["training"] == 64
    assert (out / "model/model.safetensors").read_bytes() == (
        folder / "run/model/model.safetensors"
    ).read_bytes()


def test_who_goes_on_need_not_name_the_documents_again(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Run.open(folder / "run").metrics()
    laconic("train", "-o", folder / "run", "--resume")
    assert Run.open(folder / "run").metrics() == before
    assert "no run" not in capsys.readouterr().err
    texts = [f"w{k % 7} w{k % 3}" for k in range(30)]
    (tmp_path / "a.txt").write_text("\n".join(text for text in texts for _ in range(2)))
    (tmp_path / "b.txt").write_text("\n".join(text[::-1] for text in texts for _ in range(2)))
    laconic("train", tmp_path, "-o", tmp_path / "lines", *READS, "--lines", "2",
            "--label-from-path", "name")  # fmt: skip
    about = tmp_path / "lines/about.json"
    told = json.loads(about.read_text())
    about.write_text(json.dumps(told | {"command": "laconic train x --lines 2 -o lines"}))
    with pytest.raises(InputError, match=r"not remember --lines; .* laconic train x --lines 2"):
        laconic("train", "-o", tmp_path / "lines", "--resume")
    with pytest.raises(InputError, match="new holds no run to go on with; name what to train on"):
        laconic("train", "-o", tmp_path / "new", "--resume")
    assert not (tmp_path / "new").exists()


def test_who_evaluates_an_unfinished_run_is_told(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, is_told in (("whole", False), ("begun", True)):
        run = tmp_path / name
        shutil.copytree(folder / "run", run)
        lines = (run / "metrics.jsonl").read_text().splitlines(keepends=True)
        (run / "metrics.jsonl").write_text("".join(lines[:-1] if is_told else lines))
        laconic("evaluate", run, folder / "test.parquet")
        told = f"the training of {run} is not finished; this is its model so far"
        assert (told in capsys.readouterr().err) == is_told


def test_settings_from_flags_file_and_preset(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "big.toml"
    toml.write_text('preset = "fast"\nepochs = 7\nwidth = 9\nholdout = 0.5\n')
    out, corpus = tmp_path / "run", folder / "train.parquet"
    flags = ["--config", toml, "--epochs", "1", "--embedding-size", "6", "--no-graphs"]
    laconic("train", corpus, "-o", out, *flags, "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["valid"]["documents"] == 40
    assert told["epochs"] == told["best_epoch"] == 1
    config = Run.open(out).config
    assert (config.preset, config.epochs, config.width) == ("fast", 1, 9)
    assert (config.embedding_size, config.graphs) == (6, False)
    toml.write_text("epoch = 7\n")
    with pytest.raises(ValueError, match=r"big.toml: no setting 'epoch'; did you mean 'epochs'"):
        laconic("train", corpus, "-o", tmp_path / "other", "--config", toml)
    with pytest.raises(Exception, match="--learning-rate"):
        laconic("train", corpus, "-o", tmp_path / "other", "--learnin-rate", "1")
    assert not (tmp_path / "other").exists()
    # What is not said again is as it was.
    laconic("train", corpus, "-o", out, "--resume")
    with pytest.raises(ValueError, match="other settings: epochs was 1, now 3"):
        laconic("train", corpus, "-o", out, "--resume", "--epochs", "3")


def test_evaluate(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    laconic("evaluate", folder / "run", folder / "test.parquet", "-o", tmp_path / "m.json")
    said = capsys.readouterr().out
    assert "80 documents" in said
    for word in ("accuracy", "macro-F1", "MCC", "calibration error", "is / predicted", "prophets"):
        assert word in said
    laconic("evaluate", folder / "run", folder / "test.parquet", "--json", "--batch-size", "7")
    told = json.loads(capsys.readouterr().out)
    written = json.loads((tmp_path / "m.json").read_text())
    assert told["accuracy"] == written["accuracy"]
    assert told["loss"] == pytest.approx(written["loss"], abs=1e-6)
    assert sum(map(sum, told["confusion"])) == 80


@pytest.mark.parametrize("command", ["evaluate", "predict", "explain"])
@pytest.mark.parametrize("way", [{"codec": "lzd"}, {"alphabet": "zhang"}])
def test_corpora_of_another_codec_or_alphabet(
    folder: Path, tmp_path: Path, command: str, way: dict[str, Any]
) -> None:
    """All commands refuse them, with the same words: scores of those would mean little."""
    path = tmp_path / "other.parquet"
    Corpus.from_documents(["in the beginning"], ["law"], **way).write(path)
    (what,) = way
    told = f"the corpus has the {what} .*, the model was trained with .*; give the documents as"
    with pytest.raises(InputError, match=told):
        laconic(command, folder / "run", path)


@pytest.mark.parametrize(
    ("text", "labels", "alphabet", "told"),
    [
        ("ACGT", ["law"], "dna", r"bad.parquet: the corpus has the alphabet Alphabet.dna\(\)"),
        (
            "abc",
            ["Dune"],
            "bytes",
            "document 0: it is of class 'Dune', unseen in training; known are",
        ),
        ("abc", [None], "bytes", "document 0: there is no label"),
        ("abc", None, "bytes", "has no labels"),
    ],
)
def test_corpora_that_do_not_fit(
    folder: Path, tmp_path: Path, text: str, labels: list[Any] | None, alphabet: str, told: str
) -> None:
    path = tmp_path / "bad.parquet"
    Corpus.from_documents([text], labels, alphabet=alphabet).write(path)
    with pytest.raises(ValueError, match=told):
        laconic("evaluate", folder / "run", path)
    if alphabet == "bytes" and labels != ["Dune"]:
        with pytest.raises(ValueError, match=told):
            laconic("train", path, "-o", tmp_path / "run")
        assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_errors_are_one_line(folder: Path, tmp_path: Path) -> None:
    corpus = folder / "train.parquet"
    _, said = forked.laconic("evaluate", corpus, corpus, status=1)
    assert said == (
        f"laconic: {corpus} is a corpus, not a run; a run is a folder from laconic train\n"
    )
    with pytest.raises(FileNotFoundError, match=r"none.parquet: no such file or folder"):
        laconic("train", tmp_path / "none.parquet", "-o", tmp_path / "x")
    _, said = forked.laconic("train", corpus, "-o", folder / "run", "--debug", status=1)
    assert said.startswith("Traceback")
    assert said.splitlines()[-1].endswith("if it was interrupted, or choose another folder")


COUNTING = ["--ngrams", "3", "--ngram-buckets", "5000", "--grammar-dropout", "0.3"]


def ranks(*words: str | Path) -> str:
    """Run in two processes; return what both print."""
    two = forked.Ranks(words)
    printed, said = two.communicate(timeout=120)
    assert two.returncode == 0, said
    return printed


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sequence", "both"])
def test_two_processes_are_as_good_as_one(folder: Path, tmp_path: Path, kind: str) -> None:
    """The same global batches give the same weights, and only one process writes and prints.

    Torchrun starts those that read; the others begin as if it had.
    """
    words = ["train", str(folder / "train.parquet"), "--dropout", "0", "--checkpoint-minutes", "0"]
    words += ["--model", kind, *(COUNTING if kind == "both" else [])]
    two = [*words, "-o", str(tmp_path / "two"), *SMALL[:-1], "8"]
    if kind == "sequence":
        torchrun = ["torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        command = [sys.executable, "-m", *torchrun, "-m", "laconic", *two]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        printed = done.stdout
    else:
        printed = ranks(*two)
    assert printed.count("epoch  train loss") == 1
    laconic(*words, "-o", tmp_path / "one", *SMALL)
    one = load_file(tmp_path / "one/model/model.safetensors")
    other = load_file(tmp_path / "two/model/model.safetensors")
    for name, weight in one.items():
        torch.testing.assert_close(other[name], weight, atol=1e-6, rtol=0)
    mine, theirs = (Run.open(tmp_path / name).metrics() for name in ("one", "two"))
    for a, b in zip(mine[:-1], theirs[:-1], strict=True):
        assert b["train_loss"] == pytest.approx(a["train_loss"], abs=1e-6)
        assert b["valid_loss"] == pytest.approx(a["valid_loss"], abs=1e-6)


@pytest.mark.slow
def test_two_processes_count_read_and_blend(tmp_path: Path) -> None:
    """By default settings, in so many minutes: processes agree on when these are over."""
    texts = [f"{'ab' if k % 2 else 'cd'} {k} " * 3 for k in range(300)]
    Corpus.from_documents(texts, [k % 2 for k in range(300)]).write(tmp_path / "c.parquet")
    words = ["train", tmp_path / "c.parquet", "-o", tmp_path / "run", "--minutes", "0.02"]
    printed = ranks(*words, *SMALL[:-1], "4")
    for word in ("counting   ", "reading    ", "blend      "):
        assert printed.count(word) >= 1
    assert printed.count("epoch  train loss") == 1
    made = Run.open(tmp_path / "run")
    assert made.finished
    assert made.metrics()[-1]["valid"]["accuracy"] == 1


def test_the_time_to_go_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, lines = [0.0], list[str]()
    monkeypatch.setattr(train_command.time, "monotonic", lambda: clock[0])
    bar = SimpleNamespace(show=lambda *_: None, print=lines.append)
    shown = train_command._Shown(bar, Classification.metrics[0])
    for step in range(1, 21):
        shown(Progress(1, 10, step, 1000, 0.5, 0.1))
        clock[0] += 1
    assert len(lines) == 1
    assert lines[0].startswith("about 167 min to go, if all epochs are needed")
    assert torch.cuda.is_available() or "there is no GPU here" in lines[0]


@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_every_command_takes_models_that_count(
    folder: Path, tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    laconic("train", folder / "train.parquet", "-o", out, *SMALL, *COUNTING, "--model", kind)
    told = Run.open(out)
    assert told.config.model == kind
    laconic("train", folder / "train.parquet", "-o", out, "--resume")
    capsys.readouterr()
    laconic("evaluate", out, folder / "test.parquet", "--json")
    figures = json.loads(capsys.readouterr().out)
    laconic("predict", out, folder / "test.parquet", "-o", tmp_path / "p.csv", "--batch-size", "7")
    assert "in the cache" in capsys.readouterr().out or kind == "ngram"
    with (tmp_path / "p.csv").open() as file:
        found = [row["prediction"] for row in csv.DictReader(file)]
    right = [
        a == b for a, b in zip(found, Corpus.open(folder / "test.parquet").labels, strict=True)
    ]
    assert sum(right) / len(right) == pytest.approx(figures["accuracy"])
    for words in (["--row", "3"], ["--top", "5", "--min-count", "2"]):
        page = tmp_path / f"{words[0]}.html"
        laconic("explain", out, folder / "test.parquet", *words, "-o", page, "--json")
        assert json.loads(capsys.readouterr().out)
        assert page.exists()
    laconic("report", out, folder / "run", "-o", tmp_path / "both.html")
    page = (tmp_path / "both.html").read_text()
    assert "n-grams of 1–3 letters" in page


def test_labels_are_no_commands_of_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, run = tmp_path / "c.parquet", tmp_path / "run"
    Corpus.from_documents(["abab", "baba"] * 9, ["a", "\x1b[31mred\x07"] * 9).write(corpus)
    laconic("train", corpus, "-o", run, *READS)
    laconic("info", corpus)
    laconic("evaluate", run, corpus)
    laconic("predict", run, corpus, "-o", tmp_path / "p.csv")
    laconic("explain", run, corpus, "--row", "1")
    laconic("explain", run, corpus, "--top", "3", "--min-count", "1")
    said = capsys.readouterr().out
    assert "␛[31mred␇" in said
    assert not set("\x1b\x07") & set(said)
    laconic("predict", run, corpus)
    assert "\x1b[31mred\x07" in capsys.readouterr().out  # a program reads what is piped
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    laconic("predict", run, corpus)
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.slow
def test_what_is_killed_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python tools/kill_training.py --times 1`: this seed kills twice, then lets it end."""
    monkeypatch.setattr(
        kill_training, "start", lambda *to, **_: forked.Forked(kill_training.words(*to))
    )
    report = kill_training.campaign(times=1, seed=0, documents=60, epochs=2, minutes=("0",))
    assert not report.findings, str(report)
    assert report.counts["killed"] + report.counts["ended before it could be killed"] >= 1


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds ranks in /proc")
def test_a_killed_rank_can_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `python tools/kill_training.py --processes 2`; these seeds kill once, at a checkpoint.

    Torchrun, which has to end the other rank, starts the one that is killed. One that ran on before
    it could be killed has ended; then another seed tries.
    """
    settings: dict[str, Any] = {"documents": 60, "epochs": 2, "minutes": ("0",)}
    under_torchrun, started = kill_training.start, list[Any]()

    def start(*to: Any, processes: int) -> Any:
        # First nobody disturbs it, then one rank is killed, then it goes on.
        second = len(started) % 3 == 1
        ranks = forked.Ranks(kill_training.words(*to), processes) if not second else None
        started.append(ranks or under_torchrun(*to, processes=processes))
        return started[-1]

    monkeypatch.setattr(kill_training, "start", start)
    for seed in (27, 31, 45):
        report = kill_training.campaign(times=1, seed=seed, processes=2, **settings)
        assert not report.findings, str(report)
        if report.counts["killed rank 0"] + report.counts["killed rank 1"]:
            return
    pytest.fail("every training ended before it could be killed")


def test_findings_are_reported(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """A tool that never finds anything would look just like one that works."""
    outcomes = iter(range(10))

    def train_quickly(corpus: Path, out: Path, *_: Any, **__: Any) -> subprocess.Popen[str]:
        out.mkdir(exist_ok=True)
        (out / "model.partial").touch()
        return subprocess.Popen([sys.executable, "-c", ""], text=True, stderr=subprocess.PIPE)

    monkeypatch.setattr(kill_training, "start", train_quickly)
    monkeypatch.setattr(
        kill_training, "outcome", lambda out: {"metrics": [{"step": 1}, {"done": next(outcomes)}]}
    )
    report = kill_training.campaign(times=1, seed=1, documents=2, epochs=1, minutes=("0",))
    assert any(finding.endswith("metrics is another") for finding in report.findings)
    assert any(finding.endswith("model.partial is left over") for finding in report.findings)


def test_raw_files_by_default_are_counted_and_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From a CSV to a model, its score and a prediction, with defaults only."""
    sample = samples.load("kjv")
    for name, part in {"train": sample.train, "test": sample.test}.items():
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            rows = list(zip(part.documents, part.labels, strict=True))[::16]
            csv.writer(file).writerows(
                [("passage", "part"), *((text[:300], label) for text, label in rows)]
            )
    out, flags = tmp_path / "run", ["--text", "passage", "--label", "part"]
    laconic("train", tmp_path / "train.csv", "-o", out, *flags)
    told = capsys.readouterr().out
    assert "counting   accuracy" in told
    assert "reading    left out: 24 held-out documents cannot show if it helps" in told
    assert f"{out}: counting, accuracy" in told
    assert f"laconic evaluate {out} test.csv" in told
    run = Run.open(out)
    assert (run.config.preset, run.config.model) == ("auto", "auto")
    # One place decides what is shared: estimators and `compress --rulebook auto` learn the same.
    texts = [text[:300] for text in sample.train.documents[::16]]
    assert run.rulebook == Rulebook.learn(texts)
    # Columns are those of the training, if nothing else is said.
    laconic("evaluate", out, tmp_path / "test.csv", "--json")
    figures = json.loads(capsys.readouterr().out)
    assert figures["documents"] == 30
    assert figures["accuracy"] > 2 * figures["majority"]
    laconic("predict", out, tmp_path / "test.csv", "-o", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 31
    assert "counting" in (out / "report.html").read_text()


def test_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (tmp_path / "in.csv").open("w") as file:
        file.write("text,label,user\n")
        file.writelines(f"{'ab' if k % 2 else 'cd'} {k},{k % 2},u{k % 5}\n" for k in range(60))
    laconic("train", tmp_path / "in.csv", "-o", tmp_path / "run", "--group", "user")
    assert Run.open(tmp_path / "run").about["corpus"]["validation"] == 12
    with pytest.raises(ValueError, match=r"no column 'usr'.* did you mean 'user'"):
        laconic("train", tmp_path / "in.csv", "-o", tmp_path / "other", "--group", "usr")


def test_raw_documents_of_standard_input(tmp_path: Path) -> None:
    """A pipe is read once, though documents are looked at twice: for shared rules, and to train."""
    rows = "".join(f"{'ab' if k % 2 else 'cd'} {k},{k % 2}\n" for k in range(60))
    words = ["train", "-", "--format", "csv", "-o", tmp_path / "run"]
    forked.laconic(*words, given=f"text,label\n{rows}")
    assert Run.open(tmp_path / "run").about["corpus"]["documents"] == 60


def test_lines_and_paths_of_plain_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two lines a document, in a file for each class: to a model, a score and predictions."""
    for name, word in (("spam", "buy"), ("ham", "hello")):
        lines = "".join(f"{word} {k}\nline {k}\n" for k in range(30))
        (tmp_path / f"{name}.txt").write_text(lines)
    files, read = [tmp_path / "spam.txt", tmp_path / "ham.txt"], ["--lines", "2"]
    read += ["--label-from-path", "name"]
    laconic("train", *files, "-o", tmp_path / "run", *read)
    assert "2 classes, 60 documents" in capsys.readouterr().out
    laconic("evaluate", tmp_path / "run", *files, *read, "--json")
    assert json.loads(capsys.readouterr().out)["accuracy"] == 1
    out = tmp_path / "p.jsonl"
    laconic("predict", tmp_path / "run", *files, "--lines", "2", "--with-path", "-o", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 60
    assert {row["prediction"] for row in rows if row["path"].endswith("ham.txt")} == {"ham"}
    laconic("compress", *files, "-o", tmp_path / "c.parquet", *read)
    corpus = Corpus.open(tmp_path / "c.parquet")
    assert (corpus.labels[0], corpus.column("path")[0].as_py()) == ("spam", str(files[0]))
    assert corpus[0].text() == "buy 0\nline 0"
    laconic("expand", tmp_path / "c.parquet", "-o", tmp_path / "again.txt")
    assert (tmp_path / "again.txt").read_text() == "".join(each.read_text() for each in files)


def test_a_corpus_has_the_labels_that_were_named(tmp_path: Path) -> None:
    """Also if it was compressed with others, or, as a web archive is, with none."""
    from laconic.cli.inputs import labelled_corpus

    table = Corpus.from_documents(["abab", "baba"], ["x", "y"]).to_arrow()
    path = tmp_path / "corpus.parquet"
    Corpus.from_arrow(table.add_column(0, "kind", pa.array(["one", "two"]))).write(path)
    assert labelled_corpus([str(path)], None, None).labels == ["x", "y"]
    assert labelled_corpus([str(path)], None, "kind").labels == ["one", "two"]
    assert labelled_corpus([str(path)], None, "kind").about.label == "kind"
    with pytest.raises(InputError, match=r"no column 'kin'.*: kind, label"):
        labelled_corpus([str(path)], None, "kin")
