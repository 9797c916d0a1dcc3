"""Pages in tests: as a parser reads them, and as a browser shows them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

_VOID = {"br", "input", "link", "meta"}


class Document(HTMLParser):
    """Tables, headings and text of a page; AssertionError where tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.headings: list[str] = []
        self.tables: list[list[list[str]]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"{self.open} never end"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._keep(tag, attrs)
        if tag not in _VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "h2":
            self.headings.append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._keep(tag, attrs)
        assert "svg" in self.open, f"HTML has no <{tag}/>"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.words.append(data)
        if "td" in self.open or "th" in self.open:
            self.tables[-1][-1][-1] += data
        elif "h2" in self.open:
            self.headings[-1] += data

    def _keep(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            assert value is not None
            self.attributes.append((tag, name, value))
            if name == "id":
                self.ids.append(value)

    @property
    def text(self) -> str:
        return "".join(self.words)

    def table(self, *heads: str) -> list[list[str]]:
        """Return the rows of the only table whose head begins so."""
        (found,) = [each for each in self.tables if each[0][: len(heads)] == list(heads)]
        return found[1:]


def opened(browser: Any, url: str, width: int) -> None:
    """Open a page as a screen of that width shows it."""
    screen = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get_log("performance")
    from selenium.webdriver.support.ui import WebDriverWait

    browser.execute_script("window.isBefore = true")
    browser.get(url)
    # A busy machine has answered here while the page before was still shown.
    there = "return !window.isBefore && document.readyState === 'complete'"
    WebDriverWait(browser, 30).until(lambda b: b.execute_script(there) or "#" in url)


CELLS = "return [...document.querySelectorAll(arguments[0])].map(each => each.innerText.trim())"
# What sticks out of the screen and does not scroll within itself.
OUTSIDE = """
return [...document.body.querySelectorAll("*")]
  .filter(each => each.getBoundingClientRect().right > arguments[0] + 1)
  .filter(each => !each.closest(".scroll, pre, svg"))
  .map(each => each.outerHTML.slice(0, 200));
"""
# Text drawn over other text, within each figure.
COVERED = """
const covered = [];
for (const svg of document.querySelectorAll("svg")) {
  const texts = [...svg.querySelectorAll("text")].map(each => [each, each.getBoundingClientRect()]);
  texts.forEach(([a, p], k) => texts.slice(k + 1).forEach(([b, q]) => {
    const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
    const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
    if (wide > 1 && high > 4) covered.push(a.textContent + " and " + b.textContent);
  }));
}
return covered;
"""
HEIGHTS = """
return [...document.querySelectorAll("svg text")].map(each => {
  const scale = each.getScreenCTM();
  return each.getBBox().height * Math.hypot(scale.a, scale.b);
});
"""
