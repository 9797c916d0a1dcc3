"""N-grams of documents, counted on their grammars: exactly, hashed to columns, or in place."""

from collections.abc import Mapping
from types import MappingProxyType

from laconic import _core
from laconic._core import Counts
from laconic.ngrams.counts import (
    LONGEST,
    Choice,
    Vocabulary,
    as_vocabulary,
    count_all,
    count_hashed,
    count_known,
    count_phrases,
    learn,
)
from laconic.ngrams.spelling import Letters, letters_of

__all__ = [
    "HASHES",
    "LONGEST",
    "Choice",
    "Counts",
    "Letters",
    "Vocabulary",
    "as_vocabulary",
    "count_all",
    "count_hashed",
    "count_known",
    "count_phrases",
    "learn",
    "letters_of",
]

HASHES: Mapping[str, str] = MappingProxyType(_core.HASHES)
"""The name and version of each hash: of n-grams and phrases in columns (laconic.ngrams.hashed), of
n-grams in their places, and of what a node stands for (the identity of Forest.hashes).

Files that rest on a hash name it: what it gives for a text changes only with its version.
"""
