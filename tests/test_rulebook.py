"""Rulebooks: learning and parsing against the oracle, files, hostile input."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import DOCUMENTS

from laconic import Alphabet, GrammarError, Rulebook, _core, oracle, samples
from laconic.errors import InputError, LaconicError, VersionError

KINDS = "sblm"  # in the order of core/words.hpp
WORDS = st.lists(st.sampled_from(KINDS), min_size=3, max_size=3) | st.none()
OPTIONS = st.fixed_dictionaries(
    {
        "rules": st.sampled_from((0, 1, 2, 5, 100)),
        "min_documents": st.sampled_from((1, 1, 2, 3)),
        "max_expansion": st.sampled_from((None, None, 1, 2, 3, 7)),
    }
)
NO_RULES = np.zeros((0, 2), np.int32)
TEXTS = st.lists(st.text("ab. \n", max_size=30), max_size=8)
# Peak memory of learning, in bytes a byte of text, measured in a process of its own.
LEARN_ALONE = r"""
import re
from pathlib import Path
from laconic import Rulebook, samples

def used(name):
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(rf"{name}:\s+(\d+) kB", status)[1])

texts = samples.load("kjv").train.documents * 6
Rulebook.learn(texts[:50], 64, boundary="none")
Path("/proc/self/clear_refs").write_text("5")
before = used("VmRSS")
Rulebook.learn(texts, 100, boundary="none", threads=1)
print((used("VmHWM") - before) / sum(map(len, texts)))
"""


def laid(documents: list[list[int]], dtype: Any = np.uint8) -> tuple[Any, Any]:
    offsets = np.cumsum([0, *map(len, documents)], dtype=np.int64)
    return np.array([s for d in documents for s in d], dtype), offsets


def in_core(kinds: list[str] | None, size: int) -> Any:
    codes = [KINDS.index(kinds[k % 3]) for k in range(size)] if kinds else []
    return np.array(codes, np.uint8)


# ---- against the oracle -------------------------------------------------------------------------


@given(
    st.lists(DOCUMENTS, max_size=5),
    OPTIONS,
    WORDS,
    st.sampled_from((np.uint8, np.uint16, np.int32)),
    st.integers(1, 3),
)
@example([[0, 0, 0], [0, 0]], {"rules": 5, "min_documents": 1}, None, np.uint8, 1)
@example([[0, 1, 1, 1, 1]] * 3, {"rules": 5, "min_documents": 2}, None, np.uint8, 2)
@example([[0, 1, 0, 1], [], [2, 0, 1]], {"rules": 5}, ["l", "l", "b"], np.uint8, 2)
@example([[0, 1, 0, 1, 2, 2], [0, 1], [2, 2]], {"rules": 5, "min_documents": 3}, None, np.uint8, 1)
def test_core_learns_and_parses_as_the_oracle(
    documents: list[list[int]],
    options: dict[str, Any],
    kinds: list[str] | None,
    dtype: Any,
    threads: int,
) -> None:
    documents = [[s % 256 for s in document] for document in documents]
    size = max([0, *(s for document in documents for s in document)]) + 1
    spelled = [kinds[k % 3] for k in range(size)] if kinds else None
    expected = oracle.learn(documents, size, **options, kinds=spelled)
    text, offsets = laid(documents, dtype)
    learned = _core.learn_rules(
        text,
        offsets,
        size,
        NO_RULES,
        in_core(kinds, size),
        options["rules"],
        options.get("min_documents", 2),
        options.get("max_expansion") or 0xFFFFFFFF,
        threads,
    )
    assert [*map(tuple, learned.tolist())] == expected
    book = _core.Rulebook(size, learned, len(learned) if kinds else 0, in_core(kinds, size))
    made = _core.compress_many(text, offsets, size, "none", 2, 0, 1, True, book, threads)
    ends = made.sequence_offsets.tolist()
    for k, document in enumerate(documents):
        parsed = made.sequence[ends[k] : ends[k + 1]].tolist()
        assert parsed == oracle.parse(document, expected, size, spelled)
        assert oracle.expand(expected, parsed, size) == document


@given(DOCUMENTS, st.data())
def test_any_rules_parse_as_the_oracle(document: list[int], data: st.DataObject) -> None:
    size = 3
    document = [s % size for s in document]
    rules: list[tuple[int, int]] = []
    for k in range(data.draw(st.integers(0, 8))):
        smaller = st.integers(0, size + k - 1)
        rules.append(data.draw(st.tuples(smaller, smaller).filter(lambda pair: pair not in rules)))
    within = data.draw(st.integers(0, len(rules)))
    pairs = np.array(rules, np.int32).reshape(-1, 2)
    book = _core.Rulebook(size, pairs, within, in_core([*"lbm"], size))
    text, offsets = laid([document])
    made = _core.compress_many(text, offsets, size, "none", 2, 0, 1, True, book, 1)
    assert made.sequence.tolist() == oracle.parse(document, rules, size, [*"lbm"], within)


@given(TEXTS, OPTIONS)
@example(["  a", "   ", " a  a", "  .. "] * 2, {"rules": 5})  # blanks, within words and across
def test_phrases_are_learned_as_the_oracle_learns_them(
    texts: list[str], options: dict[str, Any]
) -> None:
    alphabet = Alphabet.learn(["ab. \n"])
    kinds = [{"\n": "s", " ": "b", ".": "m"}.get(c, "l") for c in alphabet.characters or ""]
    book = Rulebook.learn(texts, alphabet=alphabet, **options)
    documents = [[int(s) for s in alphabet.encode(text)] for text in texts]
    size, count = alphabet.size, options["rules"]
    options = {name: value for name, value in options.items() if name != "rules"}
    within = oracle.learn(documents, size, count // 2, **options, kinds=kinds)
    parsed = [oracle.parse(document, within, size, kinds) for document in documents]
    size += len(within)
    across = oracle.learn(parsed, size, count - len(within), **options, known=within)
    assert [*map(tuple, book.rules.tolist())] == within + across
    assert book.within == len(within)


BOUNDARIES = ("phrases", "words", "none")


@given(TEXTS, TEXTS, st.sampled_from(BOUNDARIES), st.sampled_from(("bytes", "learned")))
def test_unseen_documents_come_back(
    texts: list[str], others: list[str], boundary: Any, name: str
) -> None:
    alphabet = Alphabet.learn(["ab. \n"]) if name == "learned" else Alphabet.bytes()
    book = Rulebook.learn(texts, 20, alphabet=alphabet, boundary=boundary, min_documents=1)
    others = [*others, "", "é\t a aa" if name == "bytes" else "a  ab..b"]
    symbols, offsets = book.parse(others)
    rules = [*map(tuple, book.rules.tolist())]
    for k, text in enumerate(others):
        parsed = symbols[offsets[k] : offsets[k + 1]].tolist()
        assert alphabet.decode(oracle.expand(rules, parsed, alphabet.size)) == text


@pytest.mark.parametrize("boundary", BOUNDARIES)
def test_threads_and_order_of_work_do_not_matter(boundary: Any) -> None:
    documents = [text.encode() for text in samples.load("kjv").train.documents[:300]]
    one = Rulebook.learn(documents, 400, boundary=boundary, threads=1)
    assert one == Rulebook.learn(documents, 400, boundary=boundary, threads=3)
    assert len(one) == 400
    first, second = one.parse(documents, threads=1), one.parse(documents, threads=3)
    assert first[0].tobytes() == second[0].tobytes()
    assert first[1].tobytes() == second[1].tobytes()
    # What is learned is what Re-Pair leaves: parsing ends where learning did.
    kinds = [KINDS[k] for k in _byte_kinds()]
    rules = [*map(tuple, one.rules.tolist())]
    begin, end = first[1][5:7]
    assert first[0][begin:end].tolist() == oracle.parse(
        [*documents[5]], rules, 256, kinds, one.within
    )


def _byte_kinds() -> list[int]:
    kinds = [3] * 128 + [2] * 128
    for byte in range(128):
        if chr(byte).isalnum():
            kinds[byte] = 2
        elif chr(byte).isspace():
            kinds[byte] = 1 if byte == 32 else 0
    return kinds


def test_words_are_what_the_docstring_says() -> None:
    text = "don't  stop\n\n  at 3.5, zhong1guo2"
    kinds = [KINDS[k] for k in _byte_kinds()]
    words = [bytes(word).decode() for word in oracle.words([*text.encode()], kinds)]
    assert words == [
        *("don", "'", "t", " ", " stop", "\n\n ", " at", " 3", ".", "5", ",", " zhong1guo2")
    ]


def test_no_rule_crosses_words_unless_it_may() -> None:
    documents = ["6 6 63 6 42"] * 4
    within = Rulebook.learn(documents, 50, boundary="words")
    assert [within.text(s) for s in range(256, within.size)] == [" 6", " 4", " 63", " 42"]
    across = Rulebook.learn(documents, 50, boundary="none")
    assert across.text(across.size - 1) == "6 6 63 6 42"
    phrases = Rulebook.learn(documents, 4)
    assert [phrases.text(s) for s in range(256, 260)] == [" 6", " 4", "6 6", " 63"]
    for boundary in ("none", "phrases"):
        short = Rulebook.learn(documents, 50, boundary=boundary, max_expansion=4)
        assert 3 <= int(short.expanded_lengths.max()) <= 4


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="tells of Linux's memory")
def test_learning_across_words_holds_text_as_bytes() -> None:
    command = [sys.executable, "-c", LEARN_ALONE]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 19  # 17; as 32-bit symbols, the text alone would add 4


def test_small_alphabets_get_few_rules() -> None:
    random = Random(5)
    dna = ["".join(random.choices("ACGT", k=2000)) for _ in range(20)]
    assert len(Rulebook.learn(dna)) == len(Rulebook.learn(dna, alphabet="dna")) == 256
    assert len(Rulebook.learn(dna, 300)) == 300
    assert len(Rulebook.learn(["6 6 63 6 42 17 95 8"] * 3)) < 20


# ---- the sample ---------------------------------------------------------------------------------


def test_a_sample_is_random_and_says_how_large_it_is() -> None:
    documents = [f"document {k:04}" for k in range(1000)]
    whole = Rulebook.learn(documents, 10)
    some = Rulebook.learn(iter(documents), 10, sample=1300)
    assert (whole.documents, some.documents) == (1000, 100)
    assert Rulebook.learn(documents, 10, sample=1300) == some
    assert Rulebook.learn(documents, 10, sample=1).documents == 1
    ends = Rulebook.learn(documents, 900, sample=1300, min_documents=1, boundary="none")
    others = Rulebook.learn(documents, 900, sample=1300, min_documents=1, boundary="none", seed=1)
    assert ends.fingerprint != others.fingerprint


# ---- the object ---------------------------------------------------------------------------------


def test_fingerprint_tells_what_parsing_depends_on() -> None:
    book = Rulebook("bytes", [[97, 98]])
    # Files name it: it must never change.
    assert book.fingerprint == FINGERPRINT
    assert Rulebook("bytes", [[97, 98]], documents=7) == book
    assert hash(Rulebook("bytes", [[97, 98]])) == hash(book)
    others = [
        Rulebook("bytes", [[97, 99]]),
        Rulebook("bytes", [[97, 98]], within=0),
        Rulebook(Alphabet.learn(["".join(map(chr, range(255)))]), [[97, 98]]),
    ]
    assert len({book.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert book != "book"
    assert pickle.loads(pickle.dumps(book)) == book


FINGERPRINT = "0a4b8dfd6d85f8076b60d09d6f6e9eff068c818f3102b47649ecdbe342ab5f20"


def test_symbols_are_spelled() -> None:
    book = Rulebook("bytes", [[195, 169], [256, 10]])
    assert [book.text(s) for s in (97, 195, 256, 257)] == ["a", "\\xc3", "é", "é\n"]
    for symbol in (-1, 258):
        with pytest.raises(IndexError, match=rf"symbol {symbol} is not one of 0\.\.257"):
            book.text(symbol)
    bomb = Rulebook("bytes", [[97, 97], *([k, k] for k in range(256, 355))])
    with pytest.raises(GrammarError, match="too many to spell"):
        bomb.text(bomb.size - 1)
    bomb.show(rows=100)


def test_arguments_that_cannot_be() -> None:
    for wrong in (
        {"rules": -1},
        {"rules": 1.5},
        {"min_documents": 0},
        {"max_expansion": 0},
        {"sample": 0},
        {"boundary": "lines"},
        {"alphabet": "greek"},
        {"threads": 0},
    ):
        with pytest.raises(InputError, match=r"must be|no alphabet is named"):
            Rulebook.learn(["a"], **wrong)  # type: ignore[arg-type]
    for rules, reason in (
        ([[0, 256]], "rule 0 uses symbol 256, which is outside 0 … 255|not defined before"),
        ([[0, 1], [0, 1]], "rule 1 is rule 0 again"),
        ([[0, 1, 2]], "shape"),
        ([[0, -1]], "outside"),
    ):
        with pytest.raises(GrammarError, match=reason):
            Rulebook("bytes", rules)
    for within in (-1, 2, "none", True):
        with pytest.raises(InputError, match="within must be"):
            Rulebook("bytes", [[97, 98]], within)  # type: ignore[arg-type]


# ---- files --------------------------------------------------------------------------------------


def test_saved_and_loaded(tmp_path: Path) -> None:
    book = Rulebook.learn(["no, no é"] * 3, 5, alphabet=Alphabet.learn(["no, é"]))
    book.save(tmp_path / "book.json")
    loaded = Rulebook.load(tmp_path / "book.json")
    assert loaded == book
    assert (loaded.documents, loaded.alphabet, loaded.within) == (3, book.alphabet, book.within)
    assert Rulebook.from_json(book.to_json()) == book


@pytest.mark.parametrize(
    ("within", "version", "boundary"), [(None, 1, "words"), (0, 1, "none"), (1, 2, 1)]
)
def test_files_are_of_the_first_version_that_suffices(
    within: int | None, version: int, boundary: str | int
) -> None:
    book = Rulebook("bytes", [[97, 98], [256, 99]], within)
    fields = json.loads(book.to_json())
    assert (fields["version"], fields["boundary"]) == (version, boundary)
    assert Rulebook.from_json(book.to_json()).within == book.within


def changed(**fields: object) -> str:
    return json.dumps(json.loads(Rulebook("bytes", [[97, 98]]).to_json()) | fields)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value"),
        ("[]", 'no object with "laconic": "rulebook"'),
        ("[" * 100_000, "nested too deeply"),
        ('{"laconic": "vectorizer"}', 'no object with "laconic": "rulebook"'),
        (changed(version="1"), "there is no format version '1'"),
        (changed(more=1), "its keys must be alphabet, boundary"),
        (changed(rules=[97]), "the last has one"),
        (changed(rules=[97, 2**40]), "beyond int32"),
        (changed(rules=[97, 2**70]), "rules must hold integers"),
        (changed(rules=[97, 1.0]), "rules must be a list of integers"),
        (changed(rules=[97, 256]), "not defined before it"),
        (changed(rules="ab"), "rules must be a list of integers"),
        (changed(boundary=["words"]), "boundary must be"),
        (changed(boundary=1), "boundary must be"),
        (changed(boundary=True), "boundary must be"),
        (changed(documents=-1), "documents must be an integer"),
        (changed(alphabet=7), "alphabet JSON"),
        (changed(alphabet={"name": "greek"}), "must be one of bytes"),
    ],
)
def test_files_that_are_no_rulebooks(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    path.write_text(text)
    with pytest.raises(InputError, match=reason) as error:
        Rulebook.load(path)
    assert str(error.value).startswith(f"{path}: it is no rulebook: ")
    assert len(str(error.value)) < 400
    with pytest.raises(LaconicError, match=reason):
        Rulebook.from_json(text)


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "book.json"
    path.write_text(changed(version=3))
    with pytest.raises(VersionError, match=r"book.json: a later Laconic wrote it"):
        Rulebook.load(path)
