"""laconic explore: documents and their grammars in a browser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from laconic.cli.flags import Device, Force, InputPaths, Label, MaybeOut, OnError, Reading
from laconic.cli.inputs import (
    LeftOut,
    ReadingFlags,
    column,
    naming_the_flag,
    open_inputs,
    trained_on,
)
from laconic.codecs import CodecName
from laconic.errors import InputError, needs
from laconic.files import check_output, spare_inputs, write_text

if TYPE_CHECKING:
    from laconic.corpus import Corpus
    from laconic.explore.answers import Answers
    from laconic.explore.library import Library

_LETTERS = 16_000  # of a document, on a page that is a file
_RUN = "The run whose model is asked about each document."


def explore(
    inputs: InputPaths,
    /,
    *,
    run: Annotated[Path | None, Parameter(help=_RUN)] = None,
    out: MaybeOut = None,
    row: int = 0,
    beside: str = "",
    codec: CodecName | None = None,
    port: int = 0,
    reading: Reading = None,
    label: Label = None,
    on_error: OnError = None,
    device: Device = "auto",
    force: Force = False,
) -> None:
    """Look at documents and their grammars in a browser: phrases, rules, levels, predictions.

    laconic explore reviews.parquet

    laconic explore runs/reviews

    laconic explore new.csv --text text --run runs/reviews

    laconic explore doc.txt -o page.html

    It prints the address of a page that only this machine can open, until Ctrl-C. A run shows the
    documents that it was trained on, where they still are. A .txt is one document here, unless
    --format says otherwise.

    Parameters
    ----------
    out
        An .html page to write instead, about one document; it needs no other file.
    row
        With -o, the document, from 0.
    beside
        With -o, another codec to be shown beside it.
    codec
        How raw files are compressed; as the run's, if there is one, or by Re-Pair.
    port
        The port of the page; 0 is any that is free.

    """
    if out is not None:
        if out.suffix.lower() not in (".html", ".htm"):
            raise InputError(f"-o {out}: a page is an .html file")
        check_output(out, force=force)
    if not 0 <= port < 1 << 16:
        raise InputError(f"--port must be from 0 to 65535, not {port}")
    if len(inputs) == 1 and (Path(inputs[0]) / "config.json").is_file() and run is None:
        run = Path(inputs[0])
        inputs, label = trained_on(run, label, f"name documents, and --run {run}")
    corpus, files = _opened(inputs, run, reading, label, on_error, codec)
    from laconic.explore.library import Library

    library = Library(corpus, ", ".join(inputs))
    answers = None
    if run is not None:
        with needs("a run", "train"):
            from laconic.explore.answers import Answers

        answers = Answers(run, library, device)
    if out is not None:
        spare_inputs(out, files)
        write_text(out, _page(library, row, beside, answers), replace=force)
        print(out)
    else:
        _serve(library, answers, port)


@naming_the_flag()
def _opened(
    inputs: list[str],
    run: Path | None,
    reading: ReadingFlags | None,
    label: str | None,
    on_error: OnError,
    codec: str | None,
) -> tuple[Corpus, list[str]]:
    """Return the corpus that was given, or one in memory of raw files; and which files it is of."""
    from laconic.codecs import Codec
    from laconic.corpus import Corpus

    alike: Any = None
    if run is not None:
        with needs("a run", "train"):
            from laconic.training.run import Run

        alike = Run.open(run)
    before = {} if alike is None else alike.about.get("corpus", {})
    flags, left_out = reading or ReadingFlags(), LeftOut.wanted(on_error, before)
    texts = all(each.lower().endswith(".txt") for each in inputs)
    if texts and flags.format is None and flags.lines == 1:
        flags = replace(flags, format="files")
    # One without a label can be looked at; but a run that left it out did not learn from it.
    labelled = left_out is not None and label is not None
    options: dict[str, Any] = {"label": column(label), "labelled": labelled}
    opened = open_inputs(inputs, flags, before, left_out, **options)
    if opened.documents is None:
        return cast("Corpus", opened.corpus), opened.files
    how = Codec(codec) if codec else alike.codec if alike else Codec()
    book, letters = (alike.rulebook, alike.alphabet) if alike else (None, None)
    corpus = Corpus.from_raw(opened.documents, how, letters, book, left_out=left_out)
    if left_out is not None:
        left_out.tell(corpus, ", ".join(inputs))
    return corpus, opened.files


def _page(library: Library, row: int, beside: str, answers: Answers | None) -> str:
    from laconic.explore.counts import Counts
    from laconic.explore.document_page import View, document_page

    entry = library.entry(row)
    counts = None
    if len(library) > 1:
        counts = Counts(library.corpus)
        counts.count()
    said = None if answers is None else answers.about(entry, why=True)
    view = View(beside=beside, alone=True, window=_LETTERS)
    return document_page(library, entry, view, counts, said)


def _serve(library: Library, answers: Answers | None, port: int) -> None:
    from laconic.explore.server import Explorer, Server

    with Server(Explorer(library, answers), port) as server:
        print(f"{server.url}\nOpen it in a browser on this machine; Ctrl-C ends it.", flush=True)
        server.serve_forever()
