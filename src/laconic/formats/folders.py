"""Folders: every file a document, as bytes; folders within the folder are classes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import pyarrow as pa

from laconic.errors import InputError
from laconic.formats.columns import as_bytes, fixed_columns
from laconic.formats.compression import compressor, split_suffix
from laconic.formats.format import (
    FileRows,
    Format,
    Layout,
    ReadError,
    ReadOptions,
    Reject,
    shown,
    too_long,
)
from laconic.formats.sources import Source, Stream

_STRAY = (
    "is beside folders that are classes, so it has no label; move it into one of them or away, "
    "leave it out with --on-error skip, or read all without labels by a glob: 'FOLDER/**'"
)
_TYPES = {"path": pa.string(), "text": pa.large_binary(), "label": pa.string()}


class FolderReader:
    """Columns "path" (in the folder), "text" and, if all files are in folders there, "label".

    A file beside several such folders is rejected rather than that all labels are lost for it.
    """

    def __init__(self, sources: list[Source], options: ReadOptions) -> None:
        self._longest = options.max_document
        stray = [source for source in sources if "/" not in source.relative]
        folders = {
            source.relative.partition("/")[0] for source in sources if "/" in source.relative
        }
        classes = not stray or (stray[0].from_folder and len(folders) > 1)
        classes = classes and options.label_from_path is None
        if classes and stray and options.on_error == "stop":
            raise ReadError(_STRAY, file=stray[0].name)
        columns = ["path", "text"] + ["label"] * classes
        self.text, self.label = fixed_columns(sources[0].name, columns, "text", options)
        if classes:
            self.label = self.label or "label"
        self._classes = classes
        self.schema = pa.schema((name, _TYPES[name]) for name in columns)
        self.style: Layout = {}

    def read(self, stream: Stream) -> Iterator[FileRows]:
        """Read one file, which is one document."""
        data, path = stream.read(self._longest + 1), stream.source.relative
        reason = stream.failure
        if len(data) > self._longest:
            reason = f"the document is {too_long(self._longest)}"
        elif self._classes and "/" not in path:
            reason = _STRAY
        if reason:
            yield FileRows(rejects=[Reject(stream.name, 1, reason, shown(data))])
            return
        row = {"path": path, "text": data, "label": path.partition("/")[0]}
        yield FileRows.after(0, pa.Table.from_pylist([row], schema=self.schema))


def _write(tables: Iterable[pa.Table], layout: Layout, folder: Path) -> None:
    folder.mkdir()
    for table in tables:
        paths = table.column("path").to_pylist()
        texts = as_bytes(table.column(layout["text"]), layout["text"])
        for path, text in zip(paths, texts, strict=True):
            target = folder / safe_path(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as raw, compressor(raw, split_suffix(path)[1]) as file:
                file.write(text.as_buffer())


def safe_path(path: object) -> PurePosixPath:
    """Return a path that stays within its folder: a hostile corpus must not write elsewhere."""
    safe = PurePosixPath(path) if isinstance(path, str) else PurePosixPath()
    odd = {"\\", ":", "\0"} if os.name == "nt" else {"\0"}
    if not safe.parts or safe.is_absolute() or ".." in safe.parts or odd & set(str(path)):
        raise InputError(f"refused to write {path!r}: a path must stay within the folder")
    return safe


FORMATS = [Format("files", (), FolderReader, whole=_write, needs=("path",), folder=True)]
