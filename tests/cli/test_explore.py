"""laconic explore: pages that are files, and a server until somebody has seen enough."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from pages import CELLS, COVERED, OUTSIDE, Document, opened

from laconic import Corpus
from laconic.cli import app
from laconic.errors import LaconicError

GOLDEN = Path(__file__).parents[1] / "golden/v3"
TEXT = "how much wood would a woodchuck chuck\nif a woodchuck could <b>chuck</b> wood\n"


def laconic(*words: str | Path) -> None:
    app([str(word) for word in words], exit_on_error=False, result_action="return_value")


def read(path: Path) -> Document:
    text = re.sub(r"<script>.*?</script>", "", path.read_text("utf-8"), flags=re.DOTALL)
    return Document(text)


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "wood.txt"
    path.write_text(TEXT)
    return path


def test_a_text_file_is_one_document_on_one_page(document: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    laconic("explore", document, "-o", out, "--beside", "lzd")
    page = read(out)
    assert page.text.count(TEXT) == 2
    rules = [table[1][:2] for table in page.tables if table[0][:2] == ["symbol", "whose"]]
    assert [whose for _, whose in rules] == ["private", "private"]
    assert "in the corpus" not in page.text  # there is none
    for _, name, value in page.attributes:
        assert name not in ("href", "src", "action") or value.startswith(("data:", "#"))
    assert "http" not in out.read_text("utf-8").replace("http-equiv", "")


def test_lines_are_documents_if_asked(document: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    laconic("explore", document, "-o", out, "--format", "lines", "--row", "1", "--codec", "lz78")
    page = read(out)
    assert "Document 1" in page.text
    assert "lz78" in page.text
    assert "in the corpus" in page.text
    assert "how much" not in page.text


def test_what_cannot_be_written_is_refused(document: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    laconic("explore", document, "-o", out)
    before = out.read_bytes()
    with pytest.raises(OSError, match="exists"):
        laconic("explore", document, "-o", out)
    laconic("explore", document, "-o", out, "--force")
    assert out.read_bytes() == before  # the same bytes again
    with pytest.raises(LaconicError, match=r"\.html"):
        laconic("explore", document, "-o", tmp_path / "page.txt")
    with pytest.raises(LaconicError, match="there is no document 1"):
        laconic("explore", document, "-o", tmp_path / "new.html", "--row", "1")
    with pytest.raises(LaconicError, match="--port"):
        laconic("explore", document, "--port", "70000")
    assert not (tmp_path / "new.html").exists()


def test_a_page_with_what_a_run_says(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "page.html"
    laconic("explore", GOLDEN / "shared.parquet", "--run", GOLDEN / "run", "-o", out, "--row", "3")
    page = read(out)
    assert "Prediction" in page.headings
    assert "Strongest words" in page.headings
    assert "a rulebook’s phrase" in page.text
    said = json.loads((GOLDEN / "predictions.jsonl").read_text().splitlines()[3])
    assert f"{100 * said['p(law)']:.1f} %" in page.text
    assert f"{100 * said['p(gospels)']:.1f} %" in page.text


def test_a_run_shows_what_it_was_trained_on(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    run, out = tmp_path / "run", tmp_path / "page.html"
    shutil.copytree(GOLDEN / "run", run)
    about = json.loads((run / "about.json").read_text())
    about["corpus"]["path"] = str(tmp_path / "gone.parquet")
    (run / "about.json").write_text(json.dumps(about))
    with pytest.raises(LaconicError, match=r"gone\.parquet, which .* was trained on, is not there"):
        laconic("explore", run, "-o", out)
    shutil.copy(GOLDEN / "shared.parquet", tmp_path / "gone.parquet")
    laconic("explore", run, "-o", out)
    assert "Prediction" in read(out).headings
    other = tmp_path / "other.parquet"
    Corpus.from_documents(["another rulebook"]).write(other)
    with pytest.raises(LaconicError, match="the model was trained with"):
        laconic("explore", other, "--run", run, "-o", tmp_path / "no.html")


def test_nothing_but_a_run_needs_torch() -> None:
    code = "import sys, laconic.cli.explore, laconic.explore.server; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_serves_until_it_is_stopped(document: Path) -> None:
    command = [sys.executable, "-m", "laconic", "explore", str(document)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", url)
        with urllib.request.urlopen(f"{url}document?row=0", timeout=60) as answer:
            assert "woodchuck" in answer.read().decode()
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told) == (130, "laconic: stopped\n")


@pytest.mark.browser
@pytest.mark.parametrize("width", [390, 1280])
def test_a_page_that_is_a_file_in_a_browser(
    browser: Any, document: Path, tmp_path: Path, width: int
) -> None:
    laconic("explore", document, "-o", tmp_path / "page.html", "--beside", "lzd")
    opened(browser, (tmp_path / "page.html").as_uri(), width)
    phrase = browser.find_element("css selector", ".phrases > span")
    browser.execute_script("arguments[0].click()", phrase)
    told = browser.execute_script("return document.getElementById('phrase').innerText")
    assert repr(phrase.get_attribute("textContent")) in told
    assert browser.execute_script(CELLS, "h3")[0].startswith("repair: ")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(OUTSIDE, width) == []
    assert browser.execute_script(COVERED) == []
    assert browser.get_log("browser") == []
