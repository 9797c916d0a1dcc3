"""Layouts: how documents were written, as readers note it and writers need it, checked."""

from __future__ import annotations

from pathlib import Path

from laconic.errors import InputError
from laconic.formats.compression import split_suffix
from laconic.formats.format import SOME_COLUMNS, Layout
from laconic.formats.registry import MODULES, format_named, format_of


def layout_for(out: Path, layout: Layout) -> Layout:
    """Return the layout that `out`'s suffix asks for: the one given, where the formats agree.

    Every key is checked. Raises ValueError naming the key, or a column that the format lacks.
    """
    given = layout.get("format") if isinstance(layout, dict) else None
    if not isinstance(given, str) or given not in MODULES:
        raise InputError(f"layout: 'format' must be one of {', '.join(MODULES)}")
    columns, text = layout.get("columns"), layout.get("text")
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise InputError("layout: 'columns' must be a list of names")
    if len(set(columns)) < len(columns):
        raise InputError("layout: 'columns' must be names that differ")
    if text not in columns:
        raise InputError(f"layout: 'text' must be one of the columns, not {text!r}")
    format = format_of(out.name) or format_named(given)
    if format.blocks is None and format.whole is None:
        raise InputError(f"{out}: {format.name} can only be read; choose another format")
    if format.blocks is None and (compression := split_suffix(out.name)[1]):
        raise InputError(f"{out}: {format.name} is not written as {compression}; shorten the name")
    result: Layout = {"format": format.name}
    for key, choices in format.choices.items():
        default = [] if choices is SOME_COLUMNS else choices[0]
        value = result[key] = layout.get(key, default) if format.name == given else default
        # `in` alone would take 1 for True.
        fits = type(value) is type(default) and (
            all(name in columns for name in value) if choices is SOME_COLUMNS else value in choices
        )
        if not fits:
            expected = choices if choices is SOME_COLUMNS else f"one of {choices}"
            raise InputError(f"layout: {key!r} must be {expected}, not {value!r}")
    for name in format.needs:
        if name not in columns:
            raise InputError(f"{out}: {format.name} needs a column {name!r}; choose another format")
    return {**result, "columns": columns, "text": text}
