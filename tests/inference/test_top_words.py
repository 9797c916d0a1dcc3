"""Top words: against explanations of each document, for every task and view."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch
from inference.test_counted_explanation import counting
from inference.test_explanation import CLASSES, SHORT, TASKS, make_predictor

from laconic import Codec, Grammar, Grammars, Rulebook, compress, compress_many
from laconic.errors import InputError
from laconic.inference.attribution import _mean
from laconic.inference.explanation import explain
from laconic.inference.predictor import Predictor
from laconic.inference.top_words import WordTable, top_words
from laconic.ngrams.hashed import HashedCounter
from laconic.ngrams.occurrences import occurrences


def slow_means(
    predictor: Predictor, target: str | None, options: dict[str, Any]
) -> dict[str, tuple[float, int]]:
    """Each word's mean score and count, from the explanations of single documents."""
    found: dict[str, list[float]] = defaultdict(list)
    for text in SHORT:
        for span in explain(predictor, text, target, **options).spans:
            if span.text.strip():
                found[span.text].append(span.score)
    return {text: (sum(some) / len(some), len(some)) for text, some in found.items()}


KINDS = ("sequence", "ngram", "both")


@pytest.mark.parametrize(
    ("kind", "task", "steps"),
    [
        *((kind, task, None) for kind in KINDS for task in TASKS),
        # Steps take their time, whatever the task.
        *((kind, task, 3) for kind, task in zip(KINDS, TASKS, strict=True)),
    ],
)
def test_means_are_those_of_explanations(
    kind: str, task: str, steps: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laconic.inference.top_words._LETTERS", 300)
    predictor = make_predictor(task) if kind == "sequence" else counting(kind, task)
    predictor.forward.batch_size = 4
    found = top_words(predictor, SHORT, per_class=10, min_count=2, steps=steps)
    assert (found.kind, found.documents) == ("word", len(SHORT))
    assert sum(found.shares.values()) == pytest.approx(1)
    assert list(found.of) == ([None] if task == "regression" else list(CLASSES))
    options = {"method": "gradient"} if steps is None else {"steps": steps}
    for name, sides in found.of.items():
        expected = slow_means(predictor, name, options)
        ranks = {text: mean * n**0.5 for text, (mean, n) in expected.items() if n >= 2}
        for sign, words in ((1, sides.speaking_for), (-1, sides.against)):
            assert 3 < len(words) <= 10
            best = sorted(-sign * rank for rank in ranks.values() if sign * rank > 0)[:10]
            assert [-sign * w.score * w.count**0.5 for w in words] == pytest.approx(best, abs=1e-9)
            for word in words:
                assert expected[word.text] == (pytest.approx(word.score), word.count)
                assert word.kind == "word"


def test_documents_without_words_have_phrases() -> None:
    predictor = make_predictor(alphabet_size=4)
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice([*"ACGT"], 200)) for _ in range(6)]
    found = top_words(predictor, texts, per_class=5, min_count=3)
    assert found.kind == "phrase"
    for sides in found.of.values():
        assert len(sides.speaking_for) == len(sides.against) == 5
        assert all(each.score > 0 and each.count >= 3 for each in sides.speaking_for)
        assert all(each.score < 0 and set(each.text) <= {*"ACGT"} for each in sides.against)


def test_a_gradient_that_explodes_does_not_decide() -> None:
    usual = torch.tensor([[1.0, -2.0], [2.0, -1.0], [1.0, -2.0], [2.0, -1.0]]).double()
    scores = torch.stack([usual, usual], 1)  # of two documents
    assert _mean(scores)[0].tolist() == [1.5, -1.5]
    scores[1, 0] = torch.tensor([-4e6, 4e6])
    first, second = _mean(scores).tolist()
    assert second == [1.5, -1.5]
    assert max(map(abs, first)) <= 5


def test_rare_words_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.inference.top_words._MOST_WORDS", 40)
    table, predictor = WordTable(1), make_predictor("regression")
    for text in SHORT:
        grammars = compress_many([text])
        table.add(np.ones((len(text.encode()), 1)), grammars, predictor)
    ((*words,),) = table.best(100, 1, 1)
    assert len(words) <= 40 + len(SHORT[-1].split()) + 10
    assert "the" in {word.text for word in words}


@pytest.mark.parametrize("codec", ["repair", "lz78", "none"])
def test_occurrences_are_what_is_counted(codec: Any) -> None:
    book = Rulebook.learn(SHORT, 30)
    grammars = compress_many([*SHORT, "", "a"], Codec(codec), rulebook=book)
    lengths = grammars.expanded_lengths
    starts = np.r_[0, np.cumsum(lengths)]
    for counted in (HashedCounter(3, 0, 97, shared=2), HashedCounter(2, 3, 500)):
        wanted, found = counted.count(grammars), np.zeros((len(grammars), counted.columns))
        for each in occurrences(counted, grammars):
            assert len(np.unique(each.begins)) == len(each.begins)
            assert (starts[each.documents] <= each.begins).all()
            assert (each.begins < each.ends).all()
            assert (each.ends <= starts[each.documents + 1]).all()
            np.add.at(found, (each.documents, each.columns), 1)
        for row in range(len(grammars)):
            entries = slice(wanted.indptr[row], wanted.indptr[row + 1])
            counts = np.zeros(counted.columns)
            counts[wanted.indices[entries]] = wanted.data[entries]
            assert found[row].tolist() == counts.tolist()


def test_documents_of_more_letters_than_memory_holds_are_refused() -> None:
    rules = [[97, 98], *([256 + k, 256 + k] for k in range(59))]
    bomb = Grammar(256, rules, [256 + 59])
    many = Grammars.concatenate([compress("a small one"), bomb])
    with pytest.raises(InputError, match=r"it has 1,152,921,504,606,846,976 letters; documents of"):
        explain(make_predictor(), bomb)
    with pytest.raises(InputError, match="document 1: it has 1,152"):
        top_words(make_predictor(), many)


def test_what_cannot_be_asked() -> None:
    predictor = make_predictor()
    with pytest.raises(ValueError, match="per_class=0"):
        top_words(predictor, SHORT, per_class=0)
    with pytest.raises(ValueError, match="steps must be at least 1"):
        top_words(predictor, SHORT, steps=0)
