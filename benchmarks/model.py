"""Measure training and inference of grammar models beside benchmarks.peer, all in one run.

Every row is one shape of documents, codec, composer and sequence model. Contestants take turns,
round by round, because shared machines drift: read the ratios. Batches are made beforehand; copying
them to the device is part of a step. Ours are of documents of similar length (LengthSampler) and a
round is all of them; the peer's are random, and its rounds take as many as there is time for. CUDA
graphs are captured before the rounds.

    python -m benchmarks.model --device cuda --keep        # to benchmarks/results; about 5 minutes
    python -m benchmarks.model --device cpu --quick        # a smoke run on little data
    python -m benchmarks.model --all --no-peer             # every composer, every sequence model
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.command import Figures, keep, options, output
from benchmarks.machine import describe
from benchmarks.peer import PeerModel
from benchmarks.shapes import SHAPES, shape
from benchmarks.steps import PHASES, WAYS, Contestant, Phase, batches_of, rounded_products, shares
from laconic import Grammars
from laconic.nn import GrammarModel, ModelConfig

CODECS = ("repair", "lzd", "repair+auto", "none")  # the third: private rules over a rulebook
COMPOSERS = ("dual_gru", "grc")
MORE_COMPOSERS = ("mlp", "tree_lstm", "linear_recurrence")
MORE_SEQUENCE_MODELS = ("gru", "rnn", "transformer", "cnn")
LARGE = 1024
MOST_ROUNDS = 5
PEER = "peer"
BESIDE = ("yelp", "dna")  # where there is time for the peer and other ways, on a GPU
ALL = "yelp_all"  # of which large batches are compared with the peer's, which are not


@dataclass(frozen=True)
class Row:
    """What is measured together."""

    shape: str
    codec: str
    composer: str
    sequence_model: str
    batch: int

    def __str__(self) -> str:
        return f"{self.shape} {self.codec} {self.composer} {self.sequence_model} {self.batch}"


class Data:
    """Documents of one shape and codec, and their batches for each contestant."""

    def __init__(self, name: str, codec: str, count: int, longest: int | None, cuda: bool) -> None:
        self.cuda = cuda
        self._made: dict[tuple[int, bool], tuple[list[Any], float]] = {}
        self.grammars: Grammars
        self.labels: NDArray[np.int64]
        self.grammars, self.labels, self.where = shape(name, codec, count, longest)

    def batches(self, size: int, peer: bool) -> tuple[list[Any], float]:
        """Return all batches, pinned for GPUs, and the milliseconds that making one took."""
        if (size, peer) not in self._made:
            self._made[size, peer] = self._make(size, peer)
        return self._made[size, peer]

    def _make(self, size: int, peer: bool) -> tuple[list[Any], float]:
        begin = time.perf_counter()
        made = batches_of(self.grammars, self.labels, size, peer)
        milliseconds = 1e3 * (time.perf_counter() - begin) / len(made)
        return [batch.pin_memory() if self.cuda else batch for batch in made], milliseconds

    def about(self) -> Figures:
        """Return what the documents are."""
        documents = len(self.grammars)
        return {
            "where": self.where,
            "documents": documents,
            "letters": float(self.grammars.expanded_lengths.mean()),
            "sequence": len(self.grammars.sequence) / documents,
            "rules": len(self.grammars.rules) / documents,
        }


def measure(row: Row, data: Data, ways: list[str], seconds: float, device: torch.device) -> Figures:
    """Return the figures of each way ("peer" is one) for one row."""
    size, classes = data.grammars.alphabet_size, SHAPES[row.shape].classes
    shared = len(data.grammars.rulebook or ())
    config = ModelConfig(
        size,
        classes,
        composer=row.composer,
        sequence_model=row.sequence_model,
        dropout=0.0,
        shared_rules=shared,
        residual_rows=shared,
    )
    contestants: dict[str, Contestant] = {}
    results: Figures = {}
    rounds = MOST_ROUNDS
    for way in ways:
        peer = way == PEER
        batches, made_in = data.batches(row.batch, peer)
        torch.manual_seed(0)
        model = (
            PeerModel(size, classes, row.composer, packed=data.cuda)
            if peer
            else GrammarModel(config)
        )
        if isinstance(model, GrammarModel) and model.residuals is not None:
            model.residuals.learn(torch.ones(shared, dtype=torch.bool))
        try:
            entry = Contestant(model, "eager" if peer else way, batches, device)
            step, peak = entry.warm_up(seconds / 2)
        except torch.OutOfMemoryError:
            results[way] = {"error": "out of memory"}
            continue
        contestants[way] = entry
        results[way] = {
            "collate_ms": made_in,
            "peak_mib": peak / 2**20 if data.cuda else None,
            "reserved_mib": entry.reserved / 2**20 if data.cuda else None,
        }
        if peer:
            fitting = int(seconds / rounds / step)
            entry.count = max(2 if row.codec != "none" else 1, min(len(batches), fitting))
        else:
            rounds = max(1, min(rounds, int(seconds / step / len(batches))))
    for number, phase in product(range(rounds), PHASES):
        for entry in contestants.values():
            entry.round(phase, number)
    for way, entry in contestants.items():
        results[way] |= {phase: entry.figures(phase) for phase in PHASES}
    first = next(iter(contestants), PEER)
    if first != PEER and row.batch != LARGE:
        try:
            results[first]["shares"] = shares(contestants[first])
        except torch.OutOfMemoryError:  # It holds more than a step does.
            results[first]["shares"] = None
    return results


def rows_of(arguments: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of the run, those of the same documents together."""
    for name, codec in product(arguments.shapes, arguments.codecs):
        for composer in arguments.composers:
            yield Row(name, codec, composer, "lstm", arguments.batch)
            if name == ALL and not arguments.quick and arguments.device == "cuda":
                yield Row(name, codec, composer, "lstm", LARGE)
        if arguments.all:
            for composer in MORE_COMPOSERS:
                yield Row(name, codec, composer, "lstm", arguments.batch)
            for sequence_model in MORE_SEQUENCE_MODELS:
                yield Row(name, codec, "grc", sequence_model, arguments.batch)


