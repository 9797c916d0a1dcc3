"""The linear view: what documents count, weighed by a convex fit, in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from laconic.arrays import Int64s
from laconic.batching import Bag, GrammarDataset
from laconic.ngrams import Counts
from laconic.ngrams.hashed import HashedCounter
from laconic.nn import GrammarModel, ModelConfig
from laconic.nn.bag import NgramBag
from laconic.nn.memory import empty_cache
from laconic.tasks import Task
from laconic.training.blend import scaled
from laconic.training.convex import Fit, SparseRows, minimised
from laconic.training.holdout import targets_of
from laconic.training.new_model import counting_model
from laconic.training.telling import can_tell, telling
from laconic.training.turns import Documents, Split, grammars_of

Floats: TypeAlias = npt.NDArray[np.float64]
_BUCKETS = 12, 21  # powers of two: so many for few symbols, and for many
_STRENGTHS = tuple(10.0**k for k in range(7))  # what scikit-learn calls C; then those between
# Fits end at such a part of the best bias's gradient: the model's own, and those that compare.
_CLOSELY, _ROUGHLY = 1e-3, 1e-2
_USUAL = 10.0  # where there are too few documents to tell
_PATIENCE = 1  # strengths that are worse, after which weaker ones are not tried
_BOTH_WAYS = 2  # of the best features are weighed both ways, by how they tell classes apart or not
_SAMPLE, _SAMPLE_SYMBOLS = 2000, 1 << 19  # documents from which features are chosen
_MOST_SYMBOLS = 1 << 25  # of documents in the matrix, which takes some GB; of more, random ones


class Features(NamedTuple):
    """What is counted: n-grams of letters, runs of shared symbols, and how much counts weigh."""

    ngrams: int
    shared: int
    counts: Literal["log", "plain"]
    told_apart: bool = False
    """Whether what tells classes apart weighs more (laconic.training.telling)."""

    def __str__(self) -> str:
        runs = f" and runs of 1–{self.shared} shared symbols" if self.shared else ""
        by = ", weighed by how they tell classes apart" if self.told_apart else ""
        return f"n-grams of 1–{self.ngrams} letters{runs}, {self.counts} counts{by}"


# What held-out parts of training sets of text, pinyin and traces prefer, and how: docs/counted.md.
CANDIDATES = (
    Features(5, 2, "log", told_apart=True),
    Features(7, 2, "log", told_apart=True),
    Features(5, 0, "log", told_apart=True),
    Features(7, 0, "log", told_apart=True),
    Features(5, 2, "plain", told_apart=True),
)
# Of few letters, such as those of DNA, many documents share long n-grams. Of text they take ten
# times as long to count.
_FEW_LETTERS = 8
OF_FEW_LETTERS = (
    Features(6, 0, "plain"),
    Features(10, 0, "log"),
    Features(12, 0, "log"),
    Features(12, 0, "plain"),
)


@dataclass(frozen=True)
class LinearView:
    """A linear model of counts, fitted: what was chosen, and how good that is on others."""

    model: GrammarModel
    """It counts only; on the CPU."""
    features: Features
    strength: float
    held_out: Floats
    """What fits without them say of documents that validate, [N, outputs]."""
    rows: Int64s
    """Which documents of the validation these are: all, unless there are very many."""
    tried: dict[str, float]
    """The loss of each of the features that were tried, on held-out documents."""
    documents: int
    """That it learned from in the end."""
    late: bool = False
    """Whether time was up when features had been tried, of which there may be more."""


def fit_linear(
    training: GrammarDataset,
    validation: GrammarDataset | None,
    task: Task,
    *,
    weights: npt.NDArray[np.float32] | None = None,
    groups: Int64s | None = None,
    refit: bool = True,
    seed: int = 0,
    device: torch.device | str = "cpu",
    until: float = inf,
    progress: Callable[[int, int], None] = lambda done, steps: None,
) -> LinearView:
    """Return the linear model of the training's documents that is best on held-out ones.

    A sample tells what to count; then held-out documents tell how strongly weights are kept small.
    If few validate, parts of all take turns, in which documents of a group stay together: `groups`
    are int64, of the training and then of the validation. With `refit` the last fit learns from
    those that validate, too; what is said of them is then said by fits that learned from most
    others. `weights`, float [N], are of both, too. After `until`, of time.perf_counter(), nothing
    more is tried, and what is said of held-out documents is by the fit that told strengths apart;
    `progress` is told how many steps of how many are done.
    """
    rng = np.random.default_rng([seed, 0x11EA])
    held = training.select([]) if validation is None else validation
    every = Documents(
        training,
        held,
        np.ones(len(training) + len(held), np.float32) if weights is None else weights,
        np.arange(len(training) + len(held)) if groups is None else groups,
        np.arange(len(held)),
        refit,
    )
    sample = every.some(_SAMPLE / len(every), _SAMPLE_SYMBOLS / (1 + every.symbols), rng)
    kinds: Sequence[Features] = OF_FEW_LETTERS if sample.letters <= _FEW_LETTERS else CANDIDATES
    if training.grammars.rulebook is None:
        kinds = list(dict.fromkeys(kind._replace(shared=0) for kind in kinds))
    splits = sample.splits(np.random.default_rng(seed))
    tried = _compared(sample, kinds, task, splits, device, until=until, progress=progress)
    usual = kinds[0]._replace(told_apart=False)
    late = time.perf_counter() > until
    best = min(tried, key=lambda kind: tried[kind].loss, default=usual)
    about = tried[best].strength if tried else _USUAL
    used = every.some(_MOST_SYMBOLS / (1 + every.symbols), 1.0, rng)
    matrix = _Matrix(used, best, task, device)
    near = (about,) if late else tuple(about * 10 ** (k / 4) for k in (-3, -1, 1, 3))
    splits = used.splits(rng)
    # Strength, outputs and the last fit: by the same documents, what tells classes apart.
    matrices = matrix.of_splits(splits, best.told_apart)
    matrix = matrices[0] if matrices else matrix
    path = _path(matrices, splits, near, _CLOSELY)
    step = min(path, key=lambda each: each.loss) if path else None
    rows = np.arange(len(used) if refit else len(used.training))
    strength, start = (step.strength, step.fit) if step else (about, None)
    held_out = step.held_out if step and len(used.validation) else np.zeros((0, task.outputs))
    if refit and len(used.validation) and not late:
        # Whoever weighs it against other views has to know how good the last fit is, which learns
        # from more documents than the one that told strengths apart.
        held_out, start = matrix.crossed(used.turns(rng), strength, start)
    model = matrix.model_of(matrix.fit(rows, strength, start))
    losses = {str(kind): step.loss for kind, step in tried.items()}
    progress(1, 1)
    return LinearView(model, best, strength, held_out, used.valid_rows, losses, len(rows), late)


def compared(
    training: GrammarDataset,
    validation: GrammarDataset,
    task: Task,
    kinds: Sequence[Features],
    tolerance: float = _ROUGHLY,
) -> dict[Features, Floats]:
    """Return what linear models of each kind of features say of documents that validate, [N, K].

    Of the best strengths, and each kind both ways, told apart and not, where that can be; fits end
    at gradients of `tolerance`.
    """
    every, rows = np.arange(len(training) + len(validation)), np.arange(len(validation))
    ones = np.ones(len(every), np.float32)
    documents = Documents(training, validation, ones, every, rows, True)
    splits = [(every[: len(training)], len(training) + rows)]
    found = _compared(documents, kinds, task, splits, "cpu", tolerance, thorough=True)
    return {kind: step.held_out for kind, step in found.items()}


def _compared(
    documents: Documents,
    kinds: Sequence[Features],
    task: Task,
    splits: Sequence[Split],
    device: torch.device | str,
    tolerance: float = _ROUGHLY,
    thorough: bool = False,
    until: float = inf,
    progress: Callable[[int, int], None] = lambda done, steps: None,
) -> dict[Features, _Step]:
    """Return what each kind of features comes to, and the best ones the other way, too.

    If `thorough`, all of them both ways, and each at its best, also if others are better. At least
    one, and no more after `until`; a step that is left for `progress` is the last fit.
    """
    both_ways = len(kinds) if thorough else _BOTH_WAYS
    steps = len(kinds) + both_ways + 1
    tried: dict[Features, _Step] = {}

    def attempt(kind: Features, matrix: _Matrix) -> None:
        to_beat = inf if thorough else min((each.loss for each in tried.values()), default=inf)
        matrices = matrix.of_splits(splits, kind.told_apart)
        path = _path(matrices, splits, _STRENGTHS, tolerance, to_beat)
        tried[kind] = min(path, key=lambda each: each.loss)
        progress(len(tried), steps)

    def late() -> bool:
        return bool(tried) and time.perf_counter() > until

    matrices: dict[Features, _Matrix] = {}
    for kind in kinds if splits else ():
        if late():
            break
        matrix = _Matrix(documents, kind, task, device)
        kind = kind if matrix.can_tell else kind._replace(told_apart=False)
        matrices[kind] = matrix
        attempt(kind, matrix)
        if len(matrices) > both_ways:
            del matrices[max(matrices, key=lambda kind: tried[kind].loss)]
    for kind, matrix in matrices.items():
        if matrix.can_tell and not late():
            attempt(kind._replace(told_apart=not kind.told_apart), matrix)
    return tried


class _Step(NamedTuple):
    """A strength: the mean loss on held-out documents, calibrated, and the first split's fit."""

    strength: float
    loss: float
    fit: Fit
    held_out: Floats


