"""What runs on a CUDA device equals what runs on the CPU, and captured graphs equal both."""

from __future__ import annotations

import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from laconic import Corpus, Rulebook, compress_many, samples
from laconic.batching import Batch, GrammarDataset, LengthSampler, batches, collate
from laconic.nn import COMPOSERS, GrammarModel, ModelConfig, ModelError
from laconic.nn.composers import make_composer
from laconic.nn.forward import ForwardPass
from laconic.nn.graphs import Captured, GraphMemory, captured_inference, captured_training
from laconic.nn.levels import compose_levels, compose_levels_plainly
from laconic.nn.long_sequences import read, read_in_parts
from laconic.nn.steps import CapturedStep
from laconic.training.loop import train
from laconic.training.losses import losses_of_views
from laconic.training.new_model import new_model
from laconic.training.settings import TrainingConfig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.usefixtures("exact"),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]
SEQUENCE_MODELS = ["lstm", "gru", "rnn", "cnn", "transformer"]


def small_model(**changes: Any) -> GrammarModel:
    torch.manual_seed(0)
    sizes = {"alphabet_size": 256, "embedding_size": 32, "width": 32, "outputs": 2, "dropout": 0.0}
    return GrammarModel(ModelConfig(**(sizes | changes)))


def kjv(count: int, codec: Any = "repair") -> GrammarDataset:
    documents = [*samples.load("kjv").train.documents[: count - 2], "", "x"]
    return GrammarDataset(compress_many(documents, codec), [i % 2 for i in range(count)])


def gradients(model: GrammarModel, batch: Batch) -> dict[str, Tensor]:
    model.zero_grad()
    assert batch.labels is not None
    model.loss(model(batch), batch.labels).backward()
    return {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}


def assert_close(a: dict[str, Tensor], b: dict[str, Tensor], most: float) -> None:
    for name in a.keys() | b.keys():
        one, other = a.get(name), b.get(name)
        if one is None or other is None:  # Graphs give zeros where there is no gradient at all.
            assert all(x is None or not x.any() for x in (one, other)), name
            continue
        scale = max(1e-2, other.abs().max().item())
        assert (one.cpu() - other.cpu()).abs().max().item() <= most * scale, name


def assert_captured(model: GrammarModel, step: Captured, predict: Captured, batch: Batch) -> None:
    """Graphs give the loss, the gradients and the outputs that the model itself does."""
    moved = batch.to("cuda", non_blocking=True)
    assert moved.labels is not None
    loss = step(moved)
    found = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
    outputs = predict(moved)
    assert_close(found, gradients(model, moved), 1e-4)
    assert torch.allclose(outputs, model(moved), atol=1e-5)
    assert torch.allclose(loss, model.loss(model(moved), moved.labels), atol=1e-5)


@pytest.mark.parametrize("composer", sorted(COMPOSERS))
@pytest.mark.parametrize("sequence_model", SEQUENCE_MODELS)
def test_the_device_gives_what_the_cpu_gives(composer: str, sequence_model: str) -> None:
    batch = kjv(20).batch(list(range(20)))
    model = small_model(composer=composer, sequence_model=sequence_model, identity_buckets=99)
    model = model.double()
    wanted, outputs = gradients(model, batch), model(batch)
    model, batch = model.cuda(), batch.to("cuda")
    assert torch.allclose(model(batch).cpu(), outputs, atol=1e-7)
    # The positions' sinusoids are float32 everywhere.
    assert_close(gradients(model, batch), wanted, 1e-5)


@pytest.mark.parametrize("sequence_model", SEQUENCE_MODELS)
def test_batch_mates_and_padding_change_nothing(sequence_model: str) -> None:
    data = kjv(12)
    model = small_model(sequence_model=sequence_model, layers=2).cuda().eval()
    with torch.no_grad():
        together = model(data.batch(list(range(12))).to("cuda"))
        alone = torch.cat([model(data[i].to("cuda")) for i in range(12)])
    assert (together - alone).abs().max() <= 1e-5


