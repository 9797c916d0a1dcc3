"""The paper's tables and figures, each from one command.

    python -m experiments.paper rows                         # what there is to run
    python -m experiments.paper run --device cuda            # the accuracy tables, row by row
    python -m experiments.paper run --device cuda --processes auto # as many at a time as fit
    python -m experiments.paper speed --device cuda          # how fast they train, alone
    python -m experiments.paper rivals                       # what a practitioner would try first
    python -m experiments.paper compression                  # lengths and rules of every set
    python -m experiments.paper figure --device cuda         # memory against time
    python -m experiments.paper complexity --device cuda     # cost against repetition
    python -m experiments.paper merge FOLDER                 # add rows of another machine
    python -m experiments.paper report                       # docs/results.md from all of them

Finished rows are skipped and interrupted ones go on: run a command again until nothing is left.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from benchmarks.layouts import DataError
from experiments.paper.grid import ROWS, Row, chosen, groups, rows
from experiments.paper.protocol import done
from experiments.paper.results import RESULTS, add_rows, rows_in
from laconic.threads import processors
from laconic.training.settings import ConfigError

BUILD = Path("build") / "paper"
DEFAULT_GROUPS = ("dna", "traces", "text", "pinyin")  # in the order of their rows
VIEWS_GROUPS = ("views_text", "views_pinyin", "views_dna")  # of both views before


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Return the command and its options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.paper",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    shared.add_argument("--grid", type=Path, default=ROWS, help="folder of TOML files")
    shared.add_argument("--groups", nargs="+", help=f"of the grid; {', '.join(DEFAULT_GROUPS)}")
    shared.add_argument("--cache", type=Path, default=BUILD / "corpora", help="of corpora")
    select = argparse.ArgumentParser(add_help=False)
    select.add_argument("--rows", nargs="+", default=[], help="patterns such as 'H3*/grc-*-0'")
    device = argparse.ArgumentParser(add_help=False)
    device.add_argument("--device", default="auto", help="cuda or cpu")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("rows", parents=[shared, select], help="list the rows, in their order")
    run = commands.add_parser("run", parents=[shared, select, device], help="train rows")
    run.add_argument("--in-memory", action="store_true", help="no checkpoints: rows do not resume")
    told = (
        "that share the device, at most: as many as its memory has room for; auto: no other limit"
    )
    run.add_argument("--processes", type=_processes, default=1, help=told)
    run.add_argument("--seconds", type=float, help="start no row after so long")
    run.add_argument("--stop-after", type=float, help="end rows that still run after so long")
    merge = commands.add_parser("merge", parents=[shared], help="add rows that were run elsewhere")
    merge.add_argument("folder", type=Path, help="that was --results there")
    prepare = "compress what the rows read, and no more"
    commands.add_parser("prepare", parents=[shared, select], help=prepare)
    rivals = commands.add_parser("rivals", parents=[shared], help="train scikit-learn's models")
    rivals.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2, 3])
    rivals.add_argument("--names", nargs="+", default=[], help="rival_words, rival_chars, …")
    rivals.add_argument("--sets", nargs="+", default=[], help="data sets; all")
    commands.add_parser("compression", parents=[shared], help="measure lengths and rules")
    figure = commands.add_parser("figure", parents=[shared, device], help="memory against time")
    figure.add_argument("--seconds", type=float, default=3.0, help="about, for each point")
    figure.add_argument("--sets", nargs="+", default=[], help="yelp, pinyin, dna, adfa")
    figure.add_argument("--documents", type=int, default=1_000, help="of each set, at most")
    speed = commands.add_parser("speed", parents=[shared, device], help="documents/s, alone")
    speed.add_argument("--seconds", type=float, default=3.0, help="of each point, after warm-up")
    speed.add_argument("--sets", nargs="+", default=[], help="data sets; five of them")
    speed.add_argument("--batches", type=int, default=12, help="of an epoch that are trained on")
    curve = commands.add_parser("complexity", parents=[shared, device], help="cost, repetition")
    curve.add_argument("--letters", type=int, default=100_000, help="of the document")
    curve.add_argument("--repeats", type=int, default=3, help="of each point; the median counts")
    report = commands.add_parser("report", parents=[shared], help="write the page")
    report.add_argument("--page", type=Path, default=Path("docs") / "results.md")
    report.add_argument("--check", action="store_true", help="only say whether it is up to date")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Run one command; what is wrong with files or settings ends it with one line."""
    given = parse(arguments)
    try:
        _run(given)
    except (DataError, ConfigError, FileNotFoundError) as error:
        raise SystemExit(f"error: {error}") from None
    except KeyboardInterrupt:
        print("stopped; the same command goes on", file=sys.stderr)
        raise SystemExit(130) from None


