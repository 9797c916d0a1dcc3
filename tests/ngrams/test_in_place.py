"""N-grams in their places: against texts that are written out, and in models, from end to end."""

from __future__ import annotations

import pickle
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from laconic import Corpus, GrammarClassifier, compress_many, samples
from laconic.batching import GrammarDataset, collate
from laconic.codecs import CODECS, CodecName
from laconic.forest import Forest, plant
from laconic.inference.explanation import explain, top_phrases
from laconic.inference.predictor import Predictor
from laconic.ngrams.in_place import NgramPlacer
from laconic.nn import GrammarModel, ModelConfig, ModelError
from laconic.nn.levels import sum_levels
from laconic.nn.ngram_vectors import NgramVectors
from laconic.nn.weighted_sums import weighted_sums
from laconic.tasks import Classification
from laconic.training.loop import train
from laconic.training.new_model import _shared_buckets
from laconic.training.progress import Progress
from laconic.training.run import Run
from laconic.training.settings import ConfigError, TrainingConfig

TEXTS = ["how much wood would a woodchuck chuck", "", "x", "banana banana banana", "abcabcabc"]
SMALL: dict[str, Any] = {
    "alphabet_size": 256,
    "outputs": 2,
    "embedding_size": 8,
    "width": 6,
    "local_ngrams": 3,
    "local_buckets": 40,
    "local_size": 5,
    "dropout": 0.0,
}


def bucket(letters: list[int], buckets: int) -> int:
    """As core/hashes.hpp has it: a polynomial of the letters, spread."""
    value = 0
    for letter in letters:
        value = (value * 0x9E3779B97F4A7C15 + letter + 1) % (1 << 64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor % (1 << 64)
    return ((value ^ value >> 33) >> 32) * buckets >> 32


def expansions(forest: Forest) -> list[list[int]]:
    texts = [[letter] for letter in range(forest.alphabet_size)]
    for left, right in forest.children.tolist():
        texts.append(texts[left] + texts[right])
    return texts


def ending_in(forest: Forest, letters: int, buckets: int) -> dict[int, Counter[int]]:
    """The n-grams that end in each place's symbol, from the texts; places as in PlacedNgrams."""
    texts, found = expansions(forest), {}
    for d in range(len(forest)):
        begin, end = forest.sequence_offsets[d : d + 2].tolist()
        text: list[int] = []
        for t, node in enumerate(forest.sequence[begin:end].tolist()):
            before, text = len(text), text + texts[node]
            ends = range(before + 1, len(text) + 1)
            found[t * len(forest) + d] = Counter(
                bucket(text[end - n : end], buckets)
                for end in ends
                for n in range(1, min(letters, end) + 1)
            )
    return found


@settings(max_examples=150)
@given(
    st.lists(st.text("ab c", max_size=50), min_size=1, max_size=4),
    st.sampled_from(sorted(CODECS)),
    st.integers(1, 9),
    st.booleans(),
)
def test_they_are_those_of_the_text(
    texts: list[str], codec: CodecName, letters: int, merge: bool
) -> None:
    forest = plant(compress_many(texts, codec), merge)
    placed = NgramPlacer(letters, 10**6).place(forest)
    assert (np.diff(placed.nodes) >= 0).all()
    within: dict[int, Counter[int]] = {}
    for node, found in zip(placed.nodes.tolist(), placed.node_buckets.tolist(), strict=True):
        within.setdefault(node, Counter())[found] += 1
    for k, (left, right) in enumerate(forest.children.tolist()):
        node = forest.alphabet_size + k
        within[node] = within.get(node, Counter()) + within[left] + within[right]
    across: dict[int, Counter[int]] = {}
    for place, found in zip(placed.places.tolist(), placed.place_buckets.tolist(), strict=True):
        across.setdefault(place, Counter())[found] += 1
    wanted = ending_in(forest, letters, 10**6)
    for d in range(len(forest)):
        begin, end = forest.sequence_offsets[d : d + 2].tolist()
        for t, node in enumerate(forest.sequence[begin:end].tolist()):
            place = t * len(forest) + d
            assert within[node] + across.get(place, Counter()) == wanted[place]
    assert set(across) <= set(wanted)


@pytest.mark.parametrize(("letters", "buckets"), [(0, 5), (65, 5), (3, 0), (3, 1 << 31)])
def test_what_cannot_be_told(letters: int, buckets: int) -> None:
    with pytest.raises(ValueError, match=r"letters|buckets"):
        NgramPlacer(letters, buckets).place(plant(compress_many(["ab"])))


# The vectors


def test_long_symbols_do_not_drown_others() -> None:
    torch.manual_seed(0)
    model = NgramVectors(1000, 8, 8)
    for text in ("x" * 3000, "GET /index.html 200\n" * 300):
        batch = collate(compress_many([text]), in_place=NgramPlacer(7, 1000))
        assert int(batch.node_lengths[batch.symbols].max()) > 500
        with torch.no_grad():
            assert model(batch).abs().max() < 2


def plainly(model: NgramVectors, forest: Forest, letters: int) -> Tensor:
    """What NgramVectors returns, from the texts, at all places: [B, T, output_size]."""
    counts = np.diff(forest.sequence_offsets)
    longest = int(counts.max(initial=1))
    sums = model.table.new_zeros(len(forest), longest, model.table.shape[1])
    texts = expansions(forest)
    for place, found in ending_in(forest, letters, len(model.table)).items():
        t, d = divmod(place, len(forest))
        for row, count in found.items():
            sums[d, t] = sums[d, t] + count * model.table[row]
        node = forest.sequence[forest.sequence_offsets[d] + t]
        sums[d, t] = sums[d, t] * min(1, 16 / len(texts[node]))
    sums = sums + 0 * model.table.sum()  # an empty text, too, has a gradient
    made: Tensor = model.project(F.gelu(sums + model.bias))
    return made


@settings(max_examples=40)
@given(
    st.lists(st.text("ab", max_size=60), min_size=1, max_size=4), st.sampled_from(sorted(CODECS))
)
def test_vectors_and_their_gradients(texts: list[str], codec: CodecName) -> None:
    torch.manual_seed(0)
    model = NgramVectors(20, 3, 4).double()
    grammars = compress_many(texts, codec)
    batch = collate(grammars, in_place=NgramPlacer(3, 20))
    found = []
    for made in (model(batch), plainly(model, plant(grammars), 3)):
        made = made * batch.mask[..., None]  # What stands in the padding means nothing.
        gradients = torch.autograd.grad(made.square().sum(), list(model.parameters()))
        found.append([made.detach(), *gradients])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-10)


