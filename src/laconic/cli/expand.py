"""laconic expand: a corpus back to documents."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from laconic.show import how_many

__all__ = ["expand"]


def expand(
    corpus: Path,
    /,
    *,
    out: Annotated[Path, Parameter(name=["--out", "-o"])],
    force: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Write the documents of a corpus back to a file, in the layout they came in.

    laconic expand reviews.parquet -o back.csv

    A lossless alphabet (bytes, dna) gives the input back byte for byte if it was written in one
    style throughout; another suffix, such as .jsonl or .csv.gz, chooses another format.

    Parameters
    ----------
    corpus
        A Parquet file, or a folder of shards.
    out
        The file to write, or the folder for documents that were files; it appears when whole.
    force
        Replace what is there.

    """
    from laconic.corpus import Corpus
    from laconic.formats.registry import format_named
    from laconic.formats.writing import layout_for, write

    opened = Corpus.open(corpus)
    if out.resolve() == corpus.resolve() or out.resolve() in corpus.resolve().parents:
        raise FileExistsError(f"{out} is, or holds, the corpus itself: choose another name")
    if out.is_dir():
        raise FileExistsError(f"{out} is a folder: choose another name, or remove it yourself")
    if out.exists() and not force:
        raise FileExistsError(f"{out} exists: choose another name, or use --force")
    if not opened.alphabet.lossless:
        print(
            f"laconic: {opened.alphabet!r} is not lossless: texts are as a model sees them",
            file=sys.stderr,
        )
    layout = layout_for(out, opened.layout)
    as_text = format_named(layout["format"]).typed
    count = write(opened.documents(as_text), layout, out)
    print(f"{out}: {how_many(count, 'document')}")
