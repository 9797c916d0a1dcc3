"""The ordered pass: each document's own outputs, whatever the batches, threads and graphs."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from laconic import Alphabet, Codec, Corpus, compress_many, samples
from laconic.batching import GrammarDataset
from laconic.errors import OutOfMemoryError
from laconic.inference.predictor import Predictor
from laconic.inference.state_cache import StateCache
from laconic.nn import GrammarModel, ModelConfig
from laconic.nn.forward import ForwardPass
from laconic.tasks import Classification
from laconic.training.holdout import divide
from laconic.training.loop import train
from laconic.training.settings import TrainingConfig
from laconic.training.validation import forward_pass, validate

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
KINDS: dict[str, dict[str, Any]] = {
    "sequence": {"identity_buckets": 50},
    "ngram": {"model": "ngram", "ngrams": 3, "phrases": 2, "ngram_buckets": 99, "ngram_rows": 198},
    "both": {"model": "both", "ngrams": 3, "phrases": 2, "ngram_buckets": 99, "ngram_rows": 198},
    "in place": {"local_ngrams": 3, "local_buckets": 50, "local_size": 8},
    "characters": {"composer": "linear_recurrence", "sequence_model": "transformer"},
}


def make_model(kind: str, **changes: Any) -> GrammarModel:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"embedding_size": 16, "width": 16, "dropout": 0.3}
    model = GrammarModel(ModelConfig(256, 3, **sizes | KINDS[kind] | changes))
    if model.bag is not None:
        model.bag.learn(torch.arange(1, 199), 200)
        torch.nn.init.normal_(model.bag.table)
    return model


def documents(count: int, codec: Any = "repair") -> GrammarDataset:
    """Of many lengths, some of them empty."""
    texts = [
        text[: 17 + 53 * k % 700] for k, text in enumerate(samples.load("kjv").train.documents)
    ]
    texts[3] = texts[count // 2] = ""
    return GrammarDataset(compress_many(texts[:count], codec), np.arange(count) % 3)


def one_by_one(model: GrammarModel, dataset: GrammarDataset) -> Any:
    config, device = model.config, next(model.parameters()).device
    told = dataset.changed(counted=config.counted, in_place=config.in_place)
    with torch.no_grad():
        found = [model.eval()(told[row].to(device)) for row in range(len(told))]
    return torch.cat(found).cpu().numpy()


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_those_of_each_document_alone(kind: str) -> None:
    model, dataset = make_model(kind), documents(41)
    wanted = one_by_one(model, dataset)
    model.train()
    for batch_size, budget, threads in ((64, None, 0), (7, None, 2), (41, 90, 1), (1, 1, 0)):
        found = ForwardPass(model, batch_size, budget, threads=threads).outputs(dataset)
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5)
        assert found.dtype == np.float32
    assert model.training
    assert model.dropout.training if model.config.reads_sequences else True
    rows = [30, 3, 11]
    chosen = ForwardPass(model, 2).outputs(dataset.select(rows))
    np.testing.assert_allclose(chosen, wanted[rows], rtol=0, atol=1e-5)
    assert ForwardPass(model).outputs(dataset.select([])).shape == (0, 3)


def test_states_may_come_from_elsewhere() -> None:
    model, dataset = make_model("sequence"), documents(41)
    plain = ForwardPass(model, 5).outputs(dataset)
    cache = StateCache(10_000)
    cached = ForwardPass(model, 5, states=partial(cache.states, model))
    for _ in range(2):
        np.testing.assert_allclose(cached.outputs(dataset), plain, rtol=0, atol=1e-5)
    assert cache.info().hit_rate >= 0.5


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory"),
        RuntimeError("CUDA error: out of memory\nSearch for"),  # the driver's, of a captured graph
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_too_little_memory(error: RuntimeError, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise error

    model = make_model("sequence").train()
    monkeypatch.setattr(model, "read", full)
    told = pytest.warns(UserWarning, match="in smaller pieces from now on")
    with (
        told,
        pytest.raises(OutOfMemoryError, match="one document at a time, too; use device"),
    ):
        ForwardPass(model, 7, 500).outputs(documents(9))
    assert model.training
    other = RuntimeError("something else")
    monkeypatch.setattr(model, "read", lambda *_: (_ for _ in ()).throw(other))
    with pytest.raises(RuntimeError, match="something else"):
        ForwardPass(model, 7, 500).outputs(documents(9))


# ---- on a GPU -----------------------------------------------------------------------------------


def captured(forward: ForwardPass) -> int:
    """How many graphs a pass has captured."""
    return 0 if forward._captured is None else len(forward._captured)


@pytest.mark.gpu
@GPU
@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("codec", ["repair", "none"])
def test_graphs_change_no_outputs(kind: str, codec: str) -> None:
    model, dataset = make_model(kind), documents(75, codec)
    wanted = one_by_one(model, dataset)
    model = model.cuda()
    for batch_size, budget, threads in ((64, None, 0), (7, None, 3), (13, 2000, 0), (1, None, 1)):
        plain = ForwardPass(model, batch_size, budget, threads=threads, graphs=False)
        graphs = ForwardPass(model, batch_size, budget, threads=threads)
        np.testing.assert_allclose(plain.outputs(dataset), wanted, rtol=0, atol=1e-4)
        for _ in range(4):  # as the model, then captured, then again
            np.testing.assert_allclose(graphs.outputs(dataset), wanted, rtol=0, atol=1e-4)
        assert captured(plain) == 0
        assert captured(graphs) > 0


@pytest.mark.gpu
@GPU
@pytest.mark.usefixtures("exact")
def test_graphs_see_weights_that_change_or_move() -> None:
    model, dataset = make_model("both").cuda(), documents(40)
    forward = ForwardPass(model, 8)
    first = [forward.outputs(dataset) for _ in range(4)][-1]
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.05)
    changed = forward.outputs(dataset)
    assert np.abs(changed - first).max() > 1e-3
    np.testing.assert_allclose(changed, one_by_one(model, dataset), rtol=0, atol=1e-4)
    model.cpu()
    np.testing.assert_allclose(forward.outputs(dataset), changed, rtol=0, atol=1e-4)
    # Where the weights were before is somebody else's now.
    others = [torch.ones_like(weight, device="cuda") for weight in model.parameters()]
    model.cuda()
    for _ in range(4):
        np.testing.assert_allclose(forward.outputs(dataset), changed, rtol=0, atol=1e-4)
    assert all(bool((other == 1).all()) for other in others)


@pytest.mark.gpu
@GPU
def test_graphs_in_bf16() -> None:
    model, dataset = make_model("both").cuda(), documents(40)
    wanted = ForwardPass(model, 8, autocast=torch.bfloat16, graphs=False).outputs(dataset)
    forward = ForwardPass(model, 8, autocast=torch.bfloat16)
    for _ in range(4):
        np.testing.assert_allclose(forward.outputs(dataset), wanted, rtol=0.05, atol=0.05)


@pytest.mark.gpu
@GPU
@pytest.mark.usefixtures("exact")
@pytest.mark.parametrize("cache", [0, 10_000])
def test_a_predictor_on_a_gpu(cache: int) -> None:
    model, texts = make_model("both"), samples.load("kjv").test.documents[:200]
    answers = []
    for device in ("cpu", "cuda"):
        predictor = Predictor(
            model,
            Classification(("a", "b", "c")),
            Codec(),
            Alphabet.bytes(),
            device,
            batch_size=9,
            cache=cache,
        )
        answers += [predictor.outputs(texts) for _ in range(4)]
    for each in answers:
        np.testing.assert_allclose(each, answers[0], rtol=0, atol=1e-4)
    assert (captured(predictor.forward) > 0) == (cache == 0)


@pytest.mark.gpu
@GPU
@pytest.mark.usefixtures("exact")
def test_validation_with_graphs_is_that_without() -> None:
    split = samples.load("kjv").train
    texts = [text[:300] for text in split.documents[:300]]
    corpus = Corpus.from_documents(texts, split.labels[:300])
    sizes: dict[str, Any] = {"embedding_size": 32, "width": 32, "epochs": 5, "device": "cuda"}
    config = TrainingConfig(**sizes, batch_size=16)
    trained = train(corpus, config)
    held_out = divide(corpus, None, None, config).validation
    assert held_out is not None
    plainly = forward_pass(trained.model, replace(config, graphs=False))
    wanted = validate(plainly, held_out, trained.task, epoch=5)
    assert trained.history[-1]["valid"]["accuracy"] == wanted["accuracy"]
    assert trained.history[-1]["valid"]["loss"] == pytest.approx(wanted["loss"], abs=1e-4)
