"""Fitted vectorizers in JSON files: settings, n-grams, weights; for other documents, later."""

from __future__ import annotations

import json
import math
import os
import sys
from typing import Any

import numpy as np
import numpy.typing as npt

from laconic.alphabet import Alphabet
from laconic.codecs import Codec, as_codec
from laconic.errors import InputError, VersionError
from laconic.features.vectorizer import GrammarVectorizer
from laconic.files import check_version, read_json, write_text
from laconic.ngrams import Vocabulary

_VERSION = 1
_MOST = 1 << 34  # bytes; some hundred million n-grams


def save_vectorizer(vectorizer: GrammarVectorizer, path: str | os.PathLike[str]) -> None:
    """Write a fitted vectorizer as JSON: its settings, and the n-gram and idf of each column.

    The file appears when it is whole. Of a vectorizer that hashes there is nothing to keep but its
    settings: ValueError.
    """
    names = vectorizer.get_feature_names_out().tolist()
    settings = vectorizer.get_params(deep=False)
    del settings["vocabulary"], settings["threads"]
    settings["ngram_range"] = list(map(int, settings["ngram_range"]))
    settings["codec"] = as_codec(vectorizer.codec, {}).to_dict()
    if isinstance(vectorizer.alphabet, Alphabet):
        settings["alphabet"] = {"json": vectorizer.alphabet.to_json()}
    if vectorizer.dtype is not None:
        settings["dtype"] = np.dtype(vectorizer.dtype).name
    for name, value in settings.items():
        settings[name] = value.item() if isinstance(value, np.generic) else value
    idf = getattr(vectorizer, "idf_", None)
    fields = {
        "laconic": "vectorizer",
        "version": _VERSION,
        "settings": settings,
        "alphabet": None if vectorizer.alphabet_ is None else vectorizer.alphabet_.to_json(),
        "idf": None if idf is None else idf.tolist(),
        "ngrams": names,
    }
    write_text(path, json.dumps(fields, indent=0))


def load_vectorizer(path: str | os.PathLike[str], threads: int | None = None) -> GrammarVectorizer:
    """Return the vectorizer that save_vectorizer wrote; ValueError with the file if it is none."""
    try:
        fields = read_json(path, _MOST)
        if fields["laconic"] != "vectorizer":
            raise InputError(f"it is {fields['laconic']!r:.100}")
        check_version(fields["version"], _VERSION)
        return _restored(fields, threads)
    except VersionError as error:
        raise VersionError(error.reason, file=str(path)) from None
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        told = f"no {error}" if isinstance(error, KeyError) else error
        raise InputError(
            f"{path} is no vectorizer that this version of Laconic can read: {told}"
        ) from None


def _restored(fields: dict[str, Any], threads: int | None) -> GrammarVectorizer:
    settings = dict(fields["settings"])
    settings["ngram_range"] = tuple(settings["ngram_range"])
    settings["codec"] = Codec(**settings["codec"])
    if isinstance(settings["alphabet"], dict):
        settings["alphabet"] = Alphabet.from_json(settings["alphabet"]["json"])
    vectorizer = GrammarVectorizer(**settings, threads=threads)
    names, alphabet = fields["ngrams"], fields["alphabet"]
    if vectorizer.n_features is not None:
        raise InputError("it hashes n-grams, and yet it has some")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError("its n-grams are not a list of texts")
    if not names:
        raise InputError("it has no n-grams")
    vectorizer.ngrams_ = Vocabulary.from_names(names)
    vectorizer.alphabet_ = None if alphabet is None else Alphabet.from_json(alphabet)
    if vectorizer.use_idf is None or vectorizer.use_idf:
        vectorizer.idf_ = _weights(fields["idf"], len(names), vectorizer)
    vectorizer.transform([])  # checks the settings
    return vectorizer


def _weights(idf: object, columns: int, vectorizer: GrammarVectorizer) -> npt.NDArray[np.float64]:
    if not isinstance(idf, list) or not all(type(weight) in (int, float) for weight in idf):
        raise InputError("its weights, idf, are not a list of numbers")
    if len(idf) != columns:
        raise InputError(f"there are {columns} n-grams, but {len(idf)} weights")
    # An n-gram that no document had weighs infinitely much, unless it is smoothed.
    most = math.inf if not vectorizer.smooth_idf else sys.float_info.max
    for column, weight in enumerate(idf):
        if not 0 < weight <= most:
            raise InputError(f"weight {column} of its idf is {weight!r:.40}, not a number above 0")
    return np.array(idf, vectorizer.dtype or np.float64)
