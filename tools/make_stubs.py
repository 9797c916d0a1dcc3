"""Writes src/laconic/_core.pyi from the compiled core, with nanobind's stubgen: `make stubs`.

tests/tools/test_make_stubs.py fails if the committed file is not what this writes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

STUB = Path(__file__).resolve().parent.parent / "src" / "laconic" / "_core.pyi"
HEAD = '''"""The compiled core. Arrays are C-contiguous; nothing here is public.

Written by `make stubs` from bindings/: change it there.
"""
'''


def made() -> str:
    """Return the stub of the core that is installed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "_core.pyi")
        _run("nanobind.stubgen", "-q", "-m", "laconic._core", "-o", str(path))
        text = path.read_text()
        # mypy knows no more of an array than its dtype, and readers know the rest from HEAD.
        array = r"Annotated\[(NDArray(?:\[numpy\.\w+\])?), dict\(shape=\([^)]*\), [^)]*\)\]"
        text = re.sub(array, r"\1", text)
        text = re.sub(r"\bNDArray(?=[,)\]:])", "NDArray[numpy.integer[Any]]", text)
        text = text.replace("from typing import Annotated\n", "from typing import Any\n")
        text = text.replace("HASHES: dict = ...", "HASHES: dict[str, str]")
        text = text.replace("CODECS: dict = ...", "CODECS: dict[str, tuple[str, ...]]")
        # Docstrings begin on their first line, and end there if that is all.
        text = re.sub(r':\n( +)"""\n +', r':\n\1"""', text)
        text = re.sub(r'"""([^"\n]+)\n +"""', r'"""\1"""', text)
        path.write_text(HEAD + text)
        _run("ruff", "format", "-q", "--line-length", "100", str(path))
        return path.read_text()


def _run(module: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)


if __name__ == "__main__":
    STUB.write_text(made())
