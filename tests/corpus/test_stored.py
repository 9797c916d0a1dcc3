"""Grammars that stay on disk: the same documents as in memory, and how many are held."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import Corpus
from laconic.corpus import CorpusError
from laconic.corpus import stored as stored_module
from laconic.corpus.stored import StoredGrammars

TEXTS = ["ab" * n + str(n) for n in range(40)]


def sharded(folder: Path, size: int, texts: list[str] = TEXTS) -> Corpus:
    folder.mkdir()
    for number, some in enumerate(Corpus.from_documents(texts).batches(size)):
        some.write(folder / f"{number:03}.parquet")
    return Corpus.open(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return sharded(tmp_path_factory.mktemp("stored") / "corpus", 7)


@given(st.lists(st.integers(-40, 39), max_size=20), st.sampled_from([1, 700, 1 << 20]))
def test_documents_are_those_of_the_corpus(corpus: Corpus, rows: list[int], buffer: int) -> None:
    stored = StoredGrammars(corpus, buffer)
    assert stored.take(rows) == corpus.grammars.take(rows)


def test_offsets(corpus: Corpus) -> None:
    stored, grammars = StoredGrammars(corpus, 1), corpus.grammars
    assert len(stored) == 40
    for name in ("rule_offsets", "sequence_offsets", "alphabet_size"):
        np.testing.assert_array_equal(getattr(stored, name), getattr(grammars, name))
    assert stored.starts.tolist() == [0, 7, 14, 21, 28, 35, 40]
    with pytest.raises(IndexError, match="document 40 of 40"):
        stored.take([40])


def test_the_digest_tells_documents_and_not_row_groups(corpus: Corpus, tmp_path: Path) -> None:
    digest = StoredGrammars(corpus, 1).digest
    assert StoredGrammars(sharded(tmp_path / "11", 11), 1).digest == digest
    assert StoredGrammars(sharded(tmp_path / "other", 11, TEXTS[::-1]), 1).digest != digest


def test_no_more_is_held_than_the_buffer_and_each_group_is_read_once(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = StoredGrammars(corpus, 1 << 20)
    stored = StoredGrammars(corpus, int(every.sizes[:3].sum()))
    read: list[int] = []
    group = Corpus.group

    def watched(self: Corpus, number: int) -> object:
        read.append(number)
        return group(self, number)

    monkeypatch.setattr(Corpus, "group", watched)
    for row in [0, 7, 14, 1, 2, 8]:
        stored.take([row])
    assert read == [0, 1, 2]
    stored.take([30])
    assert 2 not in stored._held, "it was idle longest"
    assert list(stored._held)[-2:] == [1, 4]
    assert stored.sizes[list(stored._held)].sum() <= stored.buffer
    with ThreadPoolExecutor(4) as pool:
        taken = list(pool.map(lambda row: stored.take([row]), range(40)))
    assert [each[0].text() for each in taken] == TEXTS
    assert stored.sizes[list(stored._held)].sum() <= stored.buffer


def test_what_others_freed_is_given_back(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    resident, trimmed = [1 << 30], []

    def trim() -> None:
        trimmed.append(resident[0])
        resident[0] = 1 << 30

    monkeypatch.setattr(stored_module, "_resident_bytes", lambda: resident[0])
    monkeypatch.setattr(stored_module, "_trim", trim)
    stored = StoredGrammars(corpus, 1 << 20)
    for megabytes in (1024, 1100, 1153, 1100, 500, 600, 640):
        resident[0] = megabytes << 20
        stored.take([0])
    assert trimmed == [1153 << 20, 640 << 20], "128 MB more than at the least"


def test_another_process_reads_for_itself(corpus: Corpus) -> None:
    stored = StoredGrammars(corpus, 1 << 20)
    stored.take([3])
    copy = pickle.loads(pickle.dumps(stored))
    assert not copy._held
    assert copy.take([39, 3]) == stored.take([39, 3])


def test_a_shard_that_breaks_later_is_named(tmp_path: Path) -> None:
    stored = StoredGrammars(sharded(tmp_path / "corpus", 20), 1 << 20)
    path = tmp_path / "corpus/001.parquet"
    data = bytearray(path.read_bytes())
    data[100:200] = bytes(100)
    path.write_bytes(data)
    stored.take([19])
    with pytest.raises(CorpusError, match=r"001\.parquet"):
        stored.take([20])


@pytest.mark.parametrize("compact", [False, True])
def test_sizes_are_estimated_well(tmp_path: Path, compact: bool) -> None:
    texts = [f"{n} apples and {n * n} pears, " * (n % 7 + 1) for n in range(3000)]
    (tmp_path / "corpus").mkdir()
    for number, some in enumerate(Corpus.from_documents(texts).batches(500)):
        some.write(tmp_path / f"corpus/{number}.parquet", compact=compact)
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.estimated_bytes() == pytest.approx(corpus.grammars.nbytes, rel=0.1)
    assert Corpus.from_documents([]).estimated_bytes() == 0
