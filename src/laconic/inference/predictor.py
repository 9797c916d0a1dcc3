"""Prediction: documents of any kind to a trained model's answers, the same in every batch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch

from laconic.alphabet import BYTES_LIKE, Alphabet, AlphabetError, Document
from laconic.batching import GrammarDataset
from laconic.batching.prefetch import ahead
from laconic.codecs import Codec, compress_many
from laconic.corpus import Corpus
from laconic.corpus.documents import DocumentSource
from laconic.errors import InputError
from laconic.formats.stores import fetched
from laconic.grammar import Grammar, Grammars
from laconic.inference.state_cache import CacheInfo, StateCache
from laconic.nn import GrammarModel
from laconic.nn.forward import ForwardPass
from laconic.rulebook import Rulebook
from laconic.tasks import Task

Floats: TypeAlias = npt.NDArray[np.float32]
_TEXT = (str, *BYTES_LIKE)
_CHUNK = 1024  # documents compressed, sorted by length and cut into batches together,
_CHUNK_LETTERS = 4 << 20  # or fewer, if they have more letters than this


class Predictor:
    """A trained model with all that it takes to ask it: task, codec, alphabet, rulebook.

    Raw texts are compressed as the model's own were. Documents go through in batches of similar
    length, at most `batch_size` of them with `budget` padded symbols in all; one that is longer is
    a batch alone. Answers come in the order of the documents and do not depend on batches.
    `workers` threads compress and prepare batches ahead. `cache` states of symbols are kept from
    batch to batch (0: none), while the weights stay as they are. `device` "auto" is a GPU if there
    is one; the model moves there.

    >>> from laconic.nn import ModelConfig
    >>> from laconic.tasks import Classification
    >>> model = GrammarModel(ModelConfig(alphabet_size=256, outputs=2, embedding_size=8, width=8))
    >>> task = Classification(("no", "yes"))
    >>> predictor = Predictor(model, task, Codec(), Alphabet.bytes(), "cpu")
    >>> predictor.probabilities(["to be or not to be", ""]).shape
    (2, 2)
    """

    learned_from: Mapping[str, Any] = MappingProxyType({})
    """What is known of the files that the model learned from: `text`, their column, and so on."""

    def __init__(
        self,
        model: GrammarModel,
        task: Task,
        codec: Codec,
        alphabet: Alphabet,
        device: str = "auto",
        *,
        rulebook: Rulebook | None = None,
        batch_size: int = 64,
        budget: int = 1 << 16,
        workers: int = 0,
        cache: int = 0,
    ) -> None:
        if alphabet.size != model.config.alphabet_size:
            raise InputError(
                f"the model is for {model.config.alphabet_size} terminals, {alphabet!r} has "
                f"{alphabet.size}; pass the alphabet it was trained with"
            )
        shared = 0 if rulebook is None else len(rulebook)
        if shared != model.config.shared_rules:
            raise InputError(
                f"the model is for {model.config.shared_rules} shared rules, not {shared}; "
                "pass the rulebook it was trained with"
            )
        if batch_size < 1 or budget < 1:
            raise InputError(f"{batch_size=} and {budget=} must be at least 1")
        if workers < 0 or cache < 0:
            raise InputError(f"{workers=} and {cache=} must be at least 0")
        self.device = _device(device)
        self.model = model.to(self.device)
        self.task, self.codec, self.alphabet, self.rulebook = task, codec, alphabet, rulebook
        self.workers = workers
        self._cache = StateCache(cache) if cache and model.config.reads_sequences else None
        states = partial(self._cache.states, model) if self._cache else None
        self.forward = ForwardPass(model, batch_size, budget, threads=workers, states=states)

    @classmethod
    def from_run(
        cls, folder: str | os.PathLike[str], device: str = "auto", **options: Any
    ) -> Predictor:
        """Return the predictor of a run's model; RunError says what is missing there.

        The folder may be in S3.
        """
        from laconic.training.run import READING, Run

        with fetched(folder, but=("checkpoints", READING)) as here:
            run = Run.open(here)
            options |= {"rulebook": run.rulebook}
            made = cls(run.model(), run.task, run.codec, run.alphabet, device, **options)
            made.learned_from = run.about.get("corpus", {})
            return made

    def outputs(self, documents: DocumentSource) -> Floats:
        """Return what the model gives, float32 [N, outputs]: scores, or standardised values.

        Raises TypeError for what is no document, AlphabetError with the number of a document that
        the alphabet cannot hold, ValueError for a corpus compressed in another way.
        """
        found = list(self.stream(self._chunks(documents)))
        return np.concatenate([np.zeros((0, self.model.config.outputs), np.float32), *found])

    def probabilities(self, documents: DocumentSource) -> npt.NDArray[np.float64]:
        """Return the probability of each class, or of each label on its own, float64 [N, K].

        Raises ValueError for a regression, which has none.
        """
        # Without classes it raises at once, and not only after all documents are read.
        return self.task.probabilities(self.outputs(documents) if self.task.classes else [])

    def predict(self, documents: DocumentSource) -> list[Any]:
        """Return the class of each document, the list of its labels, or its value."""
        return self.task.predictions(self.outputs(documents))

    def stream(
        self, chunks: Iterable[Grammars | Sequence[Document] | Sequence[Grammar]]
    ) -> Iterator[Floats]:
        """Yield the outputs of each chunk of documents; a few chunks are held at a time.

        Errors number documents through all chunks.
        """
        for grammars in ahead(self._compressed, _with_numbers(chunks), self.workers):
            threads = 1 if len(grammars) == 1 else None
            yield self.forward.outputs(GrammarDataset(grammars, threads=threads))

    def grammars(self, documents: DocumentSource) -> Iterator[Grammars]:
        """Yield the documents as grammars, some at a time, compressed as the model's own were."""
        yield from ahead(self._compressed, _with_numbers(self._chunks(documents)), self.workers)

    def compress(self, document: Document | Grammar) -> Grammar:
        """Return the grammar of one document, compressed as the model's own were."""
        if isinstance(document, Grammar):
            return document
        if not isinstance(document, _TEXT):
            raise TypeError(f"a document is text or bytes, not {type(document).__name__}")
        return self._compressed((0, [document]))[0]

    def cache_info(self) -> CacheInfo:
        """Return the cache's hits, misses, size and capacity, and its hit_rate."""
        return self._cache.info() if self._cache is not None else CacheInfo(0, 0, 0, 0)

    def _chunks(self, documents: DocumentSource) -> Iterator[Any]:
        if isinstance(documents, Corpus):
            self.check_corpus(documents)
            return (grammars for _, _, grammars in documents.parts())
        if isinstance(documents, Grammars):
            return iter([documents])
        return _cut(documents)

    def check_corpus(self, corpus: Corpus) -> None:
        """Raise InputError unless the corpus was compressed as the model's documents were."""
        corpus.check_like(self.codec, self.alphabet, self.rulebook)

    def _compressed(self, chunk: tuple[int, Any]) -> Grammars:
        first, documents = chunk
        if len(documents) and isinstance(documents[0], Grammar):
            documents = Grammars.concatenate(documents)
        if isinstance(documents, Grammars):
            if documents.rulebook != self.rulebook:
                raise InputError(
                    f"the grammars are under {documents.rulebook!r}, the model was trained under "
                    f"{self.rulebook!r}; give the texts, or pass rulebook=predictor.rulebook"
                )
            return documents
        for number, document in enumerate(documents):
            if not isinstance(document, _TEXT):
                kind = "missing" if document is None else f"{type(document).__name__} {document!r}"
                raise TypeError(
                    f"document {first + number} is {kind:.60}; pass str or bytes, '' where there "
                    "is no text"
                )
        try:
            return compress_many(
                documents,
                self.codec,
                alphabet=self.alphabet,
                rulebook=self.rulebook,
                threads=1 if self.workers or len(documents) == 1 else None,
            )
        except AlphabetError as error:
            raise error.at(document=first + (error.document or 0)) from None


