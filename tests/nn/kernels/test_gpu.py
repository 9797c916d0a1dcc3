"""Kernels on a GPU against the reference in float64, and models that read with and without them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from laconic.nn.kernels import cuda, layer, recurrent, reference
from laconic.nn.sequence_models import sequence_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        not torch.cuda.is_available() or torch.cuda.get_device_capability() < (9, 0),
        reason="needs a CUDA device of compute capability 9.0",
    ),
]
CELLS = [nn.LSTM, nn.GRU]
# Float16 keeps 11 bits, bfloat16 8; both are rounded once or twice on the way.
FORWARD, BACK = 2e-3, 2**-7


def weights(ways: int, width: int, size: int, gru: bool) -> list[Tensor]:
    """Packed weights, float64, as large as torch makes them."""
    made = [
        (torch.rand(*shape, dtype=torch.float64, device="cuda") * 2 - 1) * width**-0.5
        for shape in ((ways, width, 4, size), (ways, width, 4), (ways, width, 4, width))
    ]
    if gru:
        made[0][:, :, 3], made[2][:, :, 2] = 0, 0
    return made


def error(found: Tensor | None, wanted: Tensor | None) -> float:
    assert found is not None
    assert wanted is not None
    found, wanted = found.detach(), wanted.detach()
    most = float(wanted.abs().max())
    return float((found.double() - wanted).abs().max()) / most if most else float(found.abs().max())


def check(
    steps: int,
    lengths: list[int],
    width: int,
    ways: int = 2,
    gru: bool = False,
    size: int = 24,
    dtype: torch.dtype = torch.float32,
) -> None:
    torch.manual_seed(width)
    x = torch.randn(steps, len(lengths), size, device="cuda", dtype=dtype)
    counts = torch.tensor(lengths, device="cuda")
    wanted = [each.requires_grad_() for each in (x.double(), *weights(ways, width, size, gru))]
    own = [x, *(each.detach().float() for each in wanted[1:])]
    own = [each.requires_grad_() for each in own]
    made = recurrent.read(own[0], counts, *own[1:], gru=gru)  # type: ignore[arg-type]
    with torch.no_grad():
        again = recurrent.read(own[0], counts, *own[1:], gru=gru)  # type: ignore[arg-type]
    plain = reference.read(wanted[0], counts, *wanted[1:], gru=gru)  # type: ignore[arg-type]
    assert made.dtype == torch.float32
    assert torch.equal(made, again)
    assert error(made, plain) < FORWARD
    there = torch.arange(steps, device="cuda")[:, None] < counts
    assert not made[~there].any()
    towards = torch.randn_like(made)  # also at padding, which must not matter
    made.backward(towards)
    plain.backward((towards * there[..., None]).double())
    for one, other in zip(own, wanted, strict=True):
        assert one.grad is not None
        assert one.grad.isfinite().all()
        assert error(one.grad, other.grad) < BACK


@pytest.mark.parametrize("width", range(8, 257, 8))
def test_all_widths(width: int) -> None:
    check(9, [9, 0, 1, 5, 9] * 4, width)


@pytest.mark.parametrize("width", [8, 56, 128, 200, 256])
def test_gru(width: int) -> None:
    check(9, [9, 0, 1, 5, 9] * 4, width, gru=True)


@pytest.mark.parametrize("documents", [1, 2, 15, 16, 17, 126, 512, 1024])
@pytest.mark.parametrize("ways", [1, 2])
def test_batches(documents: int, ways: int) -> None:
    check(6, [(7 * d) % 7 for d in range(documents)], 200, ways)
    check(6, [6] * documents, 200, ways)


@pytest.mark.parametrize("blocks", [2, 3, 4, 5, 7])
def test_however_units_are_spread(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recurrent, "blocks_of", lambda *sizes: blocks)
    check(40, [40, 3, 17, 40, 0, 1] * 5, 200)


def test_nothing_but_empty_documents() -> None:
    check(3, [0, 0], 64)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_short_inputs(dtype: torch.dtype) -> None:
    check(12, [12, 5], 64, dtype=dtype)


@pytest.mark.parametrize("cell", CELLS)
def test_long_documents(cell: Any) -> None:
    """65,536 steps, more than cuDNN reads at once; against torch's own layer, in parts."""
    torch.manual_seed(0)
    reader = cell(8, 40, bidirectional=True).cuda()
    lengths = torch.tensor([65_536, 65_535, 1, 0], device="cuda")
    x = torch.randn(65_536, 4, 8, device="cuda")
    made = layer.read(reader, x, lengths)
    made[:, :2].sum().backward()
    assert all(p.grad.isfinite().all() for p in reader.parameters())
    for document, count in ((0, 65_536), (1, 65_535), (2, 1)):
        part = x[:count, document]
        halves = [part[:30_000], part[-30_000:]]
        with torch.no_grad():
            ahead = reader(halves[0])[0][:20_000, :40]
            back = reader(halves[1])[0][-20_000:, 40:]
        assert error(made[: len(ahead), document, :40].detach(), ahead.double()) < 5e-3
        last = made[count - len(back) : count, document, 40:]
        assert error(last.detach(), back.double()) < 5e-3


