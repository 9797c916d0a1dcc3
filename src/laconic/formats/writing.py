"""`write`: documents back to files, in the layout they were read from or in another format.

A file in one style throughout is written back byte for byte. Outputs appear when they are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from laconic.errors import InputError
from laconic.files import whole
from laconic.formats.compression import compressor, split_suffix
from laconic.formats.format import SOME_COLUMNS, Layout
from laconic.formats.registry import MODULES, format_named, format_of
from laconic.formats.stores import Place


def layout_for(out: Place, layout: Layout) -> Layout:
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


def write(tables: Iterable[pa.Table], layout: Layout, out: Place, replace: bool = True) -> int:
    """Write documents to `out`, compressed as its suffix says, and return how many.

    Streams: memory stays at a few tables. `out` appears when it is whole; a folder must not exist.
    Raises ValueError for a layout, or for a document, that cannot be written so, FileExistsError
    for what `out` should not `replace`.
    """
    layout = layout_for(out, layout)
    format = format_named(layout["format"])
    count = 0

    def documents() -> Iterator[pa.Table]:
        nonlocal count
        for table in tables:
            there = set(table.column_names)
            if missing := [name for name in layout["columns"] if name not in there]:
                raise InputError(f"no column {missing[0]!r} in the documents, but in their layout")
            if table.num_rows:
                yield table.select(layout["columns"])
            count += table.num_rows

    if format.folder and out.exists():
        raise FileExistsError(f"{out}: exists already; choose another folder or remove it")
    with whole(out, replace) as temporary:
        if format.whole is not None:
            format.whole(documents(), layout, temporary)
        elif format.blocks is not None:
            blocks = format.blocks(documents(), layout)
            with temporary.open("xb") as raw, compressor(raw, split_suffix(out.name)[1]) as file:
                _write_blocks(blocks, layout, file)
    return count


def _write_blocks(blocks: Iterable[Any], layout: Layout, file: Any) -> None:
    """Write blocks that each end in the layout's newline, the last one's if the layout says so."""
    newline = layout.get("newline", "").encode()
    held = b"\xef\xbb\xbf" if layout.get("bom") else b""
    ended = True
    for block in blocks:
        file.write(held)
        file.write(memoryview(block)[: len(block) - len(newline)])
        held, ended = newline, False
    if ended or layout.get("final_newline", True):
        file.write(held)
