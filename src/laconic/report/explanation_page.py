"""The pages of laconic explain: one HTML file each, which needs nothing else."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from laconic.errors import visible
from laconic.report.markup import Html, document, element, joined
from laconic.report.numbers import percent
from laconic.report.tables import gauge, table
from laconic.show import how_many

if TYPE_CHECKING:
    from laconic.inference.explanation import Explanation
    from laconic.inference.phrase_table import Phrase
    from laconic.inference.top_words import TopWords
    from laconic.inference.words import Word

_CODE, _SIGNS = frozenset("{}()[];=<>+*/\\|&^%$#@_`~"), 0.05  # prose has hardly any of them
_FOR, _AGAINST = (67, 147, 195), (214, 96, 77)  # told apart by nearly every eye
# Letters of a document that are shown: two or three screens, and a page of about 4 MB, as each word
# has its colour; browsers take far longer over more.
AT_PROMPT, ON_PAGE = 4000, 100_000
GAP = "\n…\n"  # in the place of what is left out
_PLACES = 20  # about so many of those that decided have room, with what stands around each


def shade(score: float, strongest: float) -> tuple[int, int, int]:
    """Return the colour of a score: white for 0, blue above, red below.

    >>> shade(0.0, 2.0), shade(2.0, 2.0), shade(-2.0, 2.0), shade(0.0, 0.0)
    ((255, 255, 255), (67, 147, 195), (214, 96, 77), (255, 255, 255))
    """
    share = min(1.0, abs(score) / strongest) if strongest else 0.0
    red, green, blue = _FOR if score > 0 else _AGAINST
    return (
        round(255 - share * (255 - red)),
        round(255 - share * (255 - green)),
        round(255 - share * (255 - blue)),
    )


def shared(phrase: Phrase) -> str:
    """Return what else a counted phrase's score is of, to be put behind it."""
    if not phrase.others:
        return ""
    more = f" and {len(phrase.others) - 3} more" if len(phrase.others) > 3 else ""
    return f" (together with {', '.join(map(repr, phrase.others[:3]))}{more})"


def said_by(found: Explanation) -> str:
    """Return how much each view said, to be put behind something, where there are several."""
    return views(found.shares)


def views(shares: Mapping[str, float]) -> str:
    """Return the shares of views, to be put behind something, where there are several."""
    if len(shares) < 2:
        return ""
    return " · " + ", ".join(f"{name} {share:.0%}" for name, share in shares.items())


def shown(phrase: Phrase) -> str:
    """Return the text of a phrase: as it is if it is a word, else so that blanks can be seen."""
    return visible(phrase.text) if phrase.kind == "word" else repr(phrase.text)


def side_by_side(found: TopWords) -> list[list[tuple[str, Sequence[Phrase]]]]:
    """Return pairs of lists of words, each with its title: for and against each class.

    What speaks against one of two classes speaks for the other: then there is one pair.
    """
    if len(found.of) == 2:
        (one, its), (other, others) = found.of.items()
        if _texts(its.speaking_for, others.speaking_for) == _texts(others.against, its.against):
            return [[(f"for {one}", its.speaking_for), (f"for {other}", others.speaking_for)]]
    return [
        list(zip(_titles(name), (sides.speaking_for, sides.against), strict=True))
        for name, sides in found.of.items()
    ]


def _texts(*lists: Sequence[Phrase]) -> list[list[str]]:
    return [[phrase.text for phrase in phrases] for phrases in lists]


def _titles(name: Any) -> tuple[str, str]:
    """Return what lists of words for and against a class, or None for a number, are called."""
    if name is None:
        return "for a higher value", "for a lower value"
    return f"for {name}", f"against {name}"


def document_page(found: Explanation, source: str, most: int) -> str:
    """Return the page of one document: its text coloured, and the `most` strongest phrases."""
    prediction = spelled(found.prediction)
    header = _header(f"Prediction: {prediction}", f"{source}{said_by(found)}")
    body = element("main", probabilities(found.probabilities or {}), explained(found, most))
    return document(visible(f"{prediction} – {source}"), header, body)


def _header(title: str, lead: str) -> Html:
    return element(
        "header",
        element("p", "Laconic · explanation", class_="kicker"),
        element("h1", visible(title)),
        element("p", visible(lead), class_="lead"),
    )


def explained(found: Explanation, most: int) -> Html:
    """Return a document's text coloured by what spoke for the target, and the strongest phrases."""
    number = found.target is None
    what = "a higher value" if number else f"“{found.target}”"
    strongest = max((abs(word.score) for word in found.spans), default=0.0)
    sums = "; all scores add up to the difference" if found.method == "integrated" else ""
    told = (
        f"A word's score is what it adds to the model's output{'' if number else f' for {what}'}: "
        f"{found.value:.4g} here, {found.base:.4g} for a document that says nothing{sums}. "
        "Lists have the sum over a word's occurrences."
    )
    words, left_out = excerpt(found.spans, ON_PAGE)
    lists = [_phrases("Strongest words", found.words()[:most], "score")]
    if found.ngrams:
        # What is counted is told apart from symbols: its scores are exact, and overlap.
        lists.append(_phrases("Strongest n-grams", found.longer_ngrams()[:most], "score"))
    return joined(
        element("h2", visible(f"What spoke for {what}")),
        element("p", "against", element("i"), "for", class_="scale"),
        element("p", f"{left_out}.", class_="note") if left_out else Html(),
        element(
            "div",
            *(_span(word, strongest) if word else GAP for word in words),
            class_=_look(found),
        ),
        element("p", visible(told), class_="note"),
        element("div", *(element("div", each) for each in lists), class_="pair"),
    )


