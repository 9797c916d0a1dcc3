"""laconic explain: the words that decided."""

from __future__ import annotations

import json
import sys
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from laconic.cli.flags import Device, Force, InputPaths, Json, MaybeOut, Reading, RunFolder
from laconic.cli.inputs import open_inputs
from laconic.cli.progress import tell
from laconic.errors import InputError, visible
from laconic.files import check_output, spare_inputs, write_text
from laconic.show import how_many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from laconic.corpus.inputs import Inputs
    from laconic.inference.explanation import Explanation, Method
    from laconic.inference.phrase_table import Phrase
    from laconic.inference.predictor import Predictor
    from laconic.inference.top_words import TopWords

_STRONGEST = 20  # words, and n-grams, of one document that are listed
_STEPS, _STEPS_OF_MANY = 32, 4
_DOCUMENTS = 2000
_MOST_CLASSES = 10  # whose probabilities are shown


def explain(
    run: RunFolder,
    inputs: InputPaths,
    /,
    *,
    row: int | None = None,
    top: int | None = None,
    out: MaybeOut = None,
    target: str | None = None,
    method: Literal["gradient", "integrated"] = "integrated",
    steps: int | None = None,
    min_count: int = 5,
    documents: int = _DOCUMENTS,
    reading: Reading = None,
    device: Device = "auto",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Show which words of a document decided, or which speak most for and against each class.

    What is counted adds exactly so much; what is read is told apart by gradients.

    laconic explain runs/reviews new.csv --row 3 -o why.html

    laconic explain runs/reviews reviews.csv --top 20 -o words.html

    Parameters
    ----------
    row
        The document to explain, from 0; by default the first.
    top
        List so many words for and against each class instead, of many documents; where there are
        no words, as in DNA, phrases.
    out
        An .html page to write, which needs no other file; by default all goes to the terminal.
    target
        The class to explain; by default the one predicted.
    method
        The scores of integrated add up to what the model says; gradient is faster.
    steps
        How many places on the way from nothing to the document integrated looks at; by default
        32, with --top 4.
    min_count
        With --top, how often a word must occur.
    documents
        With --top, how many documents are looked at; of more, random ones.

    """
    if row is not None and top is not None:
        raise InputError("--row explains one document, --top all of them: choose one")
    for name, value, least in (
        ("row", row, 0),
        ("top", top, 1),
        ("steps", steps, 1),
        ("min-count", min_count, 1),
        ("documents", documents, 1),
    ):
        if value is not None and value < least:
            raise InputError(f"--{name} must be at least {least}, not {value}")
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"-o {out}: an explanation is an .html file")
        check_output(out, force=force)
    from laconic.inference.predictor import Predictor

    predictor = Predictor.from_run(run, device)
    opened = open_inputs(inputs, reading, predictor.learned_from)
    if out is not None:
        spare_inputs(out, opened.files)
    if opened.corpus is not None:
        predictor.check_corpus(opened.corpus)
    source = ", ".join(inputs)
    if top is not None:
        from laconic.inference.top_words import top_words

        way = (steps or _STEPS_OF_MANY) if method == "integrated" else None
        words = top_words(predictor, opened.some(documents), top, min_count, way)
        if not any(sides.speaking_for or sides.against for sides in words.of.values()):
            told = f"{how_many(min_count, 'time')} in {how_many(words.documents, 'document')}"
            raise InputError(f"no {words.kind} occurs {told}; give more of them, or --min-count 1")
        _show_words(words, f"{source}, {run}", out, force, as_json)
    else:
        if row is None:
            row = 0
            tell("the first document; --row 1 is the second")
        found = _explained(predictor, opened, row, target, method, steps or _STEPS)
        _show(found, f"{source}, row {row}", out, force, as_json)


def _explained(
    predictor: Predictor, opened: Inputs, row: int, target: str | None, method: Method, steps: int
) -> Explanation:
    from laconic.alphabet import AlphabetError
    from laconic.grammar import Grammar
    from laconic.inference.explanation import explain

    document = opened.document(row)
    if not (document.expanded_length if isinstance(document, Grammar) else len(document)):
        told = f"the document in row {row} has no letter: what is predicted there is a guess"
        print(f"laconic: {told}", file=sys.stderr)
    try:
        return explain(predictor, document, _class(predictor, target), method, steps)
    except AlphabetError as error:
        raise error.at(document=row) from None


def _class(predictor: Predictor, target: str | None) -> Any:
    """Return the class that is spelled so; what is unknown stays as it is, to be refused."""
    spelled = {str(each): each for each in predictor.task.classes}
    return target if target is None else spelled.get(target, target)


def _show(found: Explanation, source: str, out: Path | None, force: bool, as_json: bool) -> None:
    if out is not None:
        from laconic.report.explanation_page import document_page

        write_text(out, document_page(found, source, _STRONGEST), replace=force)
    if as_json:
        print(json.dumps(found.to_json(), ensure_ascii=False))
    elif out is None:
        _print_document(found)
    else:
        from laconic.report.explanation_page import spelled
        from laconic.report.numbers import percent

        said, several = visible(spelled(found.prediction)), isinstance(found.prediction, list)
        sure = None if several else (found.probabilities or {}).get(found.prediction)
        print(f"{out}: {said}" + ("" if sure is None else f", {percent(sure)}"))


def _show_words(found: TopWords, source: str, out: Path | None, force: bool, as_json: bool) -> None:
    from laconic.report.explanation_page import words_page

    if out is not None:
        write_text(out, words_page(found, source), replace=force)
    if as_json:
        print(json.dumps(found.to_json(), ensure_ascii=False))
    elif out is None:
        _print_words(found)
    else:
        told = how_many(found.documents, "document")
        print(f"{out}: {found.kind}s for and against each class, of {told}")


def _print_words(found: TopWords) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from laconic.report.explanation_page import shared, shown, side_by_side, views

    console = Console(highlight=False)
    told = how_many(found.documents, "document")
    console.print(Text(f"{found.kind}s of {told}{views(found.shares)}"))
    console.print(Text("mean: what an occurrence adds to the model's output; many weigh more"))
    for pair in side_by_side(found):
        table = Table(box=None)
        for title, _ in pair:
            table.add_column("mean", justify="right")
            table.add_column("times", justify="right")
            table.add_column(Text(visible(title)))
        lists = [
            [(f"{each.score:+.4f}", f"{each.count:,}", shown(each) + shared(each)) for each in side]
            for _, side in pair
        ]
        for both in zip_longest(*lists, fillvalue=("", "", "")):
            table.add_row(*(Text(cell) for cells in both for cell in cells))
        console.print(Text(), table)


def _print_document(found: Explanation) -> None:
    from rich.console import Console
    from rich.text import Text

    from laconic.report.explanation_page import AT_PROMPT, GAP, excerpt, said_by, shade

    console = Console(highlight=False, soft_wrap=True)
    number = isinstance(found.prediction, float)
    said = f"{found.prediction:.6g}" if number else found.prediction
    console.print(Text(visible(f"prediction: {said}")))
    likely = sorted((found.probabilities or {}).items(), key=lambda each: -each[1])
    for name, probability in likely[:_MOST_CLASSES]:
        console.print(Text(visible(f"  {probability:6.1%}  {name}")))
    if more := len(likely[_MOST_CLASSES:]):
        console.print(Text(f"  and {how_many(more, 'class', 'classes')} less likely"))
    what = "a higher value" if found.target is None else repr(found.target)
    coloured = console.color_system is not None and not console.no_color
    told = f"blue speaks for {what}, red against it"
    if not coloured:
        told = f"scores above 0 speak for {what}, below 0 against it"
    console.print(Text(told + said_by(found)))
    words, left_out = excerpt(found.spans, AT_PROMPT)
    if left_out:
        console.print(Text(left_out))
    strongest = max((abs(word.score) for word in found.spans), default=0.0)
    text = Text()
    for word in words:
        if word is None:
            text.append(GAP)
            continue
        red, green, blue = shade(word.score, strongest)
        text.append(visible(word.text), style=f"black on rgb({red},{green},{blue})")
    console.print(text)
    _print_phrases("strongest words", found.words()[:_STRONGEST], "score", "word")
    if found.ngrams:
        _print_phrases("strongest n-grams", found.longer_ngrams()[:_STRONGEST], "score", "n-gram")


def _print_phrases(title: str, phrases: Sequence[Phrase], score: str, kind: str = "phrase") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from laconic.report.explanation_page import made_of, shared, shown

    table = Table(title=Text(visible(title)), title_justify="left", box=None)
    table.add_column(score, justify="right")
    table.add_column("times", justify="right")
    table.add_column(kind)
    for phrase, of in zip(phrases, made_of(phrases), strict=True):
        text = Text(shown(phrase) + shared(phrase))
        text.append(f"  of {of}" if of else "", style="dim")
        table.add_row(f"{phrase.score:+.4f}", f"{phrase.count:,}", text)
    Console(highlight=False).print(table)
