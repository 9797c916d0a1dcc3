"""`write`: documents back to files, in the layout they were read from or in another format.

A file in one style throughout is written back byte for byte. Outputs appear when they are whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from laconic.errors import InputError
from laconic.files import whole
from laconic.formats.compression import compressor, split_suffix
from laconic.formats.format import Layout
from laconic.formats.layout import layout_for
from laconic.formats.registry import format_named


def write(tables: Iterable[pa.Table], layout: Layout, out: Path) -> int:
    """Write documents to `out`, compressed as its suffix says, and return how many.

    Streams: memory stays at a few tables. `out` appears when it is whole; a folder must not exist.
    Raises ValueError for a layout, or for a document, that cannot be written so.
    """
    layout = layout_for(out, layout)
    format = format_named(layout["format"])
    count = 0

    def documents() -> Iterator[pa.Table]:
        nonlocal count
        for table in tables:
            if missing := [name for name in layout["columns"] if name not in table.column_names]:
                raise InputError(f"no column {missing[0]!r} in the documents, but in their layout")
            if table.num_rows:
                yield table.select(layout["columns"])
            count += table.num_rows

    if format.folder and out.exists():
        raise FileExistsError(f"{out}: exists already; choose another folder or remove it")
    with whole(out) as temporary:
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
