"""The level loop with few kernels equals the plain one: in float64, and its kernels on a GPU."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from laconic.nn.composers import GRC
from laconic.nn.kernels import grc
from laconic.nn.levels import compose_levels_plainly

TERMINALS = 7


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


def assert_composed(device: str, dtype: torch.dtype, size: int, own: bool, most: float) -> None:
    torch.manual_seed(size)
    composer = GRC(size).double()
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

            composer.forward = composer.compose  # type: ignore[method-assign, assignment]
            states = compose_levels_plainly(cell, given[0], children, offsets, *given[1:])
        else:
            rest = given[1] if own else None
            states = grc.compose(given[0], children.to(on), offsets, rest, *moved)
        gradients = torch.autograd.grad((states * towards.to(on, to)).sum(), [*given, *moved])
        found.append([states.detach(), *gradients])
    for wanted, made in zip(*found, strict=True):
        assert float((made.cpu().double() - wanted).abs().max() / wanted.abs().max()) < most


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("together", [1, 8, 1 << 15])
def test_in_float64(own: bool, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grc, "_TOGETHER", together)
    assert_composed("cpu", torch.float64, 6, own, 1e-10)


def test_terminals_alone() -> None:
    leaves = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    weights = list(GRC(4).double().parameters())
    children = torch.zeros(0, 2, dtype=torch.int32)
    states = grc.compose(leaves, children, (0,), None, *weights)
    assert torch.equal(states, leaves)
    (to_leaves,) = torch.autograd.grad(states.sum(), leaves)
    assert (to_leaves == 1).all()


def test_what_it_is_for() -> None:
    assert "float32" in str(grc.obstacle(torch.zeros(2, 4, dtype=torch.float64)))
    assert "1024 at most" in str(grc.obstacle(torch.zeros(2, 1025)))
    assert "GPUs" in str(grc.obstacle(torch.zeros(2, 4)))
    with torch.autocast("cpu", torch.bfloat16):
        assert "autocast" in str(grc.obstacle(torch.zeros(2, 4)))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("size", [9, 33, 200, 1024])
def test_kernels(size: int, own: bool) -> None:
    assert grc.obstacle(torch.zeros(2, size, device="cuda")) is None
    assert_composed("cuda", torch.float32, size, own, 1e-2)
