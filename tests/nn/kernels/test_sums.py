"""Weighted sums of rows by kernels, and the way back, against torch's own sums in float64."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from laconic.nn.gradients import Gradients
from laconic.nn.kernels import cuda, sums
from laconic.nn.weighted_sums import gradients_added_to, sums_of, weighted_sums

from .on_threads import OnThreads

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SHAPES = [(1, 1, 1), (700, 2, 9), (333, 64, 40), (100, 1, 3), (50, 33, 7), (40, 600, 5)]


def example(count: int, size: int, places: int, sort: bool, device: str) -> dict[str, Any]:
    """Entries of which some weigh nothing; the last ones go anywhere, as room for more does."""
    torch.manual_seed(count + size)
    into = torch.randint(0, places, (count,))
    if sort:
        into[: count - 5] = into[: count - 5].sort().values
    made = {
        "table": torch.randn(60, size),
        "rows": torch.randint(0, 60, (count,)),
        "weights": torch.randn(count) * (torch.rand(count) < 0.6),
        "into": into,
    }
    return {name: each.to(device) for name, each in made.items()} | {"count": places}


def wanted(given: dict[str, Any], to_sums: Tensor) -> tuple[Tensor, Tensor]:
    """Sums and the table's gradient as everybody would write them."""
    table = given["table"].double().requires_grad_(True)
    values = table[given["rows"]] * given["weights"].double()[:, None]
    found = values.new_zeros(given["count"], table.shape[1]).index_add(0, given["into"], values)
    return found, torch.autograd.grad(found, table, to_sums.double())[0]


def assert_close(found: Tensor, right: Tensor) -> None:
    """Up to the rounding of float32: of thousands of numbers around 1, where there are many."""
    torch.testing.assert_close(found.double(), right, rtol=1e-5, atol=1e-3)


def check(shape: tuple[int, int, int], sort: bool, device: str) -> None:
    given = example(*shape, sort, device)
    assert sums.obstacle(*(given[n] for n in ("table", "rows", "weights", "into"))) is None
    given["table"] = nn.Parameter(given["table"])
    to_sums = torch.randn(given["count"], shape[1], device=device)
    found = weighted_sums(**given)
    right, gradient = wanted(given, to_sums)
    assert_close(found, right)
    (apart,) = torch.autograd.grad(found, given["table"], to_sums)
    assert_close(apart, gradient)
    # The same, added to what is there.
    kept = Gradients([given["table"]])
    kept.attach()
    into = given["table"].grad
    assert into is not None
    into.fill_(1.0)
    with gradients_added_to(kept.by_address):
        found = weighted_sums(**given)
    none = torch.autograd.grad(found, given["table"], to_sums, allow_unused=True)
    assert none == (None,)
    assert_close(into - 1, gradient)
    values, places = given["weights"], given["into"]
    squares = torch.zeros(given["count"], dtype=torch.float64, device=device)
    squares.index_add_(0, places, values.double())
    assert_close(sums_of(values, places, given["count"]), squares)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> OnThreads:
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    return OnThreads(tmp_path_factory.mktemp("sums"), sums.KERNELS.source)


@pytest.mark.parametrize("shape", SHAPES)
def test_kernels_on_the_cpu(
    shape: tuple[int, int, int], compiled: OnThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compiled.names == ["sum_rows", "add_to_rows"]
    monkeypatch.setattr(sums, "KERNELS", compiled)
    monkeypatch.setattr(sums, "_BLOCKS", 2)
    check(shape, True, "cpu")


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("sort", [True, False])
@pytest.mark.parametrize("shape", [*SHAPES, (200_000, 64, 18_000), (400_000, 2, 64)])
def test_kernels(shape: tuple[int, int, int], sort: bool) -> None:
    check(shape, sort, "cuda")


@pytest.mark.parametrize("shape", SHAPES)
def test_gradients_are_added_without_kernels_too(shape: tuple[int, int, int]) -> None:
    given = example(*shape, False, "cpu")
    given["table"] = nn.Parameter(given["table"])
    to_sums = torch.randn(given["count"], shape[1])
    kept = Gradients([given["table"]])
    with gradients_added_to(kept.by_address):
        found = weighted_sums(**given)
    assert torch.autograd.grad(found, given["table"], to_sums, allow_unused=True) == (None,)
    kept.attach()
    assert given["table"].grad is not None
    assert_close(given["table"].grad, wanted(given, to_sums)[1])


def test_no_entries() -> None:
    given = example(1, 3, 4, False, "cpu")
    none = {name: given[name][:0] for name in ("rows", "weights", "into")}
    assert not weighted_sums(given["table"], **none, count=4).any()


def test_what_they_are_for(tmp_path: Path) -> None:
    given = example(4, 3, 4, False, "cpu")
    arrays = given["rows"], given["weights"], given["into"]
    assert "GPUs" in str(sums.obstacle(given["table"], *arrays))
    assert "float32" in str(sums.obstacle(given["table"].double(), *arrays))
    assert "contiguous" in str(sums.obstacle(given["table"].t(), *arrays))
    assert cuda.Kernels(tmp_path / "none.cu").obstacle(torch.device("cpu"))
