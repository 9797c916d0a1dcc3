"""Data sets as corpora: compressed once for each codec, kept in a folder, read by every row."""

from __future__ import annotations

import time
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from pyarrow.parquet import ParquetFile

from benchmarks.data import DATASETS, Splits, load
from experiments.paper.grid import shared_rules
from laconic import Alphabet, Corpus, Rulebook
from laconic.files import locked
from laconic.samples import Split

__all__ = ["CACHE", "corpora", "documents", "statistics", "symbols", "training_corpus"]

CACHE = Path("build") / "paper" / "corpora"
_FIRST = 0x4E00  # tokens become characters from here on, all of them letters of one plane
_TOKENS = 20_000


def documents(dataset: str, longest: int | None = None, few: int | None = None) -> Splits:
    """Return train and test, cut at `longest` letters; of train `few` documents, at random."""
    train, test = load(dataset)
    if few is not None:
        rows = np.sort(np.random.default_rng(few).permutation(len(train))[:few]).tolist()
        train = Split([train.documents[k] for k in rows], [train.labels[k] for k in rows])
    if longest is None:
        return train, test
    return _cut(train, longest), _cut(test, longest)


def corpora(
    dataset: str,
    codec: str,
    longest: int | None = None,
    cache: Path = CACHE,
    vocabulary: int = 4_000,
    few: int | None = None,
) -> tuple[Corpus, Corpus]:
    """Return train and test as corpora; they are compressed when they are asked for first.

    Codec "bpe" is none over tokens that byte pairs of the training documents give: `vocabulary` of
    them. It needs the package tokenizers. Codecs such as "repair+4096" are over a rulebook
    (grid.Method), learned from the training documents, `few` or all. Raises DataError as data.load
    does.
    """
    train, test = _made(dataset, codec, longest, cache, vocabulary, few)
    return _opened(train), _opened(test)


def training_corpus(
    dataset: str,
    codec: str,
    longest: int | None = None,
    cache: Path = CACHE,
    vocabulary: int = 4_000,
    few: int | None = None,
) -> Corpus:
    """Return train as corpora does, for whoever must not see the test."""
    return _opened(_made(dataset, codec, longest, cache, vocabulary, few)[0])


def symbols(
    dataset: str,
    codec: str,
    longest: int | None = None,
    cache: Path = CACHE,
    vocabulary: int = 4_000,
    few: int | None = None,
) -> int:
    """Return the symbols of all training documents' sequences; of what is compressed, in O(1)."""
    path, _ = _made(dataset, codec, longest, cache, vocabulary, few)
    # The footer knows how many values a column has.
    about = ParquetFile(path).metadata
    groups = map(about.row_group, range(about.num_row_groups))
    columns = (group.column(i) for group in groups for i in range(group.num_columns))
    return sum(c.num_values for c in columns if c.path_in_schema.split(".")[0] == "sequence")


def _made(
    dataset: str,
    codec: str,
    longest: int | None,
    cache: Path,
    vocabulary: int,
    few: int | None = None,
) -> tuple[Path, Path]:
    """Return where train and test are, after compressing them if they are not there yet."""
    paths = _paths(dataset, codec, longest, cache, vocabulary, few)
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    with locked(paths[0].parent / "corpora", wait=True):  # another process may be making them
        if not all(path.exists() for path in paths):
            made = _compressed(dataset, codec, longest, vocabulary, few)
            for corpus, path in zip(made, paths, strict=True):
                corpus.write(path)
    return paths


def _paths(
    dataset: str, codec: str, longest: int | None, cache: Path, vocabulary: int, few: int | None
) -> tuple[Path, Path]:
    name = codec + (f"-{vocabulary}" if codec == "bpe" else "")
    part = (f"-{longest}" if longest else "") + (f"-few-{few}" if few else "")
    folder = cache / (dataset + part) / name
    return folder / "train.parquet", folder / "test.parquet"


