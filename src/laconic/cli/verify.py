"""laconic verify: whether every document of a corpus is sound."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from laconic.show import how_many

__all__ = ["verify"]


def verify(corpus: Path, /, *, json: Annotated[bool, Parameter(negative="")] = False) -> None:
    """Check every row of a corpus, and name those that are damaged; exit status 1 if any is.

    laconic verify reviews.parquet

    Checksums of all pages, metadata, every rule and symbol, and the lengths. Nothing is expanded.

    Parameters
    ----------
    corpus
        A Parquet file, or a folder of shards.
    json
        Print what was found as JSON.

    """
    from laconic.corpus import Corpus

    opened = Corpus.open(corpus)
    problems = list(opened.problems())
    if json:
        _print_json(len(opened), problems)
    else:
        for problem in problems:
            print(problem)
        bad = how_many(len(problems), "problem") if problems else "all sound"
        print(f"{corpus}: {how_many(len(opened), 'document')}, {bad}")
    if problems:
        sys.exit(1)


def _print_json(documents: int, problems: list[str]) -> None:
    print(json.dumps({"documents": documents, "sound": not problems, "problems": problems}))
