"""The pages over all documents: a list to search, and what they are like together."""

from __future__ import annotations

from laconic.errors import visible
from laconic.explore.counts import Counts
from laconic.explore.frame import address, labels_of, link, page, short
from laconic.explore.library import SEARCHED, Hit, Library
from laconic.explore.plots import histogram
from laconic.report.markup import Html, element, joined
from laconic.report.numbers import count, decimals, letters_of
from laconic.report.tables import gauge, table
from laconic.show import how_many

_MOST_LABELS = 200  # that can be chosen
_BEFORE = 200  # letters before what was found where its document is opened


def lead_of(library: Library) -> str:
    """Return what a corpus is, in a line."""
    corpus = library.corpus
    book = corpus.rulebook
    facts = [
        how_many(len(library), "document"),
        f"codec {corpus.codec.name}",
        f"letters are {letters_of(corpus.alphabet)}",
    ]
    facts += [f"rulebook of {how_many(len(book), 'rule')}, {book.crossing}"] if book else []
    return " · ".join(facts)


def list_page(library: Library, text: str, label: int | None, first: int) -> tuple[str, str | None]:
    """Return the page of documents from one on; and where to go on at once, if anywhere.

    That is so where a search has found nothing yet.
    """
    found = library.find(text, label, first)
    onward = None
    if text and not found.hits and found.after is not None:
        onward = address("./", q=text, label=label, first=found.after)
        told = f"Nothing before document {found.after:,} of {len(library):,}; searching on …"
    elif not found.hits:
        told = "No document is like that." if text or label is not None else "There are none."
    elif text and found.after is not None:
        told = f"These are before document {found.after:,} of {len(library):,}; there may be more."
    else:
        told = ""
    turn = [
        link("./", "← Documents before", q=text, label=label, first=found.before)
        if found.before is not None
        else Html(),
        link("./", "From the first on", q=text, label=label) if first else Html(),
        link("./", "More documents →", q=text, label=label, first=found.after)
        if found.after is not None
        else Html(),
    ]
    body = [
        _form(library, text, label),
        element("p", told, role="status", class_="note") if told else Html(),
        element("ol", *map(_item, found.hits), class_="documents"),
        element("nav", *turn, class_="turn", aria_label="More documents"),
    ]
    if text:
        note = f"Of a document, the first {SEARCHED:,} letters are searched."
        body.append(element("p", note, class_="note"))
    return page(library.title, lead_of(library), *body, here="./"), onward


def _form(library: Library, text: str, label: int | None) -> Html:
    fields = []
    if library.labels:
        every = element("option", "all labels", value="")
        options = [
            element(
                "option",
                f"{short(name, 60)} ({number:,})",
                value=k,
                selected="selected" if k == label else None,
            )
            for k, (name, number) in enumerate(
                zip(library.labels[:_MOST_LABELS], library.numbers, strict=False)
            )
        ]
        chosen = element("select", every, *options, name="label")
        fields.append(element("label", "Label", chosen))
    search = element("input", type="search", name="q", value=visible(text), maxlength=200)
    fields.append(element("label", "Text", search))
    find = element("form", *fields, element("button", "Search"), action="./", role="search")
    last = max(0, len(library) - 1)
    number = element("input", type="number", name="row", min=0, max=last, required="required")
    go = element(
        "form",
        element("label", f"Document, 0 to {last:,}", number, class_="short"),
        element("button", "Open"),
        action="document",
    )
    return element("div", find, go, class_="asked")


def _item(hit: Hit) -> Html:
    entry, grammar = hit.entry, hit.entry.grammar
    facts = [
        link(
            "document",
            f"Document {entry.row:,}",
            row=entry.row,
            first=max(0, hit.place - _BEFORE) or None,
        ),
        *labels_of(entry.labels),
        element("span", how_many(entry.length, "letter")),
        element("span", how_many(len(grammar.sequence), "symbol")),
        element("span", how_many(len(grammar.rules), "rule")),
    ]
    words = [visible(hit.before), element("mark", visible(hit.found)), visible(hit.after)]
    preview = joined(*words) if hit.found else joined(words[-1])
    return element(
        "li",
        element("p", *facts, class_="facts"),
        element("p", preview, class_="preview"),
    )


def statistics_page(library: Library, counts: Counts) -> str:
    """Return the page about all documents that were counted so far."""
    counted = counts.figures
    letters, symbols = int(counted.letters.sum()), int(counted.symbols.sum())
    ratio = letters / symbols if symbols else None
    tiles = {
        "letters": count(letters),
        "symbols in sequences": count(symbols),
        "private rules": count(int(counted.rules.sum())),
        "letters per symbol": decimals(ratio, 2),
        "most levels": count(int(counted.depths.max(initial=0))),
    }
    shown = [element("div", element("dt", k), element("dd", v)) for k, v in tiles.items()]
    full = counted.symbols > 0
    plots = [
        histogram("Letters per document", counted.letters.astype(float), log=True),
        histogram("Letters per symbol", counted.letters[full] / counted.symbols[full]),
        histogram("Symbols in the sequence", counted.symbols.astype(float), log=True),
        histogram("Private rules", counted.rules.astype(float)),
        histogram("Levels of rules", counted.depths.astype(float)),
    ]
    told = ""
    if counts.failure:
        told = f"Counted {counts.done:,} of {counts.total:,} documents, then: {counts.failure}"
    elif not counts.finished:
        told = f"Counted {counts.done:,} of {counts.total:,} documents so far …"
    body = [
        element("p", short(told), role="status", class_="note") if told else Html(),
        element("dl", *shown, class_="tiles"),
        element("section", element("div", *plots, class_="plots"), id="plots"),
    ]
    if library.labels:
        body.append(element("section", element("h2", "Labels"), _labels(library), id="labels"))
    return page(
        "Statistics", f"{short(library.title)} · {lead_of(library)}", *body, here="statistics"
    )


def _labels(library: Library) -> Html:
    most = max(library.numbers)
    rows = [
        [
            element("th", *labels_of([name]), scope="row"),
            link("./", f"{number:,}", label=k),
            gauge(number / most),
        ]
        for k, (name, number) in enumerate(
            zip(library.labels[:_MOST_LABELS], library.numbers, strict=False)
        )
    ]
    left = len(library.labels) - len(rows)
    note = element("p", f"{left:,} rarer labels are left out.", class_="note") if left else Html()
    return joined(table(["label", "documents", ""], rows), note)
