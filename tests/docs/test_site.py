"""The documentation site: built strictly, as `make docs` does, and opened as readers do."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pages import CELLS, opened

from .blocks import ROOT

pytest.importorskip("mkdocs", reason="the site is built by mkdocs: pip install --group docs")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; a broken link, an anchor that is nowhere and a page without a place are errors."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


class Loaded(HTMLParser):
    """What a page makes a browser load by itself, and the text that it shows."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.urls: list[str] = []
        self.words: list[str] = []
        self.feed(page.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source", "link"):
            url = given.get("href" if tag == "link" else "src")
            # A canonical or next page is named, not loaded.
            if url and given.get("rel") not in ("canonical", "next", "prev", "edit"):
                self.urls.append(url)

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_no_page_asks_another_server(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        for url in Loaded(page).urls:
            assert not re.match(r"(https?:)?//", url), f"{page.name} loads {url}"
            there = site / url[1:] if url.startswith("/") else page.parent / url
            assert url.startswith("data:") or there.resolve().exists(), f"{page.name}: {url}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(https?:)?//|@import", sheet.read_text("utf-8"))


def test_pages_have_what_is_not_in_their_files(site: Path) -> None:
    start = "".join(Loaded(site / "index.html").words)
    assert "Short documents." in start, "README's parts are put in"
    assert "documents/s on one H200" in start
    listed = re.findall(
        r"<li>\s*(?:<p>)?<strong>(.+?)</strong>", (site / "index.html").read_text("utf-8")
    )
    assert {"Short documents.", "To archive."} <= set(listed), "no item ends in the midst of a list"
    commands = "".join(Loaded(site / "commands.html").words)
    assert "--grammar-dropout" in commands
    reference = (site / "api/grammars.html").read_text("utf-8")
    assert 'id="laconic.codecs.compress_many"' in reference
    assert "<blockquote>" not in reference, "examples are no quotations"


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("page", ["index", "how", "tutorials/reviews", "api/grammars", "results"])
def test_in_a_browser(browser: Any, site: Path, page: str, width: int) -> None:
    opened(browser, (site / f"{page}.html").as_uri(), width)
    assert browser.execute_script("return document.querySelector('h1').innerText")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    missing = "return [...document.images].filter(each => !each.naturalWidth).map(each => each.src)"
    assert browser.execute_script(missing) == []
    assert browser.get_log("browser") == []
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    asked = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert all(url.startswith(("file:", "data:", "blob:", "chrome")) for url in asked), asked


@pytest.mark.browser
def test_search_needs_no_server(browser: Any, site: Path) -> None:
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, 60)
    opened(browser, (site / "index.html").as_uri(), 1280)
    field = browser.find_element("css selector", ".md-search__input")
    field.click()
    field.send_keys("rulebook")
    found = ".md-search-result__item"
    assert wait.until(
        lambda _: any("share" in each for each in browser.execute_script(CELLS, found))
    )
    assert browser.get_log("browser") == []


_CUT = """
const box = document.documentElement.getBoundingClientRect();
return [...document.querySelectorAll("text")].filter(each => {
  const at = each.getBoundingClientRect();
  return at.left < box.left - 1 || at.right > box.right + 1 || at.bottom > box.bottom + 1;
}).map(each => each.textContent);
"""


@pytest.mark.browser
def test_no_word_of_a_picture_is_cut(browser: Any) -> None:
    pictures = sorted((ROOT / "docs").glob("*.svg"))
    assert len(pictures) > 8
    for picture in pictures:
        opened(browser, picture.as_uri(), 1280)
        assert browser.execute_script(_CUT) == [], picture.name
