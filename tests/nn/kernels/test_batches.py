"""A batch in a larger one, written by a kernel, equals the one that is written plainly."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from laconic import Rulebook, compress_many
from laconic.batching import Batch, collate
from laconic.ngrams.hashed import HashedCounter
from laconic.ngrams.in_place import NgramPlacer
from laconic.nn.kernels import batches as kernels
from laconic.nn.kernels import cuda
from laconic.nn.static_batches import (
    copy_in,
    copy_in_plainly,
    entries_of,
    make_room,
    padded_length,
    static_batch,
)

from .on_threads import OnThreads

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TEXTS = [
    ["abab" * 9, "", "banana ananas " * 3],
    ["abcabc", "x", "b"],
    ["a", "b", "c"],
    ["and it came to pass " * 4, "the lord said unto him " * 3, "and the lord " * 7],
]


def sizes(batch: Batch) -> list[int]:
    return torch.tensor(batch.level_offsets).diff().tolist()


def examples(kind: str) -> list[Batch]:
    """Batches of the same number of documents, which do not have the same forests."""
    counted = HashedCounter(3, 2, buckets=50) if kind == "bag" else None
    in_place = NgramPlacer(3, buckets=50) if kind == "in place" else None
    book = Rulebook.learn(TEXTS[3], 20) if kind == "rulebook" else None
    labels = {"many labels": [[0.5, 1.0]] * 3, "none": None}.get(kind, [2, 0, 1])
    return [
        collate(
            compress_many(texts, "none" if kind == "letters" else "repair", rulebook=book),
            labels,
            counted=counted,
            in_place=in_place,
        )
        for texts in TEXTS
    ]


def large(every: list[Batch]) -> Batch:
    room: list[int] = []
    for each in every:
        room = make_room(sizes(each), room)
    longest = max(each.symbols.shape[1] for each in every)
    entries = [max(each) for each in zip(*map(entries_of, every), strict=True)]
    shape = len(every[0]), padded_length(longest)
    return static_batch(every[0], shape, room, entries, rubbish(every[0].symbols.device))


def rubbish(device: torch.device) -> Callable[[int], Tensor]:
    """Memory in which something was before."""
    return lambda size: torch.full((size,), 0xA5, dtype=torch.uint8, device=device)


def arrays(batch: Batch) -> list[Tensor]:
    return [each for each in kernels._arrays(batch) if each is not None]


def check(kind: str, device: str) -> None:
    every = [each.to(device) for each in examples(kind)]
    one, other = large(every), large(every)
    for batch in every:
        assert kernels.obstacle(one, batch) is None
        copy_in(one, batch)
        copy_in_plainly(other, batch)
        for found, wanted in zip(arrays(one), arrays(other), strict=True):
            assert torch.equal(found, wanted)


KINDS = ["plain", "letters", "bag", "in place", "many labels", "none", "rulebook"]


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_the_kernel_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = OnThreads(tmp_path, kernels.KERNELS.source)
    assert made.names == ["copy_batch"]
    monkeypatch.setattr(kernels, "KERNELS", made)
    monkeypatch.setattr(kernels, "_BLOCKS", 2)
    for kind in KINDS:
        check(kind, "cpu")


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel(kind: str) -> None:
    check(kind, "cuda")


def test_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    every = examples("plain")
    static = large(every)
    assert "GPUs" in str(kernels.obstacle(static, every[0]))
    monkeypatch.setattr(kernels.KERNELS, "obstacle", lambda device: None)
    assert kernels.obstacle(static, every[0]) is None
    deep = replace(static, level_offsets=tuple(range(257)))
    assert "255 levels" in str(kernels.obstacle(deep, every[0]))
    turned = replace(every[0], symbols=every[0].symbols.t().contiguous().t())
    assert "contiguous" in str(kernels.obstacle(static, turned))


@pytest.mark.gpu
@GPU
def test_a_machine_where_compiling_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "broken.cu"
    source.write_text("not C++ at all")
    monkeypatch.setattr(kernels, "KERNELS", cuda.Kernels(source))
    every = [each.to("cuda") for each in examples("plain")]
    assert kernels.obstacle(large(every), every[0])
    copy_in(large(every), every[0])
    with pytest.raises(cuda.CudaError, match="NVRTC: "):
        kernels.KERNELS.on(every[0].symbols.device)
