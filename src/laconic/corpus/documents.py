"""What scikit-learn calls X: documents in any container, as what can be compressed or read."""
# ruff: noqa: N803  -- X is scikit-learn's name

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any, TypeAlias

from laconic.alphabet import BYTES_LIKE, Document
from laconic.arrays import is_missing
from laconic.corpus import Corpus
from laconic.errors import InputError
from laconic.grammar import Grammar, Grammars

DocumentSource: TypeAlias = Corpus | Grammars | Iterable[Document] | Iterable[Grammar]
"""Documents in any container; an Arrow array or a pandas Series of texts is an iterable, too."""


def documents_of(X: DocumentSource, first: int = 0) -> Corpus | Grammars | list[Any]:
    """Return documents as what can be compressed or read: a list, array or Series of str or bytes.

    A Corpus or Grammars stay what they are. Raises TypeError or ValueError with the cure for
    anything else; errors number documents from `first`.
    """
    if isinstance(X, Corpus | Grammars):
        return X
    if isinstance(X, (str, *BYTES_LIKE)):
        raise TypeError(f"X is one {type(X).__name__}; pass a list of documents, [document]")
    dimensions = getattr(X, "ndim", 1)
    if dimensions != 1:
        raise InputError(
            f"Expected documents in one dimension, got {dimensions}: shape "
            f"{list(getattr(X, 'shape', ()))}; "
            "pass one text for each document, such as one column, X[:, 0] or frame['text']"
        )
    if isinstance(X, Mapping | Set) or not isinstance(X, Iterable):
        raise TypeError(f"X must be a list of documents, not {type(X).__name__}")
    documents = list(X.to_pylist() if hasattr(X, "to_pylist") else X)
    wanted = Grammar if documents and isinstance(documents[0], Grammar) else (str, *BYTES_LIKE)
    for number, document in enumerate(documents, first):
        if isinstance(document, wanted):
            continue
        if is_missing(document):
            cure = "leave it out, or pass an empty text"
            raise InputError(f"document {number} is missing; {cure}")
        kind = type(document).__name__
        raise TypeError(f"document {number} must be str or bytes, like the others, not {kind}")
    return Grammars.concatenate(documents) if wanted is Grammar else documents
