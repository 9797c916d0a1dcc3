"""Laconic learns directly from grammar-compressed text: the compressor, corpora and models.

>>> import laconic
>>> grammar = laconic.compress("aababcababcabcd", codec="repair", min_count=3)
>>> grammar
<Grammar: 15 terminals as a sequence of 7 symbols and 2 rules>
>>> grammar.text()
'aababcababcabcd'
"""

import os
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from laconic import samples
    from laconic.alphabet import Alphabet
    from laconic.codecs import Codec, compress, compress_many, from_gzip
    from laconic.corpus import Corpus, CorpusError
    from laconic.errors import AlphabetError, GrammarError
    from laconic.estimator import GrammarClassifier, GrammarRegressor
    from laconic.features.vectorizer import GrammarVectorizer
    from laconic.grammar import Grammar, Grammars
    from laconic.loading import load
    from laconic.rulebook import Rulebook

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
    "from_gzip",
    "load",
    "samples",
]
__version__ = "0.2.0"


# Threads of PyTorch, if that is not loaded yet, wait for each other by spinning. If other programs
# need the processors, they had better not spin for long: beside them they took five times as long.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")

# What is imported when it is asked for: corpora need pyarrow, estimators torch, vectorizers
# scikit-learn, all else NumPy, which take longer to load than the command line takes to answer.
_HOMES = {
    "alphabet": ("Alphabet",),
    "codecs": ("Codec", "compress", "compress_many", "from_gzip"),
    "corpus": ("Corpus", "CorpusError"),
    "errors": ("AlphabetError", "GrammarError"),
    "estimator": ("GrammarClassifier", "GrammarRegressor"),
    "features.vectorizer": ("GrammarVectorizer",),
    "grammar": ("Grammar", "Grammars"),
    "loading": ("load",),
    "rulebook": ("Rulebook",),
}


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            found = getattr(import_module(f"laconic.{home}"), name)
            globals()[name] = found  # who compresses short documents notices a second look
            return found
    if not name.startswith("__") and find_spec(f"laconic.{name}"):
        return import_module(f"laconic.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