def speed(results: Figures, way: str, phase: Phase) -> float | None:
    """Return documents per second, the median of rounds; None if it did not run."""
    found = results.get(way, {}).get(phase)
    return statistics.median(found["documents_per_s"]) if found else None


def ratios(measured: dict[Row, Figures]) -> list[Figures]:
    """Return what is compared: ours and the peer, grammars and characters, large batches and not.

    Of memory, above 1 means that the first needs less.
    """
    made: list[Figures] = []

    def compare(what: str, a: Figures, way: str, b: Figures, other: str) -> None:
        if "train" not in a.get(way, {}) or "train" not in b.get(other, {}):
            return
        found: Figures = {"what": what}
        for phase in PHASES:
            one, two = a[way][phase]["documents_per_s"], b[other][phase]["documents_per_s"]
            if a is b:  # They took turns: a round of one beside the same round of the other.
                found[phase] = statistics.median(x / y for x, y in zip(one, two, strict=True))
            else:
                found[phase] = statistics.median(one) / statistics.median(two)
        if a[way]["peak_mib"] and b[other]["peak_mib"]:
            found["memory"] = b[other]["peak_mib"] / a[way]["peak_mib"]
        made.append(found)

    for row, results in measured.items():
        for way in results:
            if way == PEER:
                continue
            compare(f"{row}: {way} / peer", results, way, results, PEER)
            for other, theirs in measured.items():
                same = (other.shape, other.composer, other.sequence_model) == (
                    row.shape,
                    row.composer,
                    row.sequence_model,
                )
                if same and other.batch == row.batch and other.codec == "none" != row.codec:
                    compare(f"{row}: {way}, {row.codec} / none", results, way, theirs, way)
                if same and other.codec == row.codec and row.batch == LARGE != other.batch:
                    compare(f"{row}: {way}, {LARGE} / {other.batch}", results, way, theirs, way)
                    compare(f"{row}: {way} / peer at {other.batch}", results, way, theirs, PEER)
    return made


def cell(value: float | None, digits: int = 1) -> str:
    """Return a number for a table, or a dash."""
    return f"{'–' if value is None else format(value, f',.{digits}f'):>12}"


def line_of(name: str, found: Figures) -> str:
    """Return one line of the table."""
    if "error" in found:
        return f"{name:46}  {found['error']}"
    cells = [speed({"x": found}, "x", phase) for phase in PHASES]
    cells[1:1] = [found["train"]["ms_mean"], found["train"]["ms_median"]]
    cells += [
        found["infer"]["ms_mean"],
        found["peak_mib"],
        found.get("reserved_mib"),
        found["collate_ms"],
    ]
    told = f"{name:46}" + "".join(cell(value) for value in cells)
    if parts := found.get("shares"):
        of = {
            name: 100 * parts[f"{name}_ms"] / parts["step_ms"]
            for name in ("composer", "sequence_model")
        }
        told += f"   composer {of['composer']:.0f} %, sequence model {of['sequence_model']:.0f} %"
    return told


def print_tables(measured: dict[Row, Figures], compared: list[Figures]) -> None:
    """Print one line per contestant, then the ratios."""
    heads = (
        "docs/s",
        "ms mean",
        "ms median",
        "infer d/s",
        "infer ms",
        "peak MiB",
        "reserved",
        "collate ms",
    )
    print(f"\n{'':46}" + "".join(f"{head:>12}" for head in heads) + "   alone, of a step")
    for row, results in measured.items():
        for way, found in results.items():
            print(line_of(f"{row} {way}", found))
    kinds = ("train", "infer", "memory")
    title = "documents/s (memory: how many times less)"
    print(f"\n{title:62}" + "".join(f"{kind:>12}" for kind in kinds))
    for ratio in compared:
        cells = [cell(ratio.get(kind), 2) for kind in kinds]
        print(f"{ratio['what']:62}" + "".join(cells))


