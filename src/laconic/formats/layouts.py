"""Layouts: how documents were written, as readers note it and writers need it; fit for JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from laconic.errors import InputError
from laconic.formats.model import Format
from laconic.formats.sources import SUFFIXES

Layout: TypeAlias = dict[str, Any]

FORMATS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".txt": "lines",
    ".fa": "fasta",
    ".fasta": "fasta",
    ".fna": "fasta",
    ".fq": "fastq",
    ".fastq": "fastq",
}
_NEWLINES: dict[str, list[Any]] = {"newline": ["\n", "\r\n"], "final_newline": [True, False]}
_DELIMITED: dict[str, list[Any]] = {
    "header": [True, False],
    "header_quoting": ["minimal", "all"],
    "quoting": ["minimal", "all", "columns", "none"],
    "newline": ["\n", "\r\n", "\r"],
    "final_newline": [True, False],
    "bom": [False, True],
    "escapes": [False, True],
}
# What each key may be; the first is the default, for a layout of another format.
_CHOICES: dict[str, dict[str, list[Any]]] = {
    "csv": {"delimiter": [","], **_DELIMITED},
    "tsv": {"delimiter": ["\t"], **_DELIMITED},
    "jsonl": {
        "separators": [[", ", ": "], [",", ":"]],
        "ensure_ascii": [False, True],
        "nulls": ["write", "omit"],
        **_NEWLINES,
    },
    "parquet": {},
    "lines": _NEWLINES,
    "files": {},
    "fasta": _NEWLINES,
    "fastq": {"repeat_name": [False, True], **_NEWLINES},
}
_NEEDED = {"fasta": ["name"], "fastq": ["name", "qualities"], "files": ["path"]}
_WIDEST_LINE = 1 << 30


def layout_for(out: Path, layout: Layout) -> Layout:
    """Return the layout that `out`'s suffix asks for: the one given, where the formats agree.

    Every key is checked. Raises ValueError naming the key, or a column that the format lacks.
    """
    given = layout.get("format") if isinstance(layout, dict) else None
    if not isinstance(given, str) or given not in _CHOICES:
        raise InputError(f"layout: 'format' must be one of {', '.join(_CHOICES)}")
    columns, text = layout.get("columns"), layout.get("text")
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise InputError("layout: 'columns' must be a list of names")
    if len(set(columns)) < len(columns):
        raise InputError("layout: 'columns' must be names that differ")
    if text not in columns:
        raise InputError(f"layout: 'text' must be one of the columns, not {text!r}")
    suffix = (out.with_suffix("") if out.suffix.lower() in SUFFIXES else out).suffix.lower()
    kind: str = FORMATS.get(suffix, given)
    same = kind == given
    result: Layout = {"format": kind}
    for key, choices in _CHOICES[kind].items():
        result[key] = layout.get(key, choices[0]) if same else choices[0]
        # `in` alone would take 1 for True.
        if not any(result[key] == one and type(result[key]) is type(one) for one in choices):
            raise InputError(f"layout: {key!r} must be one of {choices}, not {result[key]!r}")
    if kind in ("csv", "tsv"):
        result["quoted"] = layout.get("quoted", []) if same else []
        quoted = result["quoted"]
        if not isinstance(quoted, list) or any(name not in columns for name in quoted):
            raise InputError("layout: 'quoted' must be a list of columns")
    if kind == "fasta":
        width = result["line_width"] = layout.get("line_width", 0) if same else 0
        if type(width) is not int or not 0 <= width < _WIDEST_LINE:
            raise InputError(f"layout: 'line_width' must be 0 or a length, not {width!r}")
    for name in _NEEDED.get(kind, []):
        if name not in columns:
            raise InputError(f"{out}: {kind} needs a column {name!r}; choose another format")
    return {**result, "columns": columns, "text": text}