def test_bf16_autocast_trains() -> None:
    batch = kjv(20).batch(list(range(20))).to("cuda")
    for name in SEQUENCE_MODELS:
        model = small_model(sequence_model=name).cuda()
        exact = model(batch)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            outputs = model(batch)
            assert batch.labels is not None
            loss = model.loss(outputs, batch.labels)
        loss.backward()  # type: ignore[no-untyped-call]
        assert torch.allclose(outputs.float(), exact, atol=0.1)
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize("composer", ["grc", "dual_gru"])
def test_shared_symbols_with_vectors_of_their_own(composer: str) -> None:
    documents = samples.load("kjv").train.documents[:60]
    book = Rulebook.learn(documents, 500)
    data = GrammarDataset(compress_many(documents, rulebook=book), [0, 1] * 30)
    torch.manual_seed(0)
    config = small_model(composer=composer).config
    model = new_model(replace(config, residual_dropout=0.0), data)
    assert model.residuals is not None
    batch = data.batch(list(range(20)))
    exact = copy.deepcopy(model).double()
    wanted, outputs = gradients(exact, batch), exact(batch)
    assert wanted["residuals.table"].any()
    model = model.cuda()
    assert torch.allclose(model(batch.to("cuda")).double().cpu(), outputs, atol=1e-4)
    assert_close(
        gradients(model, batch.to("cuda")), {k: v.float() for k, v in wanted.items()}, 1e-3
    )
    step, predict = captured_training(model), captured_inference(model)
    for begin in (0, 20, 40):
        assert_captured(model, step, predict, data.batch(list(range(begin, begin + 20))))


@pytest.mark.parametrize("codec", ["repair", "lzd", "none"])
@pytest.mark.parametrize("composer", ["grc", "dual_gru", "linear_recurrence"])
def test_captured_steps_are_steps(codec: str, composer: str) -> None:
    data = kjv(300, codec)
    model = small_model(composer=composer).cuda()
    step, predict = captured_training(model), captured_inference(model)
    sampler = LengthSampler(data.sequence_lengths, 24, seed=3)
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in batches(data, sampler, pin_memory=True):
            assert_captured(model, step, predict, batch)
    assert len(step) < len(sampler) * 2


def counting_model(kind: str, data: GrammarDataset, **changes: Any) -> GrammarModel:
    """A model that knows the n-grams of some documents."""
    chosen = {"model": kind, "ngrams": 4, "phrases": 3, "ngram_buckets": 5000} | changes
    counted = small_model(**chosen).config.counted
    assert counted is not None
    found = np.bincount(counted.count(data.grammars).indices, minlength=counted.columns)
    model = small_model(**chosen, ngram_rows=int(np.count_nonzero(found)))
    assert model.bag is not None
    model.bag.learn(torch.from_numpy(found), len(data))
    torch.nn.init.normal_(model.bag.table, std=0.1)
    return model


def reading_model() -> GrammarModel:
    """A model that reads n-grams in their places."""
    sizes = {"local_buckets": 500, "local_size": 8, "local_rows": 400}
    model = small_model(local_ngrams=4, local_dropout=0.0, **sizes)
    assert model.local is not None
    model.local.learn(torch.arange(500) % 5 > 0)  # training, too, gives rows to some
    return model


def told(data: GrammarDataset, model: GrammarModel) -> GrammarDataset:
    """The documents with the n-grams that the model needs."""
    return data.changed(counted=model.config.counted, in_place=model.config.in_place)


@pytest.mark.parametrize("kind", ["ngram", "both", "local"])
def test_captured_steps_see_ngrams_as_others_do(kind: str) -> None:
    data = kjv(300)
    model = reading_model() if kind == "local" else counting_model(kind, data)
    data = told(data, model)
    small = data.batch(list(range(20)))
    wanted = gradients(model, small)
    model = model.cuda()
    assert_close(gradients(model, small.to("cuda")), wanted, 1e-4)
    step, predict = captured_training(model), captured_inference(model)
    sampler = LengthSampler(data.sequence_lengths, 24, seed=3)
    for batch in batches(data, sampler, pin_memory=True):
        assert_captured(model, step, predict, batch)
    # A batch whose n-grams outgrow the graph of its shape is captured again.
    for texts in (
        ["ab" * 40] * 8,
        [str(n) * 20 + "".join(map(chr, range(40, 100))) for n in range(8)],
    ):
        grown = told(GrammarDataset(compress_many(texts, "none"), [0, 1] * 4), model)
        batch = grown.batch(range(8)).to("cuda")
        step(batch)
        found = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
        assert_close(found, gradients(model, batch), 1e-4)


def test_training_on_the_device_counts_and_drops() -> None:
    split = samples.load("kjv").train
    corpus = Corpus.from_documents(split.documents[:400], split.labels[:400])
    config = TrainingConfig(model="both", embedding_size=32, width=32, epochs=2, device="cuda")
    config = replace(config, grammar_dropout=0.2, ngram_dropout=0.3, learning_rate=5e-3)
    for graphs in (True, False):
        trained = train(corpus, replace(config, graphs=graphs))
        assert trained.history[-1]["valid"]["accuracy"] > 0.6


