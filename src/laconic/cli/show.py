"""laconic show: one document's grammar."""

from __future__ import annotations

from laconic.cli.flags import CorpusPath, Switch


def show(
    corpus: CorpusPath,
    document: int,
    /,
    *,
    rows: int = 20,
    tree: Switch = False,
) -> None:
    """Print one document's rules, what they stand for and how often they are used.

    laconic show reviews.parquet 17

    laconic show reviews.parquet 17 --tree

    Parameters
    ----------
    document
        Its number, from 0; -1 is the last.
    rows
        How many rules, or symbols of the sequence, to print.
    tree
        Print the sequence as trees instead, each rule in full where it comes first.

    """
    from laconic.corpus import Corpus
    from laconic.show import print_tree

    opened = Corpus.open(corpus)
    grammar = opened[document]
    if tree:
        print_tree(grammar, opened.alphabet, rows)
    else:
        grammar.show(opened.alphabet, rows)
