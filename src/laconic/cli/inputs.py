"""Flags that say how raw files are read, the same in every command that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from laconic.cli.progress import tell
from laconic.errors import NO_LABEL, InputError, LaconicError, needs
from laconic.formats.registry import FormatName
from laconic.show import how_many

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


USUAL_DELIMITERS = (None, ",", "\t")  # of which nothing need be said


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


class LeftOut:
    """What --on-error skip leaves out, as Corpus.from_raw tells it: how many, and the first."""

    def __init__(self, as_before: bool) -> None:
        self._why = ", as in training (else --on-error stop)" if as_before else ""
        self._count, self._first = 0, ""

    @classmethod
    def wanted(cls, on_error: str | None, before: Mapping[str, Any]) -> LeftOut | None:
        """Return where to note that; None if it is an error, as is said, or was `before`."""
        skips = (on_error or before.get("on_error")) == "skip"
        return cls(as_before=on_error is None) if skips else None

    def __call__(self, error: LaconicError) -> None:
        """Note one more."""
        if not self._count:
            # What follows is the cure, which was applied.
            self._first = str(InputError(error.reason.partition("; ")[0], **error.place))
        self._count += 1

    def tell(self, corpus: Corpus, file: str) -> None:
        """Say how many there are of a file, if any; InputError if there is nothing else in it."""
        if not self._count:
            return
        if not len(corpus):
            reason = f"every document is left out, the first: {self._first}"
            raise InputError(reason, file=file)
        tell(f"{how_many(self._count, 'document')} left out{self._why}, the first: {self._first}")


@contextmanager
def naming_the_flag() -> Iterator[None]:
    """Let errors say which flag leaves a document out, if that is their cure."""
    try:
        yield
    except InputError as error:
        if not error.reason.endswith("leave it out"):
            raise
        reason = f"{error.reason}, as --on-error skip does"
        raise type(error)(reason, **error.place) from None


def open_inputs(
    inputs: list[str],
    reading: ReadingFlags | None,
    before: Mapping[str, Any] | None = None,
    left_out: LeftOut | None = None,
    **options: Any,
) -> Inputs:
    """Return the corpus, or the raw documents, that a command was given.

    What flags do not say is as `before`, which is what a run says of the files it learned from.
    With `left_out`, bad rows are no errors; `options` are more of laconic.formats.ReadOptions.
    """
    from laconic.corpus import inputs as corpus_inputs

    flags, known = reading or ReadingFlags(), before or {}
    options |= {"usual_text": known.get("text"), "usual_delimiter": known.get("delimiter")}
    options |= {"on_error": "skip" if left_out else "stop"}
    opened = corpus_inputs.open_inputs(inputs, replace(flags.options(known), **options))
    _tell_reading(opened, flags)
    return opened


def _tell_reading(opened: Inputs, flags: ReadingFlags) -> None:
    """Say what is not as in most files, and was not asked for: the files may be others."""
    layout = opened.documents.layout if opened.documents is not None else {}
    unusual = {
        "without a header": ("--header", flags.header is None and layout.get("header") is False),
        "with escapes": ("--no-escapes", flags.escapes is None and layout.get("escapes") is True),
    }
    between = layout.get("delimiter")
    asked = flags.delimiter is not None or between in USUAL_DELIMITERS
    unusual[f"with {between!r} between fields"] = ("--delimiter ,", not asked)
    told = {words: flag for words, (flag, so) in unusual.items() if so}
    if told:
        words, cures = ", and ".join(told), ", ".join(told.values())
        tell(f"read {words}, as in training; else {cures}")


@naming_the_flag()
def labelled_corpus(
    inputs: list[str],
    reading: ReadingFlags | None,
    label: str | None,
    like: Run | Corpus | None = None,
    on_error: str | None = None,
) -> Corpus:
    """Return the corpus that was given, or one in memory of raw files, whose labels are a column.

    It is compressed as `like` was, or else under a rulebook of its own. The column is by default
    that of `like`, or "label". With `on_error` "skip", or if `like` is a run that was trained so,
    documents that cannot be read, or have no label, are left out, which is said.
    """
    from laconic.codecs import Codec
    from laconic.corpus import Corpus
    from laconic.rulebook import Rulebook

    before, classes = _known(like)
    left_out = LeftOut.wanted(on_error, before)
    named = label or before.get("label")
    from_path = reading is not None and reading.label_from_path is not None
    wanted = label if from_path else named or "label"
    # What is empty is no label, but for a run that learned it from a corpus as a class.
    labelled = "" not in classes
    options = {"label": column(wanted), "labelled": labelled}
    opened = open_inputs(inputs, reading, before, left_out, **options)
    if opened.documents is None:
        corpus = cast(Corpus, opened.corpus)
        if label is not None or (named in corpus.columns and not corpus.about.label):
            corpus = corpus.labelled_by(cast(str, named))
        corpus = _labelled(corpus, inputs[0], left_out) if labelled else corpus
    else:
        if like is not None:
            codec, alphabet, rulebook = like.codec, like.alphabet, like.rulebook
        else:
            # No rulebook is learned from an empty text, which is seen to when it is compressed.
            book = Rulebook.learn(filter(len, opened.texts()))
            codec, alphabet, rulebook = Codec(), None, book or None
        corpus = Corpus.from_raw(opened.documents, codec, alphabet, rulebook, left_out=left_out)
    if left_out is not None:
        left_out.tell(corpus, ", ".join(inputs))
    return corpus


def _known(like: Run | Corpus | None) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """Return what a run, or a corpus, says of the documents it is of; and the run's classes."""
    from laconic.corpus import Corpus

    if like is None:
        return {}, ()
    if isinstance(like, Corpus):
        return {"text": like.about.text, "label": like.about.label}, ()
    return like.about.get("corpus", {}), like.task.classes


def _labelled(corpus: Corpus, file: str, left_out: LeftOut | None) -> Corpus:
    """Return the corpus of those documents that have a label; others are errors, or left out."""
    from laconic.formats.format import has_no_label

    kept = []
    for row, label in enumerate(corpus.labels):
        kept.append(not has_no_label(label))
        if not kept[-1]:
            missing = InputError(NO_LABEL, file=file, document=row)
            if left_out is None:
                raise missing
            left_out(missing)
    return corpus if all(kept) else corpus.filter(kept)


def column(name: str | None) -> str | int | None:
    """Return a column by its name, or by its position if that is what was given."""
    return int(name) if name is not None and name.isdecimal() else name


def trained_on(run: Path, label: str | None, cure: str) -> tuple[list[str], str | None]:
    """Return the files that a run was trained on, as it says, and the column of labels.

    InputError, with the cure, if it does not say so, or they are gone.
    """
    with needs("a run", "train"):
        from laconic.training.run import Run

    told = Run.open(run).about.get("corpus", {})
    path = told.get("path")
    if not isinstance(path, str) or not path:
        raise InputError(f"{run} does not say what it was trained on: {cure}")
    if path == "/dev/stdin":
        raise InputError(f"{run} was trained on standard input, which is gone: {cure}")
    # Several files are told with blanks between them, which names may hold, too.
    paths = [path] if Path(path).exists() else path.split(" ")
    if missing := [each for each in paths if not (_may_be_many(each) or Path(each).exists())]:
        raise InputError(f"{missing[0]}, which {run} was trained on, is not there: {cure}")
    return paths, label or told.get("label")


def _may_be_many(path: str) -> bool:
    """Return whether this names no file by itself: whoever opens it knows what it stands for."""
    return "://" in path or any(sign in path for sign in "*?[")
