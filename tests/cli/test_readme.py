"""What README tells people to run, run."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext, redirect_stdout
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from laconic.cli import app

ROOT = Path(__file__).parents[2]


def run(*arguments: str | Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key != "LACONIC_DATA"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_stays_light() -> None:
    """A compression worker installs with NumPy alone, and starts at once."""
    code = "import sys, laconic; print(*{name.split('.')[0] for name in sys.modules})"
    loaded = set(run("-c", code).split())
    assert "laconic" in loaded
    assert not loaded & {"torch", "pyarrow", "pandas", "sklearn", "lzma", "rich", "cyclopts"}


@pytest.mark.slow
def test_demo_has_a_row_for_every_sample_and_codec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its commands run in this process, since each would load torch anew."""

    def here(command: list[str], stdout: int | None, **_: Any) -> SimpleNamespace:
        assert command[:3] == [sys.executable, "-m", "laconic"]
        to: AbstractContextManager[Any] = redirect_stdout(StringIO()) if stdout else nullcontext()
        with to as said:
            app(command[3:], exit_on_error=False, result_action="return_value")
        return SimpleNamespace(stdout=said.getvalue() if stdout else None)

    monkeypatch.setattr(subprocess, "run", here)
    monkeypatch.setattr(sys, "argv", ["demo.py", "--quick"])
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples/demo.py"), run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    rows = {
        tuple(line.split()[:2]): line.split() for line in lines if line.startswith(("kjv", "bac"))
    }
    codecs = ("repair", "lz78", "lzd", "deflate", "none")
    assert set(rows) == {(name, codec) for name in ("kjv", "bacteria") for codec in codecs}
    for (name, codec), row in rows.items():
        documents, characters, rules, sequence, ratio = row[2:7]
        assert documents == "2,400"
        assert characters == {"kjv": "671", "bacteria": "800"}[name]
        assert float(ratio) == 1.0 if codec == "none" else float(ratio) > 2.5
        assert float(rules) == 0.0 if codec == "none" else float(rules) > 60
        assert 0 < float(sequence) <= 800
    [head] = (k for k, line in enumerate(lines) if line.startswith("run "))
    trained = {line.split()[0]: float(line.split()[1]) for line in lines[head + 1 : head + 4]}
    assert trained.keys() == {"default", "letters", "ngrams"}
    # Better than characters, also of few documents.
    assert trained["default"] > trained["letters"]
    assert any(line.split()[-1:] == ["word"] for line in lines), "it is explained in words"
    page = (tmp_path / "build/demo-quick/report.html").read_text()
    assert page.count("<svg") >= 2


@pytest.mark.slow
def test_benchmark_measures_every_contestant(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    printed = run("-m", "benchmarks.compress", "--quick", "--json", out)
    figures = json.loads(out.read_text())
    contestants = {"zlib -6", "zlib -9", "zstd -3", "tokenizers", "repair", "lzd", "lz78"}
    assert set(figures["short"]["rows"]) == contestants
    assert figures["short"]["rows"]["zlib -6"]["ratio_to_zlib_6"] == 1.0
    assert all(min(row["us_per_document"]) > 0 for row in figures["short"]["rows"].values())
    (large,) = figures["large"].values()
    assert large["rows"]["repair"]["symbols_per_byte"] < 0.5
    assert large["rows"]["repair"]["peak_memory_per_byte"] > 1
    assert {"command", "commit", "machine", "versions"} <= set(figures["about"])
    assert "µs/document" in printed


def makers_of_docs() -> list[str]:
    """The commands of `make docs`, all of which can check; drawing only shows what a model does."""
    lines = (
        (ROOT / "Makefile").read_text().partition("\ndocs: ")[2].partition("\n\n")[0].splitlines()
    )
    commands = [line.partition("python ")[2] for line in lines[1:]]
    # What runs no Python builds the site: tests/docs does it, too.
    return [command for command in commands if command not in ("", "tools/draw_pictures.py")]


@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("command", makers_of_docs())
def test_docs_are_what_make_docs_writes(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, since most of them load torch."""
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    monkeypatch.chdir(ROOT)
    module, _, rest = command.removeprefix("-m ").partition(" ")
    monkeypatch.setattr(sys, "argv", [module, *rest.split(), "--check"])
    begin = runpy.run_module if command.startswith("-m ") else runpy.run_path
    ended = None
    try:
        begin(module, run_name="__main__")
    except SystemExit as end:
        ended = end.code
    assert not ended


@pytest.mark.slow
def test_benchmark_of_corpora_measures_sizes_and_cost(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    run("-m", "benchmarks.corpus", "--quick", "--json", out)
    figures = json.loads(out.read_text())
    assert set(figures["sizes"]) == {"kjv", "bacteria"}
    for sizes in figures["sizes"].values():
        assert all(50 < size < 1000 for size in sizes["bytes_per_document"].values())
    cost = figures["cost"]
    assert 0 < cost["codec_running"] <= cost["work"] < cost["seconds"]
    assert cost["codec_running"] <= cost["codec_threads"] <= cost["workers"] * cost["work"]


@pytest.mark.slow
def test_benchmark_of_ngrams_measures_the_same_matrices(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    parts = ("speed", "repeats", "memory")
    run("-m", "benchmarks.ngrams", "--quick", "--json", out, "--parts", *parts)
    figures = json.loads(out.read_text())["ngrams"]
    assert set(figures["runs"]) == set(parts)
    rows = figures["speed"]["rows"]
    assert len(rows) == 9
    for name, row in rows.items():
        assert min(row["seconds"]) > 0
        assert name == "scikit-learn" or (row["same_names"] and row["difference"] < 1e-6)
    sizes = [row["doubled size"] for row in figures["repeats"]["rows"]]
    assert sizes == list(range(sizes[0], sizes[0] + 2 * len(sizes), 2))
    assert figures["memory"]["matrix_bytes"] > 0
