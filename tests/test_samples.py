"""The bundled samples are what PROVENANCE.md says they are."""

from __future__ import annotations

import dataclasses
import doctest
import hashlib
import lzma
import re
from collections import Counter
from importlib.resources import files

import pytest

from laconic import samples

FOLDER = files("laconic.samples")
PROVENANCE = FOLDER.joinpath("PROVENANCE.md").read_text(encoding="utf-8")
KJV = ("law", "history", "poetry", "prophets", "gospels", "letters")
BACTERIA = ("Escherichia coli", "Helicobacter pylori", "Staphylococcus aureus", "Vibrio cholerae")
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module", params=["kjv", "bacteria"])
def sample(request: pytest.FixtureRequest) -> samples.Sample:
    return samples.load(request.param)


def table(name: str) -> bytes:
    return lzma.decompress(FOLDER.joinpath(f"{name}.tsv.xz").read_bytes())


def test_names() -> None:
    assert samples.names() == ("bacteria", "kjv")


def test_unknown_name_lists_the_names() -> None:
    with pytest.raises(ValueError, match=r"'bible'.*bacteria, kjv"):
        samples.load("bible")


def test_docstrings_run() -> None:
    failed, attempted = doctest.testmod(samples)
    assert attempted > 0
    assert failed == 0


def test_labels_and_task() -> None:
    assert samples.load("kjv").labels == KJV
    assert samples.load("bacteria").labels == BACTERIA
    assert all(samples.load(name).task.endswith("?") for name in samples.names())


def test_counts_per_label(sample: samples.Sample) -> None:
    train, test = {"kjv": (320, 80), "bacteria": (480, 120)}[sample.name]
    assert Counter(sample.train.labels) == dict.fromkeys(sample.labels, train)
    assert Counter(sample.test.labels) == dict.fromkeys(sample.labels, test)
    assert len(sample.train) == len(sample.train.documents) == train * len(sample.labels)
    assert len(sample.test) == len(sample.test.documents) == test * len(sample.labels)


def test_counts_are_those_documented(sample: samples.Sample) -> None:
    for label in sample.labels:
        counts = sample.train.labels.count(label), sample.test.labels.count(label)
        row = re.search(rf"^\| {label} \|.*\| (\d+) \| (\d+) \|$", PROVENANCE, re.MULTILINE)
        assert row is not None, label
        assert counts == (int(row[1]), int(row[2]))


def test_hash_and_sizes_are_those_documented(sample: samples.Sample) -> None:
    data = table(sample.name)
    packed = FOLDER.joinpath(f"{sample.name}.tsv.xz").read_bytes()
    assert f"{hashlib.sha256(data).hexdigest()}  {sample.name}.tsv\n" in PROVENANCE
    assert f"| {len(data):,} bytes | {len(packed):,} bytes |" in PROVENANCE


def test_small_on_disk() -> None:
    packed = [FOLDER.joinpath(f"{name}.tsv.xz").read_bytes() for name in samples.names()]
    assert sum(map(len, packed)) < 1_300_000


def test_load_returns_the_lines_in_order(sample: samples.Sample) -> None:
    splits = (("train", sample.train), ("test", sample.test))
    lines = [
        f"{name}\t{label}\t{document}\n"
        for name, split in splits
        for label, document in zip(split.labels, split.documents, strict=True)
    ]
    assert "".join(lines).encode() == table(sample.name)


def test_labels_are_mixed(sample: samples.Sample) -> None:
    """Any tenth of a split, taken in file order, holds every label at a fair share."""
    for split in (sample.train, sample.test):
        tenth = len(split) // 10
        for start in range(0, len(split), tenth):
            counts = Counter(split.labels[start : start + tenth])
            assert min(counts[label] for label in sample.labels) > tenth / len(sample.labels) / 4


def test_no_document_twice(sample: samples.Sample) -> None:
    documents = sample.train.documents + sample.test.documents
    assert len(set(documents)) == len(documents)


def test_no_long_run_in_both_splits(sample: samples.Sample) -> None:
    """A run of 2 * block - 1 characters covers a whole block, so comparing blocks is enough."""
    block = {"kjv": 60, "bacteria": 20}[sample.name]
    known = set()
    for document in sample.train.documents:
        readings = [document]
        if sample.name == "bacteria":
            readings.append(document.translate(COMPLEMENT)[::-1])
        for text in readings:
            known |= {text[i : i + block] for i in range(0, len(text) - block + 1, block)}
    for document in sample.test.documents:
        runs = {document[i : i + block] for i in range(len(document) - block + 1)}
        assert not runs & known


def test_bacteria_letters_and_length() -> None:
    sample = samples.load("bacteria")
    for document in sample.train.documents + sample.test.documents:
        assert len(document) == 800
        assert set(document) <= set("ACGT")


def test_kjv_letters_and_length() -> None:
    """Whole verses as plain English: no verse numbers, no doubled or outer spaces."""
    sample = samples.load("kjv")
    for document in sample.train.documents + sample.test.documents:
        assert 600 <= len(document) <= 900
        assert re.fullmatch(r"[A-Za-z ,.:;?!'()-]+", document)
        assert document == " ".join(document.split())


def test_a_sample_cannot_be_reassigned(sample: samples.Sample) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.name = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        sample.train.labels = []  # type: ignore[misc]


def test_two_loads_share_nothing() -> None:
    """A caller that shuffles its copy does not change another's."""
    first, second = samples.load("kjv"), samples.load("kjv")
    first.train.documents.reverse()
    assert first.train.documents != second.train.documents
