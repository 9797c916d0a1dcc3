"""N-grams of documents, counted on their grammars: exactly, hashed to columns, or in place."""

from laconic.ngrams.counts import (
    LONGEST,
    Counts,
    Vocabulary,
    as_vocabulary,
    count_all,
    count_hashed,
    count_known,
    count_phrases,
    learn,
)
from laconic.ngrams.spelling import Letters, letters

__all__ = [
    "LONGEST",
    "Counts",
    "Letters",
    "Vocabulary",
    "as_vocabulary",
    "count_all",
    "count_hashed",
    "count_known",
    "count_phrases",
    "learn",
    "letters",
]
