"""Examples of the documentation: tutorials run whole, commands parse, and code compiles."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from cyclopts import CycloptsError

from laconic.cli import _commands, _with_hyphens, app

from .blocks import PAGES, ROOT, Block, blocks_of, commands_of

TUTORIALS = sorted((ROOT / "docs/tutorials").glob("*.md"))
NUMBER = re.compile(r"[+-]?\d[\d,]*(?:\.\d+)?")
ELSEWHERE = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
named = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@named
def test_every_command_has_the_flags_that_a_page_says(page: Path) -> None:
    wrong = []
    for block in blocks_of(page):
        for line, words in commands_of(block):
            try:
                given = list(_with_hyphens(words))
                _commands.parse_args(given, exit_on_error=False, print_error=False)
            except CycloptsError as error:
                wrong.append(f"{page.name}:{line}: laconic {shlex.join(words)}: {error}")
    assert not wrong, "\n".join(wrong)


@named
def test_every_block_of_python_is_python(page: Path) -> None:
    if page.name == "extending.md":
        pytest.skip("its blocks are parts of files: test_extending.py puts them there")
    for block in blocks_of(page):
        if block.language == "python" and ">>>" not in block.text:
            ast.parse(block.text, f"{page.name}:{block.line}")


def test_readme_leads_somewhere() -> None:
    """It is no page of the site, whose links the build checks."""
    links = re.findall(r"\]\(([^)#:]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def same(told: str, printed: str) -> bool:
    """Return whether a command printed what a page tells; numbers differ from machine to machine.

    >>> same("accuracy 0.91\\n... 3 words", "accuracy   0.902\\nand so on\\n12 words")
    True
    >>> same("accuracy 0.91", "loss 0.91")
    False
    """
    expected, got = (NUMBER.sub("0", text.strip()) + "\n" for text in (told, printed))
    return doctest.OutputChecker().check_output(expected, got, ELSEWHERE)


def run_commands(block: Block) -> None:
    """Run each line that begins with $, and compare what it prints with what follows, if any."""
    for each in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, told = each.partition("\n")
        program, *words = shlex.split(command, comments=True)
        assert program == "laconic", command
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            app(words, exit_on_error=False, result_action="return_value")
        if told.strip():
            assert same(told, printed.getvalue()), f"{command}\n{printed.getvalue()}"


def run_python(block: Block, page: Path, space: dict[str, Any]) -> None:
    """Run a script, or an example with what it prints; both leave their names for what follows."""
    if ">>>" not in block.text:
        exec(compile(block.text, f"{page.name}:{block.line}", "exec"), space)
        return
    test = doctest.DocTestParser().get_doctest(block.text, space, page.name, str(page), block.line)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=ELSEWHERE)
    runner.run(test, out=told.append, clear_globs=False)
    assert not runner.failures, "".join(told)
    space.update(test.globs)


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_runs_from_its_first_line_to_its_last(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks_of(page):
        if block.language == "python":
            run_python(block, page, space)
        elif block.language == "console":
            run_commands(block)


def test_there_are_tutorials_of_all_four_kinds() -> None:
    assert [page.stem for page in TUTORIALS] == ["dna", "logs", "reviews", "web_archive"]
    for page in TUTORIALS:
        languages = {block.language for block in blocks_of(page)}
        assert {"python", "console"} <= languages, f"{page.name} shows no code, or no command"
