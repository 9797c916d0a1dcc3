"""Vectors of shared symbols: which have one, and that they depend on nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from laconic import Grammars, Rulebook, compress_many
from laconic.batching import Batch, GrammarDataset, collate
from laconic.inference.state_cache import StateCache
from laconic.nn import GrammarModel, ModelConfig
from laconic.nn.config import ModelError
from laconic.nn.residuals import Residuals
from laconic.samples import load
from laconic.training.new_model import new_model

TEXTS = load("kjv").train.documents[:40]
BOOK = Rulebook.learn(TEXTS, 200)
TINY: dict[str, Any] = {"alphabet_size": 256, "outputs": 2, "embedding_size": 8, "width": 8}


def dataset(rulebook: Rulebook | None = BOOK) -> GrammarDataset:
    return GrammarDataset(compress_many(TEXTS, rulebook=rulebook), [0, 1] * 20)


def model(**settings: Any) -> GrammarModel:
    torch.manual_seed(0)
    return new_model(ModelConfig(**TINY | settings), dataset()).eval()


def batch(*texts: str, codec: Any = "repair") -> Batch:
    return collate(compress_many(texts, codec, rulebook=BOOK))


def states_of_sequence(made: GrammarModel, read: Batch) -> torch.Tensor:
    return made.states(read)[read.symbols[0].long()]


@pytest.mark.parametrize("documents", [1, 5, 41])
def test_symbols_of_enough_documents_have_vectors(documents: int) -> None:
    made, data = model(residual_documents=documents), dataset()
    uses = np.zeros(len(BOOK), int)
    for grammar in data.grammars:
        used = np.unique(np.concatenate([grammar.sequence, grammar.rules.ravel()])) - 256
        uses[used[(used >= 0) & (used < len(BOOK))]] += 1
    known = uses >= documents
    assert made.config.shared_rules == len(BOOK)
    assert made.config.residual_rows == known.sum() < len(BOOK) + (documents == 1)
    if made.residuals is None:
        assert not known.any()
    else:
        assert ((made.residuals.rows_of[:-1] >= 0).numpy() == known).all()


@pytest.mark.parametrize("composer", ["grc", "dual_gru", "mlp", "tree_lstm"])
def test_states_do_not_depend_on_other_documents_nor_on_the_cache(composer: str) -> None:
    made = model(composer=composer)
    alone, among = batch(TEXTS[0]), batch(TEXTS[0], *TEXTS[5:12])
    torch.testing.assert_close(
        states_of_sequence(made, alone), states_of_sequence(made, among)[: alone.symbols.shape[1]]
    )
    cache = StateCache(100_000)
    cache.states(made, among)
    torch.testing.assert_close(cache.states(made, alone), made.states(alone))
    assert cache.info().hits


def test_a_vector_changes_its_symbol_and_those_above() -> None:
    made = model()
    assert made.residuals is not None
    read = batch(TEXTS[0])
    before = made.states(read).detach().clone()
    used = read.node_shared[read.node_shared >= 0]
    rows = made.residuals.rows_of[used.long()]
    row = int(rows[rows >= 0][0])
    made.residuals.table.data[row] += 1
    changed = (made.states(read) != before).any(1)
    nodes = torch.arange(len(changed))[changed]
    own = made.residuals.rows_of[read.node_shared.long()] == row
    assert changed[own].all()
    assert len(nodes) >= own.sum() == 1
    for node in nodes.tolist():
        below = read.children[node - 256].long()
        assert own[node] or changed[below].any()


def test_a_rule_of_a_document_that_is_like_a_shared_one_is_that_one() -> None:
    # Across words no shared rule is used, so that a document makes a rule of its own of them.
    book = Rulebook("bytes", [[97, 98]])
    like = Grammars(256, [[97, 98]], [0, 1], [257, 256, 257], [0, 3], rulebook=book)
    read = collate(like)
    assert len(read.children) == 1
    assert read.node_shared[256] == 0
    assert len(set(read.symbols[0].tolist())) == 1


def test_training_leaves_some_out_and_reaches_all() -> None:
    made = model(residual_dropout=0.5).train()
    assert made.residuals is not None
    read = dataset().batch(range(40))
    torch.manual_seed(1)
    gradients = []
    for _ in range(2):
        made.zero_grad()
        made.loss(made(read), torch.tensor([0, 1] * 20)).backward()
        assert made.residuals.table.grad is not None
        gradients.append(made.residuals.table.grad.abs().sum(1) > 0)
    assert 0.2 < gradients[0].float().mean() < 0.8
    assert (gradients[0] != gradients[1]).any()


def test_without_a_rulebook_and_with_maps_there_are_none() -> None:
    torch.manual_seed(0)
    plain = new_model(ModelConfig(**TINY), dataset(None))
    assert plain.residuals is None
    assert plain.config.shared_rules == 0
    mapped = model(composer="linear_recurrence")
    assert mapped.residuals is None
    assert mapped.config.shared_rules == len(BOOK)


def test_symbols_of_a_larger_rulebook_have_none() -> None:
    residuals = Residuals(symbols=2, rows=2, size=3)
    residuals.learn(torch.tensor([True, True]))
    assert not residuals(torch.tensor([-1, 2, 7])).any()


def test_rows_that_there_are_not_are_refused(tmp_path: Path) -> None:
    made = model()
    made.save_pretrained(tmp_path / "model")
    again = GrammarModel.from_pretrained(tmp_path / "model")
    read = batch(TEXTS[3])
    torch.testing.assert_close(again(read), made(read))
    path = tmp_path / "model" / "model.safetensors"
    weights = load_file(path)
    for wrong in (-2, 10_000):
        bad = weights["residuals.rows_of"].clone()
        bad[3] = wrong
        save_file(weights | {"residuals.rows_of": bad}, path)
        with pytest.raises(ModelError, match=r"residuals\.rows_of is not within"):
            GrammarModel.from_pretrained(tmp_path / "model")
    with pytest.raises(ModelError, match="residual_rows must be an integer from 0 to 200"):
        replace(made.config, residual_rows=201)
