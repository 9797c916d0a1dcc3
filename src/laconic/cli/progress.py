"""How far a command is in its input: a bar on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

    from laconic.corpus.inputs import Inputs

__all__ = ["InputProgress"]

_Item = TypeVar("_Item")


class InputProgress:
    """A bar on stderr, if that is a terminal: documents, and the share of the input."""

    def __init__(self, opened: Inputs) -> None:
        self._opened = opened
        self._bar: Progress | None = None

    def __enter__(self) -> InputProgress:
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.fields[documents]:,} documents"),
                progress.BarColumn(),
                progress.TaskProgressColumn(),
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
        return self

    def watch(self, items: Iterable[_Item], rows: Callable[[_Item], int]) -> Iterator[_Item]:
        """Pass items on, and show how many documents they are, by `rows`, and how far that is."""
        if self._bar is None:
            yield from items
            return
        opened, done = self._opened, 0
        sizes = opened.documents.sizes if opened.documents is not None else []
        total = len(opened.corpus) if opened.corpus is not None else sum(sizes)
        task = self._bar.add_task("", total=total or None, documents=0)
        for item in items:
            yield item
            done += rows(item)
            read = opened.documents.bytes_read if opened.documents is not None else done
            self._bar.update(task, completed=read, documents=done)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
