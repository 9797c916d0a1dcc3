"""Compare rulebooks, and vectors of shared symbols, on held-out parts of training sets.

    python -m experiments.shared_symbols --sets H3 kjv --codecs repair repair+256_across
    python -m experiments.shared_symbols --sets kjv --codecs repair+4096 --set residual_dropout=0.5

No test is looked at: the accuracy is that of the documents that training held out. Each trial adds
a line of JSON to `--out`, with its settings, seed, machine and every epoch's accuracy.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.data import DATASETS
from experiments.paper.corpora import CACHE, corpora
from experiments.paper.results import Figures, about
from laconic.training.loop import train
from laconic.training.settings import TrainingConfig, resolve


def main() -> None:
    """Train once for each data set and codec, and say what the held-out documents say."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", nargs="+", required=True, choices=sorted(DATASETS))
    parser.add_argument("--codecs", nargs="+", default=["repair", "repair+4096"])
    parser.add_argument("--set", nargs="+", default=[], metavar="NAME=JSON", dest="settings")
    parser.add_argument("--longest", type=int, help="cut documents at so many letters")
    parser.add_argument("--out", type=Path, default=Path("build/shared_symbols.jsonl"))
    given = parser.parse_args()
    pairs = (each.partition("=") for each in given.settings)
    config = resolve(None, {name: json.loads(value) for name, _, value in pairs})
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for dataset in given.sets:
        for codec in given.codecs:
            figures = trial(dataset, codec, config, given.longest)
            with given.out.open("a") as file:
                print(json.dumps(figures), file=file)
            best = 100 * max(figures["held_out"])
            print(f"{dataset} {codec}: {best:.2f} % of held-out documents, {given.out}")


def trial(
    dataset: str,
    codec: str,
    config: TrainingConfig,
    longest: int | None = None,
    cache: Path = CACHE,
) -> Figures:
    """Return what one training came to; `codec` as in the names of experiments.paper's methods."""
    source, _ = corpora(dataset, codec, longest, cache)
    trained = train(source, config)
    grammars = source.grammars
    epochs = [line for line in trained.history if "epoch" in line]
    return {
        "dataset": dataset,
        "codec": codec,
        "about": about(),
        "config": config.to_json(),
        "held_out": [line["valid"]["accuracy"] for line in epochs],
        "losses": [line["valid"]["loss"] for line in epochs],
        "symbols": len(grammars.sequence) / len(grammars),
        "vectors": trained.model.config.residual_rows,
        "seconds": trained.seconds,
    }


if __name__ == "__main__":
    main()