@lru_cache(maxsize=8)
def _opened(path: Path) -> Corpus:
    """Return a corpus that keeps its grammars: rows of one set follow each other."""
    return Corpus.open(path)


def statistics(dataset: str, codec: str, cache: Path = CACHE) -> dict[str, Any]:
    """Return lengths and rules of all documents of a set, as in the paper's Table 1.

    Means and largest: `letters` n, `sequence` n', `rules`; `distinct` letters of a document, mean;
    `seconds` that compressing took, on all processors, if it had to be done.
    """
    began = time.perf_counter()
    parts = corpora(dataset, codec, cache=cache)
    seconds = time.perf_counter() - began
    grammars = [part.grammars for part in parts]
    found: dict[str, Any] = {"documents": sum(map(len, grammars)), "seconds": seconds}
    counts = {
        "letters": [each.expanded_lengths for each in grammars],
        "sequence": [np.diff(each.sequence_offsets) for each in grammars],
        "rules": [np.diff(each.rule_offsets) for each in grammars],
    }
    for name, values in counts.items():
        joined = np.concatenate(values)
        found[name] = {"mean": float(joined.mean()), "max": int(joined.max())}
    if codec == "none":
        kinds = [len(np.unique(g.sequence)) for each in grammars for g in each]
        found["distinct"] = float(np.mean(kinds))
    return found


def _cut(part: Split, longest: int) -> Split:
    return Split([text[:longest] for text in part.documents], part.labels)


def _compressed(
    dataset: str, codec: str, longest: int | None, vocabulary: int, few: int | None
) -> tuple[Corpus, Corpus]:
    train, test = documents(dataset, longest, few)
    alphabet = Alphabet.named(DATASETS[dataset].alphabet)
    if codec == "bpe":
        train, test, alphabet = _tokens(train, test, alphabet, vocabulary)
        codec = "none"
    name, rules, boundary = shared_rules(codec)
    book = None
    if rules != 0:
        book = Rulebook.learn(train.documents, rules, alphabet=alphabet, boundary=boundary)
    if book is not None and codec.endswith("_letters"):
        train, test = _parsed(train, book), _parsed(test, book)
        book, alphabet = None, Alphabet.learn(train.documents)
    one, two = (
        Corpus.from_documents(part.documents, part.labels, name, alphabet, book)
        for part in (train, test)
    )
    return one, two


def _parsed(part: Split, book: Rulebook) -> Split:
    """Return documents whose characters are a rulebook's symbols."""
    symbols, offsets = book.parse(part.documents)
    each = np.split(symbols, offsets[1:-1])
    return Split([_as_text(some.tolist()) for some in each], part.labels)


def _tokens(
    train: Split, test: Split, alphabet: Alphabet, vocabulary: int
) -> tuple[Split, Split, Alphabet]:
    """Return documents whose characters are tokens, and their alphabet."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    if not 0 < vocabulary <= _TOKENS:
        raise ValueError(f"bpe_vocabulary must be from 1 to {_TOKENS}, not {vocabulary}")
    tokenizer = Tokenizer(models.BPE(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary, special_tokens=["?"], show_progress=False, max_token_length=16
    )

    def plain(part: Split) -> list[str]:
        # They see what the other methods see: the alphabet's letters.
        return [alphabet.decode(alphabet.encode(text)) for text in part.documents]

    texts = plain(train), plain(test)
    tokenizer.train_from_iterator(texts[0], trainer)
    coded = [[_as_text(each.ids) for each in tokenizer.encode_batch(some)] for some in texts]
    made = [Split(t, part.labels) for t, part in zip(coded, (train, test), strict=True)]
    return made[0], made[1], Alphabet.learn(coded[0])


def _as_text(symbols: Iterable[int]) -> str:
    """Return a letter for each symbol."""
    return "".join(chr(_FIRST + symbol) for symbol in symbols)
