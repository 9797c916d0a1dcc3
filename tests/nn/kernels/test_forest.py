"""All levels in one launch equal the plain loop: on the CPU, compiled as C++, and on a GPU."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from laconic.nn.composers import GRC, compose_with_own, make_composer
from laconic.nn.kernels import cuda, forest, levels
from laconic.nn.kernels.cells import FUSED
from laconic.nn.levels import compose_levels_plainly

TERMINALS = 7
COMPOSERS = ["grc", "dual_gru"]
SHIM = Path(__file__).with_name("cuda_on_fibers.hpp")
# Float16 keeps 11 bits, bfloat16 8; both are rounded at every level.
FORWARD, BACK = 1e-3, 2**-7
on_gpu = pytest.mark.skipif(
    not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0),
    reason="needs a CUDA device of compute capability 9.0",
)


def grown(*sizes: int) -> tuple[Tensor, tuple[int, ...]]:
    """Levels of so many random rules, each with an operand of the level below."""
    children, offsets = [torch.zeros(0, 2)], [0]
    for size in sizes:
        known = TERMINALS + offsets[-1]
        low = TERMINALS + offsets[-2] if len(offsets) > 1 else 0
        pairs = torch.randint(0, known, (size, 2))
        pairs[:, 1] = torch.randint(low, known, (size,))
        children.append(pairs)
        offsets.append(offsets[-1] + size)
    return torch.cat(children).int(), tuple(offsets)


class Composed:
    """Leaves, weights and a forest; their states and gradients, by one way or another."""

    def __init__(self, name: str, size: int, sizes: tuple[int, ...], own: bool) -> None:
        torch.manual_seed(size)
        self.composer: Any = make_composer(name, size).double()
        if isinstance(self.composer, GRC):
            torch.nn.init.normal_(self.composer.norm.weight)
        self.children, self.offsets = grown(*sizes)
        nodes = len(self.children)
        self.leaves = torch.randn(TERMINALS, size, dtype=torch.float64)
        self.own = torch.randn(nodes, size, dtype=torch.float64) if own else None
        self.towards = torch.randn(TERMINALS + nodes, size, dtype=torch.float64)

    def plainly(self, device: str = "cpu") -> list[Tensor]:
        """What the oracle says, in float64."""
        leaves, own, weights = self._moved(device, torch.float64)
        names = [name for name, _ in self.composer.named_parameters()]
        self.composer.forward = (
            self.composer.compose if own is None else compose_with_own(self.composer)
        )

        def cell(*operands: Tensor) -> Tensor:
            values = dict(zip(names, weights, strict=True))
            made: Tensor = torch.func.functional_call(self.composer, values, operands)
            return made

        children = self.children.to(device)
        states = compose_levels_plainly(cell, leaves, children, self.offsets, own)
        return self._found(states, leaves, own, weights)

    def by_kernels(self, device: str) -> list[Tensor]:
        """What the kernels say."""
        leaves, own, weights = self._moved(device, torch.float32)
        cell = FUSED[type(self.composer)]
        assert forest.obstacle(cell, leaves, self.children) is None
        given = leaves, self.children.to(device), self.offsets, own, weights
        states = levels.compose(cell, *given)
        with torch.no_grad():
            assert torch.equal(levels.compose(cell, *given), states)
        return self._found(states, leaves, own, weights)

    def check(self, device: str, most: float = FORWARD, back: float = BACK) -> None:
        """Compare both; where the largest errors are is told."""
        names = ["states", "leaves", *(["own"] if self.own is not None else [])]
        names += [name for name, _ in self.composer.named_parameters()]
        wanted, made = self.plainly(device), self.by_kernels(device)
        errors = {n: error(m, w) for n, m, w in zip(names, made, wanted, strict=True)}
        bounds = {name: most if name == "states" else back for name in names}
        assert all(errors[name] < bounds[name] for name in names), errors

    def _moved(self, device: str, dtype: torch.dtype) -> tuple[Tensor, Tensor | None, list[Tensor]]:
        def moved(tensor: Tensor) -> Tensor:
            return tensor.detach().to(device, dtype).clone().requires_grad_()

        own = None if self.own is None else moved(self.own)
        return moved(self.leaves), own, [moved(each) for each in self.composer.parameters()]

    def _found(
        self, states: Tensor, leaves: Tensor, own: Tensor | None, weights: list[Tensor]
    ) -> list[Tensor]:
        into = [leaves, *([] if own is None else [own]), *weights]
        wanted = (states * self.towards.to(states)).sum()
        found = torch.autograd.grad(wanted, into, allow_unused=True)
        pairs = zip(found, into, strict=True)
        return [states.detach(), *(torch.zeros_like(i) if f is None else f for f, i in pairs)]


def error(made: Tensor, wanted: Tensor) -> float:
    """The largest error, as a part of the largest number; infinite if it is no number."""
    most = float(wanted.abs().max()) if wanted.numel() else 0.0
    far = float((made.double() - wanted).abs().max()) if wanted.numel() else 0.0
    return far / (most or 1.0) if far == far else float("inf")


class OnFibers:
    """Stands in for cuda.Module: the same sources but ptx.cu, compiled as C++, on the CPU."""

    def __init__(self, folder: Path, name: str, size: int, blocks: int, tiles: int) -> None:
        text = "".join(forest._SOURCES[each].read_text("utf-8") for each in ("forest", name))
        names = re.findall(r"^(\w+)\(const __grid_constant__", text, re.MULTILINE)
        assert names == [f"{name}_up", f"{name}_down"]
        launches = "".join(f"LAUNCH({each})\n" for each in names)
        given = "const char* name, int blocks, void** given, int shared, int resident"
        main = f'extern "C" int launch({given}) {{\n{launches}'
        code, made = folder / f"{name}_{size}.cpp", folder / f"{name}_{size}.so"
        defines = "".join(
            f"#define {key} {value}\n"
            for key, value in {"SIZE": size, "BLOCKS": blocks, "TILES": tiles}.items()
        )
        code.write_text(f'{defines}#include "{SHIM}"\n{text}\n{main}return 0; }}\n')
        command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-w"]
        subprocess.run([*command, code, "-o", made], check=True)
        self._library, self._blocks = ctypes.CDLL(str(made)), blocks
        self.resident = 2

    def most_clusters(self, name: str, blocks: int, threads: int, shared: int) -> int:
        return 2

    def launch(self, name: str, blocks: int, threads: int, shared: int, *arguments: Any) -> None:
        assert threads == 256
        assert blocks % self._blocks == 0
        tensors = [each for each in arguments if isinstance(each, Tensor)]
        assert all(each.is_contiguous() for each in tensors)
        values = cuda.as_values(arguments)
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        assert self._library.launch(name.encode(), blocks, pointers, shared, self.resident) == 1


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")
@pytest.mark.parametrize("name", COMPOSERS)
@pytest.mark.parametrize(("size", "tiles"), [(8, 1), (40, 2), (72, 3)])
def test_kernels_on_the_cpu(
    name: str, size: int, tiles: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[Any, OnFibers] = {}

    def module(device: int, *key: Any) -> OnFibers:
        if key not in made:
            made[key] = OnFibers(tmp_path, *key)
        return made[key]

    monkeypatch.setattr(forest, "missing", lambda device: None)
    monkeypatch.setattr(forest, "_obstacle", lambda *given: None)
    monkeypatch.setattr(forest, "_device", lambda device: (132, 227 << 10))
    monkeypatch.setattr(forest, "_layout", forest.Layout)
    monkeypatch.setattr(forest, "_TILES", tiles)
    monkeypatch.setattr(forest, "_module", module)
    composed = Composed(name, size, (50, 17, 2), own=size == 40)
    composed.check("cpu")
    if size == 8:
        (kernels,) = made.values()
        kernels.resident = 1  # The second cluster starts when the first has ended.
        composed.check("cpu")


def test_what_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    grc, children = FUSED[GRC], torch.zeros(3, 2, dtype=torch.int32)

    def why(leaves: Tensor) -> str:
        return str(forest.obstacle(grc, leaves, children))

    assert "GPUs" in why(torch.zeros(2, 200))
    assert "256 at most" in why(torch.zeros(2, 264))
    assert "multiples of 8" in why(torch.zeros(2, 100))
    assert "float32" in why(torch.zeros(2, 8, dtype=torch.float64))
    monkeypatch.setattr(forest, "MOST_NODES", 2)
    assert "2 nodes at most" in why(torch.zeros(2, 8))
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    said = forest._obstacle.__wrapped__(0, "grc", 8)
    assert said == "they need compute capability 9.0, and this GPU has 8.9"


@pytest.mark.parametrize("shared", [227 << 10, 99 << 10, 0])
def test_pieces_fit_into_shared_memory(shared: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forest, "_device", lambda device: (132, shared))
    monkeypatch.setattr(cuda.Module, "__init__", lambda *given: None)
    monkeypatch.setattr(cuda.Module, "most_clusters", lambda *given: None)
    monkeypatch.setattr(forest, "_module", lambda *given: cuda.Module({}))
    for name in COMPOSERS:
        for size in range(8, 257, 8):
            if not shared:
                with pytest.raises(cuda.CudaError, match="too little shared memory"):
                    forest.Layout(0, name, size)
                continue
            layout = forest.Layout(0, name, size)
            assert 16 <= layout.rows <= 112
            assert max(layout.shared.values()) <= shared
            assert layout.clusters * layout.blocks <= 132


def test_many_levels_are_several_launches() -> None:
    made = list(forest.windows(range(600)))
    assert [each.count for each in made] == [255, 255, 89]
    assert made[1].offsets[0] == made[0].offsets[255] == 255
    assert not list(forest.windows((0,)))


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", COMPOSERS)
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("size", [8, 64, 128, 200, 256])
def test_sizes(name: str, size: int, own: bool) -> None:
    Composed(name, size, (40, 9, 1, 5, 2), own).check("cuda")


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", COMPOSERS)
@pytest.mark.parametrize(
    "sizes",
    [(1,), (16,), (17, 1), (250, 799, 1202, 802, 201, 29, 3, 2), (5000, 15000), (3,) * 22],
    ids=str,
)
def test_forests(name: str, sizes: tuple[int, ...]) -> None:
    Composed(name, 200, sizes, own=True).check("cuda")


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", COMPOSERS)
def test_no_rules_and_many_levels(name: str) -> None:
    none = Composed(name, 64, (), own=False)
    none.check("cuda", 1e-6, 1e-6)
    # More levels than one launch has; each rounds what comes from above.
    Composed(name, 16, (2,) * 300, own=False).check("cuda", back=2**-5)


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", COMPOSERS)
def test_a_graph_with_room(name: str) -> None:
    """Nodes whose operands are both the first terminal, as room in a graph's levels has them."""
    composed = Composed(name, 200, (96, 64, 32, 32), own=False)
    composed.children[70:96] = composed.children[130:160] = composed.children[180:] = 0
    composed.towards[TERMINALS:][70:96] = composed.towards[TERMINALS:][180:] = 0
    composed.check("cuda")
    leaves, _, weights = composed._moved("cuda", torch.float32)
    given = leaves, composed.children.cuda(), composed.offsets, None, weights
    cell = FUSED[type(composed.composer)]

    def step() -> tuple[Tensor, ...]:
        states = levels.compose(cell, *given)
        towards = composed.towards.to(states)
        return states.detach(), *torch.autograd.grad((states * towards).sum(), [leaves, *weights])

    composed.towards = composed.towards.cuda()
    wanted = step()
    for cached in (forest._obstacle, forest._layout, forest._module):
        cached.cache_clear()  # A first use of kernels within a capture is no harm.
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made = step()
    for _ in range(3):
        graph.replay()
    assert torch.equal(made[0], wanted[0])
    for one, other in zip(made[1:], wanted[1:], strict=True):
        assert error(one, other.double()) < 1e-4


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("name", COMPOSERS)
def test_large_numbers_stay_finite(name: str) -> None:
    composed = Composed(name, 64, (40, 9), own=False)
    composed.leaves *= 1e6
    assert all(each.isfinite().all() for each in composed.by_kernels("cuda"))
