"""Train on a GPU as if it had 8 GB, and with all that it has: memory, speed and held-out accuracy.

Every row trains on a part of a data set, once with a process that may take 8 GB
(torch.cuda.set_per_process_memory_fraction) and once without that limit; steps, seeds and documents
are the same. "long" are 11,000 documents of up to 20,000 letters, 1,600 on average, joined from
reviews of one class of imdb. Documents are compressed with Re-Pair, anew in each run. The settings
are presets; "auto", the default, counts, reads and blends.

    python -m benchmarks.memory --keep                   # to benchmarks/results; about 4 minutes
    python -m benchmarks.memory --sets long --settings both --epochs 5 --seeds 0 1 2
    python -m benchmarks.memory --quick                  # few documents
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
import warnings
from typing import Any

import numpy as np
import torch

from benchmarks.command import Figures, keep, options, output
from benchmarks.data import DATASETS, load
from benchmarks.machine import describe
from laconic import Alphabet, Corpus
from laconic.nn.memory import give_back_memory
from laconic.samples import Split
from laconic.training.auto import learn
from laconic.training.settings import resolve

SETS = ("imdb", "sogou_pinyin", "long")
SETTINGS = ("auto", "accurate", "both")
LIMIT = 8e9
HELD_OUT = 500  # documents, at most
LONG, MEAN, LONGEST = 11_000, 1_600, 20_000
_SPREAD = 1.2  # of the logarithms of lengths


def long_documents(source: Split, count: int = LONG, seed: int = 0) -> Split:
    """Return documents made by joining others of one label, of very different lengths.

    Their lengths are log-normal, 1,600 letters on average and 20,000 at most.

    >>> made = long_documents(Split(["aaaa", "bb", "a"], [1, 0, 1]), 1_000)
    >>> lengths = [len(text) for text in made.documents]
    >>> max(lengths), 1_300 < sum(lengths) / 1_000 < 1_700
    (20000, True)
    >>> sorted({(text[0], label) for text, label in zip(made.documents, made.labels)})
    [('a', 1), ('b', 0)]
    """
    rng = np.random.default_rng(seed)
    by_label: dict[Any, list[str]] = {}
    for text, label in zip(source.documents, source.labels, strict=True):
        by_label.setdefault(label, []).append(text)
    labels = list(by_label)
    wanted = np.exp(rng.normal(np.log(MEAN) - _SPREAD**2 / 2, _SPREAD, count))
    lengths = np.clip(wanted, 50, LONGEST).astype(int)
    lengths[: max(1, count // 200)] = LONGEST
    documents, chosen = [], []
    for length in lengths.tolist():
        label = labels[int(rng.integers(len(labels)))]
        parts, size = [], 0
        while size < length:
            parts.append(by_label[label][int(rng.integers(len(by_label[label])))])
            size += len(parts[-1]) + 1
        documents.append(" ".join(parts)[:length])
        chosen.append(label)
    return Split(documents, chosen)


def corpus_of(name: str, documents: int) -> Corpus:
    """Return so many training documents of a set, or more of "long", compressed."""
    train_part, _ = load("imdb" if name == "long" else name)
    if name == "long":
        part = long_documents(train_part, min(LONG, 2 * documents))
    else:
        rows = np.random.default_rng(0).permutation(len(train_part))[: documents + HELD_OUT]
        part = Split(
            *([each[k] for k in rows] for each in (train_part.documents, train_part.labels))
        )
    alphabet = Alphabet.named(DATASETS["imdb" if name == "long" else name].alphabet)
    return Corpus.from_documents(part.documents, part.labels, "repair", alphabet)


def measure(
    corpus: Corpus, settings: str, limited: bool, documents: int, seed: int, changes: dict[str, Any]
) -> Figures:
    """Train epochs of so many documents; return what that took, and what it reached."""
    gc.collect()
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(min(1.0, LIMIT / total) if limited else 1.0)
    given = {"seed": seed, "device": "cuda", "holdout": HELD_OUT / len(corpus), **changes}
    config = resolve(settings, {"documents_per_epoch": documents, **given})
    before, began = torch.cuda.memory_allocated(), time.perf_counter()
    row: Figures = {"limited": limited, "settings": settings, "seed": seed}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "out of memory")  # which the row tells, too
        trained = learn(corpus, config)
    line = next(each for each in reversed(trained.history) if "train_loss" in each)
    names = ("documents_per_s", "train_loss", "step", "read_by")
    row |= {name: line[name] for name in names}
    row |= {name: line[name] for name in ("piece_symbols", "pieces_per_batch", "out_of_memory")}
    row |= {"peak_memory_mb": trained.peak_memory, "reserved_memory_mb": trained.reserved_memory}
    row |= {
        "accuracy": trained.history[-1]["valid"]["accuracy"],
        "seconds": time.perf_counter() - began,
    }
    row |= {"before_mb": before / 2**20}
    if counting := trained.history[-1].get("auto", {}).get("counting"):
        both = ("peak_memory_mb", "reserved_memory_mb")
        parts = {"counting": counting, "reading": line}
        row["parts"] = {part: {name: of[name] for name in both} for part, of in parts.items()}
    del trained
    torch.cuda.set_per_process_memory_fraction(1.0)
    give_back_memory()
    return row


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = options(__doc__)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--settings", nargs="+", default=SETTINGS, choices=SETTINGS)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--documents", type=int, help="that an epoch trains; 3,200")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument(
        "--beside", help="what else runs on the GPU: speeds are told to nobody then"
    )
    parser.add_argument("--no-graphs", action="store_true", help="steps without CUDA graphs")
    arguments = parser.parse_args()
    arguments.documents = arguments.documents or (640 if arguments.quick else 3_200)
    return arguments


def line_of(row: Figures) -> str:
    """Return one line of the table that is printed."""
    reserved, allocated = row["reserved_memory_mb"], row["peak_memory_mb"]
    told = [
        f"{row['set']:12} {row['settings']:8} seed {row['seed']}",
        "8 GB" if row["limited"] else "all ",
        f"{allocated:8,.0f} MB {reserved:8,.0f} reserved {reserved / allocated:5.2f} x",
        f"{row['pieces_per_batch']:5.2f} pieces of {row['piece_symbols']:,}",
        f"{row['out_of_memory']} times too many",
        f"{row['documents_per_s']:6,.0f} documents/s",
        f"{100 * row['accuracy']:.1f} %",
        f"{row['seconds']:.1f} s",
    ]
    return "  ".join(told)


def main() -> None:
    """Measure all rows, print them and write the figures."""
    arguments = parse()
    if not torch.cuda.is_available():
        sys.exit("memory is measured on a CUDA device, and there is none")
    about = describe() | ({"beside": arguments.beside} if arguments.beside else {})
    out = output(arguments, about, "memory-{machine_name}-{date}.json")
    changes: dict[str, Any] = {"epochs": arguments.epochs}
    changes |= {"graphs": False} if arguments.no_graphs else {}
    rows: list[Figures] = []
    sets: Figures = {}
    for name in arguments.sets:
        corpus = corpus_of(name, arguments.documents)
        taken = min(arguments.documents, len(corpus) - HELD_OUT)
        grammars = corpus.grammars
        sets[name] = {
            "documents": len(corpus),
            "letters": float(corpus.lengths.mean()),
            "longest": int(corpus.lengths.max()),
            "longest_sequence": int(np.diff(grammars.sequence_offsets).max()),
        }
        print(name, sets[name], flush=True)
        for settings in arguments.settings:
            for seed in arguments.seeds:
                for limited in (False, True):
                    row = measure(corpus, settings, limited, taken, seed, changes)
                    rows.append({"set": name, **row})
                    print(line_of(rows[-1]), flush=True)
                    keep(
                        out,
                        {
                            "about": about,
                            "memory": {"epochs": arguments.epochs, "sets": sets, "rows": rows},
                        },
                    )
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