def _run(given: argparse.Namespace) -> None:
    wanted = given.groups or ([] if given.grid != ROWS else DEFAULT_GROUPS)
    there = {group.name: group for group in groups(given.grid)}
    if missing := set(wanted) - there.keys():
        raise ConfigError(f"no group {min(missing)!r} in the grid; there are {', '.join(there)}")
    of = [there[name] for name in wanted or there]
    if given.command in ("rows", "run", "prepare"):
        _rows(given, chosen(rows(of), given.rows))
    elif given.command == "merge":
        found = list(rows_in(given.folder))
        if not found:
            raise FileNotFoundError(f"{given.folder} has no rows: no file *.jsonl")
        add_rows(given.results, *found)
        print(f"added {len(found)} rows, in the place of those that were there already")
    elif given.command == "rivals":
        from experiments.paper.rivals import run_rivals

        run_rivals(of, given.seeds, given.results, given.names, given.sets)
    elif given.command == "compression":
        from experiments.paper.compression import measure_compression

        measure_compression(of, given.results, given.cache)
    elif given.command == "figure":
        from experiments.paper.figure import measure_figure

        measure_figure(given.device, given.results, given.seconds, given.sets, given.documents)
    elif given.command == "speed":
        from experiments.paper.speed import measure_speed

        where = given.device, given.results, given.cache
        measure_speed(of, *where, given.seconds, given.sets, given.batches)
    elif given.command == "complexity":
        from experiments.paper.complexity import measure_complexity

        measure_complexity(given.device, given.results, given.letters, given.repeats)
    else:
        from experiments.paper.report import write_report

        write_report(of, given.results, given.page, given.check)


def _rows(given: argparse.Namespace, found: list[Row]) -> None:
    if not found:
        raise ConfigError("no row has such a name; `rows` lists them")
    if given.command == "run":
        left = _train(given, found)
        print(f"{len(left)} of {len(found)} rows are left" if left else "all rows are done")
    elif given.command == "prepare":
        from experiments.paper.corpora import corpora

        # Rows of a set together: it is read once.
        for row in sorted(found, key=lambda row: row.dataset):
            corpora(*row.source(given.cache))
    else:
        tally: Counter[str] = Counter()
        for row in found:
            there = done(given.results, row) is not None
            tally["done" if there else "left"] += 1
            print(f"{row.stage}  {'done' if there else '    '}  {row}")
        print(", ".join(f"{count} {name}" for name, count in tally.items()))


def _train(given: argparse.Namespace, found: list[Row]) -> list[Row]:
    where = given.device, given.results, given.cache, given.seconds, given.processes
    if given.processes == 1 and given.stop_after is None:
        from experiments.paper.training import run_rows

        return run_rows(found, *where, resumable=not given.in_memory)
    from experiments.paper.pool import run_in_processes

    # Only another process can be ended in the middle of a row.
    return run_in_processes(
        found, *where, resumable=not given.in_memory, stop_after=given.stop_after
    )


def _processes(text: str) -> int:
    if text == "auto":
        return processors()  # each makes its own batches
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of processes, 1 or more")
    return int(text)


if __name__ == "__main__":
    main()
