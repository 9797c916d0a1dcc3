"""The bundled sample of English, read over a rulebook by the preset `fast`: on any laptop.

    python -m experiments.sample_reads     # a minute for each of three seeds

Each seed is `laconic train train.csv -o run --preset fast --model sequence --epochs 6`, then
`laconic evaluate` on the test documents. docs/rulebooks.md shows the result.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.machine import describe
from laconic import samples

RESULTS = Path(__file__).parent / "results" / "sample_reads.json"
FLAGS = ("--preset", "fast", "--model", "sequence", "--epochs", "6", "--device", "cpu")


def main() -> None:
    """Train with each seed, test, and write the figures."""
    sample, seeds = samples.load("kjv"), []
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        for part, split in (("train", sample.train), ("test", sample.test)):
            with (here / f"{part}.csv").open("w", newline="", encoding="utf-8") as file:
                rows = zip(split.documents, split.labels, strict=True)
                csv.writer(file).writerows([("text", "label"), *rows])
        for seed in range(3):
            run, given = here / f"run-{seed}", (*FLAGS, "--seed", str(seed))
            trained = _laconic("train", here / "train.csv", "-o", run, *given)
            tested = _laconic("evaluate", run, here / "test.csv")
            seeds.append(
                {
                    "seed": seed,
                    "accuracy": tested["accuracy"],
                    "macro_f1": tested["macro_f1"],
                    "held_out": trained["valid"]["accuracy"],
                }
            )
            print(seeds[-1], flush=True)
    figures = {"about": describe(gpu=False), "flags": " ".join(FLAGS), "seeds": seeds}
    RESULTS.write_text(json.dumps(figures, indent=1) + "\n", "utf-8")


def _laconic(*words: object) -> dict[str, Any]:
    command = [sys.executable, "-m", "laconic", *map(str, words), "--json"]
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