@pytest.mark.parametrize("sequence_model", SEQUENCE_MODELS)
def test_every_sequence_model_can_be_captured(sequence_model: str) -> None:
    data = kjv(60)
    model = small_model(sequence_model=sequence_model, layers=2).cuda()
    step = captured_training(model)
    for begin in (0, 20, 40, 0):
        batch = data.batch(list(range(begin, begin + 20))).to("cuda")
        step(batch)
        found = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
        assert_close(found, gradients(model, batch), 1e-4)


def test_losses_of_views_can_be_captured() -> None:
    data = kjv(40)
    model = counting_model("both", data).cuda()
    data = told(data, model)

    def loss(batch: Batch) -> Tensor:
        assert batch.labels is not None
        return losses_of_views(model.loss, model.views(batch), batch.labels, weight=0.5)

    step = captured_training(model, None, loss)
    for begin in (0, 20):
        batch = data.batch(list(range(begin, begin + 20))).to("cuda")
        step(batch)
        found = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
        model.zero_grad()
        loss(batch).backward()  # type: ignore[no-untyped-call]
        wanted = {n: p.grad.cpu() for n, p in model.named_parameters() if p.grad is not None}
        assert_close(found, wanted, 1e-4)


def test_captured_training_learns_with_dropout_and_bf16() -> None:
    texts = ["the lord said " * 9, "and it came to pass " * 9] * 16
    batch = collate(compress_many(texts), [0, 1] * 16).to("cuda")
    model = small_model(dropout=0.3).cuda()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3, fused=True)
    step = captured_training(model, autocast=torch.bfloat16)
    losses = []
    for _ in range(60):
        losses.append(step(batch))
        optimizer.step()
        optimizer.zero_grad()  # not needed, and harmless
    first, last = losses[0].item(), losses[-1].item()
    assert len({loss.item() for loss in losses}) > 40, "dropout draws anew at each replay"
    assert last < 0.2 * first


def test_batches_need_not_count_what_the_model_does() -> None:
    """As for explanations of what a model reads, where it counts, too."""
    data = kjv(40)
    model = counting_model("both", data).cuda().eval()
    forward = ForwardPass(model)
    found = list(forward.batches(data.changed(counted=None, in_place=model.config.in_place)))
    assert sum(map(len, found)) == 40
    assert all(batch.bag is None for batch in found)
    assert forward.size.measured


