"""What somebody meets who tries Laconic for the first time, with files as people have them."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("accelerate", reason="training needs accelerate: laconic[train]")

from laconic.cli import app
from laconic.errors import LaconicError

GOLDEN = Path(__file__).parents[1] / "golden/v3"
WORDS = ("good soup", "bad bread", "warm plates", "cold tea")


def laconic(*words: str | Path) -> None:
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


def refused(*words: str | Path) -> str:
    """Return what a command says that does not work."""
    with pytest.raises(LaconicError) as caught:
        laconic(*words)
    return str(caught.value)


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.csv"
    rows = [f"{WORDS[k % 4]} and {WORDS[k * k % 3]} {k},{1 + 4 * (k % 2)}" for k in range(24)]
    path.write_text("\n".join(["text,stars", *rows, ""]))
    return path


def test_a_folder_that_holds_a_run_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    # Learning may take an hour: nobody wants to hear of it then.
    said = refused("train", tmp_path / "nowhere.csv", "-o", GOLDEN / "run")
    cure = "go on with --resume if it was interrupted, or choose another folder"
    assert said == f"{GOLDEN / 'run'} holds a run; {cure}"


def test_what_to_do_next_is_said(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    quick = ("--preset", "fast", "--epochs", "1", "--device", "cpu")
    laconic("train", reviews, "-o", run, "--label", "stars", *quick)
    said = capsys.readouterr().out.splitlines()[-4:]
    assert said == [
        f"  evaluate   laconic evaluate {run} test.csv",
        f"  predict    laconic predict {run} new.csv -o predictions.csv",
        f"  explain    laconic explain {run} new.csv --row 0 -o why.html",
        f"  explore    laconic explore {run}",
    ]
    page = tmp_path / "why.html"
    laconic("explain", run, reviews, "--row", "1", "-o", page)
    said = capsys.readouterr().out
    assert said.startswith((f"{page}: 1, ", f"{page}: 5, "))
    assert said.endswith(" %\n")
    few = tmp_path / "few.csv"
    few.write_text('text\ngood soup\n""\n')
    said = refused("explain", run, few, "--top", "20")
    assert said == "no word occurs 5 times in 2 documents; give more of them, or --min-count 1"
    laconic("explain", run, few, "--row", "1")
    assert "the document in row 1 has no letter" in capsys.readouterr().err


def test_settings_that_beginners_want_come_first(capsys: pytest.CaptureFixture[str]) -> None:
    laconic("train", "--help")
    _, first, others = re.split(r"─ Settings[a-z ]* ─", capsys.readouterr().out)
    assert "--minutes" in first
    assert re.search(r"--model.*?\[default: auto\]", first, re.DOTALL)
    assert "--composer" not in first
    assert "--composer" in others


def test_rows_without_a_label_are_no_class(reviews: Path, tmp_path: Path) -> None:
    reviews.write_text(reviews.read_text().replace("cold tea and good soup 3,5", "cold tea,"))
    said = refused("train", reviews, "-o", tmp_path / "run", "--label", "stars")
    cure = "there is no label; give it one, or leave it out, as --on-error skip does"
    assert said == f"{reviews}, row 4: {cure}"
    rows = [{"text": "good", "stars": 5}, {"text": "bad", "stars": None}]
    lines = tmp_path / "lines.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = refused("train", lines, "-o", tmp_path / "run", "--label", "stars")
    assert said == f"{lines}, row 2: {cure}"


def test_labels_that_are_all_different_are_no_classes(reviews: Path, tmp_path: Path) -> None:
    said = refused("train", reviews, "-o", tmp_path / "run", "--text", "stars", "--label", "text")
    assert said == (
        f"{reviews}: 24 documents have 24 different labels, so nothing can be learned from them; "
        "choose another column than 'text' with --label, or --task regression for numbers"
    )


def test_most_labels_different_is_said(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [f"{WORDS[k % 4]},{k // 2 * 2 if k < 10 else k}" for k in range(24)]
    reviews.write_text("\n".join(["text,id", *rows, ""]))
    quick = ("--preset", "fast", "--epochs", "1", "--device", "cpu")
    laconic("train", reviews, "-o", tmp_path / "run", "--label", "id", *quick)
    said = capsys.readouterr().err
    assert "laconic: 19 classes of 24 documents: is 'id' the column of the labels?" in said


def test_empty_documents_and_labels_have_a_cure(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, quick = tmp_path / "run", ("--model", "ngram", "--epochs", "1", "--device", "cpu")
    whole = reviews.read_text()
    reviews.write_text(whole.replace("cold tea and good soup 3,5", ",5"))
    train = ("train", reviews, "-o", run, "--label", "stars")
    cure = "leave it out, as --on-error skip does"
    assert refused(*train) == f"{reviews}, row 4: the document is empty; {cure}"
    laconic(*train, *quick, "--on-error", "skip")
    told = capsys.readouterr()
    assert f"1 document left out, the first: {reviews}, row 4: the document is empty" in told.err
    assert "23 documents" in told.out
    stop = ("--on-error", "stop")
    said = refused("evaluate", run, reviews, *stop)
    assert said == f"{reviews}, row 4: the document is empty; {cure}"
    reviews.write_text(whole.replace("cold tea and good soup 3,5", "cold tea and good soup 3,"))
    missing = f"{reviews}, row 4: there is no label; give it one, or {cure}"
    assert refused("evaluate", run, reviews, *stop) == missing
    assert refused("train", reviews, "-o", tmp_path / "no", "--label", "stars") == missing
    laconic("evaluate", run, reviews, "--on-error", "skip", "--json")
    told = capsys.readouterr()
    first = f"{reviews}, row 4: there is no label"
    assert told.err == f"laconic: 1 document left out, the first: {first}\n"
    assert json.loads(told.out)["documents"] == 23


def test_a_corpus_that_was_compressed_otherwise_has_a_cure(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, other = tmp_path / "run", tmp_path / "other.parquet"
    quick = ("--model", "ngram", "--epochs", "1", "--device", "cpu")
    laconic("train", reviews, "-o", run, "--label", "stars", *quick)
    laconic("compress", reviews, "-o", other, "--text", "text", "--label", "stars")
    said = refused("evaluate", run, other)
    assert said.startswith(f"{other}: the corpus has no rulebook, the model was trained with the")
    assert said.endswith("or compress them in that way (--rulebook with the run's rulebook.json)")
    laconic(
        *("compress", reviews, "-o", other, "--text", "text", "--label", "stars", "--force"),
        *("--rulebook", run / "rulebook.json"),
    )
    capsys.readouterr()
    laconic("evaluate", run, other, "--json")
    assert json.loads(capsys.readouterr().out)["documents"] == 24


def test_numbers_and_texts_in_one_column_have_a_cure(tmp_path: Path) -> None:
    lines = tmp_path / "lines.jsonl"
    rows = [{"text": "good", "stars": "5"}, {"text": "bad", "stars": 1}]
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = refused("train", lines, "-o", tmp_path / "run", "--label", "stars")
    assert said == (
        f"{lines}, row 2: 'stars' does not fit the first rows: int instead of string; write it as "
        "they have it"
    )


@pytest.mark.parametrize(("sign", "told"), [(";", "';'"), ("\t", r"'\t'"), ("|", "'|'")])
def test_another_delimiter_is_recognised(
    sign: str, told: str, reviews: Path, tmp_path: Path
) -> None:
    reviews.write_text(reviews.read_text().replace(",", sign))
    said = refused("train", reviews, "-o", tmp_path / "run", "--label", "stars")
    assert said.endswith(f"; are fields apart by --delimiter {told}?")


def test_a_run_remembers_what_is_between_fields(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commas = tmp_path / "commas.csv"
    commas.write_text(reviews.read_text())
    reviews.write_text(reviews.read_text().replace(",", ";"))
    run, quick = tmp_path / "run", ("--model", "ngram", "--epochs", "1", "--device", "cpu")
    laconic("train", reviews, "-o", run, "--delimiter", ";", "--label", "stars", *quick)
    capsys.readouterr()
    for other, told in ((reviews, True), (commas, False)):
        laconic("evaluate", run, other)
        captured = capsys.readouterr()
        assert "accuracy" in captured.out
        assert ("read with ';' between fields, as in training" in captured.err) == told
    laconic("predict", run, reviews, "-o", tmp_path / "p.csv")
    laconic("train", "-o", run, "--resume")


def test_classes_that_training_did_not_know(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, quick = tmp_path / "run", ("--model", "ngram", "--epochs", "1", "--device", "cpu")
    laconic("train", reviews, "-o", run, "--label", "stars", *quick)
    with reviews.open("a") as file:
        file.write("A soup of another kind,9\n")
    said = refused("evaluate", run, reviews)
    assert "it is of class '9', unseen in training" in said
    assert said.endswith("leave it out, as --on-error skip does")
    capsys.readouterr()
    laconic("evaluate", run, reviews, "--on-error", "skip")
    assert "1 document left out, the first: document" in capsys.readouterr().err


def test_a_glob_is_remembered(reviews: Path, tmp_path: Path) -> None:
    run, quick = tmp_path / "run", ("--model", "ngram", "--epochs", "1", "--device", "cpu")
    laconic("train", f"{reviews.parent}/{reviews.name[:-5]}*.csv", "-o", run, "--label", "stars",
            *quick)  # fmt: skip
    laconic("train", "-o", run, "--resume")


def test_many_whole_numbers_may_be_amounts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "amounts.csv"
    rows = [f"so many things {'x' * (k % 25)},{k % 25}" for k in range(100)]
    file.write_text("\n".join(["text,label", *rows, ""]))
    laconic("train", file, "-o", tmp_path / "run", "--model", "ngram", "--epochs", "1")
    told = "25 classes, all whole numbers: --task regression would learn amounts"
    assert told in capsys.readouterr().err


def test_a_column_is_misspelt(reviews: Path, tmp_path: Path) -> None:
    said = refused("train", reviews, "-o", tmp_path / "run", "--label", "star")
    assert said == (
        f"{reviews}: no column 'star'; choose --label from: 'text', 'stars'; did you mean 'stars'?"
    )


def test_a_header_that_is_none(reviews: Path, tmp_path: Path) -> None:
    # A whole review is no name: it is cut, and the cure is said.
    review = "It was a good soup, and we came back. " * 30
    reviews.write_text(f'"{review}",5\n"{review} Again.",1\n')
    said = refused("train", reviews, "-o", tmp_path / "run", "--label", "stars")
    assert "if that is no header: --no-header" in said
    assert len(said) < len(str(reviews)) + 250


def test_documents_that_came_through_a_pipe_cannot_be_explored(tmp_path: Path) -> None:
    run = shutil.copytree(GOLDEN / "run", tmp_path / "run")
    about = json.loads((run / "about.json").read_text())
    about["corpus"]["path"] = "/dev/stdin"
    (run / "about.json").write_text(json.dumps(about))
    said = refused("explore", run)
    assert said == (
        f"{run} was trained on standard input, which is gone: name documents, and --run {run}"
    )


def test_a_file_without_a_header_is_read_as_in_training(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The first document would be taken for names, and nobody would see that one is missing.
    lines = reviews.read_text().splitlines()[1:]
    lines[0] = r"A soup\nin two lines,5"
    reviews.write_text("\n".join([*lines, ""]))
    run, quick = tmp_path / "run", ("--preset", "fast", "--epochs", "1", "--device", "cpu")
    bare = ("--no-header", "--escapes", "--text", "0", "--label", "1")
    laconic("train", reviews, "-o", run, *bare, *quick)
    capsys.readouterr()
    laconic("evaluate", run, reviews, "--json")
    said = capsys.readouterr()
    assert json.loads(said.out)["documents"] == 24
    assert said.err == (
        "laconic: read without a header, and with escapes, as in training; else --header, "
        "--no-escapes\n"
    )
    laconic("predict", run, reviews, "-o", tmp_path / "p.csv")
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 25
    capsys.readouterr()
    laconic("explain", run, reviews, "--row", "0", "--json")
    assert "".join(each["text"] for each in json.loads(capsys.readouterr().out)["pieces"]) == (
        "A soup\nin two lines"
    )
    laconic("explore", run, "-o", tmp_path / "page.html")
    assert "Document 0" in (tmp_path / "page.html").read_text()
    laconic("predict", run, reviews, "-o", tmp_path / "q.csv", "--header", "--text", "0")
    assert len((tmp_path / "q.csv").read_text().splitlines()) == 24
    # Another format has none of this, and nothing is said.
    (tmp_path / "new.jsonl").write_text('{"text": "good"}\n')
    capsys.readouterr()
    laconic("predict", run, tmp_path / "new.jsonl", "-o", tmp_path / "r.csv")
    assert capsys.readouterr().err == ""
