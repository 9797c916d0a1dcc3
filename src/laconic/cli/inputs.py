"""Flags that say how raw files are read, the same in every command that reads them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from laconic.errors import InputError
from laconic.formats.registry import FormatName

if TYPE_CHECKING:
    from laconic.corpus import Corpus
    from laconic.corpus.inputs import Inputs
    from laconic.formats import ReadOptions
    from laconic.training.run import Run

_PART_BYTES = 1 << 20  # of text that are read at a time
_TEXT = (
    "The column of the text, by name or by position from 0; by default text, or the only one "
    "beside the label."
)
_DELIMITER = "What is between the fields of a CSV, if it is not its suffix's; \\t is a tab."
_ESCAPES = "In the text of a CSV, backslash and n stand for a newline, as in Zhang's data sets."
_LINES = "So many lines of plain text are a document."
_WITH_PATH = "The path of each document's file comes along, as the column path."
_LABEL_FROM_PATH = (
    "The label is a part of the path: folder, the one that the file is in; name, the file's without"
    " suffixes; or a regular expression, of which the first group."
)
_MAX_DOCUMENT = "Megabytes (2^20 bytes) that a document may have; longer ones are an error."
_LARGEST = 1024  # Arrow's offsets within a column end at 2 GiB.


@dataclass(frozen=True)
class ReadingFlags:
    """How raw files are read: flags of every command that reads them."""

    text: Annotated[str | None, Parameter(help=_TEXT)] = None
    format: Annotated[
        FormatName | None, Parameter(help="What the files are, if their names do not tell.")
    ] = None
    header: Annotated[bool, Parameter(help="Whether the first row of a CSV names the columns.")] = (
        True
    )
    delimiter: Annotated[str | None, Parameter(help=_DELIMITER)] = None
    escapes: Annotated[bool, Parameter(negative="", help=_ESCAPES)] = False
    lines: Annotated[int, Parameter(help=_LINES)] = 1
    with_path: Annotated[bool, Parameter(negative="", help=_WITH_PATH)] = False
    label_from_path: Annotated[str | None, Parameter(help=_LABEL_FROM_PATH)] = None
    max_document: Annotated[int, Parameter(help=_MAX_DOCUMENT)] = 64

    def options(self) -> ReadOptions:
        """Return these as the readers want them."""
        from laconic.formats import ReadOptions

        if not 1 <= self.max_document <= _LARGEST:
            reason = f"--max-document must be from 1 to {_LARGEST}, not {self.max_document}"
            raise InputError(reason)
        if self.lines < 1:
            raise InputError(f"--lines must be at least 1, not {self.lines}")
        return ReadOptions(
            format=self.format,
            text=column(self.text),
            header=self.header,
            delimiter="\t" if self.delimiter == r"\t" else self.delimiter,
            escapes=self.escapes,
            lines=self.lines,
            with_path=self.with_path,
            label_from_path=self.label_from_path,
            part_bytes=_PART_BYTES,
            max_document=self.max_document << 20,
        )


def open_inputs(
    inputs: list[str], reading: ReadingFlags | None, usual_text: str | None = None
) -> Inputs:
    """Return the corpus, or the raw documents, that a command was given.

    If there is a column `usual_text`, and nobody chose another, the documents are there.
    """
    from laconic.corpus import inputs as corpus_inputs

    options = replace((reading or ReadingFlags()).options(), usual_text=usual_text)
    return corpus_inputs.open_inputs(inputs, options)


def labelled_corpus(
    inputs: list[str],
    reading: ReadingFlags | None,
    label: str | None,
    like: Run | Corpus | None = None,
) -> Corpus:
    """Return the corpus that was given, or one in memory of raw files, whose labels are a column.

    It is compressed as `like` was, or else under a rulebook of its own. The column is by default
    that of `like`, or "label".
    """
    from laconic.codecs import Codec
    from laconic.corpus import Corpus
    from laconic.corpus import inputs as corpus_inputs
    from laconic.rulebook import Rulebook

    names: dict[str, Any] = {}
    if like is not None:
        about: Any = like.about  # of a run, JSON
        names = about.get("corpus", {}) if isinstance(about, dict) else asdict(about)
    options = (reading or ReadingFlags()).options()
    named = label or names.get("label")
    wanted = label if options.label_from_path is not None else named or "label"
    options = replace(options, usual_text=names.get("text"), label=column(wanted))
    opened = corpus_inputs.open_inputs(inputs, options)
    if opened.corpus is not None or opened.documents is None:
        corpus = cast(Corpus, opened.corpus)
        if label is None and (corpus.about.label or named not in corpus.columns):
            return corpus
        return corpus.labelled_by(cast(str, named))
    if like is not None:
        return Corpus.from_raw(opened.documents, like.codec, like.alphabet, like.rulebook)
    book = Rulebook.learn(opened.texts())
    return Corpus.from_raw(opened.documents, Codec(), rulebook=book or None)


def column(name: str | None) -> str | int | None:
    """Return a column by its name, or by its position if that is what was given."""
    return int(name) if name is not None and name.isdecimal() else name
