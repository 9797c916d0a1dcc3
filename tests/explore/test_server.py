"""The server: who gets an answer, what it says, and what hostile documents make of it."""

from __future__ import annotations

import base64
import hashlib
import http.client
import re
import socket
from collections.abc import Iterator
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from pages import CELLS, COVERED, OUTSIDE, Document, opened

from laconic import Alphabet, Codec, Corpus, Grammars, Rulebook, compress, samples
from laconic.corpus.schema import About, table_of
from laconic.explore.frame import asset
from laconic.explore.library import Library
from laconic.explore.server import Explorer, Server

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "\x1b[31mred\x1b[0m",
    "nul \0 and bell \a",
    "right \u202e to left \u2066 isolated",
    "W" * 1_000_000,
    "</title></style></textarea><svg onload=alert(3)>",
    "javascript:alert(4)",
    "\ud7ff\ufffe 🚀 naïve",
]


def served(corpus: Corpus, title: str = "a corpus") -> Iterator[Server]:
    with Server(Explorer(Library(corpus, title))) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [text[:600] for text in samples.load("kjv").train.documents[:60]]


@pytest.fixture(scope="module")
def plain(texts: list[str]) -> Iterator[Server]:
    labels = samples.load("kjv").train.labels[:60]
    book = Rulebook.learn(texts, 100)
    yield from served(Corpus.from_documents(texts, labels, rulebook=book))


@pytest.fixture(scope="module")
def hostile() -> Iterator[Server]:
    documents = [text[:5000] for text in HOSTILE]
    table = pa.table({"text": documents, "label": HOSTILE, "<b>bold</b>": HOSTILE})
    yield from served(Corpus.from_table(table, "text", "label"), HOSTILE[6])


