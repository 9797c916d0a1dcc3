"""GrammarModel: from a batch of grammars to predictions, nothing expanded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import torch
from huggingface_hub import ModelCard, ModelHubMixin
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from laconic.batching import Batch
from laconic.nn import pretrained
from laconic.nn.bag import NgramBag
from laconic.nn.composers import Composer, compose_with_own, make_composer
from laconic.nn.config import ModelConfig, ModelError
from laconic.nn.few_rows import few_rows
from laconic.nn.kernels import levels as fused_levels
from laconic.nn.kernels.cells import FUSED
from laconic.nn.levels import compose_levels
from laconic.nn.ngram_vectors import NgramVectors
from laconic.nn.pooling import pooling
from laconic.nn.residuals import Residuals
from laconic.nn.sequence_models import Recurrent, sequence_model
from laconic.tasks import TASKS

_LENGTHS = 24  # expanded lengths that are told apart; from the last on they look the same


class GrammarModel(nn.Module, ModelHubMixin):
    """A composer over the batch's forest, a sequence model over its sequences, pooling, a head.

    Beside or instead of all that, by the config: a linear model of n-grams (laconic.nn.bag).

    >>> from laconic import compress_many
    >>> from laconic.batching import collate
    >>> _ = torch.manual_seed(0)
    >>> model = GrammarModel(ModelConfig(alphabet_size=256, outputs=2, embedding_size=8, width=8))
    >>> batch = collate(compress_many(["abab", "banana"]), labels=[0, 1])
    >>> outputs = model(batch)
    >>> outputs.shape
    torch.Size([2, 2])
    >>> model.loss(outputs, batch.labels).backward()
    """

    compile_cell = False
    """Whether torch.compile makes one kernel of the composer's many; set it on a model at will."""
    kernels = True
    """Whether kernels of our own read sequences, where they can; likewise."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        # Named as its weights are in files.
        self.local: NgramVectors | None = None
        self.residuals: Residuals | None = None
        if config.reads_sequences:
            try:
                self._make_reader(config)
            except ValueError as error:
                raise ModelError(str(error)) from None
        self.bag = None
        if counted := config.counted:
            self.bag = NgramBag(
                counted.columns,
                config.ngram_rows,
                config.outputs,
                config.ngram_dropout,
                first_shared=counted.first_shared,
                logarithmic=config.ngram_counts == "log",
            )

    def _make_reader(self, config: ModelConfig) -> None:
        size = config.embedding_size
        self.composer = make_composer(config.composer, size)
        seen = cast(Composer, self.composer).output_size
        self.sequence_model = sequence_model(
            config.sequence_model,
            seen,
            width=config.width,
            layers=config.layers,
            direction=config.direction,
            dropout=config.dropout,
        )
        read = self.sequence_model.output_size
        halves = self.sequence_model.bidirectional
        self.pooling = pooling(config.pooling, read, bidirectional=halves)
        self.embedding = _embedding(config.alphabet_size, size)
        self.length_embedding = _embedding(_LENGTHS, seen) if config.reads_lengths else None
        buckets = config.identity_buckets
        self.identity_embedding = _embedding(buckets, seen) if buckets else None
        if known := config.residual_rows:
            state_size = cast(Composer, self.composer).state_size
            self.residuals = Residuals(
                config.shared_rules, known, state_size, config.residual_dropout
            )
        if ngrams := config.in_place:
            size, rows = config.local_size, config.local_rows
            self.local = NgramVectors(ngrams.buckets, size, seen, config.local_dropout, rows)
        self.dropout = nn.Dropout(config.dropout)
        self.head = nn.Linear(read, config.outputs)

    def forward(self, batch: Batch, states: Tensor | None = None) -> Tensor:
        """Return float [B, outputs]: scores of classes or labels, or the values.

        `states` are as self.states returns them, if the caller has them already.
        """
        first, *others = self.views(batch, states)
        return sum(others, first)

    def views(self, batch: Batch, states: Tensor | None = None) -> list[Tensor]:
        """Return what reading says, what counting says, or both: float [B, outputs] each.

        Their sum is what the model says.
        """
        reads = self.config.reads_sequences
        for counts in (self.bag, self.local):
            if counts is not None:
                counts.kernels = self.kernels
        said = [self.read(self.inputs(batch, states), batch)] if reads else []
        return said if self.bag is None else [*said, self._counted(batch)]

    def inputs(self, batch: Batch, states: Tensor | None = None) -> Tensor:
        """Return what the sequence model reads, float [B, T, size]: a vector for each symbol."""
        self._check(batch)
        states = self.states(batch) if states is None else states
        vectors = cast(Composer, self.composer).read(states)
        more = self._more_inputs(batch)
        if scan := getattr(self.composer, "scan", None):
            read = cast(Tensor, scan(_along(vectors, batch), batch.mask))
            read = read if more is None else read + _along(more, batch)
        else:
            read = _along(vectors if more is None else vectors + more, batch)
        return read if self.local is None else read + self.local(batch)

    def states(self, batch: Batch) -> Tensor:
        """Return the composer's state of every node, float [alphabet_size + M, state_size]."""
        composer = cast(Composer, self.composer)
        # The loop's shapes differ from level to level, so only the cell is worth compiling.
        compose = compose_with_own(composer) if self.residuals is not None else composer.compose
        cell = torch.compile(compose, dynamic=True) if self.compile_cell else compose
        with torch.autocast(self.embedding.weight.device.type, enabled=False):
            leaves = composer.leaf(self.embedding.weight)  # Few, and all others rest on them.
            own = self.own(batch)
        parameters, forest = list(self.composer.parameters()), (batch.children, batch.level_offsets)
        fused = None if self.compile_cell or not self.kernels else FUSED.get(type(self.composer))
        if fused and not fused_levels.obstacle(leaves):
            return fused_levels.compose(fused, leaves, *forest, own, parameters)
        return compose_levels(cell, parameters, leaves, *forest, own)

    def own(self, batch: Batch) -> Tensor | None:
        """Return what nodes have beside their operands, float [M, state_size], if anything."""
        shared = batch.node_shared[batch.alphabet_size :]
        return None if self.residuals is None else cast(Tensor, self.residuals(shared))

    def read(self, inputs: Tensor, batch: Batch) -> Tensor:
        """Return what reading says, given what the sequence model reads."""
        mask = batch.mask
        if self.training and (share := self.config.symbol_dropout):
            inputs = inputs * F.dropout(inputs.new_ones(*mask.shape, 1), share)
        lengths = batch.node_lengths.index_select(0, batch.symbols.reshape(-1)).view(mask.shape)
        offsets = lengths.cumsum(1) - lengths
        if isinstance(self.sequence_model, Recurrent):
            self.sequence_model.kernels = self.kernels
        read = self.sequence_model(inputs, mask, batch.sequence_lengths, offsets)
        outputs: Tensor = self.head(self.dropout(self.pooling(read, mask, lengths)))
        # Bfloat16 would round values to be predicted, and what they are compared with.
        return outputs.to(torch.promote_types(outputs.dtype, torch.float32))

    @property
    def read_by(self) -> str | None:
        """What read sequences last, in words, if that is a matter of choice."""
        return getattr(getattr(self, "sequence_model", None), "read_by", None)

    def _check(self, batch: Batch) -> None:
        if batch.alphabet_size != self.config.alphabet_size:
            raise ModelError(
                f"the model is for {self.config.alphabet_size} terminals, the batch has "
                f"{batch.alphabet_size}; compress with the alphabet the model was trained with"
            )
        if self.config.in_place is not None and batch.in_place is None:
            raise ModelError(
                "the model reads n-grams in their places, and the batch has none: "
                "pass in_place=model.config.in_place to collate, or to the dataset"
            )

    def _counted(self, batch: Batch) -> Tensor:
        self._check(batch)
        if batch.bag is None:
            raise ModelError(
                "the model counts n-grams, and the batch has none: "
                "pass counted=model.config.counted to collate, or to the dataset"
            )
        scores: Tensor = cast(NgramBag, self.bag)(batch.bag, len(batch))
        return scores

    def loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Return the mean loss of the model's task over documents."""
        return TASKS[self.config.task].losses(outputs, labels).mean()

    @classmethod
    def from_pretrained(  # type: ignore[override]
        cls, folder: str | os.PathLike[str], *, device: str = "cpu", **download: Any
    ) -> GrammarModel:
        """Return a model saved in a folder, or on the Hugging Face Hub, ready to predict.

        `download` are options of huggingface_hub's hf_hub_download (revision, token, …). Raises
        FileNotFoundError, or ModelError with the file for what is damaged or does not fit.
        """
        files = pretrained.find(folder, **download)
        config = pretrained.read_config(files.config)
        with torch.device("meta"):  # Nothing is allocated before the file is known to fit.
            model = cls(config)
        pretrained.read_weights(files.weights, model, device)
        return model.eval()

    def save_pretrained(  # type: ignore[override]
        self, folder: str | os.PathLike[str], *, push_to_hub: bool = False, **hub: Any
    ) -> None:
        """Write the model to a folder: config.json, model.safetensors, README.md; all or none.

        With `push_to_hub` also to the Hugging Face Hub; `hub` are the options of that.
        """
        pretrained.write(self, self.config, Path(folder))
        if push_to_hub:
            self.push_to_hub(hub.pop("repo_id", Path(folder).name), **hub)

    def generate_model_card(self, *args: Any, **kwargs: Any) -> ModelCard:
        """Return the README.md that is saved with the model."""
        return pretrained.card(self.config, pretrained.parameters_of(self))

    def _more_inputs(self, batch: Batch) -> Tensor | None:
        more = None
        if self.length_embedding is not None:
            more = few_rows(
                self.length_embedding.weight, batch.node_lengths.clamp(max=_LENGTHS - 1)
            )
        if self.identity_embedding is not None:
            identity = self.identity_embedding(batch.node_hashes % self.config.identity_buckets)
            more = identity if more is None else more + identity
        return more


def _embedding(rows: int, size: int) -> nn.Embedding:
    embedding = nn.Embedding(rows, size)
    nn.init.normal_(embedding.weight, std=size**-0.5)  # as in the paper: N(0, 1/d)
    return embedding


def _along(vectors: Tensor, batch: Batch) -> Tensor:
    """Return the vectors of the symbols, [B, T, size], laid out time first for the LSTM."""
    documents, length = batch.symbols.shape
    rows = batch.symbols.t().reshape(-1)
    along = vectors.index_select(0, rows).view(length, documents, vectors.shape[1])
    return along.transpose(0, 1)
