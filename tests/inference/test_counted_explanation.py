"""What n-grams add, against leaving them out; models that count, with and without sequences."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inference.test_explanation import (
    CLASSES,
    SHORT,
    TASKS,
    TEXT,
    laconic,
    make_predictor,
    make_run,
    page_text,
    slow_value,
)

from laconic import Codec, Grammars, compress, compress_many, oracle
from laconic.batching import Bag, collate
from laconic.inference.explanation import explain, top_phrases
from laconic.inference.phrase_table import Phrase
from laconic.inference.predictor import Predictor
from laconic.report.explanation_page import document_page


def counting(kind: str, task: str = "classification", **changes: Any) -> Predictor:
    """A predictor whose model knows half of the columns of some texts."""
    chosen: dict[str, Any] = {"model": kind, "ngrams": 3, "phrases": 3, "ngram_buckets": 1 << 18}
    chosen |= changes
    counted = make_predictor(task, **chosen).model.config.counted
    assert counted is not None
    found = np.bincount(
        counted.count(compress_many([*SHORT, TEXT])).indices, minlength=counted.columns
    )
    found[1::2] = 0
    predictor = make_predictor(task, **chosen, ngram_rows=int(np.count_nonzero(found)))
    bag = predictor.model.bag
    assert bag is not None
    bag.learn(torch.from_numpy(found), len(SHORT) + 1)
    torch.nn.init.normal_(bag.table)
    torch.nn.init.normal_(bag.bias)
    return predictor


def target_of(task: str) -> str | None:
    return None if task == "regression" else "law"


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_scores_are_what_is_lost_without_a_column(kind: str, task: str) -> None:
    predictor = counting(kind, task)
    model, counted = predictor.model, predictor.model.config.counted
    assert counted is not None
    assert model.bag is not None
    found = explain(predictor, TEXT, target_of(task))
    grammars = Grammars.concatenate([compress(TEXT)])
    batch = collate(grammars, counted=counted)
    assert batch.bag is not None
    # The weight of each entry stays as it is; only its row's numbers go.
    names = counted.named(grammars, batch.bag.buckets)
    wanted: dict[str, tuple[float, int]] = {}
    with predictor.forward.evaluating(), torch.no_grad():
        value = slow_value(predictor, model(batch), "law")
        for column in batch.bag.buckets.tolist():
            row = int(model.bag.places[column])
            if row == 0:
                continue
            before = model.bag.table[row].clone()
            model.bag.table[row] = 0
            lost = value - slow_value(predictor, model(batch), "law")
            model.bag.table[row] = before
            text = bytes(names[column][0].terminals).decode()
            wanted[text] = lost, sum(name.count for name in names[column])
    assert found.value == pytest.approx(value)
    assert {each.text for each in found.ngrams} == wanted.keys()
    assert len(found.ngrams) == len(wanted) > 100
    for each in found.ngrams:
        assert (each.score, each.count) == (
            pytest.approx(wanted[each.text][0]),
            wanted[each.text][1],
        )
        assert each.kind == ("ngram" if len(each.text) <= 3 else "phrase")
    longer = [each for each in found.ngrams if len(each.text.strip()) > 2]
    assert list(found.longer_ngrams()) == longer
    assert 0 < len(longer) < len(found.ngrams)
    short = replace(found, ngrams=tuple(each for each in found.ngrams if each not in longer))
    assert short.longer_ngrams() == short.ngrams
    scores = [abs(each.score) for each in found.ngrams]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("kind", ["ngram", "both"])
@pytest.mark.parametrize("task", TASKS)
def test_all_scores_add_up(kind: str, task: str) -> None:
    predictor = counting(kind, task, pooling="mean", sequence_model="cnn")
    found = explain(predictor, TEXT, target_of(task), "integrated", steps=128)
    pieces = sum(piece.score for piece in found.pieces)
    assert abs(found.value - found.base) > 1e-2
    allowed = 1e-9 if kind == "ngram" else 1e-3
    assert pieces == pytest.approx(found.value - found.base, rel=allowed, abs=allowed)
    assert found.text == TEXT
    if kind == "ngram":
        assert sum(each.score for each in found.ngrams) == pytest.approx(pieces)
        again = explain(predictor, TEXT, target_of(task))
        assert replace(again, method="integrated") == found, "methods are about sequences"


@settings(max_examples=40)
@given(st.text("ab é", max_size=40), st.sampled_from(["repair", "lz78", "lzd", "none"]))
def test_each_letter_has_its_share(text: str, codec: Any) -> None:
    predictor = counting("ngram", ngram_buckets=20)
    predictor.codec = Codec(codec)
    grammar = compress(text, codec)
    found = explain(predictor, text, "law")
    by_text: dict[tuple[bool, bytes], float] = {}
    counted = predictor.model.config.counted
    assert counted is not None
    grammars = Grammars.concatenate([grammar])
    batch = collate(grammars, counted=counted)
    assert isinstance(batch.bag, Bag)
    assert predictor.model.bag is not None
    with torch.no_grad():
        adds, _ = predictor.model.bag.added(batch.bag, 1)
    for column, some in counted.named(grammars, range(counted.columns)).items():
        row = adds[batch.bag.buckets == column][0].tolist()
        score = row[1] - (row[0] + row[2]) / 2
        total = sum(name.count for name in some)
        for name in some:
            by_text[column < counted.buckets, bytes(name.terminals)] = score / total
    data, letters = bytes(grammar.expand().tolist()), np.zeros(len(text.encode()))
    for length in (1, 2, 3):
        for i in range(len(data) - length + 1):
            letters[i : i + length] += by_text[True, data[i : i + length]] / length
    ends = np.cumsum([piece.length for piece in found.pieces]).tolist()
    begins = [0, *ends]
    for i in range(len(ends)):
        for j in range(i, min(i + 3, len(ends))):
            if 3 < ends[j] - begins[i] <= 64:
                share = by_text[False, data[begins[i] : ends[j]]]
                letters[begins[i] : ends[j]] += share / (ends[j] - begins[i])
    wanted = [letters[a:b].sum() for a, b in zip(begins, ends, strict=False)]
    assert [piece.score for piece in found.pieces] == pytest.approx(wanted, abs=1e-9)


def test_texts_that_share_a_column_are_told() -> None:
    predictor = counting("ngram", ngram_buckets=8, phrases=0)
    (first, *_), counts = explain(predictor, "abcabd").ngrams, oracle.ngrams("abcabd", 1, 3)
    together = [first.text, *first.others]
    assert len(together) > 1
    assert first.count == sum(counts[text] for text in together)
    assert counts[first.text] == max(counts[text] for text in together)
    page = document_page(explain(predictor, "abcabd"), "x", 20)
    assert "(together with &#x27;" in page


def test_documents_without_ngrams() -> None:
    for kind in ("ngram", "both"):
        found = explain(counting(kind), "")
        assert (found.pieces, found.ngrams) == ((), ())
        assert found.value == pytest.approx(found.base)
    strange = explain(counting("ngram"), "\x01\x02")
    assert strange.text == "\x01\x02"
    assert strange.ngrams == ()


# All documents.


def slow_top(predictor: Predictor, target: str | None) -> dict[str, tuple[float, int]]:
    sums: dict[str, list[Phrase]] = {}
    for text in SHORT:
        for each in explain(predictor, text, target).ngrams:
            sums.setdefault(each.text, []).append(each)
    totals = {text: sum(each.count for each in some) for text, some in sums.items()}
    return {t: (sum(e.score for e in some) / totals[t], totals[t]) for t, some in sums.items()}


@pytest.mark.parametrize("task", TASKS)
def test_top_phrases_of_a_model_that_counts(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.inference.predictor._CHUNK", 5)
    monkeypatch.setattr("laconic.ngrams.hashed._PORTION", 200)
    predictor = counting("ngram", task)
    lists = top_phrases(predictor, SHORT, per_class=12, min_count=3)
    assert list(lists) == (["higher", "lower"] if task == "regression" else list(CLASSES))
    for name, phrases in lists.items():
        wanted = slow_top(predictor, None if task == "regression" else name)
        sign = -1 if name == "lower" else 1
        often = sorted((-sign * mean for mean, count in wanted.values() if count >= 3))
        assert [-sign * each.score for each in phrases] == pytest.approx(often[:12])
        assert len(phrases) == 12
        for each in phrases:
            assert wanted[each.text] == (pytest.approx(each.score), each.count)
            assert each.kind != "symbol"


def test_top_phrases_of_both() -> None:
    predictor = counting("both")
    lists = top_phrases(predictor, SHORT, per_class=400, min_count=2)
    for phrases in lists.values():
        assert {each.kind for each in phrases} == {"symbol", "ngram", "phrase"}
        scores = [each.score for each in phrases]
        assert scores == sorted(scores, reverse=True)
    few = top_phrases(predictor, SHORT, per_class=7, min_count=2)
    assert few == {name: phrases[:7] for name, phrases in lists.items()}


# Commands.


@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_the_command(kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", counting(kind))
    lines, out = tmp_path / "new.txt", tmp_path / "why.html"
    lines.write_text("\n".join(SHORT) + "\n")
    laconic(folder, lines, "--row", "3", "-o", out, "--json")
    told = json.loads(capsys.readouterr().out)
    strongest = next(each for each in told["ngrams"] if len(each["text"].strip()) > 2)
    assert strongest["kind"] in ("ngram", "phrase")
    page = out.read_text()
    assert page_text(page) == SHORT[3]
    assert "<h2>Strongest n-grams</h2>" in page
    assert f"{strongest['score']:+.4f}" in page
    laconic(folder, lines, "--row", "3")
    printed = capsys.readouterr().out
    assert "strongest n-grams" in printed
    assert repr(strongest["text"]) in printed
    laconic(folder, lines, "--top", "4", "--min-count", "1", "--json")
    told = json.loads(capsys.readouterr().out)
    assert set(told["shares"]) == ({"counting"} if kind == "ngram" else {"counting", "reading"})
    assert all(len(side) == 4 for sides in told["of"].values() for side in sides.values())
