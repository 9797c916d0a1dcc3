"""laconic expand: a corpus back to documents."""

from __future__ import annotations

import sys

from laconic.cli.flags import CorpusPath, Force, Out
from laconic.files import check_output
from laconic.show import how_many


def expand(
    corpus: CorpusPath,
    /,
    *,
    out: Out,
    force: Force = False,
) -> None:
    """Write the documents of a corpus back to a file, in the layout they came in.

    laconic expand reviews.parquet -o back.csv

    A lossless alphabet (bytes, dna) gives the input back byte for byte if it was written in one
    style throughout; another suffix, such as .jsonl or .csv.gz, chooses another format.

    Parameters
    ----------
    out
        The file to write, or the folder for documents that were files; it appears when whole.

    """
    from laconic.corpus import Corpus
    from laconic.formats.registry import format_named
    from laconic.formats.writing import layout_for, write

    check_output(out, force=force, inputs=[corpus])
    opened = Corpus.open(corpus)
    if not opened.alphabet.lossless:
        print(
            f"laconic: {opened.alphabet!r} is not lossless: texts are as a model sees them",
            file=sys.stderr,
        )
    layout = layout_for(out, opened.layout)
    as_text = format_named(layout["format"]).typed
    count = write(opened.documents(as_text), layout, out, replace=force)
    print(f"{out}: {how_many(count, 'document')}")
