"""Measure n-gram features beside scikit-learn's own: time, repeated documents, accuracy, memory.

Data come from the folder that LACONIC_DATA names, else from the bundled samples.

    python -m benchmarks.ngrams                       # all parts to build/benchmarks
    python -m benchmarks.ngrams --keep                # to benchmarks/results, for `make docs`
    python -m benchmarks.ngrams --parts speed repeats # some parts; others in the file stay
    python -m benchmarks.ngrams --quick               # a smoke run on little data
"""

from __future__ import annotations

import csv
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression

import laconic
from benchmarks.command import ROOT, Figures, alone, keep, options, output
from benchmarks.data import DNA, load_or_sample
from benchmarks.machine import describe
from laconic import GrammarVectorizer
from laconic.codecs import CodecName

RANGE, MOST = (1, 5), 200_000
CODECS: tuple[CodecName, ...] = ("repair", "lzd", "lz78")
SETS = {
    "imdb": "imdb",
    "yelp part": "yelp_polarity_part",
    "pinyin": "sogou_pinyin",
    "adfa_ld": "adfa_ld",
    **{name: name for name in sorted(DNA)},
}


def texts_of_imdb(most: int | None = None) -> list[str]:
    """Return training documents."""
    return load_or_sample("imdb")[1][0].documents[:most]


def timed(work: Callable[..., Any], *given: Any) -> tuple[float, Any]:
    """Return the seconds that work takes, and what it gives."""
    started = time.perf_counter()
    result = work(*given)
    return time.perf_counter() - started, result


def difference(ours: Any, theirs: Any) -> float:
    """Return by how much two matrices of one shape differ at most."""
    if ours.shape != theirs.shape:
        raise ValueError(f"{ours.shape} against {theirs.shape}")
    return float(abs(ours - theirs).max())


def speed(quick: bool) -> Figures:
    """TF-IDF of imdb: scikit-learn before and after, ours in turns, from texts and grammars."""
    texts = texts_of_imdb(500 if quick else 16_000)
    theirs = TfidfVectorizer(analyzer="char", ngram_range=RANGE, max_features=MOST)
    busy = time.process_time()
    first, wanted = timed(theirs.fit_transform, texts)
    rows: dict[str, Figures] = {"scikit-learn": {"seconds": [first]}}
    rows["scikit-learn"]["cpu_seconds"] = [time.process_time() - busy]
    names = theirs.get_feature_names_out().tolist()
    # Lower-cased as scikit-learn does it, so that grammars have the same letters.
    lowered = [text.lower() for text in texts]
    alphabet = laconic.Alphabet.learn(lowered)
    contestants: dict[str, tuple[GrammarVectorizer, Any]] = {}
    for codec in (*CODECS, "none"):
        ours = GrammarVectorizer(RANGE, max_features=MOST, codec=codec)
        contestants[f"{codec}, from texts"] = ours, texts
        grammars = laconic.compress_many(lowered, codec, alphabet=alphabet)
        ours = GrammarVectorizer(RANGE, max_features=MOST, alphabet=alphabet, lowercase=False)
        contestants[f"{codec}, from grammars"] = ours, grammars
    for _ in range(1 if quick else 3):
        for title, (ours, given) in contestants.items():
            busy = time.process_time()
            spent, found = timed(ours.fit_transform, given)
            row = rows.setdefault(title, {"seconds": [], "cpu_seconds": []})
            row["seconds"].append(spent)
            row["cpu_seconds"].append(time.process_time() - busy)
            if len(row["seconds"]) == 1:
                row["difference"] = difference(found, wanted)
                row["same_names"] = ours.get_feature_names_out().tolist() == names
    del wanted, found
    busy, slow = time.process_time(), rows["scikit-learn"]
    slow["seconds"].append(timed(theirs.fit_transform, texts)[0])
    slow["cpu_seconds"].append(time.process_time() - busy)
    for title, row in rows.items():
        # The fastest round of each, because what slows the others down are other programs.
        for key, ratio in (("seconds", "ratio"), ("cpu_seconds", "cpu_ratio")):
            row[ratio] = min(slow[key]) / min(row[key])
        print(title, json.dumps(row), flush=True)
    return {
        "documents": len(texts),
        "letters": sum(map(len, texts)),
        "range": RANGE,
        "max_features": MOST,
        "rows": rows,
    }


def repeats(quick: bool) -> Figures:
    """Count 1-5-grams of a document repeated k times: on its grammar, and with scikit-learn.

    Codecs read the repeated text, up to 20 MB. `doubled` is the grammar of one copy, and a rule for
    each doubling: so far as k may go.
    """
    text = texts_of_imdb(1)[0] + " "
    data = text.encode("ascii", "replace")
    rows = []
    for power in range(0, 9 if quick else 21, 2):
        row: Figures = {"k": 1 << power}
        made = {"doubled": doubled(data, power)}
        if power <= 14:
            made |= {codec: laconic.compress(data * row["k"], codec) for codec in CODECS}
        for name, grammar in made.items():
            grammars = laconic.Grammars.concatenate([grammar])
            count = GrammarVectorizer(RANGE, use_idf=False, norm=None, threads=1)
            row[name] = min(timed(count.fit, grammars)[0] for _ in range(5))
            row[f"{name} size"] = len(grammar.rules) + len(grammar.sequence)
        if power <= (6 if quick else 12):
            theirs = CountVectorizer(analyzer="char", ngram_range=RANGE)
            repeated = [data.decode() * row["k"]]
            row["scikit-learn"], wanted = timed(theirs.fit_transform, repeated)
            if difference(count.transform(grammars), wanted):
                raise ValueError(f"other counts for k = {row['k']}")
        rows.append(row)
        print(json.dumps(row), flush=True)
    return {"letters": len(data), "rows": rows}


