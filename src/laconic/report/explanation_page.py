"""The pages of laconic explain: one HTML file each, which needs nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from laconic.errors import visible
from laconic.report.markup import Html, document, element, joined
from laconic.report.tables import gauge, table

if TYPE_CHECKING:
    from laconic.inference.explanation import Explanation
    from laconic.inference.phrase_table import Phrase
    from laconic.inference.words import Word

_FOR, _AGAINST = (67, 147, 195), (214, 96, 77)  # told apart by nearly every eye


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
    if len(found.shares) < 2:
        return ""
    return " · " + ", ".join(f"{name} {share:.0%}" for name, share in found.shares.items())


def document_page(found: Explanation, source: str, most: int) -> str:
    """Return the page of one document: its text coloured, and the `most` strongest phrases."""
    prediction = spelled(found.prediction)
    body = [
        element("h1", visible(f"Prediction: {prediction}")),
        element("p", visible(f"{source}{said_by(found)}"), class_="note"),
        probabilities(found.probabilities or {}),
        explained(found, most),
    ]
    return document(visible(f"{prediction} – {source}"), *body)


def explained(found: Explanation, most: int) -> Html:
    """Return a document's text coloured by what spoke for the target, and the strongest phrases."""
    what = "a higher value" if found.target is None else f"“{found.target}”"
    strongest = max((abs(word.score) for word in found.spans), default=0.0)
    sums = "The scores add up to the difference." if found.method == "integrated" else ""
    without = " and no n-grams" if found.ngrams else ""
    values = (
        f"The model gives {found.value:.4g}, and {found.base:.4g} for a document of zero "
        f"vectors{without}. {sums}"
    )
    body = [
        element("h2", visible(f"What spoke for {what}")),
        element("p", "against", element("i"), "for", class_="scale"),
        element("div", *(_span(word, strongest) for word in found.spans), class_="document"),
        element("p", values, class_="note"),
        _phrases("Strongest words", found.words()[:most], "score"),
    ]
    if found.ngrams:
        # What is counted is told apart from symbols: its scores are exact, and overlap.
        body.append(_phrases("Strongest n-grams", found.ngrams[:most], "score"))
    return joined(*body)


def lists_page(lists: Mapping[Any, Sequence[Phrase]], source: str) -> str:
    """Return the page of the phrases that speak most for each class."""
    title = element("h1", "Phrases that speak most for each class")
    tables = [_phrases(str(name), phrases, "mean score") for name, phrases in lists.items()]
    note = element("p", visible(source), class_="note")
    return document(visible(f"Phrases – {source}"), title, note, *tables)


def spelled(prediction: Any) -> str:
    """Return a prediction in words: a class, labels or a number."""
    if isinstance(prediction, list):
        return ", ".join(map(str, prediction)) or "no label"
    return f"{prediction:.6g}" if isinstance(prediction, float) else str(prediction)


def _span(word: Word, strongest: float) -> Html:
    colour = f"background:rgb{shade(word.score, strongest)}"
    told = f"{word.name!r}\nscore {word.score:+.4f}"
    return element("span", visible(word.text), style=colour, title=visible(told))


def probabilities(found: Mapping[Any, float]) -> Html:
    """Return a table of classes, the most probable first; nothing without any."""
    rows = [
        [visible(str(name)), f"{value:.1%}", gauge(value)]
        for name, value in sorted(found.items(), key=lambda pair: -pair[1])
    ]
    return table([], rows) if rows else Html()


def _phrases(title: str, phrases: Sequence[Phrase], score: str) -> Html:
    rows = [
        [
            f"{phrase.score:+.4f}",
            f"{phrase.count:,}",
            element("td", visible(repr(phrase.text) + shared(phrase)), class_="phrase"),
        ]
        for phrase in phrases
    ]
    none = element("p", "None occurs often enough.", class_="note")
    listed = table([score, "times", "phrase"], rows, class_="phrases") if rows else none
    return joined(element("h2", visible(title)), listed)