def test_sums_have_the_gradients_of_finite_differences() -> None:
    torch.manual_seed(0)
    own = torch.randn(7, 2, dtype=torch.float64, requires_grad=True)
    children = torch.tensor([[0, 1], [1, 2], [3, 3], [4, 0]], dtype=torch.int32)
    check = torch.autograd.gradcheck
    assert check(lambda x: sum_levels(x, children, (0, 2, 3, 4)), own)  # type: ignore[no-untyped-call]
    table = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    rows, into = torch.tensor([1, 0, 1, 3, 3]), torch.tensor([2, 0, 2, 1, 0])
    weights = torch.rand(5, dtype=torch.float64)
    assert check(lambda x: weighted_sums(x, rows, weights, into, 4), table)  # type: ignore[no-untyped-call]


def test_dropout_leaves_out_and_makes_up_for_it() -> None:
    torch.manual_seed(0)
    batch = collate(compress_many(["abracadabra" * 20], "none"), in_place=NgramPlacer(4, 50))
    assert batch.in_place is not None
    model = NgramVectors(50, 2, 2, dropout=0.5)
    torch.nn.init.ones_(model.table)
    entries = len(batch.in_place.places)
    with torch.no_grad():
        found = model._sums(batch.in_place.place_buckets, batch.in_place.places, 220)[:, 0]
    assert set(found.tolist()) <= {2.0 * k for k in range(4)}
    assert 0.9 * entries < float(found.sum()) < 1.1 * entries
    model.eval()
    with torch.no_grad():
        found = model._sums(batch.in_place.place_buckets, batch.in_place.places, 220)[:, 0]
    assert float(found.sum()) == entries