def asked(server: Server, path: str, method: str = "GET", **headers: str) -> Any:
    """Ask for a path as it stands; return the answer, with its text."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=60)
    connection.request(method, path, headers=headers)
    answer: Any = connection.getresponse()
    answer.text = answer.read().decode()
    connection.close()
    return answer


def page(server: Server, path: str, status: int = 200) -> Document:
    answer = asked(server, urlsplit(server.url).path + path)
    assert answer.status == status
    return Document(re.sub(r"<script>.*?</script>", "", answer.text, flags=re.DOTALL))


def finished(server: Server) -> None:
    """Wait until all documents are counted."""
    page(server, "statistics")
    explorer: Any = server.RequestHandlerClass
    explorer.args[0].counts._thread.join(60)


def test_only_who_knows_the_token_gets_an_answer(plain: Server) -> None:
    token = plain.token
    assert len(token) >= 32
    for path in ("/", "/statistics", f"/{token}", f"/{token[:-1]}/", f"/x{token}/"):
        answer = asked(plain, path)
        assert (answer.status, answer.text) == (404, "not found")
    assert asked(plain, f"/{token}/").status == 200
    with Server(Explorer(Library(Corpus.from_documents(["a"]), "x"))) as other:
        assert other.token != token


def test_what_is_no_path_leads_nowhere(plain: Server) -> None:
    port = plain.server_address[1]
    for path in ("http://[x", "*", "?", "/%00/", "/\xff\0/", "/" + "x" * 60_000):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as raw:
            raw.sendall(f"GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode("latin-1"))
            assert raw.makefile().readline().split()[1] == "404"


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "", "0.0.0.0"])
def test_another_sites_name_leads_nowhere(plain: Server, host: str) -> None:
    answer = asked(plain, f"/{plain.token}/", Host=host)
    assert (answer.status, answer.text) == (421, "wrong host")


def test_it_listens_to_this_machine_alone(plain: Server) -> None:
    assert plain.server_address[0] == "127.0.0.1"
    port = plain.server_address[1]
    assert asked(plain, f"/{plain.token}/", Host=f"localhost:{port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(plain: Server, method: str) -> None:
    assert asked(plain, f"/{plain.token}/", method).status == 501


def test_what_a_page_may_do_is_said_in_its_headers(plain: Server) -> None:
    answer = asked(plain, f"/{plain.token}/document?row=3")
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["Content-Security-Policy"].split(";")
    )
    (script,) = re.findall(r"<script>(.*?)</script>", answer.text, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert script == asset("script.js")
    assert policy == {
        "default-src": "'none'",
        "style-src": "'unsafe-inline'",
        "img-src": "data:",
        "base-uri": "'none'",
        "script-src": f"'sha256-{digest}'",
        "form-action": "'self'",
        "frame-ancestors": "'none'",
    }
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "Python" not in answer.headers["Server"]
    head = asked(plain, f"/{plain.token}/document?row=3", "HEAD")
    assert (head.text, head.status) == ("", 200)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("document?row=60", 404, "There is no document 60: there are 60, from 0"),
        ("document?row=-1", 400, "Row must be a number, not -1"),
        ("document?row=" + "9" * 500, 400, "Row must be a number, not 999"),
        ("document?row=٣", 400, "Row must be a number"),
        ("?first=<b>", 400, "First must be a number, not <b>"),
        ("nowhere", 404, "There is no such page"),
        ("../etc/passwd", 404, "There is no such page"),
        ("?" + "&".join(f"a{k}=1" for k in range(30)), 400, "Too much was asked."),
        ("document?row=0&beside=zip", 200, "no codec is named 'zip'"),
        ("document?row=0&first=999999999", 200, "Document 0"),
    ],
)
def test_what_cannot_be_is_told(plain: Server, path: str, status: int, said: str) -> None:
    from urllib.parse import quote

    assert said in page(plain, quote(path, safe="?&=/.<>"), status).text


def test_a_list_with_labels_and_a_search(plain: Server, texts: list[str]) -> None:
    document = page(plain, "")
    assert "60 documents" in document.text
    assert "Document 24" in document.text
    assert "Document 25" not in document.text
    assert "Document 25" in page(plain, "?first=25").text
    word = max(texts[40].split(), key=len)
    found = page(plain, f"?q={word.upper()}")
    assert "Document 40" in found.text
    assert ("input", "value", word.upper()) in found.attributes
    assert "No document is like that." in page(plain, "?q=zzzz").text


def test_a_search_that_has_found_nothing_yet_goes_on(
    plain: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laconic.explore.library._AT_ONCE", 1000)
    answer = asked(plain, f"/{plain.token}/?q=zz%26zz")
    assert answer.headers["Refresh"] == "0; url=./?q=zz%26zz&first=2"
    assert "Nothing before document 2 of 60; searching on" in answer.text


def test_a_document_with_its_rules(plain: Server, texts: list[str]) -> None:
    finished(plain)
    document = page(plain, "document?row=3")
    rows = document.table("symbol", "whose", "rule", "stands for", "letters", "level", "used here")
    grammar = Corpus.from_documents(texts, rulebook=Rulebook.learn(texts, 100))[3]
    used = {256 + k: int(n) for k, n in enumerate(grammar.occurrences) if n}
    assert {int(row[0]): int(row[6]) for row in rows} == used
    for symbol, whose, _, stands, length, _, here, corpus in rows:
        assert whose == ("rulebook" if int(symbol) < 356 else "private")
        assert len(eval(stands).encode()) == int(length)
        assert int(corpus.replace(",", "")) >= int(here)
        assert sum(text.count(eval(stands)) for text in texts) >= 1
    assert [int(row[6]) for row in rows] == sorted(used.values(), reverse=True)
    spans = [value for tag, name, value in document.attributes if name == "data-rule"]
    assert {int(name[1:]) for name in spans} <= set(used)
    named = [value for tag, name, value in document.attributes if (tag, name) == ("th", "id")]
    assert set(spans) <= set(named)
    assert texts[3] in document.text


def test_another_codec_beside_it(plain: Server, texts: list[str]) -> None:
    document = page(plain, "document?row=3&beside=lzd")
    other = compress(texts[3], "lzd")
    assert f"lzd: {len(other.sequence)} symbols, {len(other.rules)} rules" in document.text
    assert document.text.count(texts[3]) == 2
    assert {value[0] for _, name, value in document.attributes if name == "data-rule"} == {"a", "b"}
    for name in ("deflate", "none", "lz78+under+the+rulebook"):
        assert page(plain, f"document?row=3&beside={name}").text.count(texts[3]) == 2


def test_statistics_of_all_documents(plain: Server, texts: list[str]) -> None:
    finished(plain)
    document = page(plain, "statistics")
    assert f"{sum(len(text.encode()) for text in texts):,}" in document.text
    assert "so far" not in document.text
    plots = [each for each in document.attributes if each[:2] == ("svg", "aria-label")]
    assert len(plots) == 5
    assert sum(int(row[1]) for row in document.table("label", "documents")) == 60


def test_hostile_documents_stay_text(hostile: Server) -> None:
    finished(hostile)
    paths = ["", "statistics", "?q=script", "?q=%3Cscript%3E", "?label=1", "?q=%00%1b"]
    paths += [f"document?row={row}" for row in range(len(HOSTILE))]
    paths += [f"document?row={row}&beside=lz78" for row in range(len(HOSTILE))]
    for path in paths:
        answer = asked(hostile, urlsplit(hostile.url).path + path)
        assert answer.status == 200
        assert len(answer.text) < 1_000_000  # a label of a million letters is cut
        assert not set(answer.text) & set("\0\x1b\a\u202e\u2066")
        document = page(hostile, path)
        tags = {tag for tag, _, _ in document.attributes}
        assert not {"script", "img", "b", "textarea"} & tags
        for _, name, value in document.attributes:
            assert not name.startswith("on")
            assert name not in ("href", "src") or not value.startswith("javascript")


def vast() -> Corpus:
    """One document of 10 million letters, and one of a million million."""
    text = compress("all work and no play makes jack a dull boy\n" * 232_559, "lzd")
    rules = [[97, 97], *([256 + k, 256 + k] for k in range(39))]
    vast = Grammars(256, rules, [0, 40], [295], [0, 1])
    both = Grammars.concatenate([text, vast])
    return Corpus.from_arrow(table_of(both, About(Codec("lzd"), Alphabet.bytes())))


@pytest.fixture(scope="module")
def large() -> Iterator[Server]:
    yield from served(vast())


def test_of_a_vast_document_a_part_is_shown(large: Server) -> None:
    first = page(large, "document?row=0")
    assert "Letters 0 to 2,000 of 10,000,037" in first.text
    middle = page(large, "document?row=0&first=5000000")
    assert "Letters 5,000,000 to 5,002,000 of 10,000,037" in middle.text
    text = "all work and no play makes jack a dull boy\n" * 100
    assert text[5_000_000 % 43 :][:2000] in middle.text
    assert "is not compressed anew" in page(large, "document?row=0&beside=repair").text
    far = page(large, f"document?row=1&first={1 << 39}")
    assert "a" * 2000 in far.text
    assert "All of this is within" in far.text


@pytest.mark.parametrize(("length", "end"), [(2000, 0), (3000, 0), (3001, 2000), (9000, 2000)])
def test_a_few_last_lines_have_no_page_of_their_own(length: int, end: int) -> None:
    explorer = Explorer(Library(Corpus.from_documents([f"{'word ' * length}"[:length]]), "x"))
    page = explorer.reply("document", {"row": "0"}).body
    assert (f"Letters 0 to {end:,} of {length:,}" in page) == bool(end)
    assert ("Next letters" in page) == bool(end)


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_pages_in_a_browser(browser: Any, plain: Server, width: int) -> None:
    finished(plain)
    for path in ("", "?q=the", "document?row=3", "document?row=3&beside=lzd", "statistics", "x"):
        opened(browser, plain.url + path, width)
        log = browser.get_log("browser")
        assert [line for line in log if "404" not in line["message"] or path != "x"] == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(OUTSIDE, width) == []
        assert browser.execute_script(COVERED) == []


_RUNS = "return document.querySelectorAll('img, script').length"
_PANEL = "return document.getElementById('phrase').innerText"
_SAME = "return [...document.querySelectorAll('.phrases .same')].map(each => each.textContent)"


@pytest.mark.browser
def test_pointing_at_a_phrase_tells_of_it(browser: Any, plain: Server) -> None:
    webdriver = pytest.importorskip("selenium.webdriver")
    opened(browser, plain.url + "document?row=3", 1280)
    assert "Point at a phrase" in browser.execute_script(_PANEL)
    phrase = browser.find_element("css selector", ".phrases > span")
    webdriver.ActionChains(browser).move_to_element(phrase).perform()
    chosen = browser.execute_script("return document.querySelector('.chosen')")
    name, text = chosen.get_attribute("data-rule"), chosen.get_attribute("textContent")
    told = browser.execute_script(_PANEL)
    assert name[1:] in told
    assert repr(text) in told
    assert set(browser.execute_script(_SAME)) == {text}
    assert browser.get_log("browser") == []


_COVERS = """
const panel = document.getElementById("phrase").getBoundingClientRect();
const text = document.querySelector(".phrases").getBoundingClientRect();
return panel.top < text.bottom && panel.bottom > text.top;
"""


@pytest.mark.browser
def test_on_a_phone_the_panel_comes_when_a_phrase_is_tapped(browser: Any, plain: Server) -> None:
    opened(browser, plain.url + "document?row=3", 390)
    # At the first lines of the text, all of it can be read.
    browser.execute_script("document.querySelector('.phrases').scrollIntoView({block: 'end'})")
    browser.execute_script("window.scrollBy(0, -100)")
    assert browser.execute_script(_COVERS) is False
    browser.execute_script("document.querySelector('.phrases > span').click()")
    assert browser.execute_script(_COVERS) is True, "it is where one looks, over the last lines"
    assert "stands for" in browser.execute_script(_PANEL)


@pytest.mark.browser
def test_arrow_keys_go_through_phrases(browser: Any, plain: Server) -> None:
    keys = pytest.importorskip("selenium.webdriver").Keys
    opened(browser, plain.url + "document?row=3", 390)
    focused = "return document.activeElement.dataset.rule ? document.activeElement.textContent : ''"
    text = browser.find_element("css selector", ".phrases")
    browser.execute_script("arguments[0].focus()", text)

    def press(key: str) -> str:
        browser.switch_to.active_element.send_keys(key)
        return str(browser.execute_script(focused))

    whole = CELLS.replace("innerText.trim()", "textContent")
    tops = browser.execute_script(whole, ".phrases > span")
    assert press(keys.ARROW_RIGHT) == tops[0]
    assert press(keys.ARROW_RIGHT) == tops[1]
    assert press(keys.ARROW_LEFT) == tops[0]
    assert press(keys.END) == tops[-1]
    assert press(keys.HOME) == tops[0]
    long = next(k for k, top in enumerate(tops) if len(top) > 2)
    for _ in range(long):
        press(keys.ARROW_RIGHT)
    inner = press(keys.ARROW_DOWN)
    assert inner in tops[long]
    assert len(inner) < len(tops[long])
    assert repr(inner) in browser.execute_script(_PANEL)
    assert press(keys.ARROW_UP) == tops[long]
    assert press(keys.ESCAPE) == ""
    assert "Point at a phrase" in browser.execute_script(_PANEL)
    assert browser.get_log("browser") == []


@pytest.mark.browser
def test_a_search_is_typed_and_a_document_opened(
    browser: Any, plain: Server, texts: list[str]
) -> None:
    opened(browser, plain.url, 390)
    word = max(texts[40].split(), key=len)
    browser.find_element("name", "q").send_keys(word)
    browser.find_element("css selector", "form[role=search] button").click()
    # A click returns before the next page is there, if the machine is busy.
    wait = pytest.importorskip("selenium.webdriver.support.ui").WebDriverWait(browser, 60)
    found = wait.until(lambda _: browser.execute_script(CELLS, ".documents mark"))
    assert word.lower() in {each.lower() for each in found}
    browser.find_element("css selector", ".documents a").click()
    wait.until(lambda _: browser.title.startswith("Document "))
    assert browser.get_log("browser") == []


@pytest.mark.browser
def test_hostile_documents_stay_text_in_a_browser(browser: Any, hostile: Server) -> None:
    for row in range(len(HOSTILE)):
        for width in (390, 1280):
            opened(browser, f"{hostile.url}document?row={row}&beside=lzd", width)
            assert browser.execute_script(_RUNS) == 1
            assert browser.execute_script("return document.documentElement.scrollWidth") <= width
            assert browser.execute_script(OUTSIDE, width) == []
    for path in ("", "statistics", "?q=%3Cscript%3E"):
        opened(browser, hostile.url + path, 390)
        assert browser.execute_script(_RUNS) == 0
        assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
        assert browser.execute_script(OUTSIDE, 390) == []
    assert browser.get_log("browser") == []


@pytest.mark.browser
def test_a_document_of_ten_million_letters_in_a_browser(browser: Any, large: Server) -> None:
    opened(browser, f"{large.url}document?row=0&first=9990000", 390)
    shown = browser.execute_script("return document.querySelector('.phrases').textContent.length")
    assert shown == 2000
    assert browser.execute_script("return document.querySelectorAll('*').length") < 20_000
    assert browser.get_log("browser") == []
