"""Words of documents: parts that make up all of it, and that can be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laconic import Alphabet, compress
from laconic.inference.words import spans_of

BYTES = Alphabet.bytes()


@pytest.mark.parametrize("sign", ["ü", "我", "𐍈"])
@pytest.mark.parametrize("before", range(4))
def test_long_text_without_spaces_is_cut_between_characters(sign: str, before: int) -> None:
    """Chinese has none, and pages full of signs for damaged text cannot be read."""
    text = "x" * before + sign * 50
    spans = list(spans_of(BYTES, compress(text)))
    assert len(spans) > 3
    assert "".join(span.text for span in spans) == text


@given(st.lists(st.sampled_from([b"word", b" ", b"\x80" * 30, "我".encode() * 9, b"\xff"])))
def test_spans_follow_each_other(parts: list[bytes]) -> None:
    data = b"".join(parts)
    spans = list(spans_of(BYTES, compress(data)))
    assert [span.begin for span in spans] == [0, *(span.end for span in spans)][: len(spans)]
    assert (spans[-1].end if spans else 0) == len(data)
    assert all(span.begin < span.end for span in spans)
    assert all(span.end - span.begin <= 13 for span in spans if span.cut)
