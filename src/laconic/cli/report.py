"""laconic report: runs side by side on one page."""

from __future__ import annotations

from pathlib import Path

from laconic.cli.flags import Out
from laconic.errors import InputError, needs
from laconic.files import check_output


def report(
    *runs: Path,
    out: Out,
    title: str | None = None,
    by: str | None = None,
) -> None:
    """Write one HTML page about runs, side by side.

    laconic report runs/repair runs/none -o both.html

    laconic report runs/grid-1 runs/grid-2 runs/grid-3 -o grid.html --by learning_rate

    The page has the curves, scores, confusion, calibration, time and memory, corpus and settings of
    each run, and what each figure means. It is one file that loads nothing else.

    Parameters
    ----------
    runs
        Folders that laconic train wrote.
    out
        The page to write.
    title
        Its heading.
    by
        A setting in which the runs differ, by which they are compared first; all others follow.

    """
    check_output(out, force=True, makes_folders=True)
    with needs("a report", "report"):  # brings all; or a missing torch would be named first
        import matplotlib  # noqa: F401
    from laconic.report import facts_of, write_report
    from laconic.training.run import Run

    if not runs:
        raise InputError("name the runs to report on: laconic report runs/a runs/b -o report.html")
    out.parent.mkdir(parents=True, exist_ok=True)
    write_report(out, [facts_of(Run.open(run)) for run in runs], title, by)
    print(out)
