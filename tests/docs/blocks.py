"""The pages of the documentation, their blocks of code, and the commands that these show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    path
    for pattern in ("docs/**/*.md", "*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Block(NamedTuple):
    """What is between two fences: its language, its text, and the line where it begins."""

    language: str
    text: str
    line: int


def blocks_of(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        yield Block(found[1], found[2], text.count("\n", 0, found.start()) + 2)


def commands_of(block: Block) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each line that runs laconic, what is piped into it and comments left out.

    Words that a person is to replace ("…") are none that could be tried.
    """
    if block.language not in ("", "console", "bash", "sh"):
        return
    for number, line in enumerate(block.text.splitlines()):
        command = re.search(r"(?:^|\| |^\$ |-m )laconic (.*)", line)
        if command and "…" not in line:
            yield block.line + number, shlex.split(command[1], comments=True)
