"""GrammarModel: what may not change its outputs, its tasks, and its files."""

from __future__ import annotations

import copy
import json
import pickle
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from laconic import Grammar, Grammars, compress, compress_many, samples
from laconic.batching import Batch, collate
from laconic.codecs import CodecName
from laconic.nn import COMPOSERS, GrammarModel, ModelConfig, ModelError
from laconic.nn.pretrained import save_tensors

TEXTS = ["how much wood would a woodchuck chuck", "", "x", "banana banana banana", "abcdefg"]
SMALL: dict[str, Any] = {
    "alphabet_size": 256,
    "embedding_size": 16,
    "width": 12,
    "outputs": 3,
    "dropout": 0.0,
}
SEQUENCE_MODELS = ["lstm", "gru", "rnn", "cnn", "transformer"]


def small_model(seed: int = 0, **changes: Any) -> GrammarModel:
    torch.manual_seed(seed)
    return GrammarModel(ModelConfig(**(SMALL | changes)))


def outputs_and_gradients(
    model: GrammarModel, batch: Batch, order: Tensor | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """Outputs, and gradients of a sum that weighs every document of the original order apart."""
    model.zero_grad()
    outputs = model(batch)
    weights = torch.cos(torch.arange(outputs.numel(), dtype=outputs.dtype)).view_as(outputs)
    (outputs * (weights if order is None else weights[order])).sum().backward()
    return outputs.detach(), {
        name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None
    }


def assert_same(
    a: tuple[Tensor, dict[str, Tensor]], b: tuple[Tensor, dict[str, Tensor]], most: float
) -> None:
    assert (a[0] - b[0]).abs().max() <= most
    assert a[1].keys() == b[1].keys()
    for name in a[1]:
        assert (a[1][name] - b[1][name]).abs().max() <= most, name


@pytest.mark.parametrize("composer", sorted(COMPOSERS))
@pytest.mark.parametrize("sequence_model", SEQUENCE_MODELS)
def test_merging_changes_nothing(composer: str, sequence_model: str) -> None:
    grammars = compress_many(TEXTS + TEXTS[:2] + ["banana chuck"])
    model = small_model(composer=composer, sequence_model=sequence_model).double()
    merged = outputs_and_gradients(model, collate(grammars))
    apart = outputs_and_gradients(model, collate(grammars, merge=False))
    assert_same(merged, apart, 1e-10)


@pytest.mark.parametrize("composer", sorted(COMPOSERS))
@pytest.mark.parametrize("codec", ["repair", "lzd", "lz78", "none"])
def test_the_order_of_documents_changes_nothing(composer: str, codec: CodecName) -> None:
    grammars = compress_many(TEXTS, codec)
    model = small_model(composer=composer, identity_buckets=7).double()
    order = [3, 1, 4, 0, 2]
    one = outputs_and_gradients(model, collate(grammars))
    shuffled = collate(Grammars.concatenate([grammars[i] for i in order]))
    other = outputs_and_gradients(model, shuffled, torch.tensor(order))
    back = torch.empty_like(other[0])
    back[order] = other[0]
    assert_same(one, (back, other[1]), 1e-10)


@pytest.mark.parametrize("sequence_model", SEQUENCE_MODELS)
@pytest.mark.parametrize("pooling", ["max", "mean", "attention", "last", "length_mean"])
def test_batch_mates_and_padding_change_nothing(sequence_model: str, pooling: str) -> None:
    model = small_model(sequence_model=sequence_model, pooling=pooling, layers=2).eval()
    grammars = compress_many([*TEXTS, "long " * 30])
    with torch.no_grad():
        together = model(collate(grammars))
        alone = torch.cat([model(collate(grammars[i : i + 1])) for i in range(len(grammars))])
    assert together.isfinite().all()
    assert (together - alone).abs().max() <= 1e-6


@pytest.mark.slow
def test_batch_mates_change_nothing_at_full_size() -> None:
    documents = samples.load("kjv").train.documents[:40]
    grammars = compress_many(documents, "repair")
    for composer in ("grc", "dual_gru"):
        torch.manual_seed(0)
        model = GrammarModel(ModelConfig(256, 2, composer=composer)).eval()
        with torch.no_grad():
            together = model(collate(grammars))
            alone = torch.cat([model(collate(grammars[i : i + 1])) for i in range(40)])
        assert (together - alone).abs().max() <= 1e-6


@settings(max_examples=25)
@given(st.lists(st.text("ab", max_size=30), min_size=1, max_size=6), st.integers(0, 100))
def test_any_batch_gives_finite_outputs_and_gradients(texts: list[str], seed: int) -> None:
    model = small_model(seed)
    outputs, gradients = outputs_and_gradients(model, collate(compress_many(texts)))
    assert outputs.shape == (len(texts), 3)
    assert outputs.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients.values())


