"""The command line: one file per command, which imports what is heavy when it runs."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import App, Group, Parameter

from laconic import __version__
from laconic.cli.interrupt import full_disk, stopped, watch
from laconic.errors import LaconicError, needs, visible

__all__ = ["app", "main"]

_EVERY = Group("Every command", sort_key=9)
_DEBUG = "Show where in the program an error came from."

_commands = App(
    name="laconic",
    help="Compress documents into small grammars, and learn from them without expanding them.",
    version=__version__,
    suppress_keyboard_interrupt=False,
)
_ON_CORPORA = "rulebook", "compress", "info", "show", "explore", "expand", "verify", "features"
_ON_MODELS = "train", "evaluate", "predict", "explain", "report"


def _help_of(command: str) -> str:
    """Read a command's docstring from its file: only the command that runs is worth importing."""
    source = (Path(__file__).parent / f"{command}.py").read_text(encoding="utf-8")
    docstring = re.search(rf'^def {command}\(.*?"""(.*?)"""', source, re.MULTILINE | re.DOTALL)
    return docstring[1] if docstring else ""


for _name in (*_ON_CORPORA, *_ON_MODELS):
    _commands.command(f"laconic.cli.{_name}:{_name}", name=_name, help=_help_of(_name))
app = _commands.meta


@app.default
def _run(
    *words: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
    debug: Annotated[bool, Parameter(negative="", help=_DEBUG, group=_EVERY)] = False,
) -> None:
    learns = words and words[0] in _ON_MODELS
    words = tuple(_with_hyphens(words))
    try:
        with needs(f"laconic {words[0]}", "train") if learns else nullcontext():
            _commands(words)
    except (LaconicError, OSError, MemoryError):
        if debug:
            traceback.print_exc()
        raise


def _with_hyphens(words: Iterable[str]) -> Iterator[str]:
    """Give words in which lone hyphens, to cyclopts options that nobody has, are what they mean."""
    rest = iter(words)
    for word in rest:
        if word == "-":
            yield "/dev/stdin"
        elif word in ("-o", "--out") and (out := next(rest, None)) is not None:
            yield from [f"--out={out}"] if out == "-" else [word, out]
        else:
            yield word


def main() -> None:
    """Run the command; what the user can mend is told in one line, with exit status 1."""
    watch()
    try:
        app()
    except BaseException as error:
        if not isinstance(error, SystemExit) or error.code:
            _end(error)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        # Threads by which torch's processes talk now and then abort one that winds down, and
        # torchrun then stops the others, which may still be writing.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(0)


def _end(error: BaseException) -> NoReturn:
    if (number := stopped()) or isinstance(error, KeyboardInterrupt):
        _leave("laconic: stopped", 128 + (number or signal.SIGINT))
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, BrokenPipeError):  # `laconic show … | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(128 + 13)  # as if SIGPIPE had ended it, as it ends others: not all was done
    said = str(error).strip()
    if full_disk(error):
        _leave(f"laconic: the disk is full: {said}; make room, or choose another place")
    if isinstance(error, LaconicError | OSError):
        _leave(f"laconic: {said or f'{type(error).__name__}; see more with --debug'}")
    if isinstance(error, MemoryError):
        cure = "give less at a time, or use a machine with more"
        _leave(f"laconic: out of memory{said and f': {said}'}; {cure}")
    traceback.print_exception(error)
    _leave(f"laconic: this is a bug in Laconic {__version__}; please report it with the above")


def _leave(message: str, status: int = 1) -> NoReturn:
    """Say why, and go at once: threads may be deep in work that nobody wants any more."""
    with suppress(OSError):
        sys.stdout.flush()
    print(visible(message), file=sys.stderr)
    sys.stderr.flush()
    os._exit(status)
