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
    """A bar on stderr, if that is a terminal: documents, the share of the input, time left."""

    def __init__(self, opened: Inputs) -> None:
        self._opened = opened
        self._bar: Progress | None = None

    def __enter__(self) -> InputProgress:
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            raw, corpus = self._opened.documents, self._opened.corpus
            if raw is not None:
                total = sum(raw.sizes)
                share = [progress.DownloadColumn(), progress.TransferSpeedColumn()]
            else:
                total = 0 if corpus is None else len(corpus)
                share = [progress.TaskProgressColumn()]
            self._bar = progress.Progress(
                progress.TextColumn("{task.fields[documents]:,} documents"),
                progress.BarColumn(),
                *share,
                progress.TimeRemainingColumn(),
                console=Console(stderr=True),
            )
            self._bar.start()
            self._task = self._bar.add_task("", total=total or None, documents=0)
        return self

    def show(self, documents: int) -> None:
        """Show that so many documents are done, and how far the input was read for them."""
        if self._bar is not None:
            raw = self._opened.documents
            read = documents if raw is None else raw.bytes_read
            self._bar.update(self._task, completed=read, documents=documents)

    def watch(self, items: Iterable[_Item], rows: Callable[[_Item], int]) -> Iterator[_Item]:
        """Pass items on, and show how many documents they are, by `rows`."""
        done = 0
        for item in items:
            yield item
            done += rows(item)
            self.show(done)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