def test_documents_that_differ_only_in_their_grammar_differ_by_design() -> None:
    # The same text under two codecs is two different inputs; equal grammars are equal inputs.
    model = small_model().eval()
    a, b = compress("abababab"), compress("abababab", codec="none")
    both = model(collate(Grammars.concatenate([a, b, a])))
    assert torch.equal(both[0], both[2])
    assert not torch.allclose(both[0], both[1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("task", "labels", "outputs"),
    [
        ("classification", [0, 2, 1, 1, 0], 3),
        ("multilabel", [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0], [1, 0, 0]], 3),
        ("regression", [0.5, -1.0, 3.25, 0.0, 7.0], 1),
    ],
)
def test_tasks_can_be_learned(task: str, labels: Any, outputs: int) -> None:
    batch = collate(compress_many(TEXTS), labels=np.array(labels))
    model = small_model(task=task, outputs=outputs)
    assert batch.labels is not None
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(400):
        optimizer.zero_grad()
        loss = model.loss(model(batch), batch.labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    if task == "classification":
        assert model(batch).argmax(1).tolist() == labels


def test_length_and_identity_are_told_apart() -> None:
    """Two symbols of equal state differ by their hashed identity only."""
    batch = collate(Grammars.concatenate([Grammar(256, [], [97]), Grammar(256, [], [98])]))
    model = small_model(composer="mlp", identity_buckets=1 << 16).eval()
    with torch.no_grad():
        model.embedding.weight.fill_(0)
        told = model(batch)
        model.identity_embedding = None
        untold = model(batch)
    assert not torch.allclose(told[0], told[1])
    assert torch.equal(untold[0], untold[1])
    assert small_model(composer="mlp").length_embedding is None
    assert small_model(composer="mlp", length_input=True).length_embedding is not None
    assert small_model(composer="grc").length_embedding is not None
    assert small_model(composer="grc", length_input=False).length_embedding is None


def test_a_batch_over_another_alphabet_is_refused() -> None:
    with pytest.raises(ModelError, match="for 256 terminals, the batch has 4; compress with"):
        small_model()(collate(compress_many(["ACGT"], alphabet="dna")))


@pytest.mark.parametrize("compiled", [False, True])
def test_a_copy_is_a_model_of_its_own(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Compiling takes long; who is compiled is the question here.
    monkeypatch.setattr(torch, "compile", lambda cell, dynamic: lambda *both: cell(*both))
    model = small_model().eval()
    model.compile_cell = compiled
    twin = copy.deepcopy(model)
    assert twin.compile_cell == compiled
    pickle.dumps(model)
    batch = collate(compress_many(TEXTS))
    with torch.no_grad():
        before = model(batch)
        for parameter in model.parameters():
            parameter.zero_()
        assert torch.equal(twin(batch), before)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # torch.compile warns of itself
@pytest.mark.parametrize(
    ("texts", "backend", "composer"),
    # A level of one rule is traced anew, for which no other code needs to be compiled.
    [(["aabaab aab", "bbabba bbab"], "inductor", "mlp"), (TEXTS, "aot_eager", "grc")],
)
def test_a_compiled_cell_gives_the_same(
    texts: list[str], backend: str, composer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))
    plain, compiled = small_model(composer=composer), small_model(composer=composer)
    compiled.compile_cell = True
    batch = collate(compress_many(texts))
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    # Compiled here, and not in processes that load torch first; and for any processor, since trying
    # what this one can do takes longer than the rest.
    inductor = import_module("torch._inductor.config")
    with inductor.patch({"compile_threads": 1, "cpp.vec_isa_ok": False}):
        found = outputs_and_gradients(compiled, batch)
    assert_same(outputs_and_gradients(plain, batch), found, 1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] >= 2


def test_bf16_autocast_trains() -> None:
    batch = collate(compress_many(TEXTS), labels=[0, 1, 2, 1, 0])
    assert batch.labels is not None
    changes = [{"sequence_model": name} for name in SEQUENCE_MODELS]
    for change_ in [*changes, *({"composer": name} for name in COMPOSERS)]:
        model = small_model(**change_)
        exact = model(batch)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            outputs = model(batch)
            loss = model.loss(outputs, batch.labels)
            states = model.states(batch)
        loss.backward()
        assert outputs.dtype == states.dtype == torch.float32
        assert torch.allclose(outputs, exact, atol=0.1)
        assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_saved_models_come_back(tmp_path: Path) -> None:
    for number, changes in enumerate(
        [{}, {"composer": "linear_recurrence", "pooling": "attention"}, {"identity_buckets": 5}]
        + [{"sequence_model": name, "layers": 2, "dropout": 0.5} for name in SEQUENCE_MODELS]
    ):
        model = small_model(**changes).eval()
        folder = tmp_path / str(number)
        model.save_pretrained(folder)
        assert sorted(path.name for path in folder.iterdir()) == [
            "README.md",
            "config.json",
            "model.safetensors",
        ]
        assert len({path.stat().st_mode for path in folder.iterdir()}) == 1, "who may read them"
        again = GrammarModel.from_pretrained(folder)
        batch = collate(compress_many(TEXTS))
        for name, weight in model.state_dict().items():
            assert torch.equal(again.state_dict()[name], weight)
        with torch.no_grad():
            assert torch.allclose(again(batch), model(batch), atol=1e-6)
        assert again.config == model.config
        assert not again.training
        again.loss(again(batch), torch.tensor([0, 1, 2, 0, 1])).backward()
        assert all(p.grad is not None for p in again.parameters())
    card = (tmp_path / "0" / "README.md").read_text()
    assert "library_name: laconic" in card
    assert "| `composer` | grc |" in card
    assert "laconic.load(" in card


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    small_model().save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def change(folder: Path, **settings: Any) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def test_symbol_dropout_hides_whole_symbols_in_training_only() -> None:
    batch = collate(compress_many(["abcdefghij" * 20, "x"], "none"))
    model = small_model(symbol_dropout=0.25)
    seen: list[Tensor] = []
    model.sequence_model.register_forward_pre_hook(lambda _, given: seen.append(given[0].detach()))
    for training in (True, True, False):
        model.train(training)
        model(batch)
    first, second, all_of_it = seen
    mask = batch.mask
    hidden = (first[mask] == 0).all(1)
    assert 0.1 < hidden.float().mean() < 0.4
    torch.testing.assert_close(first[mask][~hidden], all_of_it[mask][~hidden] / 0.75)
    assert (hidden != (second[mask] == 0).all(1)).any()
    assert not (all_of_it[mask] == 0).all(1).any()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"widht": 3}, "no setting 'widht'; did you mean 'width'"),
        ({"width": 13}, "has shape .* but by the config"),
        ({"width": 1 << 20, "embedding_size": 1 << 20}, "has shape"),
        ({"width": 10**30}, "width must be an integer from 1 to"),
        ({"layers": 10**9}, "layers must be an integer from 1 to 64"),
        ({"layers": 2}, "misses tensor"),
        ({"identity_buckets": 3}, "misses tensor 'identity_embedding.weight'"),
        ({"length_input": False}, "has a needless tensor 'length_embedding.weight'"),
        ({"composer": "os.system"}, "no composer 'os.system'; there are"),
        ({"composer": ["grc"]}, "composer must be a name"),
        ({"sequence_model": "x"}, "'x'"),
        ({"pooling": "x"}, "'x'"),
        ({"direction": "x"}, "'x'"),
        ({"dropout": "0.5"}, "dropout must be a number"),
        ({"dropout": 1.0}, "less than 1"),
        ({"symbol_dropout": 1.0}, "symbol_dropout must be a number from 0 to less than 1"),
        ({"task": "guess"}, "task must be one of"),
        ({"outputs": True}, "outputs must be an integer"),
        ({"length_input": 1.0}, "length_input must be true or false, or null, not 1.0"),
        ({"compile": True}, "no setting 'compile'"),
        ({"alphabet_size": 255}, "embedding.weight has shape"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(
    saved: Path, settings: dict[str, Any], message: str
) -> None:
    change(saved, **settings)
    with pytest.raises(ModelError, match=message):
        GrammarModel.from_pretrained(saved)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "null", "[" * 100_000, "\ufeff{}", '{"outputs": 2}']
)
def test_what_is_no_config_is_refused(saved: Path, text: str) -> None:
    (saved / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        GrammarModel.from_pretrained(saved)


def test_damaged_weights_are_refused(saved: Path) -> None:
    file = saved / "model.safetensors"
    whole = file.read_bytes()
    random = np.random.default_rng(0)
    for size in [0, 7, 8, 100, len(whole) // 2, len(whole) - 1]:
        file.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"model\.safetensors"):
            GrammarModel.from_pretrained(saved)
    header = int.from_bytes(whole[:8], "little") + 8
    for _ in range(200):
        damaged = bytearray(whole)
        damaged[random.integers(header)] ^= 1 << random.integers(8)
        file.write_bytes(damaged)
        try:
            GrammarModel.from_pretrained(saved)
        except ModelError as error:
            assert "model.safetensors" in str(error)  # noqa: PT017


def test_weights_of_another_type_are_refused(saved: Path) -> None:
    file = saved / "model.safetensors"
    weights = safetensors.torch.load_file(file)
    safetensors.torch.save_file({name: w.half() for name, w in weights.items()}, file)
    with pytest.raises(ModelError, match=r"torch\.float16, not torch\.float32"):
        GrammarModel.from_pretrained(saved)


def test_missing_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"holds no model: config\.json is missing"):
        GrammarModel.from_pretrained(tmp_path)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        GrammarModel.from_pretrained(tmp_path / "nothing")


