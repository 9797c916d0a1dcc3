"""The explorer: documents and their grammars to look at, in a local browser or on one page."""
