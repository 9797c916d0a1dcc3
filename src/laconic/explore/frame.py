"""What every page of the explorer has around it, and how it names what users named."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

from laconic.errors import visible
from laconic.report.markup import Html, document, element

_LONGEST = 200  # characters of a label, or of another value, that are shown
_MOST_LABELS = 12  # of one document
PLACES = {"./": "Documents", "statistics": "Statistics"}


@cache
def asset(name: str) -> str:
    """Return a file of this folder."""
    return files("laconic.explore").joinpath(name).read_text("utf-8")


def short(text: object, most: int = _LONGEST) -> str:
    r"""Return a text that anybody may have chosen, without what a page would act on, and cut.

    >>> short("so\0so" + 300 * "!", 8)
    'so␀so!!!…'
    """
    spelled = str(text)
    return visible(spelled[:most]) + ("…" if len(spelled) > most else "")


def labels_of(labels: Sequence[str]) -> list[Html]:
    """Return labels, each as something to recognise at a glance; of very many, the first."""
    shown = [
        element(
            "span", short(label), class_="label", title=short(label) if len(label) > 20 else None
        )
        for label in labels[:_MOST_LABELS]
    ]
    more = len(labels) - len(shown)
    return [*shown, element("span", f"and {more:,} more labels")] if more else shown


def address(to: str, /, **query: object) -> str:
    """Return where a page of the explorer is; what is None or empty is left out of the query."""
    known = {key: value for key, value in query.items() if value not in (None, "")}
    return f"{to}?{urlencode(known, errors='replace')}" if known else to


def link(to: str, text: str, /, **query: object) -> Html:
    """Return a link to a page of the explorer."""
    return element("a", text, href=address(to, **query))


def page(title: str, lead: str, *body: Html, here: str | None = None, script: bool = False) -> str:
    """Return a whole page; `here` is which of PLACES it is, "" for none, None: a file alone."""
    places = [
        element("a", name, href=to, aria_current="page" if to == here else None)
        for to, name in PLACES.items()
    ]
    header = element(
        "header",
        element("p", "Laconic · explorer", class_="kicker"),
        element("h1", short(title)),
        element("p", short(lead, 400), class_="lead"),
        element("nav", *places, aria_label="Pages") if here is not None else Html(),
    )
    run = asset("script.js") if script else ""
    return document(
        short(title), header, element("main", *body), style=asset("explore.css"), script=run
    )


def section(title: str, *content: Html, name: str) -> Html:
    """Return a part of a page under its heading."""
    return element("section", element("h2", title), *content, id=name)
