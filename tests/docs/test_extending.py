"""docs/extending.md: every block, added to a copy of the sources where the page says, and tried."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import laconic

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
BLOCK = re.compile(r"^<!-- (.+?) -->\n```\w*\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Thing(NamedTuple):
    """A section of the page: its title, the files that it says it takes, and its blocks."""

    title: str
    files: int
    blocks: list[tuple[str, str]]


def things() -> Iterator[Thing]:
    for section in PAGE.read_text("utf-8").split("\n## ")[1:]:
        title, number = re.match(r"(.+): (\d+) files?\n", section).groups()  # type: ignore[union-attr]
        yield Thing(title, int(number), BLOCK.findall(section))


def apply(where: str, code: str, tree: Path) -> str:
    """Add a block where the page says, and return the file."""
    how, _, rest = where.partition(" ")
    file, _, place = rest.removeprefix("of ").partition(" ")
    path = tree / file
    if how == "new":
        assert not path.exists(), f"{file} is not new"
        path.write_text(code, "utf-8")
        return file
    text = path.read_text("utf-8")
    if how == "end":
        path.write_text(f"{text}\n\n{code}", "utf-8")
        return file
    side, _, mark = place.partition(" ")
    lines = text.splitlines(keepends=True)
    (at,) = [number for number, line in enumerate(lines) if mark in line]
    lines.insert(at + (side == "after"), code if side == "after" or "{" in mark else code + "\n\n")
    path.write_text("".join(lines), "utf-8")
    return file


def files_of(thing: Thing, tree: Path) -> set[str]:
    blocks = [(where, code) for where, code in thing.blocks if not where.startswith("try")]
    return {apply(where, code, tree) for where, code in blocks}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with everything of the page added to it."""
    tree = tmp_path_factory.mktemp("tree")
    for folder in ("src", "core", "bindings"):
        shutil.copytree(
            ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("*.so", "__pycache__")
        )
    for name in ("CMakeLists.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    for thing in things():
        assert len(files_of(thing, tree)) == thing.files, thing.title
    return tree


# Runs the blocks of things, by their titles, and prints what those that failed said. All are in the
# sources anyway, and a process for each would load torch for each.
ATTEMPTS = """
import json, sys, traceback
failed = {}
for title, code in json.load(sys.stdin).items():
    try:
        exec(compile(code, title, "exec"), {"__name__": "__main__"})
    except BaseException:
        failed[title] = traceback.format_exc()
print(json.dumps(failed))
"""


def attempts(some: list[Thing], word: str, tree: Path, core: Path, folder: Path) -> dict[str, str]:
    """Try things in a process of their own; return what those that failed said, by titles."""
    shutil.copy(core, tree / "src" / "laconic")
    codes = {
        thing.title: "\n".join(code for where, code in thing.blocks if where == word)
        for thing in some
    }
    assert all(codes.values()), "nothing is tried"
    environment = {**os.environ, "PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    # -S: an editable install would bring its own laconic; site-packages are named instead.
    start = f"import sys; sys.path[:0] = {[p for p in sys.path if 'site-packages' in p]!r}; "
    start += f"sys.path.insert(0, {str(tree / 'src')!r})\n"
    done = subprocess.run(
        [sys.executable, "-S", "-c", start + ATTEMPTS],
        env=environment,
        cwd=folder,
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    failed: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return failed


PLAIN = [each for each in things() if "try built" not in dict(each.blocks)]


@pytest.fixture(scope="module")
def failed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("attempts")
    return attempts(PLAIN, "try", tree, Path(laconic._core.__file__), folder)


@pytest.mark.parametrize("thing", PLAIN, ids=lambda each: each.title)
def test_it_is_added_in_so_few_files(thing: Thing, failed: dict[str, str]) -> None:
    assert thing.title not in failed, failed[thing.title]


@pytest.mark.parametrize(
    "thing",
    [each for each in things() if "try built" in dict(each.blocks)],
    ids=lambda each: each.title,
)
def test_it_is_built_from_so_few_files(thing: Thing, tree: Path, tmp_path: Path) -> None:
    scripts = Path(sysconfig.get_path("scripts"))
    tools = {
        name: str(scripts / name) if (scripts / name).exists() else name
        for name in ("cmake", "ninja")
    }
    build = tmp_path / "build"
    settings = [
        "-G",
        "Ninja",
        f"-DCMAKE_MAKE_PROGRAM={shutil.which(tools['ninja'])}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    # What is not optimised, and one file to the compiler, is compiled in a fraction of the time.
    fast = ["BUILD_TYPE=Debug", "CXX_FLAGS_DEBUG=-O0", "UNITY_BUILD=ON", "UNITY_BUILD_BATCH_SIZE=0"]
    for command in (
        [
            tools["cmake"],
            "-S",
            str(tree),
            "-B",
            str(build),
            *settings,
            *(f"-DCMAKE_{each}" for each in fast),
        ],
        [tools["cmake"], "--build", str(build)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    (core,) = build.glob("_core*.so")
    assert not attempts([thing], "try built", tree, core, tmp_path)
