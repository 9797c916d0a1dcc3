"""HTML from Python: text is escaped wherever it comes from, so no name can break the page."""

from __future__ import annotations

import html
import re
from importlib.resources import files

_VOID = frozenset({"br", "link", "meta"})
# HTML has no way to write these; a class name made from bytes may hold them.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
# Nothing may be loaded from elsewhere and nothing may run: the file says so itself.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def _written(content: str) -> str:
    if isinstance(content, Html):
        return content
    return html.escape(_UNWRITABLE.sub("\ufffd", content).replace("\r", "\n"))


def joined(*parts: str) -> Html:
    """Return the parts one after the other; those that are not Html are escaped."""
    return Html("".join(map(_written, parts)))


def element(name: str, /, *content: str, **attributes: str | int | None) -> Html:
    """Return an element; a trailing _ in an attribute's name is cut, one that is None left out.

    >>> element("td", "a < b", class_="name", colspan=2, title=None)
    '<td class="name" colspan="2">a &lt; b</td>'
    >>> element("p", element("b", "bold"), " & more")
    '<p><b>bold</b> &amp; more</p>'
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_written(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    end = "" if name in _VOID else f"</{name}>"
    return Html(f"<{name}{given}>{joined(*content)}{end}")


def document(title: str, *body: str) -> str:
    """Return a whole page, in the style of all, that needs no other file."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),  # else a server would be asked for one
        element("title", title),
        element("style", Html(files("laconic.report").joinpath("style.css").read_text("utf-8"))),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body), lang='en')}\n"
