"""Batches: that tensors say what the grammars said, and that samplers keep their promises."""

from __future__ import annotations

import pickle
from dataclasses import fields
from itertools import combinations, pairwise
from random import Random
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from strategies import renamed, valid_grammar

from laconic import Corpus, Grammar, Grammars, compress_many, samples
from laconic.batching import Batch, GrammarDataset, LengthSampler, batches, collate
from laconic.forest import plant

SEEDS = st.integers(0, 2**32)
GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def some_grammars(seed: int, documents: int) -> Grammars:
    random = Random(seed)
    size = random.choice([1, 2, 5, 256])
    none = Grammars(size, [], [0], [], [0])
    made = [Grammar(*renamed(valid_grammar(random, 300), size)) for _ in range(documents)]
    return Grammars.concatenate([none, *made])


def same(one: Batch, other: Batch) -> bool:
    for field in fields(Batch):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if isinstance(left, torch.Tensor):
            if left.dtype != right.dtype or not torch.equal(left, right):
                return False
        elif left != right:
            return False
    return True


# ---- batches ------------------------------------------------------------------------------------


def slow_hash(text: tuple[int, ...]) -> int:
    """What core/forest.cpp says of a text, in Python's integers, as int64."""
    value, bits = 0, 2**64 - 1
    for letter in text:
        value = value * 0x9E3779B97F4A7C15 + letter + 1 & bits
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = (value ^ value >> 33) * factor & bits
    value ^= value >> 33
    return value - 2**64 if value >= 2**63 else value


@given(SEEDS, st.integers(0, 6), st.booleans())
def test_a_batch_says_what_the_grammars_say(seed: int, documents: int, merge: bool) -> None:
    grammars = some_grammars(seed, documents)
    batch = collate(grammars, merge=merge)
    texts: list[tuple[int, ...]] = [(letter,) for letter in range(grammars.alphabet_size)]
    texts += [()] * len(batch.children)
    size = batch.alphabet_size
    for begin, end in pairwise(batch.level_offsets):
        # A level sees those before it alone.
        level = [texts[i] + texts[j] for i, j in batch.children[begin:end].tolist()]
        assert all(len(text) > 1 for text in level)
        texts[size + begin : size + end] = level
    assert batch.level_offsets[-1] == len(batch.children)
    assert len(batch) == documents
    longest = max([1, *(len(grammar.sequence) for grammar in grammars)])
    assert batch.symbols.shape == batch.mask.shape == (documents, longest)
    for d, grammar in enumerate(grammars):
        count = len(grammar.sequence)
        assert batch.sequence_lengths[d] == count
        assert batch.mask[d].tolist() == [True] * count + [False] * (longest - count)
        told = [letter for node in batch.symbols[d, :count].tolist() for letter in texts[node]]
        assert told == grammar.expand().tolist()
        assert not batch.symbols[d, count:].any()
    assert batch.node_lengths.tolist() == [len(text) for text in texts]
    assert batch.node_hashes.tolist() == [slow_hash(text) for text in texts]
    assert batch.labels is None
    assert batch.rows is None
    types = [getattr(batch, name).dtype for name in ("children", "symbols", "sequence_lengths")]
    assert types == [torch.int32, torch.int32, torch.int64]
    assert batch.node_lengths.dtype == batch.node_hashes.dtype == torch.int64
    assert len(batch.children) == len(plant(grammars, merge).children)


def test_different_texts_have_different_hashes() -> None:
    batch = collate(compress_many(samples.load("kjv").train.documents[:300]))
    texts = [bytes([letter]) for letter in range(256)]
    for left, right in batch.children.tolist():
        texts.append(texts[left] + texts[right])
    assert len(set(texts)) > 5000
    assert len(set(batch.node_hashes.tolist())) == len(set(texts))


def test_a_batch_may_be_written_to_and_the_grammars_stay() -> None:
    grammars = compress_many(["abab", "", "xababab"])
    before = pickle.loads(pickle.dumps(grammars))
    labels, rows = torch.tensor([1, 0, 1]), np.array([4, 5, 6])
    batch = collate(grammars, labels, rows)
    for field in fields(Batch):
        if isinstance(value := getattr(batch, field.name), torch.Tensor):
            value.fill_(7)
    assert grammars == before
    assert labels.tolist() == [1, 0, 1]
    assert rows.tolist() == [4, 5, 6]


