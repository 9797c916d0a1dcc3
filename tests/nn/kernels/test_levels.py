"""The level loop with few kernels equals the plain one: in float64, and its kernels on a GPU."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from laconic.nn.composers import GRC, compose_with_own, make_composer
from laconic.nn.kernels import cells, levels
from laconic.nn.kernels.cells import FUSED
from laconic.nn.levels import compose_levels_plainly

from .on_threads import OnThreads

TERMINALS = 7
COMPOSERS = ["grc", "dual_gru"]


def forest(*sizes: int) -> tuple[Tensor, tuple[int, ...]]:
    """Levels of so many random rules, each with an operand of the level below."""
    children, offsets = [], [0]
    for size in sizes:
        known = TERMINALS + offsets[-1]
        low = TERMINALS + offsets[-2] if len(offsets) > 1 else 0
        pairs = torch.randint(0, known, (size, 2))
        pairs[:, 1] = torch.randint(low, known, (size,))
        children.append(pairs)
        offsets.append(offsets[-1] + size)
    return torch.cat(children).int(), tuple(offsets)


def assert_composed(
    name: str, device: str, dtype: torch.dtype, size: int, own: bool, most: float
) -> None:
    torch.manual_seed(size)
    composer: Any = make_composer(name, size).double()
    if isinstance(composer, GRC):
        torch.nn.init.normal_(composer.norm.weight)
    children, offsets = forest(40, 9, 1, 5, 2)
    leaves = torch.randn(TERMINALS, size, dtype=torch.float64)
    more = torch.randn(len(children), size, dtype=torch.float64) if own else None
    towards = torch.randn(TERMINALS + len(children), size, dtype=torch.float64)
    found = []
    for plainly in (True, False):
        to, on = (torch.float64, "cpu") if plainly else (dtype, device)
        given = [
            each.detach().to(on, to).requires_grad_() for each in (leaves, more) if each is not None
        ]
        moved = [p.detach().to(on, to).requires_grad_() for p in composer.parameters()]
        if plainly:
            values = dict(zip((n for n, _ in composer.named_parameters()), moved, strict=True))

            def cell(*operands: Tensor, values: dict[str, Tensor] = values) -> Tensor:
                made: Tensor = torch.func.functional_call(composer, values, operands)
                return made

            composer.forward = compose_with_own(composer) if own else composer.compose
            states = compose_levels_plainly(cell, given[0], children, offsets, *given[1:])
        else:
            rest = given[1] if own else None
            fused = FUSED[type(composer)]
            states = levels.compose_by_level(fused, given[0], children.to(on), offsets, rest, moved)
        gradients = torch.autograd.grad((states * towards.to(on, to)).sum(), [*given, *moved])
        found.append([states.detach(), *gradients])
    for wanted, made in zip(*found, strict=True):
        assert float((made.cpu().double() - wanted).abs().max() / wanted.abs().max()) < most


@pytest.mark.parametrize("name", COMPOSERS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("together", [1, 8, 1 << 15])
def test_in_float64(name: str, own: bool, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(levels, "_TOGETHER", together)
    assert_composed(name, "cpu", torch.float64, 6, own, 1e-10)


@pytest.mark.parametrize("name", COMPOSERS)
def test_terminals_alone(name: str) -> None:
    leaves = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    composer = make_composer(name, 4).double()
    children, fused = torch.zeros(0, 2, dtype=torch.int32), FUSED[type(composer)]
    weights = list(composer.parameters())
    states = levels.compose(fused, leaves, children, (0,), None, weights)
    assert torch.equal(states, leaves)
    (to_leaves,) = torch.autograd.grad(states.sum(), leaves)
    assert (to_leaves == 1).all()


def test_what_it_is_for() -> None:
    assert "float32" in str(levels.obstacle(torch.zeros(2, 4, dtype=torch.float64)))
    assert "1024 at most" in str(levels.obstacle(torch.zeros(2, 1025)))
    assert "GPUs" in str(levels.obstacle(torch.zeros(2, 4)))
    with torch.autocast("cpu", torch.bfloat16):
        assert "autocast" in str(levels.obstacle(torch.zeros(2, 4)))


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
def test_kernels_on_the_cpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = OnThreads(tmp_path, cells._SOURCE, SIZE=40)
    assert len(kernels.names) == 6
    monkeypatch.setattr(cells, "module", lambda device, size: kernels)
    monkeypatch.setattr(cells, "_on_gpu", lambda pairs: True)
    monkeypatch.setattr(cells, "_BLOCKS", 2)
    for name in COMPOSERS:
        for own in (False, True):
            assert_composed(name, "cpu", torch.float32, 40, own, 1e-4)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("name", COMPOSERS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("size", [9, 33, 200, 1024])
def test_kernels(name: str, size: int, own: bool) -> None:
    assert levels.obstacle(torch.zeros(2, size, device="cuda")) is None
    assert_composed(name, "cuda", torch.float32, size, own, 1e-2)