def words_page(found: TopWords, source: str) -> str:
    """Return the page of the words that speak most for and against each class."""
    are = "Words" if found.kind == "word" else "Phrases"
    pairs = side_by_side(found)
    against = " and against" if len(pairs) == len(found.of) else ""
    title = f"{are} that speak for{against} each class"
    if None in found.of:
        title = f"{are} that speak for a higher and a lower value"
    lead = f"{source} · {how_many(found.documents, 'document')}{views(found.shares)}"
    how = (
        "What a word adds to the model's output, in the mean over its occurrences: exactly so much "
        "where it is counted, by integrated gradients where it is read. Words that occur often "
        "come before rarer ones of the same mean."
    )
    sections = [
        element(
            "section",
            *(element("div", _phrases(title, side, "mean score")) for title, side in pair),
            class_="pair",
        )
        for pair in pairs
    ]
    note = element("p", how, class_="note") if found.kind == "word" else Html()
    body = element("main", note, *sections)
    return document(visible(f"{are} – {source}"), _header(title, lead), body)


def spelled(prediction: Any) -> str:
    """Return a prediction in words: a class, labels or a number."""
    if isinstance(prediction, list):
        return ", ".join(map(str, prediction)) or "no label"
    return f"{prediction:.6g}" if isinstance(prediction, float) else str(prediction)


def excerpt(words: Sequence[Word], most: int) -> tuple[list[Word | None], str]:
    """Return the words to show, at most so many letters, and a sentence if these are not all.

    They stand around those that decided most, in order, with a None wherever some are left out.
    """
    starts = list(accumulate((len(word.text) for word in words), initial=0))
    if starts[-1] <= most:
        return list(words), ""
    around, left = most // (2 * _PLACES), most
    kept: set[int] = set()
    # Of equal ones the first come first: the beginning is shown if nothing decides.
    for k in sorted(range(len(words)), key=lambda k: -abs(words[k].score)):
        if k in kept:
            continue
        first = bisect_left(starts, starts[k] - around)
        end = bisect_right(starts, starts[k + 1] + around) - 1
        more = set(range(first, end)) - kept
        left -= sum(len(words[each].text) for each in more)
        if left < 0:
            break
        kept |= more
    shown: list[Word | None] = []
    for k, word in enumerate(words):
        if k in kept:
            shown.append(word)
        elif not shown or shown[-1] is not None:
            shown.append(None)
    letters = sum(len(words[k].text) for k in kept)
    told = f"{letters:,} of {starts[-1]:,} letters are shown, around the places that decided most"
    return shown, f"{told}; the lists are of the whole document"


def _look(found: Explanation) -> str:
    """Return the class of a document: in DNA, which has no words, and in code, letters line up."""
    signs = sum(letter in _CODE for letter in found.text)
    has_no_words = any(word.name != word.text for word in found.spans)
    fixed = has_no_words or signs > _SIGNS * len(found.text)
    return "document fixed" if fixed else "document"


def _span(word: Word, strongest: float) -> Html:
    colour = f"background:rgb{shade(word.score, strongest)}"
    told = f"{word.name!r}\nscore {word.score:+.4f}"
    return element("span", visible(word.text), style=colour, title=visible(told))


def probabilities(found: Mapping[Any, float]) -> Html:
    """Return a table of classes, the most probable first; nothing without any."""
    rows = [
        [visible(str(name)), percent(value), gauge(value)]
        for name, value in sorted(found.items(), key=lambda pair: -pair[1])
    ]
    return table([], rows) if rows else Html()


def made_of(phrases: Sequence[Phrase]) -> list[str]:
    """Return of what each is made, where there are several kinds: texts may be the same."""
    kinds = {"ngram": "letters", "phrase": "symbols", "symbol": "a symbol"}
    several = len({phrase.kind for phrase in phrases}) > 1
    return [kinds.get(phrase.kind, "") if several else "" for phrase in phrases]


def _phrases(title: str, phrases: Sequence[Phrase], score: str) -> Html:
    strongest = max((abs(phrase.score) for phrase in phrases), default=0.0) or 1.0
    rows = [
        [
            element(
                "th",
                visible(shown(phrase) + shared(phrase)),
                *([" ", element("small", f"of {kind}")] if kind else []),
                scope="row",
                class_="phrase",
            ),
            f"{phrase.score:+.4f}",
            gauge(abs(phrase.score) / strongest, "for" if phrase.score > 0 else "against"),
            f"{phrase.count:,}",
        ]
        for phrase, kind in zip(phrases, made_of(phrases), strict=True)
    ]
    none = element("p", "None occurs often enough.", class_="note")
    kinds = {phrase.kind for phrase in phrases}
    head = "word" if "word" in kinds else "n-gram" if kinds == {"ngram"} else "phrase"
    listed = table([head, score, "", "times"], rows, class_="strongest") if rows else none
    return joined(element("h2", visible(title)), listed)