def test_a_batch_moves_as_one() -> None:
    batch = collate(compress_many(["abab", "x"]), [0.5, 1.5], [3, 4])
    assert repr(batch) == "<Batch: 2 documents of up to 2 symbols, 1 node on 1 level, cpu>"
    moved = batch.to("meta")
    tensors = [value for value in vars(moved).values() if isinstance(value, torch.Tensor)]
    assert len(tensors) == 8
    assert all(tensor.is_meta for tensor in tensors)
    assert moved.level_offsets == batch.level_offsets
    assert moved.mask.is_meta
    assert same(batch.to("cpu", non_blocking=True), batch)
    assert same(pickle.loads(pickle.dumps(batch)), batch)
    assert collate(compress_many([])).symbols.shape == (0, 1)
    assert collate(compress_many([""])).mask.tolist() == [[False]]


@pytest.mark.gpu
@GPU
def test_a_batch_on_a_gpu() -> None:
    dataset = GrammarDataset(compress_many(["abab", "x", "banana"]), [0, 1, 0])
    (batch,) = batches(dataset, LengthSampler(dataset.sequence_lengths), pin_memory=True)
    assert batch.symbols.is_pinned()
    assert batch.labels is not None
    assert batch.labels.is_pinned()
    moved = batch.to("cuda", non_blocking=True)
    assert moved.symbols.is_cuda
    assert same(moved.to("cpu"), batch)


@pytest.mark.parametrize(
    ("labels", "dtype"),
    [
        ([1, 0], torch.int64),
        ([True, False], torch.int64),
        (np.array([1, 0], np.uint8), torch.int64),
        (torch.tensor([1, 0]), torch.int64),
        ([1.0, 0.0], torch.float32),
        (np.array([1, 0], np.float16), torch.float32),
        ([[1, 0, 1], [0, 0, 1]], torch.float32),
        (torch.tensor([[True], [False]]), torch.float32),
    ],
)
def test_labels(labels: Any, dtype: torch.dtype) -> None:
    grammars = compress_many(["abab", "x"])
    batch = collate(grammars, labels)
    assert batch.labels is not None
    assert batch.labels.dtype == dtype
    assert batch.labels.tolist() == torch.as_tensor(labels).tolist()
    taken = GrammarDataset(grammars, labels).batch([1]).labels
    assert taken is not None
    assert taken.dtype == dtype
    assert torch.equal(taken, batch.labels[1:])


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        ([1], ValueError, r"labels of shape \[1\] for 2 documents; pass one number"),
        (3, ValueError, r"labels of shape \[\] for"),
        ([[[1]], [[2]]], ValueError, "pass one number or one row"),
        (["good", "bad"], TypeError, "labels must be numbers, not <U4; number the classes"),
        ([1.0, float("nan")], ValueError, r"label \[1\] is nan, no finite float32"),
        ([[1.0, 1e300], [0, 0]], ValueError, r"label \[0, 1\] is 1e\+300"),
    ],
)
def test_labels_that_are_refused(labels: Any, error: type[Exception], message: str) -> None:
    grammars = compress_many(["abab", "x"])
    for make in (collate, GrammarDataset):
        with pytest.raises(error, match=message):
            make(grammars, labels)
    with pytest.raises(ValueError, match=r"rows of shape \[1\] for 2 documents"):
        collate(grammars, rows=[1])


# ---- datasets -----------------------------------------------------------------------------------


@given(SEEDS, st.integers(1, 6), st.data())
def test_a_dataset_takes_documents_by_row(seed: int, documents: int, data: st.DataObject) -> None:
    grammars = some_grammars(seed, documents)
    dataset = GrammarDataset(grammars, labels=np.arange(documents) * 10)
    assert len(dataset) == documents
    assert dataset.sequence_lengths.tolist() == [len(grammar.sequence) for grammar in grammars]
    rows = data.draw(st.lists(st.integers(-documents, documents - 1), max_size=8))
    there = [row % documents for row in rows]
    none = Grammars(grammars.alphabet_size, [], [0], [], [0])
    chosen = Grammars.concatenate([none, *(grammars[row] for row in there)])
    wanted = collate(chosen, np.array(there, int) * 10, there)
    assert same(dataset.batch(rows), wanted)
    assert all(same(dataset[row], dataset.batch([row])) for row in rows)
    with pytest.raises(IndexError):
        dataset[documents]