def test_ngrams_without_a_row_say_nothing() -> None:
    torch.manual_seed(0)
    batch = collate(compress_many(["abab", "xyz"]), in_place=NgramPlacer(2, 30))
    model = NgramVectors(30, 3, 4, rows=2).double()
    silent = model(batch)
    assert torch.allclose(silent, silent[0, 0].expand_as(silent)), "before it has learned"
    with pytest.raises(ValueError, match="3 buckets are known, and there are 2 rows"):
        model.learn(torch.arange(30) < 3)
    ab, ba = bucket([97, 98], 30), bucket([98, 97], 30)
    known = torch.zeros(30, dtype=torch.bool)
    known[[ab, ba]] = True
    model.learn(known)
    every = NgramVectors(30, 3, 4).double()
    every.load_state_dict({**model.state_dict(), "table": torch.zeros(30, 3)}, strict=False)
    with torch.no_grad():
        every.table[sorted([ab, ba])] = model.table[1:]
    assert torch.allclose(model(batch), every(batch), atol=1e-12)
    model(batch).square().sum().backward()
    assert model.table.grad is not None
    assert not model.table.grad[0].any()
    assert model.table.grad[1:].any()


# In models


def small_model(**changes: Any) -> GrammarModel:
    torch.manual_seed(0)
    return GrammarModel(ModelConfig(**(SMALL | changes)))


@pytest.mark.parametrize("composer", ["grc", "linear_recurrence"])
@pytest.mark.parametrize("codec", CODECS)
def test_merging_and_batch_mates_change_nothing(composer: str, codec: CodecName) -> None:
    model = small_model(composer=composer).double().eval()
    grammars, ngrams = compress_many(TEXTS, codec), model.config.in_place
    merged = model(collate(grammars, in_place=ngrams))
    assert torch.allclose(
        model(collate(grammars, merge=False, in_place=ngrams)), merged, atol=1e-10
    )
    alone = [model(collate(grammars[i : i + 1], in_place=ngrams)) for i in range(len(TEXTS))]
    assert torch.allclose(torch.cat(alone), merged, atol=1e-10)
    plain = GrammarModel(replace(model.config, local_ngrams=0)).double().eval()
    plain.load_state_dict(
        {name: each for name, each in model.state_dict().items() if not name.startswith("local.")}
    )
    assert not torch.allclose(plain(collate(grammars)), merged, atol=1e-4), "they are read"


@pytest.mark.parametrize("sequence_model", ["lstm", "cnn"])
def test_no_documents_give_no_outputs(sequence_model: str) -> None:
    model = small_model(sequence_model=sequence_model)
    assert model(collate(compress_many([]), in_place=model.config.in_place)).shape == (0, 2)


def test_a_batch_without_them_is_refused() -> None:
    with pytest.raises(ModelError, match=r"in_place=model\.config\.in_place"):
        small_model()(collate(compress_many(TEXTS)))


@pytest.mark.parametrize(
    "wrong",
    [{"local_ngrams": 65}, {"local_buckets": 0}, {"local_size": 0}, {"local_dropout": 1.0}],
)
def test_settings_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ModelError, match=next(iter(wrong))):
        ModelConfig(**(SMALL | wrong))
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        TrainingConfig(**wrong)


def test_a_model_that_only_counts_has_none() -> None:
    config = ModelConfig(**(SMALL | {"model": "ngram"}))
    assert config.in_place is None
    assert [name for name, _ in GrammarModel(config).named_parameters()] == [
        "bag.table",
        "bag.bias",
    ]


def test_saved_and_told_of(tmp_path: Path) -> None:
    model = small_model().eval()
    model.save_pretrained(tmp_path)
    loaded = GrammarModel.from_pretrained(tmp_path)
    batch = collate(compress_many(TEXTS), in_place=loaded.config.in_place)
    torch.testing.assert_close(loaded(batch), model(batch))
    assert (
        "n-grams of up to 3 letters that end in each symbol" in (tmp_path / "README.md").read_text()
    )


def test_files_cannot_name_rows_that_there_are_not(tmp_path: Path) -> None:
    model = small_model(local_rows=7)
    assert model.local is not None
    assert model.local.rows_of is not None
    for wrong in (8, -1):
        model.local.rows_of[3] = wrong
        model.save_pretrained(tmp_path)
        with pytest.raises(ModelError, match=r"local\.rows_of"):
            GrammarModel.from_pretrained(tmp_path)


