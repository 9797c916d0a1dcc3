"""The formats there are, one line each: all else about a format is in its own file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Literal, TypeAlias

from laconic.errors import InputError

if TYPE_CHECKING:
    from laconic.formats.format import Format

# The module that has the format of each name in its FORMATS. It is imported when it is asked for:
# the names are in the help of commands, which must not wait for pyarrow.
MODULES = {
    "csv": "laconic.formats.delimited",
    "tsv": "laconic.formats.delimited",
    "jsonl": "laconic.formats.jsonl",
    "parquet": "laconic.formats.parquet",
    "lines": "laconic.formats.lines",
    "files": "laconic.formats.folders",
    "fasta": "laconic.formats.fasta",
    "fastq": "laconic.formats.fasta",
    "zip": "laconic.formats.archives",
    "warc": "laconic.formats.warc",
}

if TYPE_CHECKING:
    FormatName: TypeAlias = str
else:
    FormatName = Literal[tuple(MODULES)]


def format_named(name: str) -> Format:
    """Return the format of a name; InputError with those there are for any other."""
    if name not in MODULES:
        raise InputError(f"no format {name!r}; choose --format from: {', '.join(MODULES)}")
    formats: list[Format] = import_module(MODULES[name]).FORMATS
    return next(format for format in formats if format.name == name)


def formats_by_suffix() -> dict[str, Format]:
    """Return the format that each suffix, such as ".csv", stands for."""
    return {suffix: format for format in map(format_named, MODULES) for suffix in format.suffixes}


def format_of(name: str) -> Format | None:
    """Return the format that the name of a file tells, which may be compressed, if it does."""
    from laconic.formats.compression import split_suffix

    return formats_by_suffix().get(split_suffix(name)[0])
