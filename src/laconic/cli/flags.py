"""Flags that several commands share, with the help that they have in each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from cyclopts import Parameter

from laconic.cli.inputs import ReadingFlags

_LABEL = (
    "Of raw files, the column of the labels, by name or by position from 0; to train, label unless "
    "another is named."
)
OUT = Parameter(name=["--out", "-o"])
Out: TypeAlias = Annotated[Path, OUT]
MaybeOut: TypeAlias = Annotated[Path | None, OUT]

Switch: TypeAlias = Annotated[bool, Parameter(negative="")]
Force: TypeAlias = Annotated[bool, Parameter(negative="", help="Replace what is there.")]
Json: TypeAlias = Annotated[
    bool, Parameter(name="--json", negative="", help="Print what came out as JSON.")
]
Device: TypeAlias = Annotated[
    str, Parameter(help="cpu, cuda, cuda:1, …; auto is a GPU if there is one.")
]

_ON_ERROR = (
    "skip: leave out rows that are bad, empty or without a label, and say so; stop: they are "
    "errors. By default as in the training of the run, if there is one, or else stop."
)
OnError: TypeAlias = Annotated[Literal["stop", "skip"] | None, Parameter(help=_ON_ERROR)]

CorpusPath: TypeAlias = Annotated[Path, Parameter(help="A Parquet file, or a folder of shards.")]
RunFolder: TypeAlias = Annotated[Path, Parameter(help="The folder that laconic train wrote.")]
InputPaths: TypeAlias = Annotated[
    list[str], Parameter(negative="", help="Files, globs, folders or URLs, or one corpus.")
]
MaybeInputPaths: TypeAlias = Annotated[
    list[str] | None,
    Parameter(negative="", help="As in other commands; with --resume, by default as before."),
]
Label: TypeAlias = Annotated[
    str | None,
    Parameter(help=_LABEL),
]
Reading: TypeAlias = Annotated[ReadingFlags | None, Parameter(name="*")]
