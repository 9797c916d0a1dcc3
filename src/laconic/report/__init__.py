"""Reports: what runs learned, how fast and from what, in one HTML file that needs nothing else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from laconic.errors import InputError
from laconic.files import check_output, write_text
from laconic.report.facts import RunFacts, mapping, real
from laconic.report.numbers import letters_of
from laconic.show import how_many

if TYPE_CHECKING:
    from laconic.training.run import Run

__all__ = ["RunFacts", "facts_of", "write_report"]


def facts_of(run: Run, title: str | None = None) -> RunFacts:
    """Return what a report says of a run; `title` is its folder's name unless given.

    The evaluation is that of the epoch that is kept, or of the last one if the run is not finished.
    """
    from laconic.training.holdout import automatic_share
    from laconic.training.presets import PRESETS
    from laconic.training.settings import TrainingConfig

    automatic = dict(PRESETS["auto"]) if run.config.model == "auto" else {}
    if automatic:
        documents = real(mapping(run.about.get("corpus")).get("documents"))
        automatic["holdout"] = automatic_share(round(documents or 0))
    metrics = run.metrics()
    evaluated = [line["valid"] for line in metrics if line.get("valid")]
    about = dict(run.about)
    about["task"], about["classes"] = run.task.name, list(run.task.classes)
    about["codec"], about["alphabet"] = run.codec.name, letters_of(run.alphabet)
    if (book := run.rulebook) is not None:
        about["rulebook"] = f"{how_many(len(book), 'rule')}, {book.crossing}"
    return RunFacts(
        title=title or run.folder.resolve().name,
        config=run.config.to_json(),
        about=about,
        metrics=metrics,
        evaluation=evaluated[-1] if evaluated else {},
        # What automatic training has where nothing is said, nobody chose.
        defaults=TrainingConfig(**automatic).settled().to_json(),
    )


def write_report(
    path: str | os.PathLike[str],
    runs: Sequence[RunFacts],
    title: str | None = None,
    by: str | None = None,
) -> None:
    """Write one HTML file about these runs, side by side; the same runs give the same bytes.

    Runs are compared by every setting in which they differ, first by `by`. The file loads nothing
    and runs nothing. It appears when it is whole. ValueError without runs, or where they do not
    differ in `by`; ModuleNotFoundError without matplotlib.
    """
    check_output(path, force=True)
    if not runs:
        raise InputError("a report needs at least one run")
    from laconic.report.run_page import page  # matplotlib takes half a second to load

    write_text(path, page(runs, title, by))
