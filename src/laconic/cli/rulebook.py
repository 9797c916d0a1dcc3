"""laconic rulebook: rules that the documents of a data set share, learned from some files."""

from __future__ import annotations

from typing import Literal

from laconic.cli.flags import Force, InputPaths, Out, Reading
from laconic.cli.inputs import open_inputs
from laconic.errors import InputError
from laconic.files import check_output
from laconic.show import how_many


def rulebook(
    inputs: InputPaths,
    /,
    *,
    out: Out,
    reading: Reading = None,
    rules: int | None = None,
    alphabet: str | None = None,
    boundary: Literal["phrases", "words", "none"] = "phrases",
    min_documents: int = 2,
    max_expansion: int | None = None,
    sample: int = 256,
    seed: int = 0,
    threads: int | None = None,
    force: Force = False,
) -> None:
    """Learn rules that documents share, so that these and others are compressed under them.

    laconic rulebook train.csv -o book.json

    laconic compress train.csv -o train.parquet --rulebook book.json

    Take documents that train, not those that test. `laconic compress --rulebook auto` learns a
    rulebook on its way, with the defaults of this command.

    Parameters
    ----------
    out
        A .json file. It appears when it is whole.
    rules
        How many, at most; by default 4096, or as many as there are texts of four letters if
        these are fewer: 256 for DNA.
    alphabet
        bytes, zhang, dna or dna_n; by default the corpus's, or bytes.
    boundary
        words: rules stay within words, as those of tokenizers do; none: they may cross them;
        phrases: half of them stay within words, and the others then join these.
    min_documents
        A rule is of a pair that occurs in at least so many documents.
    max_expansion
        No rule stands for more letters than this.
    sample
        Millions of letters to learn from, at most; of more, random documents are taken.
    seed
        Chooses those.
    threads
        How many; by default one per processor. The rules do not depend on it.

    """
    from laconic.rulebook import Rulebook

    if out.suffix != ".json":
        raise InputError(f"-o {out}: a rulebook is a .json file")
    check_output(out, force=force, inputs=inputs)
    opened = open_inputs(inputs, reading)
    book = Rulebook.learn(
        opened.texts(),
        rules,
        alphabet=alphabet or (opened.corpus.alphabet if opened.corpus else "bytes"),
        boundary=boundary,
        min_documents=min_documents,
        max_expansion=max_expansion,
        sample=sample * 1_000_000,
        seed=seed,
        threads=threads,
    )
    book.save(out)
    print(
        f"{out}: {how_many(len(book), 'rule')} from {how_many(book.documents, 'document')}, "
        f"fingerprint {book.fingerprint[:12]}"
    )