def _path(
    matrices: Sequence[_Matrix],
    splits: Sequence[Split],
    strengths: Sequence[float],
    tolerance: float,
    to_beat: float = inf,
) -> list[_Step]:
    """Return a step for each strength, ascending, until they get no better.

    Or until it is plain that none will have a loss of `to_beat`. Each split has its matrix.
    """
    fits: list[Fit | None] = [None] * len(splits)
    steps: list[_Step] = []
    for strength in strengths if splits else ():
        losses = []
        for k, (matrix, (rows, out)) in enumerate(zip(matrices, splits, strict=True)):
            fit = fits[k] = matrix.fit(rows, strength, fits[k], tolerance)
            losses.append(matrix.loss(fit.outputs, out) * len(out))
        first, out = cast(Fit, fits[0]), splits[0][1]
        loss = sum(losses) / sum(len(out) for _, out in splits)
        steps.append(_Step(strength, loss, first, first.outputs.cpu().numpy()[out]))
        best = min(range(len(steps)), key=lambda k: steps[k].loss)
        if len(steps) - 1 - best >= _PATIENCE:
            break
        if _cannot_beat([step.loss for step in steps], to_beat):
            break
    return steps


def _cannot_beat(losses: Sequence[float], to_beat: float) -> bool:
    """Return whether losses end above that, if their gains go on to shrink as the last one did.

    >>> _cannot_beat([0.28, 0.24, 0.18], 0.17), _cannot_beat([2.0, 1.5, 1.45], 1.4)
    (False, True)
    """
    if len(losses) < 3:
        return False
    before, last = losses[-3] - losses[-2], losses[-2] - losses[-1]
    if last >= before:
        return False
    return losses[-1] - last * last / (before - last) > to_beat