def test_rules_of_documents_stay_apart_if_asked() -> None:
    grammars = compress_many(["abab", "abab"])
    for merge, nodes in ((True, 1), (False, 2)):
        batch = GrammarDataset(grammars, merge=merge).batch([0, 1])
        assert len(batch.children) == nodes
        assert batch.labels is None


def test_a_corpus_gives_its_labels_if_they_are_numbers() -> None:
    def dataset(corpus_labels: Any, labels: Any = None) -> GrammarDataset:
        return GrammarDataset(Corpus.from_documents(["abab", "b"], corpus_labels), labels)

    for labels, dtype in (([3, 4], torch.int64), ([0.5, 1.5], torch.float32)):
        told = dataset(labels).labels
        assert told is not None
        assert told.dtype == dtype
        assert told.tolist() == labels
    told = dataset([True, False]).labels
    assert told is not None
    assert told.tolist() == [1, 0]
    assert dataset(None).labels is None
    assert dataset(["good", "bad"]).labels is None
    for theirs in (["good", "bad"], [3, 4], None):
        told = dataset(theirs, [1, 0]).labels
        assert told is not None
        assert told.tolist() == [1, 0]
    assert repr(dataset([3, 4])) == "<GrammarDataset: 2 documents, labels [2]>"
    assert repr(dataset(None)) == "<GrammarDataset: 2 documents, without labels>"
    with pytest.raises(ValueError, match="document 1: it has no 'label'"):
        dataset([1, None])
    with pytest.raises(TypeError, match="not list"):
        GrammarDataset(["abab"])  # type: ignore[arg-type]


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders(workers: int) -> None:
    kjv = samples.load("kjv").train
    grammars = compress_many(kjv.documents[:60])
    dataset = GrammarDataset(grammars, [kjv.labels.index(label) for label in kjv.labels[:60]])
    sampler = LengthSampler(dataset.sequence_lengths, 7)
    state = torch.get_rng_state()
    loader = batches(dataset, sampler, workers)
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        wanted = [dataset.batch(rows) for rows in sampler]
        found = list(loader)
        assert len(loader) == len(found) == len(wanted) == 9
        assert all(same(*pair) for pair in zip(found, wanted, strict=True))
    sampler.set_epoch(1, start=4)
    assert all(same(*pair) for pair in zip(loader, wanted[4:], strict=True))
    assert torch.equal(state, torch.get_rng_state())
    there = pickle.loads(pickle.dumps(dataset))
    assert same(there.batch([5, 9]), dataset.batch([5, 9]))


# ---- samplers -----------------------------------------------------------------------------------

COUNTS = st.lists(st.integers(0, 12) | st.integers(0, 3000), min_size=1, max_size=60)
OPTIONS = st.fixed_dictionaries(
    {
        "batch_size": st.integers(1, 20),
        "budget": st.none() | st.integers(1, 5000),
        "shuffle": st.booleans(),
        "jitter": st.sampled_from([0.0, 0.1, 0.3, 1.0]),
        "seed": st.integers(0, 2**40),
        "processes": st.integers(1, 4),
    }
)


def everybody(counts: list[int], epoch: int = 0, **options: Any) -> list[list[list[int]]]:
    """The batches of each rank."""
    made = []
    for rank in range(options["processes"]):
        sampler = LengthSampler(counts, **options, rank=rank)
        sampler.set_epoch(epoch)
        made.append(list(sampler))
        assert len(made[-1]) == len(sampler)
    return made


@given(COUNTS, OPTIONS, st.integers(0, 5), st.data())
def test_every_document_is_in_one_batch(
    counts: list[int], options: dict[str, Any], epoch: int, data: st.DataObject
) -> None:
    total = len(counts)
    assume(options["processes"] <= total)
    documents = data.draw(st.none() | st.integers(options["processes"], total), "documents")
    ranks = everybody(counts, epoch, documents=documents, **options)
    assert len({len(rank) for rank in ranks}) == 1
    taken = sorted(row for rank in ranks for batch in rank for row in batch)
    if documents is None:
        assert taken == list(range(total))
    else:
        assert len(taken) == len(set(taken)) == documents
        assert set(taken) <= set(range(total))
    assert all(batch for rank in ranks for batch in rank)
    assert ranks == everybody(counts, epoch, documents=documents, **options)


