"""laconic features: the n-grams of documents as a sparse matrix."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from laconic.cli.flags import Force, InputPaths, Json, Out, Reading, Switch
from laconic.cli.inputs import open_inputs
from laconic.cli.progress import InputProgress
from laconic.codecs import CodecName
from laconic.errors import InputError
from laconic.files import check_output, spare_inputs, whole
from laconic.show import how_many

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from laconic.corpus.inputs import Inputs
    from laconic.features.matrix_file import Written
    from laconic.features.vectorizer import GrammarVectorizer


def features(
    inputs: InputPaths,
    /,
    *,
    out: Out,
    like: Path | None = None,
    ngram_range: Annotated[tuple[int, int], Parameter(negative="")] = (1, 5),
    n_features: int | None = None,
    max_features: int | None = None,
    min_df: str = "1",
    max_df: str = "1.0",
    use_idf: bool | None = None,
    sublinear_tf: Switch = False,
    binary: Switch = False,
    norm: Literal["l2", "l1", "none"] = "l2",
    lowercase: bool = True,
    collapse_whitespace: bool = True,
    reverse_complement: Switch = False,
    alternate_sign: bool = True,
    dtype: Literal["float64", "float32"] | None = None,
    compress: Switch = False,
    reading: Reading = None,
    codec: CodecName = "lzd",
    alphabet: str | None = None,
    threads: int | None = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write the n-grams of documents, TF-IDF or counts, as a sparse matrix for scipy.

    laconic features reviews.parquet -o reviews.npz --max-features 200000

    laconic features new.csv -o new.npz --text text --like reviews.features.json

    laconic features dna.fa.gz -o dna.npz --ngram-range 3 6 --reverse-complement --n-features 65536

    Row k is document k; scipy.sparse.load_npz reads the file. What the columns are is written
    beside it, here reviews.features.json, for --like; with --n-features there is nothing to write,
    and memory stays bounded however large the input. Columns are learned from a corpus some
    documents at a time, but raw files are held for that: compress them first if they are large.

    Parameters
    ----------
    out
        The matrix, an .npz file, which appears when it is whole.
    like
        A .features.json: the same columns and weights as there; all settings are from it, and
        others are refused.
    ngram_range
        The shortest and the longest n-grams.
    n_features
        Hash n-grams to this many columns; nothing is learned.
    max_features
        Keep the n-grams that occur most often, this many.
    min_df
        Keep n-grams in at least so many documents: a number, or a share with a point, as 0.01.
    max_df
        Keep n-grams in at most so many documents.
    use_idf
        Weigh with the inverse document frequency; by default unless hashed.
    sublinear_tf
        1 + log(count) instead of counts.
    binary
        1 instead of counts.
    norm
        What makes rows alike in length; counts are what --no-use-idf --norm none gives.
    lowercase
        Lower-case the text.
    collapse_whitespace
        Read two or more white spaces as one blank.
    reverse_complement
        Of DNA, an n-gram and its reverse complement are one.
    alternate_sign
        Let hashed n-grams that share a column cancel out rather than add up.
    dtype
        Of the entries; by default float64, or int64 for counts.
    compress
        A smaller file, which takes longer to write and to read.
    codec
        What raw documents are compressed with; it changes the time, never the matrix.
    alphabet
        Read raw documents through bytes, zhang, dna or dna_n; by default as the text they are.
    threads
        By default one per processor.

    """
    settings: dict[str, Any] = {
        "ngram_range": ngram_range,
        "n_features": n_features,
        "max_features": max_features,
        "use_idf": use_idf,
        "sublinear_tf": sublinear_tf,
        "binary": binary,
        "norm": None if norm == "none" else norm,
        "lowercase": lowercase,
        "collapse_whitespace": collapse_whitespace,
        "reverse_complement": reverse_complement,
        "alternate_sign": alternate_sign,
        "dtype": dtype,
        "codec": codec,
        "alphabet": alphabet,
    }
    settings |= {"min_df": _share("min-df", min_df), "max_df": _share("max-df", max_df)}
    names = _checked_out(out, force, n_features is None and like is None)
    vectorizer = _vectorizer(like, settings, threads)
    opened = open_inputs(inputs, reading)
    spare_inputs(out, opened.files)
    from sklearn.utils import get_tags

    from laconic.features.matrix_file import write_matrix
    from laconic.features.vectorizer_file import save_vectorizer

    started = time.perf_counter()
    learns = like is None and get_tags(vectorizer).requires_fit
    held = _fit(vectorizer, opened) if learns else None
    empty = vectorizer.transform([])
    kind = empty.shape[1], empty.dtype
    with InputProgress(opened) as progress:
        blocks = progress.watch(_blocks(vectorizer, opened, held))
        if names is None:
            written = write_matrix(blocks, *kind, out, compress, force)
        else:
            with whole(names, force) as temporary:
                save_vectorizer(vectorizer, temporary)
                written = write_matrix(blocks, *kind, out, compress, force)
    _report(out, names, written, time.perf_counter() - started, as_json)


