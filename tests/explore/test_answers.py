"""What a run's model says of documents in the explorer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="models need torch: laconic[train]")

from pages import Document

from laconic import Corpus, Rulebook
from laconic.errors import InputError
from laconic.explore.answers import Answers
from laconic.explore.frame import asset
from laconic.explore.library import Library
from laconic.explore.server import Explorer

GOLDEN = Path(__file__).parents[1] / "golden/v3"


@pytest.fixture(scope="module")
def explorer() -> Explorer:
    library = Library(Corpus.open(GOLDEN / "shared.parquet"), "golden")
    return Explorer(library, Answers(GOLDEN / "run", library, "cpu"))


def page(explorer: Explorer, **query: str) -> Document:
    explorer.counts.start = lambda: None  # type: ignore[method-assign]
    return Document(explorer.reply("document", query).body.replace(asset("script.js"), ""))


def test_a_prediction_and_on_demand_why(explorer: Explorer) -> None:
    lines = (GOLDEN / "predictions.jsonl").read_text().splitlines()
    for row in (0, 2, 27):
        said = json.loads(lines[row])
        document = page(explorer, row=str(row))
        text = document.text[: document.text.index("Why?")].rpartition("Prediction")[2]
        right = said["prediction"] == said["label"]
        its = "as its label says" if right else f"its label is {said['label']}"
        assert text.startswith(f"{said['prediction']} – {its}")
        assert f"{100 * said['p(law)']:.1f} %" in text
        # What a model says is what people came for: it is before grammars.
        assert document.headings.index("Prediction") < document.headings.index("Phrases")
        assert "Strongest words" not in document.headings
        assert ("a", "href", f"document?row={row}&explain=1#prediction") in document.attributes
    why = page(explorer, row="2", explain="1")
    assert "What spoke for “law”" in why.headings
    assert "Strongest words" in why.headings


def test_a_document_too_long_to_be_asked_about_is_shown_all_the_same(tmp_path: Path) -> None:
    book = Rulebook.load(GOLDEN / "run/rulebook.json")
    library = Library(Corpus.from_documents(["and " * 100_000], rulebook=book), "long")
    explorer = Explorer(library, Answers(GOLDEN / "run", library, "cpu"))
    for query in ({"row": "0"}, {"row": "0", "explain": "1"}):
        document = page(explorer, **query)
        assert "Letters 0 to 2,000 of 400,000" in document.text
        assert "Documents of more than 262,144 letters are not asked about." in document.text


def test_a_corpus_that_the_model_cannot_read_is_refused() -> None:
    library = Library(Corpus.from_documents(["no rulebook"]), "other")
    with pytest.raises(InputError, match="the model was trained with"):
        Answers(GOLDEN / "run", library, "cpu")