@given(COUNTS, OPTIONS, st.integers(0, 5))
def test_cuts_by_count_are_even(counts: list[int], options: dict[str, Any], epoch: int) -> None:
    processes, most = options["processes"], options["batch_size"]
    assume(processes <= len(counts))
    ranks = everybody(counts, epoch, **options | {"budget": None})
    sizes = [sum(map(len, shares)) for shares in zip(*ranks, strict=True)]
    assert max(sizes) - min(sizes) <= 1
    shares = [len(batch) for rank in ranks for batch in rank]
    assert max(shares) <= max(most, 2 if len(counts) % processes else 1)
    if most > 1:
        assert len(sizes) == -(-len(counts) // (most * processes))


def padded(counts: list[int], batch: list[int]) -> int:
    return len(batch) * max(1, *(counts[row] for row in batch))


@given(COUNTS, OPTIONS, st.integers(1, 5000), st.integers(0, 5))
@example([0, 0, 0], {"batch_size": 9, "processes": 1, "shuffle": True, "jitter": 0.1}, 2, 0)
def test_the_budget_holds(
    counts: list[int], options: dict[str, Any], budget: int, epoch: int
) -> None:
    processes, most = options["processes"], options["batch_size"]
    assume(processes <= len(counts))
    options |= {"budget": budget}
    ranks = everybody(counts, epoch, **options)
    assert [len(rank) for rank in ranks] == [len(rank) for rank in everybody(counts, 0, **options)]
    beyond = [
        batch
        for rank in ranks
        for batch in rank
        if len(batch) > 1 and (padded(counts, batch) > budget or len(batch) > most)
    ]
    if beyond:
        # Somebody had to take two, and it was not possible with any two of the shortest.
        jitter = options["jitter"] if options["shuffle"] else 0
        rest = len(counts) % processes
        assert rest
        assert {len(batch) for batch in beyond} == {2}
        assert len(beyond) <= rest
        cap = int(max(1, sorted(counts)[rest + processes - 1] * (1 + jitter)))
        assert 2 * cap > budget or most == 1


@given(
    st.lists(st.integers(100, 140), min_size=20, max_size=60),
    st.integers(200, 1500),
    st.sampled_from([0.1, 0.3]),
)
def test_the_budget_holds_where_jitter_matters(
    counts: list[int], budget: int, jitter: float
) -> None:
    sampler = LengthSampler(counts, budget=budget, jitter=jitter)
    number = len(sampler)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        assert len(sampler) == number
        assert all(padded(counts, rows) <= budget for rows in sampler if len(rows) > 1)


@given(COUNTS, st.integers(1, 9), st.none() | st.integers(1, 5000))
def test_without_shuffle_batches_go_by_length(
    counts: list[int], batch_size: int, budget: int | None
) -> None:
    sampler = LengthSampler(counts, batch_size, budget=budget, shuffle=False)
    made = list(sampler)
    order = sorted(range(len(counts)), key=counts.__getitem__)  # stable
    assert [row for batch in made for row in batch] == order
    if budget is not None:  # greedy: the next document would not have fit
        for batch, after in pairwise(made):
            more = [*batch, after[0]]
            assert len(more) > batch_size or padded(counts, more) > budget
    sampler.set_epoch(7)
    assert list(sampler) == made


@given(COUNTS, OPTIONS, st.integers(0, 5), st.data())
def test_an_epoch_resumes_where_it_was_left(
    counts: list[int], options: dict[str, Any], epoch: int, data: st.DataObject
) -> None:
    options["processes"] = min(options["processes"], len(counts))
    documents = data.draw(st.none() | st.integers(options["processes"], len(counts)))
    sampler = LengthSampler(counts, **options, documents=documents)
    sampler.set_epoch(epoch)
    whole, number = list(sampler), len(sampler)
    assert list(sampler) == whole
    start = data.draw(st.integers(0, number), "start")
    other = LengthSampler(np.array(counts), **options, documents=documents)
    other.set_epoch(epoch, start)
    assert list(other) == whole[start:]
    assert len(other) == number
    with pytest.raises(ValueError, match=f"start must be from 0 to the {number} batches"):
        other.set_epoch(epoch, number + 1)
    assert list(other) == whole[start:]
    other.set_epoch(epoch)
    assert list(other) == whole


@given(COUNTS, st.integers(1, 9), st.sampled_from([0.0, 0.1, 1.0]), st.integers(0, 9))
def test_batches_are_of_similar_lengths(
    counts: list[int], size: int, jitter: float, seed: int
) -> None:
    sampler = LengthSampler(counts, size, jitter=jitter, seed=seed)
    lengths = [[counts[row] for row in rows] for rows in sampler]
    for one, other in combinations(lengths, 2):
        # A document is before another that is longer by more than the jitter.
        one_first = min(one) * (1 + jitter) < max(other)
        other_first = min(other) * (1 + jitter) < max(one)
        assert not (one_first and other_first)


def test_epochs_seeds_and_ties_differ() -> None:
    counts = [0] * 50 + [9] * 50
    made = []
    for seed in (0, 1):
        sampler = LengthSampler(counts, 10, seed=seed)
        for epoch in (0, 1):
            sampler.set_epoch(epoch)
            made.append([sorted(batch) for batch in sampler])
    for one in range(4):
        for other in range(one):
            assert sorted(made[one]) != sorted(made[other])  # other documents meet
    shortest_first = [[max(batch) >= 50 for batch in each] for each in made]
    assert any(each != sorted(each) for each in shortest_first)
    sampler = LengthSampler(counts, 10)
    under_way = iter(sampler)
    first = next(under_way)
    whole = list(sampler)
    sampler.set_epoch(1)
    assert [first, *under_way] == whole


def test_some_documents_each_epoch() -> None:
    sampler = LengthSampler(range(1000), 10, documents=100)
    seen: set[int] = set()
    for epoch in range(60):
        sampler.set_epoch(epoch)
        taken = [row for batch in sampler for row in batch]
        assert len(sampler) == 10
        seen.update(taken)
    assert len(seen) > 990


@pytest.mark.parametrize("shuffle", [False, True])
def test_little_padding_in_a_sample(shuffle: bool) -> None:
    dataset = GrammarDataset(compress_many(samples.load("kjv").train.documents))
    counts = dataset.sequence_lengths.tolist()
    sampler = LengthSampler(counts, 32, shuffle=shuffle)
    assert sum(padded(counts, batch) for batch in sampler) < 1.1 * sum(counts)


@given(COUNTS, OPTIONS)
def test_the_largest_batch_is_one_of_the_epoch(counts: list[int], options: dict[str, Any]) -> None:
    sampler = LengthSampler(counts, **options | {"processes": 1})
    largest = sampler.largest()
    assert largest in list(sampler)
    sizes = [len(rows) * max(counts[row] for row in rows) for rows in sampler]
    assert len(largest) * max(counts[row] for row in largest) == max(sizes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, not 0"),
        ({"budget": 0}, "budget must be at least 1 symbol, not 0"),
        ({"jitter": -0.1}, "jitter must be from 0 to 1"),
        ({"jitter": float("nan")}, "jitter must be from 0 to 1"),
        ({"processes": 0}, "processes must be at least 1"),
        ({"rank": 2, "processes": 2}, "rank must be from 0 to 1, not 2"),
        ({"rank": -1}, "rank must be from 0 to 0, not -1"),
        ({"documents": 4}, "documents must be from 1 to the 3 there are, not 4"),
        ({"documents": 0}, "documents must be from 1"),
        ({"processes": 4}, "3 documents for 4 processes; use fewer"),
        ({"processes": 2, "documents": 1}, "1 document for 2 processes"),
        ({"seed": -1}, "non-negative"),
        ({"lengths": [3, -1, 2]}, "document 1: its length is negative"),
    ],
)
def test_what_samplers_refuse(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LengthSampler(**{"lengths": [3, 1, 2]} | options)


def test_samplers_of_nothing() -> None:
    for options in ({}, {"budget": 5}, {"processes": 3}, {"processes": 3, "budget": 5}):
        for shuffle in (False, True):
            sampler = LengthSampler([], shuffle=shuffle, **options)
            assert list(sampler) == []
            assert len(sampler) == 0
    for counts in ([0.5], [[1]], 3, ["1"]):
        with pytest.raises(TypeError, match="lengths must be integers"):
            LengthSampler(counts)
    with pytest.raises(ValueError, match="start must be from 0 to the 1 batches, not -1"):
        LengthSampler([1]).set_epoch(0, -1)
    with pytest.raises(ValueError, match="non-negative"):
        LengthSampler([1]).set_epoch(-1)