class _Matrix:
    """What documents count, weighed as the model will weigh it, as a sparse matrix; and fits."""

    def __init__(
        self, documents: Documents, kind: Features, task: Task, device: torch.device | str
    ) -> None:
        parts = (documents.training, documents.validation)
        self._config = ModelConfig(
            alphabet_size=parts[0].grammars.alphabet_size,
            outputs=task.outputs,
            task=task.name,
            model="ngram",
            ngrams=kind.ngrams,
            phrases=0,
            shared_ngrams=kind.shared,
            ngram_counts=kind.counts,
            ngram_buckets=1 << int(np.clip((16 * documents.symbols).bit_length(), *_BUCKETS)),
            shared_rules=len(parts[0].grammars.rulebook or ()),
        )
        self._task, self._device = task, device
        empty_cache()  # a GPU held it for something of another size
        counted = cast(HashedCounter, self._config.counted)
        counts = [counted.count(some) for part in parts for some in grammars_of(part)]
        frequencies = torch.zeros(counted.columns, dtype=torch.int64)
        for some in counts:
            frequencies += torch.bincount(torch.from_numpy(some.indices), minlength=counted.columns)
        self._model = counting_model(self._config, frequencies.numpy(), len(documents)).to(device)
        self._bag = cast(NgramBag, self._model.bag)
        self._matrix = SparseRows.stacked(map(self._entries, counts), len(self._bag.idf))
        self._targets = torch.from_numpy(np.concatenate([targets_of(each) for each in parts]))
        self._targets = self._targets.to(device)
        self._weights = torch.from_numpy(documents.weights).double()

    @property
    def can_tell(self) -> bool:
        """Whether columns can weigh by how they tell classes apart."""
        return can_tell(self._task, self._matrix.width)

    def told_apart(self, rows: Int64s) -> _Matrix:
        """Return what documents count, weighed by how columns tell the classes of rows apart."""
        empty_cache()
        known = torch.from_numpy(rows).to(self._device)
        factors = telling(self._matrix, self._targets, self._task, known)
        # Rows of the model's table, which are in the order of its columns.
        second = 1 + int((self._bag.places[: self._bag.first_shared] > 0).sum())
        made = copy(self)
        made._matrix = self._matrix.reweighed(factors, second)
        made._model = deepcopy(self._model)
        made._bag = cast(NgramBag, made._model.bag)
        made._bag.idf *= factors
        return made

    def of_splits(self, splits: Sequence[Split], told_apart: bool) -> list[_Matrix]:
        """Return one for each split: itself or, if `told_apart`, by documents that train there."""
        return [self.told_apart(rows) if told_apart else self for rows, _ in splits]

    def loss(self, outputs: Tensor, rows: Int64s) -> float:
        """Return the mean loss of some rows, calibrated, of outputs of all, [N, K]."""
        where = torch.from_numpy(rows).to(self._device)
        weights = self._weights[torch.from_numpy(rows)]
        return scaled(self._task, outputs[where], self._targets[where], weights).loss

    def fit(
        self, rows: Int64s, strength: float, start: Fit | None, tolerance: float = _CLOSELY
    ) -> Fit:
        """Return the model of some rows; `start` is a fit of some of these."""
        weights = torch.zeros(len(self._matrix), dtype=torch.float64)
        chosen = torch.from_numpy(rows)
        weights[chosen] = self._weights[chosen]
        weights /= weights.sum().clamp(min=torch.finfo(weights.dtype).tiny)
        nothing = Fit.nothing(len(weights), self._task.outputs, self._device)
        return minimised(
            self._matrix,
            lambda outputs: self._task.losses(outputs, self._targets),
            weights.to(self._device),
            1 / (strength * len(rows)),
            nothing if start is None else start,
            tolerance,
        )

    def crossed(
        self, turns: Sequence[Split], strength: float, start: Fit | None
    ) -> tuple[Floats, Fit]:
        """Return what is said of the rows left out in each turn, in their order, and the last fit.

        `start` is a fit of rows that train in all turns.
        """
        fits = [self.fit(rows, strength, start) for rows, _ in turns]
        outs = [out for _, out in turns]
        said = [fit.outputs.cpu().numpy()[out] for fit, out in zip(fits, outs, strict=True)]
        return np.concatenate(said)[np.argsort(np.concatenate(outs))], fits[-1]

    def model_of(self, fit: Fit) -> GrammarModel:
        """Return the model with the weights of a fit."""
        with torch.no_grad():
            weights = self._matrix.transposed_times(fit.added.float())
            self._bag.table.copy_(weights / self._bag.scale)
            self._bag.bias.copy_(fit.bias.float())
        return self._model.cpu().eval()

    def _entries(self, counts: Counts) -> tuple[Tensor, Tensor, Tensor]:
        """Return columns, values and the number of entries of each row, on the device."""
        arrays = counts.indptr, counts.indices, counts.data
        starts, buckets, numbers = (torch.from_numpy(each).to(self._device) for each in arrays)
        owners, documents = torch.repeat_interleave(starts.diff()), len(starts) - 1
        bag = Bag(owners, buckets.long(), numbers.float())
        rows = self._bag.rows(bag)
        values = self._bag.weights(bag, rows, documents)
        kept = rows.nonzero().squeeze(1)
        sizes = torch.bincount(owners.index_select(0, kept), minlength=documents)
        return rows.index_select(0, kept).int(), values.index_select(0, kept), sizes