def doubled(data: bytes, power: int) -> laconic.Grammar:
    """Return the grammar of data repeated 2^power times: Re-Pair's, and a rule per doubling."""
    one = laconic.compress(data)
    rules, sequence = one.rules.tolist(), one.sequence.tolist()
    top = one.alphabet_size + len(rules)
    while len(sequence) > 1:  # the whole text as one symbol, by halves
        paired = []
        for left, right in zip(sequence[::2], sequence[1::2], strict=False):
            rules.append([left, right])
            paired.append(top)
            top += 1
        sequence = paired + sequence[len(sequence) & ~1 :]
    for _ in range(power):
        rules.append([sequence[0], sequence[0]])
        sequence, top = [top], top + 1
    return laconic.Grammar(one.alphabet_size, np.array(rules), sequence)


def accuracy(quick: bool, names: list[str]) -> Figures:
    """Logistic regression on our matrix and on scikit-learn's, the same otherwise."""
    found: Figures = {}
    for name in names:
        parts = zip(load_or_sample(SETS[name])[1], (16_000, 8_000), strict=True)
        some = [(part, 200 if quick else most) for part, most in parts]
        train, test = ((part.documents[:most], part.labels[:most]) for part, most in some)
        kmers = name in DNA
        span = (3, 6) if kmers else RANGE
        limit = None if kmers else MOST
        theirs = TfidfVectorizer(
            analyzer="char", ngram_range=span, max_features=limit, sublinear_tf=True
        )
        ours = GrammarVectorizer(span, max_features=limit, sublinear_tf=True)
        row: Figures = {"train": len(train[0]), "test": len(test[0]), "range": span}
        for title, vectorizer in (("ours", ours), ("scikit-learn", theirs)):
            seconds, matrix = timed(vectorizer.fit_transform, train[0])
            model = LogisticRegression(C=1 if kmers else 10, max_iter=300)
            fitting, _ = timed(model.fit, matrix, train[1])
            score = float(model.score(vectorizer.transform(test[0]), test[1]))
            row[title] = {"accuracy": score, "features_s": seconds, "regression_s": fitting}
        found[name] = row
        print(name, json.dumps(row), flush=True)
    return found


def memory(quick: bool, gigabytes: float) -> Figures:
    """Peak memory of `laconic features` with hashing on a corpus made by repeating documents."""
    texts = texts_of_imdb(500 if quick else None)
    size = sum(len(text.encode()) for text in texts)
    build = ROOT / "build"  # of /tmp there may not be enough
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="laconic-bench-", dir=build) as scratch:
        folder = Path(scratch)
        copies = 1 if quick else max(1, round(gigabytes * 1e9 / size))
        with (folder / "texts.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["text"], *([text] for text in texts)])
        shards = folder / "corpus"
        shards.mkdir()
        first = shards / "part-00000.parquet"
        alone("alone_command", "compress", folder / "texts.csv", "-o", first, "--text", "text")
        for copy in range(1, copies):
            os.link(first, shards / f"part-{copy:05}.parquet")
        row: Figures = {"text_bytes": copies * size, "documents": copies * len(texts)}
        row["corpus_bytes"] = sum(path.stat().st_size for path in shards.iterdir())
        words = ["--ngram-range", "1", "3", "--n-features", "1048576", "--dtype", "float32"]
        told = alone("alone_command", "features", shards, "-o", folder / "m.npz", *words)
        row |= {"words": " ".join(words), "matrix_bytes": (folder / "m.npz").stat().st_size, **told}
    print("memory", json.dumps(row), flush=True)
    return row


def main() -> None:
    """Run the parts and write the figures."""
    parser = options(__doc__)
    parts = ("speed", "repeats", "accuracy", "memory")
    parser.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    parser.add_argument("--gigabytes", type=float, default=1.0, help="of text, for memory")
    given = parser.parse_args()
    about = describe()
    out = output(given, about, "ngrams-{machine_name}-{date}.json")
    kept = json.loads(out.read_text())["ngrams"] if out.exists() else {}
    for part in given.parts:
        if part == "speed":
            kept[part] = speed(given.quick)
        elif part == "repeats":
            kept[part] = repeats(given.quick)
        elif part == "accuracy":
            kept[part] = kept.get(part, {}) | accuracy(given.quick, given.sets)
        else:
            kept[part] = memory(given.quick, given.gigabytes)
        kept.setdefault("runs", {})[part] = {key: about[key] for key in ("command", "commit")}
        keep(out, {"about": about, "ngrams": kept})
    print(f"\nFigures in {out}")


if __name__ == "__main__":
    main()
