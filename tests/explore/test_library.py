"""A library: documents found by number, label and text; what is counted over all of them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from laconic import Alphabet, Codec, Corpus, Grammar, Grammars, Rulebook, compress, samples
from laconic.corpus.schema import About, CorpusError, table_of
from laconic.errors import NoDocumentError
from laconic.explore.counts import Counts, phrase_hashes
from laconic.explore.frame import labels_of
from laconic.explore.library import PAGE, Library

TEXTS = [f"number {k} of the {'even' if k % 2 == 0 else 'odd'} ones" for k in range(120)]
LABELS = ["even", "odd"] * 60


@pytest.fixture
def library(tmp_path: Path) -> Library:
    """In two row groups, of which the second has the last ten documents."""
    corpus = Corpus.from_documents(TEXTS, LABELS)
    corpus[:110].write(tmp_path / "1.parquet")
    corpus[110:].write(tmp_path / "2.parquet")
    return Library(Corpus.open(tmp_path), "numbers")


def test_documents_by_number(library: Library) -> None:
    for row in (0, 109, 110, 119):
        entry = library.entry(row)
        assert (entry.row, entry.grammar.text(), entry.labels) == (row, TEXTS[row], (LABELS[row],))
    for row in (-1, 120, 10**17):
        with pytest.raises(NoDocumentError, match="there are 120, from 0"):
            library.entry(row)


def test_lists_go_forth_and_back(library: Library) -> None:
    first = library.find("", None, 0)
    assert [hit.entry.row for hit in first.hits] == list(range(PAGE))
    assert (first.before, first.after) == (None, PAGE)
    second = library.find("", None, PAGE)
    assert (second.before, second.after) == (0, 2 * PAGE)
    last = library.find("", None, 100)
    assert [hit.entry.row for hit in last.hits] == list(range(100, 120))
    assert last.after is None
    assert library.find("", None, 500).hits == []


def test_labels_filter(library: Library) -> None:
    assert library.labels == ["even", "odd"]
    assert library.numbers == [60, 60]
    found = library.find("", 1, 0)
    assert [hit.entry.row for hit in found.hits] == list(range(1, 2 * PAGE, 2))
    assert found.after == 2 * PAGE + 1
    assert [hit.entry.row for hit in library.find("", 1, 115).hits] == [115, 117, 119]
    assert library.find("", 7, 0).hits == []


def test_texts_are_found_in_any_case_with_what_is_around(library: Library) -> None:
    found = library.find("NUMBER 11", None, 0)
    assert [hit.entry.row for hit in found.hits] == [11, *range(110, 120)]
    hit = library.find("odd ones", 1, 111).hits[0]
    assert (hit.entry.row, hit.before, hit.found) == (111, "number 111 of the ", "odd ones")
    assert hit.place == len(hit.before)
    assert library.find("odd ones", 0, 0) == ([], None, None)


def test_a_search_stops_after_some_letters_and_says_where(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laconic.explore.library._AT_ONCE", 500)
    found, after, asked = [], 0, 0
    while after is not None:
        some = library.find("119", None, after)
        found += [hit.entry.row for hit in some.hits]
        after, asked = some.after, asked + 1
    assert found == [119]
    assert asked > 4


def test_several_labels_and_none() -> None:
    table = pa.table({"text": ["ab", "cd", "ef"], "label": [["x", "y"], [], ["y"]]})
    library = Library(Corpus.from_table(table, "text", "label"), "several")
    assert library.labels == ["y", "x"]
    assert [hit.entry.row for hit in library.find("", 0, 0).hits] == [0, 2]
    assert Library(Corpus.from_documents(["ab"]), "none").labels == []


def test_very_many_labels_of_one_document_are_cut() -> None:
    shown = labels_of([f"label {k}" for k in range(1000)])
    assert len(shown) == 13
    assert shown[-1] == "<span>and 988 more labels</span>"


def test_columns_stand_beside_documents() -> None:
    table = pa.table({"text": ["ab", "cd"], "label": [1, 2], "id": ["first", None]})
    library = Library(Corpus.from_table(table, "text", "label"), "two")
    assert library.columns(0) == {"id": "first"}
    assert library.columns(1) == {"id": None}


def vast() -> Corpus:
    """A document of a million million letters, and a short one."""
    rules = [[97, 97], *([256 + k, 256 + k] for k in range(39))]
    grammars = Grammars(256, rules, [0, 40, 40], [295, 98, 99], [0, 1, 3])
    about = About(Codec(), Alphabet.bytes())
    return Corpus.from_arrow(table_of(grammars, about))


def test_a_vast_document_is_searched_as_far_as_is_said() -> None:
    library = Library(vast(), "vast")
    assert [hit.entry.row for hit in library.find("aaa", None, 0).hits] == [0]
    found = library.find("bc", None, 0)
    assert (found.hits, found.after) == ([], 1)
    assert [hit.entry.row for hit in library.find("bc", None, 1).hits] == [1]


def test_figures_of_all_documents(library: Library) -> None:
    counts = Counts(library.corpus)
    assert not counts.finished
    counts.count()
    assert counts.finished
    figures = counts.figures
    grammars = [library.entry(row).grammar for row in range(120)]
    assert figures.letters.tolist() == list(map(len, TEXTS))
    assert figures.symbols.tolist() == [len(each.sequence) for each in grammars]
    assert figures.rules.tolist() == [len(each.rules) for each in grammars]
    assert figures.depths.tolist() == [int(each.depths.max(initial=0)) for each in grammars]


@pytest.mark.parametrize("shared", [False, True])
def test_uses_of_phrases_are_counted_whoever_made_the_rule(shared: bool) -> None:
    texts = [text[:300] for text in samples.load("kjv").train.documents[:40]]
    book = Rulebook.learn(texts, 50) if shared else None
    corpus = Corpus.from_documents(texts, rulebook=book)
    expected: Counter[bytes] = Counter()
    for grammar in corpus:
        size = grammar.alphabet_size
        for k, times in enumerate(grammar.occurrences.tolist()):
            if times:
                expected[Grammar(size, grammar.all_rules, [size + k]).to_bytes()] += times
    counts = Counts(corpus)
    counts.count()
    grammar = corpus[7]
    size = grammar.alphabet_size
    symbols = size + np.flatnonzero(grammar.reachable()).astype(np.int32)
    times = counts.times(phrase_hashes(grammar, symbols))
    for symbol, number in zip(symbols.tolist(), times.tolist(), strict=True):
        assert number == expected[Grammar(size, grammar.all_rules, [symbol]).to_bytes()]
    other = compress("nobody wrote this zq zq zq zq")
    assert counts.times(phrase_hashes(other, np.array([258], np.int32))).tolist() == [0]


def test_a_corpus_that_breaks_is_counted_as_far_as_it_goes(
    library: Library, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Corpus.group

    def broken(self: Corpus, number: int) -> Grammars:
        if number:
            raise CorpusError("it is damaged")
        return whole(self, number)

    monkeypatch.setattr(Corpus, "group", broken)
    counts = Counts(library.corpus)
    counts.count()
    assert (counts.done, counts.finished, counts.failure) == (110, True, "it is damaged")
    assert "it is damaged" in capsys.readouterr().err
