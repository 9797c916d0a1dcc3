"""Laconic learns directly from grammar-compressed text: the compressor, corpora and models.

>>> import laconic
>>> grammar = laconic.compress("aababcababcabcd", codec="repair", min_count=3)
>>> grammar
<Grammar: 15 terminals as a sequence of 7 symbols and 2 rules>
>>> grammar.text()
'aababcababcabcd'
"""

from typing import TYPE_CHECKING, Any

from laconic import samples
from laconic.alphabet import Alphabet
from laconic.codecs import Codec, compress, compress_many
from laconic.errors import AlphabetError, GrammarError
from laconic.grammar import Grammar, Grammars
from laconic.rulebook import Rulebook

if TYPE_CHECKING:
    from laconic.corpus import Corpus, CorpusError
    from laconic.estimator import GrammarClassifier, GrammarRegressor
    from laconic.features.vectorizer import GrammarVectorizer

__all__ = [
    "Alphabet",
    "AlphabetError",
    "Codec",
    "Corpus",
    "CorpusError",
    "Grammar",
    "GrammarClassifier",
    "GrammarError",
    "GrammarRegressor",
    "GrammarVectorizer",
    "Grammars",
    "Rulebook",
    "compress",
    "compress_many",
    "samples",
]
__version__ = "0.1.0.dev0"


def __getattr__(name: str) -> Any:
    # Corpora need pyarrow, estimators torch and vectorizers scikit-learn, which take longer to
    # import than short work takes.
    if name in ("Corpus", "CorpusError"):
        from laconic import corpus

        return getattr(corpus, name)
    if name in ("GrammarClassifier", "GrammarRegressor"):
        from laconic import estimator

        return getattr(estimator, name)
    if name == "GrammarVectorizer":
        from laconic.features.vectorizer import GrammarVectorizer

        return GrammarVectorizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
