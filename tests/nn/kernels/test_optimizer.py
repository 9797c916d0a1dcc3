"""Gradients added up, clipped and applied by kernels, against torch's Adam and AdamW."""

from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from laconic.nn.gradients import Gradients
from laconic.nn.kernels import cuda, optimizer
from laconic.nn.kernels.optimizer import FusedAdam, obstacle_to_adam

from .on_threads import OnThreads

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
SHAPES = [(3,), (70, 33), (1,), (2048,), (0, 4), (2049,), (5, 7)]
CHANGES = [{}, {"weight_decay": 0.1}, {"betas": (0.8, 0.99), "eps": 1e-6}]


def parameters(device: str, count: int = 1) -> list[nn.Parameter]:
    torch.manual_seed(0)
    every = [nn.Parameter(torch.randn(shape, device=device)) for shape in SHAPES * count]
    # As those of an LSTM of cuDNN's, which lie side by side, wherever that is.
    together = torch.randn(41, device=device)
    return [*every, nn.Parameter(together[3:10]), nn.Parameter(together[10:38].view(4, 7))]


def found_for(weights: list[nn.Parameter], step: int, part: int) -> list[Tensor | None]:
    """Gradients of many sizes, of which one is missing and one is not contiguous."""
    torch.manual_seed(100 * step + part)
    made: list[Any] = [torch.randn(w.shape).to(w) * 10.0 ** (part - 1) for w in weights]
    made[1] = made[1].t().contiguous().t()
    made[3] = None
    return made


def plainly(
    weights: list[nn.Parameter], by: Optimizer, parts: list[list[Tensor | None]], clip: float
) -> None:
    """A step as everybody would write it."""
    for number, weight in enumerate(weights):
        some = [part[number] for part in parts if part[number] is not None]
        # Torch's fused Adam wants gradients that lie as weights do.
        whole = sum(some[1:], some[0].clone()) if some else torch.zeros_like(weight)
        weight.grad = whole.contiguous()
    if clip:
        nn.utils.clip_grad_norm_(weights, clip)
    by.step()


def assert_same(weights: list[nn.Parameter], wanted: list[nn.Parameter], *by: Optimizer) -> None:
    for one, other in zip(weights, wanted, strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)
        state, plain = by[0].state[one], by[1].state[other]
        assert state["step"] == plain["step"]
        for name in ("exp_avg", "exp_avg_sq"):
            most = float(plain[name].abs().max()) if plain[name].numel() else 0.0
            assert torch.allclose(state[name], plain[name], rtol=2e-4, atol=1e-6 * most)


def check(kind: Any, clip: float, device: str, changes: dict[str, Any], count: int = 1) -> None:
    weights, wanted = parameters(device, count), parameters(device, count)
    fused = {"fused": True} if device == "cuda" else {}
    mine, plain = kind(weights, 3e-3, **changes, **fused), kind(wanted, 3e-3, **changes, **fused)
    gradients = Gradients(weights)
    assert gradients.chunks is not None
    given = gradients.parameters, gradients.chunks, gradients.array
    apply = FusedAdam(mine, *given, clip)
    for step in range(6):
        rate = 3e-3 / (1 + step)
        mine.param_groups[0]["lr"] = plain.param_groups[0]["lr"] = rate
        parts = [found_for(weights, step, part) for part in range(1 + step % 2)]
        for part in parts:
            gradients.add(part)
        plainly(wanted, plain, parts, clip)
        apply()
        assert not gradients.array.any()
        assert_same(weights, wanted, mine, plain)
        if step == 2:  # either goes on where the other was
            states = copy.deepcopy(mine.state_dict()), copy.deepcopy(plain.state_dict())
            mine.load_state_dict(states[1])
            plain.load_state_dict(states[0])


@pytest.fixture
def on_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    kernels = OnThreads(tmp_path, optimizer.KERNELS.source)
    assert len(kernels.names) == 3
    monkeypatch.setattr(optimizer, "KERNELS", kernels)
    monkeypatch.setattr(optimizer, "_BLOCKS", 2)


@pytest.mark.usefixtures("on_threads")
@pytest.mark.parametrize(("kind", "clip"), [(Adam, 0.7), (AdamW, 0.0)])
def test_kernels_on_the_cpu(kind: Any, clip: float) -> None:
    check(kind, clip, "cpu", CHANGES[1])


@pytest.mark.usefixtures("on_threads")
def test_what_is_no_number_stays_none() -> None:
    weight = nn.Parameter(torch.ones(3))
    gradients, by = Gradients([weight]), Adam([weight], 0.1)
    gradients.add([torch.tensor([0.0, torch.inf, 1.0])])
    assert gradients.chunks is not None
    FusedAdam(by, [weight], gradients.chunks, gradients.array, 1.0)()
    assert weight[1].isnan()


@pytest.mark.gpu
@GPU
@pytest.mark.parametrize("kind", [Adam, AdamW])
@pytest.mark.parametrize("clip", [0.0, 0.7, 1e6])
@pytest.mark.parametrize("changes", CHANGES)
def test_kernels(kind: Any, clip: float, changes: dict[str, Any]) -> None:
    check(kind, clip, "cuda", changes)


@pytest.mark.gpu
@GPU
def test_more_parameters_than_one_launch_adds() -> None:
    check(Adam, 0.7, "cuda", {}, count=40)


def test_what_they_are_for() -> None:
    weights = [nn.Parameter(torch.ones(3))]
    assert "GPU" in str(optimizer.obstacle(weights))
    assert "float32" in str(optimizer.obstacle([nn.Parameter(torch.ones(3).double())]))
    assert "float32" in str(optimizer.obstacle([nn.Parameter(torch.ones(3, 2).t())]))
    assert obstacle_to_adam(Adam(weights), weights) is None
    assert "for Adam" in str(obstacle_to_adam(SGD(weights), weights))
    assert "amsgrad" in str(obstacle_to_adam(Adam(weights, amsgrad=True), weights))
    more = [*weights, nn.Parameter(torch.ones(2))]
    assert "for all parameters" in str(obstacle_to_adam(Adam(weights), more))


@pytest.mark.gpu
@GPU
def test_a_machine_where_compiling_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "broken.cu"
    source.write_text("not C++ at all")
    monkeypatch.setattr(optimizer, "KERNELS", cuda.Kernels(source))
    weights = [nn.Parameter(torch.ones(3, device="cuda"))]
    assert "cannot be compiled: NVRTC: " in str(optimizer.obstacle(weights))
    assert Gradients(weights).chunks is None
    for _ in range(2):
        with pytest.raises(cuda.CudaError, match="NVRTC: "):
            optimizer.KERNELS.on(weights[0].device)