def _device(name: str) -> torch.device:
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError):
        raise InputError(f"there is no device {name!r:.40} here; use auto or cpu") from None
    return device


def _cut(documents: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut documents into chunks that are compressed together."""
    if isinstance(documents, _TEXT):
        raise TypeError("predict takes many documents, not one; pass [document]")
    if isinstance(documents, Grammar):
        raise TypeError("predict takes many grammars, not one; pass [grammar]")
    if isinstance(documents, pa.Array | pa.ChunkedArray):
        documents = _arrow_values(documents)
    try:
        values = iter(documents)
    except TypeError:
        kind = type(documents).__name__
        raise TypeError(f"documents must be a list of texts or a Corpus, not {kind}") from None
    chunk: list[Any] = []
    letters = 0
    for value in values:
        chunk.append(value)
        letters += len(value) if isinstance(value, _TEXT) else 0
        if len(chunk) == _CHUNK or letters >= _CHUNK_LETTERS:
            yield chunk
            chunk, letters = [], 0
    if chunk:
        yield chunk


def _arrow_values(array: Any) -> Iterator[Any]:
    starts = range(0, len(array), _CHUNK)
    return chain.from_iterable(array.slice(start, _CHUNK).to_pylist() for start in starts)


def _with_numbers(chunks: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Yield chunks, each with the number of its first document."""
    first = 0
    for chunk in chunks:
        yield first, chunk
        first += len(chunk)
