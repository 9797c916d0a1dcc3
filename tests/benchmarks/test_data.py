"""The paper's data sets in every layout in which they are distributed, as tiny files."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from benchmarks import data, layouts
from benchmarks.layouts import DataError
from laconic.samples import Split

SEQUENCES = ["ACGTACGT", "GGGTTTAA", "TTTTACGA", "CCCCACGT", "AAAAAAAA"] * 4
LABELS = ["1", "0", "1", "1", "0"] * 4


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix, open)
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
def test_zhang_joins_all_columns(tmp_path: Path, packed: str) -> None:
    text = '"3","A title","He said ""no"".\\nThen he left."\n"1","Another, title","Text"\n'
    write(tmp_path / f"ag_news_csv/train.csv{packed}", text)
    write(tmp_path / "ag_news_csv/test.csv", '"2","only one column"\n')

    train, test = layouts.zhang("ag_news_csv", ".csv", tmp_path)

    assert train.labels == ["3", "1"]
    assert train.documents == ['A title\nHe said "no".\nThen he left.', "Another, title\nText"]
    assert test == Split(["only one column"], ["2"])


def test_tabbed(tmp_path: Path) -> None:
    write(tmp_path / "dna/H3/train.tsv.xz", "1\tACGT\n0\tGGTT\n")
    write(tmp_path / "dna/H3/test.tsv.xz", "0\tTTTT\n")
    train, test = layouts.tabbed("dna/H3", tmp_path)
    assert train == Split(["ACGT", "GGTT"], ["1", "0"])
    assert test == Split(["TTTT"], ["0"])


def jaist(folder: Path, name: str = "H3.txt") -> None:
    rows = zip(SEQUENCES, LABELS, strict=True)
    # Sequences go over two lines, as FASTA has them; the label is a line of its own.
    text = "".join(f">id{i}\n{s[:5]}\n{s[5:]}\n{b}\n" for i, (s, b) in enumerate(rows))
    write(folder / "jaist" / name, text)


@pytest.mark.parametrize("name", ["H3.txt", "h3.txt", "h3.txt.gz"])
def test_jaist_has_no_test_part_and_gets_one(tmp_path: Path, name: str) -> None:
    jaist(tmp_path, name)
    train, test = layouts.jaist("H3", tmp_path)
    assert (len(train), len(test)) == (18, 2)
    both = sorted(zip(train.documents + test.documents, train.labels + test.labels, strict=True))
    assert both == sorted(zip(SEQUENCES, LABELS, strict=True))
    assert layouts.jaist("H3", tmp_path) == (train, test)


def test_gue_adds_dev_to_train(tmp_path: Path) -> None:
    where = tmp_path / "GUE/EMP/H3"
    write(where / "train.csv", "sequence,label\nACGT,1\nACGA,0\n")
    write(where / "dev.csv", "sequence,label\nTTTT,0\n")
    write(where / "test.csv", "sequence,label\nGGGG,1\n")
    train, test = layouts.gue("H3", tmp_path)
    assert train == Split(["ACGT", "ACGA", "TTTT"], ["1", "0", "0"])
    assert test == Split(["GGGG"], ["1"])


def test_nucleotide_transformer(tmp_path: Path) -> None:
    write(tmp_path / "nt/H3/train.fna", ">chr1_2|1\nACGT\nacgt\n>chr2|x|0\nTTNT\n")
    write(tmp_path / "nt/H3/test.fna.gz", ">chr3|0\nGGGG\n")
    train, test = layouts.nt("H3", tmp_path)
    assert train == Split(["ACGTACGT", "TTNT"], ["1", "0"])
    assert test == Split(["GGGG"], ["0"])


BAD = {
    "zhang label": ("zhang", '"1","good"\n"one","bad"\n', "train.csv, row 2"),
    "zhang column": ("zhang", '"1"\n', "train.csv, row 1"),
    "tab": ("tabbed", "1\tACGT\n1 ACGT\n", "train.tsv.xz, row 2"),
    "letters": ("tabbed", "1\tACGT\n1\tHELLO\n", "row 2: 'HELLO' is no DNA"),
    "no label line": ("jaist", ">a\nACGT\n>b\nACGT\n1\n", "row 3: the sequence before it"),
    "label first": ("jaist", ">a\n1\n", "row 2: a label without a sequence"),
    "cut off": ("jaist", ">a\nACGT\n1\n>b\nACGT\n", "the file was cut off"),
    "header": ("nt", ">chr1\nACGT\n", "row 1: its header must end in"),
    "columns": ("gue", "text,label\nACGT,1\n", "columns sequence and label"),
    "empty": ("tabbed", "", "no documents"),
}
FILES = {
    "zhang": "x/train.csv",
    "tabbed": "x/train.tsv.xz",
    "jaist": "jaist/H3.txt",
    "nt": "nt/H3/train.fna",
    "gue": "GUE/EMP/H3/train.csv",
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named(tmp_path: Path, case: str) -> None:
    layout, text, reason = BAD[case]
    write(tmp_path / FILES[layout], text)
    with pytest.raises(DataError, match=reason):
        read(layout, tmp_path)


@pytest.mark.parametrize("layout", FILES)
def test_a_missing_file_is_named(tmp_path: Path, layout: str) -> None:
    with pytest.raises(DataError, match=r"does not exist.*paper_data"):
        read(layout, tmp_path)


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "x/train.tsv.xz", "1\tACGT\n" * 1000)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"train.tsv.xz cannot be read"):
        layouts.tabbed("x", tmp_path)


def read(layout: str, folder: Path) -> None:
    if layout == "zhang":
        layouts.zhang("x", ".csv", folder)
    elif layout == "tabbed":
        layouts.tabbed("x", folder)
    else:
        layouts.DNA_LAYOUTS[layout]("H3", folder)


def test_a_set_that_was_cut_off_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jaist(tmp_path)
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    with pytest.raises(DataError, match="jaist-H3 has 20 documents instead of 14965"):
        data.load("jaist-H3")


def test_other_classes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, count in zip(("train", "test"), data.DNA_PARTS["H3"], strict=True):
        rows = "".join(f"{row % 3}\tACGT\n" for row in range(count))
        write(tmp_path / f"dna/H3/{part}.tsv.xz", rows)
    monkeypatch.setenv("LACONIC_DATA", str(tmp_path))
    with pytest.raises(DataError, match="3 classes instead of 2"):
        data.load("H3")


def test_data_that_is_not_there_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    with pytest.raises(DataError, match="set LACONIC_DATA"):
        data.load("H3")
    with pytest.raises(DataError, match="no data set 'H5'"):
        data.load("H5")


def test_bundled_samples_need_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    train, test = data.load("bacteria")
    assert (len(train), len(test)) == (1920, 480)
