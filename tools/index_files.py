"""Writes the index of files in docs/architecture.md from the first line of every file.

python tools/index_files.py            # write it; --check only says whether it is up to date
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
MARKS = ("<!-- files: written by `make docs` -->\n", "<!-- end of files -->")
FOLDERS = ("src/laconic", "core", "bindings", "benchmarks", "experiments", "tools")


def told(path: Path) -> str:
    """Return the first line that a file says of itself; an empty text if it says nothing.

    Some sentences go on in the next line: they are cut at the end of the first sentence.
    """
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        said = (ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0]
    else:
        lines = text.splitlines()
        end = next((k for k, line in enumerate(lines) if not line.startswith("//")), len(lines))
        said = " ".join(line.removeprefix("//").strip() for line in lines[:end])
    return " ".join(said.split())


def rooms() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield folders and their files, each with what it says of itself."""
    for top in FOLDERS:
        files = [
            path
            for suffix in ("*.py", "*.hpp", "*.cpp")
            for path in sorted((ROOT / top).rglob(suffix))
            if "tests" not in path.relative_to(ROOT).parts
        ]
        for folder in sorted({path.parent for path in files}):
            found = []
            for path in (each for each in files if each.parent == folder):
                words = told(path)
                if path.name not in ("__init__.py", "__main__.py") and words:
                    found.append((path.name, words))
            yield str(folder.relative_to(ROOT)), sorted(found)


def index() -> str:
    """Return the index, a table for each room."""
    lines: list[str] = []
    for room, files in rooms():
        first = ROOT / room / "__init__.py"
        lines += ["", f"### `{room}/`", ""]
        if first.exists() and room != "src/laconic":
            lines += [told(first), ""]
        if files:
            lines += ["| file | what it is |", "|---|---|"]
            lines += [f"| `{name}` | {words} |" for name, words in files]
    return "\n".join([*lines[1:], "", ""])


def main() -> None:
    """Write the page, or with --check only compare."""
    page = PAGE.read_text("utf-8")
    before, _, rest = page.partition(MARKS[0])
    _, mark, after = rest.partition(MARKS[1])
    if not mark:
        sys.exit(f"{PAGE}: the marks are missing: {MARKS}")
    new = before + MARKS[0] + index() + MARKS[1] + after
    if "--check" in sys.argv:
        sys.exit(0 if new == page else f"{PAGE} is not up to date: run `make docs`")
    PAGE.write_text(new, "utf-8")


if __name__ == "__main__":
    main()
