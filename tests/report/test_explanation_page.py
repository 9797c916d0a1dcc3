"""Explanations of long documents: what is shown of them, and what is said of it."""

from __future__ import annotations

from html import unescape
from random import Random

import pytest
from inference.test_explanation import TEXT, make_predictor, page_text

from laconic.inference.explanation import explain
from laconic.inference.words import Word
from laconic.report import explanation_page
from laconic.report.explanation_page import document_page, excerpt


def words_with(scores: list[float]) -> list[Word]:
    """Words of five letters, each with its number."""
    return [Word(f"{k:4} ", 5 * k, 5, score, f"{k:4} ") for k, score in enumerate(scores)]


def test_short_documents_are_shown_whole() -> None:
    words = words_with([0.5, 0.0, -0.5, 0.1])
    assert excerpt(words, 20) == (words, "")
    assert excerpt([], 20) == ([], "")


def test_long_documents_are_shown_around_what_decided() -> None:
    scores = [0.0] * 1000
    scores[500], scores[507], scores[990] = 1.0, -3.0, -2.0
    words = words_with(scores)
    shown, told = excerpt(words, 400)  # ten letters on either side
    kept = [k for k, word in enumerate(words) if word in shown]
    # Where nothing decides, the beginning is as good as anything else.
    first = next(k for k in range(1000) if k not in kept)
    assert kept == [*range(first), 498, 499, 500, 501, 502, *range(505, 510), *range(988, 993)]
    assert shown == [
        *words[:first],
        None,
        *words[498:503],
        None,
        *words[505:510],
        None,
        *words[988:993],
        None,
    ]
    assert 360 < 5 * len(kept) <= 400
    assert told == (
        f"{5 * len(kept)} of 5,000 letters are shown, around the places that decided most; "
        "the lists are of the whole document"
    )


def test_without_scores_it_is_the_beginning() -> None:
    words = words_with([0.0] * 1000)
    shown, told = excerpt(words, 400)
    assert shown == [*words[: len(shown) - 1], None]
    assert told.startswith(f"{5 * (len(shown) - 1)} of 5,000 letters are shown")
    assert len(shown) > 70


@pytest.mark.parametrize("seed", range(20))
def test_it_is_in_order_within_bounds_and_holds_the_strongest(seed: int) -> None:
    random = Random(seed)
    words = words_with([random.gauss(0, 1) for _ in range(random.randint(100, 2000))])
    most = random.randint(200, 6000)
    shown, told = excerpt(words, most)
    kept = [word for word in shown if word is not None]
    assert kept == sorted(kept, key=lambda word: word.offset)
    assert sum(len(word.text) for word in kept) <= most
    assert max(words, key=lambda word: abs(word.score)) in kept
    assert bool(told) == (None in shown) == (len(kept) < len(words))
    # There is one sign wherever something is left out, and nowhere else.
    for before, word, after in zip([None, *shown], shown, [*shown[1:], None], strict=False):
        if word is None:
            assert before or after
            assert not before or not after or before.offset + before.length < after.offset


def test_the_page_of_a_long_document(monkeypatch: pytest.MonkeyPatch) -> None:
    found = explain(make_predictor(), "In the beginning " * 50 + TEXT + " and so on" * 50)
    whole = document_page(found, "a.csv", 20)
    assert page_text(whole) == found.text
    assert "letters are shown" not in whole
    monkeypatch.setattr(explanation_page, "ON_PAGE", 400)
    page = document_page(found, "a.csv", 20)
    assert f" of {len(found.text):,} letters are shown, around the places" in page
    assert explanation_page.GAP in page_text(page)
    assert all(part in found.text for part in page_text(page).split(explanation_page.GAP) if part)
    assert len(page_text(page).replace(explanation_page.GAP, "")) <= 400
    # The strongest words are those of all of it.
    lists = [unescape(each).split('<table class="strongest">')[1] for each in (whole, page)]
    assert lists[0] == lists[1]
