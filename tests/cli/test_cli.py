"""The command line, as a user would type it."""

import gzip
import io
import json
import lzma
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from laconic import Corpus, samples
from laconic.cli import app
from laconic.cli.progress import Bar
from laconic.errors import LaconicError


def run(*words: str | Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "laconic", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done


def laconic(*words: str | Path) -> None:
    """As run, but in this process, which is faster; errors are raised."""
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    path = tmp_path / "reviews.csv"
    path.write_text('text,stars\n"good, good",5\nbad bad bad,1\n"it said ""no""",3\n')
    return path


def test_from_a_csv_and_back(reviews: Path, tmp_path: Path) -> None:
    out = tmp_path / "reviews.parquet"
    done = run("compress", reviews, "-o", out, "--text", "text", "--label", "stars")
    assert done.stdout.startswith(f"{out}: 3 documents, 33 letters as ")
    assert done.stderr == ""
    corpus = Corpus.open(out)
    assert corpus.labels == ["5", "1", "3"]
    assert corpus[2].text() == 'it said "no"'
    run("expand", out, "-o", tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_bytes() == reviews.read_bytes()
    assert "exists: choose another name" in run("expand", out, "-o", reviews, status=1).stderr
    assert run("verify", out).stdout == f"{out}: 3 documents, all sound\n"


def test_what_info_and_show_say(
    reviews: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "reviews.parquet"
    laconic("compress", reviews, "-o", out, "--text", "text", "--label", "stars", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["documents"] == 3
    assert told["letters"] == 33
    assert told["rejected"] == 0
    assert told["bytes"] == out.stat().st_size
    laconic("info", out)
    text = capsys.readouterr().out
    for word in ("documents  3", "gzip -6", "zstd -3", "5: 1, 1: 1, 3: 1", "stars (string)"):
        assert word in text
    laconic("info", out, "--json")
    figures = json.loads(capsys.readouterr().out)
    assert figures["labels"] == {"5": 1, "1": 1, "3": 1}
    assert figures["gzip_6_bytes_per_document"] == pytest.approx(
        sum(len(gzip.compress(t, 6)) for t in (b"good, good", b"bad bad bad", b'it said "no"')) / 3
    )
    laconic("show", out, "0", "--rows", "1")
    assert "256     2       2  o d   'od'" in capsys.readouterr().out
    laconic("show", out, "-2", "--tree")
    tree = capsys.readouterr().out
    assert "256 'ad'" in tree or "'ba'" in tree
    assert "there is no document 3: the corpus has 3" in run("show", out, "3", status=1).stderr


def test_zhang_layout(tmp_path: Path) -> None:
    source = tmp_path / "train.csv.xz"
    data = b'"1","a line\\nand ""another"""\n"2","plain"\n'
    source.write_bytes(lzma.compress(data))
    out = tmp_path / "train.parquet"
    columns = ["--no-header", "--text", "1", "--label", "0"]
    laconic("compress", source, "-o", out, *columns, "--escapes")
    corpus = Corpus.open(out)
    assert corpus[0].text() == 'a line\nand "another"'
    assert corpus.labels == ["1", "2"]
    laconic("expand", out, "-o", tmp_path / "back.csv")
    assert (tmp_path / "back.csv").read_bytes() == data
    laconic("expand", out, "-o", tmp_path / "back.csv.xz")
    assert lzma.decompress((tmp_path / "back.csv.xz").read_bytes()) == data


def test_fasta_and_back(tmp_path: Path) -> None:
    records = samples.load("bacteria").train.documents[:5]
    lines = [
        line
        for number, record in enumerate(records)
        for line in (
            f">window{number} of a genome",
            *(str(record)[i : i + 60] for i in range(0, len(record), 60)),
        )
    ]
    source = tmp_path / "windows.fa.gz"
    data = ("\n".join(lines) + "\n").encode()
    source.write_bytes(gzip.compress(data))
    out = tmp_path / "windows"
    laconic("compress", source, "-o", out, "--codec", "lzd", "--alphabet", "dna")
    corpus = Corpus.open(out)
    assert corpus.column("name")[1].as_py() == "window1 of a genome"
    assert [g.text("dna") for g in corpus] == list(records)
    laconic("expand", out, "-o", tmp_path / "back.fa")
    assert (tmp_path / "back.fa").read_bytes() == data


def test_a_folder_per_class_and_back(tmp_path: Path) -> None:
    folder = tmp_path / "mail"
    for name, data in {"ham/1.txt": b"hello\n", "ham/2": b"\xff\x00", "spam/1.txt": b"buy"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    out = tmp_path / "mail.parquet"
    laconic("compress", folder, "-o", out)
    corpus = Corpus.open(out)
    assert corpus.labels == ["ham", "ham", "spam"]
    laconic("expand", out, "-o", tmp_path / "back")
    found = {
        str(path.relative_to(tmp_path / "back")): path.read_bytes()
        for path in (tmp_path / "back").rglob("*")
        if path.is_file()
    }
    assert found == {"ham/1.txt": b"hello\n", "ham/2": b"\xff\x00", "spam/1.txt": b"buy"}


def test_many_files_by_a_glob(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text(f"line {number}\nanother\n")
    laconic("compress", tmp_path / "*.txt", "-o", tmp_path / "out")
    assert [g.text() for g in Corpus.open(tmp_path / "out")] == [
        "line 0",
        "another",
        "line 1",
        "another",
        "line 2",
        "another",
    ]


def test_an_alphabet_of_the_input(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("żółw\nżaba\n")
    laconic("compress", tmp_path / "in.txt", "-o", tmp_path / "c.parquet", "--alphabet", "learn")
    corpus = Corpus.open(tmp_path / "c.parquet")
    assert corpus.alphabet.size == 7
    assert corpus[1].text(corpus.alphabet) == "żaba"
    (tmp_path / "letters.json").write_text(corpus.alphabet.to_json())
    other = tmp_path / "d.parquet"
    laconic("compress", tmp_path / "in.txt", "-o", other, "--alphabet", tmp_path / "letters.json")
    assert other.read_bytes() == (tmp_path / "c.parquet").read_bytes()
    for damaged in (b"\xff", b"[", b"{}"):
        (tmp_path / "letters.json").write_bytes(damaged)
        with pytest.raises(LaconicError, match=r"letters\.json: "):
            laconic(
                *("compress", tmp_path / "in.txt", "-o", tmp_path / "e.parquet"),
                *("--alphabet", tmp_path / "letters.json"),
            )


def test_bad_rows_stop_or_are_skipped(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_bytes(b"text,label\ngood,1\n,2\ntoo,many,columns\nfine,3\n")
    out = tmp_path / "c.parquet"
    done = run("compress", source, "-o", out, "--text", "text", "--label", "label", status=1)
    assert done.stderr.startswith(f"laconic: {source}, row ")
    assert not out.exists()
    done = run("compress", source, "-o", out, "--text", "text", "--on-error", "skip", "--force")
    assert "2 rows rejected, the first for: the document is empty" in done.stderr
    rejects = (tmp_path / "c.parquet.rejects.jsonl").read_text().splitlines()
    assert [json.loads(line)["row"] for line in rejects] == [2, 3]
    assert [g.text() for g in Corpus.open(out)] == ["good", "fine"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing.csv"], "nothing.csv"),
        (["in.csv", "--text", "body"], "no column 'body'; choose --text from: 'text', 'label'"),
        (["in.csv", "--alphabet", "klingon"], "no alphabet is named 'klingon'"),
        (["in.csv", "--min-count", "1"], "min_count must be an integer of at least 2"),
        (["in.csv", "--codec", "lzd", "--max-rules", "3"], "max_rules is not an option of 'lzd'"),
        (["in.csv", "--level", "99"], "--level must be from 1 to 22"),
        (["in.csv", "--text", "text", "--alphabet", "dna"], "row 1, position 0: 'g' is not in"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(tmp_path: Path, words: list[str], said: str) -> None:
    (tmp_path / "in.csv").write_text("text,label\ngood,1\n")
    words[0] = str(tmp_path / words[0])
    done = run("compress", *words, "-o", tmp_path / "c.parquet", status=1)
    assert done.stderr.startswith("laconic: ")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "c.parquet").exists()


@pytest.mark.parametrize("name", ["c.csv", "c.fa", "c.parquet.gz", "c.json"])
def test_a_corpus_is_not_named_like_documents(tmp_path: Path, name: str) -> None:
    (tmp_path / "in.txt").write_text("abab\n")
    with pytest.raises(ValueError, match=r"a corpus is a \.parquet file, or else a new folder"):
        laconic("compress", tmp_path / "in.txt", "-o", tmp_path / name)


@pytest.mark.parametrize(
    ("error", "last", "traced"),
    [
        ("RuntimeError('boom')", "laconic: this is a bug in Laconic", True),
        ("ValueError()", "laconic: this is a bug in Laconic", True),
        ("OSError('no disk')", "laconic: no disk", False),
        ("OSError()", "laconic: OSError; see more with --debug", False),
        ("LaconicError(' ')", "laconic: LaconicError; see more with --debug", False),
        ("MemoryError()", "laconic: out of memory; give less at a time, or", False),
        ("OSError(28, 'No space')", "laconic: the disk is full: [Errno 28] No space; make", False),
        ("LaconicError('a\\x1b[31m')", "laconic: a␛[31m", False),
    ],
)
def test_bugs_are_told_apart_from_what_users_can_mend(error: str, last: str, traced: bool) -> None:
    code = (
        "from laconic import Corpus, cli\n"
        "from laconic.errors import LaconicError\n"
        f"def fail(path): raise {error}\n"
        "Corpus.open = fail\n"
        "cli.main()\n"
    )
    for flags in ([], ["--debug"]):
        command = [sys.executable, "-c", code, "info", "x.parquet", *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert lines[-1].startswith(last)
        assert done.stderr.count("Traceback") == (traced or "--debug" in flags)
        assert len(lines) == 1 or traced or flags
        assert not traced or lines[-1].endswith("please report it with the above")


COMMANDS = ["compress", "info", "show", "expand", "verify", "features", "train", "evaluate"]
COMMANDS += ["predict", "explain", "report", "rulebook"]


def test_every_command_takes_debug(capsys: pytest.CaptureFixture[str]) -> None:
    more = {"show": ["3"], "evaluate": ["y"], "predict": ["y"], "explain": ["y"]}
    out = {"compress": "c", "expand": "o.csv", "features": "m.npz", "train": "r", "report": "r"}
    out["rulebook"] = "b.json"
    for command in COMMANDS:
        laconic(command, "--help")
        assert "--debug" in capsys.readouterr().out
        words = [command, "/no/x.parquet", *more.get(command, [])]
        words += ["-o", f"/tmp/{out[command]}"] if command in out else []
        for debug in ([*words, "--debug"], ["--debug", *words], words):
            with pytest.raises((OSError, LaconicError)):
                laconic(*debug)
            assert ("Traceback" in capsys.readouterr().err) == ("--debug" in debug), command


def test_verify_names_the_bad_file(tmp_path: Path) -> None:
    Corpus.from_documents(["abab"] * 100).write(tmp_path / "c.parquet")
    data = bytearray((tmp_path / "c.parquet").read_bytes())
    data[60] ^= 1
    (tmp_path / "c.parquet").write_bytes(data)
    done = run("verify", tmp_path / "c.parquet", status=1)
    assert "c.parquet: row group 0 is damaged" in done.stdout
    (tmp_path / "x.parquet").write_bytes(b"PAR1 no")
    assert (
        "x.parquet: is not Parquet, or was cut short"
        in run("info", tmp_path / "x.parquet", status=1).stderr
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_what_is_stopped_leaves_no_output_and_resume_goes_on(
    number: signal.Signals, tmp_path: Path
) -> None:
    documents = samples.load("kjv").train.documents
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{text}\n" for text in documents) * 24)
    out = tmp_path / "c.parquet"
    words = ["compress", str(source), "-o", str(out), "--shard", "4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "laconic", *words], stderr=subprocess.PIPE, text=True
    )
    shard = tmp_path / "c.parquet.partial/shards/shard-00000.parquet"
    deadline = time.monotonic() + 60
    while not shard.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    if process.returncode != 0:  # else it was faster than the signal
        assert process.returncode == 128 + number, errors
        assert "go on with --resume" in errors
        assert not out.exists()
        assert "holds interrupted work" in run(*words, status=1).stderr
        run(*words, "--resume")
    whole = tmp_path / "whole.parquet"
    run("compress", source, "-o", whole, "--shard", "4")
    assert out.read_bytes() == whole.read_bytes()
    assert "is there already, and whole" in run(*words, "--resume").stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_bars_are_for_terminals(
    reviews: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    laconic("compress", reviews, "-o", tmp_path / "c.parquet", "--text", "text")
    assert "3 documents" in terminal.getvalue()
    size = reviews.stat().st_size
    assert f"{size}/{size} bytes" in terminal.getvalue()
    with Bar("MofNCompleteColumn") as bar:
        bar.show("epoch 2 of 9", 3, 12, "loss 0.5")
        bar.print("a line")
    for word in ("epoch 2 of 9", "3/12", "loss 0.5", "a line\n"):
        assert word in terminal.getvalue()
    capsys.readouterr()
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with Bar() as bar:
        bar.show("epoch 2 of 9", 3, 12)
        bar.print("a line")
    assert capsys.readouterr().out == "a line\n"
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_help_has_examples_and_imports_nothing_heavy() -> None:
    code = (
        "import sys\n"
        "from laconic.cli import app\n"
        "app(['compress', '--help'], result_action='return_value')\n"
        "heavy = {'pyarrow', 'pandas', 'ray', 'pyspark', 'torch', 'dnaio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    environment = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "laconic compress reviews.csv -o reviews.parquet" in done.stdout
