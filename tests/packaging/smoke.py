"""Whether an installed Laconic works, in whatever environment runs this file.

    python tests/packaging/smoke.py core sklearn train   # the extras that are installed, and core

Needs nothing but Laconic and the extras that it is told of: neither pytest nor this repository.
What is not named must not be needed, so a part fails if it imports another part's packages.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

# Before NumPy or torch is loaded: the documents are few, and threads would only get in the way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

TEXTS = [
    f"{word} wood would a woodchuck chuck {'wood ' * (i % 5)}"
    for i, word in enumerate(["how much", "too little"] * 12)
]
LABELS = ["much", "little"] * 12


def core() -> None:
    """Compress, write and read a corpus; the command line, both ways."""
    import laconic

    grammar = laconic.compress(TEXTS[0], "repair")
    assert grammar.text() == TEXTS[0]
    assert len(grammar.sequence) < len(TEXTS[0])
    assert laconic.samples.load("kjv").train.documents
    laconic.Corpus.from_documents(TEXTS, LABELS).write("woods.parquet")
    corpus = laconic.Corpus.open("woods.parquet")
    assert [each.text() for each in corpus] == TEXTS
    assert list(corpus.labels) == LABELS

    rows = "".join(map("{},{}\n".format, LABELS, TEXTS))
    Path("woods.csv").write_text(f"label,text\n{rows}", newline="\n")
    command("compress", "woods.csv", "-o", "again.parquet", "--label", "label")
    assert "24" in command("info", "again.parquet")
    command("expand", "again.parquet", "-o", "back.csv")
    assert Path("back.csv").read_bytes() == Path("woods.csv").read_bytes()
    command("explore", "again.parquet", "-o", "page.html", "--row", "3", "--beside", "lzd")
    page = Path("page.html").read_text("utf-8")
    assert "</script>" in page
    assert ".phrases" in page
    absent("torch", "sklearn", "scipy")


def alone() -> None:
    """Ask for what each extra brings, where none is installed: errors name the extra."""
    from importlib import import_module

    import laconic

    laconic.Corpus.from_documents(TEXTS, LABELS).write("woods.parquet")
    Path("genes.fa").write_text(">a\nACGT\n")
    Path("woods.txt").write_text("how much wood\n")
    Path("run").mkdir()
    refused("sklearn", lambda: laconic.GrammarVectorizer)
    refused("sklearn,train", lambda: laconic.GrammarClassifier)
    refused("sklearn,train", lambda: laconic.GrammarRegressor)
    refused("train", import_module, "laconic.batching")
    refused("train", lambda: import_module("laconic.nn").GrammarModel)
    refused("sklearn", command, "features", "woods.parquet", "-o", "woods.npz")
    refused("train", command, "train", "woods.parquet", "-o", "new")
    refused("train", command, "evaluate", "run", "woods.parquet")
    refused("train", command, "predict", "run", "woods.parquet")
    refused("train", command, "explain", "run", "woods.parquet", "--row", "0")
    refused("report", command, "report", "run", "-o", "report.html")
    refused("dna", command, "compress", "genes.fa", "-o", "genes.parquet")
    refused("url", command, "compress", "memory://woods.txt", "-o", "again.parquet")
    for engine in ("ray", "spark"):
        refused(engine, command, "compress", "woods.txt", "-o", "out", "--engine", engine)


def sklearn() -> None:
    """Count n-grams, from Python and from the command line; without torch."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    from laconic import Corpus, GrammarVectorizer

    matrix = GrammarVectorizer((1, 3)).fit_transform(TEXTS)
    expected = TfidfVectorizer(analyzer="char", ngram_range=(1, 3), lowercase=False)
    assert abs(matrix - expected.fit_transform(TEXTS)).max() < 1e-6
    Corpus.from_documents(TEXTS, LABELS).write("woods.parquet")
    command("features", "woods.parquet", "-o", "woods.npz")
    absent("torch")


def dna() -> None:
    """Read FASTA."""
    Path("genes.fa").write_text(">a\nACGTACGTACGT\n>b\nTTTTACGTTTTT\n", newline="\n")
    command("compress", "genes.fa", "-o", "genes.parquet", "--alphabet", "dna")
    command("expand", "genes.parquet", "-o", "back.fa")
    assert Path("back.fa").read_bytes() == Path("genes.fa").read_bytes()


def url() -> None:
    """Read a file by a URL of a kind that only fsspec knows."""
    import fsspec

    fsspec.filesystem("memory").pipe_file("/woods.txt", b"how much wood\nwould a woodchuck\n")
    command("compress", "memory://woods.txt", "-o", "woods.parquet")
    command("expand", "woods.parquet", "-o", "back.txt")
    assert Path("back.txt").read_text() == "how much wood\nwould a woodchuck\n"


def train() -> None:
    """Train for two epochs, evaluate, predict and explain."""
    from laconic import Corpus

    Corpus.from_documents(TEXTS, LABELS).write("woods.parquet")
    small = ["--embedding-size", "8", "--width", "8", "--epochs", "2", "--workers", "0"]
    command("train", "woods.parquet", "-o", "run", "--model", "both", *small)
    assert "accuracy" in command("evaluate", "run", "woods.parquet")
    command("predict", "run", "woods.parquet", "-o", "predicted.csv")
    assert len(Path("predicted.csv").read_text().splitlines()) == 1 + len(TEXTS)
    command("explain", "run", "woods.parquet", "--row", "3", "-o", "why.html")


def report() -> None:
    """Train and write a report of it."""
    train()
    command("report", "run", "-o", "report.html")
    assert "<svg" in Path("report.html").read_text("utf-8")


def estimators() -> None:
    """Fit an estimator: what the extras sklearn and train do together."""
    from laconic import GrammarClassifier

    classifier = GrammarClassifier(embedding_size=8, width=8, max_epochs=2)
    assert set(classifier.fit(TEXTS, LABELS).predict(TEXTS)) <= set(LABELS)


def command(*words: str) -> str:
    """Return what `laconic WORDS` prints; it runs here, where torch is loaded once."""
    from laconic.cli import app

    with contextlib.redirect_stdout(io.StringIO()) as printed:
        app(words, exit_on_error=False, result_action="return_value")
    return printed.getvalue()


def refused(extras: str, work: Callable[..., object], *words: str) -> None:
    """Check that this work lacks a package and says which extras bring it."""
    try:
        work(*words)
    except ImportError as error:
        said = str(error)
    else:
        said = "nothing was missing"
    assert f"'laconic[{extras}]'" in said, said


def absent(*packages: str) -> None:
    """Check that nothing has imported these so far."""
    assert not (found := sys.modules.keys() & set(packages)), found


PARTS: dict[str, Callable[[], None]] = {
    part.__name__: part for part in (core, alone, sklearn, dna, url, train, report, estimators)
}

if __name__ == "__main__":
    for name in sorted(sys.argv[1:], key=list(PARTS).index):
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            PARTS[name]()
        print(f"{name}: works")
