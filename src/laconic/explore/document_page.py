"""The page of one document: its phrases, its levels, another codec beside it, a prediction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from laconic.codecs import CODECS, compress
from laconic.errors import InputError, LaconicError
from laconic.explore.counts import Counts
from laconic.explore.frame import labels_of, link, page, section, short
from laconic.explore.levels import PICTURE, levels_table, picture
from laconic.explore.library import Entry, Library
from laconic.explore.phrases import Shown, around, rules_table, text_of
from laconic.grammar import Grammar
from laconic.report.markup import Html, element, joined
from laconic.report.numbers import count, decimals
from laconic.report.tables import table
from laconic.show import how_many

WINDOW = 2000
"""Letters of a document that are shown at a time."""
_COMPRESSED = 1 << 20  # letters of a document that is compressed anew
_PANEL = (
    "Point at a phrase, or tap it, to see its rule. With a keyboard: Tab to the text, on with the "
    "arrow keys."
)
_READING = (
    "What is underlined is one symbol of the sequence that a model reads, instead of its letters. "
    "Darker phrases are made of phrases."
)
_UNDER = " under the rulebook"


class View(NamedTuple):
    """What is asked for: where the part begins, the codec beside it, whether to explain.

    `alone` the page is a file, with no other page to go to; `window` letters are shown.
    """

    first: int = 0
    beside: str = ""
    explain: bool = False
    alone: bool = False
    window: int = WINDOW


def document_page(
    library: Library,
    entry: Entry,
    view: View,
    counts: Counts | None,
    explanation: Html | None = None,
) -> str:
    """Return the page of a document; `explanation` is what a run's model says, if there is one."""
    view = view._replace(first=max(0, min(view.first, entry.length - 1)))
    rest = entry.length - view.first
    if rest <= 1.5 * view.window:  # no page for a few last lines
        view = view._replace(window=rest)
    corpus, problem = library.corpus, Html()
    under = _UNDER if corpus.rulebook is not None else ""
    shown = [Shown(entry.grammar, corpus.alphabet, "a", corpus.codec.name + under)]
    if view.beside:
        try:
            other = _compressed(library, entry, view.beside)
            shown.append(Shown(other, corpus.alphabet, "b", view.beside))
        except LaconicError as error:
            problem = element("p", short(error), role="status", class_="note")
    body = [
        _turn(library, entry) if not view.alone else Html(),
        _tiles(entry.grammar),
        Html() if explanation is None else section("Prediction", explanation, name="prediction"),
        section(
            "Phrases",
            _key(shown),
            _windows(entry, view),
            problem,
            _reader(shown, view, counts),
            name="text",
        ),
        Html() if view.alone else _codecs(library, entry, view),
        section("Level by level", _levels(shown, view.first), name="levels"),
    ]
    if facts := _columns(library, entry.row):
        body.append(section("Beside it", facts, name="columns"))
    title, lead = f"Document {entry.row:,}", library.title
    if view.alone and len(library) == 1:
        title, lead = library.title, "one document"
    return page(
        title, f"{lead} · {shown[0].title}", *body, here=None if view.alone else "", script=True
    )


def _turn(library: Library, entry: Entry) -> Html:
    row = entry.row
    links = [
        link("document", "← Document before", row=row - 1) if row else Html(),
        link("document", "Next document →", row=row + 1) if row + 1 < len(library) else Html(),
        element("span", "label ", *labels_of(entry.labels)) if entry.labels else Html(),
    ]
    return element("nav", *links, class_="turn", aria_label="Documents")


def _tiles(grammar: Grammar) -> Html:
    letters, symbols = grammar.expanded_length, len(grammar.sequence)
    needed = grammar.reachable()
    shared = len(needed) - len(grammar.rules)
    tiles = {
        "letters": count(letters),
        "symbols in the sequence": count(symbols),
        "letters per symbol": decimals(letters / symbols if symbols else None, 2),
        "private rules": count(len(grammar.rules)),
    }
    if grammar.rulebook is not None:
        tiles["rulebook’s rules used"] = count(int(needed[:shared].sum()))
    tiles["levels"] = count(int(grammar.depths.max(initial=0, where=needed)))
    shown = [element("div", element("dt", k), element("dd", v)) for k, v in tiles.items()]
    return element("dl", *shown, class_="tiles")


