"""laconic compress: any files to a corpus."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from laconic.alphabet import Alphabet
from laconic.cli.flags import Force, Json, Out, Reading, Switch
from laconic.cli.inputs import ReadingFlags, column, naming_the_flag
from laconic.cli.interrupt import resumable
from laconic.cli.progress import InputProgress
from laconic.codecs import Codec, CodecName, alphabet_of
from laconic.errors import InputError
from laconic.files import local_path
from laconic.rulebook import Rulebook
from laconic.show import how_many

if TYPE_CHECKING:
    from laconic.corpus.inputs import Inputs
    from laconic.engines.shards import Tally
    from laconic.formats.stores import Place


def compress(
    inputs: Annotated[list[str], Parameter(negative="")],
    /,
    *,
    out: Out,
    reading: Reading = None,
    label: str | None = None,
    codec: CodecName | None = None,
    min_count: int = 2,
    max_rules: int | None = None,
    max_expansion: int | None = None,
    letters: Literal["known", "seen"] = "known",
    deflate_level: int = 6,
    compressed: Switch = False,
    alphabet: str | None = None,
    rulebook: str | None = None,
    engine: Literal["local", "ray", "spark"] = "local",
    workers: int | None = None,
    on_error: Literal["stop", "skip"] = "stop",
    resume: Switch = False,
    force: Force = False,
    level: int = 3,
    compact: Switch = False,
    shard: int = 64,
    as_json: Json = False,
) -> None:
    r"""Compress documents into a corpus: a Parquet file of grammars, or a folder of them.

    laconic compress reviews.csv -o reviews.parquet --text text --label stars

    laconic compress 'genomes/*.fa.gz' -o genomes/ --codec lzd --alphabet dna

    laconic compress test.csv.xz -o test.parquet --no-header --text 1 --label 0 --escapes

    laconic compress new.csv -o new.parquet --rulebook reviews.parquet

    laconic compress pages.warc.gz -o pages.parquet

    Files of any --format are read, plain or as .gz, .bz2, .xz or .zst: "lines" of a .txt file are a
    document each, and so are "files" of a folder, in a subfolder per label or none. The other
    columns come along as they are. What cannot be read stops the work, with file and row.

    Parameters
    ----------
    inputs
        Files, globs, folders or URLs.
    out
        A .parquet file, or else a folder of shards, here or in S3 (s3://bucket/name). It appears
        when it is whole.
    label
        The column of the labels, by name or by position from 0.
    codec
        How grammars are made; by default repair, and deflate of what lies compressed: of .zip,
        .warc and .warc.gz files, or if --compressed says so.
    min_count
        Re-Pair replaces pairs that occur this often; 3 is the paper's stated stopping rule.
    max_rules
        Re-Pair makes at most this many rules per document.
    max_expansion
        No rule of Re-Pair stands for more letters than this.
    letters
        LZD knows all letters from the start, or once they have been seen.
    deflate_level
        From 0 to 9, of text that deflate compresses.
    compressed
        Documents lie compressed by gzip or zlib, and are not inflated: files of a folder, or values
        of a column of a Parquet file.
    alphabet
        bytes, zhang, dna, dna_n, learn (the characters of the input), or a .json file of one. By
        default the rulebook's, or bytes.
    rulebook
        Rules that documents share, below those of their own: auto, or a number of them, learns them
        from this input; a .json file of `laconic rulebook`, or a corpus, has them already.
    engine
        Where to compress: threads here, a Ray cluster, or Spark.
    workers
        How many at a time; by default as many as there are processors.
    on_error
        skip: leave bad rows out, and write them with the reasons to OUT.rejects.jsonl.
    resume
        Go on with what was interrupted.
    level
        Of zstd, 1 to 22: higher is smaller and slower.
    compact
        Make Re-Pair's grammars smaller than gzip makes the text; then only Laconic reads them.
    shard
        Megabytes of text in a shard: at most this is done again, by each worker, after an
        interruption.

    """
    from laconic.corpus.inputs import Inputs
    from laconic.corpus.schema import About
    from laconic.corpus.worker import CompressionJob
    from laconic.engines import engine_named
    from laconic.engines.build import build_corpus
    from laconic.engines.shards import NothingToDoError, work_folder
    from laconic.formats import read
    from laconic.formats.compression import split_suffix
    from laconic.formats.registry import formats_by_suffix
    from laconic.formats.stores import place

    if not 1 <= level <= 22:
        raise InputError(f"--level must be from 1 to 22, not {level}")
    if shard < 1:
        raise InputError(f"--shard must be at least 1, not {shard}")
    to = place(out)
    to = local_path(to) if isinstance(to, Path) else to
    sharded = to.suffix != ".parquet" or to.is_dir()
    suffix, packed = split_suffix(to.name)
    if not to.name or packed or suffix in {*formats_by_suffix(), ".json"} - {".parquet"}:
        raise InputError(f"-o {to}: a corpus is a .parquet file, or else a new folder of them")
    options = (reading or ReadingFlags()).options()
    options = replace(options, label=column(label), on_error=on_error, part_bytes=4 << 20)
    zipped = compressed or (None if codec in (None, "deflate") else False)
    options = replace(options, compressed=zipped)
    documents = read(inputs, options)
    opened = Inputs(documents.files, None, documents)
    started = time.perf_counter()
    chosen = None if alphabet is None else _alphabet(alphabet, opened)
    book = None if rulebook is None else _rulebook(rulebook, chosen, opened, on_error)
    name = codec or ("deflate" if documents.compressed else "repair")
    made_by = Codec(name, min_count, max_rules, max_expansion, letters, deflate_level)
    about = About(
        made_by,
        alphabet_of(chosen, book),
        documents.text,
        documents.label,
        documents.layout,
        rulebook=book,
    )
    try:
        with naming_the_flag(), resumable(work_folder(to)), InputProgress(opened) as progress:
            tally, rejects = build_corpus(
                documents,
                to,
                CompressionJob(about, on_error, documents.compressed),
                engine_named(engine, workers),
                sharded=sharded,
                level=level,
                compact=compact,
                resume=resume,
                force=force,
                shard_letters=shard * 1_000_000,
                progress=lambda tally: progress.show(tally.documents),
            )
    except NothingToDoError as done:
        print(done, file=sys.stderr)
        return
    seconds = time.perf_counter() - started
    _report(to, tally, rejects, seconds, as_json)


def _alphabet(name: str, documents: Inputs) -> Alphabet:
    if name == "learn":
        return Alphabet.learn(documents.texts())
    if name.endswith(".json"):
        try:
            return Alphabet.from_json(Path(name).read_text("utf-8"))
        except ValueError as error:
            raise InputError(str(error), file=name) from None
    return Alphabet.named(name)


def _rulebook(told: str, alphabet: Alphabet | None, documents: Inputs, on_error: str) -> Rulebook:
    from laconic.corpus.inputs import rulebook_in

    if told != "auto" and not told.isdecimal():
        return rulebook_in(Path(told))
    alphabet = alphabet or Alphabet.bytes()
    # Bad documents are told, or left out, when they are compressed.
    texts = filter(alphabet.holds, documents.texts()) if on_error == "skip" else documents.texts()
    return Rulebook.learn(texts, None if told == "auto" else int(told), alphabet=alphabet)


def _report(out: Place, tally: Tally, rejects: Place | None, seconds: float, as_json: bool) -> None:
    paths: list[Any] = list(out.glob("*.parquet")) if out.is_dir() else [out]
    size = sum(path.stat().st_size for path in paths)
    if as_json:
        fields = asdict(tally) | {
            "out": str(out),
            "bytes": size,
            "seconds": seconds,
            "rejects": str(rejects) if rejects else None,
        }
        print(json.dumps(fields))
        return
    per_document = size / max(1, tally.documents)
    print(
        f"{out}: {how_many(tally.documents, 'document')}, {tally.letters:,} letters as "
        f"{tally.symbols:,} symbols and {tally.rules:,} rules; {size:,} bytes, "
        f"{per_document:,.0f} per document; {seconds:.1f} s"
    )
    if rejects:
        with rejects.open(encoding="utf-8") as file:
            first = json.loads(file.readline())["reason"]
        print(
            f"{how_many(tally.rejected, 'row')} rejected, the first for: {first}; see {rejects}",
            file=sys.stderr,
        )
