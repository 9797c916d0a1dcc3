"""Explanations: against slow obvious versions, on every model, and safe on a page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import Alphabet, AlphabetError, Codec, Corpus, Grammars, compress, samples
from laconic.batching import collate
from laconic.cli import app
from laconic.inference.explanation import Explanation, explain, top_phrases
from laconic.inference.phrase_table import Phrase
from laconic.inference.predictor import Predictor
from laconic.inference.top_words import Sides, TopWords
from laconic.nn import GrammarModel
from laconic.nn.composers import COMPOSERS
from laconic.nn.config import ModelConfig
from laconic.report.explanation_page import document_page, side_by_side, words_page
from laconic.tasks import Classification, Multilabel, Regression
from laconic.training.run import Run, RunError, about_corpus
from laconic.training.settings import TrainingConfig

TEXT = samples.load("kjv").test.documents[3][:150]
SHORT = [text[:100] for text in samples.load("kjv").test.documents[:12]]
CLASSES = ("gospels", "law", "poetry")
TASKS = {
    "classification": Classification(CLASSES),
    "multilabel": Multilabel(CLASSES),
    "regression": Regression(mean=3.0, std=2.0),
}


def make_predictor(task: str = "classification", **settings: Any) -> Predictor:
    """In float64, so that slow versions agree to many digits."""
    torch.manual_seed(1)
    sizes: dict[str, Any] = {"alphabet_size": 256, "embedding_size": 8, "width": 8, "task": task}
    meant = TASKS[task]
    model = GrammarModel(ModelConfig(outputs=meant.outputs, **sizes | settings)).double()
    alphabet = Alphabet.dna() if model.config.alphabet_size == 4 else Alphabet.bytes()
    return Predictor(model, meant, Codec(), alphabet, "cpu")


def slow_value(predictor: Predictor, outputs: Any, target: str) -> float:
    row = outputs[0].tolist()
    if predictor.task.name == "regression":
        return float(row[0] * predictor.task.std + predictor.task.mean)
    place = CLASSES.index(target)
    if predictor.task.name == "multilabel":
        return float(row[place])
    others = [value for k, value in enumerate(row) if k != place]
    return float(row[place] - sum(others) / len(others))


def slow_scores(predictor: Predictor, text: str, target: str) -> list[float]:
    """How the value changes when the vector of one symbol grows, by central differences."""
    batch = collate(Grammars.concatenate([compress(text)]))
    scores, step = [], 1e-5
    with predictor.forward.evaluating(), torch.no_grad():
        inputs = predictor.model.inputs(batch)
        for place in range(batch.symbols.shape[1]):
            found = []
            for factor in (1 + step, 1 - step):
                changed = inputs.clone()
                changed[:, place] *= factor
                outputs = predictor.model.read(changed, batch)
                found.append(slow_value(predictor, outputs, target))
            scores.append((found[0] - found[1]) / (2 * step))
    return scores


@pytest.mark.parametrize("task", TASKS)
def test_gradients_are_slopes(task: str) -> None:
    predictor = make_predictor(task)
    target = None if task == "regression" else "law"
    found = explain(predictor, TEXT, target, "gradient")
    scores = [piece.score for piece in found.pieces]
    assert scores == pytest.approx(slow_scores(predictor, TEXT, "law"), abs=1e-8)
    assert max(map(abs, scores)) > 1e-4
    assert found.target == target
    with predictor.forward.evaluating(), torch.no_grad():
        outputs = predictor.model(collate(Grammars.concatenate([compress(TEXT)])))
    assert found.value == pytest.approx(slow_value(predictor, outputs, "law"))
    assert found.prediction == pytest.approx(predictor.predict([TEXT])[0])


@pytest.mark.parametrize("composer", sorted(COMPOSERS))
@pytest.mark.parametrize("sequence_model", ["lstm", "gru", "rnn", "cnn", "transformer"])
def test_integrated_scores_add_up(composer: str, sequence_model: str) -> None:
    predictor = make_predictor(
        composer=composer, sequence_model=sequence_model, identity_buckets=50, pooling="mean"
    )
    found = explain(predictor, TEXT[:80], "poetry", "integrated", steps=64)
    scores = [piece.score for piece in found.pieces]
    assert abs(found.value - found.base) > 1e-3
    assert sum(scores) == pytest.approx(found.value - found.base, rel=2e-3)
    assert max(map(abs, scores)) > 1e-4


@pytest.mark.parametrize("pooling", ["max", "attention", "last", "length_mean"])
def test_they_add_up_with_every_pooling(pooling: str) -> None:
    predictor = make_predictor("regression", pooling=pooling)
    predictor.forward.budget = 1000  # steps in several batches
    found = explain(predictor, TEXT[:80], method="integrated", steps=128)
    scores = [piece.score for piece in found.pieces]
    allowed = 1e-3 * sum(map(abs, scores))
    assert 0 < allowed < 0.1 * abs(found.value - found.base)
    assert sum(scores) == pytest.approx(found.value - found.base, abs=allowed)
    assert found.probabilities is None
    assert found.value == pytest.approx(predictor.predict([TEXT[:80]])[0])


@settings(max_examples=60)
@given(st.text("aé∑😀 b", max_size=30), st.sampled_from(["repair", "lz78", "none"]))
def test_pieces_are_the_document(text: str, codec: Any) -> None:
    predictor = make_predictor(composer="mlp")
    predictor.codec = Codec(codec)
    grammar = compress(text, codec)
    found = explain(predictor, text)
    assert found.text == text
    assert [piece.symbol for piece in found.pieces] == grammar.sequence.tolist()
    end = 0
    for piece in found.pieces:
        assert piece.offset == end
        end += piece.length
        assert (piece.rule is None) == (piece.symbol < 256)
        assert piece.rule is None or "".join(piece.rule) == piece.text
    assert end == len(text.encode())
    assert sum(phrase.count for phrase in found.phrases()) == len(found.pieces)


def test_documents_without_text_or_that_are_none() -> None:
    predictor = make_predictor()
    for method in ("gradient", "integrated"):
        found = explain(predictor, "", method=method)  # type: ignore[arg-type]
        assert found.pieces == ()
        assert found.value == pytest.approx(found.base)
        assert found.prediction == predictor.predict([""])[0]
    assert explain(predictor, b"\xff\x80\x80\x80\x80\x80a").text.endswith("a")
    assert explain(predictor, compress(TEXT)) == explain(predictor, TEXT)


def test_what_cannot_be_explained() -> None:
    predictor = make_predictor()
    with pytest.raises(ValueError, match="no class 'psalms'; there are 'gospels'"):
        explain(predictor, TEXT, "psalms")
    with pytest.raises(ValueError, match="no method 'lime'; there are gradient, integrated"):
        explain(predictor, TEXT, method="lime")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="steps must be at least 1"):
        explain(predictor, TEXT, steps=0)
    with pytest.raises(TypeError, match="text or bytes, not int"):
        explain(predictor, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="leave the target out"):
        explain(make_predictor("regression"), TEXT, "law")
    with pytest.raises(AlphabetError, match="position 1: 'X'"):
        explain(make_predictor(alphabet_size=4), "AX")
    with pytest.raises(ValueError, match="per_class=0"):
        top_phrases(predictor, SHORT, per_class=0)


# All documents.


def slow_top(predictor: Predictor, texts: list[str], target: str | None) -> dict[str, Any]:
    found: dict[str, list[float]] = {}
    for text in texts:
        for piece in explain(predictor, text, target, "gradient").pieces:
            found.setdefault(piece.text, []).append(piece.score)
    return {text: (sum(some) / len(some), len(some)) for text, some in found.items()}


@pytest.mark.parametrize("task", ["classification", "multilabel", "regression"])
def test_top_phrases(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.inference.predictor._CHUNK", 7)
    predictor = make_predictor(task)
    predictor.forward.batch_size = 4
    lists = top_phrases(predictor, SHORT, per_class=10, min_count=3)
    names = ["higher", "lower"] if task == "regression" else list(CLASSES)
    assert list(lists) == names
    for name, phrases in lists.items():
        expected = slow_top(predictor, SHORT, None if task == "regression" else name)
        sign = -1 if name == "lower" else 1
        often = {text: mean for text, (mean, count) in expected.items() if count >= 3}
        best = [m for m in sorted(often.values(), key=lambda mean: -sign * mean) if sign * m > 0]
        assert [phrase.score for phrase in phrases] == pytest.approx(best[:10], abs=1e-9)
        assert len(phrases) > 3
        for phrase in phrases:
            assert expected[phrase.text] == (pytest.approx(phrase.score), phrase.count)
    corpus = Corpus.from_documents(SHORT)
    again = top_phrases(predictor, corpus, per_class=10, min_count=3)
    assert [[p.text for p in some] for some in again.values()] == [
        [p.text for p in some] for some in lists.values()
    ]


def test_rare_phrases_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("laconic.inference.phrase_table._MOST_PHRASES", 40)
    monkeypatch.setattr("laconic.inference.predictor._CHUNK", 4)
    lists = top_phrases(make_predictor(), SHORT, per_class=100, min_count=1)
    kept = {phrase.text for some in lists.values() for phrase in some}
    assert 10 < len(kept) <= 40
    assert "e" in kept


# Pages and the command.


def make_run(folder: Path, predictor: Predictor) -> Path:
    about = about_corpus(predictor.codec, predictor.alphabet)
    Run.create(folder, TrainingConfig(), {"labels": predictor.task.to_json(), **about})
    predictor.model.float().save_pretrained(folder / "model")
    return folder


def laconic(*words: str | Path) -> None:
    line = ["explain", *map(str, words), "--device", "cpu"]
    app(line, exit_on_error=False, result_action="return_value")


def page_text(page: str) -> str:
    (body,) = re.findall(r'<div class="document[a-z ]*">(.*?)</div>', page, re.DOTALL)
    return unescape(re.sub(r"<[^>]*>", "", body))


HOSTILE = "<script>alert(\"1\")</script> & 'quoted' <img src=x onerror=alert(1)> \x1b[31m\x00"


def test_pages_are_safe(tmp_path: Path) -> None:
    predictor = make_predictor()
    hostile = Classification(("<b>a</b>", '"><script>', "c"))
    predictor.task = hostile
    page = document_page(explain(predictor, HOSTILE), "<script>.csv", 20)
    words = Sides([Phrase(HOSTILE, 1.0, 5, "word")], [])
    lists = words_page(TopWords("word", {HOSTILE: words}, {}, 3), "<script>.csv")
    for each in (page, lists):
        assert "Content-Security-Policy" in each
        assert "default-src &#x27;none&#x27;" in each
        assert "<script" not in each
    lowered = page.lower()
    assert "<script" not in lowered
    assert "<img" not in lowered
    assert "<b>" not in lowered
    assert "\x1b" not in page
    assert "\x00" not in page
    assert page_text(page) == HOSTILE.replace("\x1b", "␛").replace("\x00", "␀")
    # Nothing is fetched from elsewhere.
    assert not re.search(
        r"(src|href)\s*=(?!\"data:)|url\(|@import", re.sub(r">[^<]*<|title=\"[^\"]*\"", "", page)
    )


def test_of_two_classes_what_is_against_one_is_not_listed_again() -> None:
    good, bad = Phrase("good", 1.0, 5, "word"), Phrase("bad", 0.5, 9, "word")
    against = [replace(each, score=-each.score) for each in (good, bad)]
    of = {"+": Sides([good], [against[1]]), "-": Sides([bad], [against[0]])}
    lists = side_by_side(TopWords("word", of, {}, 3))
    assert lists == [[("for +", [good]), ("for -", [bad])]]
    page = words_page(TopWords("word", of, {}, 3), "a.csv")
    assert "Words that speak for each class" in page
    assert page.count(">good<") == page.count(">bad<") == 1
    # Of labels each is by itself, and of three classes what is against one is of two others.
    of["-"] = Sides([bad], [])
    titles = [title for pair in side_by_side(TopWords("word", of, {}, 3)) for title, _ in pair]
    assert titles == ["for +", "against +", "for -", "against -"]


def test_equal_texts_that_are_counted_twice_are_told_apart() -> None:
    rude = Phrase(" rude", 1.0, 1, "phrase")
    found = explain(make_predictor(), "so rude")
    page = document_page(replace(found, ngrams=(rude, replace(rude, kind="ngram"))), "a.csv", 20)
    assert "&#x27; rude&#x27; <small>of symbols</small>" in page
    assert "&#x27; rude&#x27; <small>of letters</small>" in page
    page = document_page(replace(found, ngrams=(rude,)), "a.csv", 20)
    assert "<small>" not in page
    assert ">n-gram</th>" not in page
    page = document_page(replace(found, ngrams=(replace(rude, kind="ngram"),)), "a.csv", 20)
    assert ">n-gram</th>" in page


def test_an_explanation_is_a_line_at_a_prompt() -> None:
    found = explain(make_predictor(), "so so " * 300 + "and a \x1b[31mword")
    shown = repr(found)
    assert shown.startswith(
        f"<Explanation of {found.prediction!r}, {found.probabilities[found.prediction]:.1%}: "
    )
    first = found.words()[0]
    assert f"{first.text} {first.score:+.2f}, " in shown
    assert len(shown) < 300
    assert "\x1b" not in shown


def test_a_page_says_what_scores_are() -> None:
    found = explain(make_predictor(), "so so", target=make_predictor().task.classes[1])
    page = unescape(document_page(found, "a.csv, row 3", 20))
    assert f"adds to the model's output for “{found.target}”: {found.value:.4g} here" in page
    assert "all scores add up to the difference" in page


def test_letters_of_code_and_dna_line_up() -> None:
    code = "for (int i = 0; i < n; ++i) { sum += x[i]; }\n" * 3
    dna = make_predictor(alphabet_size=4)
    for predictor, text, look in (
        (make_predictor(), TEXT, "document"),
        (make_predictor(), code, "document fixed"),
        (dna, "ACGT" * 30, "document fixed"),
    ):
        page = document_page(explain(predictor, text), "x", 20)
        assert f'<div class="{look}">' in page


def test_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", make_predictor())
    new = tmp_path / "new.jsonl"
    new.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*SHORT, ""]))
    out = tmp_path / "why.html"
    laconic(folder, new, "--row", "3", "-o", out, "--method", "integrated", "--json")
    told = json.loads(capsys.readouterr().out)
    assert "".join(piece["text"] for piece in told["pieces"]) == SHORT[3]
    assert sum(piece["score"] for piece in told["pieces"]) == pytest.approx(
        told["value"] - told["base"], rel=0.05, abs=1e-3
    )
    assert sum(told["probabilities"].values()) == pytest.approx(1)
    page = out.read_text()
    assert page_text(page) == SHORT[3]
    assert f"Prediction: {told['prediction']}" in page
    strongest = max(told["spans"], key=lambda word: abs(word["score"]))
    assert f"score {strongest['score']:+.4f}" in page

    laconic(folder, new, "--row", "3")
    printed = capsys.readouterr().out
    assert SHORT[3] in printed
    assert f"prediction: {told['prediction']}" in printed
    laconic(folder, new, "--row", str(len(SHORT)), "--target", "poetry")
    assert "'poetry'" in capsys.readouterr().out
    corpus = tmp_path / "new.parquet"
    Corpus.from_documents(SHORT).write(corpus)
    laconic(folder, corpus, "--row", "3", "--method", "integrated", "--json")
    again = json.loads(capsys.readouterr().out)
    # A corpus numbers rules in another order.
    assert [piece["rule"] for piece in again["pieces"]] == [p["rule"] for p in told["pieces"]]
    assert [piece["score"] for piece in again["pieces"]] == pytest.approx(
        [piece["score"] for piece in told["pieces"]], abs=1e-6
    )


def test_all_documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = make_run(tmp_path / "run", make_predictor())
    corpus, out = tmp_path / "new.parquet", tmp_path / "top.html"
    Corpus.from_documents(SHORT).write(corpus)
    laconic(folder, corpus, "--top", "4", "--min-count", "2", "--json", "-o", out)
    told = json.loads(capsys.readouterr().out)
    assert (told["kind"], told["documents"]) == ("word", len(SHORT))
    assert list(told["of"]) == list(CLASSES)
    lists = [side for sides in told["of"].values() for side in sides.values()]
    assert len(lists) == 6
    assert all(len(words) == 4 for words in lists)
    page = unescape(out.read_text())
    for words in lists:
        assert all(f"{each['score']:+.4f}" in page and each["text"] in page for each in words)
    for name in CLASSES:
        assert f"<h2>for {name}</h2>" in page
        assert f"<h2>against {name}</h2>" in page
    lines = tmp_path / "new.txt"
    lines.write_text("\n".join(SHORT) + "\n")
    laconic(folder, lines, "--top", "4", "--min-count", "2", "--documents", "50")
    printed = capsys.readouterr().out
    assert f"words of {len(SHORT)} documents" in printed
    assert all(f"for {name}" in printed and f"against {name}" in printed for name in CLASSES)
    assert all(f"{each['score']:+.4f}" in printed for words in lists for each in words)
    for source in (lines, corpus):
        laconic(folder, source, "--top", "4", "--min-count", "1", "--documents", "5", "--json")
        assert json.loads(capsys.readouterr().out)["documents"] == 5


def test_bad_input(tmp_path: Path) -> None:
    predictor = make_predictor(alphabet_size=4)
    folder = make_run(tmp_path / "run", predictor)
    reads = tmp_path / "reads.txt"
    reads.write_text("ACGT\nACXT\n")
    out = tmp_path / "why.html"
    with pytest.raises(IndexError, match=r"there is no row 5: .*reads\.txt has 2 rows, from 0"):
        laconic(folder, reads, "--row", "5", "-o", out)
    with pytest.raises(AlphabetError, match="document 1, position 2: 'X' is not in"):
        laconic(folder, reads, "--row", "1", "-o", out)
    with pytest.raises(AlphabetError, match="document 1, position 2: 'X' is not in"):
        laconic(folder, reads, "--top", "5", "-o", out)
    with pytest.raises(RunError, match="does not exist"):
        laconic(tmp_path / "gone", reads, "--row", "0")
    with pytest.raises(FileNotFoundError, match="no such file"):
        laconic(folder, tmp_path / "gone.csv", "--row", "0")
    with pytest.raises(ValueError, match="choose one"):
        laconic(folder, reads, "--row", "0", "--top", "3")
    with pytest.raises(ValueError, match="--row must be at least 0, not -1"):
        laconic(folder, reads, "--row", "-1")
    with pytest.raises(ValueError, match=r"an explanation is an \.html file"):
        laconic(folder, reads, "-o", tmp_path / "why.pdf")
    with pytest.raises(ValueError, match="no class 'x'"):
        laconic(folder, reads, "--target", "x")
    assert not out.exists()
    out.write_text("mine")
    with pytest.raises(FileExistsError, match="or use --force"):
        laconic(folder, reads, "-o", out)
    assert out.read_text() == "mine"


def test_explanations_compare() -> None:
    found = explain(make_predictor(), TEXT)
    assert isinstance(found, Explanation)
    strongest = found.phrases()[0]
    assert abs(strongest.score) == max(abs(phrase.score) for phrase in found.phrases())
