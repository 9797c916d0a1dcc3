"""Measure a recurrent layer, both directions, by our kernels and by cuDNN, in one run on a GPU.

Microseconds per time step, of prediction and of forward and backward with all gradients, as CUDA
graphs; and how far outputs and gradients are from torch's layer in float64.

    python -m benchmarks.recurrent                # widths 128, 200 and 256, batches of 16 to 1,024
    python -m benchmarks.recurrent --quick        # width 200, batches of 126
    python -m benchmarks.recurrent --keep         # to benchmarks/results
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from benchmarks.command import Figures, keep, options, output
from benchmarks.machine import describe
from laconic.nn.sequence_models import Recurrent, sequence_model

STEPS, ROUNDS = 320, 5


def main() -> None:
    """Measure all rows, print them and write the figures."""
    given = options(__doc__).parse_args()
    if not torch.cuda.is_available():
        sys.exit("a recurrent layer is measured on a CUDA device, and there is none")
    about = describe()
    out = output(given, about, "recurrent-{machine_name}-{date}.json")
    rows: list[Figures] = []
    for cell in ("lstm", "gru"):
        for width in (200,) if given.quick else (128, 200, 256):
            for documents in (126,) if given.quick else (16, 126, 512, 1024):
                rows.append({"cell": cell, **measure(cell, width, documents)})
                print("  ".join(f"{name} {_shown(value)}" for name, value in rows[-1].items()))
                keep(out, {"about": about, "steps": STEPS, "recurrent": rows})
    print(f"\nFigures in {out}")


def measure(cell: str, width: int, documents: int, size: int = 200) -> Figures:
    """Return the figures of one shape, ours and cuDNN's taking turns."""
    torch.manual_seed(0)
    model = sequence_model(cell, size, width).cuda()
    assert isinstance(model, Recurrent)
    x = torch.randn(STEPS, documents, size, device="cuda").transpose(0, 1).requires_grad_()
    towards = torch.randn(STEPS, documents, 2 * width, device="cuda").transpose(0, 1)
    lengths = torch.full((documents,), STEPS, device="cuda")
    mask = torch.ones(documents, STEPS, dtype=torch.bool, device="cuda")
    call = mask, lengths, torch.zeros_like(mask, dtype=torch.int64)
    leaves = [x, *model.parameters()]

    def train() -> None:
        for each in leaves:
            each.grad = None
        model(x, *call).backward(towards)

    def predict() -> None:
        with torch.no_grad():
            model(x, *call)

    runs: dict[str, Callable[[], float]] = {}
    row: Figures = {"width": width, "documents": documents}
    for kernels in (True, False):
        model.kernels = kernels
        runs |= {
            f"{'ours' if kernels else 'cudnn'}_{f.__name__}": graph(f) for f in (predict, train)
        }
        row |= {"read_by": model.read_by} if kernels else {}
    times = [{name: run() / STEPS for name, run in runs.items()} for _ in range(ROUNDS)]
    row |= {f"{name}_us": statistics.median(each[name] for each in times) for name in runs}
    del runs
    return row | errors(model, x.detach()[:16, :64], towards[:16, :64])


def graph(body: Callable[[], None]) -> Callable[[], float]:
    """Capture a function; return one that runs it thrice and returns its microseconds."""
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        body()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        body()

    def run() -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        captured.replay()
        begin.record()
        for _ in range(3):
            captured.replay()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) * 1e3 / 3

    return run


def errors(model: Recurrent, x: Tensor, towards: Tensor) -> Figures:
    """Return how far outputs and gradients are from float64 at most, in shares of the largest."""
    lengths = torch.randint(0, x.shape[1] + 1, (len(x),), device=x.device)
    mask = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    call = mask, lengths, torch.zeros_like(mask, dtype=torch.int64)

    def found(kernels: bool, dtype: torch.dtype) -> list[Tensor]:
        model.to(dtype).kernels = kernels
        model.zero_grad()
        inputs = x.to(dtype, copy=True).requires_grad_()
        made = model(inputs, *call) * mask[..., None]
        made.backward(towards.to(dtype))
        gradients = [p.grad for p in (inputs, *model.parameters()) if p.grad is not None]
        return [each.detach().double() for each in (made, *gradients)]

    def differ(some: list[Tensor], wanted: list[Tensor]) -> dict[str, float]:
        pairs = zip(some, wanted, strict=True)
        shares = [float((a - b).abs().max() / b.abs().max()) for a, b in pairs]
        return {"outputs": shares[0], "gradients": max(shares[1:])}

    ours, cudnn = found(True, torch.float32), found(False, torch.float32)
    exact = found(False, torch.float64)
    model.float()
    each = {"ours": differ(ours, exact), "cudnn": differ(cudnn, exact)}
    return {f"{who}_{what}_error": v for who, of in each.items() for what, v in of.items()}


def _shown(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


if __name__ == "__main__":
    main()
