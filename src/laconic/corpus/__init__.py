"""Corpora: many grammars with their labels and other columns, in memory or in Parquet files."""

from laconic.corpus.corpus import Corpus
from laconic.corpus.schema import CorpusError

__all__ = ["Corpus", "CorpusError"]
