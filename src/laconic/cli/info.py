"""laconic info: what is in a corpus."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laconic.cli.flags import CorpusPath, Json
from laconic.errors import InputError, visible

if TYPE_CHECKING:
    from laconic.rulebook import Rulebook

_LONGEST = 64 << 20  # letters of a document that is expanded


def info(
    corpus: CorpusPath,
    /,
    *,
    sample: int = 1000,
    as_json: Json = False,
) -> None:
    """Print what is in a corpus: documents, rules, ratios, depth, size, labels.

    laconic info reviews.parquet

    Parameters
    ----------
    sample
        How many documents to expand to compare sizes with gzip -6 and zstd -3, and
        grammars of deflate with Re-Pair's; 0: all.

    """
    figures = _figures(corpus, sample)
    if as_json:
        print(json.dumps(figures))
    else:
        _print_table(figures)


def _figures(given: Path, sample: int) -> dict[str, Any]:
    import zlib

    import numpy as np
    import pyarrow as pa

    from laconic.codecs import compress
    from laconic.corpus import Corpus
    from laconic.formats.stores import place

    if sample < 0:
        raise InputError(f"--sample must be at least 0, not {sample}")
    path: Any = place(given)
    corpus = Corpus.open(path)
    count = len(corpus)
    rules = symbols = 0
    lengths: list[int] = []
    depths: list[int] = []
    for _, _, grammars in corpus.parts():
        rules += len(grammars.rules)
        symbols += len(grammars.sequence)
        lengths += grammars.expanded_lengths.tolist()
        # Of shared rules, most are other documents'.
        depths += [
            int(grammar.depths.max(initial=0, where=grammar.reachable())) for grammar in grammars
        ]
    paths = list(path.glob("*.parquet")) if path.is_dir() else [path]
    size = sum(each.stat().st_size for each in paths)
    figures: dict[str, Any] = {
        "corpus": str(path),
        "codec": corpus.codec.name,
        "alphabet": repr(corpus.alphabet),
        "rulebook": _shared(corpus.rulebook),
        "documents": count,
        "letters": sum(lengths),
        "symbols": symbols,
        "rules": rules,
        "letters_per_symbol": sum(lengths) / max(1, symbols),
        "mean_depth": float(np.mean(depths)) if depths else 0.0,
        "max_depth": max(depths, default=0),
        "bytes": size,
        "bytes_per_document": size / max(1, count),
        "columns": {name: str(corpus.schema.field(name).type) for name in corpus.columns},
    }
    step = 1 if sample == 0 else max(1, count // sample)
    # What is small only as a grammar is not expanded to be compared.
    if chosen := [row for row in range(0, count, step) if lengths[row] <= _LONGEST]:
        zstd = pa.Codec("zstd", compression_level=3)
        gzip_bytes = zstd_bytes = repair_symbols = repair_rules = 0
        for row in chosen:
            data = corpus[row].to_bytes(corpus.alphabet)
            if corpus.codec.name == "deflate":
                repair = compress(data)
                repair_symbols += len(repair.sequence)
                repair_rules += len(repair.rules)
            # 18 bytes are gzip's header and trailer, 6 zlib's.
            gzip_bytes += len(zlib.compress(data, 6)) + 12
            zstd_bytes += zstd.compress(data).size
        figures["compared_documents"] = len(chosen)
        if corpus.codec.name == "deflate":
            figures["repair_symbols_per_document"] = repair_symbols / len(chosen)
            figures["repair_rules_per_document"] = repair_rules / len(chosen)
        figures["gzip_6_bytes_per_document"] = gzip_bytes / len(chosen)
        figures["zstd_3_bytes_per_document"] = zstd_bytes / len(chosen)
    if corpus.about.label is not None:
        counted = Counter(map(str, corpus.labels))
        figures["labels"] = dict(counted.most_common())
    return figures


def _shared(rulebook: Rulebook | None) -> dict[str, Any] | None:
    if rulebook is None:
        return None
    figures = {"rules": len(rulebook), "within_words": rulebook.within}
    return figures | {"documents": rulebook.documents, "fingerprint": rulebook.fingerprint}


def _print_table(figures: dict[str, Any]) -> None:
    documents = max(1, figures["documents"])
    print(f"{figures['corpus']}: {figures['codec']} over {figures['alphabet']}")
    lines = {
        "documents": f"{figures['documents']:,}",
        "letters": f"{figures['letters']:,} ({figures['letters'] / documents:,.1f} per document)",
        "sequence": f"{figures['symbols']:,} ({figures['symbols'] / documents:,.1f}), "
        f"{figures['letters_per_symbol']:.2f} letters per symbol",
        "rules": f"{figures['rules']:,} ({figures['rules'] / documents:,.1f})",
        "rulebook": "none",
        "depth": f"{figures['mean_depth']:.1f} on average, {figures['max_depth']} at most",
        "size": f"{figures['bytes']:,} bytes, {figures['bytes_per_document']:,.0f} per document",
    }
    if shared := figures["rulebook"]:
        lines["rulebook"] = (
            f"{shared['rules']:,} rules, {shared['within_words']:,} within words, "
            f"of {shared['documents']:,} documents, {shared['fingerprint'][:12]}"
        )
    if "repair_rules_per_document" in figures:
        lines["Re-Pair"] = (
            f"would make sequences of {figures['repair_symbols_per_document']:,.1f} symbols and "
            f"{figures['repair_rules_per_document']:,.1f} rules per document"
        )
    if "compared_documents" in figures:
        lines["against"] = (
            f"gzip -6 {figures['gzip_6_bytes_per_document']:,.0f}, zstd -3 "
            f"{figures['zstd_3_bytes_per_document']:,.0f} per document "
            f"(on {figures['compared_documents']:,})"
        )
    lines["columns"] = ", ".join(f"{n} ({t})" for n, t in figures["columns"].items()) or "none"
    if "labels" in figures:
        shown = list(figures["labels"].items())
        more = f", and {len(shown) - 20} more" if len(shown) > 20 else ""
        lines["labels"] = ", ".join(f"{name}: {n:,}" for name, n in shown[:20]) + more
    for name, value in lines.items():
        print(visible(f"  {name:10} {value}"))
