"""Grammars: the rules and the remaining sequence of one document, or of many."""

from laconic.grammar.grammar import Grammar, trusted_grammar
from laconic.grammar.grammars import Grammars, grammars_of, trusted_grammars

__all__ = ["Grammar", "Grammars", "grammars_of", "trusted_grammar", "trusted_grammars"]