@pytest.mark.parametrize("name", ["lstm", "gru"])
@pytest.mark.parametrize("direction", ["forward", "backward", "both"])
@pytest.mark.parametrize("width", [5, 200])
def test_models_read_as_without_kernels(name: str, direction: str, width: int) -> None:
    torch.manual_seed(1)
    model: Any = sequence_model(name, 16, width, layers=2, direction=direction).cuda()
    lengths = torch.tensor([30, 0, 1, 17, 29], device="cuda")
    x = torch.randn(5, 30, 16, device="cuda")
    mask = torch.arange(30, device="cuda") < lengths[:, None]
    towards = torch.randn(5, 30, model.output_size, device="cuda")
    found = []
    for kernels in (True, False):
        model.kernels = kernels
        model.zero_grad()
        inputs = x.clone().requires_grad_()
        made = model(inputs, mask, lengths, torch.zeros_like(mask, dtype=torch.int64))
        (made * towards * mask[..., None]).sum().backward()
        assert model.read_by.startswith("our kernels" if kernels else "cuDNN, not our kernels: ")
        found.append([made * mask[..., None], inputs.grad, *(p.grad for p in model.parameters())])
    for one, other in zip(*found, strict=True):
        assert error(one, other.double()) < 2 * BACK


@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_graphs_and_autocast(name: str) -> None:
    torch.manual_seed(2)
    model: Any = sequence_model(name, 16, 200).cuda()
    lengths = torch.tensor([12, 3, 0, 7] * 40, device="cuda")
    x = torch.randn(160, 12, 16, device="cuda", requires_grad=True)
    mask = torch.arange(12, device="cuda") < lengths[:, None]
    offsets = torch.zeros(160, 12, dtype=torch.int64, device="cuda")
    leaves = [x, *model.parameters()]

    def step() -> tuple[Tensor, ...]:
        made = model(x, mask, lengths, offsets)
        return made.detach(), *torch.autograd.grad(made.square().sum(), leaves)

    plain, *wanted = step()
    with torch.autocast("cuda", torch.bfloat16):
        assert torch.equal(model(x, mask, lengths, offsets), plain)
    # A first use of these kernels within a capture, as of a shape that was never met.
    for cached in (recurrent._obstacle, recurrent._module):
        cached.cache_clear()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        made, *found = step()
    graph.replay()
    assert torch.equal(made, plain)
    for one, other in zip(found, wanted, strict=True):
        assert error(one, other.double()) < 1e-5


def test_back_only_once() -> None:
    model: Any = sequence_model("lstm", 4, 8).cuda()
    mask = torch.ones(1, 2, dtype=torch.bool, device="cuda")
    made = model(torch.ones(1, 2, 4, device="cuda"), mask, mask.sum(1), mask.long()).sum()
    made.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="only once"):
        made.backward()


def test_a_machine_where_compiling_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    source = tmp_path / "broken.cu"
    source.write_text("not C++ at all")
    monkeypatch.setattr(recurrent, "_SOURCE", source)
    for cached in (recurrent._obstacle, recurrent._module):
        cached.cache_clear()
    with pytest.raises(cuda.CudaError, match="NVRTC: "):
        cuda.compiled("not C++ at all", {}, (9, 0))
    model: Any = sequence_model("lstm", 4, 8).cuda()
    mask = torch.ones(3, 2, dtype=torch.bool, device="cuda")
    call = torch.randn(3, 2, 4, device="cuda"), mask, mask.sum(1), mask.long()
    made = model(*call)
    assert model.read_by.startswith("cuDNN, not our kernels: they cannot be compiled: NVRTC: ")
    model.kernels = False
    assert torch.equal(model(*call), made)
    for cached in (recurrent._obstacle, recurrent._module):
        cached.cache_clear()
