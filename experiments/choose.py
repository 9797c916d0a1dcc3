"""Choose the settings of presets on held-out parts of training sets; no test is looked at.

    python -m experiments.choose run --device cuda --processes 12     # all trials, about 6 minutes
    python -m experiments.choose run --presets fast --seeds 1         # some of them
    python -m experiments.choose decide           # choices.json and docs/choices.md from the trials
    python -m experiments.choose try --sets kjv --codecs repair+4096 --set residual_dropout=0.5

What is tried is in experiments/choices/space.toml. Finished trials are skipped: run it again until
nothing is left. `try` is for whatever else: each trial adds a line of JSON to --out, no more.
"""

from __future__ import annotations

import argparse
import json
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.command import write_pages
from benchmarks.data import DATASETS
from benchmarks.layouts import DataError
from experiments.choices.outcome import outcome, page
from experiments.choices.space import SPACE, Searched, read_space, trials
from experiments.paper.corpora import CACHE
from experiments.paper.results import CHOICES, find_row, formatted
from laconic.training.settings import ConfigError, resolve

RESULTS = Path(__file__).parent / "results" / "choose"
PAGE = Path(__file__).parent.parent / "docs" / "choices.md"


def main(arguments: list[str] | None = None) -> None:
    """Run one command; what is wrong with files or settings ends it with one line."""
    given = parse(arguments)
    try:
        {"run": run, "decide": decide, "try": try_out}[given.command](given)
    except (DataError, ConfigError, FileNotFoundError) as error:
        raise SystemExit(f"error: {error}") from None


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Return the command and its options."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments.choose",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--results", type=Path, default=RESULTS)
    shared.add_argument("--space", type=Path, default=SPACE, help="what is tried")
    commands = parser.add_subparsers(dest="command", required=True)
    started = commands.add_parser("run", parents=[shared], help="run the trials of the space")
    started.add_argument("--presets", nargs="+", help="of the space; all")
    started.add_argument("--rows", nargs="+", default=["*"], help="such as 'H3/fast dropout*'")
    started.add_argument("--seeds", nargs="+", type=int, default=[0])
    started.add_argument("--device", default="auto", help="cuda or cpu")
    started.add_argument("--processes", type=int, default=1, help="that share the device, at most")
    started.add_argument("--seconds", type=float, help="start no trial after so long")
    started.add_argument("--stop-after", type=float, help="end trials that still run after so long")
    started.add_argument("--cache", type=Path, default=CACHE)
    started.add_argument("--dry", action="store_true", help="only list them")
    written = commands.add_parser("decide", parents=[shared], help="write what came out")
    written.add_argument("--check", action="store_true", help="only say whether it is up to date")
    tried = commands.add_parser("try", help="train with any settings, held-out documents only")
    tried.add_argument("--sets", nargs="+", required=True, choices=sorted(DATASETS))
    tried.add_argument("--codecs", nargs="+", default=["repair", "repair+4096"])
    tried.add_argument("--set", nargs="+", default=[], metavar="NAME=JSON", dest="settings")
    tried.add_argument("--longest", type=int, help="cut documents at so many letters")
    tried.add_argument("--out", type=Path, default=Path("build/tried.jsonl"))
    return parser.parse_args(arguments)


def run(given: argparse.Namespace) -> None:
    """Run what is missing."""
    every = trials(_wanted(read_space(given.space), given.presets), given.seeds)
    found = [each for each in every if any(fnmatch(str(each), p) for p in given.rows)]
    if not found:
        raise ConfigError("no trial has such a name; --dry lists them")
    if given.dry:
        for each in found:
            print("done" if find_row(given.results, *each.key) else "    ", each)
        return
    from experiments.choices.training import forget_stale, run_trial
    from experiments.paper.pool import run_in_processes

    if stale := forget_stale(given.results, found):
        print(f"removed {stale} results of trials that had other settings")
    where = given.device, given.results, given.cache, given.seconds, given.processes
    options = {"resumable": False, "stop_after": given.stop_after, "run": run_trial}
    left = run_in_processes(found, *where, **options)
    print(f"{len(left)} of {len(found)} trials are left" if left else "all trials are done")


def decide(given: argparse.Namespace) -> None:
    """Write choices.json and its page, or with --check only compare."""
    space = read_space(given.space)
    chosen = outcome(space, given.results)
    write_pages({CHOICES: formatted(chosen), PAGE: page(space, chosen)}, given.check)


def try_out(given: argparse.Namespace) -> None:
    """Train once for each data set and codec, and say what the held-out documents say."""
    from experiments.choices.training import trial
    from experiments.paper.corpora import training_corpus

    pairs = (each.partition("=") for each in given.settings)
    config = resolve(None, {name: json.loads(value) for name, _, value in pairs})
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for dataset in given.sets:
        for codec in given.codecs:
            source = training_corpus(dataset, codec, given.longest)
            figures = {"dataset": dataset, "codec": codec, **trial(source, config)}
            with given.out.open("a", encoding="utf-8") as file:
                print(json.dumps(figures), file=file)
            best = 100 * figures["held_out"]["accuracy"]
            print(f"{dataset} {codec}: {best:.2f} % of held-out documents, {given.out}")


def _wanted(space: dict[str, Searched], names: list[str] | None) -> list[Searched]:
    if unknown := set(names or ()) - space.keys():
        raise ConfigError(f"no preset {min(unknown)!r} in the space; there are {', '.join(space)}")
    return [one for name, one in space.items() if not names or name in names]


if __name__ == "__main__":
    main()
