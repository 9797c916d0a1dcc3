"""The committed types of the core are those of the core."""

from __future__ import annotations

import pytest
from make_stubs import STUB, made


def test_the_stub_is_what_the_bindings_say() -> None:
    pytest.importorskip("nanobind")
    assert STUB.read_text() == made(), "src/laconic/_core.pyi is stale: run `make stubs`"
