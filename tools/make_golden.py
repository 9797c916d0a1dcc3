#!/usr/bin/env python3
"""Write tests/golden/NAME: small files of every kind as this version of Laconic writes them.

    python tools/make_golden.py v3

Whatever was once written stays readable: tests/test_golden.py reads each of these folders, and
compares what comes out with what came out then. So a folder is made once, by the version whose name
it has, and never again; a new one is due when the version of a format goes up. It takes commands
only, whose flags stay, so that it runs older versions, too (PYTHONPATH). The same weights come out
each time; dates and machines are left out.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import laconic

GOLDEN = Path(__file__).resolve().parent.parent / "tests/golden"
# All hashes are in use: of n-grams and phrases in columns, of n-grams in their places, of symbols.
TRAIN = """
--preset fast --model both --embedding-size 8 --width 8 --identity-buckets 32 --local-ngrams 3
--local-buckets 256 --local-size 4 --ngrams 3 --phrases 2 --ngram-buckets 256 --epochs 4
--batch-size 8 --learning-rate 0.02 --holdout 0.25 --seed 7 --device cpu --json
"""
FEATURES = "--text text --ngram-range 1 3 --max-features 250"


def documents() -> list[dict[str, str]]:
    """Return some texts of two classes, and some that are hard to read."""
    sample = laconic.samples.load("kjv").train
    pairs = zip(sample.documents, sample.labels, strict=True)
    chosen = [(text[:150], label) for text, label in pairs if label in ("law", "gospels")][:26]
    hard = [("x", "gospels"), ("né à\tNîmes, \U0001f600\n\n", "law")]
    return [{"text": str(text), "label": str(label)} for text, label in [*chosen, *hard]]


def run(folder: Path, command: str) -> None:
    """Run a command of Laconic in a folder."""
    words = [sys.executable, "-m", "laconic", *command.split()]
    subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def make(folder: Path) -> None:
    """Write everything to a new folder."""
    folder.mkdir(parents=True)
    lines = [json.dumps(each) + "\n" for each in documents()]
    (folder / "documents.jsonl").write_text("".join(lines))
    for name, options in (("plain", ""), ("compact", "--compact")):
        out = f"{name}.parquet --text text --label label {options}"
        run(folder, f"compress documents.jsonl -o {out}")
    run(folder, "rulebook documents.jsonl -o book.json --text text --rules 60")
    run(
        folder,
        "compress documents.jsonl -o shared.parquet --text text --label label --rulebook book.json",
    )
    grammars = laconic.Corpus.open(folder / "plain.parquet").grammars
    told = [[each.rules.tolist(), each.sequence.tolist()] for each in grammars]
    (folder / "grammars.json").write_text(json.dumps(told, separators=(",", ":")) + "\n")
    run(folder, f"train shared.parquet -o run {TRAIN}")
    run(folder, "predict run documents.jsonl --text text -o predictions.jsonl")
    run(folder, f"features documents.jsonl -o matrix.npz --compress {FEATURES}")
    # Of what nobody reads again, or only while it trains, a little will do.
    (folder / "run/report.html").unlink()
    for path in sorted(folder.glob("run/checkpoints/*"))[:-1]:
        shutil.rmtree(path)
    for path in folder.glob("run/checkpoints/*/*.safetensors"):
        path.unlink()
    about = json.loads((folder / "run/about.json").read_text())
    about |= {"date": "", "machine": ""}
    (folder / "run/about.json").write_text(json.dumps(about, indent=2) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    place = GOLDEN / sys.argv[1]
    if place.exists():
        sys.exit(f"{place} exists: what was written once is read as it is; choose another name")
    make(place)
