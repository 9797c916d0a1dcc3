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
from pages import opened

from .blocks import ROOT

pytest.importorskip("mkdocs", reason="the site is built by mkdocs: pip install --group docs")
# One process builds the site, and all tests here share it.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]


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
    # Search needs a server: under file:// browsers let no script read other files.
    said = [line["message"] for line in browser.get_log("browser")]
    assert [each for each in said if "file:///" not in each] == []
    messages = [json.loads(line["message"])["message"] for line in browser.get_log("performance")]
    asked = {
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    }
    assert all(url.startswith(("file:", "data:", "blob:", "chrome")) for url in asked), asked
