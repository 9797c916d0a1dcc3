"""The binding: arrays have names and live as long as their holders, and the GIL is given away."""

from __future__ import annotations

import gc
import gzip
import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laconic import _core, compress, compress_many, samples
from laconic.grammar import Grammars
from laconic.ngrams.hashed import _letters

LETTERS = _letters(256).table


def counter(many: _core.Grammars | None = None, finished: bool = False) -> _core.NgramCounter:
    made = _core.NgramCounter(LETTERS, 1, 6, True)
    if many is not None:
        made.add(many, 1)
    if finished:
        made.finish(1)
    return made


@cache
def inputs() -> SimpleNamespace:
    texts = samples.load("kjv").train.documents
    many, one = compress_many(texts).core, compress(" ".join(texts)).core
    packed = _core.pack(many, True)
    model = _core.learn_compact(packed, 256)
    lengths = one.expanded_lengths()
    counted = counter(many)
    frequencies, _ = counted.finish(1)
    zipped = gzip.compress("".join(texts).encode())
    return SimpleNamespace(
        zipped=np.frombuffer(zipped, np.uint8),
        zipped_end=np.array([0, len(zipped)]),
        many=many,
        one=one,
        lengths=lengths,
        starts=one.starts(lengths),
        packed=packed,
        model=model,
        codes=_core.encode_compact(packed, 256, model),
        counter=counted,
        ngrams=len(frequencies),
        forest=_core.Forest(many, True),
        text=np.frombuffer("".join(texts).encode(), np.uint8),
        offsets=np.cumsum([0, *map(len, texts)], dtype=np.int64),
    )


# By name: what readies a call, and returns it.
CALLS: dict[str, Callable[[SimpleNamespace], Callable[[], Any]]] = {
    "Grammar.check": lambda k: k.one.check,
    "Grammar.depths": lambda k: k.one.depths,
    "Grammar.expand": lambda k: partial(k.one.expand, k.lengths, k.starts, 0, int(k.starts[-1])),
    "Grammar.expanded_lengths": lambda k: k.one.expanded_lengths,
    "Grammar.occurrences": lambda k: k.one.occurrences,
    "Grammar.starts": lambda k: partial(k.one.starts, k.lengths),
    "Grammars.check": lambda k: k.many.check,
    "Grammars.expanded_lengths": lambda k: k.many.expanded_lengths,
    "Forest": lambda k: partial(_core.Forest, k.many, True),
    "NgramCounter.add": lambda k: partial(counter().add, k.many, 1),
    "NgramCounter.finish": lambda k: partial(counter(k.many).finish, 1),
    "NgramCounter.spelled": lambda k: partial(k.counter.spelled, np.arange(k.ngrams)),
    "NgramCounter.matrix": lambda k: partial(
        counter(k.many, finished=True).matrix, np.arange(k.ngrams, dtype=np.int32), 1
    ),
    "compress_many": lambda k: partial(
        _core.compress_many, k.text, k.offsets, 256, "repair", 2, 1 << 30, 1 << 30, True, None, 1
    ),
    "from_zipped": lambda k: partial(_core.from_zipped, k.zipped, k.zipped_end, 256, False, 1),
    "scan_gzip": lambda k: partial(_core.scan_gzip, k.zipped),
    "learn_rules": lambda k: partial(
        _core.learn_rules,
        k.text,
        k.offsets,
        256,
        np.zeros((0, 2), np.int32),
        np.zeros(0, np.uint8),
        99,
        2,
        1 << 30,
        1,
    ),
    "Rulebook": lambda k: partial(_core.Rulebook, 256, k.many.rules[:1], 0, np.zeros(0, np.uint8)),
    "count_hashed": lambda k: partial(_core.count_hashed, k.many, LETTERS, 1, 2, 999, False, 1),
    "count_known": lambda k: partial(
        _core.count_known, k.many, LETTERS, 1, 2, np.array([98], "u4"), np.array([0, 1]), 1
    ),
    "count_phrases": lambda k: partial(_core.count_phrases, k.many, 2, 3, 64, 999, 1),
    "name_phrases": lambda k: partial(_core.name_phrases, k.many, 2, 3, 64, 999, np.array([5, 77])),
    "pack": lambda k: partial(_core.pack, k.many, True),
    "unpack": lambda k: partial(_core.unpack, k.packed, 256, None),
    "learn_compact": lambda k: partial(_core.learn_compact, k.packed, 256),
    "encode_compact": lambda k: partial(_core.encode_compact, k.packed, 256, k.model),
    "decode_compact": lambda k: partial(_core.decode_compact, *k.codes, 256, k.model),
    "place_ngrams": lambda k: partial(_core.place_ngrams, k.forest, 3, 999),
}


