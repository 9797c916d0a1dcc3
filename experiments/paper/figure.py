"""Measures the paper's figure: peak memory of a training step against the time of an epoch.

Two ways of doing it, both with dual_gru: the paper's, written plainly (benchmarks.peer, random
batches), and Laconic's (documents of similar length, a budget, CUDA graphs).
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from benchmarks.peer import PeerModel
from benchmarks.shapes import SHAPES, shape
from benchmarks.steps import Contestant, batches_of, rounded_products
from experiments.paper.results import RESULTS, Figures, about, read, write
from laconic import Grammars
from laconic.nn import GrammarModel, ModelConfig

__all__ = ["EPOCHS", "SIZES", "measure_figure"]

COMPOSER = "dual_gru"
CODECS = ("none", "repair", "lzd")
WAYS = ("peer", "ours")
# Sizes of batches, by set: the paper's, with its smaller ones for the long documents.
SIZES = {"yelp": (21, 42, 126), "pinyin": (14, 21), "dna": (21, 42, 126), "adfa": (21, 42, 126)}
# Training documents of an epoch: 80 % of yelp_polarity_part, sogou_pinyin, H3 and adfa_ld.
EPOCHS = {"yelp": 7_228, "pinyin": 1_920, "dna": 2_150, "adfa": 3_809}
_LONG = ("pinyin",)  # a quarter of the documents will do


@rounded_products()
def measure_figure(
    device: str,
    results: Path = RESULTS,
    seconds: float = 3.0,
    sets: Iterable[str] = (),
    documents: int = 1_000,
    sizes: dict[str, tuple[int, ...]] | None = None,
    longest: int | None = None,
) -> None:
    """Write figure.json, after every point; points that are in it are not measured again.

    Some documents of each set are trained on, and an epoch's time is had from their speed.
    `longest` cuts documents, for smoke runs. ValueError for a set that is not there.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    where = torch.device(device)
    path = results / "figure.json"
    found: Figures = read(path) if path.exists() else {"about": about(), "points": []}
    done = {_key(point) for point in found["points"]}
    for name in list(sets) or SIZES:
        if name not in SIZES:
            raise ValueError(f"no set {name!r}; there are {', '.join(SIZES)}")
        most = max(documents // 4, 1) if name in _LONG else documents
        for codec in CODECS:
            grammars, labels, source = shape(name, codec, most, longest)
            for size in (sizes or SIZES)[name]:
                for way in WAYS:
                    point: Figures = {"set": name, "codec": codec, "batch": size, "way": way}
                    if _key(point) in done:
                        continue
                    began = time.perf_counter()
                    point |= _measure(point, grammars, labels, where, seconds)
                    point["took"] = time.perf_counter() - began
                    point["source"] = source
                    found["points"].append(point)
                    write(path, found)
                    print(point, file=sys.stderr, flush=True)


def _key(point: Figures) -> tuple[object, ...]:
    return point["set"], point["codec"], point["batch"], point["way"]


def _measure(
    point: Figures, grammars: Grammars, labels: Any, device: torch.device, seconds: float
) -> Figures:
    peer, size, cuda = point["way"] == "peer", point["batch"], device.type == "cuda"
    classes = SHAPES[point["set"]].classes
    batches = batches_of(grammars, labels, size, peer)
    torch.manual_seed(0)
    model: torch.nn.Module
    if peer:
        model = PeerModel(grammars.alphabet_size, classes, COMPOSER, packed=cuda)
    else:
        terminals = grammars.alphabet_size
        model = GrammarModel(ModelConfig(terminals, classes, composer=COMPOSER, dropout=0.0))
    entry = None
    try:
        pinned = [batch.pin_memory() if cuda else batch for batch in batches]
        entry = Contestant(model, "graph" if cuda and not peer else "eager", pinned, device)
        step, peak = entry.warm_up(seconds / 2)
        if peer:  # Its batches are random: some of them will do.
            entry.count = max(2, min(len(batches), int(seconds / step)))
        entry.round("train", 0)
        speed = entry.figures("train")["documents_per_s"][0]
    except torch.OutOfMemoryError:
        return {"error": "out of memory"}
    finally:
        del entry, model
        gc.collect()
        if cuda:
            torch.cuda.empty_cache()
    epoch = EPOCHS[point["set"]] / speed
    return {
        "documents_per_s": speed,
        "epoch_s": epoch,
        "peak_mib": peak / 2**20 if cuda else None,
        "sequence": len(grammars.sequence) / len(grammars),
    }
