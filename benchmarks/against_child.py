"""The work that benchmarks.against measures, in a process of either checkout: public names only.

A name of work comes in a line, and goes back as seconds, seconds of the processor and what it came
to. This file is run by its path, and imports nothing of `benchmarks`: that would not fit the other
checkout's `laconic`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np

import laconic

Work = Callable[[], object]
DATA: dict[str, list[str]] = json.loads(Path("documents.json").read_text())
TEXTS = DATA["texts"]
SIZE, BATCH = 64, 32


def digest(*arrays: Any) -> str:
    """Return a short name of the content of arrays."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


@cache
def grammars() -> laconic.Grammars:
    """The short texts, compressed by Re-Pair."""
    return laconic.compress_many(TEXTS, "repair", threads=1)


def compress(codec: Any) -> Work:
    """Compress the short texts."""

    def work() -> object:
        made = laconic.compress_many(TEXTS, codec, threads=1)
        return digest(made.rules, made.sequence)

    return work


def write(compact: bool) -> Work:
    """Write them as a corpus."""
    corpus, path = laconic.Corpus.from_documents(TEXTS, threads=1), Path(f"corpus-{compact}")

    def work() -> object:
        corpus.write(path, compact=compact)
        return digest(np.fromfile(path, np.uint8))

    return work


def read(compact: bool) -> Work:
    """Read that corpus."""
    write(compact)()

    def work() -> object:
        found = laconic.Corpus.open(f"corpus-{compact}").grammars
        return digest(found.rules, found.sequence)

    return work


def features(**settings: Any) -> Work:
    """Count n-grams of the short texts, from grammars."""
    source, alphabet = grammars(), laconic.Alphabet.bytes()

    def work() -> object:
        vectorizer = laconic.GrammarVectorizer(
            (1, 4), alphabet=alphabet, lowercase=False, threads=1, **settings
        )
        matrix = vectorizer.fit_transform(source)
        return digest(matrix.data, matrix.indices, matrix.indptr)

    return work


@cache
def batches() -> list[Any]:
    """Return batches of the short texts."""
    from laconic.batching import GrammarDataset

    dataset = GrammarDataset(grammars(), np.arange(len(TEXTS)) % 2)
    ends = [*range(0, len(TEXTS), BATCH), len(TEXTS)]
    return [dataset.__getitems__(list(range(*some))) for some in pairwise(ends)]


def collate() -> Work:
    """Make those batches."""
    return lambda: digest(*(batch.symbols.numpy() for batch in batches.__wrapped__()))


@cache
def model() -> Any:
    """Return a small model."""
    import torch

    from laconic.nn import GrammarModel, ModelConfig

    torch.set_num_threads(1)
    torch.manual_seed(0)
    return GrammarModel(ModelConfig(256, 2, embedding_size=SIZE, width=SIZE, dropout=0.0))


def step() -> Work:
    """Make some training steps on the CPU, from the same weights each time."""
    import torch

    begin = {name: weight.clone() for name, weight in model().state_dict().items()}

    def work() -> object:
        made = model().train()
        made.load_state_dict(begin)
        torch.manual_seed(0)
        optimizer = torch.optim.Adam(made.parameters(), lr=1e-3)
        losses = []
        for batch in batches()[:4]:
            optimizer.zero_grad()
            loss = made.loss(made(batch), batch.labels)
            loss.backward()
            optimizer.step()
            losses.append(round(loss.item(), 5))  # sums may be in another order
        return losses

    return work


def outputs() -> Work:
    """Compute a model's outputs on the CPU."""
    import torch

    def work() -> object:
        made = model().eval()
        with torch.no_grad():
            return digest(*(made(batch).numpy() for batch in batches()[:8]))

    return work


def fit(view: Literal["sequence", "ngram", "both"]) -> Work:
    """Train an estimator for two short epochs: documents, batches, steps, validation."""
    estimator = laconic.GrammarClassifier(
        embedding_size=SIZE,
        width=SIZE,
        model=view,
        ngrams=3,
        ngram_buckets=1 << 14,
        max_epochs=2,
        batch_size=BATCH,
        device="cpu",
        random_state=0,
    )
    documents, labels = DATA["traces"], DATA["labels"]
    return lambda: digest(estimator.fit(documents, labels).predict_proba(documents[:8]))


def predict() -> Work:
    """Predict what documents are, from their text."""
    estimator = laconic.GrammarClassifier(
        embedding_size=SIZE, width=SIZE, max_epochs=1, device="cpu", random_state=0
    ).fit(DATA["traces"], DATA["labels"])
    return lambda: digest(estimator.predict_proba(DATA["traces"]))


WORK: dict[str, Callable[[], Work]] = {
    "compress-repair": lambda: compress("repair"),
    "compress-lzd": lambda: compress("lzd"),
    "compress-lz78": lambda: compress("lz78"),
    "corpus-write": lambda: write(False),
    "corpus-write-compact": lambda: write(True),
    "corpus-read": lambda: read(False),
    "corpus-read-compact": lambda: read(True),
    "features": lambda: features(max_features=50_000),
    "features-hashed": lambda: features(n_features=1 << 18),
    "collate": collate,
    "step": step,
    "outputs": outputs,
    "fit": lambda: fit("sequence"),
    "fit-both": lambda: fit("both"),
    "predict": predict,
}


def main() -> None:
    """Answer until nothing more is asked."""
    # Whatever libraries print must not be taken for an answer.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with open("texts.csv", "w", newline="") as file:
        csv.writer(file).writerows([["text"], *([text] for text in TEXTS)])
    ready: dict[str, Work] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = WORK[name]()
        began, busy = time.perf_counter(), time.process_time()
        result = ready[name]()
        taken = time.perf_counter() - began, time.process_time() - busy
        print(json.dumps([*taken, result]), file=answers, flush=True)


if __name__ == "__main__":
    main()
