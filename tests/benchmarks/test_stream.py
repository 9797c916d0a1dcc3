"""benchmarks.stream: what it says of a command's memory, on a corpus that is made in a second."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.stream import commands, repeated, watched
from laconic import Corpus


def test_a_corpus_is_repeated_and_a_command_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LACONIC_DATA", raising=False)
    told = repeated(tmp_path, gigabytes=0.001)
    corpus = Corpus.open(tmp_path / "corpus")
    assert len(corpus) == told["documents"]
    assert told["bytes"] == sum(each.stat().st_size for each in (tmp_path / "corpus").iterdir())
    assert told["bytes"] >= 1e6
    assert told["bytes_in_memory"] == pytest.approx(corpus.grammars.nbytes, rel=0.1)
    words = commands(tmp_path, len(corpus))["features, hashed"]
    row = watched(words)
    assert 50e6 < row["peak_memory"] < 1.5e9
    assert len(row["peaks_of_quarters"]) == 4
    assert 0 < max(row["peaks_of_quarters"]) <= 1.01 * row["peak_memory"]
    with pytest.raises(SystemExit, match="ended with"):
        watched(words)  # what it writes is there