def parse() -> argparse.Namespace:
    """Return the arguments, with the defaults that depend on each other."""
    parser = options(__doc__)
    default = "cuda" if torch.cuda.is_available() else "cpu"
    parser.add_argument("--device", default=default, choices=("cuda", "cpu"))
    parser.add_argument("--all", action="store_true", help="every composer and sequence model")
    parser.add_argument("--shapes", nargs="+", choices=SHAPES)
    parser.add_argument("--codecs", nargs="+", default=CODECS, choices=CODECS)
    parser.add_argument("--composers", nargs="+", default=COMPOSERS, choices=COMPOSERS)
    parser.add_argument("--ways", nargs="+", choices=WAYS, help="eager; graph too with cuda")
    parser.add_argument("--no-peer", action="store_true", help="leave the peer out")
    parser.add_argument("--batch", type=int, help="documents in a batch; 126, or 32 with --quick")
    parser.add_argument("--documents", type=int, help="most documents of a shape")
    parser.add_argument("--longest", type=int, help="cut documents there; 4,000 letters on the CPU")
    parser.add_argument("--seconds", type=float, help="about how long each contestant trains")
    parser.add_argument("--threads", type=int, default=2, help="of the CPU, with --device cpu")
    arguments = parser.parse_args()
    cuda, quick = arguments.device == "cuda", arguments.quick
    default_shapes = ["yelp", "dna", "yelp_all", "pinyin"] if cuda else ["yelp", "adfa", "dna"]
    arguments.shapes = arguments.shapes or default_shapes
    arguments.ways = arguments.ways or (["graph", "eager"] if cuda else ["eager"])
    arguments.batch = arguments.batch or (32 if quick else 126)
    arguments.longest = arguments.longest or (1_000 if quick else None if cuda else 4_000)
    few = (4 if quick else 2) * arguments.batch
    arguments.documents = arguments.documents or (None if cuda and not quick else few)
    arguments.seconds = arguments.seconds or (0.5 if quick else 3.0 if cuda else 10.0)
    return arguments


@rounded_products()
def main() -> None:
    """Measure all rows, print them and write the figures."""
    began, arguments = time.perf_counter(), parse()
    device = torch.device(arguments.device)
    cuda = device.type == "cuda"
    if cuda:
        # cuBLAS keeps its workspace: not to be counted as the first contestant's.
        torch.ones(8, 8, device=device).mm(torch.ones(8, 8, device=device))
    else:
        torch.set_num_threads(arguments.threads)
    about = describe(gpu=cuda)
    out = output(arguments, about, "model-{machine_name}-{date}.json")
    figures: Figures = {"about": about}
    measured: dict[Row, Figures] = {}
    sets: Figures = {}
    held: tuple[tuple[str, str], Data] | None = None
    for row in rows_of(arguments):
        if held is None or held[0] != (row.shape, row.codec):
            most = arguments.documents or SHAPES[row.shape].most
            data = Data(row.shape, row.codec, most, arguments.longest, cuda)
            held = (row.shape, row.codec), data
            sets[f"{row.shape} {row.codec}"] = data.about()
        beside = row.composer in COMPOSERS and row.sequence_model == "lstm"
        beside = beside and "+" not in row.codec  # the paper knows no rules that documents share
        ways = [*arguments.ways, *([PEER] if beside and not arguments.no_peer else [])]
        if cuda and row.shape not in BESIDE:
            peers = row.shape == ALL and row.batch != LARGE and row.codec != "none"
            ways = ways[:1] + ways[-1:] * (peers and ways[-1] == PEER)
        seconds = arguments.seconds / (2 if row.batch == LARGE else 1)
        measured[row] = measure(row, held[1], ways, seconds, device)
        gc.collect()
        if cuda:
            torch.cuda.empty_cache()
        for way, found in measured[row].items():
            told = line_of(f"{row} {way}", found)
            print(f"{time.perf_counter() - began:6.1f} s  {told}", file=sys.stderr, flush=True)
        # After every row, so that a run which is stopped keeps what it has measured.
        figures["model"] = {
            "seconds": time.perf_counter() - began,
            "peer_reads": "packed sequences" if cuda else "padded sequences",
            "sets": sets,
            "rows": [{**vars(row), "results": results} for row, results in measured.items()],
            "ratios": ratios(measured),
        }
        keep(out, figures)
    print_tables(measured, ratios(measured))
    print(f"\nFigures in {out}, after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