def test_prediction_and_explanation() -> None:
    model = small_model().eval()
    task, grammars = Classification(("no", "yes")), compress_many(TEXTS)
    corpus = Corpus.from_documents(TEXTS)
    with torch.no_grad():
        wanted = model(collate(grammars, in_place=model.config.in_place)).numpy()
    for options in ({}, {"batch_size": 2, "workers": 1}, {"budget": 9, "cache": 100}):
        predictor = Predictor(model, task, corpus.codec, corpus.alphabet, "cpu", **options)
        np.testing.assert_allclose(predictor.outputs(TEXTS), wanted, atol=1e-6)
    found = explain(predictor, TEXTS[0], "yes", method="integrated", steps=64)
    total = sum(piece.score for piece in found.pieces)
    assert total == pytest.approx(found.value - found.base, abs=0.02)
    assert top_phrases(predictor, TEXTS, per_class=3, min_count=1)["yes"]


# In training

TINY = TrainingConfig(
    embedding_size=16,
    width=16,
    epochs=3,
    batch_size=16,
    seed=5,
    local_ngrams=4,
    local_buckets=2000,
    local_size=8,
    grammar_dropout=0.2,
    checkpoint_minutes=0.0,
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    split = samples.load("kjv").train
    return Corpus.from_documents([text[:120] for text in split.documents[:80]], split.labels[:80])


def test_killed_and_resumed_is_as_if_nothing_had_been(corpus: Corpus, tmp_path: Path) -> None:
    class Stop(Exception):  # noqa: N818
        pass

    def stop(at: Progress) -> None:
        if (at.epoch, at.step) == (2, 2):
            raise Stop

    whole = train(corpus, TINY)
    with pytest.raises(Stop):
        train(corpus, TINY, tmp_path / "run", progress=stop)
    resumed = train(corpus, TINY, tmp_path / "run", resume=True)
    again = Run.open(tmp_path / "run").model().state_dict()
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name])
        assert torch.equal(weight, again[name])
    assert whole.model.local is not None
    assert whole.model.config.local_rows == len(whole.model.local.table) - 1 < 2000
    shorter = train(corpus, replace(TINY, epochs=1)).model.local
    assert shorter is not None
    assert not torch.equal(whole.model.local.table, shorter.table), "it is learned"


@settings(max_examples=60)
@given(
    st.lists(st.text("abcd", max_size=30), min_size=1, max_size=6), st.sampled_from(sorted(CODECS))
)
def test_rows_are_for_what_two_documents_have(texts: list[str], codec: CodecName) -> None:
    grammars, buckets = compress_many(texts, codec), 10**5
    dataset = GrammarDataset(grammars)
    have: Counter[int] = Counter()
    for text in texts:
        letters = [*text.encode()]
        ends = [(n, end) for n in (1, 2, 3) for end in range(n, len(letters) + 1)]
        have.update({bucket(letters[end - n : end], buckets) for n, end in ends})
    wanted = {each for each, documents in have.items() if documents >= 2}
    for one_by_one in (False, True):
        with pytest.MonkeyPatch.context() as patched:
            if one_by_one:
                patched.setattr("laconic.ngrams.hashed._PORTION", 1)
            shared = _shared_buckets([dataset.grammars], NgramPlacer(3, buckets))
            assert set(np.flatnonzero(shared).tolist()) == wanted


def test_what_training_does_not_know_says_nothing() -> None:
    texts = ["good day", "bad day", "good night", "bad night"] * 5
    corpus = Corpus.from_documents(texts, [0, 1] * 10)
    local = train(corpus, replace(TINY, local_ngrams=1)).model.local
    assert local is not None
    batch = collate(compress_many(["QQ", "", "good"], "none"), in_place=NgramPlacer(1, 2000))
    with torch.no_grad():
        told = local.eval()(batch)
    assert torch.equal(told[0, 0], told[1, 0]), "as where there is nothing"
    assert not torch.equal(told[2, 0], told[1, 0])


def test_the_estimator_passes_them_on_and_can_be_pickled() -> None:
    texts = ["good day", "bad day", "good night", "bad night"] * 5
    sizes = {"embedding_size": 8, "width": 8, "local_buckets": 500, "local_size": 8}
    sizes |= {"model": "sequence"}
    classifier = GrammarClassifier(local_ngrams=3, max_epochs=8, learning_rate=0.02, **sizes)
    classifier.set_params(local_dropout=0.1, random_state=0).fit(texts, ["+", "-"] * 10)
    assert classifier.model_.config.local_ngrams == 3
    assert classifier.score(texts, ["+", "-"] * 10) == 1
    again = pickle.loads(pickle.dumps(classifier))
    assert np.array_equal(again.predict_proba(texts), classifier.predict_proba(texts))
