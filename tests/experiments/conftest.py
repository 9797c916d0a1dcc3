"""What runs the experiments' own code: few documents show it, in processes that begin at once."""

from __future__ import annotations

from collections.abc import Iterator

import forked
import pytest

from experiments.paper import corpora, pool
from laconic.samples import Split

_EVERY = 4  # of the documents, which are sorted by class


@pytest.fixture(scope="module")
def few_documents() -> Iterator[None]:
    """Let every data set have a quarter of its documents."""
    load = corpora.load

    def few(name: str) -> tuple[Split, Split]:
        train, test = (Split(p.documents[::_EVERY], p.labels[::_EVERY]) for p in load(name))
        return train, test

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpora, "load", few)
        yield


@pytest.fixture
def quick_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a pool's children have loaded torch before they begin."""
    monkeypatch.setattr(pool, "get_context", lambda _: forked.context())
