"""What `import laconic` gives: public names, found when they are asked for, listed before."""

from __future__ import annotations

import subprocess
import sys

import pytest

import laconic


def test_public_names_are_listed_and_found() -> None:
    assert set(laconic.__all__) <= set(dir(laconic))
    for name in laconic.__all__:
        assert getattr(laconic, name) is not None
        assert name in vars(laconic)  # the next look costs nothing
    with pytest.raises(AttributeError, match="has no attribute 'compres'"):
        _ = laconic.compres


def test_nothing_heavy_is_loaded_before_it_is_needed() -> None:
    code = "import sys, laconic; print(*{m.split('.')[0] for m in sys.modules})"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(told.stdout.split())
    assert not loaded & {"numpy", "pyarrow", "torch", "sklearn", "cyclopts"}
