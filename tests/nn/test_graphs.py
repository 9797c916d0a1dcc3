"""What CUDA graphs run on: batches written into larger ones are the same batches to a model.

That graphs themselves give what models give is tested where there is a GPU (test_gpu.py).
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from laconic import compress_many
from laconic.batching import Batch, collate
from laconic.nn import COMPOSERS, GrammarModel, ModelConfig
from laconic.nn.graphs import captured_inference
from laconic.nn.static_batches import (
    copy_in,
    entries_of,
    fits,
    make_room,
    padded_length,
    static_batch,
)

TEXTS = st.lists(st.text("ab", max_size=60), min_size=1, max_size=5)


def sizes(batch: Batch) -> list[int]:
    return [end - begin for begin, end in pairwise(batch.level_offsets)]


def roomy(batch: Batch, others: list[Batch]) -> Batch:
    """A batch with room for all of these, in memory in which something was before."""
    room: list[int] = []
    for each in [batch, *others]:
        room = make_room(sizes(each), room)
    longest = max(each.symbols.shape[1] for each in [batch, *others])
    entries = [max(each) for each in zip(*map(entries_of, [batch, *others]), strict=True)]
    shape = len(batch), padded_length(longest)
    rubbish = torch.full((10**6,), 0xA5, dtype=torch.uint8)
    return static_batch(batch, shape, room, entries, lambda size: rubbish[:size])


@settings(max_examples=60)
@given(TEXTS, st.data(), st.sampled_from(sorted(COMPOSERS)))
def test_a_batch_in_a_larger_one_is_the_same_to_a_model(
    texts: list[str], data: st.DataObject, composer: str
) -> None:
    count = len(texts)
    others = data.draw(st.lists(st.text("abc", max_size=90), min_size=count, max_size=count))
    torch.manual_seed(0)
    kind = data.draw(st.sampled_from(["sequence", "both", "ngram"]))
    local = {"local_ngrams": data.draw(st.sampled_from([0, 3])), "local_buckets": 30}
    config = ModelConfig(256, 2, composer=composer, embedding_size=8, width=6, dropout=0.0)
    rows = data.draw(st.sampled_from([None, 20]))
    config = replace(
        config, identity_buckets=5, **local, local_size=4, local_dropout=0.0, local_rows=rows
    )
    config = replace(config, model=kind, ngrams=2, phrases=2, ngram_buckets=20, ngram_rows=40)
    model = GrammarModel(config).double()
    if model.bag is not None:
        model.bag.learn(torch.arange(1, 41), 50)
        torch.nn.init.normal_(model.bag.table)
    if model.local is not None and rows is not None:
        model.local.learn(torch.arange(30) % 3 > 0)
    one, other = (
        collate(compress_many(t), [0] * count, counted=config.counted, in_place=config.in_place)
        for t in (texts, others)
    )
    large = roomy(one, [other])
    # The other one first, so that anything it leaves behind would be seen.
    for batch in (other, one):
        copy_in(large, batch)
        found = []
        for each in (batch, large):
            model.zero_grad()
            outputs = model(each)
            outputs.square().sum().backward()
            grads = [torch.zeros(1) if p.grad is None else p.grad for p in model.parameters()]
            found.append([outputs.detach(), *grads])
        for a, b in zip(*found, strict=True):
            assert torch.allclose(a.double(), b.double(), atol=1e-10)


@given(st.lists(st.integers(1, 5000), max_size=20), st.lists(st.integers(1, 5000), max_size=20))
def test_room_is_for_both(one: list[int], other: list[int]) -> None:
    room = make_room(other, make_room(one, ()))
    assert fits(one, room)
    assert fits(other, room)


@given(st.integers(1, 10**6))
def testpadded_lengths_are_few_and_near(length: int) -> None:
    padded = padded_length(length)
    assert length <= padded < length + max(8, length / 4 + 1)
    assert padded_length(padded) == padded


def test_batches_on_the_cpu_are_refused() -> None:
    model = GrammarModel(ModelConfig(256, 2, embedding_size=8, width=8))
    with pytest.raises(ValueError, match=r'use batch\.to\("cuda"\)'):
        captured_inference(model)(collate(compress_many(["abab"])))