def test_memory_of_graphs_is_used_until_they_are_done() -> None:
    """Larger and larger batches, each of which makes the graphs before it useless."""
    data = kjv(60)
    model = counting_model("both", data).cuda().eval()
    data = told(data, model)
    infer = captured_inference(model)
    batches = [data.batch(np.arange(count) % 60).to("cuda") for count in (2, 4, 8, 16, 32, 64)]
    for _ in range(3):
        found = [[infer(batch) for _ in range(20)][-1] for batch in batches]
        infer.clear()
    with torch.no_grad():
        wanted = [model(batch) for batch in batches]
    for one, other in zip(found, wanted, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_graphs_read_from_the_same_memory() -> None:
    data = kjv(60)
    model = counting_model("both", data).cuda().eval()
    data = told(data, model)
    infer = captured_inference(model)
    for _ in range(2):
        for count in (60, 30, 15, 45):
            batch = data.batch(range(count)).to("cuda")
            with torch.no_grad():
                assert torch.allclose(infer(batch), model(batch), atol=1e-4)
    read = [graph.batch.symbols.untyped_storage() for graph in infer._graphs.values()]
    assert len(read) == 4
    assert len({each.data_ptr() for each in read}) == 1


@pytest.mark.parametrize("kernels", [True, False])
@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_captured_steps_train_as_plain_ones(kind: Any, clip: float | None, kernels: bool) -> None:
    data = kjv(60)
    models = [counting_model("both", data).cuda() for _ in range(2)]
    data = told(data, models[0])
    for model in models:
        model.kernels = kernels
    optimizers = [kind(m.parameters(), 1e-3, weight_decay=0.01, fused=True) for m in models]
    step = CapturedStep(models[0], optimizers[0], clip=clip)
    # Of one batch and of several, of equal and of different sizes; the last is longer than others.
    groups = [[20], [13, 7], [20], [5, 5, 10], [20, 20, 20]]
    for number, sizes in enumerate(groups):
        ends = np.cumsum([number, *sizes])
        rows = [np.arange(a, b) % 60 for a, b in pairwise(ends.tolist())]
        group = [data.batch(each).to("cuda") for each in rows]
        for optimizer in optimizers:
            optimizer.param_groups[0]["lr"] = 1e-3 / (1 + number)
        loss = step(group)
        whole = data.batch(np.concatenate(rows)).to("cuda")
        gradients(models[0], whole)  # what others find meanwhile is no part of a step
        models[1].zero_grad()
        assert whole.labels is not None
        wanted = models[1].loss(models[1](whole), whole.labels)
        wanted.backward()  # type: ignore[no-untyped-call]
        if clip:
            torch.nn.utils.clip_grad_norm_(models[1].parameters(), clip)
        optimizers[1].step()
        assert torch.allclose(loss, wanted, atol=1e-4)
    # Adam divides by what may be next to nothing: where it does, roundings decide.
    for one, other in zip(*(model.parameters() for model in models), strict=True):
        # Some weights, which close gates, are so large that they decay by whole roundings.
        assert ((one - other).abs() / other.abs().clamp(min=1)).mean() < 2e-5
        assert optimizers[0].state[one]["step"] == len(groups)


def test_another_alphabet_is_refused_by_captured_models_too() -> None:
    predict = captured_inference(small_model().cuda())
    predict(kjv(5)[0].to("cuda"))
    with pytest.raises(ModelError, match="for 256 terminals"):
        predict(collate(compress_many(["ACGT"], alphabet="dna")).to("cuda"))


def test_batches_on_the_cpu_are_refused() -> None:
    with pytest.raises(ValueError, match="need batches on the device"):
        captured_inference(small_model().cuda())(kjv(5)[0])


def test_peak_memory_is_the_states_and_one_level() -> None:
    composer: Any = make_composer("grc", 200).cuda()
    offsets = range(0, 60_001, 2000)
    below = [torch.randint(256 + begin, (2000, 2)) for begin in offsets[:-1]]
    children = torch.cat(below).int().cuda()
    leaves = torch.randn(256, 200, device="cuda", requires_grad=True)
    states, level = (256 + len(children)) * 200 * 4, 2000 * 200 * 4
    chosen = composer.compose, list(composer.parameters()), leaves, children, offsets

    def peak(make: Any) -> int:
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        made = make()
        made.backward(torch.ones_like(made))
        return torch.cuda.max_memory_allocated() - before

    peak(lambda: compose_levels(*chosen))
    loop = peak(lambda: compose_levels(*chosen))
    plain = peak(lambda: compose_levels_plainly(chosen[0], *chosen[2:]))
    # States, their gradients as they come in and as they are summed; a level holds 15 times its
    # states in activations of the gates, and as much again in their gradients.
    assert loop <= 3 * states + 30 * level
    assert plain > 5 * loop


@pytest.mark.parametrize("cell", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_sequences_longer_than_cudnn_reads_at_once(cell: Any) -> None:
    torch.manual_seed(0)
    reader, x = cell(3, 4, bidirectional=True), torch.randn(65_540, 1, 3)
    with torch.no_grad():
        wanted = reader(x)[0]
    reader, x = reader.cuda(), x.cuda()
    made = read(reader, x)
    assert torch.allclose(made.detach().cpu(), wanted, atol=1e-4)
    found = []
    for steps in (65_535, 30_000):
        reader.zero_grad()
        read_in_parts(reader, x, steps).square().mean().backward()
        found.append({name: weight.grad.cpu() for name, weight in reader.named_parameters()})
    assert_close(found[0], found[1], 1e-4)


def test_training_and_validation_share_the_memory_of_graphs() -> None:
    data = kjv(120)
    model = small_model().cuda()
    memory = GraphMemory()
    step = captured_training(model, memory=memory)
    predict = captured_inference(model, memory=memory)
    parts = [data.batch(list(range(begin, begin + 24))) for begin in (0, 24, 48, 72, 96)]
    parts.sort(key=lambda batch: -batch.symbols.shape[1])
    step.reserve(parts[0].to("cuda"))
    pool = memory.pool
    for _ in range(2):
        for batch in parts:
            assert_captured(model, step, predict, batch)
    assert memory.pool == pool, "what predicts fits where training is"
    assert len(step)
    assert len(predict)
    long = GrammarDataset(compress_many(["ab" * 3 + "x", "abcdefgh" * 900], "none"), [0, 1])
    assert_captured(model, step, predict, long.batch([0, 1]))
    assert memory.pool != pool
    assert_captured(model, step, predict, parts[0])
    memory.clear()
    assert not len(step)
    assert not len(predict)
    assert_captured(model, step, predict, parts[0])
