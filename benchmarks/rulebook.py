"""Measure rulebooks beside tokenizers (byte pairs), and corpora under them beside gzip and zstd.

Data come from the folder that LACONIC_DATA names, else from the bundled samples.

    python -m benchmarks.rulebook             # to build/benchmarks
    python -m benchmarks.rulebook --keep      # to benchmarks/results
    python -m benchmarks.rulebook --quick     # a smoke run on little data

All learn as many rules from the same documents, on as many threads, in turns. Only we can learn
across words; speed and peak memory are those of a process of its own (--across RULES).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import zstandard

import laconic
from benchmarks.alone import memory
from benchmarks.command import Figures, alone, keep, options, output
from benchmarks.data import load_or_sample
from benchmarks.machine import describe, processors
from laconic import Corpus, Rulebook
from laconic.rulebook import Boundary

RULES, ROUNDS = 4096, 5
BOUNDARIES: dict[str, Boundary] = {
    "Laconic, within words": "words",
    "Laconic, half of them within words (default)": "phrases",
}
RIVAL = "tokenizers"


def timed(work: Callable[..., Any], *given: Any, **more: Any) -> tuple[float, Any]:
    """Return the seconds that work takes, and what it gives."""
    started = time.perf_counter()
    result = work(*given, **more)
    return time.perf_counter() - started, result


def train_tokenizer(texts: list[str], rules: int) -> Any:
    """Return byte pairs that tokenizers learned, words as GPT-2 has them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=256 + rules,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    found.train_from_iterator(texts, trainer, length=len(texts))
    return found


def speed(texts: list[str], rules: int, rounds: int) -> Figures:
    """Learning and parsing in turns; seconds of each round, and symbols that are left."""
    threads = processors()
    os.environ |= {"RAYON_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    rows: dict[str, Figures] = {}

    def note(name: str, learn: Callable[[], Any], parse: Callable[[Any], int]) -> None:
        row = rows.setdefault(name, {"learn": [], "parse": []})
        seconds, found = timed(learn)
        row["learn"].append(seconds)
        seconds, row["symbols"] = timed(parse, found)
        row["parse"].append(seconds)

    for _ in range(rounds):
        for name, boundary in BOUNDARIES.items():
            learn = partial(Rulebook.learn, texts, rules, boundary=boundary, threads=threads)
            note(name, learn, lambda book: len(book.parse(texts, threads=threads)[0]))
        train = partial(train_tokenizer, texts, rules)
        note(RIVAL, train, lambda found: sum(map(len, found.encode_batch(texts))))
    for row in rows.values():
        for what in ("learn", "parse"):
            # Of the fastest: beside other processes a pool of threads loses more than we do.
            row[f"{what}_ratio"] = min(rows[RIVAL][what]) / min(row[what])
    size = sum(len(text.encode()) for text in texts)
    return {"rows": rows, "threads": threads, "documents": len(texts), "bytes": size}


def across(texts: list[str], rules: int) -> Figures:
    """Learning without boundaries, in this process: MB/s, and peak memory beside the documents."""
    Path("/proc/self/clear_refs").write_text("5")
    before, size = memory("VmRSS"), sum(len(text.encode()) for text in texts)
    seconds, book = timed(Rulebook.learn, texts, rules, boundary="none")
    peak = (memory("VmHWM") - before) / size
    parse_seconds, (symbols, _) = timed(book.parse, texts)
    return {
        "mb_per_s": size / seconds / 1e6,
        "peak_memory_per_byte": peak,
        "parse_mb_per_s": size / parse_seconds / 1e6,
        "symbols": len(symbols),
    }


def on_disk(train: list[str], test: list[str], rules: int) -> Figures:
    """Bytes per document of test, under what training documents taught; rulebooks are counted."""
    book = Rulebook.learn(train, rules)
    dictionary = zstandard.train_dictionary(8 * len(book), [text.encode() for text in train])
    data = [text.encode() for text in test]
    figures: Figures = {
        "gzip -6": sum(len(zlib.compress(each, 6)) + 12 for each in data),
    }
    for level in (3, 19):
        coder = zstandard.ZstdCompressor(level=level, dict_data=dictionary)
        total = sum(len(coder.compress(each)) for each in data) + len(dictionary.as_bytes())
        figures[f"zstd -{level}, dictionary"] = total
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "corpus.parquet")
        for name, shared in (("private rules", None), (f"rulebook of {rules}", book)):
            corpus = Corpus.from_documents(test, rulebook=shared)
            for compact in (False, True):
                corpus.write(path, compact=compact)
                figures[f"{name}{', compact' * compact}"] = path.stat().st_size
    each = {name: total / len(test) for name, total in figures.items()}
    return {"documents": len(test), "bytes": sum(map(len, data)) / len(test), "rows": each}


def main() -> None:
    """Measure, print and write the figures."""
    parser = options(__doc__)
    parser.add_argument("--across", type=int, help="print the figures across words only")
    given = parser.parse_args()
    name, (train, test) = load_or_sample("imdb")
    most, rules = (300, 200) if given.quick else (len(train), RULES)
    texts = train.documents[:most]
    if given.across:
        print(json.dumps(across(texts, given.across)))
        return
    about = describe(gpu=False)
    quick = ["--quick"] if given.quick else []
    found: Figures = {
        "data": name,
        "rules": rules,
        "load": os.getloadavg()[0],
        "speed": speed(texts, rules, 1 if given.quick else ROUNDS),
        "across": alone("rulebook", "--across", str(rules), *quick),
        "sizes": on_disk(texts, test.documents[: most // 5], rules),
    }
    path = output(given, about, "rulebook-{machine_name}-{date}.json")
    keep(path, {"about": about, "rulebook": found})
    print(json.dumps(found, indent=1))
    print(f"wrote {path}; Laconic {laconic.__version__}")


if __name__ == "__main__":
    main()