@pytest.fixture
def no_switches() -> Iterator[None]:
    """Python takes the GIL from no thread: whoever has it must give it away."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)
    yield
    sys.setswitchinterval(before)


def another_thread_runs(call: Callable[[], Any]) -> bool:
    """Whether a thread that only waits for the GIL comes to run while `call` does."""
    ran: list[bool] = []
    gate = threading.Lock()
    gate.acquire()

    def other() -> None:
        with gate:
            ran.append(True)

    thread = threading.Thread(target=other)
    thread.start()
    gate.release()
    call()
    result = bool(ran)
    thread.join()
    return result


def test_all_calls_that_may_take_long_are_tried_below() -> None:
    found = {"Forest", "Rulebook"}  # the only constructors that do more than to hold arrays
    for name, value in vars(_core).items():
        if inspect.isclass(value):
            found |= {f"{name}.{each}" for each in vars(value) if callable(getattr(value, each))}
        elif callable(value):
            found.add(name)
    assert set(CALLS) == {name for name in found if "_" not in (name[0], name.split(".")[-1][0])}


@pytest.mark.parametrize("name", CALLS)
def test_other_threads_run_meanwhile(name: str, no_switches: None) -> None:
    known = inputs()
    # A busy machine may take longer to wake the other thread than the call takes.
    deadline = time.monotonic() + 60
    while not another_thread_runs(CALLS[name](known)):
        assert time.monotonic() < deadline, f"{name} keeps the GIL"


def test_no_other_thread_runs_while_one_keeps_the_gil(no_switches: None) -> None:
    numbers = list(range(100_000))
    assert not any(another_thread_runs(lambda: sum(numbers)) for _ in range(20))


def test_arrays_live_as_long_as_what_holds_them() -> None:
    def view() -> _core.Grammars:
        arrays: list[Any] = [
            np.array([[0, 1]], np.int32),
            np.array([0, 1]),
            np.array([2, 2], np.int32),
        ]
        return _core.Grammars(2, *arrays, np.array([0, 2]))

    held = view()
    gc.collect()
    noise = [np.full(2, 7, np.int32) for _ in range(1000)]
    assert held.rules.tolist() == [[0, 1]]
    assert held.expanded_lengths().tolist() == [4]
    rules = held.rules
    assert held.rules is rules
    del held, noise
    gc.collect()
    assert rules.tolist() == [[0, 1]]


def test_what_the_core_wrote_cannot_be_changed() -> None:
    grammars = compress_many(["abab", "banana"])
    names = ("rules", "rule_offsets", "sequence", "sequence_offsets")
    for array in (getattr(grammars.core, name) for name in names):
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    assert isinstance(grammars, Grammars)
    assert grammars.core.rules is grammars.rules


@pytest.mark.parametrize("wrong", [np.zeros((1, 3), np.int32), np.zeros(4, np.int32), "abc", None])
def test_other_arrays_are_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        _core.Grammar(2, wrong, np.zeros(1, np.int32))
    with pytest.raises(TypeError):
        _core.compress_many(
            np.zeros(3),  # type: ignore[arg-type]
            np.array([0, 3]),
            2,
            "none",
            2,
            1 << 30,
            1 << 30,
            True,
            1,
        )
