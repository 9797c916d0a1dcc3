"""What a command says on stderr while it works: lines, and a bar of how far it is."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

    from laconic.corpus.inputs import Inputs


def main_process() -> bool:
    """Return whether this process speaks for all that torchrun started."""
    return os.environ.get("RANK", "0") == "0"


def tell(line: str) -> None:
    """Say something on stderr, once for all processes."""
    if main_process():
        print(f"laconic: {line}", file=sys.stderr)


class Bar:
    """A bar on stderr, if that is a terminal, between two texts, with the time that is left.

    `columns` are the names of those of rich.progress that stand behind the bar.
    """

    def __init__(self, *columns: str) -> None:
        self._columns = columns
        self._bar: Progress | None = None

    def __enter__(self) -> Bar:
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                *(getattr(progress, name)() for name in self._columns),
                progress.TimeRemainingColumn(),
                progress.TextColumn("{task.fields[behind]}"),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task("", total=None, behind="")
            self._bar.start()
        return self

    def show(self, before: str, done: int, total: int, behind: str = "") -> None:
        """Show how much is done of a total; 0 is one that is not known."""
        if self._bar is not None:
            self._bar.update(
                self._task, description=before, completed=done, total=total or None, behind=behind
            )

    def print(self, line: str) -> None:
        """Print a line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.console.print(line, highlight=False)
        else:
            print(line, flush=True)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()


class InputProgress:
    """A bar of how many documents are done, and of how much of the input."""

    def __init__(self, opened: Inputs) -> None:
        self._raw = opened.documents
        if self._raw is not None:
            self._total, columns = sum(self._raw.sizes), ["DownloadColumn", "TransferSpeedColumn"]
        else:
            self._total, columns = len(opened.corpus or ()), ["TaskProgressColumn"]
        self._bar = Bar(*columns)

    def __enter__(self) -> InputProgress:
        self._bar.__enter__()
        self.show(0)
        return self

    def show(self, documents: int) -> None:
        """Show that so many documents are done, and how far the input was read for them."""
        read = documents if self._raw is None else self._raw.bytes_read
        self._bar.show(f"{documents:,} documents", read, self._total)

    def watch(self, tables: Iterable[Any]) -> Iterator[Any]:
        """Pass tables or matrices on, and show how many documents, their rows, are done."""
        done = 0
        for table in tables:
            yield table
            done += table.shape[0]
            self.show(done)

    def __exit__(self, *error: object) -> None:
        self._bar.__exit__(*error)
