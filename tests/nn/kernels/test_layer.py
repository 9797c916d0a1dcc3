"""The plain reference equals torch's layers, in float64; and what cannot be done is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from laconic.nn.kernels import cuda, recurrent, reference
from laconic.nn.kernels.layer import in_slots, obstacle
from laconic.nn.sequence_models import sequence_model

SIZE = 3


def read_plainly(reader: Any, x: Tensor, lengths: Tensor) -> Tensor:
    """What kernels.layer.read does, with the reference in place of the kernels."""
    ways = ("", "_reverse")[: 1 + reader.bidirectional]
    slots = zip(*(in_slots(reader, way, x.shape[-1]) for way in ways), strict=True)
    gru = isinstance(reader, nn.GRU)
    made = reference.read(x, lengths, *map(torch.stack, slots), gru=gru)  # type: ignore[arg-type]
    return made.view(*x.shape[:2], len(ways), -1)[..., : reader.hidden_size].flatten(2)


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU])
@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("width", [1, 5, 8])
def test_reference_is_torch(cell: Any, both: bool, width: int) -> None:
    torch.manual_seed(0)
    reader = cell(SIZE + 2, width, bidirectional=both).double()  # of inputs, the first are read
    lengths = [6, 0, 1, 4]
    x = torch.randn(7, len(lengths), SIZE, dtype=torch.float64, requires_grad=True)
    made = read_plainly(reader, x, torch.tensor(lengths))
    wanted = torch.zeros_like(made)
    for document, count in enumerate(lengths):
        if count:
            padded = nn.functional.pad(x[:count, document], (0, 2))
            wanted[:count, document] = reader(padded)[0]
    torch.testing.assert_close(made, wanted)
    towards = torch.randn_like(made)
    parameters = [x, *reader.parameters()]
    found = torch.autograd.grad((made * towards).sum(), parameters)
    for one, other in zip(
        found, torch.autograd.grad((wanted * towards).sum(), parameters), strict=True
    ):
        torch.testing.assert_close(one, other)


@given(st.integers(1, 32), st.integers(1, 300), st.sampled_from([1, 14, 82, 132, 148]))
def test_every_block_has_units_and_registers(groups: int, clusters: int, processors: int) -> None:
    blocks = recurrent.blocks_of(8 * groups, clusters, processors)
    warps = -(-groups // blocks)
    assert (blocks - 1) * warps < groups <= blocks * warps
    assert blocks <= 8  # more is not for every GPU
    weights = 8 * -(-groups // 2)
    # A quarter of a processor has 512 registers for each lane; some weights may be spilled.
    assert weights <= 512 // -(-warps // 4) - 24


@pytest.mark.parametrize(
    ("reader", "dtype", "why"),
    [
        (nn.LSTM(3, 8), torch.float32, "GPUs of NVIDIA"),
        (nn.LSTM(3, 8), torch.float64, "float32 and shorter"),
        (nn.RNN(3, 8), torch.float32, "LSTM and GRU"),
        (None, torch.float32, "LSTM and GRU"),
    ],
)
def test_what_kernels_are_for(reader: nn.Module | None, dtype: torch.dtype, why: str) -> None:
    assert why in str(obstacle(reader, torch.zeros(2, 1, 3, dtype=dtype)))
    with torch.backends.cudnn.flags(allow_tf32=False):
        assert "forbids" in str(cuda.missing(torch.device("cuda:0")))
    assert "nothing to read" in str(obstacle(nn.LSTM(3, 8), torch.zeros(0, 1, 3)))
    assert "256 at most" in str(recurrent.obstacle(torch.device("cuda:0"), 1, 1, 257, False))


def test_models_say_what_read() -> None:
    model: Any = sequence_model("gru", 3, 8)
    mask = torch.ones(1, 2, dtype=torch.bool)
    call = torch.zeros(1, 2, 3), mask, mask.sum(1), torch.zeros(1, 2, dtype=torch.int64)
    model(*call)
    assert model.read_by == "torch, not our kernels: they are for GPUs of NVIDIA"
    model.kernels = False
    model(*call)
    assert model.read_by == "torch, not our kernels: they are switched off"


def test_older_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    said = recurrent._obstacle.__wrapped__(0, 8, 1, False)
    assert said == "they need compute capability 9.0, and this GPU has 8.9"


def test_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[str]] = []

    def compile_(source: str, options: list[str]) -> bytes:
        calls.append(options)
        return source.encode() + bytes(2)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cuda, "_compile", compile_)
    for defines in ({"A": 1}, {"A": 1}, {"A": 2}):
        assert cuda.compiled("x", defines, (9, 0)) == b"x\0\0"
    assert calls == [["--gpu-architecture=sm_90", "--std=c++17", f"-DA={a}"] for a in (1, 2)]
    assert len(list((tmp_path / "laconic" / "kernels").glob("*.cubin"))) == 2


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "laconic").write_text("no folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(cuda, "_compile", lambda source, options: b"code")
    assert cuda.compiled("x", {}, (9, 0)) == b"code"


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(torch.version, "cuda", "1.0")
    cuda._nvrtc.cache_clear()
    with pytest.raises(cuda.CudaError, match=r"there is no libnvrtc\.so\.1|nvrtc64_10_0"):
        cuda.compiled("x", {}, (9, 0))
