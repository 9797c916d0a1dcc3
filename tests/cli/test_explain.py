"""laconic explain at a prompt and in a pipe: colours where there are any, and a bounded text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from inference.test_explanation import laconic, make_predictor, make_run

from laconic.report.explanation_page import AT_PROMPT

COLOURS = "blue speaks for 'law', red against it"
SIGNS = "scores above 0 speak for 'law', below 0 against it"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", make_predictor())


@pytest.mark.parametrize(("setting", "coloured"), [("FORCE_COLOR", True), ("NO_COLOR", False)])
def test_colours_are_spoken_of_where_there_are_any(
    run: Path,
    tmp_path: Path,
    setting: str,
    coloured: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    new = tmp_path / "new.txt"
    new.write_text("And the LORD said unto Moses\n")
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    laconic(run, new, "--target", "law")
    told = capsys.readouterr().out
    assert SIGNS in told
    assert COLOURS not in told
    assert "\x1b" not in told
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv(setting, "1")
    laconic(run, new, "--target", "law")
    told = capsys.readouterr().out
    assert (COLOURS in told, SIGNS in told) == (coloured, not coloured)
    assert bool(re.search(r"\x1b\[[0-9;]*48;", told)) == coloured


def test_of_a_long_document_a_part_is_printed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = " ".join(f"word{k % 100}" for k in range(3000))
    new = tmp_path / "new.txt"
    new.write_text(f"{text}\n")
    laconic(run, new, "--method", "gradient")
    printed = capsys.readouterr().out
    assert f" of {len(text):,} letters are shown, around the places that decided most" in printed
    assert "\n…\n" in printed
    assert AT_PROMPT / 2 < len(printed) < AT_PROMPT + 2500  # the lists take some, too
    laconic(run, new, "--method", "gradient", "--json")
    told = json.loads(capsys.readouterr().out)
    assert "".join(span["text"] for span in told["spans"]) == text