def _share(name: str, value: str) -> float:
    try:
        return float(value) if "." in value or "e" in value else int(value)
    except ValueError:
        raise InputError(f"--{name} must be a number, or a share such as 0.5: {value!r}") from None


def _checked_out(out: Path, force: bool, named: bool) -> Path | None:
    """Return where the names of the columns go, if they go anywhere."""
    if out.suffix != ".npz":
        raise InputError(f"-o {out}: a matrix is an .npz file")
    names = out.with_suffix(".features.json") if named else None
    for path in filter(None, (out, names)):
        check_output(path, force=force)
    return names


def _vectorizer(
    like: Path | None, settings: dict[str, Any], threads: int | None
) -> GrammarVectorizer:
    from laconic.features.vectorizer import GrammarVectorizer
    from laconic.features.vectorizer_file import load_vectorizer

    if like is None:
        return GrammarVectorizer(**settings, threads=threads)
    defaults = GrammarVectorizer().get_params()
    # By spelling: as max_df, 1 is one document and 1.0 is all of them.
    given = [name for name, value in settings.items() if repr(value) != repr(defaults[name])]
    if given:
        flags = ", ".join(_flag(name, settings[name]) for name in given)
        raise InputError(
            f"{flags}: with --like all settings are from {like}; leave one or the other out"
        )
    return load_vectorizer(like, threads)


def _flag(name: str, value: object) -> str:
    return f"--{'no-' if value is False else ''}{name.replace('_', '-')}"


def _fit(vectorizer: GrammarVectorizer, opened: Inputs) -> list[Any] | None:
    """Learn the columns; return raw documents, which are all held for that."""
    from laconic.alphabet import AlphabetError
    from laconic.formats import at_its_row

    if opened.corpus is not None:
        vectorizer.fit(opened.corpus)
        return None
    documents: list[Any] = []
    files: list[str] = []
    rows: list[int] = []
    for part in opened.parts():
        documents += part.documents
        files += part.files
        rows += part.rows
    try:
        vectorizer.fit(documents)
    except AlphabetError as error:
        raise at_its_row(error, files, rows) from None
    return documents


def _blocks(
    vectorizer: GrammarVectorizer, opened: Inputs, held: list[Any] | None
) -> Iterator[csr_matrix]:
    """Yield the matrix, some rows at a time."""
    from laconic.alphabet import AlphabetError

    whole = opened.corpus if held is None else held
    if whole is not None:
        yield from vectorizer.transform_batches(whole)
        return
    for part in opened.parts():
        try:
            yield from vectorizer.transform_batches(part.documents)
        except AlphabetError as error:
            raise part.located(error) from None


def _report(out: Path, names: Path | None, written: Written, seconds: float, as_json: bool) -> None:
    if as_json:
        beside = None if names is None else str(names)
        fields = {"out": str(out), "features": beside, **written._asdict(), "seconds": seconds}
        print(json.dumps(fields))
        return
    shape = f"{how_many(written.rows, 'document')} × {how_many(written.columns, 'column')}"
    print(f"{out}: {shape}, {written.entries:,} entries, {seconds:.1f} s")
    if names is not None:
        print(f"  {names} says what the columns are; --like gives the same to other documents")
