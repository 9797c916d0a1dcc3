"""Measures the cost of a training step on one document, of which more and more is repetition.

The document has the same length throughout: its first part is English, and the rest repeats it.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import torch

from benchmarks.texts import english_documents
from experiments.paper.results import RESULTS, Figures, about, write
from laconic import compress_many
from laconic.batching import Batch, collate
from laconic.codecs import CodecName
from laconic.nn import GrammarModel, ModelConfig
from laconic.nn.memory import peak_memory_mb, reset_peak_memory

__all__ = ["SHARES", "document", "measure_complexity", "measure_step"]

SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
CODECS = ("none", "repair", "lzd")
_PLAIN_SHARES = (0.0, 0.95)  # characters cost the same whatever they are: two points show it


def document(letters: int, share: float) -> str:
    """Return a text of so many letters, of which that share repeats the beginning.

    >>> len(document(1000, 0.9)), document(1000, 0.9)[:100] == document(1000, 0.9)[100:200]
    (1000, True)
    """
    _, texts = english_documents(1, letters)
    text = texts[0] if texts else ""
    fresh = max(1, round(letters * (1 - share)))
    if len(text) < fresh:
        raise ValueError(f"there are only {len(text):,} letters of English here, not {fresh:,}")
    return (text[:fresh] * -(-letters // fresh))[:letters]


def measure_step(
    text: str, codec: CodecName, device: str, repeats: int, size: int = 200
) -> Figures:
    """Return seconds and peak MB of a training step on one document, and what it is made of.

    Forward, loss and backward of grc and a Bi-LSTM, without CUDA graphs: whoever has one long
    document captures nothing. The memory is above what there was before; on a CPU it is the
    process's, which must be new for each measurement.
    """
    grammars = compress_many([text], codec, alphabet="zhang")
    torch.manual_seed(0)
    config = ModelConfig(grammars.alphabet_size, 2, embedding_size=size, width=size, dropout=0.0)
    model = GrammarModel(config).to(device)
    batch = collate(grammars, labels=[1]).to(device)
    where = torch.device(device)
    cuda, taken = where.type == "cuda", []
    # Libraries set themselves up in the first step, which must have rules if the others do.
    _step(model, collate(compress_many(["abab" * 9], codec, alphabet="zhang"), [1]).to(device))
    if cuda:
        gc.collect()
        torch.cuda.synchronize()
        reset_peak_memory(where)
    before = peak_memory_mb(where)
    for _ in range(repeats):
        began = time.perf_counter()
        _step(model, batch)
        if cuda:
            torch.cuda.synchronize()
        taken.append(time.perf_counter() - began)
    return {
        "letters": len(text),
        "sequence": len(grammars.sequence),
        "rules": len(grammars.rules),
        "seconds": statistics.median(taken),
        "peak_mb": peak_memory_mb(where) - before,
    }


def measure_complexity(
    device: str, results: Path = RESULTS, letters: int = 100_000, repeats: int = 3
) -> None:
    """Write complexity-<device>.json: a point for each codec and share of repetition.

    Each point on a CPU has a process of its own, because a process's peak never falls.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    points: list[Figures] = []
    for codec in CODECS:
        for share in _PLAIN_SHARES if codec == "none" else SHARES:
            text = document(letters, share)
            arguments = text, codec, device, repeats
            if device == "cpu":
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
                    found = pool.submit(measure_step, *arguments).result()
            else:
                found = measure_step(*arguments)
                torch.cuda.empty_cache()
            points.append({"codec": codec, "share": share, **found})
            print(points[-1], file=sys.stderr, flush=True)
            write(results / f"complexity-{device}.json", {"about": about(), "points": points})


def _step(model: GrammarModel, batch: Batch) -> None:
    assert batch.labels is not None
    model.zero_grad()
    model.loss(model(batch), batch.labels).backward()  # type: ignore[no-untyped-call]
