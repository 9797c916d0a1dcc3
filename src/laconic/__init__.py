"""Laconic learns directly from grammar-compressed text; so far it has the compressor.

>>> import laconic
>>> grammar = laconic.compress("aababcababcabcd", codec="repair", min_count=3)
>>> grammar
<Grammar: 15 terminals as a sequence of 7 symbols and 2 rules>
>>> grammar.text()
'aababcababcabcd'
"""

from laconic import samples
from laconic.alphabet import Alphabet, AlphabetError
from laconic.codecs import Codec, compress, compress_many
from laconic.grammar import Grammar, GrammarError, Grammars

__all__ = [
    "Alphabet",
    "AlphabetError",
    "Codec",
    "Grammar",
    "GrammarError",
    "Grammars",
    "compress",
    "compress_many",
    "samples",
]
__version__ = "0.1.0.dev0"
