"""GrammarVectorizer: exact n-gram features of documents, counted on their grammars."""
# ruff: noqa: N803  -- X is scikit-learn's name

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from laconic.alphabet import Alphabet, as_alphabet
from laconic.codecs import Codec, CodecName, as_codec
from laconic.corpus.documents import DocumentSource, documents_of
from laconic.errors import InputError, needs
from laconic.features.preprocessing import Preprocessing
from laconic.features.weights import weights
from laconic.grammar import Grammars
from laconic.ngrams import (
    LONGEST,
    Choice,
    Counts,
    Letters,
    Vocabulary,
    as_vocabulary,
    count_all,
    count_hashed,
    count_known,
    learn,
)

with needs("the vectorizer", "sklearn"):
    from scipy.sparse import csr_matrix, vstack
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.utils import check_array
    from sklearn.utils.validation import check_is_fitted

_MOST_COLUMNS = 2**31 - 1


# A dataclass for its __init__ alone: scikit-learn reads the parameters from there.
@dataclass(eq=False, repr=False)
class GrammarVectorizer(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):  # type: ignore[misc, call-arg]
    """Documents to a sparse matrix of their character n-grams, counted on grammars, not on text.

    The matrix, the vocabulary and the names are those of scikit-learn's vectorizers with
    analyzer="char" on the expanded text: of TfidfVectorizer; with use_idf=False, norm=None of
    CountVectorizer; with `n_features` of HashingVectorizer. Every n of `ngram_range` is counted.

    X is a list, array, Series or Arrow array of str or bytes (read as UTF-8), Grammars or a Corpus.
    Texts are compressed with `codec` first, which changes the time but never the matrix: LZD is
    quick on plain text, and quickest on repetitive text. With an `alphabet` they are read through
    it, and so are Grammars. A corpus has its own alphabet: under "bytes", letters beyond ASCII are
    the two to four bytes of their UTF-8, also those of texts after a fit on such a corpus.

    - `vocabulary` (names, or names to columns) fixes the columns; otherwise fit learns them: those
      in `min_df` to `max_df` documents (a number, or a share in 0..1), of these the `max_features`
      that occur most often.
    - `n_features` hashes n-grams to that many columns instead. Nothing is learned, so nothing is
      held: documents stream through in bounded memory. `alternate_sign` as HashingVectorizer.
    - Counts become 1 with `binary`, 1 + log(count) with `sublinear_tf`; are weighed with the
      inverse document frequency (`use_idf`: by default unless hashed; `smooth_idf`); and rows get
      length 1 in the `norm` "l2", "l1" or None.
    - `lowercase`, and `collapse_whitespace`: two or more white spaces are read as one blank.
    - `reverse_complement`: of DNA, an n-gram and its reverse complement are one feature, named by
      the smaller of the two.
    - `threads` by default one per processor; `dtype` by default float64, or int64 for plain counts.

    After fit, unless hashed: vocabulary_ (names to columns); with use_idf idf_, float64 [columns];
    alphabet_, over which n-grams were learned: None for those of texts read as they are.

    >>> texts = ["to be or not to be", "that is the question"]
    >>> GrammarVectorizer((1, 3)).fit_transform(texts).shape
    (2, 72)
    >>> counts = GrammarVectorizer((2, 2), use_idf=False, norm=None)
    >>> counts.fit_transform(texts).toarray()[:, :3].tolist(), counts.get_feature_names_out()[:3]
    ([[2, 0, 1], [0, 1, 0]], array([' b', ' i', ' n'], dtype=object))
    """

    ngram_range: tuple[int, int] = (1, 5)
    _: KW_ONLY
    vocabulary: Mapping[str, int] | Iterable[str] | None = None
    n_features: int | None = None
    min_df: float = 1
    max_df: float = 1.0
    max_features: int | None = None
    sublinear_tf: bool = False
    use_idf: bool | None = None
    smooth_idf: bool = True
    norm: Literal["l1", "l2"] | None = "l2"
    binary: bool = False
    lowercase: bool = True
    collapse_whitespace: bool = True
    reverse_complement: bool = False
    alternate_sign: bool = True
    codec: CodecName | Codec = "lzd"
    alphabet: str | Alphabet | None = None
    threads: int | None = None
    dtype: npt.DTypeLike | None = None
    idf_: npt.NDArray[np.float64] = field(init=False)
    alphabet_: Alphabet | None = field(init=False)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array, tags.input_tags.two_d_array = True, False
        tags.input_tags.string = True
        tags.requires_fit = not self._stateless
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        named = self.n_features is not None or hasattr(self, "ngrams_")
        return named and (not self._idf or hasattr(self, "idf_"))

    @property
    def vocabulary_(self) -> dict[str, int]:
        """The column of each n-gram; AttributeError before fit, and if they are hashed."""
        if not hasattr(self, "ngrams_"):
            raise AttributeError("vocabulary_ is there after fit, and not with n_features")
        return {name: column for column, name in enumerate(self.ngrams_.names())}

    def fit(self, X: DocumentSource, y: Any = None) -> GrammarVectorizer:
        """Learn the n-grams and their document frequencies, as far as they are to be learned.

        A corpus is read row group by row group. O(symbols of the grammars) time for a fixed range.
        Raises TypeError or ValueError for documents or parameters that cannot be, AlphabetError
        with the number of a document that the alphabet cannot hold.
        """
        self._check()
        if not self._stateless:
            self._learn(X, counted=False)
        return self

    def fit_transform(self, X: DocumentSource, y: Any = None) -> csr_matrix:
        """Return what fit and then transform would, in little more time than one of them."""
        self._check()
        if self._stateless:
            return self.transform(X)
        documents = documents_of(X)  # an iterator can be read but once
        counts = self._learn(documents, counted=True)
        return self.transform(documents) if counts is None else self._weighed(counts)

    def transform(self, X: DocumentSource) -> csr_matrix:
        """Return the features of the documents, CSR [N, columns], columns sorted in every row.

        Raises NotFittedError before fit, unless n-grams are hashed or given; otherwise as fit.
        """
        blocks = list(self.transform_batches(X))
        if not blocks:
            return csr_matrix((0, self._width), dtype=self._dtype)
        return blocks[0] if len(blocks) == 1 else vstack(blocks, format="csr")

    def transform_batches(self, source: DocumentSource) -> Iterator[csr_matrix]:
        """Yield the features of some documents at a time, in order: the rows of transform.

        Takes what transform takes, and iterators, of which a part is held at a time; a corpus is
        read row group by row group. Errors number documents through all blocks.
        """
        self._check()
        if self.vocabulary is not None and not self._idf and not hasattr(self, "ngrams_"):
            self._set(as_vocabulary(self.vocabulary), 0, None)
        check_is_fitted(self)
        return self._transformed(source)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the n-gram of each column; ValueError if they are hashed."""
        if self.n_features is not None:
            raise InputError("hashed columns have no names; leave n_features out to have some")
        check_is_fitted(self)
        return np.array(self.ngrams_.names(), dtype=object)

    def inverse_transform(self, X: Any) -> list[npt.NDArray[np.object_]]:
        """Return the n-grams that each row has, as arrays of str; ValueError if they are hashed."""
        names = self.get_feature_names_out()
        rows = csr_matrix(check_array(X, accept_sparse="csr"))
        return [names[row.indices[row.data != 0]] for row in rows]

    @property
    def _width(self) -> int:
        return len(self.ngrams_) if self.n_features is None else int(self.n_features)

    @property
    def _idf(self) -> bool:
        return self.n_features is None if self.use_idf is None else bool(self.use_idf)

    @property
    def _stateless(self) -> bool:
        return self.n_features is not None and not self._idf

    @property
    def _dtype(self) -> np.dtype[Any]:
        if self.dtype is not None:
            return np.dtype(self.dtype)
        plain = self.n_features is None and not self._weighs
        return np.dtype(np.int64 if plain else np.float64)

    @property
    def _weighs(self) -> bool:
        return self._idf or self.norm is not None or self.sublinear_tf

    def _check(self) -> None:
        """Raise ValueError or TypeError for parameters that cannot be."""
        low, high = _pair(self.ngram_range)
        if not 1 <= low <= high <= LONGEST:
            wanted = f"1 <= first <= last <= {LONGEST} is wanted"
            raise InputError(f"ngram_range is {self.ngram_range}: {wanted}")
        for name in ("n_features", "max_features"):
            value = getattr(self, name)
            if value is not None and not (_whole(value) and 1 <= value <= _MOST_COLUMNS):
                raise InputError(f"{name} must be an integer from 1 to 2^31 - 1, not {value!r}")
        for name in ("min_df", "max_df"):
            value = getattr(self, name)
            share = isinstance(value, float | np.floating) and 0 <= value <= 1
            if not share and not (_whole(value) and value >= 1):
                wanted = "an integer from 1, or a share from 0.0 to 1.0"
                raise InputError(f"{name} must be {wanted}, not {value!r}")
        if self.norm not in ("l1", "l2", None):
            raise InputError(f'norm must be "l1", "l2" or None, not {self.norm!r}')
        if self.n_features is not None and self.vocabulary is not None:
            raise InputError("n_features hashes, and needs no vocabulary: pass one of the two")
        if self.n_features is not None and self.sublinear_tf and self.alternate_sign:
            raise InputError(
                "sublinear_tf takes logarithms, and hashed counts may be below 0; pass "
                "alternate_sign=False"
            )
        if self._weighs and self._dtype.kind != "f":
            raise InputError(
                f"dtype {self._dtype} cannot hold weights; pass a float, or use_idf=False, "
                "norm=None, sublinear_tf=False for counts"
            )

    def _preprocessing(self, learned: Alphabet | None = None) -> Preprocessing:
        """Return how documents are read; texts as what was learned from, if nothing else is set."""
        alphabet = None if self.alphabet is None else as_alphabet(self.alphabet)
        return Preprocessing(
            as_codec(self.codec, {}),
            alphabet,
            learned if alphabet is None else alphabet,
            bool(self.lowercase),
            bool(self.collapse_whitespace),
            bool(self.reverse_complement),
            self.threads,
        )

    def _learn(self, X: DocumentSource, counted: bool) -> Counts | None:
        """Learn from the documents, and return their counts if they are wanted and at hand."""
        if self.n_features is not None or self.vocabulary is not None:
            self._weigh_known(X)
            return None
        documents, parts, read, alphabet = self._preprocessing().whole(X)
        _check_some(documents)
        least, most = (
            df if isinstance(df, Integral) else df * documents for df in (self.min_df, self.max_df)
        )
        if most < least:
            raise InputError("max_df corresponds to < documents than min_df")
        choice = Choice(least, most, self.max_features, bool(self.binary), self._dtype)
        (low, high), counts = _pair(self.ngram_range), None
        if counted:
            ngrams, counts = count_all(parts, read, low, high, choice, self.threads)
        else:
            ngrams = learn(parts, read, low, high, choice, self.threads)
        if not len(ngrams):
            raise InputError(
                f"no n-grams of {low} to {high} letters remain: the documents are empty or "
                "shorter, or min_df is too high, or max_df too low"
            )
        self._set(ngrams, documents, ngrams.document_frequency, alphabet)
        return counts

    def _transformed(self, source: DocumentSource) -> Iterator[csr_matrix]:
        ngrams = None if self.n_features is not None else self.ngrams_
        learned = None if self._stateless else getattr(self, "alphabet_", None)
        for grammars, read, _ in self._preprocessing(learned).blocks(source):
            counts = self._counted(grammars, read, ngrams)
            del grammars  # a block may be a part of all that was read
            yield self._weighed(counts)

    def _weigh_known(self, X: DocumentSource) -> None:
        """Learn the document frequencies of given or hashed columns."""
        ngrams = None if self.n_features is not None else as_vocabulary(self.vocabulary)
        if not self._idf:
            self._set(ngrams, 0, None)
            return
        documents, width = 0, self._width if ngrams is None else len(ngrams)
        frequency, alphabet = np.zeros(width, np.int64), None
        for grammars, read, over in self._preprocessing().blocks(X):
            alphabet = over
            counts = self._counted(grammars, read, ngrams)
            frequency += np.bincount(counts.indices, minlength=width)
            documents += len(grammars)
        _check_some(documents)
        self._set(ngrams, documents, frequency, alphabet)

    def _set(
        self,
        ngrams: Vocabulary | None,
        documents: int,
        frequency: npt.NDArray[np.int64] | None,
        alphabet: Alphabet | None = None,
    ) -> None:
        # All at once, and only now: a fit that fails leaves the one before as it was.
        for name in ("ngrams_", "idf_"):
            self.__dict__.pop(name, None)
        self.alphabet_ = alphabet
        if ngrams is not None:
            self.ngrams_ = ngrams
        if self._idf and frequency is not None:
            # In the order in which scikit-learn computes it, so that not even rounding differs.
            frequencies = frequency.astype(self._dtype) + float(self.smooth_idf)
            idf = np.full_like(frequencies, documents + int(self.smooth_idf))
            idf /= frequencies
            self.idf_ = np.log(idf) + 1.0

    def _counted(self, grammars: Grammars, read: Letters, ngrams: Vocabulary | None) -> Counts:
        low, high = _pair(self.ngram_range)
        if ngrams is not None:
            return count_known(grammars, read, low, high, ngrams, self.threads)
        signed = bool(self.alternate_sign)
        return count_hashed(grammars, read, low, high, self._width, signed, self.threads)

    def _weighed(self, counts: Counts) -> csr_matrix:
        data = weights(
            counts,
            self._dtype,
            binary=bool(self.binary),
            sublinear=bool(self.sublinear_tf),
            idf=self.idf_ if self._idf else None,
            norm=self.norm,
            threads=self.threads,
        )
        shape = len(counts.indptr) - 1, counts.columns
        matrix = csr_matrix((data, counts.indices, counts.indptr), shape=shape)
        matrix.has_canonical_format = True
        return matrix


def _pair(ngram_range: object) -> tuple[int, int]:
    if isinstance(ngram_range, tuple | list) and len(ngram_range) == 2:
        low, high = ngram_range
        if _whole(low) and _whole(high):
            return int(low), int(high)
    raise InputError(f"ngram_range must be two integers, such as (1, 5), not {ngram_range!r}")


def _whole(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_some(documents: int) -> None:
    if documents == 0:
        raise InputError("X holds no documents: 0 samples; at least one is needed")