def test_saving_again_replaces_everything(saved: Path) -> None:
    names = sorted(each.name for each in saved.iterdir())
    small_model(1, composer="mlp").save_pretrained(saved)
    assert sorted(each.name for each in saved.iterdir()) == names
    again = GrammarModel.from_pretrained(saved)
    assert torch.equal(again.head.weight, small_model(1, composer="mlp").head.weight)
    assert "| `composer` | mlp |" in (saved / "README.md").read_text()


def test_a_save_that_fails_leaves_what_was_there(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path.name: path.read_bytes() for path in saved.iterdir()}

    def full(*_: Any, **__: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="no space"):
        small_model(1).save_pretrained(saved)
    assert {path.name: path.read_bytes() for path in saved.iterdir()} == before


def test_weights_that_cannot_be_written_are_a_matter_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(OSError, match=r"x\.safetensors"):
        save_tensors({"a": torch.ones(2)}, tmp_path / "nowhere" / "x.safetensors")


class Forgetful(nn.Module):
    """A composer with a constant that is not saved."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.state_size = self.output_size = size
        self.register_buffer("scale", torch.ones(size), persistent=False)

    def leaf(self, embeddings: Tensor) -> Tensor:
        return embeddings

    def compose(self, left: Tensor, right: Tensor) -> Tensor:
        return (left + right) * cast(Tensor, self.scale)

    def read(self, states: Tensor) -> Tensor:
        return states


def test_a_composer_that_cannot_be_loaded_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(COMPOSERS, "forgetful", Forgetful)
    small_model(composer="forgetful").save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"composer\.scale is not saved .* a persistent buffer"):
        GrammarModel.from_pretrained(tmp_path)


def test_regression_targets_keep_their_digits_under_autocast() -> None:
    model = small_model(task="regression", outputs=1)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        outputs = model(collate(compress_many(["abab"])))
    target = outputs.detach() + 1001
    assert model.loss(outputs, target).item() == pytest.approx(1001**2, rel=1e-5)


@pytest.mark.parametrize("name", SEQUENCE_MODELS)
def test_no_documents_give_no_outputs(name: str) -> None:
    assert small_model(sequence_model=name)(collate(compress_many([]))).shape == (0, 3)


# Models that count


def counting_model(kind: str, texts: list[str], **changes: Any) -> GrammarModel:
    """A model that knows the n-grams of some texts, of random numbers."""
    chosen = {"model": kind, "ngrams": 3, "phrases": 2, "ngram_buckets": 500} | changes
    counted = ModelConfig(**(SMALL | chosen)).counted
    assert counted is not None
    found = np.bincount(counted.count(compress_many(texts)).indices, minlength=counted.columns)
    model = small_model(**chosen, ngram_rows=int(np.count_nonzero(found)))
    assert model.bag is not None
    model.bag.learn(torch.from_numpy(found), len(texts))
    nn.init.normal_(model.bag.table)
    return model


@pytest.mark.parametrize("kind", ["ngram", "both"])
@pytest.mark.parametrize("codec", ["repair", "lzd", "none"])
def test_merging_and_batch_mates_change_nothing_that_is_counted(
    kind: str, codec: CodecName
) -> None:
    model = counting_model(kind, TEXTS[:3]).double()
    grammars, counted = compress_many(TEXTS, codec), model.config.counted
    merged = outputs_and_gradients(model, collate(grammars, counted=counted))
    apart = outputs_and_gradients(model, collate(grammars, merge=False, counted=counted))
    assert_same(merged, apart, 1e-10)
    alone = [model(collate(grammars[i : i + 1], counted=counted)) for i in range(len(TEXTS))]
    assert (torch.cat(alone) - merged[0]).abs().max() < 1e-10


def test_both_is_the_sum_of_the_two() -> None:
    model = counting_model("both", TEXTS)
    batch = collate(compress_many(TEXTS), counted=model.config.counted)
    assert model.bag is not None
    assert batch.bag is not None
    sequence = GrammarModel(ModelConfig(**SMALL))
    shared = {n: w for n, w in model.state_dict().items() if not n.startswith("bag.")}
    sequence.load_state_dict(shared)
    wanted = sequence(batch) + model.bag(batch.bag, len(batch))
    assert torch.allclose(model(batch), wanted, atol=1e-6)
    alone = counting_model("ngram", TEXTS)
    assert [name for name, _ in alone.named_parameters()] == ["bag.table", "bag.bias"]
    assert alone.bag is not None
    assert torch.equal(alone(batch), alone.bag(batch.bag, len(batch)))


@pytest.mark.parametrize("kind", ["ngram", "both"])
def test_models_that_count_are_saved(kind: str, tmp_path: Path) -> None:
    model = counting_model(kind, TEXTS).eval()
    model.save_pretrained(tmp_path)
    loaded = GrammarModel.from_pretrained(tmp_path)
    assert loaded.config == model.config
    batch = collate(compress_many([*TEXTS, "unknown words"]), counted=loaded.config.counted)
    # Not to the last bit: on some processors, sums depend on where in memory weights begin.
    torch.testing.assert_close(loaded(batch), model(batch))
    told = (tmp_path / "README.md").read_text()
    assert "n-grams of up to 3 letters" in told
    assert ("composer\n(`grc`)" in told) == (kind == "both")
    copied = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    torch.testing.assert_close(copied(batch), model(batch))


def test_files_cannot_name_rows_that_there_are_not(tmp_path: Path) -> None:
    model = counting_model("ngram", TEXTS)
    assert model.bag is not None
    model.bag.places[7] = 10**6
    model.save_pretrained(tmp_path)
    with pytest.raises(ModelError, match=r"model\.safetensors: bag\.places is from 0 to 1000000"):
        GrammarModel.from_pretrained(tmp_path)


def test_batches_without_what_is_counted_are_refused() -> None:
    for kind in ("ngram", "both"):
        model = counting_model(kind, TEXTS)
        with pytest.raises(ModelError, match=r"pass counted=model\.config\.counted to collate"):
            model(collate(compress_many(TEXTS)))
        other = compress_many(["ACGT"], alphabet="dna")
        with pytest.raises(ModelError, match="for 256 terminals, the batch has 4"):
            model(collate(other, counted=model.config.counted))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"model": "bag"}, "model must be one of auto, sequence, ngram, both, not 'bag'"),
        ({"ngrams": 0}, "ngrams must be an integer from 1 to 64"),
        ({"ngrams": 65}, "ngrams must be an integer from 1 to 64"),
        ({"phrases": -1}, "phrases must be an integer from 0 to 64"),
        ({"ngram_buckets": 0}, "ngram_buckets must be"),
        ({"ngram_buckets": 10, "ngram_rows": 21}, "ngram_rows must be an integer from 0 to 20"),
        ({"ngram_dropout": 1.0}, "ngram_dropout must be a number from 0 to less than 1"),
        ({"ngram_dropout": "x"}, "ngram_dropout must be a number"),
    ],
)
def test_what_counting_models_cannot_be(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ModelError, match=told):
        ModelConfig(**(SMALL | {"model": "both"} | changes))
