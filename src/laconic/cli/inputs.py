"""Flags that say how raw files are read, the same in every command that reads them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from laconic.errors import InputError
from laconic.formats.registry import FormatName
from laconic.show import how_many

if TYPE_CHECKING:
    from laconic.corpus import Corpus
    from laconic.corpus.inputs import Inputs
    from laconic.formats import ReadError, ReadOptions
    from laconic.training.run import Run

_PART_BYTES = 1 << 20  # of text that are read at a time
_TEXT = (
    "The column of the text, by name or by position from 0; by default text, or the only one "
    "beside the label."
)
_DELIMITER = "What is between the fields of a CSV, if it is not its suffix's; \\t is a tab."
_HEADER = (
    "Whether the first row of a CSV names the columns; by default it does, but for a run that "
    "learned from files where it does not."
)
_ESCAPES = (
    "In the text of a CSV, backslash and n stand for a newline, as in Zhang's data sets; by "
    "default for a run that learned from such files."
)
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
    header: Annotated[bool | None, Parameter(help=_HEADER)] = None
    delimiter: Annotated[str | None, Parameter(help=_DELIMITER)] = None
    escapes: Annotated[bool | None, Parameter(help=_ESCAPES)] = None
    lines: Annotated[int, Parameter(help=_LINES)] = 1
    with_path: Annotated[bool, Parameter(negative="", help=_WITH_PATH)] = False
    label_from_path: Annotated[str | None, Parameter(help=_LABEL_FROM_PATH)] = None
    max_document: Annotated[int, Parameter(help=_MAX_DOCUMENT)] = 64

    def options(self, before: Mapping[str, Any] | None = None) -> ReadOptions:
        """Return these as the readers want them; what is not said, as a run's files `before`."""
        from laconic.formats import ReadOptions

        known = before or {}

        if not 1 <= self.max_document <= _LARGEST:
            reason = f"--max-document must be from 1 to {_LARGEST}, not {self.max_document}"
            raise InputError(reason)
        if self.lines < 1:
            raise InputError(f"--lines must be at least 1, not {self.lines}")
        return ReadOptions(
            format=self.format,
            text=column(self.text),
            header=known.get("header") is not False if self.header is None else self.header,
            delimiter="\t" if self.delimiter == r"\t" else self.delimiter,
            escapes=known.get("escapes") is True if self.escapes is None else self.escapes,
            lines=self.lines,
            with_path=self.with_path,
            label_from_path=self.label_from_path,
            part_bytes=_PART_BYTES,
            max_document=self.max_document << 20,
        )


def open_inputs(
    inputs: list[str], reading: ReadingFlags | None, before: Mapping[str, Any] | None = None
) -> Inputs:
    """Return the corpus, or the raw documents, that a command was given.

    What flags do not say is as `before`, which is what a run says of the files it learned from.
    """
    from laconic.corpus import inputs as corpus_inputs

    flags, known = reading or ReadingFlags(), before or {}
    options = replace(flags.options(known), usual_text=known.get("text"))
    opened = corpus_inputs.open_inputs(inputs, options)
    tell_reading(opened, flags)
    return opened


def tell_reading(opened: Inputs, flags: ReadingFlags) -> None:
    """Say what is not as in most files, and was not asked for: the files may be others."""
    layout = opened.documents.layout if opened.documents is not None else {}
    unusual = {
        "without a header": ("--header", flags.header is None and layout.get("header") is False),
        "with escapes": ("--no-escapes", flags.escapes is None and layout.get("escapes") is True),
    }
    told = {words: flag for words, (flag, so) in unusual.items() if so}
    if told:
        words, cures = ", and ".join(told), ", ".join(told.values())
        print(f"laconic: read {words}, as in training; else {cures}", file=sys.stderr)


def labelled_corpus(
    inputs: list[str],
    reading: ReadingFlags | None,
    label: str | None,
    like: Run | Corpus | None = None,
    on_error: Literal["stop", "skip"] = "stop",
) -> Corpus:
    """Return the corpus that was given, or one in memory of raw files, whose labels are a column.

    It is compressed as `like` was, or else under a rulebook of its own. The column is by default
    that of `like`, or "label". With `on_error` "skip", documents that cannot be read, or have no
    label, are left out, which is said.
    """
    from laconic.codecs import Codec
    from laconic.corpus import Corpus
    from laconic.corpus import inputs as corpus_inputs
    from laconic.rulebook import Rulebook

    names: dict[str, Any] = {}
    if like is not None:
        about: Any = like.about  # of a run, JSON
        names = about.get("corpus", {}) if isinstance(about, dict) else asdict(about)
    flags = reading or ReadingFlags()
    options = flags.options(names)
    named = label or names.get("label")
    wanted = label if options.label_from_path is not None else named or "label"
    options = replace(
        options, usual_text=names.get("text"), label=column(wanted), on_error=on_error
    )
    opened = corpus_inputs.open_inputs(inputs, options)
    tell_reading(opened, flags)
    if opened.corpus is not None or opened.documents is None:
        corpus = cast(Corpus, opened.corpus)
        if label is not None or (named in corpus.columns and not corpus.about.label):
            corpus = corpus.labelled_by(cast(str, named))
        return _with_labels(corpus) if on_error == "skip" else corpus
    left_out: list[ReadError] = []
    given: dict[str, Any] = {"left_out": left_out.append} if on_error == "skip" else {}
    if like is not None:
        given |= {"codec": like.codec, "alphabet": like.alphabet, "rulebook": like.rulebook}
    else:
        given |= {"codec": Codec(), "rulebook": Rulebook.learn(filter(len, opened.texts())) or None}
    corpus = Corpus.from_raw(opened.documents, **given)
    if left_out:
        count = how_many(len(left_out), "document")
        print(f"laconic: {count} left out, the first: {left_out[0]}", file=sys.stderr)
    return _with_labels(corpus) if on_error == "skip" else corpus


def _with_labels(corpus: Corpus) -> Corpus:
    """Return the corpus of those documents that have a label; says how many have none."""
    kept = [label is not None and label != "" for label in corpus.labels]
    if all(kept):
        return corpus
    count = how_many(kept.count(False), "document")
    print(f"laconic: {count} without a label left out", file=sys.stderr)
    return corpus[kept]


def check_classes(labels: Sequence[Any], file: str) -> None:
    """Raise InputError for a field of a CSV in which there is nothing: that is no class."""
    if "" in labels:
        reason = "there is no label; give it one, or leave it out, as --on-error skip does"
        raise InputError(reason, file=file, document=labels.index(""))


def column(name: str | None) -> str | int | None:
    """Return a column by its name, or by its position if that is what was given."""
    return int(name) if name is not None and name.isdecimal() else name
