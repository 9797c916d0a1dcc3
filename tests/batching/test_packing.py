"""Tensors side by side are the same tensors, and go to a device as one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from laconic import compress_many
from laconic.batching import Batch, collate
from laconic.batching.packing import moved, packed
from laconic.ngrams.hashed import HashedCounter
from laconic.ngrams.in_place import NgramPlacer


def some() -> list[Tensor]:
    return [
        torch.arange(7, dtype=torch.int32).view(7, 1),
        torch.zeros(0, 2, dtype=torch.int64),
        torch.randn(3, 5),
        torch.tensor(2.5),
        torch.tensor([True, False]),
        torch.arange(12).view(3, 4).t(),
    ]


def batch(texts: list[str]) -> Batch:
    counted, in_place = HashedCounter(3, 2, buckets=50), NgramPlacer(3, buckets=50)
    labels = list(range(len(texts)))
    return collate(compress_many(texts), labels, labels, counted=counted, in_place=in_place)


def tensors_of(batch: Batch) -> dict[str, Any]:
    return {
        name: [each.tolist() for each in (value if isinstance(value, tuple) else [value])]
        for name, value in vars(batch).items()
        if isinstance(value, Tensor) or (isinstance(value, tuple) and isinstance(value[0], Tensor))
    }


def test_packed_tensors_are_the_same() -> None:
    tensors = some()
    copies = packed(tensors)
    assert len({each.untyped_storage().data_ptr() for each in copies}) == 1
    for one, other, again in zip(tensors, copies, moved(copies, "cpu"), strict=True):
        assert torch.equal(one, other)
        assert torch.equal(one, again)
        assert one.dtype == other.dtype == again.dtype
        assert other.data_ptr() % 64 == 0 or not other.numel()
    copies[0].zero_()
    assert tensors[0].any()


def test_what_lies_in_one_buffer_is_moved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    to = Tensor.to

    def counting(self: Tensor, *given: Any, **options: Any) -> Tensor:
        calls.append(self.nbytes)
        return to(self, *given, **options)

    monkeypatch.setattr(Tensor, "to", counting)
    copies = packed(some())
    there = moved(copies, "meta")
    assert [each.shape for each in there] == [each.shape for each in copies]
    assert {each.device.type for each in there} == {"meta"}
    assert len(calls) == 1
    moved(some(), "meta")
    assert len(calls) == 7
    # One was replaced, or is a part of something larger.
    moved([*copies[:-1], torch.ones(3)], "meta")
    moved(packed([torch.ones(5000), torch.ones(3)])[1:], "meta")
    moved(list(torch.ones(5000).split(2)[:3]), "meta")
    assert len(calls) == 7 + 6 + 1 + 3
    assert moved([], "meta") == []


def test_batches_keep_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    one = batch(["abab", "", "banana"])
    monkeypatch.setattr(
        "laconic.batching.batch.packed", lambda tensors, pin_memory: packed(tensors)
    )
    for other in (one.pin_memory(), one.to("cpu"), one.pin_memory().to("cpu")):
        assert tensors_of(other) == tensors_of(one)
        assert (other.alphabet_size, other.level_offsets) == (256, one.level_offsets)
        assert type(other.bag) is type(one.bag)
        assert type(other.in_place) is type(one.in_place)
    plain = collate(compress_many(["ab"])).pin_memory()
    assert (plain.labels, plain.rows, plain.bag, plain.in_place) == (None, None, None, None)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_batches_on_a_gpu() -> None:
    one = batch(["abab", "", "banana", "xyz" * 50])
    pinned = one.pin_memory()
    assert pinned.symbols.is_pinned()
    there = pinned.to("cuda", non_blocking=True)
    for other in (there, there.to("cpu"), one.to("cuda")):
        assert tensors_of(other) == tensors_of(one)
    assert there.symbols.is_cuda
    assert there.symbols.untyped_storage().data_ptr() == there.children.untyped_storage().data_ptr()
