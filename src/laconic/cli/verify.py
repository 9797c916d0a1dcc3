"""laconic verify: whether every document of a corpus is sound."""

from __future__ import annotations

import json
import sys

from laconic.cli.flags import CorpusPath, Json
from laconic.show import how_many


def verify(corpus: CorpusPath, /, *, as_json: Json = False) -> None:
    """Check every row of a corpus, and name those that are damaged; exit status 1 if any is.

    laconic verify reviews.parquet

    Checksums of all pages, metadata, every rule and symbol, and the lengths. Nothing is expanded.

    """
    from laconic.corpus import Corpus

    opened = Corpus.open(corpus)
    problems = list(opened.problems())
    if as_json:
        found = {"documents": len(opened), "sound": not problems, "problems": problems}
        print(json.dumps(found))
    else:
        for problem in problems:
            print(problem)
        bad = how_many(len(problems), "problem") if problems else "all sound"
        print(f"{corpus}: {how_many(len(opened), 'document')}, {bad}")
    if problems:
        sys.exit(1)
