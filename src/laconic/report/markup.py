"""HTML from Python: text is escaped wherever it comes from, so no name can break the page."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib.resources import files

_VOID = frozenset({"br", "input", "link", "meta"})
# HTML has no way to write these; a class name made from bytes may hold them.
_NONE = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff"
_UNWRITABLE, _SPECIAL = re.compile(f"[{_NONE}]"), re.compile(f"[&<>\"'\r{_NONE}]")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def _written(content: str) -> str:
    if isinstance(content, Html) or not _SPECIAL.search(content):
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


def policy(script: str = "") -> str:
    """Return what a page may do: load nothing from elsewhere, and run this one script at most."""
    if not script:
        return _POLICY
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{_POLICY}; script-src 'sha256-{digest}'"


def document(title: str, *body: str, style: str = "", script: str = "") -> str:
    """Return a whole page, in the style of all and `style`, that needs no other file.

    `script` runs at its end, and nothing else can: the file says so itself.
    """
    every = files("laconic.report").joinpath("style.css").read_text("utf-8")
    end = element("script", Html(script)) if script else Html()
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("link", rel="icon", href="data:,"),  # else a server would be asked for one
        element("title", title),
        element("style", Html(every + style)),
    )
    return f"<!DOCTYPE html>\n{element('html', head, element('body', *body, end), lang='en')}\n"
