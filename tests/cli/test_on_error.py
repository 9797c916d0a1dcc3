"""`--on-error skip`: bad rows are left out, which is said, and a run remembers it."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("accelerate", reason="training needs accelerate: laconic[train]")

from laconic.cli import app
from laconic.cli.inputs import labelled_corpus
from laconic.corpus import Corpus
from laconic.errors import LaconicError

QUICK = ("--model", "ngram", "--epochs", "1", "--device", "cpu")
SKIP = ("--on-error", "skip")
WORDS = ("good soup", "bad bread", "warm plates", "cold tea")
CURE = "leave it out, as --on-error skip does"


def laconic(*words: str | Path) -> None:
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


def refused(*words: str | Path) -> str:
    """Return what a command says that does not work."""
    with pytest.raises(LaconicError) as caught:
        laconic(*words)
    return str(caught.value)


def texts(count: int = 12) -> list[str]:
    return [f"{WORDS[k % 4]} and {WORDS[k * k % 3]} {k}" for k in range(count)]


def csv(path: Path, *bad: str, count: int = 12, first: str = "text,label") -> Path:
    """Write a CSV of good rows, the bad ones after the third of them."""
    rows = [f"{text},{1 + 4 * (k % 2)}" for k, text in enumerate(texts(count))]
    path.write_text("\n".join([first, *rows[:3], *bad, *rows[3:], ""]))
    return path


def jsonl(path: Path, labels: list[object]) -> Path:
    rows = [{"text": text, "label": label} for text, label in zip(texts(), labels, strict=False)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def documents_of(run: Path) -> int:
    return int(json.loads((run / "about.json").read_text())["corpus"]["documents"])


def test_bad_empty_and_unlabelled_rows_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = csv(tmp_path / "f.csv", "one field", ",5", "no label,")
    reasons = {
        "one field": "1 columns instead of 2; quote a field that holds ',' or a newline",
        ",5": f"the document is empty; {CURE}",
        "no label,": f"there is no label; give it one, or {CURE}",
    }
    for bad, reason in reasons.items():
        said = refused("train", csv(file, bad), "-o", tmp_path / "run", *QUICK)
        assert said == f"{file}, row 4: {reason}"
    csv(file, "one field", ",5", "no label,")
    laconic("train", file, "-o", tmp_path / "run", *QUICK, *SKIP)
    told = f"laconic: 3 documents left out, the first: {file}, row 4: 1 columns instead of 2\n"
    assert capsys.readouterr().err == told
    assert documents_of(tmp_path / "run") == 12


@pytest.mark.parametrize("missing", [None, ""])
def test_a_missing_label_in_json_lines(
    missing: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = jsonl(tmp_path / "f.jsonl", ["a", missing, "b", "a", "b", missing, "a"])
    said = refused("train", file, "-o", tmp_path / "run", *QUICK)
    assert said == f"{file}, row 2: there is no label; give it one, or {CURE}"
    laconic("train", file, "-o", tmp_path / "run", *QUICK, *SKIP)
    told = f"laconic: 2 documents left out, the first: {file}, row 2: there is no label\n"
    assert capsys.readouterr().err == told
    assert documents_of(tmp_path / "run") == 5


def test_a_number_that_is_missing_in_parquet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = [1.5, float("nan"), 2.5, None, 3.5, 4.5]
    file = tmp_path / "raw.parquet"
    pq.write_table(pa.table({"text": texts(6), "label": labels}), file)
    said = refused("train", file, "-o", tmp_path / "run", *QUICK)
    assert said == f"{file}, row 2: there is no label; give it one, or {CURE}"
    laconic("train", file, "-o", tmp_path / "run", *QUICK, *SKIP)
    told = f"laconic: 2 documents left out, the first: {file}, row 2: there is no label\n"
    assert capsys.readouterr().err == told
    assert documents_of(tmp_path / "run") == 4


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_corpus_stays_on_disk(
    missing: float | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, labels in {"a": [1.5, missing, 2.5], "b": [3.5, 4.5, missing]}.items():
        some = texts(3)
        Corpus.from_documents(some, labels).write(tmp_path / f"c/{name}.parquet")
    folder = tmp_path / "c"
    said = refused("train", folder, "-o", tmp_path / "run", *QUICK)
    assert said == f"{folder}, document 1: there is no label; give it one, or {CURE}"
    corpus = labelled_corpus([str(folder)], None, None, on_error="skip")
    told = f"laconic: 2 documents left out, the first: {folder}, document 1: there is no label\n"
    assert capsys.readouterr().err == told
    assert corpus.labels == [1.5, 2.5, 3.5, 4.5]
    assert corpus.group_starts.tolist() == [0, 2, 4]  # in two files, as before
    assert [each.text() for each in corpus] == [texts(3)[k] for k in (0, 2, 0, 1)]
    laconic("train", folder, "-o", tmp_path / "run", *QUICK, *SKIP)
    assert documents_of(tmp_path / "run") == 4
    laconic("evaluate", tmp_path / "run", folder)
    assert capsys.readouterr().err.count("2 documents left out, as in training") == 1


def test_the_first_of_several_files_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = csv(tmp_path / "a.csv", first="text,label")
    a.write_text(a.read_text() + ",5\n")
    b = tmp_path / "b.csv"
    b.write_text(csv(b).read_text().replace("text,label\n", "text,label\n,1\n"))
    laconic("train", a, b, "-o", tmp_path / "run", *QUICK, *SKIP)
    told = f"laconic: 2 documents left out, the first: {a}, row 13: the document is empty\n"
    assert capsys.readouterr().err == told
    # Of a file of which nothing remains, too.
    a.write_text("text,label\none field\n")
    assert labelled_corpus([str(a), str(b)], None, None, on_error="skip").labels[:2] == ["1", "5"]
    told = f"laconic: 2 documents left out, the first: {a}, row 1: "
    assert capsys.readouterr().err.startswith(told)


def test_documents_that_validate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, valid = csv(tmp_path / "f.csv"), csv(tmp_path / "v.csv", ",1", "unlabelled,")
    words = ("train", file, "-o", tmp_path / "run", "--valid", valid, *QUICK)
    assert refused(*words) == f"{valid}, row 5: there is no label; give it one, or {CURE}"
    laconic(*words, *SKIP)
    told = f"laconic: 2 documents left out, the first: {valid}, row 4: the document is empty\n"
    assert capsys.readouterr().err == told
    about = json.loads((tmp_path / "run/about.json").read_text())["corpus"]
    assert (about["training"], about["validation"]) == (12, 12)


def test_nothing_remains(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_text("text,label\n,1\nunlabelled,\n")
    said = refused("train", file, "-o", tmp_path / "run", *QUICK, *SKIP)
    every = "every document is left out, the first: "
    assert said == f"{file}: {every}{file}, row 1: the document is empty"
    Corpus.from_documents(["ab"], [None]).write(tmp_path / "c.parquet")
    said = refused("train", tmp_path / "c.parquet", "-o", tmp_path / "run", *QUICK, *SKIP)
    assert said.startswith(f"{tmp_path / 'c.parquet'}: {every}")
    assert not (tmp_path / "run").exists()


def test_a_run_remembers_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, run = csv(tmp_path / "f.csv", "one field", ",5", "unlabelled,"), tmp_path / "run"
    laconic("train", file, "-o", run, *QUICK, *SKIP)
    capsys.readouterr()
    laconic("evaluate", run, file, "--json")
    told = capsys.readouterr()
    assert json.loads(told.out)["documents"] == 12
    as_before = "documents left out, as in training (else --on-error stop), the first: "
    assert told.err.startswith(f"laconic: 3 {as_before}{file}, row 4: ")
    assert refused("evaluate", run, file, "--on-error", "stop").startswith(f"{file}, row 4: ")
    explore = ("explore", run, "-o", tmp_path / "page.html", "--row", "11")
    laconic(*explore)
    told = capsys.readouterr()
    assert told.err.startswith(f"laconic: 3 {as_before}{file}, row 4: ")
    assert refused(*explore[:2], "-o", tmp_path / "12.html", "--row", "12").endswith("12, from 0")
    said = refused(*explore, "--force", "--on-error", "stop")
    assert said.startswith(f"{file}, row 4: ")
    laconic("train", file, "-o", run, "--resume")
    assert documents_of(run) == 12


def test_explore_leaves_them_out_if_it_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = csv(tmp_path / "f.csv", ",5", "unlabelled,"), tmp_path / "page.html"
    assert refused("explore", file, "-o", out) == f"{file}, row 4: the document is empty; {CURE}"
    laconic("explore", file, "-o", out, "--row", "3", *SKIP)
    assert "unlabelled" in out.read_text()  # it can be looked at
    told = f"laconic: 1 document left out, the first: {file}, row 4: the document is empty\n"
    assert capsys.readouterr().err == told


def test_what_is_not_said_again_is_as_it_was(tmp_path: Path) -> None:
    """Who resumes need not name the column of the labels again, nor that there is no header."""
    file, run = csv(tmp_path / "f.csv", first="good soup,1"), tmp_path / "run"
    bare = ("--no-header", "--text", "0", "--label", "1")
    laconic("train", file, "-o", run, *bare, *QUICK)
    metrics = (run / "metrics.jsonl").read_bytes()
    laconic("train", file, "-o", run, "--resume")
    assert (run / "metrics.jsonl").read_bytes() == metrics


def test_an_empty_class_that_a_run_learned_stays_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A corpus that was made in Python may have it."""
    from laconic.training.loop import train
    from laconic.training.settings import TrainingConfig

    corpus = Corpus.from_documents(texts(), ["", "spam"] * 6)
    config = TrainingConfig(model="ngram", epochs=1, device="cpu")
    train(corpus, config, tmp_path / "run")
    corpus.write(tmp_path / "c.parquet")
    laconic("evaluate", tmp_path / "run", tmp_path / "c.parquet", *SKIP, "--json")
    assert json.loads(capsys.readouterr().out)["documents"] == 12


def test_one_of_several_processes_speaks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = csv(tmp_path / "f.csv", ",5")
    monkeypatch.setenv("RANK", "1")
    assert len(labelled_corpus([str(file)], None, None, on_error="skip")) == 12
    assert capsys.readouterr().err == ""


def test_compress_says_which_flag_leaves_out(tmp_path: Path) -> None:
    file = csv(tmp_path / "f.csv", ",5")
    said = refused("compress", file, "-o", tmp_path / "c.parquet")
    assert said == f"{file}, row 4: the document is empty; {CURE}"


def test_a_table_in_python_knows_of_no_flag() -> None:
    with pytest.raises(LaconicError, match=r"row 2: the document is empty; leave it out$"):
        Corpus.from_table(pa.table({"text": ["ab", ""]}))