def _reader(shown: Sequence[Shown], view: View, counts: Counts | None) -> Html:
    """Return the text in phrases, once for each codec, and the panel that tells of them."""
    texts = []
    for each in shown:
        part = each.part(view.first, view.first + view.window)
        grammar, told = each.grammar, f"letters {part.begin:,} to {part.end:,}"
        sizes = how_many(len(grammar.sequence), "symbol"), how_many(len(grammar.rules), "rule")
        head = element("h3", f"{each.title}: {', '.join(sizes)}") if len(shown) > 1 else Html()
        text = text_of(each, part, f"The text in phrases by {each.title}, {told}")
        texts.append(element("div", head, around(part), text, rules_table(each, part, counts)))
    panel = element("aside", element("p", _PANEL), id="phrase", aria_live="polite")
    inner = element("div", *texts, class_="beside" if len(shown) > 1 else None)
    return element("div", inner, panel, class_="reader")


def _key(shown: Sequence[Shown]) -> Html:
    """Return what the lines and colours of phrases say."""
    key = [element("span", "a private rule’s phrase", class_="key"), " "]
    if any(each.grammar.rulebook is not None for each in shown):
        key.append(element("span", "a rulebook’s phrase", class_="key s"))
    return element("p", f"{_READING} ", *key, class_="note")


def _windows(entry: Entry, view: View) -> Html:
    """Return which part is shown, and the way to the others; nothing where all of it is."""
    if entry.length <= view.window:
        return Html()
    first, end = view.first, min(entry.length, view.first + view.window)
    told = element("span", f"Letters {first:,} to {end:,} of {entry.length:,}")
    if view.alone:
        return element("p", told, class_="note")
    asked = {"row": entry.row, "beside": view.beside}
    before = link(
        "document", "← Letters before", **asked, first=max(0, first - view.window) or None
    )
    after = link("document", "Next letters →", **asked, first=end)
    place = element(
        "input", type="number", name="first", min=0, max=entry.length - 1, required="required"
    )
    go = element(
        "form",
        element("input", type="hidden", name="row", value=entry.row),
        element("input", type="hidden", name="beside", value=view.beside),
        element("label", "From letter", place, class_="short"),
        element("button", "Go"),
        action="document",
    )
    links = [before if first else Html(), told, after if end < entry.length else Html()]
    return joined(element("nav", *links, class_="turn", aria_label="Parts of the document"), go)


def _codecs(library: Library, entry: Entry, view: View) -> Html:
    """Return a form to choose the codec to be shown beside."""
    names = list(CODECS)
    if library.corpus.rulebook is not None:
        names += [name + _UNDER for name in CODECS]
    options = [
        element(
            "option",
            name or "none beside it",
            value=name,
            selected="selected" if name == view.beside else None,
        )
        for name in ["", *names]
    ]
    return element(
        "form",
        element("input", type="hidden", name="row", value=entry.row),
        element("input", type="hidden", name="first", value=view.first),
        element("label", "Another codec beside it", element("select", *options, name="beside")),
        element("button", "Show"),
        action="document",
    )


def _compressed(library: Library, entry: Entry, name: str) -> Grammar:
    """Return the document as another codec compresses it; LaconicError says why it cannot."""
    if entry.length > _COMPRESSED:
        raise InputError(
            f"a document of {entry.length:,} letters is not compressed anew for a page: "
            f"{_COMPRESSED:,} is the most; `laconic compress` has no such limit"
        )
    corpus, codec = library.corpus, name.removesuffix(_UNDER)
    book = corpus.rulebook if name != codec else None
    data = entry.grammar.to_bytes(corpus.alphabet)
    return compress(data, codec, alphabet=corpus.alphabet, rulebook=book)


def _levels(shown: Sequence[Shown], first: int) -> Html:
    note = (
        "Rules of one level are computed together, from the first level up; the sequence model "
        f"then reads what nothing covers. {PICTURE} letters are drawn, from letter {first:,} on."
    )
    parts = [element("p", note, class_="note")]
    for each in shown:
        parts.append(element("h3", each.title) if len(shown) > 1 else Html())
        parts += [picture(each, first), levels_table(each)]
    return joined(*parts)


def _columns(library: Library, row: int) -> Html:
    values = library.columns(row)
    rows = [
        [element("th", short(name), scope="row"), element("td", short(value, 1000), class_="value")]
        for name, value in values.items()
    ]
    return table([], rows, class_="facts") if rows else Html()
